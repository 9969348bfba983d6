//! loom models of `LockRef`. Each ordering keeps one of these from failing; `tools/check/weaken-orderings` shows it.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::{GetNotDead, LockRef};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// An object: two words that its users touch without atomics.
struct Object {
    d: LockRef,
    words: [UnsafeCell<u32>; 2],
}

impl Object {
    fn new(d: LockRef) -> Arc<Self> {
        Arc::new(Self { d, words: [UnsafeCell::new(0), UnsafeCell::new(0)] })
    }

    fn write(&self, word: usize) {
        // SAFETY: loom watches, and fails the test when it is a race.
        self.words[word].with_mut(|w| unsafe { *w += 1 });
    }

    fn read(&self, word: usize) -> u32 {
        // SAFETY: loom watches, and fails the test when it is a race.
        self.words[word].with(|w| unsafe { *w })
    }
}

/// Runs `one` and `two` on one object in every interleaving (of at most three preemptions), then `end`.
fn check<A: Send + 'static, B: 'static>(
    make: fn() -> LockRef,
    one: fn(&Object) -> A,
    two: fn(&Object) -> B,
    end: fn(&Object, A, B),
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let object = Object::new(make());
        let other = {
            let object = object.clone();
            thread::spawn(move || one(&object))
        };
        let b = two(&object);
        let a = other.join().unwrap();
        end(&object, a, b);
    });
}

#[test]
fn the_last_put_sees_what_all_holders_did() {
    fn hold(o: &Object, own: usize) -> bool {
        o.write(own);
        let last = o.d.put();
        if last {
            assert_eq!((o.read(0), o.read(1)), (1, 1));
        }
        last
    }
    check(
        || LockRef::new(2),
        |o| hold(o, 0),
        |o| hold(o, 1),
        |o, a, b| {
            assert!(a ^ b);
            assert_eq!(o.d.count(), 0);
        },
    );
}

#[test]
fn the_killer_sees_what_former_holders_did() {
    check(
        || LockRef::new(1),
        |o| {
            o.write(0);
            assert!(o.d.put() || o.d.is_dead());
        },
        |o| o.d.try_kill(0).then(|| o.write(0)),
        |o, (), killed| assert_eq!(o.d.is_dead(), killed.is_some()),
    );
}

#[test]
fn the_killer_sees_what_holders_did_that_put_their_references_together() {
    check(
        || LockRef::new(3),
        |o| {
            o.write(0);
            o.d.put_more(2);
        },
        |o| o.d.try_kill(1).then(|| o.write(0)),
        |o, (), killed| assert_eq!((o.d.is_dead(), o.read(0)), (killed.is_some(), 1 + u32::from(killed.is_some()))),
    );
}

#[test]
fn of_two_killers_one_wins() {
    check(
        || LockRef::new(0),
        |o| o.d.try_kill(0).then(|| o.write(0)).is_some(),
        |o| o.d.try_kill(0).then(|| o.write(0)).is_some(),
        |_, a, b| assert!(a ^ b),
    );
}

#[test]
fn a_thread_that_finds_it_dead_sees_what_the_killer_did_before() {
    fn kill(o: &Object) {
        o.write(0);
        assert!(o.d.try_kill(0));
    }
    let make = || LockRef::new(0);
    check(make, kill, |o| o.d.is_dead().then(|| assert_eq!(o.read(0), 1)), |_, (), _| ());
    check(
        make,
        |o| {
            o.write(0);
            while !o.d.try_kill(0) {
                loom::thread::yield_now();
            }
        },
        |o| match o.d.get_not_dead() {
            GetNotDead::Got => _ = o.d.put(),
            GetNotDead::Dead => assert_eq!(o.read(0), 1),
            GetNotDead::DeadLast => unreachable!("nobody revives"),
        },
        |o, (), ()| assert!(o.d.is_dead() && o.d.count() == 0),
    );
}

