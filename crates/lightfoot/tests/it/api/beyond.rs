//! What `std::fs` does not have, or does not promise.

use crate::answers::{errno, is};
use lightfoot::{
    Allocate, Context, Credentials, Errno, EventKind, FileTimes, LockKind, LockWait, MountFlags, Permissions, RamFs,
    RamLimits, RamOptions, RenameFlags, Resolve, Scope, SetXattr, UnmountFlags, Vfs, Watch,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

const O_DIRECTORY: u32 = 0o200_000;
const O_NOATIME: u32 = 0o1_000_000;
const O_PATH: u32 = 0o10_000_000;
const O_TMPFILE: u32 = 0o20_000_000 | O_DIRECTORY;

#[test]
fn a_copy_keeps_holes_and_the_length() {
    let ctx = Vfs::ram().context();
    const MIB: u64 = 1 << 20;
    // Where data is, and how long the file.
    let cases: [(&[u64], u64); 5] =
        [(&[], 0), (&[], 3 * MIB), (&[0], 5), (&[MIB], 3 * MIB), (&[0, 2 * MIB, 5 * MIB + 4095], 6 * MIB + 1)];
    for (data, len) in cases {
        let file = ctx.create("/from").unwrap();
        data.iter().for_each(|&at| file.write_all_at(b"x", at).unwrap());
        file.set_len(len).unwrap();
        ctx.set_permissions("/from", Permissions::from_mode(0o4751)).unwrap();
        ctx.write("/to", vec![1; 10_000]).unwrap();
        assert_eq!(ctx.copy("/from", "/to").unwrap(), len);
        let (from, to) = (ctx.metadata("/from").unwrap(), ctx.metadata("/to").unwrap());
        assert_eq!(
            (to.len(), to.blocks(), to.mode()),
            (len, from.blocks(), from.mode() & !0o4000 | to.mode() & 0o4000)
        );
        assert!(ctx.read("/from").unwrap() == ctx.read("/to").unwrap(), "{data:?} {len}");
    }
}

#[test]
fn storage_is_reserved_punched_and_found() {
    let ctx = Vfs::ram().context();
    let file = ctx.create_new("/file").unwrap();
    file.allocate(Allocate::Reserve, false, 0, 3 * 4096).unwrap();
    assert_eq!((file.metadata().unwrap().len(), file.metadata().unwrap().blocks()), (3 * 4096, 24));
    file.allocate(Allocate::PunchHole, true, 4096, 4096).unwrap();
    assert_eq!(file.metadata().unwrap().blocks(), 16);
    assert_eq!((file.seek_hole(0).unwrap(), file.seek_data(4097).unwrap()), (4096, 8192));
    assert_eq!(io::Seek::stream_position(&mut &file).unwrap(), 8192);
    assert_eq!(errno(file.seek_data(3 * 4096)), is(Errno::ENXIO));
    assert_eq!(errno(file.allocate(Allocate::Zero, false, 0, 0)), is(Errno::EINVAL));
    assert!(file.statvfs().unwrap().fs.block_size == 4096);
}

#[test]
fn an_unnamed_file_gets_its_name_later() {
    let ctx = Vfs::ram().context();
    let mut options = lightfoot::OpenOptions::new();
    let mut file = options.write(true).read(true).custom_flags(O_TMPFILE).open(&ctx, "/").unwrap();
    file.write_all(b"made in secret").unwrap();
    assert_eq!((file.metadata().unwrap().nlink(), ctx.read_dir("/").unwrap().count()), (0, 0));
    ctx.hard_link_file(&file, "/name").unwrap();
    assert_eq!(ctx.read_to_string("/name").unwrap(), "made in secret");
    assert_eq!(errno(ctx.hard_link_file(&file, "/name")), is(Errno::EEXIST));
}

#[test]
fn places_are_neither_read_nor_locked() {
    let ctx = Vfs::ram().context();
    ctx.write("/file", "text").unwrap();
    let mut place = lightfoot::OpenOptions::new().read(true).custom_flags(O_PATH).open(&ctx, "/file").unwrap();
    assert_eq!(place.metadata().unwrap().len(), 4);
    let all = [
        errno(place.read(&mut [0; 1])),
        errno(place.lock()),
        errno(place.sync_all()),
        errno(place.get_xattr("user.x")),
        errno(place.seek_data(0)),
    ];
    assert_eq!(all, [is(Errno::EBADF); 5]);
    let user = ctx.with_credentials(Credentials::user(1, 1, &[]));
    let opened = lightfoot::OpenOptions::new().read(true).custom_flags(O_NOATIME).open(&user, "/file");
    assert_eq!(errno(opened), is(Errno::EPERM));
}

#[test]
fn ranges_are_locked_by_open_files() {
    let ctx = Vfs::ram().context();
    let a = ctx.create_new("/file").unwrap();
    let b = lightfoot::OpenOptions::new().read(true).write(true).open(&ctx, "/file").unwrap();
    a.lock_range(LockKind::Exclusive, 10..20, LockWait::Never).unwrap();
    assert_eq!(errno(b.lock_range(LockKind::Shared, 15..16, LockWait::Never)), is(Errno::EAGAIN));
    let found = b.test_lock(LockKind::Shared, 0..u64::MAX).unwrap().unwrap();
    assert_eq!((found.kind, found.start, found.end), (LockKind::Exclusive, 10, 20));
    let same = a.try_clone().unwrap();
    assert_eq!(same.test_lock(LockKind::Exclusive, 0..100).unwrap(), None);
    drop(a);
    assert_eq!(errno(b.lock_range(LockKind::Shared, 15..16, LockWait::Never)), is(Errno::EAGAIN));
    drop(same);
    b.lock_range(LockKind::Exclusive, 15..16, LockWait::Forever).unwrap();
}

#[test]
fn extended_attributes_go_by_path_by_link_and_by_file() {
    let ctx = Vfs::ram().context();
    ctx.write("/file", "").unwrap();
    ctx.symlink("file", "/link").unwrap();
    ctx.set_xattr("/link", "user.a", "1", SetXattr::Create).unwrap();
    assert_eq!(errno(ctx.set_xattr("/file", "user.a", "2", SetXattr::Create)), is(Errno::EEXIST));
    assert_eq!(errno(ctx.set_xattr("/file", "user.b", "2", SetXattr::Replace)), is(Errno::ENODATA));
    let file = ctx.open("/file").unwrap();
    assert_eq!(
        (ctx.get_xattr("/file", "user.a").unwrap(), file.get_xattr(b"user.a").unwrap()),
        (vec![b'1'], vec![b'1'])
    );
    assert_eq!(errno(ctx.lset_xattr("/link", "user.a", "1", SetXattr::Any)), is(Errno::EPERM));
    ctx.lset_xattr("/link", "trusted.t", "of the link", SetXattr::Any).unwrap();
    assert_eq!(ctx.lget_xattr("/link", "trusted.t").unwrap(), b"of the link");
    assert_eq!(
        (ctx.llist_xattrs("/link").unwrap(), ctx.list_xattrs("/link").unwrap()),
        (vec!["trusted.t".into()], vec!["user.a".into()])
    );
    assert_eq!(file.list_xattrs().unwrap(), ["user.a"]);
    ctx.lremove_xattr("/link", "trusted.t").unwrap();
    file.set_xattr("user.c", "", SetXattr::Any).unwrap();
    file.remove_xattr("user.c").unwrap();
    ctx.remove_xattr("/file", "user.a").unwrap();
    assert_eq!(errno(ctx.get_xattr("/file", "user.a")), is(Errno::ENODATA));
}

#[test]
fn a_write_of_several_buffers_is_one_write() {
    let ctx = Vfs::ram().context();
    const LINE: usize = 64;
    let write = |byte: u8| {
        let mut file = lightfoot::OpenOptions::new().append(true).create(true).open(&ctx, "/log").unwrap();
        let (head, tail) = ([byte; LINE / 2], [byte; LINE / 2]);
        for _ in 0..500 {
            let both = [io::IoSlice::new(&head), io::IoSlice::new(&tail)];
            assert_eq!(file.write_vectored(&both).unwrap(), LINE);
        }
    };
    std::thread::scope(|scope| (b'a'..=b'd').for_each(|byte| drop(scope.spawn(move || write(byte)))));
    let log = ctx.read("/log").unwrap();
    assert_eq!(log.len(), 4 * 500 * LINE);
    assert!(log.chunks(LINE).all(|line| line.iter().all(|byte| *byte == line[0])), "two writes were mixed");
}

#[test]
fn names_are_exchanged_and_not_replaced() {
    let ctx = Vfs::ram().context();
    ctx.write("/a", "a").unwrap();
    ctx.create_dir("/b").unwrap();
    assert_eq!(errno(ctx.rename_with("/a", "/b", RenameFlags::NOREPLACE)), is(Errno::EEXIST));
    ctx.rename_with("/a", "/b", RenameFlags::EXCHANGE).unwrap();
    assert!(ctx.is_dir("/a") && ctx.is_file("/b"));
}

#[test]
fn a_watch_tells_what_happens_below() {
    let ctx = Vfs::ram().context();
    ctx.create_dir_all("/dir/sub").unwrap();
    let watch = ctx.watch("/dir", Scope::Subtree).unwrap();
    ctx.write("/dir/sub/file", "x").unwrap();
    ctx.remove_file("/dir/sub/file").unwrap();
    let mut told = Vec::new();
    while let Some(event) = watch.try_next() {
        told.push((event.kind, event.path));
    }
    let expected = [EventKind::Created, EventKind::Modified, EventKind::Deleted];
    assert_eq!(told, expected.map(|kind| (kind, "sub/file".into())));
}

/// Whether `poll(2)` reports the watch's descriptor as readable within a time.
fn is_readable(watch: &Watch, within: Duration) -> bool {
    let timeout = Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
    let descriptor = watch.descriptor().unwrap();
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&timeout)).unwrap() == 1
}

