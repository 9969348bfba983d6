//! The few numbers of the machine in front of us that a simulated one needs.
//!
//! # What it is
//! Costs of accesses that hit, alone; of one line that two CPUs hand to and fro; and of two CPUs that add to one word as
//! fast as they can.
//!
//! # What it is not
//! A benchmark of the machine: memory, system calls and larger distances than that between the two CPUs are not
//! measured, and the simulated host does not need them for loops over one line.

use super::bursts::{Pair, chunk_of, ns_per_operation};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release, Ordering::SeqCst, fence};

/// The measured times, in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Numbers {
    /// A load that depends on the one before it.
    pub load_ns: f64,
    /// A store, with others before and after it.
    pub store_ns: f64,
    /// A `fetch_add` on a line that no other CPU uses.
    pub rmw_ns: f64,
    /// The time that a full fence adds to a store.
    pub fence_ns: f64,
    /// A spin hint.
    pub pause_ns: f64,
    /// The times of a ping-pong: two CPUs do `fetch_add` in turn, and each waits with loads for the
    /// other.
    pub pingpong: Pingpong,
}

/// The part of the numbers that a hypervisor changes while we measure.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Pingpong {
    /// Half a round trip.
    pub turn_ns: f64,
    /// Two CPUs do `fetch_add` on one word at once: the time from one addition to the next,
    /// whichever CPU makes it.
    pub contended_add_ns: f64,
}

impl Pingpong {
    /// Returns the time of one transfer of the line. A turn has two transfers: the waiter's load
    /// fetches the line, and the waiter's `fetch_add` takes the line from the other CPU, which is
    /// reading it.
    #[must_use]
    pub fn transfer_ns(&self) -> f64 {
        self.turn_ns / 2.0
    }

    /// Measures the times. Returns `None` if the machine was too busy.
    pub(super) fn measure(pair: Pair) -> Option<Self> {
        Some(Self { turn_ns: turn(pair)?, contended_add_ns: add(pair, 2)? })
    }
}

impl Numbers {
    /// Measures the times. Returns `None` if the machine was too busy.
    pub(super) fn measure(pair: Pair) -> Option<Self> {
        let store_ns = store(pair)?;
        Some(Self {
            load_ns: load(pair)?,
            store_ns,
            rmw_ns: add(pair, 1)?,
            fence_ns: (store_and_fence(pair)? - store_ns).max(0.0),
            pause_ns: pause(pair)?,
            pingpong: Pingpong::measure(pair)?,
        })
    }
}

/// A separate cache line, together with its neighbour, which some CPUs fetch with it.
#[derive(Default)]
#[repr(align(128))]
struct SharedLine(AtomicU64);

fn load(pair: Pair) -> Option<f64> {
    // A ring of indexes: the address of each load is the value of the one before it.
    let ring: [usize; 64] = black_box(std::array::from_fn(|index| (index + 7) % 64));
    ns_per_operation(pair, 1, chunk_of(1.0), |_, chunk| {
        let last = (0..chunk).fold(0, |at, _| ring[at & 63]);
        black_box(last);
        chunk
    })
}

fn store(pair: Pair) -> Option<f64> {
    let line = SharedLine::default();
    ns_per_operation(pair, 1, chunk_of(0.0), |_, chunk| {
        (0..chunk).for_each(|value| line.0.store(u64::from(value), Relaxed));
        chunk
    })
}

fn store_and_fence(pair: Pair) -> Option<f64> {
    let line = SharedLine::default();
    ns_per_operation(pair, 1, chunk_of(10.0), |_, chunk| {
        for value in 0..chunk {
            line.0.store(u64::from(value), Relaxed);
            // ORDERING: no partner; the fence's cost is what is measured.
            fence(SeqCst);
        }
        chunk
    })
}

fn pause(pair: Pair) -> Option<f64> {
    ns_per_operation(pair, 1, chunk_of(20.0), |_, chunk| {
        (0..chunk).for_each(|_| core::hint::spin_loop());
        chunk
    })
}

fn add(pair: Pair, threads: usize) -> Option<f64> {
    let line = SharedLine::default();
    ns_per_operation(pair, threads, chunk_of(20.0), |_, chunk| {
        for _ in 0..chunk {
            line.0.fetch_add(1, Relaxed);
        }
        chunk
    })
}

fn turn(pair: Pair) -> Option<f64> {
    let line = SharedLine::default();
    ns_per_operation(pair, 2, chunk_of(100.0), |thread, chunk| {
        let done = (0..chunk).take_while(|_| take_turn(&line.0, thread as u64)).count();
        done as u32
    })
}

/// Waits for our turn and passes it on. No: the other does not play, as a burst begins or ends.
fn take_turn(turns: &AtomicU64, thread: u64) -> bool {
    const PATIENCE: u32 = 2000;
    // ORDERING: Acquire and Release are each other's partners in this function, as a lock would have them.
    let is_ours = (0..PATIENCE).any(|_| turns.load(Acquire) & 1 == thread);
    if is_ours {
        turns.fetch_add(1, Release);
    }
    is_ours
}
