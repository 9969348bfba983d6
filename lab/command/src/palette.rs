//! A colour for each era, the same in every plot.
//!
//! The eras of the report's figures have the colours of Okabe and Ito and a few more, which people
//! with most kinds of colour blindness can distinguish. No thirty colours have that property.

use plotters::style::{Color as _, HSLColor, RGBColor};

/// The era that the others are compared with; it is black.
pub(crate) const LIGHTFOOT: &str = "lightfoot";

/// The eras that the report draws most, with colours that do not depend on the catalogue.
const OF_ERAS: [(&str, RGBColor); 10] = [
    ("big-lock", RGBColor(150, 150, 150)),
    ("dcache-lock", RGBColor(130, 45, 0)),
    ("fastwalk", RGBColor(230, 159, 0)),
    ("dcache-rcu", RGBColor(204, 121, 167)),
    ("linux-2.6.32", RGBColor(213, 94, 0)),
    ("vfs-scale", RGBColor(0, 158, 115)),
    ("store-free-2009", RGBColor(0, 90, 60)),
    ("linux-3.10", RGBColor(86, 180, 233)),
    ("lockref-2013", RGBColor(0, 114, 178)),
    (LIGHTFOOT, RGBColor(0, 0, 0)),
];

/// Returns the colour of the era `name`.
pub(crate) fn of_era(name: &str) -> RGBColor {
    if let Some((_, colour)) = OF_ERAS.iter().find(|(era, _)| *era == name) {
        return *colour;
    }
    let is_other = |era: &&str| OF_ERAS.iter().all(|(fixed, _)| fixed != era);
    let mut others = eras::catalogue().iter().map(|era| era.name).filter(is_other);
    spread(others.position(|era| era == name).unwrap_or(0))
}

/// Colour number `number` of any number of colours: steps of the golden angle around the circle.
fn spread(number: usize) -> RGBColor {
    let hue = (number as f64 * 0.618_034).fract();
    let light = 0.35 + 0.12 * (number % 3) as f64;
    let (red, green, blue) = HSLColor(hue, 0.65, light).rgb();
    RGBColor(red, green, blue)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_era_has_a_colour_that_no_other_has() {
        let eras = eras::catalogue();
        let colours: BTreeSet<_> = eras.iter().map(|era| of_era(era.name)).map(|c| (c.0, c.1, c.2)).collect();
        assert_eq!(colours.len(), eras.len());
        assert_eq!(of_era(LIGHTFOOT), RGBColor(0, 0, 0));
    }
}
