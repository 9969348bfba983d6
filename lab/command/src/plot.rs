//! The plot: time against depth, one panel for one thread and one for most threads, as SVG or PNG.

mod raster;

use crate::bench::cases::OPERATIONS;
use crate::bench::outcome::{BenchReport, BenchRow};
use crate::bench::peers::{CONTENDERS, Contender, OPERATION, PeerReport};
use crate::error::Error;
use crate::palette::COLOURS;
use fuse::message::Reason;
use plotters::coord::Shift;
use plotters::prelude::*;
use raster::Raster;
use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process;

/// Size in pixels.
const SIZE: (u32, u32) = (1280, 640);
const LEGEND_WIDTH: u32 = 200;

/// A colour for each of [`OPERATIONS`]; people with most kinds of colour blindness can tell them apart (Okabe and Ito).
const OPERATION_COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(86, 180, 233), RGBColor(213, 94, 0), RGBColor(0, 158, 115)];

pub(crate) type Panel<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type DrawingError = DrawingAreaErrorKind<std::io::Error>;

/// The file to draw into. Until it is complete it has another name, which goes if it never gets there.
pub(crate) struct PlotFile {
    target: PathBuf,
    draft: PathBuf,
    /// `None`: it becomes SVG.
    raster: Option<Raster>,
}

impl PlotFile {
    /// Makes sure, before anything is measured, that `target` can be written. A name that ends in `.png` makes it a PNG.
    pub(crate) fn create(target: &Path) -> Result<Self, Error> {
        let refuse = |reason: Reason| Error::Plot { path: target.into(), reason };
        // What a link leads to is replaced, not the link.
        let place = target.canonicalize().unwrap_or_else(|_| target.into());
        match fs::metadata(&place) {
            Ok(there) if there.is_dir() => return Err(refuse("is a directory".into())),
            Ok(there) if !there.is_file() => return Err(refuse("not a regular file".into())),
            _ => {}
        }
        let is_png = target.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("png"));
        let raster = is_png.then(Raster::new).transpose().map_err(|why| refuse(why.as_str().into()))?;
        let Some(name) = place.file_name() else { return Err(refuse("not a file name".into())) };
        let mut draft = name.to_owned();
        draft.push(format!(".{}.part", process::id()));
        let draft = place.with_file_name(draft);
        File::create_new(&draft).map_err(|error| refuse(error.into()))?;
        Ok(Self { target: place, draft, raster })
    }

    /// Draws `picture` and gives the file its name.
    pub(crate) fn draw(self, picture: &Picture<'_>) -> Result<(), Error> {
        self.draw_with(|svg| draw(svg, picture))
    }

    /// As [`draw`](Self::draw), with what `draw` draws.
    pub(crate) fn draw_with(self, draw: impl FnOnce(&mut String) -> Result<(), DrawingError>) -> Result<(), Error> {
        let refuse = |reason: Reason| Error::Plot { path: self.target.clone(), reason };
        let mut svg = String::new();
        draw(&mut svg).map_err(|error| refuse(error.to_string().as_str().into()))?;
        let bytes = match &self.raster {
            Some(raster) => raster.draw(&svg).map_err(|why| refuse(why.as_str().into()))?,
            None => svg.into_bytes(),
        };
        fs::write(&self.draft, bytes)
            .and_then(|()| fs::rename(&self.draft, &self.target))
            .map_err(|error| refuse(error.into()))
    }
}

impl Drop for PlotFile {
    fn drop(&mut self) {
        // Once it has been renamed there is nothing to remove.
        let _ = fs::remove_file(&self.draft);
    }
}

/// What is drawn.
pub(crate) struct Picture<'a> {
    about: String,
    threads: &'a [usize],
    rows: &'a [BenchRow],
    lines: Vec<CaseLine>,
}

impl<'a> Picture<'a> {
    /// The picture of `lightfoot-lab bench`.
    pub(crate) fn of_bench(report: &'a BenchReport) -> Self {
        let (machine, tree) = (&report.machine, &report.tree);
        let about = format!("{}, {} entries; {}, {}", tree.name, tree.entries, machine.cpu, machine.kernel);
        Self { about, threads: &report.method.threads, rows: &report.rows, lines: lines().collect() }
    }

    /// The picture of `lightfoot-lab bench --peers`: system calls are dashed, and Lightfoot lies on top.
    pub(crate) fn of_peers(report: &'a PeerReport) -> Self {
        let (machine, tree) = (&report.machine, &report.tree);
        let about = format!("lookups of hot paths, {tree}; {}, {}", machine.cpu, machine.kernel);
        let line = |(contender, colour): (&Contender, RGBColor)| CaseLine {
            case: format!("{}.{OPERATION}", contender.name),
            colour,
            is_solid: !contender.is_system_call,
        };
        let lines = CONTENDERS.iter().zip(COLOURS).map(line).rev().collect();
        Self { about, threads: &report.method.threads, rows: &report.rows, lines }
    }
}

