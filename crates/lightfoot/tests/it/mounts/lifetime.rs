//! How mounts go: busy ones, lazy ones, namespaces, and that what is unmounted is released.

use super::counted_fs::counted;
use super::*;
use std::path::PathBuf;
use std::sync::Arc;

#[test]
fn a_busy_mount_stays_and_its_holders_are_named() {
    let ctx = tree();
    let busy = |ctx: &Context| -> Vec<String> {
        assert_eq!(errno(ctx.unmount("/m", UnmountFlags::default())), is(Errno::EBUSY));
        let holders = ctx.holders("/m").unwrap();
        let mut paths: Vec<_> =
            holders.into_iter().map(|holder| holder.path.into_os_string().into_string().unwrap()).collect();
        paths.sort();
        paths
    };
    assert_eq!(ctx.holders("/m").unwrap(), []);
    let file = ctx.open("/m/file").unwrap();
    assert_eq!(busy(&ctx), ["/m/file"]);
    let dir = ctx.open_dir("/m/dir").unwrap();
    assert_eq!(busy(&ctx), ["/m/dir", "/m/file"]);
    drop(file);
    ctx.write("/m/gone", "").unwrap();
    let gone = ctx.open("/m/gone").unwrap();
    ctx.remove_file("/m/gone").unwrap();
    let named = busy(&ctx);
    assert!(named.contains(&"/m/gone (deleted)".into()) && named.contains(&"/m/dir".into()), "{named:?}");
    drop((dir, gone));
    let other = ctx.fork();
    other.set_current_dir("/m/dir").unwrap();
    assert_eq!(busy(&ctx), ["/m/dir"]);
    let listing = ctx.read_dir("/m").unwrap();
    assert_eq!(busy(&ctx).len(), 2);
    drop(listing);
    other.set_current_dir("/").unwrap();
    let watch = ctx.watch("/m/file", lightfoot::Scope::Directory).unwrap();
    assert_eq!(busy(&ctx), ["/m/file"]);
    drop(watch);
    unmount(&ctx, "/m");
    assert_eq!(names(&ctx, "/m"), Vec::<String>::new());
}

#[test]
fn an_unmount_through_a_link_or_not_as_it_was_asked() {
    let ctx = tree();
    ctx.symlink("/m", "/link").unwrap();
    assert_eq!(errno(ctx.unmount("/link", UnmountFlags::NOFOLLOW)), is(Errno::EINVAL));
    assert_eq!(errno(ctx.unmount("/none", UnmountFlags::default())), is(Errno::ENOENT));
    unmount(&ctx, "/link");
    assert_eq!(ctx.mounts().len(), 1);
}

#[test]
fn what_is_open_survives_a_lazy_unmount_and_is_released_with_its_last_user() {
    let ctx = tree();
    let (fs, counts) = counted();
    ctx.mount(fs, "/a", NONE).unwrap();
    ctx.create_dir("/a/dir").unwrap();
    ctx.write("/a/dir/file", "kept").unwrap();
    mount(&ctx, "/a/dir", "hides");
    let below = ctx.open_dir("/a/dir").unwrap();
    ctx.unmount("/a/dir", UnmountFlags::DETACH).unwrap();
    assert_eq!((names(&below, "."), names(&ctx, "/a/dir")), (vec!["hides".to_owned()], vec!["file".to_owned()]));
    let dir = ctx.open_dir("/a/dir").unwrap();
    let file = ctx.open("/a/dir/file").unwrap();
    ctx.unmount("/a", UnmountFlags::DETACH).unwrap();
    assert_eq!(names(&ctx, "/a"), ["under"]);
    assert_eq!(std::io::read_to_string(&file).unwrap(), "kept");
    dir.write("new", "still").unwrap();
    assert_eq!(dir.read_to_string("../dir/new").unwrap(), "still");
    assert!(dir.path().to_string_lossy().starts_with("(unreachable)"), "{:?}", dir.path());
    // It is in no namespace any more: as a name that has gone. Its `..` ends at its own root.
    assert_eq!(errno(dir.mount(RamFs::new(), ".", NONE)), is(Errno::ENOENT));
    assert_eq!(names(&dir, "../.."), ["dir"]);
    drop(file);
    assert_eq!((counts.evictions(), Arc::strong_count(&counts)), (0, 2));
    drop((dir, below));
    drop(ctx);
    assert_eq!((counts.made(), counts.evictions(), Arc::strong_count(&counts)), (3, 4, 1));
}

