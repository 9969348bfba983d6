//! Mounts as a program sees them: where they are, what their flags forbid, how they come and go, and that nothing of
//! them stays.

mod counted_fs;
mod lifetime;
mod racing;

use crate::answers::{errno, is, names};
use counted_fs::FileFs;
use lightfoot::{
    Capabilities, Context, Credentials, Errno, MountFlags, OpenOptions, RamFs, RamOptions, RenameFlags, Resolve,
    UnmountFlags, Vfs, View,
};
use std::path::Path;

const NONE: MountFlags = MountFlags::empty();

fn unmount(view: &View, path: &str) {
    view.unmount(path, UnmountFlags::default()).unwrap();
}

/// Mounts a file system that has a file by the name `mark`.
fn mount(view: &View, path: &str, mark: &str) {
    view.mount(RamFs::new(), path, NONE).unwrap();
    view.write(format!("{path}/{mark}"), mark).unwrap();
}

/// `/a` and `/b`, and one file system at `/m`, which has `dir` and `file`.
fn tree() -> Context {
    let ctx = Vfs::ram().context();
    for dir in ["/a", "/b", "/m"] {
        ctx.create_dir(dir).unwrap();
    }
    ctx.write("/a/under", "under").unwrap();
    mount(&ctx, "/m", "file");
    ctx.create_dir("/m/dir").unwrap();
    ctx
}

/// As Linux' `follow_dotdot`: `..` at the root of a walk crosses a mount on the root, the start of a walk does not.
#[test]
fn dot_dot_at_a_covered_root_leads_into_the_mount() {
    let ctx = tree();
    let covered = ctx.open_dir("/a").unwrap();
    mount(&ctx, "/a", "above");
    let rooted = covered.within(Resolve::IN_ROOT).unwrap();
    assert_eq!(rooted.read("under").unwrap(), b"under");
    assert_eq!(rooted.read("../above").unwrap(), b"above");
    assert_eq!(errno(rooted.read("../under")), is(Errno::ENOENT));
    ctx.symlink("../above", "/a/link").unwrap();
    assert_eq!(rooted.read("../link").unwrap(), b"above");
    let same_mount = covered.within(Resolve::IN_ROOT | Resolve::NO_XDEV).unwrap();
    assert_eq!(errno(same_mount.read("../above")), is(Errno::EXDEV));
}

#[test]
fn a_mount_hides_what_is_below_it_and_another_hides_the_mount() {
    let ctx = tree();
    for (path, shown) in [("/a", "one"), ("/a", "two"), ("/a", "three")] {
        mount(&ctx, path, shown);
        assert_eq!(names(&ctx, path), [shown]);
    }
    for left in ["two", "one", "under"] {
        unmount(&ctx, "/a");
        assert_eq!(names(&ctx, "/a"), [left]);
    }
    assert_eq!(errno(ctx.unmount("/a", UnmountFlags::default())), is(Errno::EINVAL));
    assert_eq!(errno(ctx.unmount("/", UnmountFlags::default())), is(Errno::EBUSY));
    mount(&ctx, "/m/dir", "deep");
    ctx.create_dir("/m/dir/x").unwrap();
    mount(&ctx, "/m/dir/x", "deeper");
    assert_eq!(names(&ctx, "/m/dir/x"), ["deeper"]);
    assert_eq!(errno(ctx.unmount("/m", UnmountFlags::default())), is(Errno::EBUSY));
}

#[test]
fn two_dots_lead_back_across_mounts_and_reverse_paths_too() {
    let ctx = tree();
    mount(&ctx, "/m/dir", "deep");
    ctx.create_dir("/m/dir/x").unwrap();
    for (path, leads_to) in [
        ("/m/..", "/"),
        ("/m/dir/..", "/m"),
        ("/m/dir/x/../..", "/m"),
        ("/m/dir/x/../../..", "/"),
        ("/m/dir/x/../../../../a", "/a"),
        ("/m/dir/x", "/m/dir/x"),
    ] {
        assert_eq!(ctx.canonicalize(path).unwrap(), Path::new(leads_to), "{path}");
        let (a, b) = (ctx.metadata(path).unwrap(), ctx.metadata(leads_to).unwrap());
        assert_eq!((a.dev(), a.ino()), (b.dev(), b.ino()), "{path}");
    }
    ctx.set_current_dir("/m/dir/x").unwrap();
    assert_eq!(ctx.current_dir().unwrap(), Path::new("/m/dir/x"));
    assert_eq!(names(&ctx, ".."), ["deep", "x"]);
    assert_ne!(ctx.metadata("/m").unwrap().dev(), ctx.metadata("/m/dir").unwrap().dev());
}

