//! A pool of threads for calls that may hang.
//!
//! # What it is
//! Work is begun in the order in which it came, each by one of at most `most` threads. A thread
//! that has had no work for a while ends. Work that was not begun can be withdrawn.
//!
//! # How it is locked
//! One [`Monitor`], a leaf. Work runs, and is dropped, without it.

use crate::base::deadline::Deadline;
use crate::base::monitor::Monitor;
use core::time::Duration;
use prim::shared::PlainArc as Arc;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most threads of a pool, unless its owner sets another number.
pub(crate) const THREADS: usize = 32;

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);

/// The threads end with it, those that hang as soon as they can.
pub(crate) struct Workers(Arc<Pool>);

struct Pool {
    name: &'static str,
    most: usize,
    state: Monitor<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(u64, Work)>,
    last: u64,
    threads: usize,
    idle: usize,
    is_over: bool,
}

type Work = Box<dyn FnOnce() + Send>;

/// The number of work that was handed over.
#[derive(Clone, Copy)]
pub(crate) struct Ticket(u64);

impl Workers {
    /// At most `most` threads of this name, at least one.
    pub(crate) fn new(name: &'static str, most: usize) -> Self {
        Self(Arc::new(Pool { name, most: most.max(1), state: Monitor::new(State::default()) }))
    }

    /// Hands `work` over. Returns it if the system cannot start a thread, and there is none.
    pub(crate) fn run(&self, work: Work) -> Result<Ticket, Work> {
        let (ticket, is_short) = self.0.state.change_for_one(|state| {
            state.last += 1;
            state.waiting.push_back((state.last, work));
            let is_short = state.idle < state.waiting.len() && state.threads < self.0.most;
            state.threads += usize::from(is_short);
            (Ticket(state.last), is_short)
        });
        if !is_short {
            return Ok(ticket);
        }
        let pool = self.0.clone();
        if prim::thread::spawn(self.0.name, move || pool.work()).is_some() {
            return Ok(ticket);
        }
        let is_alone = self.0.state.change_silently(|state| {
            state.threads -= 1;
            state.threads == 0
        });
        match is_alone.then(|| self.take_back(ticket)).flatten() {
            Some(work) => Err(work),
            None => Ok(ticket),
        }
    }

    /// Withdraws work. `false`: it was begun.
    pub(crate) fn withdraw(&self, ticket: Ticket) -> bool {
        self.take_back(ticket).is_some()
    }

    fn take_back(&self, ticket: Ticket) -> Option<Work> {
        self.0.state.change_silently(|state| {
            let at = state.waiting.iter().position(|(number, _)| *number == ticket.0)?;
            state.waiting.remove(at).map(|(_, work)| work)
        })
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.state.change(|state| state.is_over = true);
    }
}

impl Pool {
    /// Runs a thread of the pool until it ends.
    fn work(&self) {
        loop {
            if let Some(work) = self.state.change_silently(|state| state.waiting.pop_front()) {
                // The panic hook has reported a panic, and a waiting caller sees that the work was
                // dropped.
                if let Err(payload) = catch_unwind(AssertUnwindSafe(work.1)) {
                    // The drop of the payload may panic, too.
                    core::mem::forget(payload);
                }
                continue;
            }
            self.state.change_silently(|state| state.idle += 1);
            let deadline = Deadline::after(Some(IDLE));
            let comes = self.state.wait(deadline, |state| (!state.waiting.is_empty() || state.is_over).then_some(()));
            let ends = self.state.change_silently(|state| {
                state.idle -= 1;
                let ends = state.waiting.is_empty() && (state.is_over || comes.is_none());
                state.threads -= usize::from(ends);
                ends
            });
            if ends {
                return;
            }
        }
    }
}
