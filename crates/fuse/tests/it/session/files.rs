//! Open files: contents, room, storage, extended attributes.

use crate::session::kernel::{Kernel, PLAIN, RDONLY, RDWR, SUPER, USER, WRONLY};
use lightfoot_fuse::{ROOT_NODE, SessionOptions};
use ramfs::{RamFs, RamLimits};
use vfs::{Base, Errno, MountFlags, OpenFlags, SetAttr, SetTime, Want};

const TRUNC: u32 = OpenFlags::TRUNC.bits();
const APPEND: u32 = OpenFlags::APPEND.bits();

fn read(kernel: &Kernel, node: u64, handle: u64, offset: u64, len: usize) -> Result<Vec<u8>, Errno> {
    let mut buf = vec![0; len];
    let read = kernel.read(node, handle, offset, &mut buf)?;
    buf.truncate(read);
    Ok(buf)
}

fn size(kernel: &Kernel, node: u64) -> u64 {
    kernel.getattr(node).unwrap().0.size
}

#[test]
fn a_handle_allows_what_it_was_opened_for() {
    // Flags, whether the handle reads and writes, and the length of "contents" after the open.
    let cases = [
        (RDONLY, true, false, 8),
        (WRONLY, false, true, 8),
        (RDWR, true, true, 8),
        (RDONLY | TRUNC, true, false, 0),
        (WRONLY | TRUNC, false, true, 0),
        (WRONLY | APPEND, false, true, 8),
    ];
    for (flags, reads, writes, len) in cases {
        let kernel = Kernel::new();
        let (entry, made) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
        assert_eq!(kernel.write(entry.node, made.handle, 0, b"contents"), Ok(8));
        let opened = kernel.open(&SUPER, entry.node, flags).unwrap();
        assert_eq!(size(&kernel, entry.node), len, "{flags:o}");
        let bad = Err(Errno::EBADF);
        let done = read(&kernel, entry.node, opened.handle, 0, 100).map(|data| data.len() as u64);
        assert_eq!(done, if reads { Ok(len) } else { bad }, "{flags:o}");
        let written = kernel.write(entry.node, opened.handle, 2, b"XY");
        assert_eq!(written, if writes { Ok(2) } else { Err(Errno::EBADF) }, "{flags:o}");
        let after = match (writes, flags & APPEND != 0) {
            (false, _) => len,
            (true, true) => 10,
            (true, false) => len.max(4),
        };
        assert_eq!(size(&kernel, entry.node), after, "{flags:o}");
        let cut =
            kernel.setattr(&SUPER, entry.node, &SetAttr { size: Some(1), ..SetAttr::default() }, Some(opened.handle));
        assert_eq!(cut.map(|(attr, _)| attr.size), Ok(1), "{flags:o}: the kernel has checked");
        for handle in [made.handle, opened.handle] {
            kernel.release(handle);
        }
        kernel.forget(entry.node, 1);
        kernel.check_nothing_left("files");
    }
}

#[test]
fn a_length_that_the_file_has_sets_its_times() {
    // The kernel sends `O_TRUNC` as a length, without the file that it opened and without times.
    for (no_open, writeback) in [(false, false), (false, true), (true, false)] {
        let kernel = Kernel::with(SessionOptions { no_open, writeback, ..SessionOptions::default() });
        for len in [0, 5000] {
            for by_handle in [false, true].into_iter().filter(|by_handle| !(*by_handle && no_open)) {
                let what = format!("no_open {no_open}, writeback {writeback}, by handle {by_handle}, {len} bytes");
                let file = kernel.file("f");
                let handle = by_handle.then(|| kernel.open(&SUPER, file.node, RDWR).unwrap().handle);
                let set = |set| kernel.setattr(&SUPER, file.node, &set, handle).unwrap().0;
                set(SetAttr { size: Some(len), ..SetAttr::default() });
                let old = SetAttr { mtime: Some(SetTime::At(1)), ..SetAttr::default() };
                let before = kernel.setattr(&SUPER, file.node, &old, None).unwrap().0;
                assert_eq!((before.mtime, before.blocks), (1, 0), "{what}");
                while prim::clock::now_ns() <= before.ctime {
                    std::thread::yield_now();
                }
                let after = set(SetAttr { size: Some(len), ..SetAttr::default() });
                assert!(after.mtime > before.ctime && after.ctime > before.ctime, "{what}: {before:?} {after:?}");
                assert_eq!((after.size, after.atime), (len, before.atime), "{what}");
                handle.into_iter().for_each(|handle| kernel.release(handle));
                kernel.unlink(&SUPER, ROOT_NODE, b"f").unwrap();
                kernel.forget(file.node, 1);
            }
        }
        kernel.check_nothing_left("times");
    }
}