#[test]
fn a_watch_is_readable_in_an_event_loop_while_events_are_queued() {
    let ctx = Vfs::ram().context();
    let watch = ctx.watch("/", Scope::Directory).unwrap();
    ctx.create_dir("/before").unwrap();
    assert!(is_readable(&watch, Duration::ZERO), "queued before there was a descriptor");
    assert_eq!(watch.try_next().unwrap().path, Path::new("before"));
    assert!(!is_readable(&watch, Duration::ZERO));
    ctx.create_dir("/one").unwrap();
    ctx.create_dir("/two").unwrap();
    assert!(is_readable(&watch, Duration::ZERO));
    assert_eq!(watch.try_next().unwrap().path, Path::new("one"));
    assert!(is_readable(&watch, Duration::ZERO), "another is queued");
    assert_eq!(watch.next(None).unwrap().path, Path::new("two"));
    assert!(!is_readable(&watch, Duration::ZERO) && watch.try_next().is_none());
    std::thread::scope(|scope| {
        scope.spawn(|| ctx.create_dir("/later").unwrap());
        assert!(is_readable(&watch, Duration::from_secs(60)));
    });
    assert_eq!(watch.iter(Some(Duration::ZERO)).map(|event| event.path).collect::<Vec<_>>(), [Path::new("later")]);
}

