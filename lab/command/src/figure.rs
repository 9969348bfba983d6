//! A figure of the report: curves over the number of CPUs, published ones dashed, each with its name at its end; or a line
//! for each row.

use crate::axis::Axis;
use crate::dots;
use crate::labels::{self, Label};
use crate::palette;
use lab::report::{Curve, Drawing, Experiment, Figure, Run};
use plotters::coord::Shift;
use plotters::prelude::*;

pub(crate) type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type DrawingError = DrawingAreaErrorKind<std::io::Error>;

/// Pixels of a figure with one panel, and of each panel of a figure with several.
const ALONE: (u32, u32) = (1000, 560);
const SMALL: (u32, u32) = (500, 400);

/// Panels beside each other.
const COLUMNS: usize = 3;

/// Values that are farther apart than this are drawn on a logarithmic scale.
const LINEAR_UP_TO: f64 = 30.0;

/// Returns the figure as SVG.
pub(crate) fn draw(figure: &Figure, experiment: &Experiment, runs: &[Run]) -> Result<String, DrawingError> {
    match &figure.drawing {
        Drawing::Curves { unit, panels } => {
            let panels: Vec<(&str, Vec<Curve>)> =
                panels.iter().map(|(title, sketches)| (title.as_str(), experiment.curves(sketches, runs))).collect();
            curves(figure.title, unit, &panels)
        }
        Drawing::Dots { unit, rows } => dots::draw(figure.title, *unit, &experiment.dots(rows, runs)),
    }
}

/// The common part of all panels of a figure.
struct Frame<'a> {
    unit: &'a str,
    /// Every value and every number of CPUs in any panel.
    points: Vec<(f64, f64)>,
    is_small: bool,
}

fn curves(title: &str, unit: &str, panels: &[(&str, Vec<Curve>)]) -> Result<String, DrawingError> {
    let points = panels.iter().flat_map(|(_, curves)| curves).flat_map(|curve| curve.points.iter().copied()).collect();
    let frame = Frame { unit, points, is_small: panels.len() > 1 };
    let columns = panels.len().min(COLUMNS);
    let lines = panels.len().div_ceil(COLUMNS);
    let (width, height) = if frame.is_small { SMALL } else { ALONE };
    let size = (width * columns as u32, height * lines as u32 + 40);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.titled(title, ("sans-serif", if title.len() > 100 { 16 } else { 22 }))?;
        for (panel, (heading, curves)) in root.split_evenly((lines, columns)).iter().zip(panels) {
            draw_panel(panel, heading, curves, &frame)?;
        }
        root.present()?;
    }
    Ok(svg)
}

fn draw_panel(panel: &Panel<'_>, heading: &str, curves: &[Curve], frame: &Frame<'_>) -> Result<(), DrawingError> {
    let (font, room) = if frame.is_small { (11, 100) } else { (14, 210) };
    let values =
        Axis::of(frame.points.iter().map(|point| point.1).filter(|value| *value > 0.0).collect(), LINEAR_UP_TO);
    let is_log = values.is_log();
    let scale = if is_log { ", log scale" } else { "" };
    let mut builder = ChartBuilder::on(panel);
    builder.margin(12).margin_right(room).x_label_area_size(44).y_label_area_size(76);
    if !heading.is_empty() {
        builder.caption(heading, ("sans-serif", 15));
    }
    let places = Axis::places(frame.points.iter().map(|point| point.0).collect());
    let mut chart = builder.build_cartesian_2d(places, values)?;
    chart
        .configure_mesh()
        .x_desc("CPUs")
        .y_desc(format!("{}{scale}", frame.unit))
        .label_style(("sans-serif", font))
        .axis_desc_style(("sans-serif", font + 1))
        .light_line_style(BLACK.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .draw()?;
    let mut names = Vec::new();
    for curve in curves {
        let colour = palette::of_era(curve.era);
        let style = colour.stroke_width(if curve.era == palette::LIGHTFOOT { 3 } else { 2 });
        // A logarithmic axis has no zero.
        let points: Vec<(f64, f64)> = curve.points.iter().copied().filter(|point| !is_log || point.1 > 0.0).collect();
        let each = points.iter().copied();
        if curve.is_published {
            chart.draw_series(DashedLineSeries::new(each.clone(), 6, 4, style))?;
        } else {
            chart.draw_series(LineSeries::new(each.clone(), style))?;
        }
        let fill = if curve.is_published { WHITE.filled() } else { colour.filled() };
        let radius = if frame.is_small { 3 } else { 4 };
        chart.draw_series(each.clone().map(|point| Circle::new(point, radius, fill)))?;
        chart.draw_series(each.map(|point| Circle::new(point, radius, style)))?;
        if let Some(last) = points.last() {
            names.push(Label { text: curve.name.clone(), end: chart.backend_coord(last), colour });
        }
    }
    let (left, top) = panel.get_base_pixel();
    let (width, height) = panel.dim_in_pixel();
    for name in &mut names {
        name.end = (name.end.0 - left, name.end.1 - top);
    }
    let x = width as i32 - room + 14;
    labels::draw(panel, names, (x, font), (30, height as i32 - 60))
}
