//! The storage of files in forks: blocks, holes and reserved space.

use lightfoot_workspaces::{Fork, ForkLimits};
use vfs::{Allocate, Base, Context, OpenFile, OpenFlags, SeekFor, Vfs};

fn open(context: &Context, path: &[u8]) -> OpenFile {
    context.open(Base::CWD, path, OpenFlags::RDWR.union(OpenFlags::CREAT), 0o644).expect("a file")
}

/// Returns a fork of a tree with a file of five pages, of which `data` are stored.
fn fork_with(data: &[u64]) -> Context {
    let base = Vfs::new(ramfs::RamFs::new()).context();
    let file = open(&base, b"/f");
    file.set_len(5 * 4096).expect("a length");
    for page in data {
        file.write_at(page * 4096, &[1; 4096]).expect("a write");
    }
    let trunk = Fork::over(base, true).expect("a trunk");
    Vfs::new(trunk.fork(ForkLimits::default()).expect("a fork").file_system()).context()
}

fn blocks(file: &OpenFile) -> u64 {
    file.attr().expect("attributes").blocks
}

#[test]
fn a_page_that_the_fork_has_changed_counts_once() {
    let file = open(&fork_with(&[0, 1, 2, 3, 4]), b"/f");
    assert_eq!(blocks(&file), 40);
    file.write_at(0, b"x").expect("a write");
    file.write_at(3 * 4096, &[2; 8192]).expect("a write");
    assert_eq!(blocks(&file), 40);
    file.allocate(Allocate::PunchHole, true, 4096, 8192).expect("a hole");
    assert_eq!(blocks(&file), 24);
    file.write_at(4096, b"x").expect("a write");
    assert_eq!(blocks(&file), 32);
    file.set_len(4096 + 1).expect("a length");
    assert_eq!(blocks(&file), 16);
    file.set_len(5 * 4096).expect("a length");
    file.write_at(2 * 4096, b"x").expect("a write");
    assert_eq!(blocks(&file), 24);
}

#[test]
fn a_file_of_the_base_keeps_its_holes() {
    let file = open(&fork_with(&[2]), b"/f");
    let found = |what| file.seek_for(what, 0);
    assert_eq!((blocks(&file), found(SeekFor::Data), found(SeekFor::Hole)), (8, Ok(2 * 4096), Ok(0)));
    file.write_at(0, b"x").expect("a write");
    assert_eq!(blocks(&file), 16);
}

#[test]
fn a_file_that_grows_keeps_reserved_storage() {
    let context = fork_with(&[]);
    for path in [&b"/f"[..], b"/new"] {
        let file = open(&context, path);
        file.set_len(0).expect("a length");
        file.allocate(Allocate::Reserve, true, 0, 3 * 4096).expect("storage");
        file.set_len(1).expect("a length");
        assert_eq!(blocks(&file), 24);
        file.set_len(1).expect("a length");
        assert_eq!(blocks(&file), 8);
    }
}