#[test]
fn a_bound_directory_or_file_is_the_same_at_both_places() {
    let ctx = tree();
    ctx.bind("/m/dir", "/b", NONE).unwrap();
    ctx.write("/b/new", "by b").unwrap();
    assert_eq!(ctx.read_to_string("/m/dir/new").unwrap(), "by b");
    assert_eq!(ctx.metadata("/b/new").unwrap(), ctx.metadata("/m/dir/new").unwrap());
    // Above what is shown is the mount point, not what is above it in the file system.
    assert_eq!((names(&ctx, "/b/.."), ctx.canonicalize("/b/..").unwrap()), (names(&ctx, "/"), "/".into()));
    ctx.write("/a/target", "below").unwrap();
    ctx.bind("/m/file", "/a/target", NONE).unwrap();
    assert_eq!(ctx.read_to_string("/a/target").unwrap(), "file");
    OpenOptions::new().write(true).create(true).truncate(true).open(&ctx, "/a/target").unwrap();
    assert_eq!(ctx.metadata("/m/file").unwrap().len(), 0);
    assert_eq!(errno(ctx.bind("/m/file", "/a", NONE)), is(Errno::ENOTDIR));
    assert_eq!(errno(ctx.bind("/m/dir", "/a/under", NONE)), is(Errno::ENOTDIR));
    unmount(&ctx, "/a/target");
    assert_eq!(ctx.read_to_string("/a/target").unwrap(), "below");
    ctx.mount(FileFs, "/a/target", NONE).unwrap();
    assert_eq!(ctx.read_to_string("/a/target").unwrap(), "alone");
    assert_eq!(errno(ctx.mount(FileFs, "/b", NONE)), is(Errno::ENOTDIR));
    assert_eq!(errno(ctx.mount(RamFs::new(), "/a/under", NONE)), is(Errno::ENOTDIR));
}

#[test]
fn a_recursive_bind_brings_what_is_mounted_below() {
    let ctx = tree();
    mount(&ctx, "/m/dir", "deep");
    ctx.bind("/m", "/a", NONE).unwrap();
    assert_eq!(names(&ctx, "/a/dir"), Vec::<String>::new());
    ctx.bind_recursive("/m", "/b", NONE).unwrap();
    assert_eq!(names(&ctx, "/b/dir"), ["deep"]);
    unmount(&ctx, "/m/dir");
    assert_eq!(names(&ctx, "/b/dir"), ["deep"]);
    assert_eq!(errno(ctx.unmount("/b", UnmountFlags::default())), is(Errno::EBUSY));
    ctx.unmount("/b", UnmountFlags::DETACH).unwrap();
    assert_eq!((names(&ctx, "/b"), ctx.mounts().len()), (vec![], 3));
}

#[test]
fn each_mount_forbids_what_its_own_flags_say() {
    let ctx = tree();
    ctx.write("/m/program", "").unwrap();
    ctx.set_permissions("/m/program", lightfoot::Permissions::from_mode(0o755)).unwrap();
    ctx.mknod("/m/device", lightfoot::fs::S_IFCHR | 0o666, 0x103).unwrap();
    ctx.symlink("file", "/m/link").unwrap();
    ctx.symlink("/m/file", "/into").unwrap();
    // What a mount of these flags at /b answers to: write, make, remove, execute, open a device, follow a link.
    let open_link = |path: &str| errno(ctx.open(path));
    let (yes, rofs, access, looped) = (None, is(Errno::EROFS), is(Errno::EACCES), is(Errno::ELOOP));
    let nobody = is(Errno::ENXIO);
    let cases = [
        (NONE, [yes, yes, yes, yes, nobody, yes]),
        (MountFlags::RDONLY, [rofs, rofs, rofs, yes, nobody, yes]),
        (MountFlags::NOEXEC, [yes, yes, yes, access, nobody, yes]),
        (MountFlags::NODEV, [yes, yes, yes, yes, access, yes]),
        (MountFlags::NOSYMFOLLOW, [yes, yes, yes, yes, nobody, looped]),
        (MountFlags::RDONLY.union(MountFlags::NOSYMFOLLOW), [rofs, rofs, rofs, yes, nobody, looped]),
    ];
    for (flags, expected) in cases {
        ctx.bind("/m", "/b", flags).unwrap();
        let answers = [
            errno(OpenOptions::new().write(true).open(&ctx, "/b/file")),
            errno(ctx.create_dir("/b/made")),
            errno(ctx.remove_dir("/b/made"))
                .map(|raw| if raw == Errno::ENOENT.raw() { Errno::EROFS.raw() } else { raw }),
            errno(ctx.access("/b/program", lightfoot::X_OK)),
            errno(ctx.open("/b/device")),
            open_link("/b/link"),
        ];
        assert_eq!(answers, expected, "{flags:?}");
        assert_eq!(ctx.statvfs("/b/file").unwrap().flags, flags);
        assert_eq!((open_link("/into"), errno(ctx.access("/m/program", lightfoot::X_OK))), (None, None));
        unmount(&ctx, "/b");
    }
}

