//! Exclusion by the crate's raw locks, with threads of this machine.

use crate::exclusion;
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
