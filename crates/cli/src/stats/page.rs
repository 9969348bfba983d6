//! The status of a mount as tables of text.

use super::units::{bytes, grouped, per_second, percent, rate, time, utc};
use crate::control::{FileSystemStatus, HostStatus, LockStatus, Status, StoreStatus};
use crate::paragraph;
use fuse::{Gauge, Op, OpStats};
use vfs::Foreign;

/// The error of a lookup of a name that does not exist.
const ENOENT: &str = "ENOENT";

/// The width of a label.
const LABEL: usize = 11;

/// Everything.
pub(super) fn full(status: &Status) -> String {
    let mut page = head(status);
    page += &operations(status);
    page += &errors(status);
    page += &walks(status);
    page += "\n";
    page += &status.file_systems.iter().map(file_system).collect::<String>();
    page += &locks(&status.locks);
    page += &session(status);
    page += &process(status);
    page
}

fn head(status: &Status) -> String {
    let Status { mountpoint, source, pid, version, snapshot, transport, .. } = status;
    let all: u64 = snapshot.ops.iter().map(|op| op.count).sum();
    let (span, per_second) = (time(snapshot.span_ns), rate(all, snapshot.span_ns));
    let in_flight = grouped(status.gauge(Gauge::InFlight.name()));
    let commit = status.commit.as_ref().map_or(String::new(), |commit| format!(" (commit {commit})"));
    let began = utc(status.began_s);
    [
        format!(
            "{}: {}, process {pid}, lightfoot {}{}\n",
            Foreign::of(mountpoint),
            Foreign::of(source),
            Foreign::of(version),
            Foreign::of(&commit)
        ),
        format!("mounted {began}; requests come through {}\n", Foreign::of(transport)),
        format!("{} operations in {span}, {per_second} a second, {in_flight} in flight\n", grouped(all)),
        format!("read {}, written {}\n\n", moved(status, Op::Read), moved(status, Op::Write)),
    ]
    .concat()
}

/// Returns the bytes, in all and a second.
fn moved(status: &Status, op: Op) -> String {
    let moved = status.moved(op);
    format!("{} ({}/s)", bytes(moved), bytes(per_second(moved, status.snapshot.span_ns)))
}

/// Errors by operation and errno.
fn errors(status: &Status) -> String {
    let of = |op: &OpStats| {
        let counts: Vec<_> = op.failures().map(|(errno, count)| format!("{errno} {}", grouped(*count))).collect();
        format!("{} {}", op.name, counts.join(" "))
    };
    let ops = status.snapshot.ops.iter().filter(|op| op.failures().next().is_some());
    let mut errors: Vec<_> = ops.map(of).collect();
    if errors.is_empty() {
        errors.push("none".into());
    }
    line("errors", &errors)
}

/// Returns the operations, the most frequent first.
fn operations(status: &Status) -> String {
    let span_ns = status.snapshot.span_ns;
    let mut ops: Vec<&OpStats> = status.snapshot.ops.iter().collect();
    ops.sort_by_key(|op| std::cmp::Reverse(op.count));
    let head = ["operation", "count", "errors", "per second", "p50", "p90", "p99", "max"];
    let row = |op: &&OpStats| {
        let times = [op.p50_ns, op.p90_ns, op.p99_ns, op.max_ns].map(time);
        let mut row = vec![op.name.clone(), grouped(op.count), grouped(op.errors), rate(op.count, span_ns)];
        row.extend(times);
        row
    };
    let rows = ops.iter().map(row);
    table(&[vec![head.map(String::from).to_vec()], rows.collect()].concat()) + "\n"
}

/// Returns why the fast walk ended, lookups of names that do not exist, and the table of all names.
fn walks(status: &Status) -> String {
    let lookups = status.snapshot.ops.iter().find(|op| op.name == Op::Lookup.name());
    let absent =
        lookups.and_then(|op| op.errnos.iter().find(|(errno, _)| errno == ENOENT)).map_or(0, |&(_, count)| count);
    let fallbacks = status.snapshot.fallbacks.iter().filter(|(_, count)| *count > 0);
    let mut fallbacks: Vec<_> = fallbacks.map(|(reason, count)| format!("{reason} {}", grouped(*count))).collect();
    if fallbacks.is_empty() {
        fallbacks.push("none".into());
    }
    let tree = [
        format!("entries {}", grouped(status.cache("entries"))),
        format!("hash table {}", bytes(status.cache("table_bytes"))),
        format!("lookups of what does not exist {}", grouped(absent)),
    ];
    line("tree", &tree) + &line("fallbacks", &fallbacks)
}

/// Returns names and caches of one file system.
fn file_system(of: &FileSystemStatus) -> String {
    let looked_up = of.hits + of.misses;
    let names = [
        format!("looked up {}", grouped(looked_up)),
        format!("hits {} ({})", grouped(of.hits), percent(of.hits, looked_up)),
        format!("misses {}", grouped(of.misses)),
        format!("from listings {}", grouped(of.answered_by_listing)),
    ];
    let entries = [
        format!("in memory {}", grouped(of.live)),
        format!("pinned {}", grouped(of.held)),
        format!("evicted {}", grouped(of.evicted)),
        format!("size {}", bytes(of.slot_bytes)),
    ];
    let head = format!("file system {} ({})\n", of.at, of.source);
    head + &line("names", &names) + &line("entries", &entries) + &caches(of) + "\n"
}

