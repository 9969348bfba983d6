//! Locks in the tree, by their owners.

use crate::kernel::{Kernel, SUPER};
use lightfoot_fuse::{Caller, FileLock, Gauge, SessionOptions};
use std::process::{Command, Stdio};
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
        assert_eq!(kernel.setlk(&SUPER, node, 1, first), Ok(()), "{label}");
        // A lock to the end of the file ends at the kernel's last byte.
        let in_the_way = FileLock { end: first.end.min(TO_END), ..first };
        assert_eq!(kernel.getlk(&SUPER, node, 2, second), Ok(conflicts.then_some(in_the_way)), "{label}");
        assert_eq!(kernel.getlk(&SUPER, node, 1, second), Ok(None), "{label}: one's own is not in the way");
        let taken = if conflicts { Err(Errno::EAGAIN) } else { Ok(()) };
        assert_eq!(kernel.setlk(&SUPER, node, 2, second), taken, "{label}");
        // Locks on another file do not conflict.
        let other = kernel.file("other").node;
        assert_eq!(kernel.setlk(&SUPER, other, 2, second), Ok(()), "{label}");
        for (node, owner) in [(node, 1), (node, 2), (other, 2)] {
            assert_eq!(kernel.flush(node, 0, owner), Ok(()));
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
    for _ in 0..2 {
        assert_eq!(kernel.setlk(&SUPER, node, 1, all), Ok(()));
        assert_eq!(kernel.setlk(&SUPER, node, 2, all), Err(Errno::EAGAIN));
        assert_eq!(kernel.flush(node, 0, 3), Ok(()), "another's close");
        assert_eq!(kernel.setlk(&SUPER, node, 2, all), Err(Errno::EAGAIN));
        assert_eq!(kernel.flush(node, 0, 1), Ok(()));
        assert_eq!(kernel.setlk(&SUPER, node, 2, all), Ok(()));
        assert_eq!(kernel.flush(node, 0, 2), Ok(()));
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
        assert_eq!(kernel.setlk(&SUPER, node, 1, all), Ok(()));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait(&kernel, &SUPER, (node, 2), all));
            if closes {
                kernel.flush(node, 0, 1).unwrap();
            } else {
                kernel.setlk(&SUPER, node, 1, none).unwrap();
            }
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
        assert_eq!(kernel.setlk(&SUPER, node, 1, all), Err(Errno::EAGAIN));
        kernel.flush(node, 0, 1).unwrap();
        kernel.flush(node, 0, 2).unwrap();
    }
    kernel.forget(node, 1);
    kernel.check_nothing_left("waited");
}

/// SETLKW.
fn wait(kernel: &Kernel, caller: &Caller, place: (u64, u64), lock: FileLock) -> Result<(), Errno> {
    kernel.setlk_waiting(caller, place, lock, &kernel.lock_waiter(caller)?)
}

/// Returns when so many requests wait.
fn until_waiting(kernel: &Kernel, count: u64) {
    while kernel.metrics().get(Gauge::LockWaiters) != count {
        thread::yield_now();
    }
}

#[test]
fn owners_that_wait_for_each_other_get_edeadlk() {
    // Owners 1, 2 .. have a byte each; each waits for the next one's, and the last one for the first.
    for owners in [2, 3, 5] {
        let (kernel, node) = case();
        let byte = |number: u64| lock(LockKind::Exclusive, number, number);
        for owner in 1..=owners {
            kernel.setlk(&SUPER, node, owner, byte(owner)).unwrap();
        }
        // Each gives all up when it has got its lock, or an error.
        let turn = &|owner| {
            let end = wait(&kernel, &SUPER, (node, owner), byte(owner % owners + 1));
            kernel.flush(node, 0, owner).unwrap();
            end
        };
        let ends: Vec<_> = thread::scope(|scope| {
            let waiters: Vec<_> = (1..=owners).map(|owner| scope.spawn(move || turn(owner))).collect();
            waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect()
        });
        let deadlocks = ends.iter().filter(|end| **end == Err(Errno::EDEADLK)).count();
        let others = ends.iter().filter(|end| end.is_ok()).count();
        assert!(deadlocks >= 1 && deadlocks + others == ends.len(), "{ends:?}");
        assert_eq!(kernel.metrics().get(Gauge::LockWaiters), 0);
    }
}

