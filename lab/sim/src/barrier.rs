//! Asymmetric barriers: all a simulation needs of them is their price, because it is sequentially consistent.

use crate::engine::current;
pub use prim::barrier::Expensive;

/// Always `true`: the simulated system has the call.
#[must_use]
pub fn register() -> bool {
    current().is_some() || prim::barrier::register()
}

/// Interrupts every CPU that runs a thread, and returns `true`.
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

/// As `prim`'s. A simulation charges nothing for the choice, and refuses nothing.
#[derive(Debug)]
pub struct Asymmetric {
    is_fence: bool,
}

impl Asymmetric {
    /// Returns a barrier with full fences on both sides if `fences` is set.
    #[must_use]
    pub fn new(fences: bool) -> Self {
        Self { is_fence: fences || !register() }
    }

    /// Returns whether the cheap side must execute a full fence.
    #[inline(always)]
    #[must_use]
    pub fn is_fence(&self) -> bool {
        self.is_fence
    }

    /// Executes the expensive side of the barrier.
    ///
    /// # Panics
    /// Outside of a simulation, if the system refuses a call that it granted before.
    pub fn expensive(&self) -> Expensive {
        if self.is_fence {
            return Expensive::Fence;
        }
        assert!(all_threads(), "membarrier(2) was granted and is now refused");
        Expensive::Done
    }
}