#[test]
fn every_operation_on_an_unknown_handle_fails_with_ebadf() {
    type Ask = fn(&Kernel, u64, u64) -> Result<(), Errno>;
    let asks: [(&str, Ask); 5] = [
        ("read", |k, n, h| k.read(n, h, 0, &mut [0; 4]).map(drop)),
        ("write", |k, n, h| k.write(n, h, 0, b"x").map(drop)),
        ("fsync", |k, n, h| k.fsync(n, h, false)),
        ("fallocate", |k, n, h| k.fallocate(&SUPER, n, h, 0, (0, 10))),
        ("lseek", |k, n, h| k.lseek(n, h, 0, 3).map(drop)),
    ];
    let kernel = Kernel::new();
    let (entry, closed) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
    kernel.release(closed.handle);
    let opened = kernel.open(&SUPER, entry.node, RDWR).unwrap();
    let directory = kernel.opendir(&SUPER, ROOT_NODE).unwrap();
    assert_ne!(opened.handle, closed.handle);
    for handle in [closed.handle, 0, u64::MAX, opened.handle ^ 1 << 63] {
        for (what, ask) in asks {
            assert_eq!(ask(&kernel, entry.node, handle), Err(Errno::EBADF), "{what} {handle:#x}");
        }
        // A second release does no harm.
        kernel.release(handle);
    }
    assert_eq!(kernel.write(entry.node, opened.handle, 0, b"x"), Ok(1));
    kernel.release(opened.handle);
    kernel.releasedir(directory);
    kernel.forget(entry.node, 1);
    kernel.check_nothing_left("bad handles");
}

#[test]
fn offsets_at_the_limits_have_replies() {
    let kernel = Kernel::new();
    let (entry, opened) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
    let (node, handle) = (entry.node, opened.handle);
    for offset in [i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX] {
        assert_eq!(read(&kernel, node, handle, offset, 100), Err(Errno::EINVAL), "{offset:#x}");
        assert_eq!(kernel.write(node, handle, offset, b"four"), Err(Errno::EINVAL), "{offset:#x}");
        assert!(kernel.fallocate(&SUPER, node, handle, 0, (offset, 100)).is_err(), "{offset:#x}");
        assert_eq!(kernel.lseek(node, handle, offset, 3), Err(Errno::ENXIO), "{offset:#x}");
    }
    for offset in [i64::MAX as u64 - 2, i64::MAX as u64] {
        assert_eq!(read(&kernel, node, handle, offset, 100), Ok(vec![]), "{offset:#x}");
        assert!(kernel.fallocate(&SUPER, node, handle, 0, (offset, 100)).is_err(), "{offset:#x}");
        assert_eq!(kernel.lseek(node, handle, offset, 3), Err(Errno::ENXIO), "{offset:#x}");
        let written = kernel.write(node, handle, offset, b"four");
        assert!(matches!(written, Err(Errno::EFBIG | Errno::ENOSPC) | Ok(2)), "{offset:#x}: {written:?}");
    }
    assert_eq!(kernel.fallocate(&SUPER, node, handle, 0, (0, 0)), Err(Errno::EINVAL));
}

#[test]
fn an_append_in_parts_at_an_offset_without_bound_has_a_reply() {
    let limits = RamLimits { bytes: Some(2 * 4096), ..RamLimits::default() };
    let kernel = Kernel::over(RamFs::with_limits(limits), SessionOptions::default());
    let (entry, opened) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR | APPEND).unwrap();
    // The file system has room for the first part only; the session then writes at the offset behind that part.
    assert_eq!(kernel.write(entry.node, opened.handle, u64::MAX, &[1; 4 * 4096]), Err(Errno::EINVAL));
    assert_eq!(kernel.write(entry.node, opened.handle, i64::MAX as u64, &[1; 4 * 4096]), Ok(2 * 4096));
}

#[test]
fn a_full_file_system_shortens_a_write_and_then_fails_with_enospc() {
    let limits = RamLimits { bytes: Some(4 * 4096), ..RamLimits::default() };
    let kernel = Kernel::over(RamFs::with_limits(limits), SessionOptions::default());
    let (entry, opened) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
    let written = kernel.write(entry.node, opened.handle, 0, &vec![1; 100 * 4096]).unwrap();
    assert!(written > 0 && written <= 4 * 4096, "{written}");
    assert_eq!(size(&kernel, entry.node), written as u64);
    assert_eq!(kernel.write(entry.node, opened.handle, written as u64, &[1; 4096]), Err(Errno::ENOSPC));
    let room = kernel.statfs(ROOT_NODE).unwrap().fs;
    assert_eq!((room.blocks_free, room.blocks_available), (0, 0));
    assert!(room.blocks > 0 && room.files > 0 && room.name_max == 255);
}