#[test]
fn a_kill_under_the_lock_sees_former_holders_and_is_seen() {
    fn kill(o: &Object) -> bool {
        let mut guard = o.d.lock();
        let killed = guard.mark_dead(0);
        if killed {
            o.write(0);
        }
        killed
    }
    check(
        || LockRef::new(1),
        |o| {
            o.write(0);
            _ = o.d.put();
        },
        kill,
        |o, (), killed| assert_eq!(o.d.is_dead(), killed),
    );
    check(
        || LockRef::new(0),
        |o| {
            let mut guard = o.d.lock();
            o.write(0);
            assert!(guard.mark_dead(0));
        },
        |o| o.d.is_dead().then(|| assert_eq!(o.read(0), 1)),
        |o, (), _| assert!(o.d.is_dead() && !o.d.is_locked()),
    );
}

#[test]
fn a_reference_sees_the_object_as_it_was_made() {
    fn make(o: &Object) {
        o.write(0);
        o.d.revive(1);
    }
    check(
        LockRef::new_dead,
        make,
        |o| match o.d.get_not_dead() {
            GetNotDead::Got => {
                assert_eq!(o.read(0), 1);
                assert!(!o.d.put());
            }
            GetNotDead::Dead => (),
            GetNotDead::DeadLast => unreachable!("the maker has one"),
        },
        |o, (), ()| assert_eq!(o.d.count(), 1),
    );
    check(
        LockRef::new_dead,
        make,
        |o| o.d.get_not_zero().then(|| o.read(0)),
        |o, (), seen| {
            assert!(seen.is_none_or(|n| n == 1));
            assert_eq!(o.d.count(), 1 + u32::from(seen.is_some()));
        },
    );
    check(LockRef::new_dead, make, |o| (!o.d.is_dead()).then(|| assert_eq!(o.read(0), 1)), |_, (), _| ());
}

#[test]
fn the_last_to_leave_is_reported_even_when_it_is_a_stray() {
    check(
        LockRef::new_dead,
        |o| {
            o.d.revive(1);
            o.write(0);
            let told = o.d.put();
            if told && o.d.try_kill(0) {
                o.write(0);
            }
            told
        },
        |o| {
            let told = match o.d.get_not_dead() {
                GetNotDead::Got => o.d.put(),
                GetNotDead::Dead => false,
                GetNotDead::DeadLast => {
                    assert_eq!(o.read(0), 1);
                    true
                }
            };
            if told && o.d.try_kill(0) {
                o.write(0);
            }
            told
        },
        |o, a, b| {
            assert!(a || b, "nobody was told");
            assert_eq!(o.d.count(), 0);
            assert!(o.d.is_dead(), "who was told could not kill");
        },
    );
}

#[test]
fn sections_exclude_and_follow_one_another_while_the_count_moves() {
    check(
        || LockRef::new(1),
        |o| {
            let guard = o.d.lock();
            o.write(0);
            drop(guard);
            o.d.get();
        },
        |o| {
            o.d.get();
            let _guard = o.d.lock();
            o.write(0);
        },
        |o, (), ()| {
            assert_eq!((o.read(0), o.d.count(), o.d.is_locked()), (2, 3, false));
        },
    );
}

#[test]
fn a_kill_follows_the_section_before() {
    check(
        || LockRef::new(0),
        |o| {
            let guard = o.d.lock();
            if !guard.is_dead() {
                o.write(0); // alive under the lock, alive until its release
            }
        },
        |o| o.d.try_kill(0).then(|| o.write(0)).is_some(),
        |o, (), killed| assert_eq!(o.d.is_dead(), killed),
    );
}

#[test]
fn put_or_lock_leaves_the_last_holder_with_the_lock() {
    fn hold(o: &Object, own: usize) -> bool {
        o.write(own);
        let Some(mut guard) = o.d.put_or_lock() else { return false };
        assert_eq!((o.read(0), o.read(1)), (1, 1));
        assert!(guard.mark_dead(1));
        true
    }
    check(
        || LockRef::new(2),
        |o| hold(o, 0),
        |o| hold(o, 1),
        |o, a, b| {
            assert!(a ^ b);
            assert!(o.d.is_dead() && !o.d.is_locked());
        },
    );
}

#[test]
fn put_or_lock_waits_for_the_section_before() {
    check(
        || LockRef::new(1),
        |o| {
            let _guard = o.d.lock();
            o.write(0);
        },
        |o| {
            let _guard = o.d.put_or_lock().expect("the only reference");
            o.write(0);
        },
        |o, (), ()| assert_eq!((o.read(0), o.d.count()), (2, 1)),
    );
}