#[test]
fn every_change_is_refused_through_a_read_only_mount() {
    let ctx = tree();
    ctx.bind("/m", "/b", MountFlags::RDONLY).unwrap();
    let of = ctx.metadata("/m/file").unwrap();
    let none = lightfoot::FileTimes::now();
    let answers = [
        errno(ctx.create_new("/b/new")),
        errno(ctx.create("/b/file")),
        errno(ctx.mknod("/b/new", 0o100_600, 0)),
        errno(ctx.symlink("x", "/b/new")),
        errno(ctx.hard_link("/b/file", "/b/new")),
        errno(ctx.rename("/b/file", "/b/new")),
        errno(ctx.remove_file("/b/file")),
        errno(ctx.remove_dir("/b/dir")),
        errno(ctx.truncate("/b/file", 0)),
        errno(ctx.chown("/b/file", Some(1), None)),
        errno(ctx.set_permissions("/b/file", of.permissions())),
        errno(ctx.set_times("/b/file", none)),
        errno(ctx.set_xattr("/b/file", "user.x", "", lightfoot::SetXattr::Any)),
        errno(ctx.remove_xattr("/b/file", "user.x")),
        errno(ctx.open("/b/file").unwrap().set_times(none)),
        errno(ctx.open("/b/file").unwrap().set_permissions(of.permissions())),
        errno(OpenOptions::new().write(true).custom_flags(0o20_200_000).open(&ctx, "/b")),
        errno(ctx.access("/b/file", lightfoot::W_OK)),
    ];
    assert_eq!(answers, [is(Errno::EROFS); 18]);
    // What is there already is answered first, and reading leaves no trace.
    assert_eq!((errno(ctx.create_dir("/b/dir")), ctx.read("/b/file").unwrap()), (is(Errno::EEXIST), b"file".to_vec()));
    assert_eq!(ctx.metadata("/m/file").unwrap(), of);
}

#[test]
fn accesses_are_recorded_as_each_mount_says() {
    let ctx = tree();
    let read = |flags: MountFlags, path: &str| {
        ctx.bind("/m", "/b", flags).unwrap();
        // Read after the last change already: relatime has no reason to record another access.
        let late = 4_000_000_000_000_000_000;
        ctx.set_times_ns(format!("/m/{path}"), late, 0, true).unwrap();
        if path == "file" {
            drop(ctx.read("/b/file").unwrap())
        } else {
            drop(names(&ctx, "/b/dir"))
        }
        let kept = ctx.metadata(format!("/m/{path}")).unwrap().atime_ns() == late;
        ctx.set_times_ns(format!("/m/{path}"), 0, 0, true).unwrap();
        if path == "file" {
            drop(ctx.read("/b/file").unwrap())
        } else {
            drop(names(&ctx, "/b/dir"))
        }
        unmount(&ctx, "/b");
        (kept, ctx.metadata(format!("/m/{path}")).unwrap().atime_ns() == 0)
    };
    // Whether the time stayed: where it was later than the last change, and where it was before.
    assert_eq!((read(NONE, "file"), read(NONE, "dir")), ((true, false), (true, false)));
    assert_eq!((read(MountFlags::NOATIME, "file"), read(MountFlags::NOATIME, "dir")), ((true, true), (true, true)));
    assert_eq!(
        (read(MountFlags::NODIRATIME, "file"), read(MountFlags::NODIRATIME, "dir")),
        ((true, false), (true, true))
    );
    assert_eq!(read(MountFlags::STRICTATIME, "file"), (false, false));
    assert_eq!(read(MountFlags::RDONLY, "file"), (true, true));
}

