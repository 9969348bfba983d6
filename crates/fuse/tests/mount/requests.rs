//! The number of requests that a system call costs: what the kernel sends decides the price of an operation, more than anything
//! that the server does with it. The bounds are the tables of docs/fuse.md, which `LIGHTFOOT_WRITE_DOCS=1` writes anew.
//!
//! Bounds are those of Linux 6.18. A kernel that sends fewer requests passes.

use crate::support::{Mount, wait_for};
use crate::{long, ram};
use lightfoot_fuse::{Checks, MountOptions, SessionOptions, Snapshot, Ttls};
use rustix::fs::{Access, CWD, Mode, OFlags, RenameFlags};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often each call is made.
const ROUNDS: u64 = 20;

/// How often a row is counted: another test, or a lack of memory, may make the kernel drop its caches meanwhile.
const TRIES: usize = 25;

/// Operations of the kernel's writeback.
const BY_TIMERS: [&str; 2] = ["setattr", "write"];

/// The tables, from the root of the repository.
const DOCUMENT: &str = "../../docs/fuse.md";
const BEGIN: &str = "<!-- requests: begin (LIGHTFOOT_WRITE_DOCS=1 cargo test -p lightfoot-fuse --test mount requests rewrites this) -->\n";
const END: &str = "<!-- requests: end -->\n";

/// Requests that were counted: of all operations, and of each.
type Counted = (u64, BTreeMap<String, u64>);

struct Row {
    what: &'static str,
    call: fn(&Path),
}

/// The file that the calls use.
const FILE: &str = "file";

fn rows() -> Vec<Row> {
    let row = |what, call| Row { what, call };
    vec![
        row("stat", |at| _ = fs::metadata(at.join(FILE)).unwrap()),
        row("stat of a name that does not exist", |at| _ = fs::metadata(at.join("none")).unwrap_err()),
        row("access", |at| rustix::fs::access(at.join(FILE), Access::READ_OK).unwrap()),
        row("open and close", |at| drop(File::open(at.join(FILE)).unwrap())),
        row("open, read 4 KiB and close", |at| {
            File::open(at.join(FILE)).unwrap().read_exact(&mut [0; 4096]).unwrap();
        }),
        row("open, append 4 KiB and close", |at| {
            let flags = OFlags::WRONLY | OFlags::APPEND;
            let mut file = File::from(rustix::fs::open(at.join(FILE), flags, Mode::empty()).unwrap());
            file.write_all(&[1; 4096]).unwrap();
        }),
        row("create and unlink", |at| {
            drop(File::create_new(at.join("new")).unwrap());
            fs::remove_file(at.join("new")).unwrap();
        }),
        row("mkdir and rmdir", |at| {
            fs::create_dir(at.join("new")).unwrap();
            fs::remove_dir(at.join("new")).unwrap();
        }),
        row("symlink and unlink", |at| {
            std::os::unix::fs::symlink(FILE, at.join("new")).unwrap();
            fs::remove_file(at.join("new")).unwrap();
        }),
        row("link and unlink", |at| {
            fs::hard_link(at.join(FILE), at.join("new")).unwrap();
            fs::remove_file(at.join("new")).unwrap();
        }),
        row("rename (exchange)", |at| {
            let (one, other) = (at.join(FILE), at.join("dir"));
            rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        }),
        row("chmod", |at| rustix::fs::chmod(at.join(FILE), Mode::RUSR | Mode::WUSR).unwrap()),
        row("readdir of 3 names", |at| assert_eq!(fs::read_dir(at).unwrap().count(), 3)),
    ]
}

/// Requests since `before`.
fn counted(mount: &Mount, before: &Snapshot) -> Counted {
    let ops = mount.mounted().session().metrics().snapshot().since(before).ops;
    (ops.iter().map(|op| op.count).sum(), ops.into_iter().map(|op| (op.name, op.count)).collect())
}

/// Waits until the kernel has sent what it sends after a call, and the server has counted all that it has replied to.
fn settle(mount: &Mount, nodes: usize) {
    let session = mount.mounted().session();
    wait_for("files are released", || session.open_handles() == 0);
    wait_for("what is gone is forgotten", || session.known_nodes() <= nodes);
}

fn fewest(mount: &Mount, call: fn(&Path)) -> Counted {
    let session = mount.mounted().session();
    // What the kernel asks once, and what the first call brings into its caches.
    call(&mount.at);
    call(&mount.at);
    let nodes = session.known_nodes();
    let counts = (0..TRIES).map(|_| {
        settle(mount, nodes);
        let before = session.metrics().snapshot();
        (0..ROUNDS).for_each(|_| call(&mount.at));
        settle(mount, nodes);
        counted(mount, &before)
    });
    counts.min().expect("several")
}

/// What PostMark does with small files: of 50 files, each of 200 transactions reads one or appends pieces of 512 bytes to it, and
/// makes or removes one.
fn postmark(at: &Path) {
    let mut dice = fastrand::Rng::with_seed(1997);
    let (mut files, mut made) = (Vec::new(), 0);
    let append = |path: &PathBuf, pieces: usize| {
        let mut file = File::options().append(true).create(true).open(path).unwrap();
        (0..pieces).for_each(|_| file.write_all(&[1; 512]).unwrap());
    };
    for transaction in 0..250 {
        if transaction >= 50 {
            let chosen = dice.choice(&files).unwrap();
            if dice.bool() { drop(fs::read(chosen).unwrap()) } else { append(chosen, dice.usize(1..20)) }
        }
        if transaction < 50 || dice.bool() || files.len() < 10 {
            made += 1;
            files.push(at.join(format!("p{made}")));
            append(files.last().unwrap(), dice.usize(1..20));
        } else {
            fs::remove_file(files.swap_remove(dice.usize(..files.len()))).unwrap();
        }
    }
    files.iter().for_each(|file| fs::remove_file(file).unwrap());
}