#[test]
fn no_event_is_lost_to_a_loop_that_waits_for_the_descriptor_alone() {
    const CHANGES: usize = 2000;
    let ctx = Vfs::ram().context();
    let watch = ctx.watch("/", Scope::Directory).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..CHANGES).for_each(|n| ctx.mknod(format!("/{n}"), 0o644, 0).unwrap()));
        let mut seen = 0;
        while seen < CHANGES {
            assert!(is_readable(&watch, Duration::from_secs(60)), "{seen} events");
            seen += watch.iter(Some(Duration::ZERO)).count();
        }
    });
    assert!(!is_readable(&watch, Duration::ZERO));
}

#[test]
fn the_events_of_a_watch_end_with_its_file_system() {
    let ctx = Vfs::ram().context();
    ctx.create_dir("/mnt").unwrap();
    ctx.mount(RamFs::new(), "/mnt", MountFlags::default()).unwrap();
    let watch = ctx.watch("/mnt", Scope::Subtree).unwrap();
    ctx.create_dir("/mnt/dir").unwrap();
    ctx.unmount("/mnt", UnmountFlags::DETACH).unwrap();
    let kinds = std::thread::scope(|scope| {
        scope.spawn(|| watch.iter(None).map(|event| event.kind).collect::<Vec<_>>()).join().unwrap()
    });
    assert_eq!(kinds, [EventKind::Created, EventKind::Unmounted]);
}

#[test]
fn limits_of_a_walk_come_with_the_options_too() {
    let ctx = Vfs::ram().context();
    ctx.create_dir("/dir").unwrap();
    ctx.write("/dir/file", "").unwrap();
    ctx.symlink("file", "/dir/link").unwrap();
    let open = |limits, path: &str| errno(lightfoot::OpenOptions::new().read(true).resolve(limits).open(&ctx, path));
    assert_eq!(open(Resolve::NO_SYMLINKS, "/dir/link"), is(Errno::ELOOP));
    assert_eq!(open(Resolve::NO_SYMLINKS, "/dir/file"), None);
    assert_eq!(open(Resolve::BENEATH, "/dir/file"), is(Errno::EXDEV));
    assert_eq!(open(Resolve::IN_ROOT, "../dir/file"), None);
    assert_eq!(open(Resolve::BENEATH.union(Resolve::IN_ROOT), "dir/file"), is(Errno::EINVAL));
}

#[test]
fn a_tree_in_memory_is_made_with_limits_and_an_owner() {
    let limits = RamLimits { bytes: Some(8192), inodes: Some(3), per_user: None };
    let vfs = Vfs::ram_with(RamOptions { mode: 0o1777, uid: 5, gid: 6, limits, case_insensitive: true });
    let ctx: Context = vfs.context();
    let of = ctx.metadata("/").unwrap();
    assert_eq!((of.mode() & 0o7777, of.uid(), of.gid()), (0o1777, 5, 6));
    ctx.write("/File", vec![0; 8192]).unwrap();
    assert_eq!(ctx.metadata("/fILE").unwrap().len(), 8192);
    assert_eq!(errno(ctx.write("/more", "x")), is(Errno::ENOSPC));
    assert_eq!(errno(ctx.create_dir("/third")), is(Errno::ENOSPC));
}

