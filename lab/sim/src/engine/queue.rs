//! Run queues: which thread has which CPU.
//!
//! # What it is
//! Each CPU has one thread and a queue of others, first in, first out. While others wait, a thread
//! has its CPU for a time slice. Outside of the sections of [`crate::preempt`] the thread loses its
//! CPU between two accesses, in the middle of private work (the rest is done later), or while it
//! spins (its condition is evaluated again later). A thread that wakes gets its last CPU if that is
//! idle, else the nearest idle CPU. If no CPU is idle, the thread is put at the head of the queue
//! of its last CPU, and the slice of the thread that runs there ends: a thread that slept has used
//! less than its share. A CPU with nothing to do takes a thread from the longest queue; among equal
//! queues, from the nearest CPU's. Caches belong to CPUs, so a thread that moves leaves its lines
//! behind.
//!
//! # What it is not
//! A fair-share scheduler with priorities, nor a load balancer: threads move only when a CPU is idle.

use super::Engine;
use super::event::Event;
use super::task::State;
use super::tree::NEVER;
use super::virtual_cpu::add;

impl Engine {
    pub(super) fn set_idle(&self, cpu: usize, is_idle: bool) {
        let (word, bit) = (&self.idle[cpu / 64], 1 << (cpu % 64));
        let before = word.get();
        word.set(if is_idle { before | bit } else { before & !bit });
        if before != word.get() {
            let count = self.idle_count.get();
            self.idle_count.set(if is_idle { count + 1 } else { count - 1 });
        }
    }

    /// Finds a CPU for a thread that has become runnable.
    pub(super) fn place(&self, thread: u32) {
        let had = self.task_of(thread).cpu.get();
        if self.cpus[had].is_idle() {
            self.dispatch(had, thread);
        } else if let Some(cpu) = self.nearest_idle(had) {
            self.dispatch(cpu, thread);
        } else if self.task_of(thread).yielder.get().is_null() {
            self.enqueue(had, thread);
        } else {
            self.enqueue_first(had, thread);
        }
    }

    fn nearest_idle(&self, cpu: usize) -> Option<usize> {
        if self.idle_count.get() == 0 {
            return None;
        }
        let node = self.places.node(cpu);
        let idle = self.idle.iter().enumerate().flat_map(|(index, word)| {
            let word = word.get();
            (0..64).filter(move |bit| word & 1 << bit != 0).map(move |bit| index * 64 + bit)
        });
        idle.min_by_key(|&cpu| (self.places.distance(node, self.places.node(cpu)), cpu))
    }

    /// Gives an empty CPU to a thread, now.
    fn dispatch(&self, cpu: usize, thread: u32) {
        let (now, this, task) = (self.clock.get(), &self.cpus[cpu], self.task_of(thread));
        if self.idle[cpu / 64].get() & 1 << (cpu % 64) != 0 {
            add(&this.idle_time, self.within(this.idle_since.get(), now));
            self.skip_interrupts(cpu);
            self.set_idle(cpu, false);
        }
        let is_other = this.last.replace(thread + 1) != thread + 1;
        let start = now + if is_other { self.costs.switch } else { 0 };
        if is_other {
            add(&self.counts.switches, 1);
            add(&this.switch_time, self.within(now, start));
        }
        this.current.set(thread + 1);
        this.switches.set(this.switches.get().wrapping_add(1));
        this.slice_end.set(start + self.costs.slice);
        this.is_armed.set(false);
        this.is_put_off.set(false);
        if task.cpu.replace(cpu) != cpu {
            add(&self.counts.migrations, 1);
        }
        task.state.set(State::Running);
        task.tag_since.set(start);
        task.spins_since.set(start);
        self.set_clock(cpu, start + task.remaining.take());
        if this.has_queue() {
            self.arm_slice_end(cpu, now);
        }
    }

    pub(super) fn enqueue(&self, cpu: usize, thread: u32) {
        let _host = crate::arena::outside();
        self.task_of(thread).state.set(State::Queued);
        self.cpus[cpu].queue.borrow_mut().push_back(thread);
        self.queued_threads.set(self.queued_threads.get() + 1);
        self.arm_slice_end(cpu, self.clock.get());
    }

