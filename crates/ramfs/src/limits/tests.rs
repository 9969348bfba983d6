//! Counts under limits, by one thread and by many.

use super::*;

fn bytes(bytes: u64) -> Amount {
    Amount { bytes, inodes: 0 }
}

fn user(uid: u32) -> QuotaHandle {
    QuotaHandle { uid, privileged: false }
}

/// Checks the totals and the free rest after `used` was taken.
fn check(limits: &Limits, all: Amount, used: Amount) {
    let stat = limits.statfs();
    assert_eq!((stat.blocks, stat.files), (all.bytes / PAGE_BYTES, all.inodes));
    assert_eq!((stat.blocks_free, stat.blocks_available), ((all.bytes - used.bytes) / PAGE_BYTES, stat.blocks_free));
    assert_eq!(stat.files_free, all.inodes - used.inodes);
}

#[test]
fn threads_together_take_exactly_the_limit() {
    let limit = 50_000;
    let room = Room::new(Some(limit), 1024);
    for _ in 0..20 {
        let take_all = |units: u64| {
            let mut taken = 0;
            while taken <= limit && room.take(units) {
                taken += units;
                // Some units go back at once, so that stocks fill while other threads collect.
                if taken % 7 == 0 {
                    room.give(units);
                    taken -= units;
                    std::hint::black_box(&taken);
                    taken += if room.take(units) { units } else { 0 };
                }
            }
            taken
        };
        let taken: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| take_all(1))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((taken, room.free()), (limit, 0));
        std::thread::scope(|scope| {
            for part in [taken / 2, taken - taken / 2] {
                let room = &room;
                scope.spawn(move || (0..part).for_each(|_| room.give(1)));
            }
        });
        assert_eq!(room.free(), limit);
    }
}

#[test]
fn without_a_limit_one_call_takes_at_most_the_machines_memory() {
    let limits = Limits::new(&RamLimits::none());
    assert_eq!(limits.take(user(1), bytes(1 << 20)), Ok(()));
    assert_eq!(limits.take(user(1), bytes(u64::MAX)), Err(Errno::ENOSPC));
    limits.give(1, bytes(1 << 20));
    check(&limits, Amount::default(), Amount::default());
}

#[test]
fn by_default_there_is_half_of_the_machine() {
    let stat = Limits::new(&RamLimits::default()).statfs();
    assert_eq!((stat.kind, stat.block_size, stat.name_max), (0x0102_1994, 4096, 255));
    assert!(stat.blocks > 0 && stat.blocks_free == stat.blocks, "{stat:?}");
    assert_eq!(stat.files, stat.blocks * PAGE_BYTES / NAME_BYTES);
    let tmpfs = Limits::new(&RamLimits::tmpfs()).statfs();
    assert_eq!((tmpfs.blocks, tmpfs.files), (stat.blocks, stat.blocks));
}

#[test]
fn a_refused_request_takes_nothing() {
    let all = Amount { bytes: 10 * PAGE_BYTES, inodes: 2 };
    let per_user = UserLimits { bytes: Some(4 * PAGE_BYTES), inodes: Some(1) };
    let limits = Limits::new(&RamLimits { bytes: Some(all.bytes), inodes: Some(all.inodes), per_user: Some(per_user) });
    let inode = Amount { bytes: 0, inodes: 1 };
    assert_eq!(limits.take(user(1), bytes(11 * PAGE_BYTES)), Err(Errno::ENOSPC));
    assert_eq!(limits.take(user(1), Amount { bytes: PAGE_BYTES, inodes: 3 }), Err(Errno::ENOSPC));
    assert_eq!(limits.take(user(1), bytes(5 * PAGE_BYTES)), Err(Errno::EDQUOT));
    assert_eq!(limits.take(user(1), Amount { bytes: 1, inodes: 2 }), Err(Errno::EDQUOT));
    check(&limits, all, Amount::default());
    assert_eq!(limits.take(user(1), Amount { bytes: 4 * PAGE_BYTES, inodes: 1 }), Ok(()));
    assert_eq!(limits.take(user(1), inode), Err(Errno::EDQUOT));
    // Another share and the same one.
    assert_eq!(limits.take(user(2), bytes(PAGE_BYTES)), Ok(()));
    assert_eq!(limits.take(user(1 + SHARES as u32), bytes(PAGE_BYTES)), Ok(()));
    assert_eq!(limits.take(QuotaHandle { uid: 1, privileged: true }, bytes(PAGE_BYTES)), Ok(()));
    check(&limits, all, Amount { bytes: 7 * PAGE_BYTES, inodes: 1 });
    // Above the limit of bytes by privilege: inodes can still be taken, bytes cannot.
    limits.give(1, Amount { bytes: PAGE_BYTES, inodes: 1 });
    assert_eq!(limits.take(user(1), inode), Ok(()));
    assert_eq!(limits.take(user(1), bytes(1)), Err(Errno::EDQUOT));
}

#[test]
fn a_transfer_moves_the_account_and_leaves_the_total() {
    let per_user = UserLimits { bytes: Some(100), inodes: None };
    let limits = Limits::new(&RamLimits { per_user: Some(per_user), ..RamLimits::default() });
    assert_eq!(limits.take(user(1), bytes(80)), Ok(()));
    assert_eq!(limits.take(user(2), bytes(60)), Ok(()));
    let free = limits.bytes.free();
    assert_eq!(limits.transfer(1, user(2), bytes(80)), Err(Errno::EDQUOT));
    assert_eq!(limits.transfer(1, user(2), bytes(40)), Ok(()));
    assert_eq!(limits.bytes.free(), free);
    assert_eq!(limits.take(user(1), bytes(60)), Ok(()));
    assert_eq!(limits.take(user(2), bytes(1)), Err(Errno::EDQUOT));
    limits.give(2, bytes(100));
    limits.give(1, bytes(100));
    let users = limits.users.as_ref().unwrap();
    assert!(users.shares.iter().all(|share| share.0.lock().is_empty()));
}
