//! Each open of a file has its own descriptor on the host, with its flags.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostOptions, Revalidate};
use rustix::fs::{IFlags, OFlags, fcntl_getfl, ioctl_setflags};
use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use vfs::{Errno, OpenFile, OpenFlags};

const APPEND: OpenFlags = OpenFlags::WRONLY.union(OpenFlags::APPEND);

fn flags_of(file: &OpenFile) -> OFlags {
    fcntl_getfl(file.backing().unwrap()).unwrap()
}

/// The descriptors of this process that lead to `path`.
fn descriptors(path: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    links.filter(|link| fs::read_link(link.as_ref().unwrap().path()).is_ok_and(|to| to == path)).count()
}

#[test]
fn a_descriptor_has_the_flags_of_its_open() {
    let source = support::temp_dir();
    fs::write(source.path().join("file"), b"text").unwrap();
    let tree = Tree::new(&source, &HostOptions::default());
    for (flags, expected) in [
        (OpenFlags::RDONLY, OFlags::RDONLY),
        (OpenFlags::WRONLY, OFlags::WRONLY),
        (OpenFlags::RDWR, OFlags::RDWR),
        (APPEND, OFlags::WRONLY | OFlags::APPEND),
        (OpenFlags::RDWR.union(OpenFlags::SYNC), OFlags::RDWR | OFlags::SYNC),
        (OpenFlags::WRONLY.union(OpenFlags::DSYNC), OFlags::WRONLY | OFlags::DSYNC),
        (OpenFlags::NOATIME, OFlags::NOATIME),
    ] {
        let known = OFlags::RWMODE | OFlags::APPEND | OFlags::SYNC | OFlags::NOATIME;
        assert_eq!(flags_of(&tree.open("/file", flags).unwrap()) & known, expected, "{flags:?}");
    }
    // The next open does not get what the last one had.
    let next = tree.open("/file", OpenFlags::RDWR).unwrap();
    assert_eq!(next.write_at(0, b"TE"), Ok((2, 2)));
    assert_eq!(fs::read(source.path().join("file")).unwrap(), b"TExt");
}

#[test]
fn opens_of_one_file_share_no_descriptor_and_close_them() {
    for (policy, left) in [(Revalidate::Always, 0), (Revalidate::Exclusive, 1)] {
        let source = support::temp_dir();
        let path = source.path().join("file");
        fs::write(&path, b"text").unwrap();
        let tree = Tree::new(&source, &HostOptions { policy, ..HostOptions::default() });
        let before = tree.host.stats().open_fds;
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]] {
            let flags = [OpenFlags::RDONLY, OpenFlags::RDWR, APPEND, OpenFlags::RDONLY];
            let mut files = flags.map(|flags| Some(tree.open("/file", flags).unwrap()));
            let backing = files.each_ref().map(|file| file.as_ref().unwrap().backing().unwrap().as_raw_fd());
            assert!((1..4).all(|at| !backing[..at].contains(&backing[at])), "{backing:?}");
            assert!((4..=5).contains(&descriptors(&path)));
            for (closed, at) in order.into_iter().enumerate() {
                files[at] = None;
                let open = descriptors(&path);
                // The record goes on with one of them.
                assert!(open >= 3 - closed && open <= 4 - closed, "{policy:?} {order:?}: {open} after {closed}");
                assert_eq!(tree.attr("/file").unwrap().size, 4);
            }
            assert!(descriptors(&path) <= 1);
        }
        drop(tree.open("/file", OpenFlags::WRONLY).unwrap());
        let writers = descriptors(&path);
        assert!(writers <= left || fs::read(&path).unwrap() == b"text" && writers <= 1);
        assert!(tree.host.stats().open_fds <= before + 2, "{:?}", tree.host.stats());
    }
}

#[test]
fn a_file_that_another_program_moves_stays_readable_by_any_open() {
    let source = support::temp_dir();
    let tree = Tree::new(&source, &HostOptions { policy: Revalidate::Always, ..HostOptions::default() });
    let path = source.path().join("log");
    for keeps_first in [true, false] {
        let first = tree.open("/log", APPEND.union(OpenFlags::CREAT)).unwrap();
        let second = tree.open("/log", APPEND).unwrap();
        fs::rename(&path, source.path().join("log.1")).unwrap();
        let (kept, closed) = if keeps_first { (first, second) } else { (second, first) };
        drop(closed);
        let size = kept.attr().unwrap().size;
        assert_eq!(kept.write_at(0, b"after"), Ok((5, size + 5)));
        assert_eq!(kept.attr().unwrap().size, size + 5);
        assert_eq!(fs::read(source.path().join("log.1")).unwrap(), b"after");
        fs::remove_file(source.path().join("log.1")).unwrap();
        assert_eq!(kept.attr().unwrap().nlink, 0);
    }
}

#[test]
fn a_file_that_accepts_only_appended_data_can_be_opened_to_append() {
    if !support::is_root_for("a_file_that_accepts_only_appended_data_can_be_opened_to_append") {
        return;
    }
    let source = support::temp_dir();
    let path = source.path().join("log");
    fs::write(&path, b"one ").unwrap();
    let on_host = fs::File::open(&path).unwrap();
    if ioctl_setflags(&on_host, IFlags::APPEND).is_err() {
        println!("SKIPPED a_file_that_accepts_only_appended_data_can_be_opened_to_append: no such flag here");
        return;
    }
    let tree = Tree::new(&source, &HostOptions::default());
    let appended = tree.open("/log", APPEND).and_then(|file| file.write_at(0, b"two"));
    let refused = tree.open("/log", OpenFlags::RDWR).map(drop);
    ioctl_setflags(&on_host, IFlags::empty()).unwrap();
    assert_eq!((appended, refused), (Ok((3, 7)), Err(Errno::EPERM)));
    assert_eq!(fs::read(&path).unwrap(), b"one two");
}
