//! Exclusion by the crate's raw locks, with threads of this machine.

use crate::exclusion;
use lightfoot_sync::{RawLock, RawMutex, TasLock};

#[test]
fn one_guard_at_a_time_reaches_the_data() {
    exclusion::check("TasLock", TasLock::new);
    exclusion::check("RawMutex", RawMutex::new);
}
