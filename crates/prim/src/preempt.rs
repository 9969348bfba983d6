//! Sections in which a thread keeps its CPU.
//!
//! A thread of user space cannot ask for that, so in production this is nothing. On a simulated machine a thread in such a
//! section is not preempted, however long its time slice is over, unless it goes to sleep itself: so ran the code of a
//! kernel built without `CONFIG_PREEMPT`, and so run the eras of the lab that re-create one.

use core::marker::PhantomData;

/// While this lives the calling thread keeps its CPU (on a simulated machine). Sections nest.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct Off(PhantomData<*const ()>);

/// Begins a section.
#[inline(always)]
pub fn off() -> Off {
    Off(PhantomData)
}
