//! The locks against a model with a state for each byte, and with threads that wait.

use super::LockKind::{Exclusive, Shared, Unlock};
use super::*;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::thread;

/// Owners of the model: 0 to 3.
const OWNERS: usize = 4;

/// Bytes of the model; the last one stands for all bytes to come.
const BYTES: usize = 12;

/// The seed of a random test, printed; `LIGHTFOOT_SEED` replays one.
fn seed() -> u64 {
    let chosen = std::env::var("LIGHTFOOT_SEED").ok();
    let seed = chosen.map_or_else(prim::seed::random_u64, |seed| seed.parse().expect("LIGHTFOOT_SEED is a number"));
    println!("LIGHTFOOT_SEED={seed} replays the requests");
    seed
}

/// Chooses requests.
struct Random(fastrand::Rng);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0.usize(..bound)
    }

    fn request(&mut self, kinds: &[LockKind]) -> LockRequest {
        let start = self.below(BYTES);
        let end = start + 1 + self.below(BYTES - start);
        let kind = kinds[self.below(kinds.len())];
        LockRequest { owner: self.below(OWNERS) as u64, kind, range: start as u64..end_of(end), quota: None }
    }
}

/// The end of a range of the model in the real one.
fn end_of(end: usize) -> u64 {
    if end == BYTES { u64::MAX } else { end as u64 }
}

/// Each owner's lock on each byte, and the waiting requests.
#[derive(Default)]
struct Model {
    bytes: [[Option<LockKind>; BYTES]; OWNERS],
    /// Number of the request, and the request.
    waiting: Vec<(usize, LockRequest)>,
}

impl Model {
    fn clashes(&self, request: &LockRequest, owner: usize, byte: usize) -> bool {
        let held = self.bytes[owner][byte];
        owner as u64 != request.owner
            && request.range.contains(&(byte as u64))
            && (held == Some(Exclusive) && request.kind != Unlock || held.is_some() && request.kind == Exclusive)
    }

    fn is_blocked(&self, request: &LockRequest) -> bool {
        (0..OWNERS).any(|owner| (0..BYTES).any(|byte| self.clashes(request, owner, byte)))
    }

    /// The numbers of the requests that can go on now.
    fn grant(&mut self, request: &LockRequest) -> Vec<usize> {
        for byte in (0..BYTES).filter(|&byte| request.range.contains(&(byte as u64))) {
            self.bytes[request.owner as usize][byte] = Some(request.kind).filter(|&kind| kind != Unlock);
        }
        let Some(first) = self.waiting.iter().position(|(_, waiting)| !self.is_blocked(waiting)) else {
            return Vec::new();
        };
        let (number, next) = self.waiting.remove(first);
        let mut granted = vec![number];
        granted.extend(self.grant(&next));
        granted
    }

    /// Runs of bytes that one owner has with one kind.
    fn pieces(&self, owner: usize) -> Vec<LockInfo> {
        let mut pieces: Vec<LockInfo> = Vec::new();
        for (byte, held) in self.bytes[owner].iter().enumerate() {
            let (start, end) = (byte as u64, end_of(byte + 1));
            match (held, pieces.last_mut()) {
                (None, _) => {}
                (Some(kind), Some(last)) if last.kind == *kind && last.end == start => last.end = end,
                (&Some(kind), _) => pieces.push(LockInfo { kind, start, end }),
            }
        }
        pieces
    }

    /// Checks an answer of `first_conflict`: a piece in the way, and none begins before it.
    fn check_conflict(&self, request: &LockRequest, answer: Option<LockInfo>) {
        let clashing = (0..OWNERS).flat_map(|owner| {
            let clashes = move |byte| self.clashes(request, owner, byte);
            let in_the_way = move |piece: &LockInfo| {
                (0..BYTES).any(|byte| clashes(byte) && (piece.start..piece.end).contains(&(byte as u64)))
            };
            self.pieces(owner).into_iter().filter(in_the_way)
        });
        let clashing: Vec<_> = clashing.collect();
        let first = clashing.iter().map(|piece| piece.start).min();
        assert_eq!(answer.map(|piece| piece.start), first, "{request:?}");
        assert!(answer.is_none_or(|piece| clashing.contains(&piece)), "{request:?} {answer:?}");
    }
}

