//! On a simulated machine, the time that a thread waits for a lock of `sync` is in the profile under the tag of that kind
//! of lock. (In the product the tags compile to nothing; `prim::profile` has the test.)

use prim::profile::Tag;
use sync_sim::{PerCpuRwLock, RwSem, SeqRwLock};

/// How long the first thread is in.
const HELD_NS: u64 = 20_000;

struct Locks {
    sequence: SeqRwLock,
    semaphore: RwSem<()>,
    per_cpu: PerCpuRwLock<()>,
}

/// Nanoseconds under each tag when the first thread does `hold` and the second, a little later, `wait`.
fn profile(hold: fn(&Locks), wait: fn(&Locks)) -> [f64; Tag::COUNT] {
    let machine = sim::Machine::preset("epyc192").expect("a preset");
    let config = sim::Config { warm_ns: 0, ..sim::Config::new(machine, 2, 1_000) };
    let make = || Locks { sequence: SeqRwLock::new(), semaphore: RwSem::new(()), per_cpu: PerCpuRwLock::new(()) };
    let report = sim::run(config, make, move |locks, number| {
        if number == 0 {
            hold(locks);
        } else {
            sim::cost(HELD_NS / 10);
            wait(locks);
        }
    });
    report.tag_ns
}

#[track_caller]
fn check(tags: &[Tag], hold: fn(&Locks), wait: fn(&Locks)) {
    let profile = profile(hold, wait);
    let waited: f64 = tags.iter().map(|&tag| profile[tag as usize]).sum();
    let least = HELD_NS as f64 / 2.0;
    assert!(waited > least, "{waited} ns under {tags:?}, but the other thread was in for {HELD_NS} ns");
}

#[test]
fn waiting_for_a_sequence_lock_with_readers_is_under_its_tag() {
    let hold = |locks: &Locks| {
        let _guard = locks.sequence.write_lock();
        sim::cost(HELD_NS);
    };
    check(&[Tag::SeqLock], hold, |locks| drop(locks.sequence.read_lock()));
    check(&[Tag::SeqLock], hold, |locks| drop(locks.sequence.write_lock()));
    check(&[Tag::SeqLock], hold, |locks| locks.sequence.read_seq_or_lock(|_| ()));
}

#[test]
fn spinning_for_a_semaphore_is_under_its_tag() {
    // A queued thread sleeps; a writer spins a little before.
    let hold = |locks: &Locks| {
        let _guard = locks.semaphore.write();
        sim::cost(HELD_NS);
    };
    let waited = |wait| profile(hold, wait)[Tag::RwSem as usize];
    assert!(waited(|locks| drop(locks.semaphore.read())) > 0.0);
    assert!(waited(|locks| drop(locks.semaphore.write())) > 0.0);
    assert_eq!(profile(|_| (), |locks| drop(locks.semaphore.read()))[Tag::RwSem as usize], 0.0, "it is free");
}

#[test]
fn waiting_for_a_lock_with_a_line_for_each_reader_is_under_its_tag() {
    let write = |locks: &Locks| {
        let _guard = locks.per_cpu.write();
        sim::cost(HELD_NS);
    };
    let read = |locks: &Locks| {
        let _guard = locks.per_cpu.read();
        sim::cost(HELD_NS);
    };
    // A reader that comes for the first time waits for the writers' lock.
    check(&[Tag::RwLock, Tag::SpinLock], write, |locks| drop(locks.per_cpu.read()));
    check(&[Tag::RwLock], read, |locks| drop(locks.per_cpu.write()));
}