#[test]
fn a_mount_is_made_read_only_when_nobody_writes() {
    let ctx = tree();
    let file = OpenOptions::new().append(true).open(&ctx, "/m/file").unwrap();
    assert_eq!(errno(ctx.remount("/m", MountFlags::RDONLY)), is(Errno::EBUSY));
    let again = file.try_clone().unwrap();
    drop(file);
    assert_eq!(errno(ctx.remount("/m", MountFlags::RDONLY)), is(Errno::EBUSY));
    drop(again);
    ctx.remount("/m", MountFlags::RDONLY).unwrap();
    assert_eq!(errno(ctx.write("/m/file", "")), is(Errno::EROFS));
    assert_eq!(errno(ctx.remount("/m/dir", NONE)), is(Errno::EINVAL));
    ctx.remount("/m", NONE).unwrap();
    ctx.write("/m/file", "again").unwrap();
}

#[test]
fn a_mount_moves_with_what_is_mounted_on_it() {
    let ctx = tree();
    mount(&ctx, "/m/dir", "deep");
    let dir = ctx.open_dir("/m/dir").unwrap();
    ctx.move_mount("/m", "/b").unwrap();
    assert_eq!(
        (names(&ctx, "/m"), names(&ctx, "/b/dir"), dir.path()),
        (vec![], vec!["deep".to_owned()], "/b/dir".into())
    );
    for (from, to, expected) in [
        ("/b", "/b/dir", Errno::ELOOP),
        ("/a", "/m", Errno::EINVAL),
        ("/", "/m", Errno::EBUSY),
        ("/b", "/a/under", Errno::EINVAL),
        ("/b", "/none", Errno::ENOENT),
    ] {
        assert_eq!(errno(ctx.move_mount(from, to)), is(expected), "{from} to {to}");
    }
    assert_eq!(names(&ctx, "/b"), ["dir", "file"]);
}

#[test]
fn names_do_not_cross_mounts_and_mount_points_stay() {
    let ctx = tree();
    ctx.bind("/m", "/b", NONE).unwrap();
    for (from, to) in [("/m/file", "/a/new"), ("/a/under", "/m/new"), ("/m/file", "/b/new"), ("/b/file", "/m/new")] {
        assert_eq!((errno(ctx.rename(from, to)), errno(ctx.hard_link(from, to))), (is(Errno::EXDEV), is(Errno::EXDEV)));
    }
    ctx.bind("/a/under", "/m/file", NONE).unwrap();
    let busy = is(Errno::EBUSY);
    let answers = [
        errno(ctx.remove_dir("/m")),
        errno(ctx.rename("/m", "/new")),
        errno(ctx.rename("/a", "/m")),
        errno(ctx.rename_with("/a", "/m", RenameFlags::EXCHANGE)),
        errno(ctx.remove_file("/m/file")),
        errno(ctx.remove_file("/b/file")),
        errno(ctx.rename("/m/file", "/m/new")),
    ];
    assert_eq!(answers, [busy; 7]);
    assert_eq!(errno(ctx.rename_with("/a", "/m", RenameFlags::NOREPLACE)), is(Errno::EEXIST));
    // What is above a mount point moves, and the mount with it.
    mount(&ctx, "/m/dir", "deep");
    ctx.create_dir("/m/above").unwrap();
    unmount(&ctx, "/m/dir");
    ctx.rename("/m/dir", "/m/above/dir").unwrap();
    mount(&ctx, "/m/above/dir", "deep");
    ctx.rename("/m/above", "/m/moved").unwrap();
    assert_eq!(names(&ctx, "/m/moved/dir"), ["deep"]);
    assert!(ctx.mounts().iter().any(|info| info.mountpoint == Path::new("/m/moved/dir")));
}

#[test]
fn a_walk_that_may_not_cross_mounts_does_not() {
    let ctx = tree();
    ctx.symlink("/m/file", "/a/into").unwrap();
    ctx.symlink("/a", "/m/out").unwrap();
    let stay = |path: &str| ctx.open_dir(path).unwrap().within(Resolve::NO_XDEV).unwrap();
    let out = is(Errno::EXDEV);
    for (start, path, expected) in [
        ("/", "a/under", None),
        ("/", "m", out),
        ("/", "m/file", out),
        ("/", "a/into", out),
        ("/m", "file", None),
        ("/m", "..", out),
        ("/m", "dir/..", None),
        ("/m", "dir/../../a", out),
        ("/m", "out", out),
        ("/m", "/m/file", out),
    ] {
        assert_eq!(errno(stay(start).metadata(path)), expected, "{path} from {start}");
    }
    assert_eq!((errno(stay("/").write("m/x", "")), errno(stay("/").write("a/x", ""))), (out, None));
    // A scope that is not limited to one mount takes the mounts below it in.
    let scoped = ctx.root_dir().unwrap().scoped();
    assert_eq!((errno(scoped.metadata("m/dir/../../a")), errno(scoped.metadata("m/../.."))), (None, out));
}