impl RecordLocks {
    /// Returns whether no file in the shard of the file `key` has a lock.
    fn is_idle(&self, key: u64) -> bool {
        self.shard(key).tables.lock().is_empty()
    }
}

/// A request that waits, with a thread or without.
enum Queued {
    Sleeper(Arc<Sleeper>),
    Parked(u64),
}

impl Queued {
    fn is(&self, waiter: &Waiter) -> bool {
        match self {
            Self::Sleeper(sleeper) => waiter.is_thread(sleeper),
            Self::Parked(number) => waiter.is_parked(*number),
        }
    }

    fn withdraw(self, table: &mut LockTable) {
        match self {
            Self::Sleeper(sleeper) => table.withdraw(&sleeper),
            Self::Parked(number) => assert!(table.unpark(number).is_some() && table.unpark(number).is_none()),
        }
    }
}

/// One table beside its model.
struct Pair {
    table: LockTable,
    model: Model,
    sleepers: Vec<(usize, Queued)>,
    requests: usize,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Self { table: LockTable::new(seed), model: Model::default(), sleepers: Vec::new(), requests: 0 }
    }

    fn step(&mut self, random: &mut Random) {
        let (granted, expected) = match random.below(10) {
            0 => {
                let owner = random.below(OWNERS) as u64;
                let all = LockRequest { owner, kind: Unlock, range: WHOLE, quota: None };
                (self.table.give_up(owner), self.model.grant(&all))
            }
            1 if !self.sleepers.is_empty() => {
                let (number, sleeper) = self.sleepers.swap_remove(random.below(self.sleepers.len()));
                sleeper.withdraw(&mut self.table);
                self.model.waiting.retain(|&(other, _)| other != number);
                return;
            }
            _ => {
                let request = random.request(&[Shared, Shared, Exclusive, Exclusive, Unlock]);
                assert_eq!(self.table.has_conflict(&request), self.model.is_blocked(&request), "{request:?}");
                if self.model.is_blocked(&request) {
                    if self.sleepers.len() < 6 {
                        self.requests += 1;
                        let queued = if random.below(2) == 0 {
                            Queued::Sleeper(self.table.queue(request.clone()))
                        } else {
                            let number = self.requests as u64;
                            self.table.park(request.clone(), number, Box::new(|| ()));
                            Queued::Parked(number)
                        };
                        self.sleepers.push((self.requests, queued));
                        self.model.waiting.push((self.requests, request));
                    }
                    return;
                }
                let before = self.model.pieces(request.owner as usize).len();
                let growth = self.table.growth(&request);
                let granted = (self.table.grant(&request), self.model.grant(&request));
                if granted.1.is_empty() {
                    let after = self.model.pieces(request.owner as usize).len();
                    assert_eq!(growth, after.saturating_sub(before), "{request:?}");
                }
                granted
            }
        };
        let number_of = |waiter| self.sleepers.iter().find(|(_, queued)| queued.is(waiter)).unwrap().0;
        assert_eq!(granted.iter().map(number_of).collect::<Vec<_>>(), expected);
        self.sleepers.retain(|(number, _)| !expected.contains(number));
    }

    fn check(&self, random: &mut Random) {
        for owner in 0..OWNERS {
            assert_eq!(self.table.pieces_of(owner as u64), self.model.pieces(owner), "owner {owner}");
        }
        assert_eq!(self.table.waiting(), self.model.waiting.len());
        assert_eq!(self.sleepers.len(), self.model.waiting.len());
        assert_eq!(self.table.is_empty(), self.model.bytes.as_flattened().iter().all(Option::is_none));
        assert!(!self.table.is_empty() || self.table.waiting() == 0);
        let request = random.request(&[Shared, Exclusive]);
        let found = self.table.first_conflict(&request);
        self.model.check_conflict(&request, found.map(|(_, lock)| lock));
        for other in 0..OWNERS {
            let blocks = (0..BYTES).any(|byte| self.model.clashes(&request, other, byte));
            assert_eq!(self.table.is_blocked_by(other as u64, &request), blocks, "{request:?} by {other}");
        }
    }
}

