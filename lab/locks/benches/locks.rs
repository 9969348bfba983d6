//! What the locks of this crate and of `sync` cost, uncontended and shared by two threads, beside `parking_lot`'s.
//!
//! `cargo bench -p lightfoot-locks --bench locks`, some 20 seconds. A turn takes the lock, touches one word, and
//! releases the lock. Each round measures each contender once, in alternating order, and each figure is the median over
//! the rounds of wall time divided by the turns of all threads. Between its turns each of two threads does some tens of
//! nanoseconds of private work (the row `nothing` shows them); without it, the thread that has the cache line keeps it.

#![cfg(not(loom))]
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_locks::lockstat::{Class, Measured};
use lightfoot_locks::{McsLock, QueuedLock, TicketLock};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;
use sync::percpu_rwlock::PerCpuRwLock;
use sync::rwsem::RwSem;
use sync::seqrwlock::SeqRwLock;
use sync::{Lock, LockRef, Mutex, RawLock, SeqLock, SpinLock, TasLock};

const ROUNDS: usize = 15;
const TURNS: u64 = 200_000;

/// Multiplications between turns.
const PAUSE: u64 = 40;

struct Contender {
    name: &'static str,
    /// So many turns, with so many multiplications after each. A whole slice per call, so that the loop is compiled
    /// with what it measures.
    slice: Box<dyn Fn(u64, u64) + Sync>,
}

fn contender(name: &'static str, turn: impl Fn() + Sync + 'static) -> Contender {
    let slice = move |turns, pause| {
        for _ in 0..turns {
            turn();
            black_box((0..pause).fold(1u64, |n, i| black_box(n.wrapping_mul(i | 1))));
        }
    };
    Contender { name, slice: Box::new(slice) }
}

/// Nanoseconds of wall time per turn done.
fn measure(contender: &Contender, threads: usize) -> f64 {
    let pause = if threads == 1 { 0 } else { PAUSE };
    let start = Barrier::new(threads + 1);
    let ns = thread::scope(|s| {
        let work = || {
            (contender.slice)(TURNS / 20, pause);
            start.wait();
            (contender.slice)(TURNS, pause);
        };
        let running: Vec<_> = (0..threads).map(|_| s.spawn(work)).collect();
        start.wait();
        let begin = Instant::now();
        running.into_iter().for_each(|thread| thread.join().expect("no contender panics"));
        begin.elapsed().as_nanos()
    });
    ns as f64 / (threads as u64 * TURNS) as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Prints the contenders, with ratios to the one called `base`.
fn print(title: &str, base: &str, contenders: &[Contender]) {
    let mut figures: Vec<[Vec<f64>; 2]> = contenders.iter().map(|_| Default::default()).collect();
    for round in 0..ROUNDS {
        for at in 0..contenders.len() {
            let at = if round % 2 == 0 { at } else { contenders.len() - 1 - at };
            for threads in [1, 2] {
                figures[at][threads - 1].push(measure(&contenders[at], threads));
            }
        }
    }
    let medians: Vec<[f64; 2]> = figures.into_iter().map(|row| row.map(median)).collect();
    let base = contenders.iter().position(|contender| contender.name == base).expect("one of them");
    println!("\n{title:<34} {:>8} {:>8} {:>10} {:>10}", "1T ns", "2T ns", "1T / base", "2T / base");
    for (contender, [one, two]) in contenders.iter().zip(&medians) {
        let [base_one, base_two] = medians[base];
        println!("{:<34} {one:>8.1} {two:>8.1} {:>10.2} {:>10.2}", contender.name, one / base_one, two / base_two);
    }
}

/// A word that each turn changes, under the lock of the contender that owns it.
struct Word(UnsafeCell<u64>);

// SAFETY: each contender changes its word under its own lock.
unsafe impl Sync for Word {}

impl Word {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    /// To be called under the lock.
    fn step(&self) {
        // SAFETY: the caller excludes others.
        unsafe { *self.0.get() += 1 };
    }
}

fn around<R: RawLock + 'static>(name: &'static str, lock: Lock<R, u64>) -> Contender {
    contender(name, move || *lock.lock() += 1)
}

