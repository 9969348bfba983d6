//! The host as a simulated machine, and the loops on it.
//!
//! # What it is
//! One node with the measured numbers. A transfer between its CPUs has one cost for all kinds of
//! access, and a transfer that had to wait has the full cost (`rest` = 1). The time for which an
//! owner keeps a line that another CPU wants (`keep`) is fitted so that two CPUs adding to one word
//! take as long as measured.
//!
//! # What it is not
//! A preset: memory, caches and system costs are plain assumptions here, and the loops touch none
//! of them.

use super::loops::{self, DataLine, Kind};
use super::numbers::{Numbers, Pingpong};
use sim::atomic::{AtomicU64, Ordering::Relaxed};
use sim::machine::{Hit, Miss, Queue, System, Window};
use sim::{Config, Machine};
use std::thread;

/// Microseconds of virtual time that a loop runs, and that the fit's additions run.
const LOOP_US: u64 = 2000;
const FIT_US: u64 = 300;

/// The range of `keep` that is searched; values from 0.64 to 1.8 were seen.
const KEEP_AT_MOST: f64 = 8.0;

/// Returns the host as a machine, before the host's `keep` is fitted.
pub(super) fn host(numbers: &Numbers, pingpong: Pingpong) -> Machine {
    let transfer = || vec![pingpong.transfer_ns()];
    Machine {
        name: "host".into(),
        description: "this machine, as lightfoot-lab calibrate measured it".into(),
        nodes: 1,
        cpus_per_node: thread::available_parallelism().map_or(2, usize::from).clamp(2, 1024),
        groups: Vec::new(),
        line_bytes: 64,
        cache_kib: 1024,
        cache_ways: 16,
        hit: Hit {
            load_ns: numbers.load_ns,
            store_ns: numbers.store_ns,
            rmw_ns: numbers.rmw_ns,
            fence_ns: numbers.fence_ns.max(0.1),
            pause_ns: numbers.pause_ns,
            spin_turn_ns: numbers.load_ns + numbers.pause_ns,
        },
        miss: Miss {
            load_modified_ns: transfer(),
            load_shared_ns: transfer(),
            store_ns: transfer(),
            rmw_ns: transfer(),
            memory_ns: vec![100.0],
        },
        queue: Queue {
            shared_cache: true,
            local_occupancy_ns: 4.0,
            home_occupancy_ns: 30.0,
            keep: 1.0,
            rest: 1.0,
            overtake: 0,
        },
        // As the presets.
        window: Window::default(),
        system: System {
            call_ns: 100.0,
            wake_ns: 700.0,
            wake_latency_ns: 3000.0,
            sleep_ns: 1500.0,
            switch_ns: 1500.0,
            slice_ns: 3e6,
        },
    }
}

/// Returns `machine` with a store buffer.
pub(super) fn with_buffer(machine: &Machine) -> Machine {
    // Zen 5: 104 stores (AMD's optimization guide); misses as Zen 4's 24 (Chips and Cheese).
    machine.clone().with_window(104, 24)
}

/// Returns the host with the `keep` that fits the contended addition.
pub(super) fn fitted(numbers: &Numbers, pingpong: Pingpong) -> Machine {
    let host = host(numbers, pingpong);
    let with = |keep| host.clone().with_queue(keep, host.queue.rest);
    let off = |keep: f64| (contended_add_ns(&with(keep)) - pingpong.contended_add_ns).abs();
    let nearest = |keeps: &mut dyn Iterator<Item = f64>| {
        let tried = keeps.map(|keep| (off(keep), keep));
        tried.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(1.0, |(_, keep)| keep)
    };
    // The time is not quite monotone in `keep`, so no bisection: a coarse grid, then a fine one around its best.
    let step = KEEP_AT_MOST / 32.0;
    let coarse = nearest(&mut (0..=32).map(|index| f64::from(index) * step));
    let fine = nearest(&mut (-7..=7).map(|index| (coarse + f64::from(index) * step / 8.0).max(0.0)));
    with(fine)
}

/// Runs two CPUs that add to one word as fast as they can. Returns the nanoseconds from one
/// addition to the next, of both CPUs together.
fn contended_add_ns(machine: &Machine) -> f64 {
    ns_per_section(machine, 2, FIT_US, 0, || {
        let word = Box::new(AtomicU64::new(0));
        move |_| word.fetch_add(1, Relaxed)
    })
}

/// Runs the loop on the simulated machine. Returns the nanoseconds from one section to the next, of
/// all threads together.
pub(super) fn loop_ns(machine: &Machine, lock: Kind, data: DataLine, private_ns: u64, threads: usize) -> f64 {
    loops::simulated::visit(lock, data, Simulated { machine, private_ns, threads })
}

struct Simulated<'a> {
    machine: &'a Machine,
    private_ns: u64,
    threads: usize,
}

impl loops::Visitor for Simulated<'_> {
    type Output = f64;

    fn visit<S: Fn(u64) -> u64 + Send + Sync + 'static>(self, make: impl FnOnce() -> S + Send + 'static) -> f64 {
        ns_per_section(self.machine, self.threads, LOOP_US, self.private_ns, make)
    }
}

fn ns_per_section<S: Fn(u64) -> u64 + Send + Sync + 'static>(
    machine: &Machine,
    threads: usize,
    run_us: u64,
    private_ns: u64,
    make: impl FnOnce() -> S + Send + 'static,
) -> f64 {
    let config = Config::new(machine.clone(), threads, run_us);
    let report = sim::run(config, make, move |section, _| {
        while sim::running() {
            section(0);
            sim::cost(private_ns);
            sim::count_op(0);
        }
    });
    1e9 / report.rate(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the results of a processor with near CPUs, and of a processor with far CPUs.
    #[test]
    fn the_fitted_host_adds_to_a_contended_word_as_fast_as_the_machine_did() {
        for turn_ns in [50.0, 220.0] {
            let pingpong = Pingpong { turn_ns, contended_add_ns: 9.0 };
            let numbers = Numbers { load_ns: 1.6, store_ns: 0.2, rmw_ns: 5.6, fence_ns: 5.3, pause_ns: 26.0, pingpong };
            let fitted = fitted(&numbers, pingpong);
            let found = contended_add_ns(&fitted);
            assert!((found / 9.0 - 1.0).abs() < 0.1, "transfer {} ns: {found} ns, {:?}", turn_ns / 2.0, fitted.queue);
            assert_eq!(fitted.miss.rmw_ns, [turn_ns / 2.0]);
        }
    }

    #[test]
    fn the_host_is_a_machine_that_a_file_can_hold() {
        let pingpong = Pingpong { turn_ns: 50.0, contended_add_ns: 9.0 };
        let numbers = Numbers { load_ns: 1.6, store_ns: 0.2, rmw_ns: 5.6, fence_ns: 0.0, pause_ns: 26.0, pingpong };
        let host = host(&numbers, pingpong);
        assert_eq!(Machine::from_toml(&host.to_toml()).ok(), Some(host));
    }
}
