//! Counts, differences, and a parser for the text format of Prometheus.

use super::*;
use std::collections::BTreeSet;

fn op(snapshot: &Snapshot, op: Op) -> &OpStats {
    snapshot.ops.iter().find(|stats| stats.name == op.name()).expect("it was recorded")
}

fn gauge(snapshot: &Snapshot, gauge: Gauge) -> u64 {
    snapshot.gauges.iter().find(|(name, _)| name == gauge.name()).expect("all are there").1
}

/// Returns whether `bound` is an upper bound of `ns` as promised.
fn bounds(bound: u64, ns: u64) -> bool {
    (ns..=ns + ns / 16).contains(&bound)
}

#[test]
fn names_are_distinct_and_values_are_positions() {
    let names: BTreeSet<&str> = Op::ALL.iter().map(|op| op.name()).collect();
    assert_eq!(names.len(), 41);
    assert!(Op::ALL.iter().enumerate().all(|(at, &op)| op as usize == at));
    assert!(Gauge::ALL.iter().enumerate().all(|(at, &gauge)| gauge as usize == at));
}

#[test]
fn a_timer_records_its_operation_when_it_ends() {
    let metrics = Metrics::new();
    drop(metrics.time(Op::Lookup));
    {
        let timer = metrics.time(Op::Lookup);
        timer.failed(2);
        assert_eq!(op(&metrics.snapshot(), Op::Lookup).count, 1, "the second is under way");
    }
    let snapshot = metrics.snapshot();
    assert_eq!(snapshot.ops.len(), 1, "others have no record");
    let lookup = op(&snapshot, Op::Lookup);
    assert_eq!((lookup.count, lookup.errors, &lookup.errnos[..]), (2, 0, &[("ENOENT".into(), 1)][..]));
    assert!(lookup.p50_ns <= lookup.p99_ns && lookup.p99_ns <= lookup.max_ns && lookup.max_ns <= lookup.sum_ns);
}

#[test]
fn quantiles_are_upper_bounds_within_a_sixteenth() {
    let metrics = Metrics::new();
    (1..=1000).for_each(|ns| metrics.record(Op::Read, ns * 100, 0));
    let snapshot = metrics.snapshot();
    let read = op(&snapshot, Op::Read);
    assert_eq!((read.count, read.sum_ns, read.max_ns), (1000, 50_050_000, 100_000));
    for (bound, ns) in [(read.p50_ns, 50_000), (read.p90_ns, 90_000), (read.p99_ns, 99_000)] {
        assert!(bounds(bound, ns), "{bound} for {ns}");
    }
}

#[test]
fn a_time_beyond_all_bounds_counts_as_the_longest() {
    let metrics = Metrics::new();
    metrics.record(Op::Fsync, u64::MAX, 0);
    metrics.record(Op::Fsync, 0, 0);
    let snapshot = metrics.snapshot();
    let fsync = op(&snapshot, Op::Fsync);
    assert_eq!((fsync.count, fsync.max_ns, fsync.sum_ns, fsync.times.len()), (2, u64::MAX, u64::MAX, 2));
}

#[test]
fn errors_are_counted_by_number_up_to_a_bound() {
    let metrics = Metrics::new();
    (1..=100).for_each(|errno| metrics.record(Op::Open, 10, errno));
    let snapshot = metrics.snapshot();
    let open = op(&snapshot, Op::Open);
    assert_eq!((open.errors, open.errnos.len()), (100, ERRNOS));
}

#[test]
fn a_regular_no_is_not_an_error_and_is_counted_by_its_errno() {
    let metrics = Metrics::new();
    let results = [
        (Op::Flush, Errno::ENOSYS, 0),
        (Op::Flush, Errno::EIO, 1),
        (Op::Getxattr, Errno::ENODATA, 0),
        (Op::Getxattr, Errno::EIO, 1),
        (Op::Removexattr, Errno::ENODATA, 1),
        (Op::Lookup, Errno::ENOENT, 0),
        (Op::Unlink, Errno::ENOENT, 1),
        (Op::Access, Errno::EACCES, 0),
        (Op::Open, Errno::EACCES, 1),
        (Op::Fallocate, Errno::EOPNOTSUPP, 0),
        (Op::Setxattr, Errno::EOPNOTSUPP, 1),
    ];
    for (op, errno, _) in results {
        metrics.record(op, 1, errno.raw());
    }
    let before = metrics.snapshot();
    for (of, errno, failures) in results {
        let stats = op(&before, of);
        let has = |found: &[&(String, u64)]| found.iter().filter(|(name, _)| name == errno.name()).count() as u64;
        let (all, failed): (Vec<_>, Vec<_>) = (stats.errnos.iter().collect(), stats.failures().collect());
        assert_eq!((has(&all), has(&failed)), (1, failures), "{of:?} {errno:?}");
        assert_eq!(stats.errors, failed.len() as u64, "{of:?}");
    }
    metrics.record(Op::Getxattr, 1, Errno::ENODATA.raw());
    let since = metrics.snapshot().since(&before);
    assert_eq!((op(&since, Op::Getxattr).errors, op(&since, Op::Getxattr).errnos.len()), (0, 1));
}