fn exclusive() -> Vec<Contender> {
    let base = parking_lot::Mutex::new(0u64);
    let std_lock = std::sync::Mutex::new(0u64);
    let (off, on) = (Class::new("off"), Class::new("on"));
    on.enable();
    let (lockref, lockref_word) = (LockRef::new(1), Word::new());
    let (seq, seq_word) = (SeqLock::new(), Word::new());
    let (seqrw, seqrw_word) = (SeqRwLock::new(), Word::new());
    let (rwsem, percpu) = (RwSem::new(0u64), PerCpuRwLock::new(0u64));
    let base_rw = parking_lot::RwLock::new(0u64);
    let nothing = AtomicU64::new(0);
    vec![
        contender("nothing", move || {
            black_box(nothing.load(Relaxed));
        }),
        contender("parking_lot Mutex", move || *base.lock() += 1),
        contender("std Mutex", move || *std_lock.lock().expect("not poisoned") += 1),
        around("Mutex (RawMutex)", Mutex::new(0)),
        around("SpinLock (TasLock)", SpinLock::new(0)),
        around("TicketLock", Lock::<TicketLock, _>::new(0)),
        around("McsLock", Lock::<McsLock, _>::new(0)),
        around("QueuedLock", Lock::<QueuedLock, _>::new(0)),
        around("TasLock, lockstat off", Lock::with_raw(Measured::<TasLock>::of(&off), 0)),
        around("TasLock, lockstat on", Lock::with_raw(Measured::<TasLock>::of(&on), 0)),
        contender("LockRef, its lock", move || {
            let _guard = lockref.lock();
            lockref_word.step();
        }),
        contender("SeqLock write", move || {
            let _guard = seq.write_lock();
            seq_word.step();
        }),
        contender("SeqRwLock write", move || {
            let _guard = seqrw.write_lock();
            seqrw_word.step();
        }),
        contender("parking_lot RwLock write", move || *base_rw.write() += 1),
        contender("RwSem write", move || *rwsem.write() += 1),
        contender("PerCpuRwLock write", move || *percpu.write() += 1),
    ]
}

fn shared() -> Vec<Contender> {
    let base = parking_lot::RwLock::new(0u64);
    let std_lock = std::sync::RwLock::new(0u64);
    let (seq, seq_word) = (SeqLock::new(), AtomicU64::new(0));
    let (seqrw, seqrw_word) = (SeqRwLock::new(), AtomicU64::new(0));
    let (blocking, blocking_word) = (SeqRwLock::new(), AtomicU64::new(0));
    let (rwsem, percpu) = (RwSem::new(0u64), PerCpuRwLock::new(0u64));
    vec![
        contender("parking_lot RwLock read", move || {
            black_box(*base.read());
        }),
        contender("std RwLock read", move || {
            black_box(*std_lock.read().expect("not poisoned"));
        }),
        contender("SeqLock read", move || {
            black_box(seq.read(|| seq_word.load(Relaxed)));
        }),
        contender("SeqRwLock read_seq_or_lock", move || {
            black_box(seqrw.read_seq_or_lock(|_| seqrw_word.load(Relaxed)));
        }),
        contender("SeqRwLock blocking read", move || {
            let _guard = blocking.read_lock();
            black_box(blocking_word.load(Relaxed));
        }),
        contender("RwSem read", move || {
            black_box(*rwsem.read());
        }),
        contender("PerCpuRwLock read", move || {
            black_box(*percpu.read());
        }),
    ]
}

fn main() {
    // `cargo test --benches` runs this too, without `--bench`; there is nothing to test.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    print("exclusive", "parking_lot Mutex", &exclusive());
    print("shared", "parking_lot RwLock read", &shared());
}
