//! Exclusion by the crate's raw locks, with threads of this machine.
#![cfg(not(loom))]

// The modules of sync's tests name the crate by its own name.
extern crate sync as lightfoot_sync;

#[path = "../../../crates/sync/tests/exclusion/mod.rs"]
mod exclusion;

use lightfoot_locks::lockstat::{Class, Measured};
use lightfoot_locks::{McsLock, QueuedLock, SpinningMutex, TicketLock};
use sync::{RawLock, TasLock};

#[test]
fn one_guard_at_a_time_reaches_the_data() {
    exclusion::check("TicketLock", TicketLock::new);
    exclusion::check("McsLock", McsLock::new);
    exclusion::check("QueuedLock", QueuedLock::new);
    exclusion::check("SpinningMutex", SpinningMutex::new);
    let class = Class::new("test");
    class.enable();
    exclusion::check("Measured<TasLock>", || Measured::<TasLock>::of(&class));
}
