//! Programs that append to one file at the same time, some through trees and one on the host.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostOptions, Revalidate};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use vfs::OpenFlags;

const RECORDS: usize = 3000;
const APPEND: OpenFlags = OpenFlags::WRONLY.union(OpenFlags::APPEND).union(OpenFlags::CREAT);

fn record(writer: &str, number: usize) -> String {
    format!("{writer} {number:0>8}\n")
}

/// Each record is there once, in the order of its writer.
fn check(path: &Path, writers: &[&str]) {
    let text = fs::read_to_string(path).unwrap();
    let mut next = BTreeMap::new();
    for line in text.lines() {
        let (writer, _) = line.split_once(' ').unwrap();
        let number = next.entry(writer).or_insert(0);
        assert_eq!(format!("{line}\n"), record(writer, *number));
        *number += 1;
    }
    assert_eq!(next, writers.iter().map(|writer| (*writer, RECORDS)).collect());
}

fn append_by_tree(tree: &Tree, writer: &str) {
    let file = tree.open("/log", APPEND).unwrap();
    for number in 0..RECORDS {
        let text = record(writer, number);
        let (len, end) = file.write_at(0, text.as_bytes()).unwrap();
        assert_eq!(len, text.len());
        assert!(end >= ((number + 1) * len) as u64);
    }
}

#[test]
fn programs_that_append_at_the_same_time_lose_nothing() {
    for policy in [Revalidate::Exclusive, Revalidate::Ttl(Duration::from_secs(1000)), Revalidate::Always] {
        let source = support::temp_dir();
        let options = HostOptions { policy, ..HostOptions::default() };
        let trees = [Tree::new(&source, &options), Tree::new(&source, &options)];
        let path = source.path().join("log");
        std::thread::scope(|scope| {
            for (tree, writer) in trees.iter().zip(["first", "second"]) {
                scope.spawn(move || append_by_tree(tree, writer));
            }
            let mut host = fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
            for number in 0..RECORDS {
                host.write_all(record("host", number).as_bytes()).unwrap();
            }
        });
        check(&path, &["first", "host", "second"]);
        // With exclusive the tree sees only what it did itself, or found when it did it.
        for tree in &trees {
            tree.open("/log", APPEND).unwrap().write_at(0, b"x").unwrap();
            assert_eq!(tree.attr("/log").unwrap().size, fs::metadata(&path).unwrap().len(), "{policy:?}");
            assert_eq!(tree.read("/log").unwrap(), fs::read(&path).unwrap());
        }
    }
}

#[test]
fn an_append_ends_where_the_host_put_it() {
    let source = support::temp_dir();
    fs::write(source.path().join("log"), b"before ").unwrap();
    let tree = Tree::new(&source, &HostOptions { policy: Revalidate::Exclusive, ..HostOptions::default() });
    let file = tree.open("/log", APPEND).unwrap();
    assert_eq!(file.write_at(0, b"one "), Ok((4, 11)));
    fs::OpenOptions::new().append(true).open(source.path().join("log")).unwrap().write_all(b"host ").unwrap();
    assert_eq!(file.write_at(0, b"two"), Ok((3, 19)));
    assert_eq!(file.attr().unwrap().size, 19);
    assert_eq!(fs::read(source.path().join("log")).unwrap(), b"before one host two");
}

/// Set in a process that appends through its own tree: the directory, and the writer's name.
const PROCESS: &str = "LIGHTFOOT_TEST_APPENDS";

#[test]
fn processes_that_append_at_the_same_time_lose_nothing() {
    if let Ok(who) = std::env::var(PROCESS) {
        let (writer, source) = who.split_once(' ').unwrap();
        append_by_tree(&Tree::new(source, &HostOptions::default()), writer);
        return;
    }
    let source = support::temp_dir();
    let path = source.path().join("log");
    let program = |writer: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let command = command.args(["--exact", "appends::processes_that_append_at_the_same_time_lose_nothing"]);
        command.env(PROCESS, format!("{writer} {}", source.path().display())).stdout(Stdio::null()).spawn().unwrap()
    };
    let mut programs = ["first", "second"].map(program);
    // Each of these lines is one write(2).
    let script =
        format!("exec 3>>log; i=0; while [ $i -lt {RECORDS} ]; do printf 'host %08d\\n' $i >&3; i=$((i+1)); done");
    let host = Command::new("sh").args(["-ec", &script]).current_dir(source.path()).status().unwrap();
    assert!(host.success() && programs.each_mut().iter_mut().all(|program| program.wait().unwrap().success()));
    check(&path, &["first", "host", "second"]);
}
