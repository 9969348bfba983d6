//! Listings as the kernel reads them.

use crate::session::kernel::{Kernel, PLAIN, RDONLY, SUPER, USER};
use lightfoot_fuse::{Checks, Gauge, NewMode, ROOT_NODE, SessionOptions, Unlisted};
use std::collections::BTreeSet;
use vfs::{Base, Errno, MountFlags, PathAt, S_IFDIR, S_IFREG, Want};

/// Name, number, kind, cookie.
type Listed = (String, u64, u32, u64);

/// Up to `most` names after `cookie`.
fn after(kernel: &Kernel, handle: u64, cookie: u64, most: usize) -> Vec<Listed> {
    let mut all = Vec::new();
    kernel
        .readdir(handle, cookie, Want::ATTRIBUTES, &mut |entry| {
            if all.len() == most {
                return false;
            }
            all.push((String::from_utf8(entry.name.to_vec()).unwrap(), entry.ino, entry.kind, entry.cookie));
            true
        })
        .unwrap();
    all
}

fn case(names: usize) -> (Kernel, u64) {
    let kernel = Kernel::new();
    let dir = kernel.dir("d").node;
    for number in 0..names {
        let name = format!("n{number}");
        kernel.forget(kernel.mknod(&SUPER, dir, name.as_bytes(), PLAIN, 0).unwrap().node, 1);
    }
    (kernel, dir)
}

#[test]
fn dots_come_first_and_every_cookie_leads_on() {
    for length in [0, 1, 2, 63, 64, 65, 130] {
        let (kernel, dir) = case(length);
        let handle = kernel.opendir(&SUPER, dir).unwrap();
        let whole = after(&kernel, handle, 0, usize::MAX);
        assert_eq!(whole.len(), length + 2);
        let dots: Vec<_> = whole[..2].iter().map(|(name, ino, kind, _)| (name.as_str(), *ino, *kind)).collect();
        let root = kernel.getattr(ROOT_NODE).unwrap().0.ino;
        assert_eq!(dots, [(".", dir, S_IFDIR), ("..", root, S_IFDIR)]);
        let cookies: BTreeSet<u64> = whole.iter().map(|(.., cookie)| *cookie).collect();
        assert_eq!(cookies.len(), length + 2, "each has its own");
        // The kernel's offsets are signed.
        assert!(cookies.iter().all(|cookie| (1..=i64::MAX as u64).contains(cookie)));
        for at in 0..=whole.len() {
            let cookie = at.checked_sub(1).map_or(0, |at| whole[at].3);
            for most in [0, 1, 2, 3, 64, usize::MAX] {
                let end = whole.len().min(at.saturating_add(most));
                assert_eq!(after(&kernel, handle, cookie, most), whole[at..end], "{length} after {at}, {most}");
            }
        }
        kernel.releasedir(handle);
        kernel.forget(dir, 1);
        kernel.check_nothing_left("listed");
    }
}

#[test]
fn a_listing_has_the_inode_numbers_of_the_files() {
    let (kernel, dir) = case(5);
    let handle = kernel.opendir(&SUPER, dir).unwrap();
    for (name, ino, kind, _) in after(&kernel, handle, 0, usize::MAX).into_iter().skip(2) {
        let entry = kernel.lookup(&SUPER, dir, name.as_bytes()).unwrap();
        assert_eq!((entry.node, entry.attr.ino, entry.attr.kind()), (ino, ino, kind), "{name}");
        assert_eq!(kind, S_IFREG);
        kernel.forget(entry.node, 1);
    }
    kernel.releasedir(handle);
    kernel.forget(dir, 1);
    kernel.check_nothing_left("numbers");
}

#[test]
fn dot_dot_is_the_parent_in_the_tree() {
    let (kernel, dir) = case(0);
    let inner = kernel.mkdir(&SUPER, dir, b"inner", NewMode::new(0o755, 0)).unwrap();
    let above = |node: u64| {
        let handle = kernel.opendir(&SUPER, node).unwrap();
        let dots = after(&kernel, handle, 0, 2);
        kernel.releasedir(handle);
        (dots[0].1, dots[1].1)
    };
    let root = kernel.getattr(ROOT_NODE).unwrap().0.ino;
    assert_eq!((above(inner.node), above(ROOT_NODE)), ((inner.node, dir), (root, root)));
    // Across a mount.
    kernel.vfs.context().mount(ramfs::RamFs::new(), Base::CWD, b"/d/inner", MountFlags::default()).unwrap();
    let top = kernel.lookup(&SUPER, dir, b"inner").unwrap();
    assert_eq!(above(top.node), (top.node, dir));
    // A directory that was removed has no entries.
    let gone = kernel.dir("gone");
    let handle = kernel.opendir(&SUPER, gone.node).unwrap();
    kernel.rmdir(&SUPER, ROOT_NODE, b"gone").unwrap();
    assert!(after(&kernel, handle, 0, usize::MAX).len() <= 2);
}