#[test]
fn storage_is_allocated_and_freed_and_holes_are_found() {
    const KEEP: u32 = 1;
    const PUNCH: u32 = 2;
    const ZERO: u32 = 16;
    let kernel = Kernel::new();
    let (entry, opened) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
    let (node, handle) = (entry.node, opened.handle);
    assert_eq!(kernel.write(node, handle, 0, &[7; 3 * 4096]), Ok(3 * 4096));
    let seek = |offset, whence| kernel.lseek(node, handle, offset, whence);
    assert_eq!((seek(0, 3), seek(0, 4), seek(3 * 4096, 3)), (Ok(0), Ok(3 * 4096), Err(Errno::ENXIO)));
    kernel.fallocate(&SUPER, node, handle, PUNCH | KEEP, (4096, 4096)).unwrap();
    assert_eq!((seek(0, 4), seek(4096, 3), size(&kernel, node)), (Ok(4096), Ok(8192), 3 * 4096));
    assert_eq!(read(&kernel, node, handle, 4096, 2), Ok(vec![0, 0]));
    kernel.fallocate(&SUPER, node, handle, KEEP, (3 * 4096, 4096)).unwrap();
    assert_eq!(size(&kernel, node), 3 * 4096);
    kernel.fallocate(&SUPER, node, handle, 0, (3 * 4096, 4096)).unwrap();
    assert_eq!(size(&kernel, node), 4 * 4096);
    kernel.fallocate(&SUPER, node, handle, ZERO, (0, 10)).unwrap();
    assert_eq!(read(&kernel, node, handle, 8, 4), Ok(vec![0, 0, 7, 7]));
    for mode in [PUNCH, 8, 32, 64, 1 << 31, PUNCH | ZERO | KEEP] {
        assert_eq!(kernel.fallocate(&SUPER, node, handle, mode, (0, 10)), Err(Errno::EOPNOTSUPP), "{mode}");
    }
    for whence in [0, 1, 2, 5, u32::MAX] {
        assert_eq!(seek(0, whence), Err(Errno::EINVAL), "{whence}");
    }
}

#[test]
fn contents_are_copied_between_open_files() {
    let kernel = Kernel::new();
    let make = |name: &[u8]| kernel.create(&SUPER, ROOT_NODE, name, PLAIN, RDWR).unwrap();
    let ((from, source), (to, target)) = (make(b"from"), make(b"to"));
    kernel.write(from.node, source.handle, 0, b"0123456789").unwrap();
    let reader = kernel.open(&SUPER, to.node, RDONLY).unwrap();
    let copy = |from, to, len, flags| kernel.copy_file_range(&SUPER, from, to, len, flags);
    assert_eq!(copy((source.handle, 2), (target.handle, 3), 4, 0), Ok(4));
    assert_eq!(read(&kernel, to.node, target.handle, 0, 100), Ok(b"\0\0\x002345".to_vec()));
    // Cut at the end; then nothing.
    assert_eq!(copy((source.handle, 8), (target.handle, 0), u64::MAX >> 2, 0), Ok(2));
    assert_eq!(copy((source.handle, 10), (target.handle, 0), 1, 0), Ok(0));
    assert_eq!(read(&kernel, to.node, target.handle, 0, 100), Ok(b"89\x002345".to_vec()));
    assert_eq!(copy((target.handle, 0), (target.handle, 1), 2, 0), Err(Errno::EINVAL), "the ranges overlap");
    assert_eq!(copy((source.handle, 0), (target.handle, 0), 1, 1), Err(Errno::EINVAL), "there are no flags");
    assert_eq!(copy((source.handle, 0), (reader.handle, 0), 1, 0), Err(Errno::EBADF));
    assert_eq!(copy((12_345, 0), (target.handle, 0), 1, 0), Err(Errno::EBADF));
    let far = (target.handle, i64::MAX as u64);
    assert_eq!(copy((source.handle, 0), far, 1, 0), Err(Errno::EOVERFLOW));
    let no_open = Kernel::with(SessionOptions { no_open: true, ..SessionOptions::default() });
    assert_eq!(no_open.copy_file_range(&SUPER, (0, 0), (0, 1), 1, 0), Err(Errno::ENOSYS), "the kernel copies");
}

