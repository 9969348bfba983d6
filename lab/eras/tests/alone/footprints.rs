//! What each operation of each era reads, writes and locks, exactly: one thread on a simulated machine, so the same in
//! every run. `footprints.txt` has all of it; a mechanism that is taken out of an era, or a store that comes back into a
//! walk, changes a line there. `ERAS_WRITE=1` makes the file anew. (The library's own footprints are in
//! `lab/report/tests/alone/scalability.rs`.)

use eras_sim::{Era, EraEntry, Handle, Options, Process, catalogue};
use sim::footprint::{Footprint, record};
use sim::{Config, Kind, Machine};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::mem::ManuallyDrop;
use std::rc::Rc;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/footprints.txt");

const HEAD: &str = "\
# What one operation of one thread touches in each era, in a tree whose lines no other CPU has: cache lines in all, then, by
# the source file of the access, memory words that it stores to, and how often it took locks, by their name or type. Made and
# checked by footprints.rs. Not counted: read sections of RCU, allocation.
";

/// What an operation needs; left as it is at the end, so that closing it does not count.
struct Set {
    process: ManuallyDrop<Box<dyn Process>>,
    open: ManuallyDrop<Handle>,
}

impl Set {
    fn with(&self, act: impl FnOnce(&dyn Process, &Handle)) {
        act(&**self.process, &self.open);
    }
}

type Operation = (&'static str, fn(&Set));

const OPERATIONS: &[Operation] = &[
    ("stat /x", |set| assert!(set.process.stat(b"/x").is_ok())),
    ("stat /d/d/d/x", |set| assert!(set.process.stat(b"/d/d/d/x").is_ok())),
    ("stat x", |set| assert!(set.process.stat(b"x").is_ok())),
    ("stat d/../x", |set| assert!(set.process.stat(b"d/../x").is_ok())),
    ("stat none", |set| assert!(set.process.stat(b"none").is_err())),
    ("open, close", |set| {
        let handle = set.process.open(b"/d/d/d/x").expect("there");
        set.process.close(handle);
    }),
    ("create, close", |set| {
        let handle = set.process.create(b"/d/d/d/new").expect("room");
        set.process.close(handle);
    }),
    ("unlink", |set| set.process.unlink(b"/d/d/d/old").expect("there")),
    ("rename", |set| set.process.rename(b"/d/d/d/old", b"/d/d/d/moved").expect("there")),
    ("d_path", |set| set.with(|process, handle| process.reverse_path(handle, &mut Vec::new()).expect("a path"))),
    ("dget_parent, dput", |set| set.with(|process, handle| process.hold_parent(handle, 0).expect("a parent"))),
    ("statvfs", |set| assert!(set.process.status(b"/").is_ok())),
    ("mount", |set| set.process.mount(b"/d/d").expect("a directory")),
    ("read", |set| set.with(|process, handle| process.read(handle, 0).expect("a file"))),
    ("write", |set| set.with(|process, handle| process.write(handle, 0).expect("a file"))),
];

fn set_up(entry: &EraEntry) -> Set {
    let options = Options { capacity: 512, chains: 64, mounts: 3, ..Options::default() };
    // Lives as long as the memory of the simulation.
    let era: &'static dyn Era = Box::leak((entry.make)(&options));
    let process = era.process();
    for dir in ["/d", "/d/d", "/d/d/d"] {
        process.make_directory(dir.as_bytes()).expect("room");
    }
    for file in ["/x", "/d/d/d/x", "/d/d/d/old"] {
        let handle = process.create(file.as_bytes()).expect("room");
        process.close(handle);
    }
    let open = process.open(b"/d/d/d/x").expect("there");
    Set { process: ManuallyDrop::new(process), open: ManuallyDrop::new(open) }
}

/// The line of the table for one operation of one era.
fn measure(entry: &'static EraEntry, operation: fn(&Set)) -> String {
    let recorded = Rc::new(RefCell::new(Footprint::default()));
    let seen = Rc::clone(&recorded);
    let config = Config { warm_ns: 0, ..Config::new(Machine::preset("dl980").expect("a preset"), 1, 1_000_000_000) };
    let report = sim::run(
        config,
        move || set_up(entry),
        move |set: &Set, _| {
            *seen.borrow_mut() = record(|| operation(set)).1;
        },
    );
    let locks = report.locks.iter().map(|lock| {
        let class = lock.class.split('<').next().and_then(|class| class.rsplit("::").next());
        (class.unwrap_or_default().to_owned(), lock.acquisitions)
    });
    let locks: BTreeMap<String, u64> = locks.collect();
    format!("{} | {}", show(&recorded.take()), list(&locks))
}

fn list<T: std::fmt::Display>(of: &BTreeMap<String, T>) -> String {
    let parts: Vec<String> = of.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

fn show(footprint: &Footprint) -> String {
    let mut lines = 0;
    let mut written: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (_, touches) in footprint.iter() {
        let counted = || touches.iter().filter(|touch| is_counted(touch.file));
        lines += usize::from(counted().next().is_some());
        for touch in counted().filter(|touch| touch.kind != Kind::Load) {
            let stem = touch.file.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
            written.entry(stem.to_owned()).or_default().insert(touch.address);
        }
    }
    let written = written.into_iter().map(|(file, words)| (file, words.len())).collect();
    format!("{lines} lines | {}", list(&written))
}

fn is_counted(file: &str) -> bool {
    let is_allocation = ["pool.rs", "percpu.rs"].iter().any(|name| file.ends_with(name));
    !is_allocation && !file.contains("sync/src/rcu") && !file.contains("lab/sim/")
}

#[test]
fn each_operation_of_each_era_touches_what_the_table_has() {
    let _alone = crate::alone();
    let mut table = HEAD.to_owned();
    for entry in catalogue().iter().filter(|entry| entry.name != "lightfoot") {
        writeln!(table, "\n{}", entry.name).expect("a string");
        for (name, operation) in OPERATIONS {
            writeln!(table, "  {name} | {}", measure(entry, *operation)).expect("a string");
        }
    }
    if std::env::var_os("ERAS_WRITE").is_some() {
        std::fs::write(FILE, &table).expect("the table can be written");
        return;
    }
    let kept = std::fs::read_to_string(FILE).unwrap_or_default();
    let differ = differences(&table, &kept);
    assert!(differ.is_empty(), "the table differs (ERAS_WRITE=1 makes it anew):\n{}", differ.join("\n"));
}

/// The operations that are not as they were, each behind its era.
fn differences(now: &str, before: &str) -> Vec<String> {
    let rows = |text: &str| {
        let mut era = String::new();
        let mut rows = BTreeMap::new();
        for line in text.lines() {
            match line.strip_prefix("  ").and_then(|row| row.split_once(" | ")) {
                Some((operation, row)) => drop(rows.insert(format!("{era}: {operation}"), row.to_owned())),
                None => era = line.to_owned(),
            }
        }
        rows
    };
    let (now, before) = (rows(now), rows(before));
    let names: BTreeSet<&String> = now.keys().chain(before.keys()).collect();
    let changed = names.into_iter().filter(|&name| now.get(name) != before.get(name));
    changed.map(|name| format!("{name}\n  was {:?}\n  is  {:?}", before.get(name), now.get(name))).collect()
}