fn draw(svg: &mut String, picture: &Picture<'_>) -> Result<(), DrawingError> {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let root = root.titled("CPU time per operation and thread", ("sans-serif", 24))?;
    let (head, body) = root.split_vertically(24);
    head.draw_text(&picture.about, &("sans-serif", 14).into_text_style(&head).color(&BLACK.mix(0.7)), (76, 4))?;
    let (panels, legend) = body.split_horizontally(SIZE.0 - LEGEND_WIDTH);
    let counts = picture.threads;
    let mut shown = vec![counts.first().copied().unwrap_or(1), counts.last().copied().unwrap_or(1)];
    shown.dedup();
    let range = range(picture.rows);
    for (panel, threads) in panels.split_evenly((1, shown.len())).iter().zip(shown) {
        let rows: Vec<&BenchRow> = picture.rows.iter().filter(|row| row.threads == threads).collect();
        draw_panel(panel, &caption(threads), &rows, &picture.lines, range.clone())?;
    }
    draw_legend(&legend, picture)?;
    root.present()
}

/// From below the fastest to above the slowest, in nanoseconds.
fn range(rows: &[BenchRow]) -> Range<f64> {
    let least = rows.iter().map(|row| row.median_ns).fold(f64::INFINITY, f64::min);
    let most = rows.iter().map(|row| row.median_ns).fold(1.0, f64::max);
    (least.min(most) / 1.5).max(0.1)..most * 1.5
}

fn caption(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

fn draw_panel(
    panel: &Panel<'_>,
    caption: &str,
    rows: &[&BenchRow],
    lines: &[CaseLine],
    range: Range<f64>,
) -> Result<(), DrawingError> {
    let deepest = rows.iter().map(|row| row.depth).max().unwrap_or(1);
    let mut chart = ChartBuilder::on(panel)
        .margin(12)
        .caption(caption, ("sans-serif", 18))
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..deepest as f64 + 1.0, range.log_scale())?;
    chart
        .configure_mesh()
        .x_desc("depth of the path, components")
        .y_desc("ns per operation, log scale")
        .x_labels(deepest.min(16) + 2)
        .x_label_formatter(&|depth| format!("{depth:.0}"))
        .y_label_formatter(&nanoseconds)
        .label_style(("sans-serif", 14))
        .axis_desc_style(("sans-serif", 15))
        .light_line_style(BLACK.mix(0.05))
        .draw()?;
    for line in lines {
        let of_case = rows.iter().filter(|row| row.case == line.case);
        let points: Vec<(f64, f64)> = of_case.map(|row| (row.depth as f64, row.median_ns)).collect();
        let style = line.colour.stroke_width(2);
        // A line through two points would only suggest what lies between them.
        let between = if points.len() > 2 { points.iter().copied() } else { [].iter().copied() };
        if line.is_solid {
            chart.draw_series(LineSeries::new(between, style))?;
        } else {
            chart.draw_series(DashedLineSeries::new(between, 6, 4, style))?;
        }
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 4, line.fill())))?;
        chart.draw_series(points.iter().map(|&point| Circle::new(point, 4, style)))?;
    }
    Ok(())
}

/// The lines that have rows, named in the order in which they lie above one another.
fn draw_legend(strip: &Panel<'_>, picture: &Picture<'_>) -> Result<(), DrawingError> {
    let highest = |line: &CaseLine| {
        let of_case = picture.rows.iter().filter(|row| row.case == line.case);
        of_case.map(|row| row.median_ns).fold(f64::NEG_INFINITY, f64::max)
    };
    let mut lines: Vec<&CaseLine> = picture.lines.iter().filter(|line| highest(line) > 0.0).collect();
    lines.sort_by(|a, b| highest(b).total_cmp(&highest(a)));
    let text = ("sans-serif", 14).into_text_style(strip);
    for (index, line) in lines.iter().enumerate() {
        let y = 60 + 24 * index as i32;
        let style = line.colour.stroke_width(2);
        let strokes: &[(i32, i32)] = if line.is_solid { &[(0, 36)] } else { &[(0, 7), (11, 18), (22, 29), (33, 36)] };
        for &(from, to) in strokes {
            strip.draw(&PathElement::new([(4 + from, y), (4 + to, y)], style))?;
        }
        strip.draw(&Circle::new((22, y), 4, line.fill()))?;
        strip.draw(&Circle::new((22, y), 4, style))?;
        strip.draw_text(&line.case, &text, (48, y - 8))?;
    }
    Ok(())
}

fn nanoseconds(ns: &f64) -> String {
    if *ns < 1000.0 { format!("{ns:.0}") } else { format!("{:.0}k", ns / 1000.0) }
}

/// How one case is drawn: the colour shows the operation, full or dashed the side.
struct CaseLine {
    case: String,
    colour: RGBColor,
    is_solid: bool,
}

impl CaseLine {
    /// The inside of its markers.
    fn fill(&self) -> ShapeStyle {
        if self.is_solid { self.colour.filled() } else { WHITE.filled() }
    }
}

/// Every case's line; Lightfoot's, full, come last and lie on top.
fn lines() -> impl Iterator<Item = CaseLine> {
    [("kernel", false), ("lightfoot", true)].into_iter().flat_map(|(side, is_solid)| {
        let line = move |(operation, colour)| CaseLine { case: format!("{side}.{operation}"), colour, is_solid };
        OPERATIONS.into_iter().zip(OPERATION_COLOURS).map(line)
    })
}