#[test]
fn with_writeback_a_file_open_for_writing_is_readable() {
    let kernel = Kernel::with(SessionOptions { writeback: true, ..SessionOptions::default() });
    let (entry, made) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, WRONLY).unwrap();
    assert_eq!(kernel.write(entry.node, made.handle, 0, b"contents"), Ok(8));
    assert_eq!(read(&kernel, entry.node, made.handle, 0, 8), Ok(b"contents".to_vec()));
    // The kernel sends the offset of the end.
    let opened = kernel.open(&USER, entry.node, WRONLY | APPEND).unwrap();
    assert_eq!(kernel.write(entry.node, opened.handle, 2, b"XY"), Ok(2));
    assert_eq!(read(&kernel, entry.node, opened.handle, 0, 9), Ok(b"coXYents".to_vec()));
    let opened = kernel.open(&SUPER, entry.node, RDONLY).unwrap();
    assert_eq!(kernel.write(entry.node, opened.handle, 0, b"x"), Err(Errno::EBADF));
}

#[test]
fn without_opens_a_created_file_has_no_handle_for_which_the_kernel_would_send_no_release() {
    let kernel = Kernel::with(SessionOptions { no_open: true, ..SessionOptions::default() });
    let (made, opened) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
    assert_eq!((opened.handle, kernel.open_handles()), (0, 0));
    assert_eq!(kernel.write(made.node, opened.handle, 0, b"contents"), Ok(8));
    assert_eq!(read(&kernel, made.node, opened.handle, 0, 100), Ok(b"contents".to_vec()));
    kernel.unlink(&SUPER, ROOT_NODE, b"f").unwrap();
    assert_eq!(kernel.write(made.node, opened.handle, 8, b"!"), Ok(1));
    kernel.forget(made.node, 1);
    kernel.check_nothing_left("created without opens");
}

#[test]
fn without_opens_files_are_read_and_written_by_node() {
    let kernel = Kernel::with(SessionOptions { no_open: true, ..SessionOptions::default() });
    let entry = kernel.file("f");
    let node = entry.node;
    // The caller is unknown, so the write clears the set-id bits.
    let set = SetAttr { mode: Some(0o6777), ..SetAttr::default() };
    assert_eq!(kernel.setattr(&SUPER, node, &set, None).unwrap().0.mode & 0o7777, 0o6777);
    assert_eq!(kernel.write(node, 0, 0, b"contents"), Ok(8));
    assert_eq!(kernel.getattr(node).unwrap().0.mode & 0o7777, 0o777);
    assert_eq!(read(&kernel, node, 0, 2, 100), Ok(b"ntents".to_vec()));
    assert_eq!(kernel.fsync(node, 0, true), Ok(()));
    assert_eq!(kernel.fallocate(&SUPER, node, 0, 0, (0, 100)), Ok(()));
    assert_eq!(kernel.lseek(node, 0, 0, 3), Ok(0));
    let cut = SetAttr { size: Some(3), ..SetAttr::default() };
    assert_eq!(kernel.setattr(&SUPER, node, &cut, Some(0)).unwrap().0.size, 3);
    // Also without its name. Other handles, and directories, fail.
    kernel.unlink(&SUPER, ROOT_NODE, b"f").unwrap();
    assert_eq!(read(&kernel, node, 0, 0, 100), Ok(b"con".to_vec()));
    assert_eq!(read(&kernel, node, 77, 0, 100), Err(Errno::EBADF));
    assert_eq!(read(&kernel, ROOT_NODE, 0, 0, 100), Err(Errno::EISDIR));
    assert_eq!(kernel.open_handles(), 0);
    kernel.forget(node, 1);
    assert_eq!(read(&kernel, node, 0, 0, 100), Err(Errno::ESTALE));
    kernel.check_nothing_left("no opens");
}

#[test]
fn a_symbolic_link_keeps_its_body() {
    let kernel = Kernel::new();
    let long = vec![b'x'; 4095];
    for (name, body) in [(&b"short"[..], &b"../a"[..]), (b"long", &long)] {
        let link = kernel.symlink(&SUPER, ROOT_NODE, name, body, &[]).unwrap();
        assert_eq!(kernel.readlink(link.node).as_deref(), Ok(body));
        assert_eq!(link.attr.size, body.len() as u64);
        // A lookup does not follow it.
        assert_eq!(kernel.lookup(&SUPER, ROOT_NODE, name).unwrap().node, link.node);
    }
    assert_eq!(kernel.readlink(ROOT_NODE), Err(Errno::EINVAL));
}

