//! The storage of files in forks: blocks, holes and reserved space.

use crate::publish::host;
use lightfoot_workspaces::{BASE, Fork, ForkLimits, Workspaces};
use vfs::{Allocate, Base, Context, Errno, OpenFile, OpenFlags, SeekFor, Vfs};

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

/// The most pages of all forks.
const MOST: u64 = 101;

/// Two forks write until nothing is left: together they have all pages, whichever CPUs run the threads.
fn fill_up(spaces: &Workspaces) {
    let both = std::sync::Barrier::new(2);
    let write = &|fork: &str| {
        let file = open(&spaces.tree().context(), format!("/w/{fork}/new").as_bytes());
        let written = |page: &u64| file.write_at(page * 4096, &[1; 4096]).map(drop);
        written(&0).expect("a page");
        both.wait();
        let refused = (1..=MOST).find_map(|page| written(&page).err());
        assert_eq!(refused, Some(Errno::ENOSPC));
        blocks(&file) / 8
    };
    let pages = std::thread::scope(|scope| {
        let threads = ["a", "b"].map(|fork| scope.spawn(move || write(fork)));
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<u64>()
    });
    assert_eq!(pages, MOST);
}

#[test]
fn all_forks_together_have_a_limit_and_shared_pages_count_once() {
    let dirs = [(); 2].map(|()| tempfile::TempDir::new().expect("a directory"));
    for is_kept in [false, true] {
        let base = || host(dirs[0].path()).context();
        let opened = || Workspaces::durable(base(), true, dirs[1].path()).expect("forks");
        let mut spaces = if is_kept { opened() } else { Workspaces::over(base(), true).expect("forks") };
        spaces.set_limit(MOST * 4096 + 4095);
        ["a", "b"].iter().for_each(|fork| spaces.fork(BASE, fork, ForkLimits::default()).expect("a fork"));
        fill_up(&spaces);
        if is_kept {
            drop(spaces);
            spaces = opened();
            spaces.set_limit(MOST * 4096);
        }
        let context = spaces.tree().context();
        let free =
            |fork: &str| context.statvfs(Base::CWD, format!("/w/{fork}").as_bytes()).expect("figures").fs.blocks_free;
        let put = |fork: &str, at| open(&context, format!("/w/{fork}/new").as_bytes()).write_at(at, b"x").map(drop);
        // A fork of a fork needs no page, and a change of a shared page needs one.
        spaces.fork("a", "c", ForkLimits::default()).expect("a fork");
        assert_eq!((free("a"), free("c"), put("c", 0)), (0, 0, Err(Errno::ENOSPC)));
        context.unlink(Base::CWD, b"/w/b/new").expect("a removal");
        spaces.tree().barrier();
        assert!(free("c") > 0);
        assert_eq!(put("c", 0), Ok(()));
        let left = free("a");
        spaces.discard("c", false).expect("no open files");
        spaces.wait_until_freed();
        assert_eq!(free("a"), left + 1, "the page that only it had");
        spaces.set_limit(1);
        assert_eq!((free("a"), put("a", 1 << 20)), (0, Err(Errno::ENOSPC)), "a smaller limit");
    }
}
