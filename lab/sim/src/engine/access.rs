//! The way of one access: most are hits and end here.

use super::virtual_cpu::add;
use super::{Engine, Kind, current, mode};
use core::panic::Location;

/// Charges an access to the line of `address`; returns when the line has arrived. `false`: no simulation runs.
///
/// The caller then performs the operation without another call to the engine in between, so that it takes effect at
/// that time.
#[inline(always)]
pub(crate) fn access(address: usize, kind: Kind, from: &'static Location<'static>) -> bool {
    match current() {
        Some(engine) => {
            engine.access(address, kind, from);
            true
        }
        None => false,
    }
}

impl Engine {
    #[inline]
    pub(crate) fn access(&self, address: usize, kind: Kind, from: &'static Location<'static>) {
        if (self.clock.get() > self.horizon.get() || self.mode.get() != 0) && !self.prepare(address, kind, from) {
            return;
        }
        let number = self.lines.number(address);
        self.access_line(number, address, kind, from);
        if self.mode.get() & mode::WATCHING != 0 {
            self.watch(number, kind);
        }
    }

    #[inline]
    fn access_line(&self, number: usize, address: usize, kind: Kind, from: &'static Location<'static>) {
        if self.has_stores() && self.pass_stores(number, address, kind) {
            return;
        }
        let cpu = self.cpu.get();
        add(&self.counts.accesses, 1);
        let cost = match kind {
            Kind::Load => {
                if !self.lines.use_copy(number, cpu) {
                    return self.miss(number, address, kind, from);
                }
                add(&self.counts.load_hits, 1);
                self.costs.load
            }
            Kind::Store | Kind::Rmw => {
                let line = self.lines.line(number);
                if usize::from(line.owner.get()) != cpu + 1 {
                    return self.miss(number, address, kind, from);
                }
                self.lines.use_copy(number, cpu);
                add(&self.counts.write_hits, 1);
                line.version.set(line.version.get().wrapping_add(1));
                if self.has_stores() {
                    return self.buffer_store(number, address, self.clock.get());
                }
                let cost = if kind == Kind::Rmw { self.costs.rmw } else { self.costs.store };
                if line.head.get() == 0 {
                    line.busy.set(line.busy.get().max(self.clock.get() + cost));
                }
                cost
            }
        };
        self.clock.set(self.clock.get() + cost);
    }

    /// Does the work before an access that is not an ordinary access. Returns `false` if the access
    /// is done.
    #[inline(never)]
    fn prepare(&self, address: usize, kind: Kind, from: &'static Location<'static>) -> bool {
        let mode = self.mode.get();
        if mode & mode::UNCHARGED != 0 {
            self.access_uncharged(address, kind);
            return false;
        }
        if mode & mode::SCHEDULER != 0 {
            self.access_of_condition(address, kind);
            return false;
        }
        if mode & mode::SHUFFLED != 0 {
            self.disturb();
        }
        if self.clock.get() > self.horizon.get() {
            self.turn();
        }
        if mode & mode::FOOTPRINT != 0 {
            let _host = crate::arena::outside();
            if let Some(record) = self.task().footprint.borrow_mut().as_mut() {
                record.add(self.lines.number(address), address, kind, from);
            }
        }
        true
    }

    /// Makes an access that is not charged to any thread. A write must still wake the threads that
    /// wait for the line.
    fn access_uncharged(&self, address: usize, kind: Kind) {
        if kind == Kind::Load {
            return;
        }
        let number = self.lines.number(address);
        let line = self.lines.line(number);
        line.version.set(line.version.get().wrapping_add(1));
        if line.waiters.get() != 0 {
            let _host = crate::arena::outside();
            self.wake_spinners(number, self.places.node(self.cpu.get()), self.clock.get());
        }
    }

