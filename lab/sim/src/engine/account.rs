//! Accounts of the time of each CPU and thread.

use super::task::Task;
use super::virtual_cpu::add;
use super::{Engine, mode};
use crate::profile::Tag;

impl Engine {
    /// Returns the part of a span of time that is measured.
    #[inline]
    pub(crate) fn within(&self, from: u64, to: u64) -> u64 {
        to.min(self.deadline.get()).saturating_sub(from.max(self.warm.get()))
    }

    /// Returns whether current events are counted.
    #[inline]
    pub(crate) fn is_measured(&self) -> bool {
        let now = self.clock.get();
        now >= self.warm.get() && now < self.deadline.get()
    }

    /// Adds a thread's time so far to its tag.
    pub(super) fn settle(&self, task: &Task, now: u64) {
        let since = task.tag_since.replace(now);
        let (tag, time) = (task.tag.get(), self.within(since, now));
        add(&task.tag_time[tag as usize], time);
        if time > 0 && matches!(tag, Tag::SpinLock | Tag::RwLock | Tag::SeqLock) {
            self.meter.borrow_mut().spun(task.caller.get(), time);
        }
    }

    /// Sets the caller that the spinning of the running thread is counted for. Returns the caller
    /// before.
    pub(crate) fn set_caller(&self, caller: usize) -> usize {
        let task = self.task();
        if self.mode.get() & mode::SCHEDULER != 0 {
            return task.caller.get();
        }
        self.settle(task, self.clock.get());
        task.caller.replace(caller)
    }

    /// Sets the tag of the running thread. Returns the tag before.
    pub(crate) fn set_tag(&self, tag: Tag) -> Tag {
        let task = self.task();
        if self.mode.get() & mode::SCHEDULER != 0 {
            return task.tag.get();
        }
        self.settle(task, self.clock.get());
        task.tag.replace(tag)
    }

    /// Counts an operation of the thread that runs.
    pub(crate) fn count_operation(&self, slot: usize) {
        if self.is_measured() {
            add(&self.task().operations[slot], 1);
        }
    }

    /// Takes the time of an interrupt that is due on the CPU that runs.
    pub(super) fn take_interrupts(&self) {
        let Some(interrupts) = self.config.interrupts else { return };
        let cpu = &self.cpus[self.cpu.get()];
        let now = self.clock.get();
        if now < cpu.next_interrupt.get() || self.mode.get() & mode::UNCHARGED != 0 {
            return;
        }
        let length = cpu.random.exponential(interrupts.mean_ns * super::NS);
        self.settle(self.task(), now);
        let end = now + length;
        self.clock.set(end);
        self.task().tag_since.set(end);
        add(&cpu.interrupt_time, self.within(now, end));
        cpu.next_interrupt.set(end + cpu.random.exponential(interrupts.every_ns * super::NS));
    }

    /// Skips the interrupts of a time in which the CPU did nothing that interrupts could delay.
    pub(super) fn skip_interrupts(&self, cpu: usize) {
        let Some(interrupts) = self.config.interrupts else { return };
        let cpu = &self.cpus[cpu];
        while cpu.next_interrupt.get() < self.clock.get() {
            add(&cpu.next_interrupt, cpu.random.exponential(interrupts.every_ns * super::NS).max(1));
        }
    }

    /// Begins the interrupts of all CPUs.
    pub(super) fn start_interrupts(&self) {
        let Some(interrupts) = self.config.interrupts else { return };
        for cpu in &self.cpus {
            cpu.next_interrupt.set(self.clock.get() + cpu.random.exponential(interrupts.every_ns * super::NS));
        }
    }
}

/// Sums over CPUs and threads, in picoseconds.
pub(crate) struct Times {
    pub(crate) cpus: usize,
    pub(crate) tags: [u64; Tag::COUNT],
    pub(crate) idle: u64,
    pub(crate) interrupts: u64,
    pub(crate) switches: u64,
    pub(crate) stalls: u64,
}

impl Engine {
    pub(crate) fn times(&self) -> Times {
        let sum = |of: fn(&super::Cpu) -> u64| self.cpus.iter().map(of).sum();
        Times {
            cpus: self.cpus.len(),
            tags: core::array::from_fn(|tag| self.tasks().map(|task| task.tag_time[tag].get()).sum()),
            idle: sum(|cpu| cpu.idle_time.get()),
            interrupts: sum(|cpu| cpu.interrupt_time.get()),
            switches: sum(|cpu| cpu.switch_time.get()),
            stalls: sum(|cpu| cpu.stall_time.get()),
        }
    }

    pub(crate) fn operations_of(&self, thread: u32) -> [u64; super::SLOTS] {
        let task = self.task_of(thread);
        core::array::from_fn(|slot| task.operations[slot].get())
    }

    pub(crate) fn hash_of_misses(&self) -> u64 {
        self.hash.get()
    }

    pub(crate) fn arena_bytes(&self) -> usize {
        self.heap.used()
    }

    /// Returns a moment that a thread begins later than the others, below a microsecond.
    pub(crate) fn stagger(&self) -> u64 {
        self.random.below(1000 * super::NS)
    }
}
