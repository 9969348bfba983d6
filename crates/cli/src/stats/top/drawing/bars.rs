//! Names and caches of the file systems: one line each, or one of them in four. Then the object stores, two lines each.

use crate::control::{FileSystemStatus, StoreStatus};
use crate::stats::top::view::View;
use crate::stats::units::{bytes, grouped, per_second, percent, rate};
use fuse::message::show;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};
use std::path::Path;
use vfs::Budget;

/// The width of a mount point in the list.
const MOUNTPOINT: usize = 18;

/// The width of a figure of names.
const FIGURE: usize = 10;

/// The width of a bar with its percentage, and the space before it.
const BAR: usize = 14;

/// The bytes of one kind.
type Kind = fn(&Budget) -> u64;

/// The kinds of bytes that have budgets.
const KINDS: [(&str, Kind); 3] =
    [("entries", |of| of.entries), ("negative", |of| of.negatives), ("listings", |of| of.listings)];

/// Returns how many lines they take, if there is room.
pub(super) fn lines_of_caches(view: &View) -> u16 {
    lines_of_file_systems(view).saturating_add(u16::try_from(2 * view.recent.stores.len()).unwrap_or(u16::MAX))
}

fn lines_of_file_systems(view: &View) -> u16 {
    match view.alone() {
        Some(FileSystemStatus { budget: Some(_), .. }) => 6,
        Some(_) => 4,
        None => u16::try_from(view.recent.file_systems.len() + 1).unwrap_or(u16::MAX),
    }
}

/// Returns the lines that fit into `area`.
pub(super) fn caches(view: &View, area: Rect) -> Vec<Line<'static>> {
    let span_ns = view.recent.snapshot.span_ns;
    let height = lines_of_file_systems(view).min(area.height);
    let mut lines = match view.alone() {
        Some(alone) => details(alone, span_ns, area),
        None => list(view, Rect { height, ..area }),
    };
    let stores = view.recent.stores.iter().flat_map(|store| store_lines(store, span_ns));
    lines.extend(stores.take(usize::from(area.height - height)));
    lines
}

/// Returns what happened at a store in an interval: the requests by kind, and the bytes and failures.
fn store_lines(store: &StoreStatus, span_ns: u64) -> [Line<'static>; 2] {
    let at = shortened(&show(Path::new(&store.url)), MOUNTPOINT - 1);
    let kinds = store.requests.iter().filter(|(_, count)| *count > 0);
    let kinds = kinds.map(|(kind, count)| format!(" {kind} {}", rate(*count, span_ns)));
    let [received, sent] = ["received_bytes", "sent_bytes"].map(|name| bytes(per_second(store.number(name), span_ns)));
    let [retries, errors] = ["retries", "errors"].map(|name| store.number(name));
    let color = if retries + errors > 0 { Color::Yellow } else { Color::Reset };
    let failures = format!("retries {}, errors {}", grouped(retries), grouped(errors));
    let moved = format!("{:<MOUNTPOINT$}in {received}/s, out {sent}/s, ", "");
    [
        format!("{at:<MOUNTPOINT$}requests/s{}", kinds.collect::<String>()).into(),
        vec![moved.into(), Span::styled(failures, color)].into(),
    ]
}

fn list(view: &View, area: Rect) -> Vec<Line<'static>> {
    let head = format!("{:<MOUNTPOINT$}{:>FIGURE$}{:>FIGURE$}", "file system", "hits", "misses/s");
    let head = KINDS.iter().fold(head, |head, (name, _)| head + &format!("  {name:<0$}", BAR - 2));
    let (all, room) = (&view.recent.file_systems, usize::from(area.height.saturating_sub(1)));
    let shown = if all.len() > room { room.saturating_sub(1) } else { all.len() };
    let rows = all.iter().take(shown).map(|of| row(of, view.recent.snapshot.span_ns));
    let hidden = all.len() - shown;
    let more = (hidden > 0).then(|| Line::from(format!("and {hidden} more: f shows one after the other")));
    [Line::styled(head, Modifier::UNDERLINED)].into_iter().chain(rows).chain(more).collect()
}

fn row(of: &FileSystemStatus, span_ns: u64) -> Line<'static> {
    let at: String = shortened(&show(Path::new(&of.at)), MOUNTPOINT - 1);
    let (hits, misses) = (percent(of.hits, of.hits + of.misses), rate(of.misses, span_ns));
    let mut spans = vec![format!("{at:<MOUNTPOINT$}{hits:>FIGURE$}{misses:>FIGURE$}").into()];
    match &of.budget {
        Some(budget) => spans.extend(KINDS.iter().flat_map(|(_, kind)| {
            let (used, budget) = (kind(&of.used), kind(budget));
            ["  ".into(), bar(used, budget, BAR - 7), format!(" {:>4}", whole_percent(used, budget)).into()]
        })),
        None => spans.extend(KINDS.iter().map(|_| format!("  {:<1$}", "-", BAR - 2).into())),
    }
    spans.into()
}

/// Returns one file system alone.
fn details(of: &FileSystemStatus, span_ns: u64, area: Rect) -> Vec<Line<'static>> {
    let looked_up = of.hits + of.misses;
    let head = format!("file system {} ({})", show(Path::new(&of.at)), show(Path::new(&of.source)));
    let (hits, misses) = (percent(of.hits, looked_up), rate(of.misses, span_ns));
    let names = format!("names     {}/s, hits {hits}, misses {misses}/s", rate(looked_up, span_ns));
    let (live, held, evicted) = (grouped(of.live), grouped(of.held), rate(of.evicted, span_ns));
    let cached = format!("cached    in memory {live}, pinned {held}, evicted {evicted}/s");
    let mut lines = vec![Line::styled(head, Modifier::UNDERLINED), names.into(), cached.into()];
    match &of.budget {
        Some(budget) => lines.extend(KINDS.iter().map(|(name, kind)| {
            let (used, budget) = (kind(&of.used), kind(budget));
            let text = format!(" {} of {}, {}", bytes(used), bytes(budget), percent(used, budget));
            let width = usize::from(area.width).saturating_sub(50).clamp(10, 60);
            Line::from(vec![format!("{name:<10}").into(), bar(used, budget, width), text.into()])
        })),
        None => lines.push(format!("entries   {}, as its data: no budget (-)", bytes(of.slot_bytes)).into()),
    }
    lines
}

/// Returns a bar of `width` cells: red when it is nearly full. A value above 0 has at least one
/// cell.
fn bar(used: u64, budget: u64, width: usize) -> Span<'static> {
    let part = u128::from(used) * width as u128;
    let filled = usize::try_from(part.div_ceil(u128::from(budget.max(1)))).unwrap_or(width).min(width);
    let color = match u128::from(used) * 100 / u128::from(budget.max(1)) {
        0..75 => Color::Green,
        75..95 => Color::Yellow,
        _ => Color::Red,
    };
    Span::styled("█".repeat(filled) + &"░".repeat(width - filled), color)
}

fn whole_percent(part: u64, whole: u64) -> String {
    format!("{}%", u128::from(part) * 100 / u128::from(whole.max(1)))
}

/// Returns the end of `text`, which is the telling one of a path.
fn shortened(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.into();
    }
    "…".chars().chain(text.chars().skip(count - (width - 1))).collect()
}