    /// Delays the thread at random: mostly not, sometimes by some misses, seldom by a time slice.
    fn disturb(&self) {
        let random = &self.task().random;
        let drawn = random.draw();
        if drawn.is_multiple_of(4) {
            let scale = if drawn >> 8 & 0xFF == 0 { self.costs.slice.min(50_000_000) } else { 2_000_000 };
            add(&self.clock, random.below(scale));
        }
    }

    /// Waits until the line has arrived, or, if the access is a store that the CPU can buffer, until it is on its way.
    #[inline(never)]
    fn miss(&self, number: usize, address: usize, kind: Kind, from: &'static Location<'static>) {
        if Self::is_unwinding() {
            return;
        }
        self.await_free_miss();
        let host = crate::arena::outside();
        let (issued, cpu) = (self.clock.get(), self.cpu.get());
        let this = &self.cpus[cpu];
        this.in_access.set(true);
        let requested = self.request(number, cpu, kind);
        if requested.is_none() {
            self.suspend();
        }
        if self.is_buffered(kind) {
            self.buffer_store(number, address, requested.unwrap_or_else(|| this.arrival.get()));
        } else if let Some(arrival) = requested {
            self.clock.set(arrival);
            if arrival > self.horizon.get() {
                self.wait_for_turn();
            }
        }
        this.in_access.set(false);
        self.resume_slice_end();
        let now = self.clock.get();
        let stalled = self.within(issued, now);
        add(&this.stall_time, stalled);
        if self.config.stalls && stalled > 0 {
            self.stalls.borrow_mut().add(number, from, stalled);
        }
        self.hash.set((self.hash.get() ^ now ^ (cpu as u64) << 48).wrapping_mul(0x0100_0000_01B3));
        drop(host);
    }

    /// Charges `ps` of private work.
    #[inline]
    pub(crate) fn spend(&self, ps: u64) {
        add(&self.clock, ps);
        if self.clock.get() > self.horizon.get() {
            self.turn();
        }
    }

    /// Charges a cost hint.
    #[inline]
    pub(crate) fn cost(&self, ps: u64) {
        if self.mode.get() & (mode::UNCHARGED | mode::SCHEDULER) == 0 {
            self.spend(ps);
        }
    }

    /// Charges a full fence.
    pub(crate) fn fence(&self) {
        if self.mode.get() & (mode::UNCHARGED | mode::SCHEDULER) == 0 {
            self.drain();
            self.spend(self.costs.fence);
        }
    }

    /// Charges one turn of a thread's own waiting loop: also where nothing else is charged, or it would never end.
    pub(crate) fn pause(&self) {
        if self.mode.get() & mode::SCHEDULER != 0 {
            self.task().is_unwatchable.set(true);
        } else {
            self.spend(self.costs.pause);
        }
    }

    /// Charges accesses to all lines of `bytes` bytes, or to the first four.
    #[inline]
    pub(crate) fn touch(&self, address: usize, bytes: usize, kind: Kind, from: &'static Location<'static>) {
        let size = 1 << self.lines.shift;
        let mut at = address;
        for _ in 0..4 {
            self.access(at, kind, from);
            at = (at & !(size - 1)) + size;
            if at >= address + bytes {
                break;
            }
        }
    }

    /// Calls `f` with `bit` set in the thread's mode.
    pub(crate) fn with_mode<R>(&self, bit: u32, f: impl FnOnce() -> R) -> R {
        let before = self.mode.get() & bit;
        self.set_mode(bit, true);
        let restore = Restore(self, bit, before != 0);
        let result = f();
        drop(restore);
        result
    }

    fn set_mode(&self, bit: u32, on: bool) {
        let task = self.task();
        let set = |mode: u32| if on { mode | bit } else { mode & !bit };
        task.mode.set(set(task.mode.get()));
        self.mode.set(self.base_mode.get() | task.mode.get() | self.mode.get() & mode::SCHEDULER);
    }
}

/// Puts a bit of the mode back, also when `f` panics.
struct Restore<'e>(&'e Engine, u32, bool);

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        self.0.set_mode(self.1, self.2 && self.0.base_mode.get() & self.1 == 0);
    }
}