#[test]
fn random_requests_have_what_a_model_of_single_bytes_has() {
    let seed = seed();
    let mut random = Random(fastrand::Rng::with_seed(seed));
    for _ in 0..200 {
        let mut pair = Pair::new(seed);
        for _ in 0..150 {
            pair.step(&mut random);
            pair.check(&mut random);
        }
        for owner in 0..OWNERS as u64 {
            pair.sleepers.drain(..).for_each(|(_, queued)| queued.withdraw(&mut pair.table));
            assert!(pair.table.give_up(owner).is_empty());
        }
        assert!(pair.table.is_empty() && pair.table.waiting() == 0);
    }
}

/// Pieces of owner 1 after the steps.
fn check_pieces(steps: &[(LockKind, Range<u64>)], pieces: &[(LockKind, Range<u64>)]) {
    let locks = RecordLocks::default();
    for (kind, range) in steps {
        assert_eq!(locks.set((8, 1), *kind, range.clone(), LockWait::Never, None), Ok(()));
    }
    let tables = locks.shard(8).tables.lock();
    let left = tables.get(&TableId { key: 8, family: Family::Ranges }).map_or(Vec::new(), |table| table.pieces_of(1));
    let left: Vec<_> = left.iter().map(|piece| (piece.kind, piece.start..piece.end)).collect();
    assert_eq!(left, pieces, "{steps:?}");
    assert_eq!(tables.is_empty(), pieces.is_empty(), "{steps:?}");
}

#[test]
fn an_owners_locks_are_split_joined_and_converted() {
    const END: u64 = u64::MAX;
    check_pieces(&[(Shared, 0..9), (Unlock, 3..5)], &[(Shared, 0..3), (Shared, 5..9)]);
    check_pieces(&[(Shared, 0..9), (Exclusive, 3..5)], &[(Shared, 0..3), (Exclusive, 3..5), (Shared, 5..9)]);
    check_pieces(&[(Shared, 0..3), (Shared, 5..9), (Shared, 3..5)], &[(Shared, 0..9)]);
    check_pieces(&[(Shared, 0..3), (Exclusive, 3..9)], &[(Shared, 0..3), (Exclusive, 3..9)]);
    check_pieces(&[(Exclusive, 0..END), (Shared, 0..END)], &[(Shared, 0..END)]);
    check_pieces(&[(Shared, 7..END), (Unlock, 0..9)], &[(Shared, 9..END)]);
    check_pieces(&[(Shared, 1..2), (Exclusive, 3..4), (Shared, 5..6), (Unlock, 0..END)], &[]);
    check_pieces(&[(Unlock, 0..END)], &[]);
}

#[test]
fn conflicts_bad_ranges_and_deadlines_have_their_errors() {
    let locks = RecordLocks::default();
    assert_eq!(locks.set((8, 1), Exclusive, 10..20, LockWait::Never, None), Ok(()));
    let set = |owner, kind, range, wait| locks.set((8, owner), kind, range, wait, None);
    for kind in [Shared, Exclusive, Unlock] {
        assert_eq!(set(1, kind, 5..5, LockWait::Never), Err(Errno::EINVAL));
        assert_eq!(set(1, kind, Range { start: 6, end: 5 }, LockWait::Forever), Err(Errno::EINVAL));
        assert_eq!(locks.test(8, 2, kind, 5..5), Err(Errno::EINVAL));
    }
    assert_eq!(locks.test(8, 2, Unlock, 0..5), Err(Errno::EINVAL));
    for kind in [Shared, Exclusive] {
        let blocker = Some((1, LockInfo { kind: Exclusive, start: 10, end: 20 }));
        assert_eq!(set(2, kind, 0..11, LockWait::Never), Err(Errno::EAGAIN));
        assert_eq!(set(2, kind, 19..u64::MAX, LockWait::AtMost(Duration::ZERO)), Err(Errno::ETIMEDOUT));
        assert_eq!(set(2, kind, 19..20, LockWait::AtMost(Duration::from_millis(1))), Err(Errno::ETIMEDOUT));
        assert_eq!(locks.test(8, 2, kind, 0..11), Ok(blocker));
        assert_eq!(locks.test(8, 2, kind, 0..10), Ok(None));
        assert_eq!(locks.test(8, 1, kind, 0..20), Ok(None));
        assert_eq!(locks.test(9, 2, kind, 0..30), Ok(None));
        // Another file, another family, other bytes.
        assert_eq!(locks.set((9, 2), kind, 0..30, LockWait::Never, None), Ok(()));
        assert_eq!(locks.flock(8, 2, kind, LockWait::Never), Ok(()));
        assert_eq!(set(2, kind, 20..30, LockWait::Never), Ok(()));
    }
    assert_eq!(set(2, Unlock, 0..u64::MAX, LockWait::Never), Ok(()));
    assert_eq!(locks.test(8, 3, Exclusive, 0..u64::MAX).unwrap().map(|(_, lock)| lock.start), Some(10));
}

