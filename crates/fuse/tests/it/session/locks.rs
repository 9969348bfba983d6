//! Locks in the tree, by their owners.

use crate::session::kernel::{Kernel, SUPER};
use lightfoot_fuse::{Caller, FileLock, Gauge, LockFamily, LockOwner, SessionOptions};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use vfs::{Base, Errno, LockKind, LockWait, MountFlags, OpenFlags};

fn lock(kind: LockKind, start: u64, end: u64) -> FileLock {
    FileLock { kind, start, end, family: LockFamily::Ranges, pid: 0 }
}

/// A lock of `flock(2)`.
fn flock(kind: LockKind) -> FileLock {
    FileLock { family: LockFamily::Whole, ..lock(kind, 0, TO_END) }
}

/// The owner on the node, without an open file.
fn of(node: u64, owner: u64) -> LockOwner {
    LockOwner { node, owner, handle: 0 }
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
        assert_eq!(kernel.setlk(&SUPER, of(node, 1), first), Ok(()), "{label}");
        // A lock to the end of the file ends at the kernel's last byte.
        let in_the_way = FileLock { end: first.end.min(TO_END), ..first };
        assert_eq!(kernel.getlk(&SUPER, of(node, 2), second), Ok(conflicts.then_some(in_the_way)), "{label}");
        assert_eq!(kernel.getlk(&SUPER, of(node, 1), second), Ok(None), "{label}: one's own is not in the way");
        let taken = if conflicts { Err(Errno::EAGAIN) } else { Ok(()) };
        assert_eq!(kernel.setlk(&SUPER, of(node, 2), second), taken, "{label}");
        // Locks on another file do not conflict.
        let other = kernel.file("other").node;
        assert_eq!(kernel.setlk(&SUPER, of(other, 2), second), Ok(()), "{label}");
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
        assert_eq!(kernel.setlk(&SUPER, of(node, 1), all), Ok(()));
        assert_eq!(kernel.setlk(&SUPER, of(node, 2), all), Err(Errno::EAGAIN));
        assert_eq!(kernel.flush(node, 0, 3), Ok(()), "another's close");
        assert_eq!(kernel.setlk(&SUPER, of(node, 2), all), Err(Errno::EAGAIN));
        assert_eq!(kernel.flush(node, 0, 1), Ok(()));
        assert_eq!(kernel.setlk(&SUPER, of(node, 2), all), Ok(()));
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
        assert_eq!(kernel.setlk(&SUPER, of(node, 1), all), Ok(()));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| wait(&kernel, &SUPER, 1, of(node, 2), all));
            if closes {
                kernel.flush(node, 0, 1).unwrap();
            } else {
                kernel.setlk(&SUPER, of(node, 1), none).unwrap();
            }
            assert_eq!(waiter.join().unwrap(), Ok(()));
        });
        assert_eq!(kernel.setlk(&SUPER, of(node, 1), all), Err(Errno::EAGAIN));
        kernel.flush(node, 0, 1).unwrap();
        kernel.flush(node, 0, 2).unwrap();
    }
    kernel.forget(node, 1);
    kernel.check_nothing_left("waited");
}

/// SETLKW with the number `unique`. The channel gets the reply.
fn ask(kernel: &Kernel, caller: &Caller, unique: u64, owner: LockOwner, lock: FileLock) -> Receiver<Result<(), Errno>> {
    let (answered, answer) = channel();
    let answered = Box::new(move |done| answered.send(done).unwrap());
    kernel.setlk_waiting(caller, unique, owner, lock, answered);
    answer
}

/// SETLKW; waits for the reply.
fn wait(kernel: &Kernel, caller: &Caller, unique: u64, owner: LockOwner, lock: FileLock) -> Result<(), Errno> {
    ask(kernel, caller, unique, owner, lock).recv().unwrap()
}

