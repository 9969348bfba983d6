//! Spinning: a waiter parks on the lines that its condition reads, and the scheduler evaluates the condition when one
//! of them is taken away.
//!
//! # What it is
//! The machine's work is kept: a write takes the copies of all waiters, and each reads the line
//! again through the queue and checks it. The turns between, which read a line that has not
//! changed, are left out.
//!
//! # When a waiter may park
//! - The condition made loads only, from at most four lines.
//! - Each line has the version that the condition read.
//! - The CPU still has its copy of each line.
//!
//! Anything weaker loses wakes.
//!
//! # Invariants
//! 1. A task's `condition` points at a closure on its stack, which stays where it is until the task is resumed.

use super::task::{Condition, State};
use super::virtual_cpu::{WATCHED, add};
use super::{Engine, Kind, mode};
use crate::engine::costs::NS;

/// Turns of pause before a waiter in user space offers its CPU to others; as in `prim::hint`.
const TURNS_BEFORE_YIELD: u64 = 256;

/// The result of an evaluation by the scheduler.
pub(super) enum Answer {
    /// The waiter continues, in its own time.
    Resume,
    /// It waits on.
    Wait,
}

impl Engine {
    /// Returns when `condition` holds.
    pub(crate) fn spin_until(&self, condition: &mut dyn FnMut() -> bool) {
        let task = self.task();
        if self.mode.get() & mode::SCHEDULER != 0 {
            return task.is_unwatchable.set(true);
        }
        if self.mode.get() & mode::UNCHARGED != 0 {
            return self.poll_until(condition);
        }
        task.spins_since.set(self.clock.get());
        loop {
            task.watch_nothing();
            if self.with_mode(mode::WATCHING, &mut *condition) {
                return;
            }
            self.give_up_if_unwinding();
            if !self.may_park() {
                self.pause();
                continue;
            }
            self.park_on_lines();
            let pointer: *mut (dyn FnMut() -> bool + '_) = &mut *condition;
            // SAFETY: only the lifetime changes; invariant 1, and the scheduler forgets the pointer before it resumes
            // this thread.
            task.condition
                .set(Some(unsafe { core::mem::transmute::<*mut (dyn FnMut() -> bool + '_), Condition>(pointer) }));
            task.came_true.set(false);
            self.suspend();
            self.skip_interrupts(self.cpu.get());
            if task.came_true.get() {
                return;
            }
        }
    }

    /// Waits where nothing is charged, so that no line shows a write: checks again and again.
    fn poll_until(&self, condition: &mut dyn FnMut() -> bool) {
        let mut turn = self.costs.spin_turn;
        while !condition() {
            self.give_up_if_unwinding();
            self.spend(turn);
            turn = (turn * 2).min(1000 * NS);
        }
    }

    /// Suspends the thread for good if the thread unwinds: no other thread runs meanwhile, so the
    /// awaited event would never come.
    fn give_up_if_unwinding(&self) {
        if Self::is_unwinding() {
            self.task().state.set(State::Stuck);
            self.suspend();
        }
    }

    /// Notes that the condition has read the clock or another value that no line shows. The thread
    /// must not park on such a condition.
    pub(crate) fn note_unwatchable(&self) {
        if self.mode.get() & (mode::WATCHING | mode::SCHEDULER) != 0 {
            self.task().is_unwatchable.set(true);
        }
    }

    /// Records the lines that the thread's condition read.
    pub(super) fn watch(&self, number: usize, kind: Kind) {
        let task = self.task();
        match kind {
            Kind::Load => task.watch(number, self.lines.line(number).version.get()),
            Kind::Store | Kind::Rmw => task.is_unwatchable.set(true),
        }
    }

    /// Makes an access of a condition that the scheduler evaluates. The line that changed is here;
    /// accesses to other lines must be hits.
    pub(super) fn access_of_condition(&self, address: usize, kind: Kind) {
        let (task, number) = (self.task(), self.lines.number(address));
        if kind != Kind::Load {
            return task.is_unwatchable.set(true);
        }
        if task.watched().any(|(line, _)| line as usize == number) {
            return;
        }
        if !self.lines.use_copy(number, self.cpu.get()) {
            return task.is_unwatchable.set(true);
        }
        self.watch(number, kind);
        add(&self.clock, self.costs.load);
    }

    fn may_park(&self) -> bool {
        let (task, cpu) = (self.task(), self.cpu.get());
        let unchanged = |(line, version): (u32, u32)| {
            self.lines.line(line as usize).version.get() == version && self.lines.has_copy(line as usize, cpu)
        };
        !task.is_unwatchable.get() && task.watching.get() > 0 && task.watched().all(unchanged)
    }

    fn park_on_lines(&self) {
        let (task, cpu) = (self.task(), self.cpu.get());
        for (index, (line, _)) in task.watched().enumerate() {
            if task.watched().take(index).all(|(before, _)| before != line) {
                self.link(cpu, index, line);
            }
        }
        task.parked_at.set(self.clock.get());
        task.state.set(State::Spinning);
        if self.cpus[cpu].has_queue() {
            self.cpus[cpu].is_armed.set(false);
            self.arm_slice_end(cpu, self.clock.get());
        }
    }

    /// Returns the time at which a spinner offers its CPU to others that want it.
    pub(super) fn end_of_spinning(&self, since: u64) -> u64 {
        since + TURNS_BEFORE_YIELD * self.costs.pause
    }

    fn link(&self, cpu: usize, index: usize, number: u32) {
        let (line, node) = (self.lines.line(number as usize), &self.cpus[cpu].waits[index]);
        let name = (cpu * WATCHED + index) as u32 + 1;
        let first = line.waiters.replace(name);
        node.line.set(number + 1);
        node.prev.set(0);
        node.next.set(first);
        if first != 0 {
            self.wait_node(first).prev.set(name);
        }
    }

    fn wait_node(&self, name: u32) -> &super::virtual_cpu::WaitNode {
        let place = name as usize - 1;
        &self.cpus[place / WATCHED].waits[place % WATCHED]
    }

    /// Takes the spinner of `cpu` out of all lists.
    pub(super) fn unlink(&self, cpu: usize) {
        for node in self.cpus[cpu].waits.iter().filter(|node| node.line.get() != 0) {
            match node.prev.get() {
                0 => self.lines.line(node.line.get() as usize - 1).waiters.set(node.next.get()),
                prev => self.wait_node(prev).next.set(node.next.get()),
            }
            if node.next.get() != 0 {
                self.wait_node(node.next.get()).prev.set(node.prev.get());
            }
            node.line.set(0);
        }
    }

    /// Wakes the waiters of a line to which a CPU of `node` has written. Each waiter sees the write
    /// after a while.
    pub(super) fn wake_spinners(&self, number: usize, node: usize, at: u64) {
        let line = self.lines.line(number);
        while line.waiters.get() != 0 {
            let cpu = (line.waiters.get() as usize - 1) / WATCHED;
            self.unlink(cpu);
            let task = self.task_of(self.cpus[cpu].current.get() - 1);
            let distance = self.places.distance(node, self.places.node(cpu));
            let jitter = self.cpus[cpu].random.below(self.costs.spin_turn);
            let time = at.max(task.parked_at.get()) + self.costs.store_miss[distance] / 2 + jitter;
            task.state.set(State::Running);
            task.woken_line.set(number as u32);
            task.has_fetched.set(false);
            add(&self.counts.spinner_wakes, 1);
            self.set_clock(cpu, time);
        }
    }

    /// Runs when the clock of a woken spinner has come: fetches the changed line first, then
    /// evaluates the condition.
    pub(super) fn look(&self, condition: Condition) -> Answer {
        let (task, cpu) = (self.task(), self.cpu.get());
        if !task.has_fetched.replace(true) {
            self.fetch_for_spinner(cpu, task.woken_line.get() as usize);
            return Answer::Wait;
        }
        self.cpus[cpu].in_access.set(false);
        task.watch_nothing();
        let line = task.woken_line.get();
        task.watch(line as usize, self.lines.line(line as usize).version.get());
        add(&self.counts.conditions, 1);
        let holds = self.evaluate(condition);
        self.resume_slice_end();
        let is_known = !task.is_unwatchable.get();
        if is_known && !holds {
            if self.may_park() {
                self.park_on_lines();
            } else {
                // A line changed while another was fetched: look again, beginning with the first.
                task.woken_line.set(task.watched[0].get().0);
                task.has_fetched.set(false);
                self.set_clock(cpu, self.clock.get() + self.costs.pause);
            }
            return Answer::Wait;
        }
        task.came_true.set(is_known && holds);
        task.condition.set(None);
        Answer::Resume
    }

    fn fetch_for_spinner(&self, cpu: usize, line: usize) {
        self.cpus[cpu].in_access.set(true);
        add(&self.counts.accesses, 1);
        if self.lines.use_copy(line, cpu) {
            self.set_clock(cpu, self.clock.get() + self.costs.load);
        } else if let Some(arrival) = self.request(line, cpu, Kind::Load) {
            self.set_clock(cpu, arrival);
        }
    }

    fn evaluate(&self, condition: Condition) -> bool {
        self.mode.set(mode::SCHEDULER);
        // SAFETY: invariant 1; its thread is suspended, so nothing else uses the closure.
        let condition = unsafe { &mut *condition };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(condition));
        self.restore_mode();
        result.unwrap_or_else(|payload| {
            self.fail_by_panic(payload);
            false
        })
    }
}
