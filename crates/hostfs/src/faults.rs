//! Failing system calls, for tests: each call of a script of operations fails once, with each error that it can return.
//!
//! # What it is
//! A plan of the calling thread, which [`crate::system::call`] consults: the call with one number, counted from when the
//! plan was made, fails. The script is in [`script`], the errors and the answers to them in [`answers`], and [`runs`] has the
//! tests.
//!
//! # How it is locked
//! A plan belongs to a thread.
//!
//! # Where it comes from
//! `CONFIG_FAULT_INJECTION` of Linux; `test_malloc` of SQLite, which lets each allocation fail in turn.

mod answers;
mod runs;
mod script;

use crate::system::Call;
use rustix::io::Errno as HostErrno;
use std::cell::RefCell;

/// The faults of a thread's calls.
#[derive(Default)]
struct Plan {
    is_active: bool,
    /// The calls so far.
    calls: Vec<Call>,
    /// The number of the call that fails, its kind, and how it fails.
    fault: Option<(usize, Call, Fault)>,
}

/// How a call fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The host refuses it.
    Refused(HostErrno),
    /// The host reports an error after it did it, as when a signal or a server ends the wait.
    Done(HostErrno),
}

impl Fault {
    /// Returns the error; calls `make` if the host does it.
    pub(crate) fn instead_of(self, make: impl FnOnce()) -> HostErrno {
        match self {
            Self::Refused(error) => error,
            Self::Done(error) => {
                make();
                error
            }
        }
    }
}

thread_local! {
    static PLAN: RefCell<Plan> = RefCell::default();
}

/// Counts a call of this thread. Returns how it fails, if the plan has it.
pub(crate) fn meet(call: Call) -> Option<Fault> {
    PLAN.with_borrow_mut(|plan| {
        if !plan.is_active {
            return None;
        }
        plan.calls.push(call);
        let (number, kind, fault) = plan.fault?;
        (number + 1 == plan.calls.len() && kind == call).then_some(fault)
    })
}

/// Calls `f`, in which the call with one number fails, if it is of this kind. Also returns the calls.
fn with_fault<R>(fault: Option<(usize, Call, Fault)>, f: impl FnOnce() -> R) -> (R, Vec<Call>) {
    PLAN.set(Plan { is_active: true, fault, ..Plan::default() });
    let result = f();
    (result, PLAN.take().calls)
}