#[test]
fn owners_that_wait_for_each_other_get_edeadlk() {
    // Owners 1, 2 .. have a byte each; each waits for the next one's, and the last one for the first.
    for owners in [2, 3, 5] {
        let (kernel, node) = case();
        let byte = |number: u64| lock(LockKind::Exclusive, number, number);
        for owner in 1..=owners {
            kernel.setlk(&SUPER, of(node, owner), byte(owner)).unwrap();
        }
        // Each gives all up when it has got its lock, or an error.
        let turn = &|owner| {
            let end = wait(&kernel, &SUPER, owner, of(node, owner), byte(owner % owners + 1));
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
fn an_interrupt_ends_a_request_that_waits_or_that_comes_after_it_and_no_other() {
    for lock in [lock(LockKind::Exclusive, 0, TO_END), flock(LockKind::Exclusive)] {
        let (kernel, node) = case();
        kernel.setlk(&SUPER, of(node, 1), lock).unwrap();
        let reply = ask(&kernel, &SUPER, 10, of(node, 2), lock);
        kernel.interrupt(11).unwrap();
        assert_eq!((reply.try_recv(), kernel.metrics().get(Gauge::LockWaiters)), (Err(TryRecvError::Empty), 1));
        kernel.interrupt(10).unwrap();
        assert_eq!((reply.try_recv(), kernel.metrics().get(Gauge::LockWaiters)), (Ok(Err(Errno::EINTR)), 0));
        assert_eq!(ask(&kernel, &SUPER, 11, of(node, 3), lock).try_recv(), Ok(Err(Errno::EINTR)), "before its request");
        kernel.interrupt(10).unwrap();
        // The interrupt of a request that has its lock.
        let reply = ask(&kernel, &SUPER, 12, of(node, 4), lock);
        kernel.setlk(&SUPER, of(node, 1), FileLock { kind: LockKind::Unlock, ..lock }).unwrap();
        kernel.interrupt(12).unwrap();
        assert_eq!(reply.recv(), Ok(Ok(())));
        assert_eq!(
            kernel.setlk(&SUPER, of(node, 1), lock),
            Err(Errno::EAGAIN),
            "owner 4 has it, and the others wait no more"
        );
    }
}

#[test]
fn many_interrupts_of_other_requests_take_no_room() {
    let (kernel, node) = case();
    let all = lock(LockKind::Exclusive, 0, TO_END);
    kernel.setlk(&SUPER, of(node, 1), all).unwrap();
    (0..10_000).for_each(|unique| kernel.interrupt(unique).unwrap());
    assert_eq!(ask(&kernel, &SUPER, 9_999, of(node, 2), all).try_recv(), Ok(Err(Errno::EINTR)));
    let reply = ask(&kernel, &SUPER, 0, of(node, 2), all);
    assert_eq!(reply.try_recv(), Err(TryRecvError::Empty), "that interrupt was forgotten");
    assert_eq!(ask(&kernel, &SUPER, 0, of(node, 3), all).try_recv(), Ok(Err(Errno::EIO)), "a number that waits");
}

#[test]
fn the_end_of_the_session_ends_the_requests_that_wait() {
    let (kernel, node) = case();
    for lock in [lock(LockKind::Exclusive, 0, TO_END), flock(LockKind::Exclusive)] {
        kernel.setlk(&SUPER, of(node, 1), lock).unwrap();
    }
    let ranges = ask(&kernel, &SUPER, 1, of(node, 2), lock(LockKind::Shared, 0, 9));
    let whole = ask(&kernel, &SUPER, 2, of(node, 2), flock(LockKind::Shared));
    kernel.end();
    assert_eq!([ranges.try_recv(), whole.try_recv()], [Ok(Err(Errno::EINTR)); 2]);
    kernel.check_nothing_left("ended");
}

#[test]
fn an_owner_that_waits_and_gets_a_lock_by_another_thread_is_searched_again() {
    let byte = |number| lock(LockKind::Exclusive, number, number);
    let (kernel, node) = case();
    // Owner 1 has byte 1, owner 2 byte 2. A thread of owner 1 waits for byte 2, owner 2 for byte 3, which 3 has.
    (1..=3).for_each(|owner| kernel.setlk(&SUPER, of(node, owner), byte(owner)).unwrap());
    let first = ask(&kernel, &SUPER, 1, of(node, 1), byte(2));
    let second = ask(&kernel, &SUPER, 2, of(node, 2), byte(3));
    kernel.flush(node, 0, 9).unwrap();
    assert_eq!([first.try_recv(), second.try_recv()], [Err(TryRecvError::Empty); 2]);
    // The other thread of owner 1 gets byte 3 with owner 3: now 2 waits for 1.
    kernel.setlk(&SUPER, of(node, 3), lock(LockKind::Shared, 3, 3)).unwrap();
    kernel.setlk(&SUPER, of(node, 1), lock(LockKind::Shared, 3, 3)).unwrap();
    let ends = [first.try_recv(), second.try_recv()];
    assert_eq!(ends.iter().filter(|end| **end == Ok(Err(Errno::EDEADLK))).count(), 1, "{ends:?}");
    assert_eq!(ends.iter().filter(|end| **end == Err(TryRecvError::Empty)).count(), 1, "{ends:?}");
}

#[test]
fn the_number_of_requests_that_wait_is_limited_for_each_user_and_for_all() {
    let (kernel, node) = case();
    let all = lock(LockKind::Exclusive, 0, TO_END);
    kernel.setlk(&SUPER, of(node, 1), all).unwrap();
    let mut unique = 0;
    let mut try_one = |uid| {
        unique += 1;
        ask(&kernel, &Caller::of(uid, 0), unique, of(node, unique + 1), all)
    };
    let mut waiting = Vec::new();
    for uid in 0..4 {
        waiting.extend((0..64).map(|_| try_one(uid)));
        assert_eq!(try_one(uid).try_recv(), Ok(Err(Errno::ENOLCK)), "{uid}");
    }
    assert_eq!(try_one(9).try_recv(), Ok(Err(Errno::ENOLCK)));
    kernel.interrupt(100).unwrap();
    let last = try_one(9);
    assert_eq!((last.try_recv(), kernel.metrics().get(Gauge::LockWaiters)), (Err(TryRecvError::Empty), 256));
    kernel.end();
    assert!(waiting.iter().chain([&last]).all(|reply| reply.recv() == Ok(Err(Errno::EINTR))));
    assert_eq!(kernel.metrics().get(Gauge::LockWaiters), 0);
}

#[test]
fn locks_of_flock_and_of_fcntl_do_not_meet() {
    let (kernel, node) = case();
    kernel.setlk(&SUPER, of(node, 1), flock(LockKind::Exclusive)).unwrap();
    kernel.setlk(&SUPER, of(node, 2), lock(LockKind::Exclusive, 0, TO_END)).unwrap();
    assert_eq!(kernel.setlk(&SUPER, of(node, 2), flock(LockKind::Shared)), Err(Errno::EAGAIN));
    assert_eq!(kernel.setlk(&SUPER, of(node, 1), lock(LockKind::Shared, 0, 0)), Err(Errno::EAGAIN));
    let file = kernel.vfs.context().open(Base::CWD, b"/f", OpenFlags::RDWR, 0).unwrap();
    assert_eq!(file.flock(LockKind::Shared, LockWait::Never), Err(Errno::EAGAIN), "another user of the tree");
    kernel.setlk(&SUPER, of(node, 1), flock(LockKind::Unlock)).unwrap();
    assert_eq!(file.flock(LockKind::Shared, LockWait::Never), Ok(()));
    assert_eq!(
        kernel.setlk(&SUPER, of(node, 1), lock(LockKind::Shared, 0, 0)),
        Err(Errno::EAGAIN),
        "the other lock stays"
    );
}

#[test]
fn a_lock_ends_with_the_open_file_that_has_it() {
    let (kernel, node) = case();
    let by = |handle, owner| LockOwner { node, owner, handle };
    for lock in [flock(LockKind::Exclusive), lock(LockKind::Exclusive, 0, 9)] {
        for (handle, flock_owner) in [(7, None), (8, Some(1))] {
            kernel.setlk(&SUPER, by(7, 1), lock).unwrap();
            kernel.flush(node, 7, 5).unwrap();
            kernel.release_locks(node, 9, Some(4));
            assert_eq!(kernel.setlk(&SUPER, by(9, 2), lock), Err(Errno::EAGAIN), "the file of another ended");
            let waiting = ask(&kernel, &SUPER, 1, by(9, 2), lock);
            kernel.release_locks(node, handle, flock_owner);
            assert_eq!(waiting.try_recv(), Ok(Ok(())));
            kernel.release_locks(node, 9, None);
        }
    }
    kernel.forget(node, 1);
    kernel.check_nothing_left("released");
}

#[test]
fn a_close_during_a_wait_ends_the_owner_s_locks_and_not_its_wait() {
    let (kernel, node) = case();
    let byte = |number| lock(LockKind::Exclusive, number, number);
    kernel.setlk(&SUPER, of(node, 1), byte(1)).unwrap();
    kernel.setlk(&SUPER, of(node, 2), byte(2)).unwrap();
    let waiting = ask(&kernel, &SUPER, 1, of(node, 2), byte(1));
    kernel.flush(node, 0, 2).unwrap();
    assert_eq!(kernel.setlk(&SUPER, of(node, 3), byte(2)), Ok(()));
    kernel.flush(node, 0, 1).unwrap();
    assert_eq!(waiting.try_recv(), Ok(Ok(())));
    assert_eq!(kernel.setlk(&SUPER, of(node, 3), byte(1)), Err(Errno::EAGAIN), "it has the lock");
    kernel.flush(node, 0, 2).unwrap();
    assert_eq!(kernel.setlk(&SUPER, of(node, 3), byte(1)), Ok(()));
}

#[test]
fn the_process_of_a_lock_is_found() {
    let (kernel, node) = case();
    kernel.setlk(&SUPER, of(node, 1), FileLock { pid: 41, ..lock(LockKind::Shared, 0, 4) }).unwrap();
    kernel.setlk(&SUPER, of(node, 2), FileLock { pid: 42, ..lock(LockKind::Shared, 5, 9) }).unwrap();
    let found = |start, end| kernel.getlk(&SUPER, of(node, 3), lock(LockKind::Exclusive, start, end)).unwrap().unwrap();
    assert_eq!((found(0, 9).pid, found(5, 9).pid), (41, 42));
}

#[test]
fn other_users_of_the_tree_see_the_locks() {
    let (kernel, node) = case();
    let file = kernel.vfs.context().open(Base::CWD, b"/f", OpenFlags::RDWR, 0).unwrap();
    assert_eq!(kernel.setlk(&SUPER, of(node, 1), lock(LockKind::Exclusive, 0, 9)), Ok(()));
    assert_eq!(file.lock_range(LockKind::Shared, 5..20, LockWait::Never), Err(Errno::EAGAIN));
    file.lock_range(LockKind::Shared, 10..20, LockWait::Never).unwrap();
    let found = kernel.getlk(&SUPER, of(node, 2), lock(LockKind::Exclusive, 10, TO_END)).unwrap();
    assert_eq!(found, Some(lock(LockKind::Shared, 10, 19)));
}

#[test]
fn invalid_ranges_fail() {
    let (kernel, node) = case();
    for (start, end) in [(5, 4), (u64::MAX, 0), (i64::MAX as u64, 0)] {
        let lock = lock(LockKind::Exclusive, start, end);
        assert_eq!(kernel.setlk(&SUPER, of(node, 1), lock), Err(Errno::EINVAL), "{start} {end}");
        assert_eq!(kernel.getlk(&SUPER, of(node, 1), lock), Err(Errno::EINVAL), "{start} {end}");
    }
}

#[test]
fn a_file_on_a_read_only_mount_can_have_shared_locks() {
    let (kernel, node) = case();
    kernel.vfs.context().remount(Base::CWD, b"/", MountFlags::RDONLY).unwrap();
    assert_eq!(kernel.setlk(&SUPER, of(node, 1), lock(LockKind::Shared, 0, 9)), Ok(()));
    assert_eq!(
        kernel.getlk(&SUPER, of(node, 2), lock(LockKind::Exclusive, 0, 9)).map(|found| found.is_some()),
        Ok(true)
    );
    kernel.flush(node, 0, 1).unwrap();
    kernel.flush(node, 0, 2).unwrap();
}

#[test]
fn without_the_option_the_kernel_keeps_the_locks() {
    let kernel = Kernel::new();
    let node = kernel.file("f").node;
    let lock = lock(LockKind::Shared, 0, 9);
    assert_eq!(kernel.setlk(&SUPER, of(node, 1), lock), Err(Errno::ENOSYS));
    assert_eq!(kernel.getlk(&SUPER, of(node, 1), lock), Err(Errno::ENOSYS));
    assert_eq!(kernel.flush(node, 0, 1), Err(Errno::ENOSYS));
}

/// A user whose locks are limited.
const USER: Caller = Caller::of(50_001, 50_001);

#[test]
fn the_locks_of_each_user_are_limited_and_those_of_others_are_not() {
    use LockKind::{Exclusive, Shared, Unlock};
    let (kernel, node) = case();
    let byte = |at: u64| lock(Shared, 2 * at, 2 * at);
    let taken =
        |caller, owner| (0_u64..).take_while(|&at| kernel.setlk(caller, of(node, owner), byte(at)).is_ok()).count();
    // One is for the open file of the owner.
    let first = taken(&USER, 1);
    assert_eq!(first, 8191);
    assert_eq!(kernel.setlk(&USER, of(node, 1), byte(1 << 20)), Err(Errno::ENOLCK));
    let wide = lock(Shared, 0, 2 * first as u64);
    // Fewer ranges need no room; further owners do, and so do further ranges of one that is split.
    assert_eq!(kernel.setlk(&USER, of(node, 2), byte(0)), Err(Errno::ENOLCK));
    assert_eq!(kernel.getlk(&USER, of(node, 2), lock(Exclusive, 0, 0)), Err(Errno::ENOLCK));
    assert_eq!(kernel.setlk(&USER, of(node, 1), wide), Ok(()));
    let holes =
        (0_u64..).take_while(|at| kernel.setlk(&USER, of(node, 1), lock(Unlock, 2 * at + 1, 2 * at + 1)).is_ok());
    assert_eq!(holes.count(), first - 1);
    // Another user, and root.
    let other = Caller::of(50_002, 50_002);
    assert_eq!(kernel.setlk(&other, of(node, 3), byte(7)), Ok(()));
    assert_eq!((0..10_000).filter(|&at| kernel.setlk(&SUPER, of(node, 4), byte(at)).is_ok()).count(), 10_000);
    // A close gives all back.
    kernel.flush(node, 0, 1).unwrap();
    assert_eq!(taken(&USER, 5), first);
}

#[test]
fn all_unknown_users_have_one_limit_of_locks() {
    let (kernel, node) = case();
    let unknown = Caller::of(u32::MAX, u32::MAX);
    let taken =
        (0_u64..).take_while(|&owner| kernel.setlk(&unknown, of(node, owner + 1), flock(LockKind::Shared)).is_ok());
    assert_eq!(taken.count(), 8192);
    assert_eq!(kernel.setlk(&USER, of(node, 1 << 40), flock(LockKind::Shared)), Ok(()));
}

#[test]
fn the_end_of_an_open_file_ends_the_locks_that_were_set_through_it_last() {
    let (kernel, node) = case();
    let through = |owner, handle| LockOwner { node, owner, handle };
    for (owner, handle) in [(1, 10), (2, 10), (3, 11), (1, 11)] {
        kernel.setlk(&SUPER, through(owner, handle), lock(LockKind::Shared, owner, owner)).unwrap();
    }
    let is_locked = |at| kernel.getlk(&SUPER, of(node, 9), lock(LockKind::Exclusive, at, at)).unwrap().is_some();
    kernel.release_locks(node, 10, None);
    assert_eq!([1, 2, 3].map(is_locked), [true, false, true]);
    kernel.release_locks(node, 12, Some(3));
    assert_eq!([1, 2, 3].map(is_locked), [true, false, false]);
    kernel.release_locks(node, 11, None);
    assert_eq!([1, 2, 3].map(is_locked), [false; 3]);
}
