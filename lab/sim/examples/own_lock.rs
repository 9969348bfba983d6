//! Your lock on 80 CPUs: a lock of your own beside four that Linux used, on a simulated machine of eight nodes.
//!
//! `cargo run --release -p lightfoot-sim --example own_lock`; takes some seconds. See `lab/docs/own.md`.

#![allow(unsafe_code, reason = "to be a raw lock is a promise to exclude")]

use lightfoot_sim::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use lightfoot_sim::{Arena, Config, Machine, cost, count_op, hint, running};
use locks_sim::{McsLock, QueuedLock, TicketLock};
use sync_sim::{Lock, RawLock, TasLock};

/// Without it, the lines of the heap depend on the host. (The program of the tests, which has this file too, has its own.)
#[cfg_attr(not(test), global_allocator)]
static ARENA: Arena = Arena;

/// Yours: a word, and a pause that doubles with each failure.
pub(crate) struct BackOff(AtomicU32);

// SAFETY: one thread at a time turns 0 into 1, by Acquire, and that thread alone turns it back, by Release.
unsafe impl RawLock for BackOff {
    fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    fn lock(&self) {
        let mut pauses = 1;
        while !self.try_lock() {
            (0..pauses).for_each(|_| hint::spin_loop());
            pauses = (2 * pauses).min(256);
        }
    }

    fn try_lock(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `unlock`.
        self.0.load(Relaxed) == 0 && self.0.swap(1, Acquire) == 0
    }

    unsafe fn unlock(&self) {
        // ORDERING: Release pairs with the Acquire in `try_lock`.
        self.0.store(0, Release);
    }
}

/// Million sections a second: each CPU takes the lock, writes what it protects, computes for 100 ns, releases the lock and
/// computes for a microsecond. (A section that is shorter than a CPU keeps a line ends before any other CPU sees the lock
/// taken, and then all locks are alike.)
pub(crate) fn rate<R: RawLock + 'static>(cpus: usize, run_us: u64) -> f64 {
    let config = Config::new(Machine::preset("dl980").expect("a preset"), cpus, run_us);
    let body = |lock: &Lock<R, u64>, _| {
        while running() {
            let mut held = lock.lock();
            *held += 1;
            cost(100);
            drop(held);
            cost(1_000);
            count_op(0);
        }
    };
    lightfoot_sim::run(config, || Lock::new(0), body).rate(0) / 1e6
}

/// One line of the table.
pub(crate) fn line<R: RawLock + 'static>(name: &str) -> String {
    let rates = [1, 10, 20, 40, 80].map(|cpus| format!("{:>8.2}", rate::<R>(cpus, 300)));
    format!("{name:>12}{}", rates.concat())
}

fn main() {
    println!("Million sections a second on 1 to 80 CPUs of a simulated DL980 (8 nodes of 10).");
    println!("A section holds the lock for 100 ns; 1 us without it follows. More is better.");
    println!("{:>12}{:>8}{:>8}{:>8}{:>8}{:>8}", "CPUs:", 1, 10, 20, 40, 80);
    println!("{}", line::<TasLock>("TAS"));
    println!("{}", line::<TicketLock>("ticket"));
    println!("{}", line::<McsLock>("MCS"));
    println!("{}", line::<QueuedLock>("qspinlock"));
    println!("{}", line::<BackOff>("yours"));
}
