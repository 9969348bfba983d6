//! A figure of the report: curves over the number of CPUs, published ones dashed.

use crate::chart::Axis;
use crate::palette;
use crate::plot::DrawingError;
use lab::report::{Curve, Figure};
use plotters::prelude::*;

/// Size in pixels.
const SIZE: (u32, u32) = (960, 560);
const LEGEND_WIDTH: u32 = 230;

/// Values that lie farther apart than this are drawn on a logarithmic scale.
const LINEAR_UP_TO: f64 = 30.0;

/// The figure as SVG.
pub(crate) fn draw(figure: &Figure, curves: &[Curve]) -> Result<String, DrawingError> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.titled(figure.title, ("sans-serif", 22))?;
        let (panel, legend) = root.split_horizontally(SIZE.0 - LEGEND_WIDTH);
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let values = Axis::of(points().map(|point| point.1).filter(|value| *value > 0.0).collect(), LINEAR_UP_TO);
        let scale = if values.is_log() { ", log scale" } else { "" };
        let mut chart = ChartBuilder::on(&panel)
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(Axis::places(points().map(|point| point.0).collect()), values)?;
        chart
            .configure_mesh()
            .x_desc("CPUs")
            .y_desc(format!("{}{scale}", figure.unit))
            .label_style(("sans-serif", 14))
            .axis_desc_style(("sans-serif", 15))
            .light_line_style(BLACK.mix(0.0))
            .bold_line_style(BLACK.mix(0.12))
            .draw()?;
        for (curve, colour) in coloured(curves) {
            let style = colour.stroke_width(2);
            let points = curve.points.iter().copied();
            if curve.is_published {
                chart.draw_series(DashedLineSeries::new(points.clone(), 6, 4, style))?;
            } else {
                chart.draw_series(LineSeries::new(points.clone(), style))?;
            }
            let fill = if curve.is_published { WHITE.filled() } else { colour.filled() };
            chart.draw_series(points.clone().map(|point| Circle::new(point, 4, fill)))?;
            chart.draw_series(points.map(|point| Circle::new(point, 4, style)))?;
        }
        let text = ("sans-serif", 14).into_text_style(&legend);
        for (row, (curve, colour)) in coloured(curves).enumerate() {
            let y = 50 + 24 * row as i32;
            let strokes: &[(i32, i32)] = if curve.is_published { &[(0, 7), (11, 18), (22, 29)] } else { &[(0, 29)] };
            for &(from, to) in strokes {
                legend.draw(&PathElement::new([(4 + from, y), (4 + to, y)], colour.stroke_width(2)))?;
            }
            legend.draw_text(&curve.name, &text, (40, y - 8))?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// Each curve with its colour. A published curve has the colour of the simulated curve beside it.
fn coloured(curves: &[Curve]) -> impl Iterator<Item = (&Curve, RGBColor)> {
    let mut simulated = 0;
    let mut published = 0;
    curves.iter().map(move |curve| {
        let count = if curve.is_published { &mut published } else { &mut simulated };
        *count += 1;
        (curve, if curve.name == palette::LIGHTFOOT { BLACK } else { palette::colour(*count - 1) })
    })
}