#[test]
fn an_unmount_releases_all_that_was_cached_before_it_returns() {
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    ctx.create_dir("/mnt").unwrap();
    let before = vfs.cache_stats();
    for round in 0..3 {
        let (fs, counts) = counted();
        ctx.mount(fs, "/mnt", NONE).unwrap();
        for file in 0..1000 {
            ctx.write(format!("/mnt/{file}"), "x").unwrap();
            assert!(!ctx.exists(format!("/mnt/none-{file}")));
        }
        ctx.hard_link("/mnt/1", "/mnt/alias").unwrap();
        ctx.remove_file("/mnt/0").unwrap();
        ctx.set_current_dir("/mnt").unwrap();
        ctx.set_current_dir("/").unwrap();
        ctx.fork().set_current_dir("/mnt").unwrap();
        unmount(&ctx, "/mnt");
        // The root directory was not made, but goes too.
        assert_eq!((counts.made(), counts.evictions(), Arc::strong_count(&counts)), (1000, 1001, 1), "round {round}");
        assert_eq!(vfs.cache_stats(), before);
    }
}

#[test]
fn a_bind_keeps_its_file_system_when_the_first_mount_goes() {
    let ctx = tree();
    let (fs, counts) = counted();
    ctx.mount(fs, "/a", NONE).unwrap();
    ctx.create_dir("/a/dir").unwrap();
    ctx.write("/a/dir/file", "kept").unwrap();
    ctx.bind("/a/dir", "/b", NONE).unwrap();
    unmount(&ctx, "/a");
    assert_eq!((ctx.read_to_string("/b/file").unwrap(), Arc::strong_count(&counts)), ("kept".into(), 2));
    unmount(&ctx, "/b");
    assert_eq!((counts.evictions(), Arc::strong_count(&counts)), (3, 1));
}

#[test]
fn a_namespace_of_ones_own_is_not_seen_by_others() {
    let ctx = tree();
    ctx.set_current_dir("/m/dir").unwrap();
    let own = ctx.fork();
    own.unshare_mounts().unwrap();
    assert_eq!(own.current_dir().unwrap(), Path::new("/m/dir"));
    mount(&own, "/a", "own");
    mount(&ctx, "/b", "common");
    assert_eq!((names(&own, "/a"), names(&ctx, "/a")), (vec!["own".to_owned()], vec!["under".to_owned()]));
    assert_eq!((names(&own, "/b"), names(&ctx, "/b")), (vec![], vec!["common".to_owned()]));
    // Files are common all the same; flags are not.
    own.write("/m/new", "").unwrap();
    own.remount("/m", MountFlags::RDONLY).unwrap();
    assert_eq!(names(&ctx, "/m"), ["dir", "file", "new"]);
    ctx.write("/m/new", "not read-only").unwrap();
    // What is mounted in one cannot be named by the other, not even by a handle.
    let foreign = ctx.open_dir("/b").unwrap();
    let seen = lightfoot::Dir::from_file(&own, &ctx.open("/b").unwrap()).unwrap();
    assert_eq!(
        (names(&seen, "."), errno(seen.unmount(".", UnmountFlags::default()))),
        (names(&foreign, "."), is(Errno::EINVAL))
    );
    assert_eq!((own.mounts().len(), ctx.mounts().len()), (3, 3));
    // A name is a mount point in any namespace.
    assert_eq!(errno(ctx.remove_dir("/a")), is(Errno::EBUSY));
    unmount(&own, "/a");
    own.set_current_dir("/").unwrap();
    ctx.set_current_dir("/").unwrap();
    unmount(&own, "/m");
    assert_eq!((names(&own, "/m"), names(&ctx, "/m")), (vec![], ["dir", "file", "new"].map(String::from).to_vec()));
}

#[test]
fn a_namespace_that_nobody_sees_any_more_takes_its_mounts_with_it() {
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    ctx.create_dir("/a").unwrap();
    let (fs, counts) = counted();
    let own = ctx.fork();
    own.unshare_mounts().unwrap();
    own.mount(fs, "/a", NONE).unwrap();
    own.write("/a/file", "").unwrap();
    let dir = own.open_dir("/a").unwrap();
    drop(own);
    assert_eq!(names(&dir, "."), ["file"]);
    drop(dir);
    // What was replaced is freed when no thread can be reading it any more, and may own what is freed after that.
    (0..3).for_each(|_| vfs.barrier());
    assert_eq!((counts.evictions(), Arc::strong_count(&counts)), (2, 1));
    ctx.remove_dir("/a").unwrap();
}

