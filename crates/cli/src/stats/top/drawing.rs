//! The screen of `lightfoot top`, drawn from a [`View`].
//!
//! # What it is
//! From the top: the mount, figures, errors, rates as sparklines, a bar for each cache, operations, keys. Where lines are
//! few, operations and the mount stay longest. Columns that do not fit are left out.

mod bars;

use super::view::{Column, Moment, OperationRow, View};
use crate::control::Status;
use crate::stats::units::{bytes, grouped, rate, time, utc};
use bars::{caches, lines_of_caches};
use fuse::Gauge;
use fuse::message::show;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, RenderDirection, Sparkline};
use std::path::Path;
use vfs::Foreign;

/// The width of a label and its figure before a sparkline.
const BEFORE_SPARKLINE: u16 = 28;

/// Lines of the table of operations that others do not take: its head and three rows.
const FEWEST_OPERATIONS: u16 = 4;

/// The effects of the keys.
const HELP: [(&str, &str); 6] = [
    ("q, Esc, Ctrl-C", "quit"),
    ("s, >", "sort by the next column"),
    ("<", "sort by the column before"),
    ("p, space", "pause, go on"),
    ("f", "show one file system after the other, then all"),
    ("?", "this help"),
];

pub(super) fn draw(frame: &mut Frame<'_>, view: &View) {
    let area = frame.area();
    let heights = heights(area.height, lines_of_caches(view));
    let [title, facts, rates, of_caches, operations, keys] =
        Layout::vertical(heights.map(Constraint::Length)).areas(area);
    frame.render_widget(Paragraph::new(title_of(&view.total)).style(Modifier::REVERSED), title);
    frame.render_widget(Paragraph::new(facts_of(view)), facts);
    draw_rates(frame, rates, view);
    frame.render_widget(Paragraph::new(caches(view, of_caches)), of_caches);
    frame.render_widget(Paragraph::new(operation_lines(view, operations)), operations);
    frame.render_widget(Paragraph::new(keys_of(view)), keys);
    if view.has_help {
        draw_help(frame, area);
    }
}

/// Returns the heights of title, facts, rates, caches, operations and keys, which add up to `all`.
fn heights(all: u16, caches: u16) -> [u16; 6] {
    let mut rest = all;
    let mut give = |wanted: u16| {
        let given = wanted.min(rest);
        rest -= given;
        given
    };
    let (title, keys, operations, facts, rates) = (give(1), give(1), give(FEWEST_OPERATIONS), give(2), give(3));
    let half = rest.div_ceil(2);
    // A head without a line below it shows nothing.
    let caches = if rest < 2 { 0 } else { caches.min(half.max(2)) };
    [title, facts, rates, caches, operations + rest - caches, keys]
}

fn bold(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Modifier::BOLD)
}

fn title_of(status: &Status) -> String {
    let Status { mountpoint, source, version, began_s, .. } = status;
    let (at, of) = (show(Path::new(mountpoint)), show(Path::new(source)));
    format!("{at}  {of}  lightfoot {version}  since {}", utc(*began_s))
}

fn facts_of(view: &View) -> Vec<Line<'static>> {
    let (status, span_ns) = (&view.recent, view.recent.snapshot.span_ns);
    let first = Line::from(vec![
        "in flight ".into(),
        bold(grouped(status.gauge(Gauge::InFlight.name()))),
        "   handles ".into(),
        bold(grouped(status.gauge(Gauge::Handles.name()))),
        "   files of the kernel ".into(),
        bold(grouped(status.gauge(Gauge::Nodes.name()))),
        "   memory ".into(),
        bold(bytes(status.memory.resident_bytes)),
        format!("   over {}", time(span_ns)).into(),
    ]);
    let of_op = |op: &fuse::OpStats| {
        let name = op.name.clone();
        op.failures().map(move |(errno, count)| format!("{name} {errno} {}", grouped(*count))).collect::<Vec<_>>()
    };
    let errors: Vec<String> = status.snapshot.ops.iter().flat_map(of_op).collect();
    let errors = if errors.is_empty() {
        Span::from("none")
    } else {
        Span::styled(Foreign::of(&errors.join(", ")).to_string(), Color::Yellow)
    };
    vec![first, Line::from(vec!["errors ".into(), errors])]
}