#[test]
fn the_manual_names_each_regular_no() {
    let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mounting.md");
    let manual = std::fs::read_to_string(manual).expect("the manual");
    for (op, errnos) in op::REGULAR_NOES {
        let row = format!("| `{}` | `{}` |", op.name(), errnos.join("`, `"));
        assert!(manual.contains(&row), "{row} is not in docs/mounting.md");
    }
}

#[test]
fn bytes_are_those_that_operations_moved() {
    let metrics = Metrics::new();
    for bytes in [4096, 100] {
        metrics.time(Op::Read).moved(bytes);
    }
    let before = metrics.snapshot();
    metrics.time(Op::Read).moved(1);
    let after = metrics.snapshot();
    assert_eq!((op(&before, Op::Read).bytes, op(&after, Op::Read).bytes), (4196, 4197));
    assert_eq!(op(&after.since(&before), Op::Read).bytes, 1);
    let (samples, _) = parse(&after.to_prometheus("/m"));
    let bytes: Vec<_> = samples.iter().filter(|sample| sample.0 == "lightfoot_fuse_operation_bytes_total").collect();
    assert_eq!((bytes.len(), bytes[0].2), (1, 4197.0), "{bytes:?}");
}

#[test]
fn names_are_counted_by_file_system_over_all_threads() {
    let metrics = Metrics::new();
    metrics.record_name(7, true);
    let elsewhere =
        || [(3, false), (7, true), (7, false)].iter().for_each(|&(dev, is_hit)| metrics.record_name(dev, is_hit));
    std::thread::scope(|s| s.spawn(elsewhere).join().expect("it only counts"));
    let expected = [NameStats { dev: 3, hits: 0, misses: 1 }, NameStats { dev: 7, hits: 2, misses: 1 }];
    assert_eq!(metrics.names(), expected);
}

#[test]
fn requests_are_in_flight_until_any_thread_ends_them() {
    let metrics = Metrics::new();
    let (here, began_ns) = (metrics.time(Op::Read), metrics.begin());
    assert_eq!((metrics.get(Gauge::InFlight), gauge(&metrics.snapshot(), Gauge::InFlight)), (2, 2));
    std::thread::scope(|s| s.spawn(|| drop(metrics.time_since(Op::Setlk, began_ns))).join().expect("it only drops"));
    assert_eq!(metrics.get(Gauge::InFlight), 1);
    drop(here);
    assert_eq!(metrics.get(Gauge::InFlight), 0);
}

#[test]
fn what_threads_record_is_added_up() {
    let metrics = Metrics::new();
    // All run at once, so that each has a different index.
    let begin = std::sync::Barrier::new(8);
    std::thread::scope(|s| {
        for thread in 0..8 {
            let (metrics, begin) = (&metrics, &begin);
            s.spawn(move || {
                metrics.record(Op::Write, 1, 0);
                begin.wait();
                (1..1000).for_each(|_| metrics.record(Op::Write, 1, thread % 2));
                metrics.record(Op::Write, 1 << thread, 0);
            });
        }
    });
    let snapshot = metrics.snapshot();
    let write = op(&snapshot, Op::Write);
    assert_eq!((write.count, write.errors, write.sum_ns, write.max_ns), (8008, 3996, 8255, 128));
    assert_eq!(write.times.iter().map(|&(_, count)| count).sum::<u64>(), 8008);
}

#[test]
fn a_difference_is_what_happened_in_between() {
    let metrics = Metrics::new();
    (0..100).for_each(|_| metrics.record(Op::Lookup, 1_000_000, 2));
    metrics.record(Op::Statfs, 5, 0);
    metrics.set(Gauge::Nodes, 70);
    metrics.add(Gauge::NoticesSent, 3);
    let named = |name: &str, value| vec![(name.to_string(), value)];
    let mut before = metrics.snapshot();
    (before.cache, before.fallbacks) = (named("hits_total", 10), named("symlink", 4));
    (0..10).for_each(|_| metrics.record(Op::Lookup, 1000, 0));
    metrics.record(Op::Lookup, 2000, 13);
    metrics.record(Op::Mkdir, 7, 0);
    metrics.set(Gauge::Nodes, 60);
    metrics.add(Gauge::NoticesSent, 2);
    let mut after = metrics.snapshot();
    (after.cache, after.fallbacks) = ([named("hits_total", 15), named("bytes", 8)].concat(), named("symlink", 9));
    let between = after.since(&before);
    assert_eq!(between.span_ns, after.span_ns - before.span_ns);
    let lookup = op(&between, Op::Lookup);
    assert_eq!(
        (lookup.count, lookup.errors, lookup.sum_ns, &lookup.errnos[..]),
        (11, 1, 12_000, &[("EACCES".into(), 1)][..])
    );
    assert!(bounds(lookup.p50_ns, 1000) && bounds(lookup.p99_ns, 2000) && bounds(lookup.max_ns, 2000), "{lookup:?}");
    assert_eq!(between.ops.len(), 2, "statfs has no record");
    assert_eq!(op(&between, Op::Mkdir).max_ns, 7);
    assert_eq!((gauge(&between, Gauge::Nodes), gauge(&between, Gauge::NoticesSent)), (60, 2));
    assert_eq!(between.cache, [named("hits_total", 5), named("bytes", 8)].concat());
    assert_eq!(between.fallbacks, named("symlink", 5));
    // The wrong way round.
    assert!(before.since(&after).ops.iter().all(|op| op.count <= 1));
}

