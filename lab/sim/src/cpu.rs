//! The per-CPU index: of a simulated thread, as production's is of a thread; small, dense, reused.

use crate::engine::current;

/// Returns the index that the calling thread owns until it ends.
#[inline]
#[must_use]
pub fn id() -> usize {
    current().map_or_else(prim::cpu::id, |engine| engine.task().id)
}

/// Returns whether the calling thread still owns index `id`.
#[inline]
#[must_use]
pub fn is(id: usize) -> bool {
    current().map_or_else(|| prim::cpu::is(id), |engine| engine.task().id == id)
}

/// Returns one more than the highest index given out so far.
#[must_use]
pub fn count() -> usize {
    current().map_or_else(prim::cpu::count, crate::engine::Engine::id_count)
}
