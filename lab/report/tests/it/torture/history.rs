//! The history of something that one thread changes: what others may see of it.
//!
//! The changes are numbered from 1; state 0 is the one before all. A look that began after change `m` ended, and ended
//! before change `n + 1` began, sees one of the states `m` to `n`. That is linearisability for one register with one
//! writer.
//!
//! What a file system pushes is promised less: an answer from before a push may be seen as long as a look that began
//! before it goes on, for that look puts the answer into the cache and then finds out.
//!
//! A walk with steps in ref-walk sees a state at each step, and the steps' states need not be the same.
//!
//! Not locked: simulated threads are coroutines of one host thread.

use std::cell::{Cell, RefCell};
use std::fmt::Debug;

/// How many changes have begun, and how many have ended.
#[derive(Default)]
pub(crate) struct History {
    begun: Cell<u64>,
    ended: Cell<u64>,
    /// For each look of [`History::look_pushed`] that goes on, what had ended when it began.
    looks: RefCell<Vec<u64>>,
}

impl History {
    /// Makes the next change by `change`, which gets its number.
    pub(crate) fn change(&self, change: impl FnOnce(u64)) {
        let number = self.begun.get() + 1;
        self.begun.set(number);
        change(number);
        self.ended.set(number);
    }

    /// Changes that have ended.
    pub(crate) fn changes(&self) -> u64 {
        self.ended.get()
    }

    /// Looks, and checks that what is seen is one of the states of the time in which it was looked for.
    pub(crate) fn look<T: PartialEq + Debug>(&self, what: &str, look: impl FnOnce() -> T, state: impl Fn(u64) -> T) {
        let from = self.ended.get();
        self.check(what, from, look(), state);
    }

    /// The same for what a file system pushes.
    pub(crate) fn look_pushed<T: PartialEq + Debug>(
        &self,
        what: &str,
        look: impl FnOnce() -> T,
        state: impl Fn(u64) -> T,
    ) {
        let own = self.ended.get();
        let from = self.looks.borrow().iter().fold(own, |from, other| from.min(*other));
        self.looks.borrow_mut().push(own);
        let seen = look();
        let mut looks = self.looks.borrow_mut();
        let at = looks.iter().position(|other| *other == own).expect("it was put there");
        looks.swap_remove(at);
        drop(looks);
        self.check(what, from, seen, state);
    }

    /// The same where one look can meet several states: `possible` gives what may be seen in a time with these first and last
    /// states.
    pub(crate) fn look_among<T: PartialEq + Debug>(
        &self,
        what: &str,
        look: impl FnOnce() -> T,
        possible: impl FnOnce(u64, u64) -> Vec<T>,
    ) {
        let from = self.ended.get();
        let seen = look();
        self.check_among(what, (from, self.begun.get()), seen, possible);
    }

    fn check<T: PartialEq + Debug>(&self, what: &str, from: u64, seen: T, state: impl Fn(u64) -> T) {
        let to = self.begun.get();
        self.check_among(what, (from, to), seen, |from, to| (from..=to).map(state).collect());
    }

    fn check_among<T: PartialEq + Debug>(
        &self,
        what: &str,
        (from, to): (u64, u64),
        seen: T,
        possible: impl FnOnce(u64, u64) -> Vec<T>,
    ) {
        let possible = possible(from, to);
        assert!(possible.contains(&seen), "{what} is {seen:?}; possible from change {from} to {to}: {possible:?}");
    }
}