#[test]
fn a_request_ends_with_its_process() {
    let (kernel, node) = case();
    let all = lock(LockKind::Exclusive, 0, TO_END);
    kernel.setlk(&SUPER, node, 1, all).unwrap();
    let mut process = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let caller = Caller { pid: process.id(), ..SUPER };
    thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&kernel, &caller, (node, 2), all));
        until_waiting(&kernel, 1);
        process.kill().unwrap();
        assert_eq!(waiter.join().unwrap(), Err(Errno::EINTR));
    });
    process.wait().unwrap();
    // A process that does not exist.
    assert_eq!(wait(&kernel, &Caller { pid: process.id(), ..SUPER }, (node, 2), all), Err(Errno::EINTR));
}

#[test]
fn the_number_of_requests_that_wait_is_limited_for_each_user_and_for_all() {
    let (kernel, _) = case();
    let mut waiters = Vec::new();
    for uid in 0..4 {
        let caller = Caller { uid, gid: 0, pid: 0 };
        waiters.extend((0..64).map(|_| kernel.lock_waiter(&caller).unwrap()));
        assert_eq!(kernel.lock_waiter(&caller).map(drop), Err(Errno::ENOLCK), "{uid}");
    }
    let other = Caller { uid: 9, gid: 0, pid: 0 };
    assert_eq!(kernel.lock_waiter(&other).map(drop), Err(Errno::ENOLCK));
    waiters.truncate(100);
    assert_eq!(kernel.lock_waiter(&other).map(drop), Ok(()));
    drop(waiters);
    assert_eq!(kernel.metrics().get(Gauge::LockWaiters), 0);
}

#[test]
fn other_users_of_the_tree_see_the_locks() {
    let (kernel, node) = case();
    let file = kernel.vfs.context().open(Base::CWD, b"/f", OpenFlags::RDWR, 0).unwrap();
    assert_eq!(kernel.setlk(&SUPER, node, 1, lock(LockKind::Exclusive, 0, 9)), Ok(()));
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
        assert_eq!(kernel.setlk(&SUPER, node, 1, lock), Err(Errno::EINVAL), "{start} {end}");
        assert_eq!(kernel.getlk(&SUPER, node, 1, lock), Err(Errno::EINVAL), "{start} {end}");
    }
}

#[test]
fn a_file_on_a_read_only_mount_can_have_shared_locks() {
    let (kernel, node) = case();
    kernel.vfs.context().remount(Base::CWD, b"/", MountFlags::RDONLY).unwrap();
    assert_eq!(kernel.setlk(&SUPER, node, 1, lock(LockKind::Shared, 0, 9)), Ok(()));
    assert_eq!(kernel.getlk(&SUPER, node, 2, lock(LockKind::Exclusive, 0, 9)).map(|found| found.is_some()), Ok(true));
    kernel.flush(node, 0, 1).unwrap();
    kernel.flush(node, 0, 2).unwrap();
}

#[test]
fn without_the_option_the_kernel_keeps_the_locks() {
    let kernel = Kernel::new();
    let node = kernel.file("f").node;
    let lock = lock(LockKind::Shared, 0, 9);
    assert_eq!(kernel.setlk(&SUPER, node, 1, lock), Err(Errno::ENOSYS));
    assert_eq!(kernel.getlk(&SUPER, node, 1, lock), Err(Errno::ENOSYS));
    assert_eq!(kernel.flush(node, 0, 1), Err(Errno::ENOSYS));
}