#[test]
fn the_last_close_leaves_no_lock_and_no_memory() {
    let locks = RecordLocks::default();
    assert!(locks.is_idle(8));
    for owner in [1, 2] {
        assert_eq!(locks.set((8, owner), Shared, owner..20, LockWait::Never, None), Ok(()));
        assert_eq!(locks.flock(8, owner, Shared, LockWait::Never), Ok(()));
    }
    locks.release_owner(8, 3);
    locks.release_owner(8, 1);
    assert!(!locks.is_idle(8));
    assert_eq!(locks.test(8, 3, Exclusive, 0..9).unwrap().map(|(_, lock)| lock.start), Some(2));
    locks.release_owner(8, 2);
    assert!(locks.is_idle(8));
    assert_eq!(locks.flock(8, 3, Exclusive, LockWait::Never), Ok(()));
    assert_eq!(locks.flock(8, 3, Unlock, LockWait::Never), Ok(()));
    assert!(locks.is_idle(8));
}

#[test]
fn a_conversion_of_a_whole_lock_is_one_step_or_gives_up_what_was_there() {
    let locks = RecordLocks::default();
    let flock = |owner, kind| locks.flock(8, owner, kind, LockWait::Never);
    assert_eq!((flock(1, Shared), flock(1, Exclusive), flock(1, Shared)), (Ok(()), Ok(()), Ok(())));
    assert_eq!((flock(2, Shared), flock(2, Exclusive)), (Ok(()), Err(Errno::EAGAIN)));
    // Had owner 2 still its lock, this would fail.
    assert_eq!(flock(1, Exclusive), Ok(()));
}

fn await_waiting(locks: &RecordLocks, family: Family, count: usize) {
    while locks.shard(8).tables.lock().get(&TableId { key: 8, family }).map_or(0, LockTable::waiting) != count {
        thread::yield_now();
    }
}

#[test]
fn waiters_have_their_turn_in_the_order_they_came_and_no_newcomer_before() {
    let locks = RecordLocks::default();
    let order = std::sync::Mutex::new(Vec::new());
    assert_eq!(locks.set((8, 1), Exclusive, 0..9, LockWait::Never, None), Ok(()));
    thread::scope(|scope| {
        for owner in 2..8 {
            let (locks, order) = (&locks, &order);
            scope.spawn(move || {
                assert_eq!(locks.set((8, owner), Exclusive, 3..5, LockWait::Forever, None), Ok(()));
                order.lock().unwrap().push(owner);
                locks.release_owner(8, owner);
            });
            await_waiting(locks, Family::Ranges, owner as usize - 1);
        }
        let order_before = order.lock().unwrap();
        assert!(order_before.is_empty());
        locks.release_owner(8, 1);
        // Owner 2 has it, and cannot have continued to release it.
        assert_eq!(locks.set((8, 9), Shared, 4..5, LockWait::Never, None), Err(Errno::EAGAIN));
    });
    assert_eq!(order.into_inner().unwrap(), [2, 3, 4, 5, 6, 7]);
    assert!(locks.is_idle(8));
}

#[test]
fn a_downgrade_and_a_close_wake_all_that_can_share() {
    let locks = RecordLocks::default();
    assert_eq!(locks.set((8, 1), Exclusive, 0..9, LockWait::Never, None), Ok(()));
    assert_eq!(locks.flock(8, 1, Exclusive, LockWait::Never), Ok(()));
    thread::scope(|scope| {
        let locks = &locks;
        let long = LockWait::AtMost(Duration::from_secs(3_600));
        let sharers = [2, 3, 4].map(|owner| scope.spawn(move || locks.set((8, owner), Shared, 0..9, long, None)));
        let whole = [2, 3].map(|owner| scope.spawn(move || locks.flock(8, owner, Shared, LockWait::Forever)));
        await_waiting(locks, Family::Ranges, 3);
        await_waiting(locks, Family::Whole, 2);
        assert_eq!(locks.set((8, 1), Shared, 0..9, LockWait::Never, None), Ok(()));
        assert!(sharers.map(|sharer| sharer.join().unwrap()).iter().all(Result::is_ok));
        await_waiting(locks, Family::Whole, 2);
        locks.release_owner(8, 1);
        assert!(whole.map(|sharer| sharer.join().unwrap()).iter().all(Result::is_ok));
    });
    assert_eq!(locks.flock(8, 1, Exclusive, LockWait::Never), Err(Errno::EAGAIN));
}

