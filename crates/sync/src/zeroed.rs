//! A large array that begins as zeros: memory of the system, on huge pages where the system has
//! them, and zero without a store.
//!
//! # Invariants
//! 1. `memory` is at least `len` values long, aligned for them, and was zeroed; all zeros are a value ([`Zeroes`]).

use prim::atomic::AtomicU64;

/// A type of atomics for which all zeros are [`Default::default`].
///
/// # Safety
/// A value whose bytes are all zero is valid. It is made of atomics, so that threads can share it.
pub unsafe trait Zeroes: Default + Send + Sync {}

/// 16 words, on cache lines that they share with nothing else.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Block(pub [AtomicU64; 16]);

// SAFETY: zeros are an `AtomicU64` of 0.
unsafe impl Zeroes for Block {}

/// See the [module documentation](self).
///
/// ```
/// use lightfoot_sync::zeroed::{Block, Zeroed};
/// let blocks = Zeroed::<Block>::new(1000).expect("memory");
/// assert_eq!(blocks.get().len(), 1000);
/// ```
#[derive(Debug)]
pub struct Zeroed<T> {
    #[cfg(not(loom))]
    memory: prim::mem::Mapping,
    #[cfg(not(loom))]
    len: usize,
    #[cfg(loom)]
    values: Vec<T>,
    #[cfg(not(loom))]
    values: core::marker::PhantomData<T>,
}

impl<T: Zeroes> Zeroed<T> {
    /// Returns an array of `len` values, and at least one. `None` if the system has no room for it.
    #[cfg(not(loom))]
    #[must_use]
    pub fn new(len: usize) -> Option<Self> {
        const HUGE: usize = 2 << 20;
        let (len, page) = (len.max(1), prim::mem::page_size());
        const { assert!(align_of::<T>() <= 4096) };
        let bytes = len.checked_mul(size_of::<T>())?.checked_next_multiple_of(page)?;
        let memory = prim::mem::Mapping::new(bytes, if bytes >= HUGE { HUGE } else { page })?;
        if bytes >= HUGE {
            prim::mem::advise_huge(memory.start().as_ptr(), bytes);
        }
        Some(Self { memory, len, values: core::marker::PhantomData })
    }

    /// As `new` above, for a model, whose atomics are not their bytes.
    #[cfg(loom)]
    #[must_use]
    pub fn new(len: usize) -> Option<Self> {
        Some(Self { values: (0..len.max(1)).map(|_| T::default()).collect() })
    }

    /// Returns the values.
    #[cfg(not(loom))]
    #[inline(always)]
    #[must_use]
    pub fn get(&self) -> &[T] {
        // SAFETY: invariant 1; the memory stays while `self` is borrowed, and nothing takes a `&mut` to it.
        unsafe { core::slice::from_raw_parts(self.memory.start().as_ptr().cast(), self.len) }
    }

    /// Returns the values.
    #[cfg(loom)]
    #[must_use]
    pub fn get(&self) -> &[T] {
        &self.values
    }
}
