//! What a read section, a retired object and a per-CPU reference cost, beside the crates people use for that.
//!
//! `cargo bench -p lightfoot-sync --bench rcu`, half a minute. Every contender is measured once a round, the rounds run
//! them in alternating order, and each figure is the median over the rounds of the CPU time of a thread per turn. The
//! retire table also shows the CPU time of the whole process per turn, because some free on another thread.

#![cfg(not(loom))]
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use crossbeam_epoch as epoch;
use lightfoot_sync::PerCpuOwner;
use lightfoot_sync::rcu::{RawRcu, Rcu, RcuDomain};
use rustix::time::{ClockId, clock_gettime};
use seize::Guard as _;
use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering::*};
use std::sync::{Arc, Barrier, RwLock};
use std::thread;

const ROUNDS: usize = 31;
const THREADS: [usize; 2] = [1, 2];

/// Runs so many turns. A whole slice per call, so that the loop is compiled with what it measures.
type Slice = Box<dyn Fn(u64) + Sync>;

struct Contender {
    name: &'static str,
    slice: Slice,
    /// Frees what a slice left behind; part of the process's time.
    finish: Box<dyn Fn() + Sync>,
}

fn contender(name: &'static str, turn: impl Fn() + Sync + 'static) -> Contender {
    retiring(name, turn, || {})
}

fn retiring(name: &'static str, turn: impl Fn() + Sync + 'static, finish: impl Fn() + Sync + 'static) -> Contender {
    Contender { name, slice: Box::new(move |turns| (0..turns).for_each(|_| turn())), finish: Box::new(finish) }
}

fn cpu_ns(clock: ClockId) -> f64 {
    let t = clock_gettime(clock);
    t.tv_sec as f64 * 1e9 + t.tv_nsec as f64
}