#[test]
fn two_that_want_to_upgrade_a_whole_lock_do_not_wait_for_each_other() {
    let locks = RecordLocks::default();
    for owner in [1, 2] {
        assert_eq!(locks.flock(8, owner, Shared, LockWait::Never), Ok(()));
    }
    thread::scope(|scope| {
        let first = scope.spawn(|| locks.flock(8, 1, Exclusive, LockWait::Forever));
        await_waiting(&locks, Family::Whole, 1);
        assert_eq!(locks.flock(8, 2, Exclusive, LockWait::Forever), Ok(()));
        assert_eq!(locks.flock(8, 2, Unlock, LockWait::Never), Ok(()));
        assert_eq!(first.join().unwrap(), Ok(()));
    });
}

#[test]
fn threads_that_wait_at_random_never_share_what_is_exclusive() {
    const ROUNDS: usize = 3_000;
    let seed = seed();
    let locks = RecordLocks::default();
    // For each byte how many share it, or -1.
    let bytes: [AtomicI32; BYTES] = Default::default();
    thread::scope(|scope| {
        for owner in 0..OWNERS as u64 {
            let (locks, bytes) = (&locks, &bytes);
            scope.spawn(move || {
                let mut random = Random(fastrand::Rng::with_seed(seed ^ owner));
                for round in 0..ROUNDS {
                    let LockRequest { kind, range, .. } = random.request(&[Shared, Exclusive]);
                    let few = LockWait::AtMost(Duration::from_micros(random.below(50) as u64));
                    let wait = [LockWait::Forever, LockWait::Never, few][random.below(3)];
                    let Ok(()) = locks.set((8, owner), kind, range.clone(), wait, None) else {
                        continue;
                    };
                    let change = if kind == Shared { 1 } else { -1 };
                    let mine = || bytes[range.start as usize..BYTES.min(range.end as usize)].iter();
                    for byte in mine() {
                        let before = byte.fetch_add(change, Relaxed);
                        assert!(if kind == Shared { before >= 0 } else { before == 0 }, "{kind:?} {range:?} {before}");
                    }
                    thread::yield_now();
                    for byte in mine() {
                        byte.fetch_sub(change, Relaxed);
                    }
                    match round % 2 {
                        0 => locks.release_owner(8, owner),
                        _ => assert_eq!(locks.set((8, owner), Unlock, range, LockWait::Forever, None), Ok(())),
                    }
                }
            });
        }
    });
    assert!(locks.is_idle(8));
}

/// Parks owner 2's request for all bytes. Returns it, and the number of calls of its closure.
fn park_one(locks: &RecordLocks, range: Option<Range<u64>>) -> (Option<ParkedLock>, std::sync::Arc<AtomicI32>) {
    let calls = std::sync::Arc::new(AtomicI32::new(0));
    let counted = calls.clone();
    let granted = Box::new(move || _ = counted.fetch_add(1, Relaxed));
    (locks.park((8, 2, 77), Exclusive, range, None, granted).unwrap(), calls)
}

