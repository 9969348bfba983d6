//! How curves look: a colour for each era, and a dash and a marker that help to tell the colours apart.
//!
//! The first seven colours are those of Okabe and Ito, which people with most kinds of colour blindness can tell apart. No
//! 22 colours have that property, so the later ones come with other dashes and markers. An era looks the same in every
//! plot.

use plotters::style::RGBColor;

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
    const ALL: [Self; 3] = [Self::Full, Self::Dashed, Self::Dotted];

    /// Pixels drawn, and pixels left out.
    pub(crate) fn pixels(self) -> (i32, i32) {
        match self {
            Self::Full => (1, 0),
            Self::Dashed => (6, 4),
            Self::Dotted => (2, 4),
        }
    }
}

/// Colour and dash of the era `name`: its place in the catalogue decides.
pub(crate) fn of_era(name: &str) -> (RGBColor, Dash) {
    let others = eras::catalogue().iter().map(|era| era.name).filter(|era| *era != LIGHTFOOT);
    match others.enumerate().find(|(_, era)| *era == name) {
        Some((number, _)) => (colour(number), Dash::ALL[number / 7 % Dash::ALL.len()]),
        None => (RGBColor(0, 0, 0), Dash::Full),
    }
}

/// The colour of curve `number` of a plot whose curves are not eras.
pub(crate) fn colour(number: usize) -> RGBColor {
    COLOURS[number % COLOURS.len()]
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
