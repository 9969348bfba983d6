//! The store buffer: a store whose line is away does not stop its CPU.
//!
//! # What it is
//! A model of time alone. A store takes effect at once, when the transfer of its line begins: the
//! CPU owns the line after that and no other can read it before it has arrived. So all accesses are
//! in one order that agrees with each program's, as without a buffer (sequential consistency); the
//! buffer only changes when the CPU continues and when other CPUs get the line. Stores retire in
//! order, the youngest last: a line that a store hit is not given away before older stores have
//! retired. `lab/docs/simulator.md` has the rules.
//!
//! # What it is not
//! A weak memory: no load passes an older store of another CPU. That order is loom's subject. Nor
//! does a store that must queue for its line wait in the buffer: its CPU waits until the transfer
//! begins.
//!
//! # Invariants
//! 1. Stores of one CPU are in the order of the program, and so are the times at which they retire.
//! 2. `Cpu::retires` is the time at which the last one does, and `Engine::retires` the time for the
//!    running CPU.

use super::virtual_cpu::{Cpu, add};
use super::{Engine, Kind};
use core::cell::RefCell;
use std::collections::VecDeque;

/// A store that has not retired.
#[derive(Clone, Copy)]
struct Store {
    line: u32,
    /// The address of the eight bytes that hold the stored value.
    word: usize,
    /// When the store's line arrives. For a store that hit: when the store was issued.
    arrives: u64,
    retires: u64,
}

/// The stores of one CPU that have not retired, oldest first.
pub(super) struct StoreBuffer(RefCell<VecDeque<Store>>);

impl StoreBuffer {
    /// Returns a buffer for `entries` stores. The buffer does not grow beyond.
    pub(super) fn new(entries: usize) -> Self {
        Self(RefCell::new(VecDeque::with_capacity(entries)))
    }

    /// Forgets the stores that have retired.
    fn retire(&self, now: u64) {
        let mut stores = self.0.borrow_mut();
        while stores.front().is_some_and(|store| store.retires <= now) {
            stores.pop_front();
        }
    }

    /// Returns the time at which the oldest store retires.
    fn first_retires(&self) -> u64 {
        self.0.borrow().front().map_or(0, |store| store.retires)
    }

    fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Returns the time until which a load of `word` must wait for its line. `None`: the buffer has
    /// the value.
    fn arrival_for(&self, line: u32, word: usize) -> Option<u64> {
        let stores = self.0.borrow();
        let of_line = || stores.iter().filter(|store| store.line == line);
        if of_line().any(|store| store.word == word) {
            return None;
        }
        Some(of_line().map(|store| store.arrives).max().unwrap_or(0))
    }

    /// Returns the misses in flight at `now`, and when the first of them arrives.
    fn misses(&self, now: u64) -> (usize, u64) {
        let stores = self.0.borrow();
        let arrivals = stores.iter().map(|store| store.arrives).filter(|&arrives| arrives > now);
        arrivals.fold((0, u64::MAX), |(count, first), arrives| (count + 1, first.min(arrives)))
    }
}

/// Returns the address of the eight bytes that contain `address`.
fn word_of(address: usize) -> usize {
    address & !7
}

impl Engine {
    /// Returns whether stores of the CPU that runs have not retired.
    #[inline(always)]
    pub(super) fn has_stores(&self) -> bool {
        self.retires.get() > self.clock.get()
    }

    fn this_cpu(&self) -> &Cpu {
        &self.cpus[self.cpu.get()]
    }

    /// Makes an access wait before the access begins, while stores are in the buffer. Returns
    /// `true` for a load that is over, because the buffer has the value.
    #[inline(never)]
    pub(super) fn pass_stores(&self, number: usize, address: usize, kind: Kind) -> bool {
        if Self::is_unwinding() {
            return false;
        }
        let buffer = &self.this_cpu().stores;
        buffer.retire(self.clock.get());
        match kind {
            Kind::Rmw => self.drain(),
            Kind::Store if buffer.len() >= self.costs.stores => self.stall_until(buffer.first_retires()),
            Kind::Store => {}
            Kind::Load => match buffer.arrival_for(number as u32, word_of(address)) {
                Some(arrives) => self.stall_until(arrives),
                None => {
                    add(&self.counts.accesses, 1);
                    add(&self.counts.load_hits, 1);
                    add(&self.clock, self.costs.load);
                    return true;
                }
            },
        }
        false
    }

    /// Waits until fewer misses are in flight than the CPU can have, so that a miss may begin.
    pub(super) fn await_free_miss(&self) {
        while self.has_stores() {
            let (misses, first) = self.this_cpu().stores.misses(self.clock.get());
            if misses < self.costs.misses {
                return;
            }
            self.stall_until(first);
        }
    }

    /// Waits until all stores of the CPU have retired, as a fence or a locked instruction does.
    pub(super) fn drain(&self) {
        self.stall_until(self.retires.get());
    }

    /// Puts a store into the buffer, and lets the CPU continue. The store's line arrives at
    /// `arrives`, or is there.
    pub(super) fn buffer_store(&self, number: usize, address: usize, arrives: u64) {
        let (this, line, now) = (self.this_cpu(), self.lines.line(number), self.clock.get());
        this.stores.retire(now);
        let retires = arrives.max(now + self.costs.store).max(this.retires.get());
        // The line does not leave before. While others wait for it that puts them off once, or they could wait for ever.
        if line.head.get() == 0 || !line.is_put_off.replace(true) {
            line.busy.set(line.busy.get().max(retires));
        }
        this.stores.0.borrow_mut().push_back(Store { line: number as u32, word: word_of(address), arrives, retires });
        this.retires.set(retires);
        self.retires.set(retires);
        self.clock.set(now + self.costs.store);
    }

    /// Makes the CPU wait until `time`, in the middle of an instruction.
    fn stall_until(&self, time: u64) {
        let now = self.clock.get();
        if time <= now || Self::is_unwinding() {
            return;
        }
        let _host = crate::arena::outside();
        let this = self.this_cpu();
        this.in_access.set(true);
        self.clock.set(time);
        if time > self.horizon.get() {
            self.wait_for_turn();
        }
        this.in_access.set(false);
        self.resume_slice_end();
        add(&this.stall_time, self.within(now, self.clock.get()));
    }
}
