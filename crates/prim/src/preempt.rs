//! Sections in which a thread keeps its CPU.
//!
//! User space cannot disable preemption, so this does nothing in production. On a simulated machine a thread in such a
//! section is not preempted at the end of its time slice; it may still sleep. Code of a kernel built without
//! `CONFIG_PREEMPT` runs like this, and so do the lab's eras that re-create one.

use core::marker::PhantomData;

/// The calling thread keeps its CPU until this is dropped (on a simulated machine). Sections nest.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct Off(PhantomData<*const ()>);

/// Begins a section.
#[inline(always)]
pub fn off() -> Off {
    Off(PhantomData)
}
