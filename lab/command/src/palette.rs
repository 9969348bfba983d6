//! How curves look: a colour for each era, and a dash and a marker that help to tell the colours apart.
//!
//! The eras of the report's figures have the colours of Okabe and Ito and a few more, which people with most kinds of colour
//! blindness can tell apart. No thirty colours have that property, so the others come with other dashes and markers. An era
//! looks the same in every plot.

use plotters::style::{Color as _, HSLColor, RGBColor};

/// The era that the others are compared with; it is black.
pub(crate) const LIGHTFOOT: &str = "lightfoot";

/// The colours, seven for each [`Dash`].
pub(crate) const COLOURS: [RGBColor; 21] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(130, 110, 90),
    RGBColor(0, 60, 105),
    RGBColor(130, 45, 0),
    RGBColor(0, 90, 60),
    RGBColor(128, 50, 100),
    RGBColor(150, 95, 0),
    RGBColor(30, 100, 150),
    RGBColor(70, 58, 46),
    RGBColor(90, 90, 220),
    RGBColor(240, 80, 80),
    RGBColor(120, 170, 30),
    RGBColor(170, 60, 200),
    RGBColor(190, 170, 0),
    RGBColor(0, 170, 190),
    RGBColor(150, 150, 150),
];

/// How a line is drawn, and with it its markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dash {
    /// A full line with full circles.
    Full,
    /// A dashed line with empty circles.
    Dashed,
    /// A dotted line with crosses.
    Dotted,
}

impl Dash {
    /// Pixels drawn, and pixels left out.
    pub(crate) fn pixels(self) -> (i32, i32) {
        match self {
            Self::Full => (1, 0),
            Self::Dashed => (6, 4),
            Self::Dotted => (2, 4),
        }
    }
}

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

/// Colour and dash of the era `name`.
pub(crate) fn of_era(name: &str) -> (RGBColor, Dash) {
    if let Some((_, colour)) = OF_ERAS.iter().find(|(era, _)| *era == name) {
        return (*colour, Dash::Full);
    }
    let is_other = |era: &&str| OF_ERAS.iter().all(|(fixed, _)| fixed != era);
    let others = eras::catalogue().iter().map(|era| era.name).filter(is_other);
    let number = others.enumerate().find(|(_, era)| *era == name).map_or(0, |(number, _)| number);
    (spread(number), [Dash::Dashed, Dash::Dotted][number % 2])
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
        let colours: BTreeSet<_> = eras.iter().map(|era| of_era(era.name).0).map(|c| (c.0, c.1, c.2)).collect();
        assert_eq!(colours.len(), eras.len());
        assert_eq!(of_era(LIGHTFOOT), (RGBColor(0, 0, 0), Dash::Full));
    }
}
