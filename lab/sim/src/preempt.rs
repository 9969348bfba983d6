//! Sections in which a simulated thread keeps its CPU: it is not preempted, however long its slice
//! is over, nor does it offer the CPU while it spins. It still loses it where it sleeps.

use crate::engine::current;
use core::marker::PhantomData;

/// While this lives the calling thread keeps its CPU. Sections nest.
#[derive(Debug)]
#[must_use = "the section ends when this is dropped"]
pub struct Off(PhantomData<*const ()>);

impl Drop for Off {
    #[inline]
    fn drop(&mut self) {
        if let Some(engine) = current() {
            engine.keep_cpu(false);
        }
    }
}

/// Begins a section.
#[inline]
pub fn off() -> Off {
    if let Some(engine) = current() {
        engine.keep_cpu(true);
    }
    Off(PhantomData)
}
