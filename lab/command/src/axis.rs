//! The axis of a figure.

use crate::table::quantity;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// An axis with marks at given places, linear or logarithmic.
pub(crate) struct Axis {
    range: Range<f64>,
    marks: Vec<f64>,
    is_log: bool,
}

impl Axis {
    /// Returns the axis for counts of CPUs: a mark at each, logarithmic if they span more than a
    /// factor of four.
    pub(crate) fn places(mut places: Vec<f64>) -> Self {
        places.sort_by(f64::total_cmp);
        places.dedup();
        let (least, most) = (places.first().copied().unwrap_or(1.0), places.last().copied().unwrap_or(1.0));
        let is_log = most > 4.0 * least;
        let range = if is_log { least / 1.15..most * 1.15 } else { least - 0.4..most + 0.4 };
        Self { range, marks: places, is_log }
    }

    /// Returns the axis for `values`: linear from zero while they span no more than a factor of
    /// `linear_up_to`.
    pub(crate) fn of(values: Vec<f64>, linear_up_to: f64) -> Self {
        let most = values.iter().copied().fold(1.0, f64::max);
        let least = values.iter().copied().fold(most, f64::min);
        if most > linear_up_to * least {
            let range = least / 1.5..most * 1.5;
            let decades = (range.start.log10().ceil() as i32)..=(range.end.log10().floor() as i32);
            return Self { marks: decades.map(|decade| 10_f64.powi(decade)).collect(), range, is_log: true };
        }
        // Steps of 1, 2 or 5 times a power of ten, at most eight of them.
        let power = 10_f64.powf((most / 8.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| most / step <= 8.0);
        let step = step.unwrap_or(most);
        let marks = (0..=8).map(|mark| f64::from(mark) * step).filter(|mark| *mark <= most * 1.06).collect();
        Self { range: 0.0..most * 1.06, marks, is_log: false }
    }

    pub(crate) fn is_log(&self) -> bool {
        self.is_log
    }

    fn scaled(&self, value: f64) -> f64 {
        // Zero is on the lower edge of a logarithmic axis.
        if self.is_log { value.max(self.range.start).ln() } else { value }
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let (start, end) = (self.scaled(self.range.start), self.scaled(self.range.end));
        let part = (self.scaled(*value) - start) / (end - start);
        limit.0 + (part * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        if value.fract() == 0.0 && *value < 10_000.0 { format!("{value:.0}") } else { short(*value) }
    }
}

/// As [`quantity`], without redundant zeros.
fn short(value: f64) -> String {
    let text = quantity(value);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number} {unit}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_span_more_than_two_decades_get_a_logarithmic_axis_with_a_mark_at_each() {
        let check = |values: &[f64], is_log: bool, marks: &[f64]| {
            let axis = Axis::of(values.to_vec(), 100.0);
            assert_eq!((axis.is_log, axis.marks.as_slice()), (is_log, marks), "{values:?}");
        };
        check(&[100.0, 15_000.0], true, &[100.0, 1000.0, 10_000.0]);
        check(&[100.0, 9_000.0], false, &[0.0, 2000.0, 4000.0, 6000.0, 8000.0]);
        check(&[700.0], false, &[0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0]);
    }

    #[test]
    fn an_axis_maps_its_range_to_the_pixels() {
        let axis = Axis { range: 1.0..100.0, marks: Vec::new(), is_log: true };
        assert_eq!([0.0, 1.0, 10.0, 100.0].map(|value| axis.map(&value, (0, 200))), [0, 0, 100, 200]);
        let axis = Axis { is_log: false, range: 0.0..100.0, ..axis };
        assert_eq!([0.0, 10.0, 100.0].map(|value| axis.map(&value, (200, 0))), [200, 180, 0]);
    }

    #[test]
    fn marks_are_short() {
        assert_eq!([0.0, 64.0, 20_000.0, 1.5e6].map(short), ["0", "64", "20 k", "1.5 M"]);
    }
}
