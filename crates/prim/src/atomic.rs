//! Atomics of all widths and the fences: `core::sync::atomic`, or loom's under `--cfg loom`.

#[cfg(not(loom))]
pub use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering, compiler_fence, fence,
};

#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicIsize, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize,
    Ordering, fence,
};

/// Stops the compiler, not the CPU, from moving accesses across this point. loom has no such fence, so code that relies on
/// it must use a full fence under loom.
#[cfg(loom)]
pub fn compiler_fence(order: Ordering) {
    // ORDERING: the caller's; the comment there names the partner.
    fence(order);
}