#[test]
fn mounts_are_listed_as_a_context_sees_them() {
    let ctx = tree();
    ctx.bind("/m/dir", "/b", MountFlags::RDONLY).unwrap();
    let list = |ctx: &Context| -> Vec<(String, String, u32)> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        ctx.mounts().iter().map(|info| (text(&info.root), text(&info.mountpoint), info.flags.bits())).collect()
    };
    let row = |root: &str, at: &str, flags| (root.to_owned(), at.to_owned(), flags);
    let mut all = list(&ctx);
    all.sort();
    assert_eq!(all, [row("/", "/", 0), row("/", "/m", 0), row("/dir", "/b", 1)]);
    let infos = ctx.mounts();
    assert!(infos.iter().all(|info| info.parent_id == infos[0].id), "{infos:?}");
    assert_eq!(infos.iter().filter(|info| info.dev == ctx.metadata("/m").unwrap().dev()).count(), 2);
    let jail = ctx.fork();
    jail.chroot("/m").unwrap();
    assert_eq!(list(&jail), [row("/", "/", 0)]);
}

#[test]
fn mounting_takes_a_capability_and_so_does_another_root() {
    let ctx = tree();
    let user = ctx.with_credentials(Credentials::user(5, 5, &[]));
    let all = [
        errno(user.mount(RamFs::new(), "/a", NONE)),
        errno(user.bind("/m", "/a", NONE)),
        errno(user.bind_recursive("/m", "/a", NONE)),
        errno(user.move_mount("/m", "/a")),
        errno(user.remount("/m", MountFlags::RDONLY)),
        errno(user.unmount("/m", UnmountFlags::default())),
        errno(user.pivot_root("/m", "/m")),
        errno(user.unshare_mounts()),
        errno(user.chroot("/m")),
    ];
    assert_eq!(all, [is(Errno::EPERM); 9]);
    let mut may = Credentials::user(5, 5, &[]);
    may.capabilities = Capabilities::SYS_ADMIN.union(Capabilities::SYS_CHROOT);
    user.set_credentials(may);
    user.mount(RamFs::with_options(&RamOptions { uid: 5, ..RamOptions::default() }), "/a", NONE).unwrap();
    user.write("/a/mine", "").unwrap();
    user.chroot("/a").unwrap();
    assert_eq!(names(&user, "/"), ["mine"]);
}

#[test]
fn an_unmount_waits_for_namespaces_that_go_meanwhile_and_they_do_not_wait_for_it() {
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    ctx.create_dir("/m").unwrap();
    ctx.mount(RamFs::new(), "/m", NONE).unwrap();
    for _ in 0..20 {
        let other = ctx.fork();
        // The second copy replaces the first, which is freed with the state that held it.
        other.unshare_mounts().unwrap();
        other.unshare_mounts().unwrap();
        let held = ctx.open_dir("/m").unwrap();
        assert_eq!(errno(ctx.unmount("/m", lightfoot::UnmountFlags::default())), is(Errno::EBUSY));
        drop(held);
    }
    vfs.barrier();
    ctx.unmount("/m", lightfoot::UnmountFlags::default()).unwrap();
}

#[test]
fn a_reflink_that_fails_makes_no_file() {
    let ctx = tree();
    assert_eq!(errno(ctx.reflink("/a/under", "/m/new")), is(Errno::EXDEV));
    assert!(!ctx.exists("/m/new"));
    assert_eq!(errno(ctx.reflink("/m/file", "/m/file")), is(Errno::EEXIST));
    assert_eq!(errno(ctx.reflink("/m", "/m/new")), is(Errno::EINVAL));
    ctx.set_permissions("/m/file", lightfoot::Permissions::from_mode(0o640)).unwrap();
    ctx.reflink("/m/file", "/m/new").unwrap();
    ctx.write("/m/file", "other").unwrap();
    assert_eq!(
        (ctx.read_to_string("/m/new").unwrap(), ctx.metadata("/m/new").unwrap().mode()),
        ("file".into(), 0o100_640)
    );
    // Reads and writes between two file systems.
    assert_eq!(ctx.copy("/m/file", "/a/copy").unwrap(), 5);
    assert_eq!(ctx.read_to_string("/a/copy").unwrap(), "other");
}
