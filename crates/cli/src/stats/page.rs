//! The status of a mount as tables of text.

use super::units::{bytes, grouped, percent, rate, time};
use crate::control::{HostStatus, Status};
use fuse::OpStats;
use vfs::Fallback;

/// `ENOENT`, by which an answer says that a name is not there.
const NOT_THERE: i32 = 2;

/// All that there is to say.
pub(super) fn full(status: &Status) -> String {
    let mut page = head(status);
    page += &operations(status, usize::MAX);
    page += &names(status);
    page += &caches(status);
    page += &session(status);
    page += &process(status);
    page
}

/// What fits on a screen of so many lines: the operations that come most often, and what changes.
pub(super) fn short(status: &Status, lines: usize) -> String {
    let (head, rest) = (head(status), [names(status), caches(status), session(status), process(status)].concat());
    let left = lines.saturating_sub(head.lines().count() + rest.lines().count() + 2);
    head + &operations(status, left.max(5)) + &rest
}

fn head(status: &Status) -> String {
    let Status { mountpoint, source, pid, version, snapshot, .. } = status;
    let all: u64 = snapshot.ops.iter().map(|op| op.count).sum();
    let (span, per_second) = (time(snapshot.span_ns), rate(all, snapshot.span_ns));
    let first = format!("{mountpoint}: {source}, by process {pid}, lightfoot {version}\n");
    first + &format!("{} operations in {span}, {per_second} a second\n\n", grouped(all))
}

/// The operations; if there are more than `most`, those that came most often.
fn operations(status: &Status, most: usize) -> String {
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
    let rows = ops.iter().take(most).map(row);
    table(&[vec![head.map(String::from).to_vec()], rows.collect()].concat())
}

/// How names were answered: by the cache or by the file system, and why not by the cache.
fn names(status: &Status) -> String {
    let lookups = status.snapshot.ops.iter().find(|op| op.name == "lookup");
    let asked = lookups.map_or(0, |op| op.count);
    let not_there = lookups
        .map_or(0, |op| op.errnos.iter().filter(|&&(errno, _)| errno == NOT_THERE).map(|&(_, count)| count).sum());
    let missed = status.fallback(Fallback::Miss);
    let hits = asked.saturating_sub(missed);
    let mut text = format!(
        "names: {} looked up, {} hits ({}), {} misses, {} not there (negative), {} misses answered by listings\n",
        grouped(asked),
        grouped(hits),
        percent(hits, asked),
        grouped(missed),
        grouped(not_there),
        grouped(status.cache("answered_by_listing_total")),
    );
    let reasons: Vec<_> = status.snapshot.fallbacks.iter().filter(|(_, count)| *count > 0).collect();
    let reasons: Vec<_> = reasons.iter().map(|(reason, count)| format!("{reason} {}", grouped(*count))).collect();
    text += &format!("fallbacks: {}\n\n", if reasons.is_empty() { "none".into() } else { reasons.join(", ") });
    text
}

fn caches(status: &Status) -> String {
    let of =
        |name: &str, used: u64, budget: u64| vec![name.to_owned(), bytes(used), bytes(budget), percent(used, budget)];
    let head = ["cache", "used", "budget", "full"].map(String::from).to_vec();
    let rows = [
        head,
        of("entries", status.cache("entry_bytes"), status.budget.entries),
        of("negative entries", status.cache("negative_bytes"), status.budget.negatives),
        of("listings", status.cache("listing_bytes"), status.budget.listings),
    ];
    let (named, held) = (grouped(status.cache("live")), grouped(status.cache("held")));
    let evicted = grouped(status.cache("evicted_total"));
    let (slots, hash) = (bytes(status.cache("slot_bytes")), bytes(status.cache("table_bytes")));
    let last = format!("entries in memory: {named}, held {held}, evicted {evicted}; {slots}, and {hash} of hash table");
    table(&rows).trim_end().to_owned() + "\n" + &last + "\n\n"
}

fn session(status: &Status) -> String {
    let gauge = |name: &str| grouped(status.gauge(name));
    format!(
        "kernel: knows {} nodes by {} lookups, {} handles open; notices: {} sent, {} failed, {} slow\n",
        gauge("nodes"),
        gauge("lookups"),
        gauge("handles"),
        gauge("notices_sent"),
        gauge("notices_failed"),
        gauge("slow_notices"),
    )
}

fn process(status: &Status) -> String {
    let (memory, rcu) = (&status.memory, &status.rcu);
    let mut text = format!("memory: {} resident, {} at most", bytes(memory.resident_bytes), bytes(memory.peak_bytes));
    text += &format!(
        "\nrcu: {} grace periods, the longest {}; {} ({}) wait to be freed; {} stalls\n",
        grouped(rcu.grace_periods),
        time(rcu.longest_grace_period_ns),
        grouped(rcu.deferred_callbacks),
        bytes(rcu.deferred_bytes),
        grouped(rcu.stalls),
    );
    text += &status.hosts.iter().map(host).collect::<String>();
    let locks = status.locks.iter().map(|lock| {
        let (taken, waited) = (grouped(lock.acquisitions), grouped(lock.contended));
        format!("{} taken {taken}, waited for {waited} times, {}", lock.name, time(lock.wait_ns))
    });
    let locks = locks.collect::<Vec<_>>().join("; ");
    text + &format!("locks: {}\n", if locks.is_empty() { "not measured" } else { &locks })
}

fn host(host: &HostStatus) -> String {
    format!(
        "host {}: {} files known, {} descriptors open, {} closed for want of room, {} opened again; {} watches, {} changes \
         told\n",
        host.path,
        grouped(host.nodes),
        grouped(host.open_fds),
        grouped(host.evicted_fds),
        grouped(host.reopened),
        grouped(host.watches),
        grouped(host.pushes),
    )
}

/// Rows with columns under one another: the first to the left, the others to the right. An empty line ends it.
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
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_one_another() {
        let rows = [vec!["a".into(), "count".into()], vec!["longer".into(), "µ1".into()]];
        assert_eq!(table(&rows), "a       count\nlonger     µ1\n\n");
    }
}
