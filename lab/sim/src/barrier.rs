//! Asymmetric barriers: all a simulation needs of them is their price, because it is sequentially consistent.

use crate::engine::current;

/// Always `true`: the simulated system has the call.
#[must_use]
pub fn register() -> bool {
    current().is_some() || prim::barrier::register()
}

/// Interrupts every CPU that runs a thread. `true`.
#[must_use]
pub fn all_threads() -> bool {
    match current() {
        Some(engine) => {
            engine.interrupt_others();
            true
        }
        None => prim::barrier::all_threads(),
    }
}
