//! Spinlocks that Linux used over time, and lock statistics, for the lab's eras and for comparison with the locks of `sync`.
//!
//! # What it is
//! Raw locks for [`sync::Lock`]. The product does not use them; `sync` has the locks that it does use.
//!
//! | raw lock | waiters | fair | uncontended: take and release |
//! |---|---|---|---|
//! | [`TicketLock`] | spin on the lock word | yes | a fetch-add, a store |
//! | [`McsLock`] | each spins on its own cache line | yes | a swap, a compare-exchange |
//! | [`QueuedLock`] | the first spins on the word, the others each on its own line | nearly | a compare-exchange, a fetch-sub |
//! | [`SpinningMutex`] | the same | no: newcomers pass the queue | a compare-exchange, a store |
//!
//! [`lockstat`] counts how often locks are taken, how long they are held, and how long threads wait for them.
//!
//! # What it is not
//! A choice for programs whose threads outnumber the CPUs: when a waiter of a fair lock loses its CPU, all waiters
//! behind it wait for it.
//!
//! # How it is locked
//! Each lock's module draws its state word and names each ordering with its partner. The loom tests in `tests/` fail
//! when one ordering is weakened (`tools/check/weaken-orderings`).
//!
//! # Source
//! Linux: ticket locks from 2.6.25, queued spinlocks from 4.2; Lockmeter. The papers are cited in each module.

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]
#![allow(unsafe_code, reason = "locks are raw: their callers hold what they ask for")]

pub mod lockstat;
mod mcs;
mod node;
mod queued;
mod spinning_mutex;
mod ticket;

pub use mcs::McsLock;
pub use queued::QueuedLock;
pub use spinning_mutex::SpinningMutex;
pub use ticket::TicketLock;
