//! Spin hints: a wait is a condition handed over, which the scheduler evaluates when a line of it changes.

use crate::engine::{Kind, access, current};
use core::panic::Location;

/// Makes one pause of a spin loop.
#[inline]
pub fn spin_loop() {
    match current() {
        Some(engine) => engine.pause(),
        None => prim::hint::spin_loop(),
    }
}

/// Waits until `condition` (loads only) holds.
#[inline]
pub fn spin_until(mut condition: impl FnMut() -> bool) {
    match current() {
        Some(engine) => engine.spin_until(&mut condition),
        None => prim::hint::spin_until(condition),
    }
}

/// Waits at most `turns` pauses until `condition` (loads only) holds; returns whether it held. Exact and slow: every turn
/// is simulated.
#[inline]
pub fn spin_until_bounded(turns: u32, mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..turns {
        if condition() {
            return true;
        }
        spin_loop();
    }
    condition()
}

/// Nothing: a simulated CPU does not overlap loads.
#[inline(always)]
pub fn prefetch<T>(_target: *const T) {}

/// Takes the line of `target`, which is valid, as a store does.
#[inline(always)]
#[track_caller]
pub fn prefetch_to_write<T>(target: *const T) {
    access(target.addr(), Kind::Store, Location::caller());
}
