//! How far a figure may be from the published one before the report owes a reason.

/// How far a simulated figure may be from the published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A part of the published figure: 0.25 is 25 %.
    Part(f64),
    /// So many units of the figure, for changes in percent that are near 0.
    Points(f64),
}

impl Tolerance {
    /// The tolerance of a row unless its experiment sets another.
    pub const DEFAULT: Self = Self::Part(0.25);

    /// Returns whether `simulated` is near enough to `published`.
    #[must_use]
    pub fn allows(self, simulated: f64, published: f64) -> bool {
        match self {
            Self::Part(part) => (simulated - published).abs() <= part * published.abs(),
            Self::Points(points) => (simulated - published).abs() <= points,
        }
    }

    /// As the table shows it.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Part(part) => format!("{:.0} %", 100.0 * part),
            Self::Points(points) => format!("{points} points"),
        }
    }
}

/// Why figures are farther from the published ones than their tolerance.
pub struct Reason {
    /// Which rows.
    pub rows: super::input::Rows,
    /// In a sentence.
    pub why: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_near_within_a_part_or_within_points() {
        for (tolerance, simulated, published, is_near) in [
            (Tolerance::DEFAULT, 1.25, 1.0, true),
            (Tolerance::DEFAULT, 0.74, 1.0, false),
            (Tolerance::DEFAULT, -1.0, 1.0, false),
            (Tolerance::Points(2.0), -0.6, 0.9, true),
            (Tolerance::Points(2.0), 3.0, 0.9, false),
            (Tolerance::DEFAULT, f64::NAN, 1.0, false),
        ] {
            assert_eq!(tolerance.allows(simulated, published), is_near, "{simulated} for {published}");
        }
    }
}
