//! The whole screen as text, in several sizes and states.

use super::*;
use crate::control::{FileSystemStatus, StoreStatus};
use fuse::{OpStats, Snapshot};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::ops::ControlFlow;
use vfs::Budget;

/// Returns the status of a mount that has done `rounds` rounds of the same, one each second.
fn status(rounds: u64) -> Status {
    let op = |name: &str, count: u64, ns: u64, bytes: u64, errnos: &[(&str, u64)]| OpStats {
        name: name.into(),
        count: count * rounds,
        errors: errnos.iter().filter(|(errno, _)| *errno != "ENOENT").map(|(_, count)| count * rounds).sum(),
        sum_ns: count * rounds * ns,
        max_ns: 4 * ns,
        bytes: bytes * rounds,
        errnos: errnos.iter().map(|(errno, count)| ((*errno).into(), count * rounds)).collect(),
        times: vec![(ns, (count - 1) * rounds), (4 * ns, rounds)],
        ..OpStats::default()
    };
    let gauges = [("in_flight", 3), ("handles", 12), ("nodes", 1234)].map(|(name, value)| (name.into(), value));
    let snapshot = Snapshot {
        span_ns: rounds * 1_000_000_000,
        ops: vec![
            op("lookup", 900, 2_500, 0, &[("EACCES", 1), ("ENOENT", 300)]),
            op("getattr", 1200, 1_700, 0, &[]),
            op("read", 50, 30_000, 50 << 17, &[]),
            op("write", 20, 150_000, 20 << 12, &[("ENOSPC", 2)]),
        ],
        gauges: gauges.to_vec(),
        ..Snapshot::default()
    };
    Status {
        version: "0.1.0".into(),
        commit: None,
        began_s: 1_767_225_599,
        source: "/etc/tree.toml".into(),
        mountpoint: "/mnt/a".into(),
        is_read_only: false,
        transport: "/dev/fuse, 2 threads".into(),
        no_io_uring: None,
        pid: 4711,
        snapshot,
        file_systems: vec![
            file_system("/", "ram", rounds, None),
            file_system("/src", "/home/x/src", rounds, Some([256 << 20, 32 << 20, 32 << 20])),
            file_system("/a/place/far/below/the/root", "/srv", rounds, Some([60 << 20, 40 << 20, 1 << 20])),
        ],
        locks: Vec::new(),
        rcu: Default::default(),
        memory: Default::default(),
        hosts: Vec::new(),
        stores: Vec::new(),
    }
}

fn file_system(at: &str, source: &str, rounds: u64, budget: Option<[u64; 3]>) -> FileSystemStatus {
    let bytes = |[entries, negatives, listings]: [u64; 3]| Budget { entries, negatives, listings };
    FileSystemStatus {
        at: at.into(),
        source: source.into(),
        hits: 270 * rounds,
        misses: if budget.is_some() { 30 * rounds } else { 0 },
        live: 300_000,
        held: 1200,
        slot_bytes: 77 << 20,
        used: budget.map_or(bytes([0; 3]), |_| bytes([56 << 20, 32 << 20, 20_000])),
        budget: budget.map(bytes),
        evicted: 5 * rounds,
        answered_by_listing: 0,
        looked: 0,
        longest_look: 0,
    }
}

fn view() -> View {
    let mut view = View::new(status(1));
    // Rates of 1, 3, 2, 5 and 1 rounds a second.
    [2, 5, 7, 12, 13].into_iter().for_each(|rounds| {
        let mut status = status(rounds);
        status.snapshot.span_ns = 1_000_000_000 * (1 + view.moments.len() as u64 + 1);
        view.sampled(status);
    });
    view
}

fn drawn(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
    terminal.draw(|frame| draw(frame, view)).expect("memory");
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..height).map(line).collect()
}

fn press(view: &mut View, keys: &str) {
    for key in keys.chars() {
        let code = if key == '\x1b' { KeyCode::Esc } else { KeyCode::Char(key) };
        assert_eq!(view.pressed(KeyEvent::new(code, KeyModifiers::NONE)), ControlFlow::Continue(()), "{key:?}");
    }
}

fn check(view: &View, (width, height): (u16, u16), expected: &str) {
    let drawn = drawn(view, width, height);
    assert!(drawn == expected, "drawn:\n{drawn}\nexpected:\n{expected}");
}

/// Checks some lines, after the keys, on a usual terminal.
fn check_lines(keys: &str, expected: &[&str]) {
    let mut view = view();
    press(&mut view, keys);
    let drawn = drawn(&view, 80, 24);
    for lines in expected {
        assert!(drawn.contains(lines), "drawn:\n{drawn}\nexpected:\n{lines}");
    }
}

