//! Names beside the ends of curves, in place of a legend.

use crate::figure::{DrawingError, Panel};
use plotters::prelude::*;

/// A name, the pixel of its curve's end, and its colour.
pub(crate) struct Label {
    pub(crate) text: String,
    pub(crate) end: (i32, i32),
    pub(crate) colour: RGBColor,
}

/// Draws `labels` to the right of `x`, each at the height of its curve's end, or as near as others allow.
pub(crate) fn draw(
    panel: &Panel<'_>,
    mut labels: Vec<Label>,
    (x, size): (i32, i32),
    (top, bottom): (i32, i32),
) -> Result<(), DrawingError> {
    labels.sort_by_key(|label| label.end.1);
    let places = apart(&labels.iter().map(|label| label.end.1).collect::<Vec<i32>>(), size + 3, top, bottom);
    for (label, y) in labels.iter().zip(places) {
        let line = [label.end, (x - 4, y)];
        panel.draw(&PathElement::new(line, label.colour.mix(0.5).stroke_width(1)))?;
        let style = ("sans-serif", size).into_text_style(panel).color(&label.colour);
        panel.draw_text(&label.text, &style, (x, y - size / 2 - 1))?;
    }
    Ok(())
}

/// Heights in the order of `wanted`, which is sorted, at least `gap` apart and between `top` and `bottom` if they fit.
fn apart(wanted: &[i32], gap: i32, top: i32, bottom: i32) -> Vec<i32> {
    let mut places: Vec<i32> = wanted.to_vec();
    let mut least = top;
    for place in &mut places {
        *place = (*place).max(least);
        least = *place + gap;
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = (*place).min(most);
        most = *place - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_where_they_want_to_be_unless_they_would_meet() {
        for (wanted, places) in [
            (&[10, 50, 90][..], &[10, 50, 90][..]),
            (&[10, 12, 90], &[10, 30, 90]),
            (&[80, 95, 99], &[60, 80, 100]),
            (&[], &[]),
        ] {
            assert_eq!(apart(wanted, 20, 0, 100), places);
        }
    }
}