/// Nanoseconds of CPU time per turn: of the threads that run them, and of the process.
fn measure(contender: &Contender, threads: usize, turns: u64) -> (f64, f64) {
    let start = Barrier::new(threads);
    let warm_up = turns / 20;
    let begin = cpu_ns(ClockId::ProcessCPUTime);
    let of_threads: f64 = thread::scope(|s| {
        let work = || {
            (contender.slice)(warm_up);
            start.wait();
            let begin = cpu_ns(ClockId::ThreadCPUTime);
            (contender.slice)(turns);
            cpu_ns(ClockId::ThreadCPUTime) - begin
        };
        let running: Vec<_> = (0..threads).map(|_| s.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().expect("no contender panics")).sum()
    });
    (contender.finish)();
    let of_process = cpu_ns(ClockId::ProcessCPUTime) - begin;
    let threads = threads as f64;
    (of_threads / (threads * turns as f64), of_process / (threads * (turns + warm_up) as f64))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Medians of the threads and of the process, per contender and number of threads.
fn run(contenders: &[Contender], turns: u64) -> Vec<[(f64, f64); THREADS.len()]> {
    let mut figures: Vec<[(Vec<f64>, Vec<f64>); THREADS.len()]> =
        contenders.iter().map(|_| Default::default()).collect();
    for round in 0..ROUNDS {
        for at in 0..contenders.len() {
            let at = if round % 2 == 0 { at } else { contenders.len() - 1 - at };
            for (column, &threads) in THREADS.iter().enumerate() {
                let (of_threads, of_process) = measure(&contenders[at], threads, turns);
                figures[at][column].0.push(of_threads);
                figures[at][column].1.push(of_process);
            }
        }
    }
    figures.into_iter().map(|row| row.map(|(threads, process)| (median(threads), median(process)))).collect()
}

fn print_reads(title: &str, contenders: &[Contender], turns: u64) {
    let figures = run(contenders, turns);
    println!("\n{title:<32} {:>8} {:>8} {:>11} {:>11}", "1T ns", "2T ns", "1T - first", "1T / first");
    for (contender, row) in contenders.iter().zip(&figures) {
        let (one, two, first) = (row[0].0, row[1].0, figures[0][0].0);
        println!("{:<32} {one:>8.2} {two:>8.2} {:>11.2} {:>11.1}", contender.name, one - first, one / first);
    }
}

fn print_retires(title: &str, contenders: &[Contender], turns: u64) {
    let figures = run(contenders, turns);
    println!("\n{title:<32} {:>8} {:>8} {:>11} {:>11}", "1T ns", "2T ns", "1T process", "2T process");
    for (contender, [one, two]) in contenders.iter().zip(&figures) {
        println!("{:<32} {:>8.1} {:>8.1} {:>11.1} {:>11.1}", contender.name, one.0, two.0, one.1, two.1);
    }
}

fn ours(name: &'static str, domain: RcuDomain) -> Contender {
    let cell = Rcu::new(&domain, 1u64);
    contender(name, move || {
        let guard = domain.read();
        black_box(*cell.load(&guard));
    })
}

fn our_readers() -> Vec<Contender> {
    let plain = AtomicPtr::new(Box::into_raw(Box::new(1u64)));
    let (nested, raw) = (RcuDomain::new(), RcuDomain::new());
    let nested_cell = Rcu::new(&nested, 1u64);
    let raw_cell = RawRcu::new(Some(Box::new(1u64)));
    vec![
        contender("nothing", move || {
            // SAFETY: leaked.
            black_box(unsafe { *plain.load(Acquire) });
        }),
        ours("ours, membarrier", RcuDomain::new()),
        contender("ours, membarrier, RawRcu", move || {
            let guard = raw.read();
            // SAFETY: never replaced.
            black_box(unsafe { raw_cell.load(&guard) }.copied());
        }),
        contender("ours, membarrier, two sections", move || {
            let _outer = nested.read();
            let guard = nested.read();
            black_box(*nested_cell.load(&guard));
        }),
        ours("ours, full fence", RcuDomain::with_fences()),
    ]
}

fn their_readers() -> Vec<Contender> {
    let collector = seize::Collector::new();
    let seized = AtomicPtr::new(Box::into_raw(Box::new(1u64)));
    let pinned = epoch::Atomic::new(1u64);
    let owned = sdd::AtomicOwned::new(1u64);
    let arc = Arc::new(1u64);
    let (std_lock, parking_lot) = (RwLock::new(1u64), parking_lot::RwLock::new(1u64));
    vec![
        contender("crossbeam-epoch pin", move || {
            let guard = epoch::pin();
            // SAFETY: never replaced.
            black_box(unsafe { *pinned.load(Acquire, &guard).deref() });
        }),
        contender("seize enter", move || {
            let guard = collector.enter();
            // SAFETY: never replaced.
            black_box(unsafe { *guard.protect(&seized, Acquire) });
        }),
        contender("sdd guard", move || {
            let guard = sdd::Guard::new();
            black_box(owned.load(Acquire, &guard).as_ref().copied());
        }),
        contender("Arc clone + drop", move || {
            black_box(*Arc::clone(&arc));
        }),
        contender("std RwLock read", move || {
            black_box(*std_lock.read().expect("not poisoned"));
        }),
        contender("parking_lot RwLock read", move || {
            black_box(*parking_lot.read());
        }),
    ]
}

fn retirers() -> Vec<Contender> {
    let ours = |name, domain: RcuDomain| {
        let shared = Arc::new((Rcu::new(&domain, 1u64), domain));
        let finish = shared.clone();
        retiring(name, move || shared.0.replace(&shared.1, black_box(2)), move || finish.1.barrier())
    };
    let pinned = epoch::Atomic::new(1u64);
    let collector = seize::Collector::new();
    let seized = AtomicPtr::new(Box::into_raw(Box::new(1u64)));
    let crossbeam = move || {
        let guard = epoch::pin();
        let old = pinned.swap(epoch::Owned::new(black_box(2)), AcqRel, &guard);
        // SAFETY: out of reach, and retired once.
        unsafe { guard.defer_destroy(old) };
    };
    vec![
        ours("ours, reclaimer thread", RcuDomain::new()),
        ours("ours, in passing", RcuDomain::without_reclaimer()),
        retiring("crossbeam-epoch", crossbeam, || epoch::pin().flush()),
        contender("seize", move || {
            let guard = collector.enter();
            let old = guard.swap(&seized, Box::into_raw(Box::new(black_box(2))), AcqRel);
            // SAFETY: out of reach, and retired once.
            unsafe { guard.defer_retire(old, seize::reclaim::boxed) };
        }),
    ]
}

fn references() -> Vec<Contender> {
    let arc = Arc::new(1u64);
    let owner = PerCpuOwner::new(1u64, false);
    vec![
        contender("PerCpuArc clone + drop", move || {
            black_box(*owner.share());
        }),
        contender("Arc clone + drop", move || {
            black_box(*Arc::clone(&arc));
        }),
    ]
}

fn main() {
    if cfg!(debug_assertions) {
        return; // `cargo test --benches`: nothing to see without optimisation.
    }
    println!("reader mode of the default domain: {:?}", RcuDomain::new().stats().reader_mode);
    let mut readers = our_readers();
    readers.append(&mut their_readers());
    print_reads("enter + load + leave", &readers, 600_000);
    print_retires("allocate + swap + retire", &retirers(), 100_000);
    print_reads("reference", &references(), 600_000);
}
