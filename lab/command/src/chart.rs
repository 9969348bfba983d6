//! The plot of `lightfoot-lab run`: throughput per CPU, and in total, against CPUs; a line for each era.

use crate::palette::{self, Dash};
use crate::plot::{DrawingError, Panel};
use crate::run_report::{RunReport, RunRow};
use crate::table::quantity;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;
use std::ops::Range;

/// Size in pixels.
const SIZE: (u32, u32) = (1360, 640);
const LEGEND_WIDTH: u32 = 240;
/// From one line of the legend to the next, if they all fit so.
const LEGEND_STEP: usize = 24;
const LEGEND_HEIGHT: usize = 540;

/// Values that lie farther apart than this are drawn on a logarithmic scale.
const LINEAR_UP_TO: f64 = 100.0;

/// What is on the y-axis of a panel.
type Value = fn(&RunRow) -> Option<f64>;

/// Draws the report's rows into `svg`.
pub(crate) fn draw(svg: &mut String, report: &RunReport) -> Result<(), DrawingError> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled(&format!("{} on {}", report.workload.name, report.on), ("sans-serif", 24))?;
    let (head, body) = root.split_vertically(26);
    let about = format!("{}; after {}; seed {}", report.workload.summary, report.workload.source, report.seed);
    head.draw_text(&about, &("sans-serif", 14).into_text_style(&head).color(&BLACK.mix(0.7)), (76, 4))?;
    let (panels, legend) = body.split_horizontally(SIZE.0 - LEGEND_WIDTH);
    let lines = lines(report);
    let panels = panels.split_evenly((1, 2));
    draw_panel(&panels[0], "per CPU", &lines, |row| row.ops_per_second_per_cpu)?;
    draw_panel(&panels[1], "all CPUs", &lines, |row| row.ops_per_second)?;
    draw_legend(&legend, &lines)?;
    root.present()
}

/// One era's rows and how they are drawn.
struct EraLine<'a> {
    era: &'a str,
    rows: Vec<&'a RunRow>,
    colour: RGBColor,
    dash: Dash,
}

impl EraLine<'_> {
    fn points(&self, value: Value) -> Vec<(f64, f64)> {
        self.rows.iter().filter_map(|row| Some((place(row), value(row)?))).collect()
    }

    fn stroke(&self) -> ShapeStyle {
        self.colour.stroke_width(if self.era == palette::LIGHTFOOT { 3 } else { 2 })
    }
}

/// The place of a row on the x-axis: threads if there are more of them than CPUs.
fn place(row: &RunRow) -> f64 {
    row.cpus.max(row.threads) as f64
}

/// A line for each era that has figures, in the order of the report.
fn lines(report: &RunReport) -> Vec<EraLine<'_>> {
    let mut lines: Vec<EraLine<'_>> = Vec::new();
    for row in report.rows.iter().filter(|row| row.is_done()) {
        match lines.iter_mut().find(|line| line.era == row.era) {
            Some(line) => line.rows.push(row),
            None => {
                let (colour, dash) = palette::of_era(&row.era);
                lines.push(EraLine { era: &row.era, rows: vec![row], colour, dash });
            }
        }
    }
    lines
}

fn draw_panel(panel: &Panel<'_>, caption: &str, lines: &[EraLine<'_>], value: Value) -> Result<(), DrawingError> {
    let points: Vec<(f64, f64)> = lines.iter().flat_map(|line| line.points(value)).collect();
    let places: Vec<f64> = points.iter().map(|(place, _)| *place).collect();
    let values = Axis::of(points.iter().map(|(_, value)| *value).filter(|value| *value > 0.0).collect(), LINEAR_UP_TO);
    let scale = if values.is_log { ", log scale" } else { "" };
    let has_threads = lines.iter().flat_map(|line| &line.rows).any(|row| row.threads > row.cpus);
    let mut chart = ChartBuilder::on(panel)
        .margin(12)
        .caption(caption, ("sans-serif", 18))
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(Axis::places(places), values)?;
    chart
        .configure_mesh()
        .x_desc(if has_threads { "threads" } else { "CPUs" })
        .y_desc(format!("operations per second{scale}"))
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .light_line_style(BLACK.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    for line in lines {
        let points = line.points(value);
        match line.dash.pixels() {
            (_, 0) => chart.draw_series(LineSeries::new(points.iter().copied(), line.stroke()))?,
            (on, off) => chart.draw_series(DashedLineSeries::new(points.iter().copied(), on, off, line.stroke()))?,
        };
        let points = points.into_iter();
        match line.dash {
            Dash::Full => chart.draw_series(points.map(|point| Circle::new(point, 4, line.colour.filled())))?,
            Dash::Dotted => chart.draw_series(points.map(|point| Cross::new(point, 4, line.stroke())))?,
            Dash::Dashed => {
                chart.draw_series(points.clone().map(|point| Circle::new(point, 4, WHITE.filled())))?;
                chart.draw_series(points.map(|point| Circle::new(point, 4, line.stroke())))?
            }
        };
    }
    Ok(())
}

/// The eras, in the order in which their last points lie above one another.
fn draw_legend(strip: &Panel<'_>, lines: &[EraLine<'_>]) -> Result<(), DrawingError> {
    let last = |line: &EraLine<'_>| line.rows.last().and_then(|row| row.ops_per_second).unwrap_or(0.0);
    let mut order: Vec<&EraLine<'_>> = lines.iter().collect();
    order.sort_by(|a, b| last(b).total_cmp(&last(a)));
    let text = ("sans-serif", 14).into_text_style(strip);
    let step = LEGEND_STEP.min(LEGEND_HEIGHT / order.len().max(1));
    for (index, line) in order.into_iter().enumerate() {
        let y = 50 + (step * index) as i32;
        let (on, off) = line.dash.pixels();
        for from in (0..36).step_by((on + off) as usize) {
            strip.draw(&PathElement::new([(4 + from, y), (4 + (from + on).min(36), y)], line.stroke()))?;
        }
        match line.dash {
            Dash::Full => strip.draw(&Circle::new((22, y), 4, line.colour.filled()))?,
            Dash::Dotted => strip.draw(&Cross::new((22, y), 4, line.stroke()))?,
            Dash::Dashed => {
                strip.draw(&Circle::new((22, y), 4, WHITE.filled()))?;
                strip.draw(&Circle::new((22, y), 4, line.stroke()))?;
            }
        }
        strip.draw_text(line.era, &text, (48, y - 8))?;
    }
    Ok(())
}

/// An axis with marks at given places, linear or logarithmic.
pub(crate) struct Axis {
    range: Range<f64>,
    marks: Vec<f64>,
    is_log: bool,
}

impl Axis {
    /// The axis for counts of CPUs: a mark at each, logarithmic if they span more than a factor of four.
    pub(crate) fn places(mut places: Vec<f64>) -> Self {
        places.sort_by(f64::total_cmp);
        places.dedup();
        let (least, most) = (places.first().copied().unwrap_or(1.0), places.last().copied().unwrap_or(1.0));
        let is_log = most > 4.0 * least;
        let range = if is_log { least / 1.15..most * 1.15 } else { least - 0.4..most + 0.4 };
        Self { range, marks: places, is_log }
    }

    /// The axis for `values`: linear from zero while they span no more than a factor of `linear_up_to`.
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
        // Nothing at all lies on the lower edge of a logarithmic axis.
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

/// As [`quantity`], without zeros that say nothing.
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
            let axis = Axis::of(values.to_vec(), LINEAR_UP_TO);
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