#[test]
fn a_name_that_is_gone_since_it_was_listed_has_no_node() {
    let (kernel, dir) = case(3);
    let handle = kernel.opendir(&SUPER, dir).unwrap();
    let mut found = Vec::new();
    kernel
        .readdir(handle, 0, Want::ATTRIBUTES, &mut |listed| {
            // Gone between the listing and the lookup.
            if listed.name == b"n1" {
                kernel.vfs.context().unlink(Base::CWD, b"/d/n1").unwrap();
            }
            let entry = if listed.name[0] == b'.' { None } else { kernel.listed_entry(&SUPER, handle, listed).ok() };
            found.push((listed.name.to_vec(), entry.map(|entry| entry.node)));
            true
        })
        .map_or_else(|errno| panic!("{errno}"), drop);
    let without: Vec<_> = found.iter().filter(|(_, node)| node.is_none()).map(|(name, _)| name.as_slice()).collect();
    assert_eq!(without, [&b"."[..], b"..", b"n1"]);
    assert_eq!(kernel.gauge(Gauge::Lookups), 3);
    found.iter().filter_map(|(_, node)| *node).for_each(|node| kernel.forget(node, 1));
    kernel.releasedir(handle);
    kernel.forget(dir, 1);
    kernel.check_nothing_left("told");
}

#[test]
fn a_new_caller_can_list_with_attributes() {
    let kernel = Kernel::with(SessionOptions { checks: Checks::Own, ..SessionOptions::default() });
    let made = kernel.file("f");
    let handle = kernel.opendir(&SUPER, ROOT_NODE).unwrap();
    let mut found = None;
    let listed = kernel.readdir(handle, 0, Want::ATTRIBUTES, &mut |listed| {
        found = kernel.listed_entry(&USER, handle, listed).ok().filter(|_| listed.name == b"f").or(found);
        true
    });
    assert_eq!((listed, found.map(|entry| entry.node)), (Ok(()), Some(made.node)));
}

#[test]
fn handles_that_are_not_open_directories_are_bad() {
    let (kernel, dir) = case(1);
    let file = kernel.lookup(&SUPER, dir, b"n0").unwrap();
    let opened = kernel.open(&SUPER, file.node, RDONLY).unwrap();
    let closed = kernel.opendir(&SUPER, dir).unwrap();
    kernel.releasedir(closed);
    assert_eq!(kernel.opendir(&SUPER, file.node), Err(Errno::ENOTDIR));
    for handle in [0, u64::MAX, closed] {
        assert_eq!(kernel.readdir(handle, 0, Want::ATTRIBUTES, &mut |_| true), Err(Errno::EBADF), "{handle:#x}");
        assert_eq!(kernel.fsyncdir(handle, false), Err(Errno::EBADF), "{handle:#x}");
        kernel.releasedir(handle);
    }
    kernel.release(opened.handle);
    kernel.forget(file.node, 1);
    kernel.forget(dir, 1);
    kernel.check_nothing_left("bad handles");
}

#[test]
fn a_listing_gives_no_attributes_of_a_file_that_had_several_names_when_the_kernel_received_them() {
    type Learns = fn(&Kernel, u64, u64) -> u64;
    // How the kernel learns of the second name, and how many lookups that counts.
    let ways: [(&str, Learns); 3] = [
        ("LINK", |kernel, dir, node| {
            kernel.link(&SUPER, node, dir, b"other").unwrap();
            1
        }),
        ("LOOKUP", |kernel, dir, _| {
            link_behind(kernel);
            kernel.lookup(&SUPER, dir, b"n0").unwrap();
            1
        }),
        ("GETATTR", |kernel, _, node| {
            link_behind(kernel);
            kernel.getattr(node).unwrap();
            0
        }),
    ];
    for (what, learns) in ways {
        let (kernel, dir) = case(2);
        let handle = kernel.opendir(&SUPER, dir).unwrap();
        let listed = |name: &[u8]| {
            let listed = lightfoot_fuse::Listed { name, ino: 0, kind: S_IFREG, cookie: 0 };
            kernel.listed_entry(&SUPER, handle, &listed).map(|entry| entry.node)
        };
        let node = listed(b"n0").expect("one name");
        let lookups = kernel.gauge(Gauge::Lookups);
        let more = learns(&kernel, dir, node);
        assert_eq!(listed(b"n0"), Err(Unlisted::NameOnly(node)), "{what}");
        // Also when one name is left: the kernel may not have noted that yet.
        kernel.unlink(&SUPER, dir, b"other").unwrap();
        assert_eq!(listed(b"n0"), Err(Unlisted::NameOnly(node)), "{what}");
        assert!(listed(b"n1").is_ok(), "{what}: another file");
        assert_eq!(listed(b"other"), Err(Unlisted::Gone), "{what}");
        assert_eq!(kernel.gauge(Gauge::Lookups), lookups + more + 3, "{what}");
        // Forgotten, it is a new file.
        kernel.forget(node, 3 + more);
        assert_eq!(listed(b"n0"), Ok(node), "{what}");
        kernel.releasedir(handle);
    }
}

/// A second name that the kernel has not made.
fn link_behind(kernel: &Kernel) {
    let context = kernel.vfs().context();
    context.link(PathAt::cwd(b"/d/n0"), PathAt::cwd(b"/d/other"), false).unwrap();
}
