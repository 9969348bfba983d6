//! Locks in the tree, by their owners.

use crate::kernel::{Kernel, SUPER};
use lightfoot_fuse::{FileLock, SessionOptions};
use std::thread;
use vfs::{Base, Errno, LockKind, LockWait, MountFlags, OpenFlags};

fn lock(kind: LockKind, start: u64, end: u64) -> FileLock {
    FileLock { kind, start, end }
}

const TO_END: u64 = i64::MAX as u64;

fn case() -> (Kernel, u64) {
    let kernel = Kernel::with(SessionOptions { locks: true, ..SessionOptions::default() });
    let node = kernel.file("f").node;
    (kernel, node)
}

#[test]
fn owners_conflict_as_in_fcntl_and_see_the_conflicting_lock() {
    use LockKind::{Exclusive, Shared, Unlock};
    // The lock of one owner, that of another, and whether they conflict.
    let cases = [
        (lock(Shared, 0, 9), lock(Shared, 0, 9), false),
        (lock(Shared, 0, 9), lock(Exclusive, 9, 9), true),
        (lock(Shared, 0, 9), lock(Exclusive, 10, 20), false),
        (lock(Exclusive, 0, 9), lock(Shared, 5, TO_END), true),
        (lock(Exclusive, 0, TO_END), lock(Shared, 1 << 40, 1 << 41), true),
        (lock(Exclusive, 5, u64::MAX), lock(Exclusive, 0, 4), false),
        (lock(Exclusive, 5, u64::MAX), lock(Exclusive, 0, TO_END), true),
        (lock(Unlock, 0, TO_END), lock(Exclusive, 0, TO_END), false),
    ];
    for (first, second, conflicts) in cases {
        let (kernel, node) = case();
        let label = format!("{first:?}, {second:?}");
        assert_eq!(kernel.setlk(&SUPER, node, 1, first, false), Ok(()), "{label}");
        // A lock to the end of the file ends at the kernel's last byte.
        let in_the_way = FileLock { end: first.end.min(TO_END), ..first };
        assert_eq!(kernel.getlk(&SUPER, node, 2, second), Ok(conflicts.then_some(in_the_way)), "{label}");
        assert_eq!(kernel.getlk(&SUPER, node, 1, second), Ok(None), "{label}: one's own is not in the way");
        let taken = if conflicts { Err(Errno::EAGAIN) } else { Ok(()) };
        assert_eq!(kernel.setlk(&SUPER, node, 2, second, false), taken, "{label}");
        // Locks on another file do not conflict.
        let other = kernel.file("other").node;
        assert_eq!(kernel.setlk(&SUPER, other, 2, second, false), Ok(()), "{label}");
        for (node, owner) in [(node, 1), (node, 2), (other, 2)] {
            assert_eq!(kernel.flush(node, owner), Ok(()));
        }
        kernel.forget(node, 1);
        kernel.forget(other, 1);
        kernel.check_nothing_left(&label);
    }
}

#[test]
fn an_owner_s_locks_go_when_it_closes_the_file() {
    let (kernel, node) = case();
    let all = lock(LockKind::Exclusive, 0, TO_END);
    for flock in [false, true] {
        let opened = kernel.open(&SUPER, node, 2).unwrap();
        assert_eq!(kernel.setlk(&SUPER, node, 1, all, false), Ok(()));
        assert_eq!(kernel.setlk(&SUPER, node, 2, all, false), Err(Errno::EAGAIN));
        assert_eq!(kernel.flush(node, 3), Ok(()), "another's close");
        assert_eq!(kernel.setlk(&SUPER, node, 2, all, false), Err(Errno::EAGAIN));
        if flock {
            kernel.release(node, opened.handle, Some(1));
        } else {
            assert_eq!(kernel.flush(node, 1), Ok(()));
            kernel.release(node, opened.handle, None);
        }
        assert_eq!(kernel.setlk(&SUPER, node, 2, all, false), Ok(()));
        assert_eq!(kernel.flush(node, 2), Ok(()));
    }
    kernel.forget(node, 1);
    kernel.check_nothing_left("closed");
}

#[test]
fn a_waiting_owner_gets_the_lock_when_it_is_released() {
    let (kernel, node) = case();
    let all = lock(LockKind::Exclusive, 0, TO_END);
    let none = lock(LockKind::Unlock, 0, TO_END);
    for closes in [false, true] {
        assert_eq!(kernel.setlk(&SUPER, node, 1, all, false), Ok(()));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| kernel.setlk(&SUPER, node, 2, all, true));
            if closes {
                kernel.flush(node, 1).unwrap();
            } else {
                kernel.setlk(&SUPER, node, 1, none, false).unwrap();
            }
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
        assert_eq!(kernel.setlk(&SUPER, node, 1, all, false), Err(Errno::EAGAIN));
        kernel.flush(node, 1).unwrap();
        kernel.flush(node, 2).unwrap();
    }
    kernel.forget(node, 1);
    kernel.check_nothing_left("waited");
}

#[test]
fn other_users_of_the_tree_see_the_locks() {
    let (kernel, node) = case();
    let file = kernel.vfs.context().open(Base::CWD, b"/f", OpenFlags::RDWR, 0).unwrap();
    assert_eq!(kernel.setlk(&SUPER, node, 1, lock(LockKind::Exclusive, 0, 9), false), Ok(()));
    assert_eq!(file.lock_range(LockKind::Shared, 5..20, LockWait::Never), Err(Errno::EAGAIN));
    file.lock_range(LockKind::Shared, 10..20, LockWait::Never).unwrap();
    let found = kernel.getlk(&SUPER, node, 2, lock(LockKind::Exclusive, 10, TO_END)).unwrap();
    assert_eq!(found, Some(lock(LockKind::Shared, 10, 19)));
}

#[test]
fn invalid_ranges_fail() {
    let (kernel, node) = case();
    for (start, end) in [(5, 4), (u64::MAX, 0), (i64::MAX as u64, 0)] {
        let lock = lock(LockKind::Exclusive, start, end);
        assert_eq!(kernel.setlk(&SUPER, node, 1, lock, false), Err(Errno::EINVAL), "{start} {end}");
        assert_eq!(kernel.getlk(&SUPER, node, 1, lock), Err(Errno::EINVAL), "{start} {end}");
    }
}

#[test]
fn a_file_on_a_read_only_mount_can_have_shared_locks() {
    let (kernel, node) = case();
    kernel.vfs.context().remount(Base::CWD, b"/", MountFlags::RDONLY).unwrap();
    assert_eq!(kernel.setlk(&SUPER, node, 1, lock(LockKind::Shared, 0, 9), false), Ok(()));
    assert_eq!(kernel.getlk(&SUPER, node, 2, lock(LockKind::Exclusive, 0, 9)).map(|found| found.is_some()), Ok(true));
    kernel.flush(node, 1).unwrap();
    kernel.flush(node, 2).unwrap();
}

#[test]
fn without_the_option_the_kernel_keeps_the_locks() {
    let kernel = Kernel::new();
    let node = kernel.file("f").node;
    let lock = lock(LockKind::Shared, 0, 9);
    assert_eq!(kernel.setlk(&SUPER, node, 1, lock, false), Err(Errno::ENOSYS));
    assert_eq!(kernel.getlk(&SUPER, node, 1, lock), Err(Errno::ENOSYS));
    assert_eq!(kernel.flush(node, 1), Err(Errno::ENOSYS));
}