fn draw_rates(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let now = view.moments.front().copied().unwrap_or_else(|| Moment::of(&view.recent));
    let rows = [
        ("operations", grouped(now.operations), Color::Cyan, view.moments.iter().map(|of| of.operations).collect()),
        ("read", bytes(now.read), Color::Green, view.moments.iter().map(|of| of.read).collect()),
        ("written", bytes(now.written), Color::Magenta, view.moments.iter().map(|of| of.written).collect::<Vec<u64>>()),
    ];
    for ((label, figure, color, moments), row) in rows.into_iter().zip(area.rows()) {
        let [text, line] = Layout::horizontal([Constraint::Length(BEFORE_SPARKLINE), Constraint::Min(0)]).areas(row);
        let figure = bold(format!("{figure:>12}"));
        frame.render_widget(Line::from(vec![format!("{label:<11}").into(), figure, "/s".into()]), text);
        let sparkline = Sparkline::default().data(moments).direction(RenderDirection::RightToLeft);
        frame.render_widget(sparkline.style(Style::from(color)), line);
    }
}

/// Returns the head, and as many operations as fit.
fn operation_lines(view: &View, area: Rect) -> Vec<Line<'static>> {
    let mut room = usize::from(area.width);
    let fits = |column: &Column| {
        let width = column.width();
        let fits = room >= width;
        room = room.saturating_sub(if fits { width } else { room });
        fits
    };
    let columns: Vec<Column> = Column::all().take_while(fits).collect();
    let head = columns.iter().map(|column| {
        let is_sorted = *column == view.sorted_by;
        let style = if is_sorted { Modifier::REVERSED | Modifier::BOLD } else { Modifier::REVERSED };
        let mark = if is_sorted { "▾" } else { "" };
        Span::styled(cell(*column, &format!("{mark}{}", column.title())), style)
    });
    let rows = view.operations();
    let rows = rows.iter().take(usize::from(area.height.saturating_sub(1)));
    let span_ns = view.recent.snapshot.span_ns;
    let row = |of: &OperationRow<'_>| -> String {
        columns.iter().map(|column| cell(*column, &value(of, *column, span_ns))).collect()
    };
    [Line::from_iter(head)].into_iter().chain(rows.map(|of| Line::from(row(of)))).collect()
}

fn cell(column: Column, text: &str) -> String {
    let width = column.width();
    match column {
        Column::Operation => format!("{text:<width$}"),
        _ => format!("{text:>width$}"),
    }
}

fn value(row: &OperationRow<'_>, column: Column, span_ns: u64) -> String {
    match (column, row.recent) {
        (Column::Operation, _) => row.total.name.clone(),
        (Column::Total, _) => grouped(row.total.count),
        (_, None) => "-".into(),
        (Column::Errors, Some(recent)) => grouped(recent.errors),
        (Column::PerSecond, Some(recent)) => rate(recent.count, span_ns),
        (Column::Median, Some(recent)) => time(recent.p50_ns),
        (Column::P90, Some(recent)) => time(recent.p90_ns),
        (Column::P99, Some(recent)) => time(recent.p99_ns),
        (Column::Longest, Some(recent)) => time(recent.max_ns),
    }
}

fn keys_of(view: &View) -> Line<'static> {
    let of = view.alone().map_or("all".into(), |alone| show(Path::new(&alone.at)));
    let paused = view.is_paused.then(|| Span::styled("PAUSED  ", Modifier::REVERSED));
    let text = [
        ("q", "quit".to_owned()),
        ("s", format!("sort: {}", view.sorted_by.title())),
        ("p", "pause".into()),
        ("f", format!("file system: {of}")),
        ("?", "help".into()),
    ];
    let keys = text.into_iter().flat_map(|(key, what)| [bold(key), format!(" {what}  ").into()]);
    paused.into_iter().chain(keys).collect()
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let lines = HELP.map(|(keys, what)| Line::from(vec![bold(format!("{keys:<16}")), what.into()]));
    let (width, height) = (66.min(area.width), (HELP.len() as u16 + 2).min(area.height));
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines.to_vec()).block(Block::bordered().title(" Keys ")), place);
}

#[cfg(test)]
#[path = "drawing/tests.rs"]
mod tests;
