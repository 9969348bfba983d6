//! Callers: checks by the kernel or by Lightfoot, umasks, set-id bits, overrides of owners.

use crate::session::kernel::{Kernel, RDONLY, RDWR, SUPER, USER, WRONLY};
use lightfoot_fuse::{Caller, Checks, MountOptions, NameIn, NewMode, ROOT_NODE, SessionOptions, Shown};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use vfs::{Acl, AclKind, Base, Errno, S_IFDIR, S_IFREG, SetAttr, SetTime, SetXattr};

fn kernel(checks: Checks) -> Kernel {
    Kernel::with(SessionOptions { checks, ..SessionOptions::default() })
}

fn chmod(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

#[test]
fn permissions_are_checked_by_lightfoot_or_by_the_kernel() {
    type Ask = fn(&Kernel, &Caller, u64, u64) -> Result<(), Errno>;
    // Root owns the directory, with mode 0700, and the file, with mode 0600.
    let asks: [(&str, Ask, Errno); 19] = [
        ("lookup", |k, c, d, _| k.lookup(c, d, b"f").map(drop), Errno::EACCES),
        (
            "lookup of none",
            |k, c, d, _| {
                k.lookup(c, d, b"none")
                    .map_or_else(|e| if e == Errno::ENOENT { Ok(()) } else { Err(e) }, |_| Err(Errno::EIO))
            },
            Errno::EACCES,
        ),
        ("open to read", |k, c, _, f| k.open(c, f, RDONLY).map(drop), Errno::EACCES),
        ("open to write", |k, c, _, f| k.open(c, f, WRONLY).map(drop), Errno::EACCES),
        ("opendir", |k, c, d, _| k.opendir(c, d).map(drop), Errno::EACCES),
        ("create", |k, c, d, _| k.create(c, d, b"new", NewMode::new(0o644, 0), RDWR).map(drop), Errno::EACCES),
        ("mknod", |k, c, d, _| k.mknod(c, d, b"new", NewMode::new(0o644, 0), 0).map(drop), Errno::EACCES),
        ("mkdir", |k, c, d, _| k.mkdir(c, d, b"new", NewMode::new(0o755, 0)).map(drop), Errno::EACCES),
        ("symlink", |k, c, d, _| k.symlink(c, d, b"new", b"x", &[]).map(drop), Errno::EACCES),
        ("link", |k, c, d, f| k.link(c, f, d, b"new").map(drop), Errno::EACCES),
        ("rename", |k, c, d, _| k.rename(c, NameIn::new(d, b"f"), NameIn::new(d, b"new"), 0), Errno::EACCES),
        ("unlink", |k, c, d, _| k.unlink(c, d, b"f"), Errno::EACCES),
        ("chmod", |k, c, _, f| k.setattr(c, f, &chmod(0o777), None).map(drop), Errno::EPERM),
        (
            "chown",
            |k, c, _, f| k.setattr(c, f, &SetAttr { uid: Some(5), ..SetAttr::default() }, None).map(drop),
            Errno::EPERM,
        ),
        (
            "cut",
            |k, c, _, f| k.setattr(c, f, &SetAttr { size: Some(0), ..SetAttr::default() }, None).map(drop),
            Errno::EACCES,
        ),
        ("getxattr", |k, c, _, f| k.getxattr(c, f, b"user.a").map(drop), Errno::EACCES),
        ("setxattr", |k, c, _, f| k.setxattr(c, f, b"user.a", b"v", 0), Errno::EACCES),
        ("removexattr", |k, c, _, f| k.removexattr(c, f, b"user.a"), Errno::EACCES),
        ("getattr", |k, _, _, f| k.getattr(f).map(drop), Errno::EIO),
    ];
    for (what, ask, errno) in asks {
        for checks in [Checks::Kernel, Checks::Own] {
            for caller in [SUPER, USER] {
                let kernel = kernel(checks);
                let dir = kernel.mkdir(&SUPER, ROOT_NODE, b"d", NewMode::new(0o700, 0)).unwrap().node;
                let file = kernel.mknod(&SUPER, dir, b"f", NewMode::new(0o600, 0), 0).unwrap().node;
                kernel.setxattr(&SUPER, file, b"user.a", b"v", 0).unwrap();
                let is_refused = checks == Checks::Own && caller == USER && what != "getattr";
                let expected = if is_refused { Err(errno) } else { Ok(()) };
                assert_eq!(ask(&kernel, &caller, dir, file), expected, "{what} {checks:?} {:?}", caller.who);
            }
        }
    }
}

#[test]
fn access_checks_the_permissions_of_the_caller() {
    let kernel = kernel(Checks::Own);
    let file = kernel.mknod(&SUPER, ROOT_NODE, b"f", NewMode::new(0o640, 0), 0).unwrap().node;
    let cases =
        [(&SUPER, 6, Ok(())), (&SUPER, 1, Err(Errno::EACCES)), (&USER, 4, Err(Errno::EACCES)), (&USER, 0, Ok(()))];
    for (caller, mask, expected) in cases {
        assert_eq!(kernel.access(caller, file, mask), expected, "{:?} {mask}", caller.who);
    }
    let group = Caller::of(5, 0);
    assert_eq!((kernel.access(&group, file, 4), kernel.access(&group, file, 2)), (Ok(()), Err(Errno::EACCES)));
}

#[test]
fn to_execute_a_program_its_caller_needs_the_right_to_execute_and_no_other() {
    const EXEC: u32 = 0o40;
    // The mode of root's program, and whether a user may execute and read it.
    let cases = [(0o711, Ok(()), Err(Errno::EACCES)), (0o744, Err(Errno::EACCES), Ok(())), (0o755, Ok(()), Ok(()))];
    for (mode, executes, reads) in cases {
        let kernel = kernel(Checks::Own);
        let file = kernel.mknod(&SUPER, ROOT_NODE, b"f", NewMode::new(mode, 0), 0).unwrap().node;
        let opened = |caller, flags| kernel.open(caller, file, flags).map(drop);
        assert_eq!((opened(&USER, EXEC), opened(&USER, RDONLY)), (executes, reads), "{mode:o}");
        assert_eq!(opened(&SUPER, EXEC), Ok(()), "{mode:o}");
    }
}

#[test]
fn options_under_which_nobody_checks_are_refused() {
    let options = SessionOptions { checks: Checks::Own, no_open: true, ..SessionOptions::default() };
    let refused = lightfoot_fuse::Session::new(&vfs::Vfs::new(ramfs::RamFs::new()), options);
    assert_eq!(refused.map(drop), Err(Errno::EINVAL));
}

#[test]
fn idmap_with_other_users_is_refused_on_a_host_directory() {
    let session = SessionOptions { idmap: true, ..SessionOptions::default() };
    let options = MountOptions { session, allow_other: true, ..MountOptions::default() };
    let at = tempfile::tempdir().unwrap();
    let vfs = vfs::Vfs::new(hostfs::HostFs::new(at.path(), &hostfs::HostOptions::default()).unwrap());
    let refused = lightfoot_fuse::mount(&vfs, at.path(), &options).map(drop).map_err(|error| error.to_string());
    assert!(refused.as_ref().is_err_and(|text| text.contains("idmap and allow_other on a directory")), "{refused:?}");
    // Without a host that changes behind the kernel, its checks are enough.
    assert!(lightfoot_fuse::check_options(&options, false).is_ok());
}

#[test]
fn a_new_file_has_the_caller_s_owner_group_and_umask() {
    for checks in [Checks::Kernel, Checks::Own] {
        let kernel = kernel(checks);
        kernel.setattr(&SUPER, ROOT_NODE, &chmod(0o777), None).unwrap();
        let caller = Caller::of(5, 6);
        for (number, umask) in [0, 0o022, 0o077, 0o777].into_iter().enumerate() {
            let name = |what: &str| format!("{what}{number}").into_bytes();
            let file = kernel.mknod(&caller, ROOT_NODE, &name("f"), NewMode::new(0o666, umask), 0).unwrap();
            let dir = kernel.mkdir(&caller, ROOT_NODE, &name("d"), NewMode::new(0o777, umask)).unwrap();
            let (made, _) = kernel.create(&caller, ROOT_NODE, &name("c"), NewMode::new(0o640, umask), RDWR).unwrap();
            let link = kernel.symlink(&caller, ROOT_NODE, &name("l"), b"x", &[]).unwrap();
            let modes = [file.attr.mode, dir.attr.mode, made.attr.mode, link.attr.mode & 0o777];
            let expected = [S_IFREG | 0o666 & !umask, S_IFDIR | 0o777 & !umask, S_IFREG | 0o640 & !umask, 0o777];
            assert_eq!(modes, expected, "{checks:?} {umask:o}");
            for entry in [file, dir, made, link] {
                assert_eq!((entry.attr.uid, entry.attr.gid), (5, 6), "{checks:?}");
            }
        }
    }
}

#[test]
fn a_default_acl_replaces_the_umask() {
    for checks in [Checks::Kernel, Checks::Own] {
        let kernel = kernel(checks);
        let dir = kernel.mkdir(&USER, ROOT_NODE, b"d", NewMode::new(0o777, 0));
        let dir =
            if checks == Checks::Own { kernel.mkdir(&SUPER, ROOT_NODE, b"d", NewMode::new(0o777, 0)) } else { dir }
                .unwrap();
        let acl = Acl::from_mode(0o751).to_xattr();
        kernel.setxattr(&SUPER, dir.node, AclKind::Default.xattr_name(), &acl, 0).unwrap();
        let file = kernel.mknod(&USER, dir.node, b"f", NewMode::new(0o666, 0o077), 0).unwrap();
        let inner = kernel.mkdir(&USER, dir.node, b"d", NewMode::new(0o777, 0o077)).unwrap();
        assert_eq!((file.attr.mode & 0o777, inner.attr.mode & 0o777), (0o640, 0o751), "{checks:?}");
        let inherited = kernel.getxattr(&SUPER, inner.node, AclKind::Default.xattr_name());
        assert_eq!(inherited.as_deref(), Ok(acl.as_slice()), "{checks:?}");
    }
}

#[test]
fn new_files_inherit_the_group_of_a_set_group_id_directory() {
    let kernel = kernel(Checks::Kernel);
    let dir = kernel.mkdir(&SUPER, ROOT_NODE, b"d", NewMode::new(0o777, 0)).unwrap().node;
    let set = SetAttr { mode: Some(0o2777), gid: Some(77), ..SetAttr::default() };
    kernel.setattr(&SUPER, dir, &set, None).unwrap();
    let file = kernel.mknod(&USER, dir, b"f", NewMode::new(0o2755, 0), 0).unwrap().attr;
    let inner = kernel.mkdir(&USER, dir, b"d", NewMode::new(0o755, 0)).unwrap().attr;
    assert_eq!(
        (file.gid, file.mode & 0o7777),
        (77, 0o755),
        "the caller is not in the group, so the set-group-id bit goes"
    );
    assert_eq!((inner.gid, inner.mode & 0o7777), (77, 0o2755));
}

#[test]
fn a_write_by_a_user_other_than_root_clears_set_id_bits() {
    type Change = fn(&Kernel, &Caller, u64);
    let changes: [(&str, Change); 5] = [
        ("write", |k, c, node| {
            let opened = k.open(c, node, WRONLY).unwrap();
            assert_eq!(k.write(node, opened.handle, 0, b"x"), Ok(1));
        }),
        ("cut", |k, c, node| {
            k.setattr(c, node, &SetAttr { size: Some(1), ..SetAttr::default() }, None).unwrap();
        }),
        ("cut open", |k, c, node| {
            let opened = k.open(c, node, RDWR).unwrap();
            let set = SetAttr { size: Some(1), ..SetAttr::default() };
            k.setattr(c, node, &set, Some(opened.handle)).unwrap();
        }),
        ("open to cut", |k, c, node| drop(k.open(c, node, WRONLY | 0o1000).unwrap())),
        ("fallocate", |k, c, node| {
            let opened = k.open(c, node, WRONLY).unwrap();
            k.fallocate(c, node, opened.handle, 0, (0, 10)).unwrap();
        }),
    ];
    for (what, change) in changes {
        for checks in [Checks::Kernel, Checks::Own] {
            for (caller, after) in [(SUPER, 0o6777), (USER, 0o777)] {
                let kernel = kernel(checks);
                let node = kernel.file("f").node;
                kernel.setattr(&SUPER, node, &chmod(0o6777), None).unwrap();
                change(&kernel, &caller, node);
                let mode = kernel.getattr(node).unwrap().0.mode & 0o7777;
                assert_eq!(mode, after, "{what} {checks:?} by {:?}", caller.who);
            }
        }
    }
}

#[test]
fn a_new_owner_clears_set_id_bits() {
    for (checks, caller) in [(Checks::Kernel, SUPER), (Checks::Own, SUPER), (Checks::Kernel, USER)] {
        let kernel = kernel(checks);
        let node = kernel.file("f").node;
        kernel.setattr(&SUPER, node, &chmod(0o6755), None).unwrap();
        let set = SetAttr { uid: Some(5), gid: Some(5), ..SetAttr::default() };
        assert_eq!(kernel.setattr(&caller, node, &set, None).unwrap().0.mode & 0o7777, 0o755, "{checks:?}");
    }
}

/// A process with a supplementary group.
pub(crate) struct Member {
    pub(crate) process: Child,
    pub(crate) group: u32,
}

impl Member {
    /// `None` if this process cannot set groups.
    pub(crate) fn new() -> Option<Self> {
        let group = 4242;
        let mut command = Command::new("setpriv");
        command.args(["--groups", "4242", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().ok()?;
        let mut answer = [0];
        process.stdin.as_mut()?.write_all(b"x").ok()?;
        // Its first output shows that it has the groups.
        let read = process.stdout.as_mut()?.read(&mut answer);
        let member = Self { process, group };
        matches!(read, Ok(1)).then_some(member)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_member_of_the_group_keeps_the_set_group_id_bit() {
    let Some(member) = Member::new() else {
        println!("SKIPPED: supplementary groups need setpriv and root");
        return;
    };
    let inside = Caller { pid: member.process.id(), group: None, ..Caller::of(5, 5) };
    for checks in [Checks::Kernel, Checks::Own] {
        for (caller, after) in
            [(inside, 0o2755), (USER, 0o755), (Caller { pid: u32::MAX, ..USER }, 0o755), (SUPER, 0o2755)]
        {
            let kernel = kernel(checks);
            let node = kernel.file("f").node;
            let set = SetAttr { uid: Some(5), gid: Some(member.group), ..SetAttr::default() };
            kernel.setattr(&SUPER, node, &set, None).unwrap();
            let (attr, _) = kernel.setattr(&caller, node, &chmod(0o2755), None).unwrap();
            assert_eq!(attr.mode & 0o7777, after, "{checks:?} {caller:?}");
        }
        // If Lightfoot checks, it has the permissions of the group.
        let kernel = kernel(checks);
        let node = kernel.mknod(&SUPER, ROOT_NODE, b"g", NewMode::new(0o040, 0), 0).unwrap().node;
        kernel.setattr(&SUPER, node, &SetAttr { gid: Some(member.group), ..SetAttr::default() }, None).unwrap();
        assert!(kernel.open(&inside, node, RDONLY).is_ok(), "{checks:?}");
        assert_eq!(kernel.open(&USER, node, RDONLY).is_ok(), checks == Checks::Kernel);
    }
}

#[test]
fn with_writeback_write_permission_is_enough_to_write() {
    let options = SessionOptions { checks: Checks::Own, writeback: true, ..SessionOptions::default() };
    let kernel = Kernel::with(options);
    let node = kernel.mknod(&SUPER, ROOT_NODE, b"f", NewMode::new(0o602, 0), 0).unwrap().node;
    assert!(kernel.open(&USER, node, WRONLY).is_ok());
    assert_eq!(kernel.open(&USER, node, RDWR).map(drop), Err(Errno::EACCES));
    assert_eq!(kernel.open(&USER, node, RDONLY).map(drop), Err(Errno::EACCES));
}

#[test]
fn owners_and_modes_are_shown_with_their_overrides() {
    let mut options =
        SessionOptions { shown: Shown { uid: Some(7), gid: Some(8), umask: Some(0o027) }, ..SessionOptions::default() };
    let kernel = Kernel::with(options.clone());
    let (file, dir) = (kernel.file("f"), kernel.dir("d"));
    kernel.setattr(&SUPER, file.node, &chmod(0o4711), None).unwrap();
    for (node, kind) in [(file.node, S_IFREG), (dir.node, S_IFDIR), (ROOT_NODE, S_IFDIR)] {
        let attr = kernel.getattr(node).unwrap().0;
        assert_eq!((attr.uid, attr.gid, attr.mode), (7, 8, kind | 0o750));
    }
    assert_eq!((file.attr.uid, file.attr.gid, dir.attr.mode), (7, 8, S_IFDIR | 0o750));
    // The files themselves keep their owners and modes.
    let real = kernel.vfs.context().attr(Base::CWD, b"/f", true).unwrap();
    assert_eq!((real.uid, real.gid, real.mode & 0o7777), (0, 0, 0o4711));
    options.shown = Shown::default();
    let kernel = Kernel::with(options);
    let attr = kernel.file("f").attr;
    assert_eq!((attr.uid, attr.gid, attr.mode), (0, 0, S_IFREG | 0o644));
}

#[test]
fn trusted_attributes_are_listed_only_for_root() {
    for checks in [Checks::Kernel, Checks::Own] {
        let kernel = kernel(checks);
        let node = kernel.file("f").node;
        let context = kernel.vfs.context();
        for name in [&b"user.a"[..], b"trusted.b"] {
            context.set_xattr(Base::CWD, b"/f", true, name, b"v", SetXattr::Any).unwrap();
        }
        assert_eq!(kernel.listxattr(&SUPER, node).unwrap().len(), 17, "{checks:?}");
        assert_eq!(kernel.listxattr(&USER, node).unwrap(), b"user.a\0", "{checks:?}");
    }
}

#[test]
fn with_writeback_a_writer_who_does_not_own_the_file_sets_both_times_to_now() {
    let kernel = Kernel::with(SessionOptions { writeback: true, ..SessionOptions::default() });
    let node = kernel.file("f").node;
    // What the kernel sends for `utimes(path, NULL)`.
    let times = SetAttr { atime: Some(SetTime::Now), mtime: Some(SetTime::At(5)), ..SetAttr::default() };
    for (caller, is_kept) in [(SUPER, true), (USER, false)] {
        let (attr, _) = kernel.setattr(&caller, node, &times, None).unwrap();
        assert_eq!(attr.mtime == 5, is_kept, "{caller:?}");
    }
}