#[test]
fn a_usual_terminal_shows_all_of_it() {
    let expected = "\
/mnt/a  /etc/tree.toml  lightfoot 0.1.0  since 2025-12-31 23:59:59 UTC
in flight 3   handles 12   files of the kernel 1,234   memory 0 B   over 1.00 s
errors lookup EACCES 1, write ENOSPC 2
operations        2,170/s                                                  ▁▄▃█▁
read           6.25 MiB/s                                                  ▁▄▃█▁
written        80.0 KiB/s                                                  ▁▄▃█▁
file system             hits  misses/s  entries       negative      listings
/                    100.0 %       0.0  -             -             -
/src                  90.0 %      30.0  ██░░░░░  21%  ███████ 100%  █░░░░░░   0%
…r/below/the/root     90.0 %      30.0  ███████  93%  ██████░  80%  █░░░░░░   1%
operation              total  errors ▾per second     p50     p90     p99     max
getattr               15,600       0       1,200 1.70 µs 1.70 µs 1.70 µs 6.80 µs
lookup                11,700       1         900 2.50 µs 2.50 µs 2.50 µs 10.0 µs
read                     650       0        50.0 30.0 µs 30.0 µs  120 µs  120 µs
write                    260       2        20.0  150 µs  150 µs  600 µs  600 µs








q quit  s sort: per second  p pause  f file system: all  ? help
";
    check(&view(), (80, 24), expected);
}

#[test]
fn a_store_shows_its_requests_bytes_and_failures() {
    let of = |rounds: u64| {
        let numbers = |all: &[(&str, u64)]| all.iter().map(|(name, count)| ((*name).into(), count * rounds)).collect();
        let requests = [("stat", 1200), ("list", 3), ("read", 50), ("write", 0), ("copy", 0), ("delete", 0)];
        let others = [("retries", 2), ("errors", 0), ("sent_bytes", 80 << 10), ("received_bytes", 6 << 20)];
        let url = "s3://bucket/a/long/prefix".into();
        StoreStatus { url, requests: numbers(&requests), numbers: numbers(&others) }
    };
    let mut view = View::new(Status { stores: vec![of(1)], ..status(1) });
    let mut next = Status { stores: vec![of(3)], ..status(3) };
    next.snapshot.span_ns = 2_000_000_000;
    view.sampled(next);
    let expected = "
…et/a/long/prefix requests/s stat 2,400 list 6.0 read 100
                  in 12.0 MiB/s, out 160 KiB/s, retries 4, errors 0
";
    let drawn = drawn(&view, 80, 24);
    assert!(drawn.contains(expected), "drawn:\n{drawn}");
}

#[test]
fn one_file_system_alone_shows_its_names_and_caches_in_full() {
    let expected = "
file system /src (/home/x/src)
names     300/s, hits 90.0 %, misses 30.0/s
cached    in memory 300,000, pinned 1,200, evicted 5.0/s
entries   ███████░░░░░░░░░░░░░░░░░░░░░░░ 56.0 MiB of 256 MiB, 21.8 %
negative  ██████████████████████████████ 32.0 MiB of 32.0 MiB, 100.0 %
listings  █░░░░░░░░░░░░░░░░░░░░░░░░░░░░░ 19.5 KiB of 32.0 MiB, 0.0 %
operation              total  errors ▾per second     p50     p90     p99     max
";
    check_lines("ff", &[expected, "f file system: /src  ? help\n"]);
}

#[test]
fn a_file_system_in_memory_has_no_budget() {
    let expected = "
file system / (ram)
names     270/s, hits 100.0 %, misses 0.0/s
cached    in memory 300,000, pinned 1,200, evicted 5.0/s
entries   77.0 MiB, as its data: no budget (-)
operation              total  errors ▾per second     p50     p90     p99     max
";
    check_lines("f", &[expected, "f file system: /  ? help\n"]);
}

#[test]
fn help_lies_over_the_rest() {
    let expected = "
/                    100.0 %       0.0  -             -             -
/src   ┌ Keys ──────────────────────────────────────────────────────────┐░░   0%
…r/belo│q, Esc, Ctrl-C  quit                                            │░░   1%
operati│s, >            sort by the next column                         │    max
getattr│<               sort by the column before                       │6.80 µs
lookup │p, space        pause, go on                                    │10.0 µs
read   │f               show one file system after the other, then all  │ 120 µs
write  │?               this help                                       │ 600 µs
       └────────────────────────────────────────────────────────────────┘
";
    check_lines("?", &[expected]);
}

