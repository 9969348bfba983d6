//! Set-id bits: what clears them when the caller is another than the opener, and `uid=` over files of other users.

use crate::session::kernel::{Kernel, RDONLY, RDWR, SUPER, USER};
use hostfs::{HostFs, HostOptions};
use lightfoot_fuse::{Caller, Checks, NewMode, ROOT_NODE, Session, SessionOptions, Shown};
use vfs::{Errno, InodeFlags, SetAttr};

fn chmod(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

/// A node with this mode that root owns.
fn roots(kernel: &Kernel, mode: u32) -> u64 {
    let node = kernel.file("f").node;
    kernel.setattr(&SUPER, node, &chmod(mode), None).unwrap();
    node
}

fn mode(kernel: &Kernel, node: u64) -> u32 {
    kernel.getattr(node).unwrap().0.mode & 0o7777
}

#[test]
fn a_change_by_another_user_through_a_file_that_root_has_opened_clears_them() {
    type Change = fn(&Kernel, &Caller, u64, u64);
    // The transport passes the kernel's flag on by the name of the method.
    let changes: [(&str, Change); 4] = [
        ("write", |k, c, n, h| {
            let written = if c.who.is_root() { k.write(n, h, 0, b"x") } else { k.write_clearing(n, h, 0, b"x") };
            assert_eq!(written, Ok(1));
        }),
        ("cut", |k, c, n, h| {
            let cut = SetAttr { size: Some(1), ..SetAttr::default() };
            let set = if c.who.is_root() { Session::setattr } else { Session::setattr_clearing };
            set(k, c, n, &cut, Some(h)).unwrap();
        }),
        ("fallocate", |k, c, n, h| k.fallocate(c, n, h, 0, (0, 10)).unwrap()),
        ("copy", |k, c, n, h| {
            k.write(n, h, 0, b"x").unwrap();
            assert_eq!(k.copy_file_range(c, (h, 0), (h, 1), 1, 0), Ok(1));
        }),
    ];
    for (what, change) in changes {
        for checks in [Checks::Kernel, Checks::Own] {
            // Without the group's right to execute, set-group-id does not run anything.
            for (before, caller, after) in
                [(0o6777, USER, 0o777), (0o6767, USER, 0o2767), (0o6777, SUPER, 0o6777), (0o644, USER, 0o644)]
            {
                let kernel = Kernel::with(SessionOptions { checks, ..SessionOptions::default() });
                let node = roots(&kernel, before);
                let opened = kernel.open(&SUPER, node, RDWR).unwrap();
                change(&kernel, &caller, node, opened.handle);
                assert_eq!(mode(&kernel, node), after, "{what} {checks:?} {:?} {before:o}", caller.who);
            }
        }
    }
}

#[test]
fn a_cut_keeps_them_only_if_the_kernel_does_not_request_otherwise() {
    let cut = SetAttr { size: Some(1), ..SetAttr::default() };
    // The caller, whether it cuts through a file that root has opened, whether the kernel's flag is set, and the mode after it.
    let cases = [
        (SUPER, true, false, 0o6777),
        (SUPER, false, false, 0o6777),
        // Root in a container, or one that gave up CAP_FSETID.
        (SUPER, true, true, 0o777),
        (SUPER, false, true, 0o777),
        // A user who has CAP_FSETID.
        (USER, true, false, 0o6777),
        (USER, true, true, 0o777),
        (USER, false, true, 0o777),
    ];
    for checks in [Checks::Kernel, Checks::Own] {
        for (caller, is_open, clears, after) in cases {
            let kernel = Kernel::with(SessionOptions { checks, ..SessionOptions::default() });
            let node = roots(&kernel, 0o6777);
            let opened = is_open.then(|| kernel.open(&SUPER, node, RDWR).unwrap().handle);
            let set = if clears { Session::setattr_clearing } else { Session::setattr };
            let (attr, _) = set(&kernel, &caller, node, &cut, opened).unwrap();
            let label = format!("{checks:?} {:?} {is_open} {clears}", caller.who);
            assert_eq!((attr.mode & 0o7777, attr.size), (after, 1), "{label}");
            assert_eq!(mode(&kernel, node), after, "{label}");
        }
    }
}

#[test]
fn a_change_of_nothing_clears_them_for_owners_and_writers() {
    let owner = Caller::of(9, 9);
    // The caller, how the file is open, the reply, and the mode after it.
    let cases = [
        (SUPER, None, Ok(()), 0o775),
        (owner, None, Ok(()), 0o775),
        (USER, None, Err(Errno::EPERM), 0o6775),
        (USER, Some(RDONLY), Err(Errno::EPERM), 0o6775),
        // Before a write the kernel sends this as the writer, which may have the descriptor from another.
        (USER, Some(RDWR), Ok(()), 0o775),
        (UNKNOWN, None, Err(Errno::EPERM), 0o6775),
        (UNKNOWN, Some(RDONLY), Err(Errno::EPERM), 0o6775),
        (UNKNOWN, Some(RDWR), Ok(()), 0o775),
    ];
    for checks in [Checks::Kernel, Checks::Own] {
        for (caller, open, expected, after) in cases {
            let kernel = Kernel::with(SessionOptions { checks, ..SessionOptions::default() });
            let node = kernel.file("f").node;
            kernel.setattr(&SUPER, node, &SetAttr { uid: Some(9), gid: Some(9), ..SetAttr::default() }, None).unwrap();
            kernel.setattr(&SUPER, node, &chmod(0o6775), None).unwrap();
            let _opened = open.map(|flags| kernel.open(&SUPER, node, flags).unwrap());
            let done = kernel.setattr(&caller, node, &SetAttr::default(), None);
            assert_eq!(done.map(|(attr, _)| attr.mode & 0o7777), expected.map(|()| after), "{checks:?} {caller:?}");
            assert_eq!(mode(&kernel, node), after, "{checks:?} {caller:?} {open:?}");
        }
    }
    // Without such bits everyone may change nothing.
    let kernel = Kernel::new();
    let node = roots(&kernel, 0o755);
    assert_eq!(kernel.setattr(&USER, node, &SetAttr::default(), None).map(drop), Ok(()));
}

#[test]
fn without_opens_a_change_of_nothing_needs_the_right_to_write() {
    for (before, expected, after) in [(0o4777, Ok(()), 0o777), (0o4755, Err(Errno::EPERM), 0o4755)] {
        let kernel = Kernel::with(SessionOptions { no_open: true, ..SessionOptions::default() });
        let node = roots(&kernel, before);
        assert_eq!(kernel.setattr(&USER, node, &SetAttr::default(), None).map(drop), expected, "{before:o}");
        assert_eq!(mode(&kernel, node), after, "{before:o}");
    }
}

#[test]
fn a_user_who_is_only_shown_as_the_owner_gives_no_special_bits() {
    let shown = |uid, gid| Shown { uid, gid, umask: None };
    // What is shown, the caller, and the special bits that stay on root's file and on a new one.
    let cases = [
        (shown(Some(5), None), USER, 0, 0o6000),
        (shown(None, Some(5)), USER, 0, 0o6000),
        (shown(Some(7), None), Caller::of(7, 7), 0, 0o6000),
        (shown(Some(7), None), USER, 0, 0),
        (shown(Some(5), None), SUPER, 0o6000, 0o6000),
        (shown(Some(0), Some(0)), USER, 0o4000, 0),
        (shown(None, None), USER, 0o4000, 0o6000),
    ];
    for (shown, caller, on_roots, on_new) in cases {
        let kernel = Kernel::with(SessionOptions { shown, ..SessionOptions::default() });
        let label = format!("{shown:?} {:?}", caller.who);
        let node = roots(&kernel, 0o644);
        kernel.setattr(&caller, node, &chmod(0o6755), None).unwrap();
        assert_eq!(mode(&kernel, node), 0o755 | on_roots, "{label}");
        let new = NewMode::new(0o6755, 0);
        let (made, _) = kernel.create(&caller, ROOT_NODE, b"made", new, RDWR).unwrap();
        let node = kernel.mknod(&caller, ROOT_NODE, b"node", new, 0).unwrap();
        assert_eq!((made.attr.mode & 0o7777, node.attr.mode & 0o7777), (0o755 | on_new, 0o755 | on_new), "{label}");
        let sticky = kernel.mkdir(&caller, ROOT_NODE, b"dir", NewMode::new(0o1755, 0)).unwrap();
        assert_eq!(sticky.attr.mode & 0o7777 == 0o1755, on_new != 0, "{label}");
    }
}

/// The caller of a request that names no user.
const UNKNOWN: Caller = Caller::of(u32::MAX, u32::MAX);

#[test]
fn a_change_by_an_unknown_user_through_an_older_descriptor_clears_them() {
    type Change = fn(&Kernel, u64, u64);
    let changes: [(&str, Change); 6] = [
        ("write", |k, n, h| assert_eq!(k.write_clearing(n, h, 0, b"x"), Ok(1))),
        // A thread with CAP_FSETID in the kernel's view, whom the session cannot identify.
        ("write of root", |k, n, h| assert_eq!(k.write(n, h, 0, b"x"), Ok(1))),
        ("cut", |k, n, h| {
            let cut = SetAttr { size: Some(1), ..SetAttr::default() };
            k.setattr_clearing(&UNKNOWN, n, &cut, Some(h)).unwrap();
        }),
        ("cut without the handle", |k, n, _| {
            let cut = SetAttr { size: Some(1), ..SetAttr::default() };
            k.setattr_clearing(&UNKNOWN, n, &cut, None).unwrap();
        }),
        ("fallocate", |k, n, h| k.fallocate(&UNKNOWN, n, h, 0, (0, 10)).unwrap()),
        ("copy", |k, n, h| {
            k.write_clearing(n, h, 0, b"x").unwrap();
            k.setattr(&SUPER, n, &chmod(0o6777), None).unwrap();
            assert_eq!(k.copy_file_range(&UNKNOWN, (h, 0), (h, 1), 1, 0), Ok(1));
        }),
    ];
    let source = tempfile::tempdir().unwrap();
    for (what, change) in changes {
        let options = SessionOptions { idmap: true, ..SessionOptions::default() };
        let host = HostFs::new(source.path(), &HostOptions::default()).unwrap();
        for (kind, kernel) in [("ram", Kernel::with(options.clone())), ("host", Kernel::over(host, options))] {
            let node = roots(&kernel, 0o777);
            let opened = kernel.open(&UNKNOWN, node, RDWR).unwrap();
            kernel.setattr(&SUPER, node, &chmod(0o6777), None).unwrap();
            assert_eq!(format!("{:o}", mode(&kernel, node)), "6777", "{kind}: {what}");
            change(&kernel, node, opened.handle);
            assert_eq!(format!("{:o}", mode(&kernel, node)), "777", "{kind}: {what}");
            kernel.unlink(&SUPER, ROOT_NODE, b"f").unwrap();
        }
    }
}

#[test]
fn an_unknown_user_makes_no_files() {
    let kernel = Kernel::with(SessionOptions { idmap: true, ..SessionOptions::default() });
    let new = NewMode::new(0o4755, 0);
    let made = [
        kernel.mknod(&UNKNOWN, ROOT_NODE, b"n", new, 0).map(drop),
        kernel.mkdir(&UNKNOWN, ROOT_NODE, b"d", new).map(drop),
        kernel.symlink(&UNKNOWN, ROOT_NODE, b"l", b"x", &[]).map(drop),
        kernel.create(&UNKNOWN, ROOT_NODE, b"c", new, RDWR).map(drop),
        kernel.tmpfile(&UNKNOWN, ROOT_NODE, new, RDWR).map(drop),
    ];
    assert_eq!(made, [Err(Errno::EOVERFLOW); 5]);
    // A further name is not a new file: the kernel has checked the directory.
    let node = kernel.file("f").node;
    assert_eq!(kernel.link(&UNKNOWN, node, ROOT_NODE, b"other").map(drop), Ok(()));
    assert_eq!(kernel.unlink(&UNKNOWN, ROOT_NODE, b"other"), Ok(()));
}

#[test]
fn an_unknown_user_has_no_right_that_the_session_checks() {
    let kernel = Kernel::with(SessionOptions { idmap: true, ..SessionOptions::default() });
    let node = roots(&kernel, 0o640);
    kernel.setxattr(&SUPER, node, b"trusted.a", b"v", 0).unwrap();
    assert_eq!(kernel.access(&UNKNOWN, node, 4), Err(Errno::EACCES));
    assert_eq!(kernel.listxattr(&UNKNOWN, node), Ok(Vec::new()));
    assert_eq!(kernel.listxattr(&SUPER, node), Ok(b"trusted.a\0".to_vec()));
    // The kernel has checked a change of the mode, and removed the bits that the user may not set.
    kernel.setattr(&UNKNOWN, node, &chmod(0o2750), None).unwrap();
    assert_eq!(mode(&kernel, node), 0o2750);
}

#[test]
fn flags_of_an_inode_are_checked_by_the_session_unless_the_kernel_does() {
    let file = |kernel: &Kernel| {
        let node = kernel.file("f").node;
        kernel.setattr(&SUPER, node, &SetAttr { uid: Some(9), gid: Some(9), ..SetAttr::default() }, None).unwrap();
        node
    };
    // The caller, and the replies to `nodump` and `immutable`.
    let refused = Err(Errno::EPERM);
    let cases = [
        (SUPER, Ok(()), Ok(())),
        (Caller::of(9, 9), Ok(()), refused),
        (USER, refused, refused),
        (UNKNOWN, refused, refused),
    ];
    for (caller, nodump, immutable) in cases {
        let kernel = Kernel::new();
        let node = file(&kernel);
        assert_eq!(kernel.set_inode_flags(&caller, node, InodeFlags::NODUMP), nodump, "{caller:?}");
        assert_eq!(kernel.set_inode_flags(&caller, node, InodeFlags::IMMUTABLE), immutable, "{caller:?}");
        let kernel = Kernel::new();
        let node = file(&kernel);
        kernel.note_checked_flags(true);
        // A user with CAP_FOWNER and CAP_LINUX_IMMUTABLE, which the kernel has checked.
        assert_eq!(kernel.set_inode_flags(&caller, node, InodeFlags::IMMUTABLE), Ok(()), "{caller:?}");
    }
}