#[test]
fn a_file_in_memory_keeps_the_time_when_it_was_made() {
    let ctx = Vfs::ram().context();
    let begin = SystemTime::now() - Duration::from_secs(1);
    ctx.mknod("/first", 0o644, 0).unwrap();
    let born = ctx.metadata("/first").unwrap().created().unwrap();
    assert!(begin < born && born <= SystemTime::now());
    assert_eq!(born, ctx.metadata("/first").unwrap().modified().unwrap(), "all times begin with one");
    ctx.write("/first", "x").unwrap();
    // Nothing changes it: other times, contents, other names, the end of the first name, beside whose inode a slot is used again.
    let file = lightfoot::OpenOptions::new().write(true).open(&ctx, "/first").unwrap();
    let later = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH).set_accessed(SystemTime::UNIX_EPOCH);
    file.set_times(later).unwrap();
    file.set_len(100).unwrap();
    ctx.hard_link("/first", "/second").unwrap();
    ctx.remove_file("/first").unwrap();
    for name in 0..200 {
        ctx.write(format!("/other{name}"), "x").unwrap();
    }
    ctx.rename("/second", "/third").unwrap();
    ctx.chown("/third", Some(5), Some(6)).unwrap();
    assert_eq!(ctx.metadata("/third").unwrap().created().unwrap(), born);
    assert_eq!(ctx.metadata_many(&["/third"])[0].as_ref().unwrap().created().unwrap(), born);
    assert_eq!(file.metadata().unwrap().created().unwrap(), born);
    assert!(ctx.open_dir("/").unwrap().scoped().dir_metadata().unwrap().created().unwrap() <= born);
    // A file that gets the slot of one that ended has another time.
    ctx.remove_file("/third").unwrap();
    drop(file);
    // The clock of files may be coarse.
    while ctx.write("/tick", "x").is_ok() && ctx.metadata("/tick").unwrap().modified().unwrap() <= born {}
    ctx.write("/next", "x").unwrap();
    assert!(ctx.metadata("/next").unwrap().created().unwrap() > born);
}

#[test]
fn a_file_of_the_host_says_that_the_time_of_its_making_is_unknown() {
    let dir = std::env::temp_dir();
    let vfs = Vfs::host(&dir).unwrap();
    assert_eq!(vfs.context().metadata("/").unwrap().created().unwrap_err().kind(), io::ErrorKind::Unsupported);
}

#[test]
fn what_a_person_sees_has_paths_and_modes_and_no_addresses() {
    let ctx = Vfs::ram().context();
    ctx.create_dir_all("/a/b").unwrap();
    ctx.write("/a/f", "x").unwrap();
    ctx.chown("/a/f", Some(7), Some(8)).unwrap();
    let dir = ctx.open_dir("/a").unwrap().scoped();
    let file = lightfoot::OpenOptions::new().read(true).open(&ctx, "/a/f").unwrap();
    let metadata = format!("{:?}", ctx.metadata("/a/f").unwrap());
    let start = "Metadata { file_type: File, permissions: Permissions { mode: 0o100644 (-rw-r--r--) }, len: 1, nlink: 1, uid: 7, gid: 8, ";
    assert!(metadata.starts_with(start), "{metadata}");
    assert_eq!(format!("{dir:?}"), r#"Dir { path: "/a", limits: Resolve(BENEATH) }"#);
    assert_eq!(format!("{file:?}"), r#"File { place: lightfoot:"/a/f", flags: OpenFlags(0x0), .. }"#);
    assert_eq!(format!("{:?}", ctx.read_dir("/a").unwrap()), r#"ReadDir("/a")"#);
    ctx.set_current_dir("/a/b").unwrap();
    ctx.set_credentials(Credentials::user(7, 8, &[9]));
    let context = r#"Context { current_dir: "/a/b", credentials: Credentials { uid: 7, gid: 8, groups: Some([9]), capabilities: Capabilities(0x0) }, umask: 0o022, .. }"#;
    assert_eq!(format!("{ctx:?}"), context);
    ctx.set_credentials(Credentials::root());
    assert!(format!("{ctx:?}").contains("Capabilities(CHOWN | DAC_OVERRIDE | "));
    assert_eq!(format!("{:?}", Vfs::ram()), r#"Vfs { root: "lightfoot", mounts: 1 }"#);
}