#[test]
fn another_root_takes_the_place_of_the_old_one() {
    let ctx = tree();
    ctx.create_dir("/m/old").unwrap();
    let (elsewhere, jail) = (ctx.fork(), ctx.fork());
    jail.chroot("/a").unwrap();
    for (new, old, expected) in [
        ("/a", "/a", Errno::EBUSY),
        ("/m", "/a", Errno::EBUSY),
        ("/m/dir", "/m/old", Errno::EINVAL),
        ("/m/file", "/m/old", Errno::ENOTDIR),
        ("/none", "/m/old", Errno::ENOENT),
    ] {
        assert_eq!(errno(ctx.pivot_root(new, old)), is(expected), "{new} {old}");
    }
    assert_eq!(errno(jail.pivot_root("/", "/")), is(Errno::EBUSY));
    ctx.pivot_root("/m", "/m/old").unwrap();
    assert_eq!(
        (names(&ctx, "/"), names(&ctx, "/old")),
        (["dir", "file", "old"].map(String::from).to_vec(), ["a", "b", "m"].map(String::from).to_vec())
    );
    assert_eq!((ctx.current_dir().unwrap(), ctx.canonicalize("old/a/..").unwrap()), ("/".into(), "/old".into()));
    assert_eq!(ctx.canonicalize("/old/..").unwrap(), Path::new("/"));
    // A context that had the old root keeps it, and sees nothing above.
    assert_eq!((names(&elsewhere, "/"), names(&elsewhere, "/..")), (names(&ctx, "/old"), names(&ctx, "/old")));
    assert_eq!(errno(ctx.unmount("/old", UnmountFlags::default())), is(Errno::EBUSY));
    drop((elsewhere, jail));
    unmount(&ctx, "/old");
    assert_eq!(ctx.mounts().len(), 1);
    assert_eq!(errno(ctx.unmount("/", UnmountFlags::default())), is(Errno::EBUSY));
}

#[test]
fn a_root_that_was_changed_confines_walks_in_mounts_too() {
    let ctx = tree();
    mount(&ctx, "/m/dir", "deep");
    let jail = ctx.fork();
    jail.chroot("/m").unwrap();
    jail.set_current_dir("/dir").unwrap();
    assert_eq!((names(&jail, ".."), names(&jail, "../..")), (names(&ctx, "/m"), names(&ctx, "/m")));
    assert_eq!(
        (jail.current_dir().unwrap(), jail.canonicalize("../../dir/deep").unwrap()),
        ("/dir".into(), "/dir/deep".into())
    );
    assert_eq!(errno(jail.metadata("/a")), is(Errno::ENOENT));
    assert_eq!(
        jail.mounts().iter().map(|info| info.mountpoint.clone()).collect::<Vec<_>>(),
        [PathBuf::from("/"), PathBuf::from("/dir")]
    );
}

#[test]
fn a_question_about_one_of_two_thousand_mounts_is_answered_by_that_one() {
    const MOUNTS: usize = 2_000;
    const SYSTEMS: usize = 20;
    let ctx = Vfs::ram().context();
    let flags_of = |at: usize| if at.is_multiple_of(2) { MountFlags::NOEXEC } else { MountFlags::NODEV };
    for at in 0..MOUNTS {
        ctx.create_dir(format!("/{at}")).unwrap();
        // A few file systems, which differ in their limits, and each shown at many places.
        if at < SYSTEMS {
            let limits = lightfoot::RamLimits { bytes: None, inodes: Some(1000 + at as u64), per_user: None };
            let fs = RamFs::with_options(&RamOptions { limits, ..RamOptions::default() });
            ctx.mount(fs, format!("/{at}"), flags_of(at)).unwrap();
        } else {
            ctx.bind(format!("/{}", at % SYSTEMS), format!("/{at}"), flags_of(at)).unwrap();
        }
    }
    assert_eq!(ctx.mounts().len(), MOUNTS + 1);
    for at in 0..MOUNTS {
        let answer = ctx.statvfs(format!("/{at}")).unwrap();
        let files = 1000 + (at % SYSTEMS) as u64;
        assert_eq!((answer.fs.files, answer.fs.files_free, answer.flags), (files, files - 1, flags_of(at)));
        assert_eq!(answer.dev, ctx.metadata(format!("/{at}")).unwrap().dev());
        assert_eq!(answer.dev, ctx.statvfs(format!("/{}", at % SYSTEMS)).unwrap().dev);
    }
    let (fs, _counts) = counted();
    ctx.mount(fs, "/0", MountFlags::RDONLY).unwrap();
    assert!(ctx.mounts().iter().any(|info| info.type_name == "counted" && info.mountpoint == Path::new("/0")));
    assert_eq!(ctx.open("/0").unwrap().statvfs().unwrap().flags, MountFlags::RDONLY);
    assert_eq!(ctx.statvfs("/20").unwrap().flags, MountFlags::NOEXEC);
}
