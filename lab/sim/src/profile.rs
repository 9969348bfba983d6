//! The use of the virtual time: each nanosecond that a thread has a CPU, under its innermost tag.

pub use prim::profile::Tag;

use crate::engine::current;
use core::marker::PhantomData;

/// Until it is dropped, the thread's time is counted under the tag that it was made with.
#[derive(Debug)]
#[must_use = "the tag lasts as long as the scope"]
pub struct Scope {
    before: Option<Tag>,
    /// The tag belongs to the thread that set it.
    not_send: PhantomData<*const ()>,
}

impl Drop for Scope {
    /// Restores the tag before.
    #[inline]
    fn drop(&mut self) {
        if let (Some(tag), Some(engine)) = (self.before, current()) {
            engine.set_tag(tag);
        }
    }
}

/// Sets the calling thread's tag until the scope is dropped. Scopes nest; they end in the reverse order.
#[inline]
pub fn scope(tag: Tag) -> Scope {
    Scope { before: current().map(|engine| engine.set_tag(tag)), not_send: PhantomData }
}