    /// Queues a thread that slept before all others, and ends the slice of the one that runs.
    fn enqueue_first(&self, cpu: usize, thread: u32) {
        let (_host, now, this) = (crate::arena::outside(), self.clock.get(), &self.cpus[cpu]);
        self.task_of(thread).state.set(State::Queued);
        this.queue.borrow_mut().push_front(thread);
        self.queued_threads.set(self.queued_threads.get() + 1);
        if this.slice_end.get() > now {
            this.slice_end.set(now);
            // One that is armed for later finds another thread there, or nothing to do.
            this.is_armed.set(false);
        }
        self.arm_slice_end(cpu, now);
    }

    fn dequeue(&self, cpu: usize) -> Option<u32> {
        let thread = self.cpus[cpu].queue.borrow_mut().pop_front()?;
        self.queued_threads.set(self.queued_threads.get() - 1);
        Some(thread)
    }

    /// From the longest queue; of equals from the nearest CPU.
    fn steal(&self, cpu: usize) -> Option<u32> {
        if self.queued_threads.get() == 0 {
            return None;
        }
        let node = self.places.node(cpu);
        let key = |other: &usize| {
            let length = self.cpus[*other].queue.borrow().len();
            (core::cmp::Reverse(length), self.places.distance(node, self.places.node(*other)), *other)
        };
        let victim = (0..self.cpus.len()).min_by_key(key)?;
        self.dequeue(victim)
    }

    /// Takes the CPU from the thread that runs, now, and gives the CPU to the next thread if there
    /// is one.
    pub(super) fn release_cpu(&self) {
        let (cpu, now) = (self.cpu.get(), self.clock.get());
        self.settle(self.task(), now);
        self.tree.set(cpu, NEVER);
        self.next_thread(cpu);
    }

    fn next_thread(&self, cpu: usize) {
        let this = &self.cpus[cpu];
        this.current.set(0);
        match self.dequeue(cpu).or_else(|| self.steal(cpu)) {
            Some(thread) => self.dispatch(cpu, thread),
            None => {
                this.idle_since.set(self.clock.get());
                self.set_idle(cpu, true);
            }
        }
    }

    /// Makes sure that the slice of the CPU's thread ends, because other threads wait.
    pub(super) fn arm_slice_end(&self, cpu: usize, now: u64) {
        let this = &self.cpus[cpu];
        if this.is_armed.get() || this.is_put_off.get() || this.is_idle() {
            return;
        }
        let task = self.task_of(this.current.get() - 1);
        let mut end = this.slice_end.get();
        if task.state.get() == State::Spinning && task.keeps_cpu.get() == 0 {
            end = end.min(self.end_of_spinning(task.spins_since.get()));
        }
        this.is_armed.set(true);
        self.at(end.max(now), Event::SliceEnd { cpu: cpu as u32, switches: this.switches.get() });
    }

