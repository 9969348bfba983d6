//! A line for each row: the published figure as an empty circle, the simulated one as a full one, and the range of all runs.

use crate::figure::{DrawingError, Panel};
use lab::report::Dot;
use plotters::prelude::*;

const WIDTH: u32 = 1000;
const LINE: i32 = 18;
const TOP: i32 = 64;
/// Where the names end and the axis begins, and where it ends.
const LEFT: i32 = 470;
const RIGHT: i32 = 960;

const SIMULATED: RGBColor = RGBColor(0, 114, 178);
const PUBLISHED: RGBColor = RGBColor(213, 94, 0);

/// The most that a part of the published figure may be on the axis; a value beyond is on its edge.
const PARTS: (f64, f64) = (1.0 / 16.0, 16.0);

/// Returns the rows as SVG: in `unit`, or as parts of the published figures on a logarithmic axis.
pub(crate) fn draw(title: &str, unit: Option<&str>, rows: &[Dot]) -> Result<String, DrawingError> {
    let axis = if unit.is_some() { Scale::of_values(rows) } else { Scale::of_parts() };
    let height = TOP + LINE * rows.len() as i32 + 50;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height as u32)).into_drawing_area();
        root.fill(&WHITE)?;
        root.draw_text(title, &("sans-serif", 17).into_text_style(&root), (20, 10))?;
        let bottom = TOP + LINE * rows.len() as i32;
        draw_axis(&root, &axis, unit.unwrap_or("simulated divided by published, log scale"), bottom)?;
        for (i, row) in rows.iter().enumerate() {
            draw_row(&root, &axis, row, TOP + LINE * i as i32 + LINE / 2)?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// From figures to pixels.
struct Scale {
    is_part: bool,
    low: f64,
    high: f64,
    marks: Vec<f64>,
}

impl Scale {
    fn of_parts() -> Self {
        let marks = vec![PARTS.0, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, PARTS.1];
        Self { is_part: true, low: PARTS.0, high: PARTS.1, marks }
    }

    fn of_values(rows: &[Dot]) -> Self {
        let all = || rows.iter().flat_map(|row| [row.range.0, row.range.1].into_iter().chain(row.published));
        let (low, high) = all().fold((0.0_f64, 0.0_f64), |(low, high), x| (low.min(x), high.max(x)));
        let step = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0].into_iter();
        let step = step.into_iter().find(|step| (high - low) / step <= 12.0).unwrap_or(1000.0);
        let (first, last) = ((low / step).floor() as i32, (high / step).ceil() as i32);
        let marks = (first..=last).map(|mark| f64::from(mark) * step).collect();
        Self { is_part: false, low: f64::from(first) * step, high: f64::from(last) * step, marks }
    }

    fn pixel(&self, value: f64) -> i32 {
        let value = value.clamp(self.low, self.high);
        let part = match self.is_part {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        };
        LEFT + (part * f64::from(RIGHT - LEFT)).round() as i32
    }

    /// Returns the place of a figure of `row` on the axis.
    fn place(&self, row: &Dot, value: f64) -> i32 {
        self.pixel(if self.is_part { value / row.published.unwrap_or(1.0) } else { value })
    }
}

fn draw_axis(root: &Panel<'_>, axis: &Scale, unit: &str, bottom: i32) -> Result<(), DrawingError> {
    let text = ("sans-serif", 12).into_text_style(root);
    if axis.is_part {
        let near = [(axis.pixel(0.75), TOP), (axis.pixel(1.25), bottom)];
        root.draw(&Rectangle::new(near, RGBColor(0, 158, 115).mix(0.13).filled()))?;
    }
    for mark in &axis.marks {
        let x = axis.pixel(*mark);
        root.draw(&PathElement::new([(x, TOP), (x, bottom)], BLACK.mix(0.15).stroke_width(1)))?;
        let number = if *mark < 1.0 && axis.is_part { format!("1/{:.0}", 1.0 / mark) } else { format!("{mark}") };
        root.draw_text(&number, &text, (x - 8, bottom + 6))?;
    }
    root.draw_text(unit, &text, (LEFT, bottom + 26))?;
    root.draw(&Circle::new((LEFT + 8, TOP - 14), 4, SIMULATED.filled()))?;
    root.draw_text("simulated, with the range of all runs", &text, (LEFT + 18, TOP - 21))?;
    root.draw(&Circle::new((LEFT + 258, TOP - 14), 4, PUBLISHED.stroke_width(2)))?;
    let near = if axis.is_part { "published; band: within 25 %" } else { "published" };
    root.draw_text(near, &text, (LEFT + 268, TOP - 21))
}

fn draw_row(root: &Panel<'_>, axis: &Scale, row: &Dot, y: i32) -> Result<(), DrawingError> {
    let text = ("sans-serif", 12).into_text_style(root);
    let name: String = row.name.chars().take(76).collect();
    root.draw_text(&name, &text, (20, y - 7))?;
    root.draw(&PathElement::new([(LEFT, y), (RIGHT, y)], BLACK.mix(0.06).stroke_width(1)))?;
    let range = [(axis.place(row, row.range.0), y), (axis.place(row, row.range.1), y)];
    root.draw(&PathElement::new(range, SIMULATED.mix(0.6).stroke_width(3)))?;
    if let Some(published) = row.published {
        root.draw(&Circle::new((axis.place(row, published), y), 5, PUBLISHED.stroke_width(2)))?;
    }
    root.draw(&Circle::new((axis.place(row, row.simulated), y), 4, SIMULATED.filled()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_one_lies_in_the_middle_and_what_is_beyond_on_the_edge() {
        let axis = Scale::of_parts();
        let middle = i32::midpoint(LEFT, RIGHT);
        assert_eq!([0.0, PARTS.0, 1.0, 99.0].map(|part| axis.pixel(part)), [LEFT, LEFT, middle, RIGHT]);
    }
}