/// One sample: its name, its labels in order, its value.
type Sample = (String, Vec<(String, String)>, f64);

/// Reads the text format; panics where it is not that. Samples, and families by kind.
fn parse(text: &str) -> (Vec<Sample>, BTreeMap<String, String>) {
    let (mut samples, mut kinds) = (Vec::new(), BTreeMap::new());
    let mut described = BTreeSet::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a help text");
            assert!(!help.is_empty() && described.insert(name.to_string()), "{line}");
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a kind");
            assert!(described.contains(name) && ["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert_eq!(kinds.insert(name.to_string(), kind.to_string()), None, "{line}");
        } else {
            samples.push(parse_sample(line));
            let name = &samples[samples.len() - 1].0;
            let parts = ["_bucket", "_sum", "_count"].iter().filter_map(|part| name.strip_suffix(part));
            let is_part = parts.map(|name| kinds.get(name)).any(|kind| kind.is_some_and(|kind| kind == "histogram"));
            assert!(is_part || kinds.contains_key(name), "{line}: before its type");
        }
    }
    (samples, kinds)
}

fn parse_sample(line: &str) -> Sample {
    let (name, rest) = line.split_once('{').expect("labels");
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{line}");
    let mut rest = rest.chars().peekable();
    let mut labels = Vec::new();
    while rest.peek() != Some(&'}') {
        let label: String = rest.by_ref().take_while(|&c| c != '=').collect();
        assert_eq!(rest.next(), Some('"'), "{line}");
        let mut value = String::new();
        loop {
            match rest.next().expect("a closing quote") {
                '"' => break,
                '\\' => value.push(match rest.next() {
                    Some('n') => '\n',
                    Some(c @ ('\\' | '"')) => c,
                    other => panic!("{line}: escape {other:?}"),
                }),
                c => value.push(c),
            }
        }
        labels.push((label, value));
        if rest.peek() == Some(&',') {
            rest.next();
        }
    }
    let value: String = rest.skip(1).collect();
    (name.into(), labels, value.strip_prefix(' ').and_then(|value| value.parse().ok()).expect("a number"))
}

#[test]
fn the_text_for_prometheus_is_valid_and_complete() {
    let metrics = Metrics::new();
    for ns in [500, 1000, 1100, 5000, 1 << 40] {
        metrics.record(Op::Lookup, ns, 13);
    }
    metrics.set(Gauge::Handles, 4);
    metrics.add(Gauge::SlowNotices, 6);
    let mut snapshot = metrics.snapshot();
    snapshot.cache = vec![("names per-dir".into(), 11), ("hits_total".into(), 12)];
    snapshot.fallbacks = vec![("a \"reason\"".into(), 13)];
    let mount = "/mnt/a\\b\"c\nd";
    let (samples, kinds) = parse(&snapshot.to_prometheus(mount));
    // A line break of a name stays text.
    assert!(samples.iter().all(|(_, labels, _)| labels[0] == ("mount".into(), mount.replace('\n', r"\n"))));
    let value = |name: &str, label: &str| {
        let is = |sample: &&Sample| sample.0 == name && (label.is_empty() || sample.1.iter().any(|l| l.1 == label));
        let found: Vec<f64> = samples.iter().filter(is).map(|sample| sample.2).collect();
        assert_eq!(found.len(), 1, "{name} {label}");
        found[0]
    };
    let duration = "lightfoot_fuse_operation_duration_seconds";
    assert_eq!(kinds[duration], "histogram");
    let buckets: Vec<f64> =
        samples.iter().filter(|sample| sample.0 == format!("{duration}_bucket")).map(|sample| sample.2).collect();
    assert!(buckets.is_sorted(), "{buckets:?}");
    assert_eq!((buckets[0], buckets[1], buckets[2], buckets[buckets.len() - 1]), (2.0, 3.0, 4.0, 5.0));
    assert_eq!(value(&format!("{duration}_bucket"), "+Inf"), value(&format!("{duration}_count"), "lookup"));
    assert!((value(&format!("{duration}_sum"), "") - 1_099.511_635_376).abs() < 1e-9);
    assert_eq!(value("lightfoot_fuse_operation_errors_total", "lookup"), 5.0);
    assert_eq!(value("lightfoot_fuse_operation_errno_total", "EACCES"), 5.0);
    assert_eq!((value("lightfoot_fuse_handles", ""), value("lightfoot_fuse_slow_notices_total", "")), (4.0, 6.0));
    assert_eq!(value("lightfoot_fuse_cache_names_per_dir", ""), 11.0);
    assert_eq!(value("lightfoot_fuse_cache_hits_total", ""), 12.0);
    assert_eq!(value("lightfoot_fuse_fallbacks_total", "a \"reason\""), 13.0);
}