    /// Ends a slice: gives the CPU to the next thread of the queue if there is one.
    pub(super) fn end_slice(&self, cpu: usize, switches: u32) {
        let this = &self.cpus[cpu];
        if this.switches.get() != switches || this.is_idle() {
            return;
        }
        this.is_armed.set(false);
        if !this.has_queue() {
            return this.slice_end.set(self.clock.get() + self.costs.slice);
        }
        let thread = this.current.get() - 1;
        let task = self.task_of(thread);
        if task.tag_since.get() > self.clock.get() {
            // In an interrupt, which is not charged to the thread.
            this.is_armed.set(true);
            return self.at(task.tag_since.get(), Event::SliceEnd { cpu: cpu as u32, switches });
        }
        let is_parking = matches!(task.state.get(), State::Parking(_));
        if this.in_access.get() || is_parking {
            return this.is_put_off.set(true);
        }
        if task.keeps_cpu.get() > 0 {
            // Unless it has spun for a whole slice: it may wait for a thread that lost its CPU.
            let is_spinning = task.state.get() == State::Spinning;
            let last = task.spins_since.get() + self.costs.slice;
            if !is_spinning || self.clock.get() < last {
                this.is_put_off.set(true);
                if is_spinning {
                    self.at(last, Event::SliceEnd { cpu: cpu as u32, switches });
                }
                return;
            }
        }
        add(&self.counts.preemptions, 1);
        let now = self.clock.get();
        self.settle(task, now);
        if task.state.get() == State::Spinning {
            self.unlink(cpu);
            task.woken_line.set(task.watched[0].get().0);
            task.has_fetched.set(false);
        } else {
            let goes_on = self.tree.time_of(cpu);
            debug_assert_ne!(goes_on, NEVER, "{} waits for a line", task.name);
            task.remaining.set(goes_on.saturating_sub(now));
        }
        self.tree.set(cpu, NEVER);
        this.current.set(0);
        let next = self.dequeue(cpu);
        // Into the queue while the CPU counts as idle, so that no end of a slice is armed for an idle CPU.
        self.enqueue(cpu, thread);
        if let Some(next) = next {
            self.dispatch(cpu, next);
        }
    }

    /// Schedules the end of the slice again if the reason for its delay is over.
    pub(super) fn resume_slice_end(&self) {
        let cpu = self.cpu.get();
        let this = &self.cpus[cpu];
        if this.is_put_off.get() && self.task().keeps_cpu.get() == 0 {
            this.is_put_off.set(false);
            this.is_armed.set(true);
            self.at(self.clock.get(), Event::SliceEnd { cpu: cpu as u32, switches: this.switches.get() });
        }
    }

    /// Makes the thread that runs keep its CPU from here on, or undoes one such call.
    pub(crate) fn keep_cpu(&self, keep: bool) {
        let depth = &self.task().keeps_cpu;
        depth.set(if keep { depth.get() + 1 } else { depth.get() - 1 });
        if !keep {
            self.resume_slice_end();
        }
    }

    /// Lets other threads run before the thread that runs (`sched_yield`).
    pub(crate) fn yield_now(&self) {
        if self.mode.get() & super::mode::SCHEDULER != 0 {
            return self.note_unwatchable();
        }
        self.spend(self.costs.call);
        let (cpu, thread) = (self.cpu.get(), self.thread.get() as u32);
        if !self.cpus[cpu].has_queue() || Self::is_unwinding() {
            return;
        }
        let _host = crate::arena::outside();
        self.settle(self.task(), self.clock.get());
        self.tree.set(cpu, NEVER);
        self.cpus[cpu].current.set(0);
        let next = self.dequeue(cpu);
        self.enqueue(cpu, thread);
        if let Some(next) = next {
            self.dispatch(cpu, next);
        }
        self.suspend();
    }

    /// Interrupts every CPU that runs a thread, and waits until they have all answered (`membarrier(2)`).
    pub(crate) fn interrupt_others(&self) {
        if self.mode.get() & super::mode::UNCHARGED != 0 {
            return;
        }
        let (cpu, node) = (self.cpu.get(), self.places.node(self.cpu.get()));
        let mut answer = 0;
        for other in (0..self.cpus.len()).filter(|&other| other != cpu && !self.cpus[other].is_idle()) {
            let distance = self.places.distance(node, self.places.node(other));
            let stores = self.cpus[other].retires.get().saturating_sub(self.clock.get());
            answer = answer.max(self.costs.store_miss[distance] * 2 + self.costs.call + stores);
            self.delay(other, self.costs.call);
        }
        self.spend(self.costs.call + answer);
    }

    /// Takes time from a CPU.
    fn delay(&self, cpu: usize, ps: u64) {
        let this = &self.cpus[cpu];
        match self.tree.time_of(cpu) {
            // It waits for a line or spins; the time passes when it continues.
            NEVER => this.stolen.set(ps),
            _ if this.in_access.get() => this.stolen.set(ps),
            time => self.tree.set(cpu, time + ps),
        }
    }
}