#[test]
fn extended_attributes_are_created_replaced_listed_and_removed() {
    let kernel = Kernel::new();
    let node = kernel.file("f").node;
    let get = |name: &[u8]| kernel.getxattr(&SUPER, node, name).map(Vec::from);
    assert_eq!(get(b"user.a"), Err(Errno::ENODATA));
    assert_eq!(kernel.setxattr(&SUPER, node, b"user.a", b"v", 2), Err(Errno::ENODATA));
    assert_eq!(kernel.setxattr(&SUPER, node, b"user.a", b"v", 1), Ok(()));
    assert_eq!(kernel.setxattr(&SUPER, node, b"user.a", b"w", 1), Err(Errno::EEXIST));
    assert_eq!(kernel.setxattr(&SUPER, node, b"user.a", b"w", 2), Ok(()));
    assert_eq!(kernel.setxattr(&SUPER, node, b"user.b", b"", 0), Ok(()));
    for flags in [3, 4, -1] {
        assert_eq!(kernel.setxattr(&SUPER, node, b"user.a", b"w", flags), Err(Errno::EINVAL), "{flags}");
    }
    assert_eq!((get(b"user.a"), get(b"user.b")), (Ok(b"w".to_vec()), Ok(vec![])));
    let mut names = kernel.listxattr(&SUPER, node).unwrap();
    assert_eq!((names.len(), names.pop()), (14, Some(0)));
    let mut names: Vec<&[u8]> = names.split(|byte| *byte == 0).collect();
    names.sort_unstable();
    assert_eq!(names, [b"user.a", b"user.b"]);
    assert_eq!(kernel.removexattr(&SUPER, node, b"user.a"), Ok(()));
    assert_eq!(kernel.removexattr(&SUPER, node, b"user.a"), Err(Errno::ENODATA));
    let most = vec![1; 65536];
    assert_eq!(kernel.setxattr(&SUPER, node, b"user.a", &most, 0), Ok(()));
    assert_eq!(get(b"user.a"), Ok(most));
    assert_eq!(kernel.setxattr(&SUPER, node, b"user.a", &[1; 65537], 0), Err(Errno::E2BIG));
    assert_eq!(kernel.setxattr(&SUPER, node, &[b'u'; 300], b"", 0), Err(Errno::ERANGE));
}

/// Returns when the clock of file times has moved.
fn tick() {
    let before = prim::clock::now_ns();
    while prim::clock::now_ns() == before {
        std::hint::spin_loop();
    }
}

#[test]
fn the_kernel_reads_again_what_it_has_cached_if_the_access_must_be_recorded() {
    let flags = MountFlags::default();
    let cases = [
        (flags, [true, false, true]),
        (MountFlags::NOATIME, [false; 3]),
        (MountFlags::STRICTATIME, [true; 3]),
        (MountFlags::NODIRATIME, [true, false, true]),
    ];
    for (flags, due) in cases {
        let kernel = Kernel::new();
        kernel.vfs.context().remount(Base::CWD, b"/", flags).unwrap();
        let file = kernel.file("f").node;
        let opened = |how: u32| kernel.session.open(&SUPER, file, how).unwrap();
        let reads = || {
            let opened = opened(RDONLY);
            kernel.read(file, opened.handle, 0, &mut [0; 9]).unwrap();
            !opened.keep_cache
        };
        let change = || {
            let opened = opened(WRONLY);
            assert!(opened.keep_cache, "{flags:?}: a write reads nothing");
            kernel.write(file, opened.handle, 0, b"text").unwrap();
        };
        change();
        let first = reads();
        tick();
        // At a time after that of the change.
        reads();
        let second = reads();
        tick();
        change();
        assert_eq!([first, second, reads()], due, "{flags:?}");
        assert!(opened(RDONLY | OpenFlags::NOATIME.bits()).keep_cache);
        let listed = || {
            let directory = kernel.opendir(&SUPER, ROOT_NODE).unwrap();
            let keeps = kernel.keeps_listing(directory);
            kernel.readdir(directory, 0, Want::NAMES, &mut |_| true).unwrap();
            !keeps
        };
        let is_first = listed();
        tick();
        listed();
        let no_dirs = flags == MountFlags::NODIRATIME;
        assert_eq!([is_first, listed()], [due[0] && !no_dirs, due[1]], "{flags:?}: listings");
    }
}