/// Returns the contents of a file system's caches. Names that are its data have no budget, and no
/// other cache.
fn caches(of: &FileSystemStatus) -> String {
    let row = |name: &str, used: u64, budget: Option<u64>| {
        let (limit, full) = match budget {
            Some(budget) => (bytes(budget), percent(used, budget)),
            None => ("-".into(), "-".into()),
        };
        vec![name.to_owned(), bytes(used), limit, full]
    };
    let mut rows = vec![["cache", "used", "budget", "full"].map(String::from).to_vec()];
    match &of.budget {
        Some(budget) => rows.extend([
            row("entries", of.used.entries, Some(budget.entries)),
            row("negative entries", of.used.negatives, Some(budget.negatives)),
            row("listings", of.used.listings, Some(budget.listings)),
        ]),
        None => rows.push(row("entries", of.slot_bytes, None)),
    }
    table(&rows)
}

/// Returns the ranks of locks for which threads waited.
fn locks(locks: &[LockStatus]) -> String {
    let waited: Vec<_> = locks.iter().filter(|lock| lock.waits > 0).collect();
    if waited.is_empty() {
        return line("lock waits", &["none".into()]);
    }
    let row = |lock: &&LockStatus| {
        let mean = lock.waited_ns / lock.waits;
        vec![lock.name.clone(), grouped(lock.waits), time(lock.waited_ns), time(mean), time(lock.longest_ns)]
    };
    let mut rows = vec![["waits for", "count", "together", "mean", "longest"].map(String::from).to_vec()];
    rows.extend(waited.iter().map(row));
    table(&rows) + "\n"
}

fn session(status: &Status) -> String {
    let gauge = |name: &str| grouped(status.gauge(name));
    let kernel = [
        format!("files {}", gauge("nodes")),
        format!("references {}", gauge("lookups")),
        format!("handles {}", gauge("handles")),
        format!("invalidations {}", gauge("notices_sent")),
        format!("failed {}", gauge("notices_failed")),
        format!("slow {}", gauge("slow_notices")),
    ];
    line("kernel", &kernel)
}

fn process(status: &Status) -> String {
    let (memory, rcu) = (&status.memory, &status.rcu);
    let resident = [format!("resident {}", bytes(memory.resident_bytes)), format!("peak {}", bytes(memory.peak_bytes))];
    let rcu = [
        format!("grace periods {}", grouped(rcu.grace_periods)),
        format!("longest {}", time(rcu.longest_grace_period_ns)),
        format!("to free {} ({})", grouped(rcu.deferred_callbacks), bytes(rcu.deferred_bytes)),
        format!("stalls {}", grouped(rcu.stalls)),
    ];
    line("memory", &resident)
        + &line("rcu", &rcu)
        + &status.hosts.iter().map(host).collect::<String>()
        + &status.stores.iter().map(store).collect::<String>()
}

fn store(store: &StoreStatus) -> String {
    let all = store.requests.iter().map(|(_, count)| count).sum();
    let kinds = store.requests.iter().map(|(kind, count)| format!("{kind} {}", grouped(*count)));
    let number = |name: &str| grouped(store.number(name));
    let figures = [store.url.clone(), format!("requests {}", grouped(all))].into_iter().chain(kinds).chain([
        format!("retries {}", number("retries")),
        format!("errors {}", number("errors")),
        format!("sent {}", bytes(store.number("sent_bytes"))),
        format!("received {}", bytes(store.number("received_bytes"))),
        format!("hidden objects {}", number("hidden")),
    ]);
    line("store", &figures.collect::<Vec<_>>())
}

fn host(host: &HostStatus) -> String {
    let figures = [
        host.path.clone(),
        format!("files {}", grouped(host.nodes)),
        format!("descriptors {}", grouped(host.open_fds)),
        format!("closed for others {}", grouped(host.evicted_fds)),
        format!("reopened {}", grouped(host.reopened)),
        format!("watches {}", grouped(host.watches)),
        format!("changes {}", grouped(host.pushes)),
    ];
    line("directory", &figures)
}

/// Returns a label and its text, which wraps at the width of a terminal.
fn line(label: &str, parts: &[String]) -> String {
    let end = |at: usize| if at + 1 < parts.len() { "," } else { "" };
    let words = parts.iter().enumerate().map(|(at, part)| format!("{part}{}", end(at)));
    let indent = format!("\n{:LABEL$}", "");
    format!("{label:<LABEL$}{}\n", paragraph::lines(words, LABEL).join(&indent))
}

/// Rows with aligned columns: the first to the left, the others to the right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let of_column = |column: usize| rows.iter().filter_map(move |row| row.get(column)).map(|cell| cell.chars().count());
    let widths: Vec<usize> = (0..columns).map(|column| of_column(column).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            text += &if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_one_another() {
        let rows = [vec!["a".into(), "count".into()], vec!["longer".into(), "µ1".into()]];
        assert_eq!(table(&rows), "a       count\nlonger     µ1\n");
    }

    #[test]
    fn only_locks_that_threads_waited_for_have_a_row() {
        let lock =
            |name: &str, waits, waited_ns, longest_ns| LockStatus { name: name.into(), waits, waited_ns, longest_ns };
        assert_eq!(locks(&[lock("renames", 0, 0, 0)]), "lock waits none\n");
        let waited = [lock("renames", 0, 0, 0), lock("a directory's lock", 1200, 3_600_000, 150_000)];
        let expected = "\
waits for           count  together     mean  longest
a directory's lock  1,200   3.60 ms  3.00 µs   150 µs

";
        assert_eq!(locks(&waited), expected);
    }

    #[test]
    fn a_line_wraps_at_the_width_of_a_terminal() {
        let parts = ["1".repeat(30), "2".repeat(36), "3".repeat(69), "4".into()];
        let expected = [format!("names      {}, {},", parts[0], parts[1]), format!("           {},", parts[2])];
        assert_eq!(line("names", &parts), expected.join("\n") + "\n           4\n");
    }
}
