//! The number of requests that a system call costs: what the kernel sends decides the price of an operation, more than anything
//! that the server does with it. docs/fuse.md has the same table.
//!
//! Bounds are those of Linux 6.18. A kernel that sends fewer requests passes.

use crate::support::{Mount, wait_for};
use crate::{long, ram};
use lightfoot_fuse::{Checks, MountOptions, SessionOptions, Snapshot, Ttls};
use rustix::fs::{Access, CWD, Mode, OFlags, RenameFlags};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::time::Duration;

/// How often each call is made.
const ROUNDS: u64 = 20;

/// How often a row is counted: another test may make the kernel drop its caches meanwhile.
const TRIES: usize = 3;

/// Requests of one call: with checks of the kernel, with own checks; and both again if nothing is cached.
type Most = [u64; 4];

/// Requests that were counted, and of which operations.
type Counted = (u64, String);

struct Row {
    what: &'static str,
    call: fn(&Path),
    most: Most,
}

/// The file that the calls use.
const FILE: &str = "file";

fn rows() -> Vec<Row> {
    let row = |what, most, call| Row { what, call, most };
    vec![
        row("stat", [0, 0, 3, 2], |at| _ = fs::metadata(at.join(FILE)).unwrap()),
        row("stat of a name that does not exist", [0, 0, 2, 1], |at| _ = fs::metadata(at.join("none")).unwrap_err()),
        row("access", [0, 1, 3, 2], |at| rustix::fs::access(at.join(FILE), Access::READ_OK).unwrap()),
        row("open and close", [2, 2, 5, 3], |at| drop(File::open(at.join(FILE)).unwrap())),
        row("open, read 4 KiB and close", [2, 2, 7, 5], |at| {
            File::open(at.join(FILE)).unwrap().read_exact(&mut [0; 4096]).unwrap();
        }),
        row("open, append 4 KiB and close", [3, 3, 7, 5], |at| {
            let flags = OFlags::WRONLY | OFlags::APPEND;
            let mut file = File::from(rustix::fs::open(at.join(FILE), flags, Mode::empty()).unwrap());
            file.write_all(&[1; 4096]).unwrap();
        }),
        row("create and unlink", [7, 5, 11, 6], |at| {
            drop(File::create_new(at.join("new")).unwrap());
            fs::remove_file(at.join("new")).unwrap();
        }),
        row("mkdir and rmdir", [6, 4, 9, 5], |at| {
            fs::create_dir(at.join("new")).unwrap();
            fs::remove_dir(at.join("new")).unwrap();
        }),
        row("symlink and unlink", [6, 4, 9, 5], |at| {
            std::os::unix::fs::symlink(FILE, at.join("new")).unwrap();
            fs::remove_file(at.join("new")).unwrap();
        }),
        row("link and unlink", [5, 3, 11, 5], |at| {
            fs::hard_link(at.join(FILE), at.join("new")).unwrap();
            fs::remove_file(at.join("new")).unwrap();
        }),
        row("rename (exchange)", [2, 1, 7, 3], |at| {
            let (one, other) = (at.join(FILE), at.join("dir"));
            rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
        }),
        row("chmod", [1, 1, 3, 2], |at| rustix::fs::chmod(at.join(FILE), Mode::RUSR | Mode::WUSR).unwrap()),
        row("readdir of 3 names", [2, 2, 7, 6], |at| assert_eq!(fs::read_dir(at).unwrap().count(), 3)),
    ]
}

/// Requests since `before`, and of which operations.
fn counted(mount: &Mount, before: &Snapshot) -> Counted {
    let ops = mount.mounted().session().metrics().snapshot().since(before).ops;
    let parts: Vec<_> = ops.iter().map(|op| format!("{} {}", op.count, op.name)).collect();
    (ops.iter().map(|op| op.count).sum(), parts.join(", "))
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

#[test]
fn a_call_sends_no_more_requests_than_these() {
    let mut all: Vec<(&str, Vec<Counted>, Most)> = rows().iter().map(|row| (row.what, Vec::new(), row.most)).collect();
    for ttl in [Ttls::LONG.entry, Duration::ZERO] {
        for checks in [Checks::Kernel, Checks::Own] {
            let session = SessionOptions { checks, ttls: Ttls::all(ttl), ..SessionOptions::default() };
            let Some(mount) = Mount::new(&ram(), &MountOptions { session, ..long() }) else { return };
            fs::write(mount.path(FILE), [0; 8192]).unwrap();
            fs::create_dir(mount.path("dir")).unwrap();
            fs::write(mount.path("dir/below"), "").unwrap();
            std::os::unix::fs::symlink(FILE, mount.path("link")).unwrap();
            for (row, (_, found, _)) in rows().iter().zip(&mut all) {
                found.push(fewest(&mount, row.call));
            }
        }
    }
    println!("| {ROUNDS} times | kernel | own | kernel, nothing cached | own, nothing cached |");
    for (what, found, _) in &all {
        let cells = found.iter().map(|(count, _)| format!("{}", *count as f64 / ROUNDS as f64));
        println!("| {what} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    for (what, found, most) in all {
        for ((count, parts), most) in found.iter().zip(most) {
            assert!(*count <= most * ROUNDS, "{what}: {count} requests of {ROUNDS} calls: {parts}");
        }
    }
}