#[test]
fn a_low_screen_keeps_the_operations() {
    let mut view = view();
    press(&mut view, "<<<");
    let expected = "\
/mnt/a  /etc/tree.toml  lightfoot 0.1.0  since 2025-12-31 23:59:59 UTC
in flight 3   handles 12   files of the kernel 1,234   memory 0 B   over 1.00 s
errors lookup EACCES 1, write ENOSPC 2
operations        2,170/s                                                  ▁▄▃█▁
read           6.25 MiB/s                                                  ▁▄▃█▁
written        80.0 KiB/s                                                  ▁▄▃█▁
▾operation             total  errors  per second     p50     p90     p99     max
getattr               15,600       0       1,200 1.70 µs 1.70 µs 1.70 µs 6.80 µs
lookup                11,700       1         900 2.50 µs 2.50 µs 2.50 µs 10.0 µs
read                     650       0        50.0 30.0 µs 30.0 µs  120 µs  120 µs
write                    260       2        20.0  150 µs  150 µs  600 µs  600 µs
q quit  s sort: operation  p pause  f file system: all  ? help
";
    check(&view, (80, 12), expected);
}

#[test]
fn a_paused_narrow_screen_says_so() {
    let mut view = view();
    press(&mut view, "sssssp");
    let expected = "\
/mnt/a  /etc/tree.toml  lightfoot 0.1.0  since 2025-12-31 23
in flight 3   handles 12   files of the kernel 1,234   memor
errors lookup EACCES 1, write ENOSPC 2
operations        2,170/s                              ▁▄▃█▁
read           6.25 MiB/s                              ▁▄▃█▁
▾operation             total  errors  per second     p50
getattr               15,600       0       1,200 1.70 µs
lookup                11,700       1         900 2.50 µs
read                     650       0        50.0 30.0 µs
PAUSED  q quit  s sort: operation  p pause  f file system: a
";
    check(&view, (60, 10), expected);
}

#[test]
fn a_small_terminal_shows_whole_columns() {
    let expected = "\
/mnt/a  /etc/tree.toml  lightfoot 0.1.0
in flight 3   handles 12   files of the
errors lookup EACCES 1, write ENOSPC 2
operation              total  errors
getattr               15,600       0
lookup                11,700       1
read                     650       0
q quit  s sort: per second  p pause  f f
";
    check(&view(), (40, 8), expected);
}

#[test]
fn no_size_makes_it_panic_and_the_mount_stays_on_top() {
    for keys in ["", "f", "ff", "?"] {
        let mut view = view();
        press(&mut view, keys);
        for (width, height) in (0..30).flat_map(|width| (0..20).map(move |height| (5 * width, height))) {
            let text = drawn(&view, width, height);
            assert!(
                height < 2 || width < 10 || view.has_help || text.starts_with("/mnt/a"),
                "{width}x{height}: {text}"
            );
        }
    }
}

#[test]
fn operations_are_sorted_by_the_chosen_column() {
    let cases = [
        ("", "getattr lookup read write"),
        ("s", "write read lookup getattr"),
        ("<", "write lookup getattr read"),
        ("<<", "getattr lookup read write"),
        ("<<<", "getattr lookup read write"),
        ("sssss", "getattr lookup read write"),
    ];
    for (keys, expected) in cases {
        let mut view = view();
        press(&mut view, keys);
        let names: Vec<_> = view.operations().iter().map(|row| row.total.name.clone()).collect();
        assert_eq!(names.join(" "), expected, "{keys}");
    }
}

#[test]
fn a_paused_screen_stays_and_goes_on_with_the_next_interval() {
    let mut view = view();
    press(&mut view, "p");
    let before = drawn(&view, 80, 24);
    view.sampled(status(20));
    assert_eq!(drawn(&view, 80, 24), before);
    press(&mut view, " ");
    view.sampled(status(21));
    let rows = view.operations();
    let lookup = rows.iter().find(|row| row.total.name == "lookup").expect("it is there");
    assert_eq!((lookup.total.count, lookup.recent.map(|recent| recent.count)), (21 * 900, Some(900)));
}

#[test]
fn file_systems_that_do_not_fit_are_counted() {
    let mut many = status(1);
    many.file_systems = (0..20).map(|i| file_system(&format!("/m{i}"), "ram", 1, None)).collect();
    let text = drawn(&View::new(many), 80, 24);
    assert!(text.contains("/m4 ") && text.contains("and 15 more: f shows one after the other"), "{text}");
    assert!(!text.contains("/m5 ") && text.contains("\nwrite "), "{text}");
}

#[test]
fn names_cannot_write_to_the_terminal() {
    let mut odd = status(1);
    odd.mountpoint = "/mnt/\x1b[2J\nx".into();
    let text = drawn(&View::new(odd), 80, 24);
    assert!(!text.contains('\x1b') && text.lines().count() == 24, "{text}");
}
