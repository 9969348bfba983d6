//! Sleeping: on a word until woken, for a time, until a thread ends.
//!
//! # What it is
//! Futex semantics: the word is read and the sleeper queued in one step. The sleeper pays a system call and going to
//! sleep, the waker a system call and a wake for each; the woken runs after the wake latency, once it has a CPU.
//!
//! # What it is not
//! The system's own memory: its hash buckets and run queues are not lines here.

use super::event::Event;
use super::task::State;
use super::virtual_cpu::add;
use super::{Engine, Kind, mode};
use crate::config::Schedule;
use core::panic::Location;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

impl Engine {
    /// Sleeps while `word` holds `expected`; `false` if `timeout` picoseconds passed.
    pub(crate) fn park(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
        from: &'static Location<'static>,
    ) -> bool {
        if self.mode.get() & mode::SCHEDULER != 0 {
            self.note_unwatchable();
            return true;
        }
        if Self::is_unwinding() {
            return true;
        }
        let (task, address) = (self.task(), core::ptr::from_ref(word).addr());
        add(&self.counts.parks, 1);
        self.drain();
        self.spend(self.costs.call);
        self.access(address, Kind::Load, from);
        // Relaxed: one host thread.
        if word.load(Relaxed) != expected {
            return true;
        }
        let _host = crate::arena::outside();
        task.state.set(State::Parking(address));
        task.timed_out.set(false);
        let epoch = self.next_epoch(self.thread.get() as u32);
        self.sleepers.borrow_mut().entry(address).or_default().push_back(self.thread.get() as u32);
        if let Some(timeout) = timeout {
            let thread = self.thread.get() as u32;
            self.at(self.clock.get().saturating_add(timeout), Event::Wake { thread, epoch });
        }
        self.spend(self.costs.sleep);
        if task.state.get() == State::Parking(address) {
            task.state.set(State::Parked(address));
            self.release_cpu();
            self.suspend();
        } else {
            task.state.set(State::Running);
            self.resume_slice_end();
        }
        !task.timed_out.get()
    }

    /// Wakes at most `most` threads that sleep on `word`.
    pub(crate) fn unpark(&self, word: &AtomicU32, most: usize) {
        if self.mode.get() & mode::SCHEDULER != 0 {
            return self.note_unwatchable();
        }
        let address = core::ptr::from_ref(word).addr();
        self.drain();
        self.spend(self.costs.call);
        let there = self.sleepers.borrow().get(&address).map_or(0, |sleepers| sleepers.len());
        for _ in 0..there.min(most) {
            self.spend(self.costs.wake);
            let _host = crate::arena::outside();
            let Some(thread) = self.next_sleeper(address) else { return };
            add(&self.counts.wakes, 1);
            self.wake(thread);
        }
    }

    fn next_sleeper(&self, address: usize) -> Option<u32> {
        let mut sleepers = self.sleepers.borrow_mut();
        let queue = sleepers.get_mut(&address)?;
        let index = match self.config.schedule {
            Schedule::Exact => 0,
            Schedule::Shuffled => self.random.below(queue.len() as u64) as usize,
        };
        let thread = queue.remove(index);
        if queue.is_empty() {
            sleepers.remove(&address);
        }
        thread
    }

    fn forget_sleeper(&self, address: usize, thread: u32) {
        let mut sleepers = self.sleepers.borrow_mut();
        if let Some(queue) = sleepers.get_mut(&address) {
            queue.retain(|&sleeper| sleeper != thread);
            if queue.is_empty() {
                sleepers.remove(&address);
            }
        }
    }

    fn next_epoch(&self, thread: u32) -> u32 {
        let epoch = &self.task_of(thread).epoch;
        epoch.set(epoch.get().wrapping_add(1));
        epoch.get()
    }

    /// Wakes a sleeper, which will run after the wake latency. A thread that is not asleep yet
    /// stays awake.
    fn wake(&self, thread: u32) {
        let task = self.task_of(thread);
        let epoch = self.next_epoch(thread);
        match task.state.get() {
            State::Parking(_) => task.state.set(State::Running),
            State::Parked(_) | State::Sleeping | State::Joining(_) => {
                task.state.set(State::Waking);
                self.at(self.clock.get() + self.costs.wake_latency, Event::Wake { thread, epoch });
            }
            state => unreachable!("{} is woken while {state:?}", task.name),
        }
    }

    /// Handles a wake whose time has come.
    pub(super) fn woken(&self, thread: u32, epoch: u32) {
        let task = self.task_of(thread);
        if task.epoch.get() != epoch {
            return;
        }
        match task.state.get() {
            State::Waking | State::Sleeping => self.place(thread),
            State::Parking(address) | State::Parked(address) => {
                self.forget_sleeper(address, thread);
                task.timed_out.set(true);
                self.wake(thread);
            }
            state => unreachable!("the time of {} is up while {state:?}", task.name),
        }
    }

    /// Leaves the CPU for a time.
    pub(crate) fn idle(&self, ps: u64) {
        if self.mode.get() & mode::SCHEDULER != 0 || Self::is_unwinding() {
            return self.note_unwatchable();
        }
        let _host = crate::arena::outside();
        let thread = self.thread.get() as u32;
        self.task().state.set(State::Sleeping);
        let epoch = self.next_epoch(thread);
        self.at(self.clock.get() + ps, Event::Wake { thread, epoch });
        self.release_cpu();
        self.suspend();
    }

    /// Sleeps until a thread has ended.
    pub(crate) fn join(&self, thread: u32) {
        if Self::is_unwinding() {
            return;
        }
        self.spend(self.costs.call);
        while !self.is_done(thread) {
            let _host = crate::arena::outside();
            self.task_of(thread).joiners.borrow_mut().push(self.thread.get() as u32);
            self.task().state.set(State::Joining(thread));
            self.release_cpu();
            self.suspend();
        }
    }

    pub(crate) fn is_done(&self, thread: u32) -> bool {
        self.task_of(thread).state.get() == State::Done
    }

    /// Ends the thread that runs, and wakes the threads that join it.
    pub(super) fn finish(&self) {
        let task = self.task();
        task.state.set(State::Done);
        self.awaited.set(self.awaited.get() - usize::from(task.is_awaited.get()));
        self.ids.borrow_mut().0.insert(task.id);
        for joiner in task.joiners.take() {
            self.wake(joiner);
        }
        self.release_cpu();
    }
}
