//! Forks taken beside writers: each has every call whole or not at all.

use crate::tree::{names, read, seen, write};
use hostfs::{HostFs, HostOptions};
use lightfoot_workspaces::{Fork, ForkLimits};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use testkit::{Fault, Faults};
use vfs::{Base, Context, OpenFlags, PathAt, RenameFlags, Vfs};

/// Forks that are taken while the writers run.
const FORKS: usize = 150;

/// Bytes of a write, which begins in the middle of a page.
const BYTES: usize = 40 * 4096;

fn until(is_over: &AtomicBool, mut act: impl FnMut(u8)) {
    let mut round = 0_u8;
    while !is_over.load(Relaxed) {
        round = round.wrapping_add(1);
        act(round);
    }
}

/// Ends the writers, also after a panic.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Renames one file to and fro.
fn renames(context: &Context, is_over: &AtomicBool) {
    let [one, other] = [PathAt::cwd(b"/a/x"), PathAt::cwd(b"/b/x")];
    until(is_over, |round| {
        let (from, to) = if round % 2 == 1 { (one, other) } else { (other, one) };
        context.rename(from, to, RenameFlags::default()).expect("a rename");
    });
}

/// Writes the same byte everywhere, in one call.
fn writes(context: &Context, is_over: &AtomicBool) {
    let file = context.open(Base::CWD, b"/data", OpenFlags::WRONLY, 0).expect("a file");
    until(is_over, |round| _ = file.write_at(100, &[round; BYTES]).expect("a write"));
}

/// Writes a file again from the start.
fn grows(context: &Context, is_over: &AtomicBool) {
    let file = context.open(Base::CWD, b"/grows", OpenFlags::WRONLY, 0).expect("a file");
    until(is_over, |round| {
        file.set_len(0).expect("an empty file");
        file.write_at(0, &[round | 1; BYTES]).expect("a write");
    });
}

/// Makes and removes a second name of a file.
fn links(context: &Context, is_over: &AtomicBool) {
    until(is_over, |_| {
        context.link(PathAt::cwd(b"/linked"), PathAt::cwd(b"/a/second"), false).expect("a link");
        context.unlink(Base::CWD, b"/a/second").expect("a removal");
    });
}

/// Makes and removes directories with a file in them.
fn makes(context: &Context, is_over: &AtomicBool) {
    until(is_over, |_| {
        context.mkdir(Base::CWD, b"/b/dir", 0o755).expect("a directory");
        write(context, "/b/dir/f", 0, b"x").expect("a file");
        context.unlink(Base::CWD, b"/b/dir/f").expect("a removal");
        context.rmdir(Base::CWD, b"/b/dir").expect("a removal");
    });
}

/// Checks a fork that was taken while the writers ran.
fn check(fork: &Fork) {
    let context = Vfs::new(fork.file_system()).context();
    let data = read(&context, "/data").expect("contents");
    let has = |path: &str| context.attr(Base::CWD, path.as_bytes(), false).is_ok();
    assert!(has("/a/x") != has("/b/x"), "the file has one name at each moment");
    assert!(data[100..].iter().all(|byte| *byte == data[100]), "a part of a write");
    // Behind its end a file has nothing.
    let grown = context.open(Base::CWD, b"/grows", OpenFlags::RDWR, 0).expect("a file");
    let len = grown.attr().expect("attributes").size;
    assert!(len == 0 || len == BYTES as u64, "a part of a write: {len} bytes");
    grown.set_len(2 * BYTES as u64).expect("a longer file");
    let bytes = read(&context, "/grows").expect("contents");
    assert!(bytes[len as usize..].iter().all(|byte| *byte == 0), "bytes of a write that the fork does not have");
    let links = context.attr(Base::CWD, b"/linked", false).expect("a file").nlink;
    assert_eq!(links, 1 + u32::from(has("/a/second")));
    let dirs = context.attr(Base::CWD, b"/b", false).expect("a directory").nlink;
    assert_eq!(dirs, 2 + u32::from(has("/b/dir")));
    // Lookups, listings and attributes agree.
    assert!(seen(&context).contains_key("/linked"));
    let used = fork.usage();
    for path in ["/a", "/b"] {
        for name in names(&context, path).expect("a listing") {
            let path = format!("{path}/{name}");
            let is_dir = context.attr(Base::CWD, path.as_bytes(), false).expect("a file").is_dir();
            if is_dir {
                let _ = context.unlink(Base::CWD, format!("{path}/f").as_bytes());
                context.rmdir(Base::CWD, path.as_bytes()).expect("an empty directory");
            } else {
                context.unlink(Base::CWD, path.as_bytes()).expect("a removal");
            }
        }
    }
    assert!(fork.usage().1 <= used.1);
    assert!(data == read(&context, "/data").expect("contents"), "a write to the parent has reached the fork");
}

#[test]
fn a_fork_beside_writers_has_each_call_whole_or_not_at_all() {
    for is_fixed in [true, false] {
        let base = crate::tree::memory();
        for dir in [&b"/a"[..], b"/b"] {
            base.mkdir(Base::CWD, dir, 0o755).expect("a directory");
        }
        for path in ["/a/x", "/linked", "/grows"] {
            write(&base, path, 0, b"").expect("a file");
        }
        write(&base, "/data", 0, &[0; 100 + BYTES]).expect("a file");
        let parent = Fork::over(base, is_fixed).expect("a trunk").fork(ForkLimits::default()).expect("a fork");
        let tree = Vfs::new(parent.file_system());
        let is_over = AtomicBool::new(false);
        let writers: [fn(&Context, &AtomicBool); 5] = [renames, writes, grows, links, makes];
        thread::scope(|scope| {
            let _end = End(&is_over);
            for writer in writers {
                let (context, is_over) = (tree.context(), &is_over);
                scope.spawn(move || writer(&context, is_over));
            }
            for _ in 0..FORKS {
                check(&parent.fork(ForkLimits::default()).expect("a fork"));
            }
        });
    }
}

#[test]
fn a_long_copy_delays_its_own_caller_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("big"), vec![1; 5 << 20]).expect("a file");
    std::fs::write(dir.path().join("small"), "small").expect("a file");
    let (fs, plan) = Faults::of(Box::new(HostFs::new(dir.path(), &HostOptions::default()).expect("a directory")));
    let trunk = Fork::over(Vfs::new(fs).context(), false).expect("a trunk");
    let fork = trunk.fork(ForkLimits::default()).expect("a fork");
    let context = Vfs::new(fork.file_system()).context();
    write(&context, "/small", 0, b"S").expect("a write");
    plan.set(|call| (call.method == "read" && call.number == 2).then_some(Fault::Hang));
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&context, "/big", 0, b"B"));
        plan.wait_for(1);
        let other = fork.fork(ForkLimits::default()).expect("a fork");
        write(&context, "/small", 1, b"S").expect("a write");
        assert_eq!(fork.changes().expect("changes").len(), 1);
        plan.release();
        writer.join().expect("it writes").expect("a write");
        let other = Vfs::new(other.file_system()).context();
        assert_eq!(read(&other, "/big").expect("contents")[..2], *b"\x01\x01");
    });
    assert_eq!(read(&context, "/big").expect("contents")[..2], *b"B\x01");
    let (before, used) = (5 << 20, fork.usage().0);
    assert!((before..before + 30_000).contains(&used), "the bytes count once: {used}");
    assert_eq!(std::fs::read(dir.path().join("big")).expect("contents")[0], 1);
}