#[test]
fn a_parked_request_is_granted_once_or_withdrawn_or_ends_with_its_owner() {
    for range in [None, Some(0..9)] {
        let locks = RecordLocks::default();
        let take = |owner| match range.clone() {
            None => locks.flock(8, owner, Exclusive, LockWait::Never),
            Some(range) => locks.set((8, owner), Exclusive, range, LockWait::Never, None),
        };
        let (parked, calls) = park_one(&locks, range.clone());
        assert!(parked.is_none() && calls.load(Relaxed) == 0 && locks.is_idle(8), "nothing conflicts");
        take(1).unwrap();
        let (parked, calls) = park_one(&locks, range.clone());
        locks.release_owner(8, 1);
        assert_eq!((calls.load(Relaxed), locks.unpark(8, parked.unwrap())), (1, false), "it was granted");
        assert_eq!(take(1), Err(Errno::EAGAIN));
        locks.release_owner(8, 2);
        take(1).unwrap();
        let (parked, calls) = park_one(&locks, range.clone());
        let parked = parked.unwrap();
        assert_eq!((locks.unpark(8, parked), locks.unpark(8, parked)), (true, false));
        let (_, of_the_closed) = park_one(&locks, range.clone());
        locks.release_owner(8, 2);
        locks.release_owner(8, 1);
        assert_eq!((calls.load(Relaxed), of_the_closed.load(Relaxed)), (0, 0), "they were withdrawn");
        assert!(locks.is_idle(8));
    }
}

#[test]
fn a_grant_and_a_withdrawal_at_once_have_one_outcome() {
    for _ in 0..2_000 {
        let locks = RecordLocks::default();
        locks.set((8, 1), Exclusive, 0..9, LockWait::Never, None).unwrap();
        let (parked, calls) = park_one(&locks, Some(0..9));
        let is_withdrawn = thread::scope(|scope| {
            let withdrawing = scope.spawn(|| locks.unpark(8, parked.unwrap()));
            locks.release_owner(8, 1);
            withdrawing.join().unwrap()
        });
        assert_eq!((calls.load(Relaxed), locks.is_idle(8)), (i32::from(!is_withdrawn), is_withdrawn));
        locks.release_owner(8, 2);
    }
}

#[test]
fn a_quota_limits_the_ranges_of_its_owners_together() {
    let (locks, quota) = (RecordLocks::default(), LockQuota::new(4));
    let set = |owner, kind, range| locks.set((8, owner), kind, range, LockWait::Never, Some(&quota));
    assert_eq!((set(1, Shared, 0..10), set(2, Shared, 0..1), set(2, Shared, 5..6)), (Ok(()), Ok(()), Ok(())));
    let charge = LockCharge::new(&quota).unwrap();
    assert_eq!((LockCharge::new(&quota).map(drop), quota.used()), (Err(Errno::ENOLCK), 4));
    // A further range, and two of one. Nothing has changed after an error.
    assert_eq!((set(1, Shared, 20..30), set(1, Unlock, 3..4)), (Err(Errno::ENOLCK), Err(Errno::ENOLCK)));
    assert_eq!(locks.test(8, 9, Exclusive, 3..4), Ok(Some((1, LockInfo { kind: Shared, start: 0, end: 10 }))));
    assert_eq!(locks.test(8, 9, Exclusive, 20..30), Ok(None));
    // Not further ranges.
    assert_eq!(
        (set(1, Exclusive, 6..7), set(1, Shared, 10..15), set(1, Unlock, 7..20)),
        (Err(Errno::ENOLCK), Ok(()), Ok(()))
    );
    assert_eq!(set(2, Unlock, 5..6), Ok(()));
    assert_eq!((set(1, Shared, 20..30), quota.used()), (Ok(()), 4));
    // Another owner without a quota, or with another one, has room.
    assert_eq!(locks.set((8, 3), Shared, 0..9, LockWait::Never, None), Ok(()));
    locks.release_owner(8, 1);
    drop(charge);
    assert_eq!(quota.used(), 1);
    locks.release_owner(8, 2);
    assert_eq!(quota.used(), 0);
}

#[test]
fn a_request_that_waits_is_counted_when_it_is_granted() {
    let (locks, quota) = (RecordLocks::default(), LockQuota::new(1));
    locks.set((8, 1), Exclusive, 0..9, LockWait::Never, None).unwrap();
    let granted = Box::new(|| ());
    locks.park((8, 2, 77), Exclusive, Some(0..9), Some(&quota), granted).unwrap().unwrap();
    assert_eq!(quota.used(), 0);
    locks.release_owner(8, 1);
    assert_eq!(quota.used(), 1);
    let further = |owner| locks.set((9, owner), Shared, 0..9, LockWait::Never, Some(&quota));
    assert_eq!(further(2), Err(Errno::ENOLCK));
    locks.release_owner(8, 2);
    assert_eq!((further(2), quota.used()), (Ok(()), 1));
}
