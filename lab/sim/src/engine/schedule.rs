//! The scheduler: runs the thread with the least virtual clock, on the host thread's own stack.

use super::event::Event;
use super::task::{Fiber, State, Task};
use super::tree::NEVER;
use super::virtual_cpu::add;
use super::wait::Answer;
use super::{Engine, Failure, NS, mode};
use crate::arena::Heap;
use crate::stack::FixedStack;
use core::any::Any;
use core::sync::atomic::Ordering;
use corosensei::CoroutineResult;
use random::Random;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Engine {
    /// Makes a thread that wants a CPU after `delay` picoseconds. `None`: there is not enough room
    /// for it.
    pub(crate) fn start(&self, name: &str, cpu: usize, delay: u64, body: Box<dyn FnOnce()>) -> Option<u32> {
        let _host = crate::arena::outside();
        let thread = self.made.get();
        let place = self.tasks.get(thread)?;
        self.made.set(thread + 1);
        let id = {
            let mut ids = self.ids.borrow_mut();
            ids.0.pop_first().unwrap_or_else(|| {
                ids.1 += 1;
                ids.1 - 1
            })
        };
        let random = Random::new(self.config.seed, (1 << 33) + thread as u64);
        let task = place.get_or_init(|| Box::new(Task::new(name.into(), id, cpu, random)));
        let fiber = Fiber::with_stack(FixedStack::new(self.region, thread), move |yielder, ()| {
            let engine = super::current().expect("a thread runs in its simulation");
            engine.task().yielder.set(yielder);
            if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
                engine.fail_by_panic(payload);
            }
        });
        *task.fiber.borrow_mut() = Some(fiber);
        self.at(self.clock.get() + delay, Event::Wake { thread: thread as u32, epoch: 0 });
        Some(thread as u32)
    }

    /// Makes a thread of the program's own.
    pub(crate) fn spawn(&self, name: &str, body: impl FnOnce() + 'static) -> Option<u32> {
        self.spend(self.costs.call + self.costs.wake);
        let body = {
            let _host = crate::arena::outside();
            Box::new(body)
        };
        self.start(name, self.cpu.get(), self.costs.wake_latency, body)
    }

    pub(super) fn fail_by_panic(&self, payload: Box<dyn Any + Send>) {
        self.fail(Failure::Panic { thread: self.task().name.clone(), time: self.clock.get(), payload });
    }

    /// Restores the mode for the thread's next access.
    pub(super) fn restore_mode(&self) {
        self.mode.set(self.base_mode.get() | self.task().mode.get());
    }

    /// Charged from here on, or not any more.
    pub(crate) fn set_charged(&self, is_charged: bool) {
        let shuffled = if self.config.schedule == crate::config::Schedule::Shuffled { mode::SHUFFLED } else { 0 };
        self.base_mode.set(if is_charged { shuffled } else { mode::UNCHARGED });
    }

    /// Runs threads until all of `awaited` have ended or the run fails.
    pub(crate) fn schedule(&self, awaited: &[u32]) {
        for &thread in awaited {
            self.task_of(thread).is_awaited.set(true);
        }
        self.awaited.set(awaited.len());
        while self.awaited.get() > 0 && !self.has_failed.get() {
            let time = self.tree.time();
            if self.events.time() <= time && self.events.time() != NEVER {
                self.happen();
                continue;
            }
            if time == NEVER {
                return self.fail(Failure::Stop(self.describe_deadlock()));
            }
            self.go_on(self.tree.cpu(), time);
        }
    }

    /// Handles the next event.
    fn happen(&self) {
        let Some((time, event)) = self.events.pop() else { return };
        self.clock.set(time);
        self.check_limit(time);
        match event {
            Event::Arbitrate(line) => self.arbitrate(line as usize),
            Event::Wake { thread, epoch } => self.woken(thread, epoch),
            Event::SliceEnd { cpu, switches } => self.end_slice(cpu as usize, switches),
        }
    }

    /// Continues the thread of `cpu`.
    fn go_on(&self, cpu: usize, time: u64) {
        self.tree.set(cpu, NEVER);
        self.clock.set(time);
        self.cpu.set(cpu);
        self.retires.set(self.cpus[cpu].retires.get());
        self.thread.set(self.cpus[cpu].current.get() as usize - 1);
        self.set_horizon();
        let task = self.task();
        if let Some(condition) = task.condition.get() {
            match self.look(condition) {
                Answer::Wait => return,
                Answer::Resume => self.set_horizon(),
            }
        }
        self.resume(task);
    }

    fn resume(&self, task: &Task) {
        add(&self.counts.resumes, 1);
        self.restore_mode();
        self.heap.enter(task.id);
        let mut fiber = task.fiber.borrow_mut();
        let result = fiber.as_mut().expect("a thread that has not ended").resume(());
        Heap::leave();
        drop(fiber);
        if let CoroutineResult::Return(()) = result {
            drop(task.fiber.take());
            self.finish();
        } else if task.state.get() == State::Stuck {
            let message = format!("{} waits for another thread while it unwinds from a panic", task.name);
            self.fail(Failure::Stop(message));
        }
    }

    /// Suspends the thread that runs: the host thread returns to the scheduler. The call returns
    /// when the thread's clock is the least.
    pub(super) fn suspend(&self) {
        let yielder = self.task().yielder.get();
        // SAFETY: the thread that runs set the pointer when it began; the yielder is on this
        // thread's stack for as long as the thread runs.
        unsafe { &*yielder }.suspend(());
    }

    /// Lets other threads run first and interrupts take their time, because the clock of the thread
    /// that runs has passed the horizon.
    #[inline(never)]
    pub(super) fn turn(&self) {
        if self.mode.get() & mode::SCHEDULER != 0 || Self::is_unwinding() {
            return;
        }
        let _host = crate::arena::outside();
        self.take_interrupts();
        self.wait_for_turn();
    }

    /// Stops a run that is far beyond its end: such a run is not going to end.
    fn check_limit(&self, now: u64) {
        if now > self.limit.get() && !self.has_failed.get() {
            let message = format!("the run is not over at {}: {}", self.describe_time(), self.describe_tasks());
            self.fail(Failure::Stop(message));
        }
    }

    /// Lets other threads run first, as [`turn`](Self::turn) does, but without interrupts: in the
    /// middle of an access.
    pub(super) fn wait_for_turn(&self) {
        let now = self.clock.get();
        self.check_limit(now);
        if now <= self.tree.time() && now < self.events.time() && !self.has_failed.get() {
            return self.set_horizon();
        }
        self.set_clock(self.cpu.get(), now);
        self.suspend();
    }

    /// Ends all threads where they are. Nothing is dropped: the values on their stacks are
    /// forgotten, and the arena with them.
    pub(crate) fn abandon(&self) {
        for task in self.tasks() {
            if let Some(fiber) = task.fiber.borrow_mut().as_mut() {
                // SAFETY: the values on the stack are forgotten, as by `mem::forget`; nothing is
                // used again.
                unsafe { fiber.force_reset() };
            }
        }
    }

    /// Begins to measure, after the warm-up.
    pub(crate) fn begin_measuring(&self) {
        let start = self.clock.get();
        let config = &self.config;
        self.warm.set(start + config.warm_ns * NS);
        self.deadline.set(start + (config.warm_ns + config.run_ns) * NS);
        let limit = (config.warm_ns + config.run_ns) * NS * 20 + 1_000_000_000 * NS;
        self.limit.set(start.saturating_add(limit));
        self.start_interrupts();
        for cpu in self.cpus.iter().filter(|cpu| cpu.is_idle()) {
            cpu.idle_since.set(start);
        }
    }

    /// Closes the accounts.
    pub(crate) fn end_measuring(&self) {
        let now = self.clock.get();
        self.deadline.set(self.deadline.get().min(now));
        for cpu in &self.cpus {
            match cpu.current.get() {
                0 => add(&cpu.idle_time, self.within(cpu.idle_since.get(), now)),
                thread => self.settle(self.task_of(thread - 1), now),
            }
        }
    }

    pub(crate) fn take_failure(&self) -> Option<Failure> {
        self.failure.borrow_mut().take()
    }

    fn describe_deadlock(&self) -> String {
        format!("deadlock at {}, nobody can run: {}", self.describe_time(), self.describe_tasks())
    }

    /// Describes every thread that has not ended, and the thread's state.
    fn describe_tasks(&self) -> String {
        let mut all = Vec::new();
        for task in self.tasks().filter(|task| Self::is_blocked(task.state.get())) {
            let state = match task.state.get() {
                State::Parked(address) | State::Parking(address) => {
                    let word = self.word_at(address);
                    format!("parked on the word at {address:#x}{word}")
                }
                State::Spinning => {
                    let lines = task.watched().map(|(line, _)| self.lines.describe(line as usize));
                    format!("spinning on {}", lines.collect::<Vec<_>>().join(", "))
                }
                State::Joining(thread) => format!("joining {}", self.task_of(thread).name),
                State::Running => "on its CPU, waiting for a line".into(),
                other => format!("{other:?}"),
            };
            all.push(format!("{} (CPU {}, {:?}): {state}", task.name, task.cpu.get(), task.tag.get()));
        }
        all.join("; ")
    }

    /// Returns the value of a word in the arena.
    fn word_at(&self, address: usize) -> String {
        if !crate::memory::is_heap(address) || !address.is_multiple_of(4) {
            return String::new();
        }
        let word = core::ptr::with_exposed_provenance::<core::sync::atomic::AtomicU32>(address);
        // SAFETY: the arena is readable throughout, and a thread sleeps on this word, so it is an `AtomicU32`.
        format!(", which holds {:#x}", unsafe { &*word }.load(Ordering::Relaxed))
    }
}