/// Requests of [`postmark`] in a mount with the options that the command gives `ram:`.
fn counted_postmark() -> Option<Counted> {
    let session = SessionOptions { writeback: true, ..crate::session() };
    let mount = Mount::new(&ram(), &MountOptions { session, ..long() })?;
    let nodes = mount.mounted().session().known_nodes();
    let before = mount.mounted().session().metrics().snapshot();
    postmark(&mount.at);
    settle(&mount, nodes);
    Some(counted(&mount, &before))
}

/// `7 = 1 create + 2 getattr`, of counts for so many calls.
fn cell((_, ops): &Counted, calls: u64) -> String {
    // More than a whole number are requests that come with some calls only.
    let each = |count: u64| count.div_ceil(calls);
    let parts: Vec<_> = ops.iter().map(|(name, count)| format!("{} {name}", each(*count))).collect();
    let sum: u64 = ops.values().map(|count| each(*count)).sum();
    if parts.is_empty() { "0".into() } else { format!("{sum} = {}", parts.join(" + ")) }
}

/// The operations of a cell, with their numbers.
fn parse(cell: &str) -> BTreeMap<&str, u64> {
    let parts = cell.split_once(" = ").map_or("", |(_, parts)| parts);
    parts
        .split(" + ")
        .filter_map(|part| part.split_once(' '))
        .map(|(count, name)| (name, count.parse().unwrap()))
        .collect()
}

#[test]
fn a_call_sends_no_more_requests_than_these() {
    let mut lines =
        vec!["| | cached | cached, own | not cached | not cached, own |\n|---|---|---|---|---|\n".to_owned()];
    let mut all: Vec<(&str, Vec<Counted>)> = rows().iter().map(|row| (row.what, Vec::new())).collect();
    for ttl in [Ttls::LONG.entry, Duration::ZERO] {
        for checks in [Checks::Kernel, Checks::Own] {
            let session = SessionOptions { checks, ttls: Ttls::all(ttl), ..SessionOptions::default() };
            let Some(mount) = Mount::new(&ram(), &MountOptions { session, ..long() }) else { return };
            fs::write(mount.path(FILE), [0; 8192]).unwrap();
            fs::create_dir(mount.path("dir")).unwrap();
            fs::write(mount.path("dir/below"), "").unwrap();
            std::os::unix::fs::symlink(FILE, mount.path("link")).unwrap();
            for (row, (_, found)) in rows().iter().zip(&mut all) {
                found.push(fewest(&mount, row.call));
            }
        }
    }
    for (what, found) in &all {
        let cells = found.iter().map(|found| cell(found, ROUNDS));
        lines.push(format!("| {what} | {} |\n", cells.collect::<Vec<_>>().join(" | ")));
    }
    let Some(postmark) = counted_postmark() else { return };
    lines.push(format!("\n| | writeback |\n|---|---|\n| 200 transactions of PostMark | {} |\n", cell(&postmark, 1)));
    let table = lines.concat();
    let text = fs::read_to_string(DOCUMENT).expect("the documents beside the crate");
    let (before, rest) = text.split_once(BEGIN).expect("its begin");
    let (documented, after) = rest.split_once(END).expect("its end");
    if std::env::var_os("LIGHTFOOT_WRITE_DOCS").is_some() {
        return fs::write(DOCUMENT, [before, BEGIN, &table, END, after].concat()).unwrap();
    }
    println!("{table}");
    let bounds = |what: &str| documented.lines().find(|line| line.starts_with(&format!("| {what} |"))).map(cells);
    for (what, found) in &all {
        let bounds = bounds(what).unwrap_or_else(|| panic!("{what} is not in {DOCUMENT}"));
        assert_eq!(bounds.len(), found.len(), "{what}");
        for (found, bound) in found.iter().zip(bounds) {
            check(what, found, &parse(bound), |most| most * ROUNDS);
        }
    }
    let bound = bounds("200 transactions of PostMark").expect("a row");
    // Times and data that the kernel has collected leave by its timers: in more requests the longer the run takes.
    let (mut by_timers, mut others) = (postmark.clone(), postmark);
    by_timers.1.retain(|name, _| BY_TIMERS.contains(&name.as_str()));
    others.1.retain(|name, _| !BY_TIMERS.contains(&name.as_str()));
    check("PostMark", &others, &parse(bound[0]), |most| most + most / 50 + 10);
    check("PostMark", &by_timers, &parse(bound[0]), |most| 3 * most);
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').skip(1).map(str::trim).collect()
}

/// That no operation has more requests than `bound` allows.
fn check(what: &str, (_, ops): &Counted, bound: &BTreeMap<&str, u64>, most: impl Fn(u64) -> u64) {
    for (name, count) in ops {
        let most = most(bound.get(name.as_str()).copied().unwrap_or(0));
        assert!(*count <= most, "{what}: {count} requests {name}, at most {most}: {ops:?}");
    }
}
