//! Whether the calling thread serves a request of a session. The kernel needs no notice of the
//! changes by such a request.

use super::Session;
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// The address of the session whose request the thread serves, or 0.
    static SERVED: Cell<usize> = const { Cell::new(0) };
}

/// While it exists, the changes of the calling thread belong to a request of the session, which
/// sends no notices of them.
#[derive(Debug)]
#[must_use]
pub struct Serving {
    before: usize,
    /// It belongs to this thread.
    not_send: PhantomData<*const ()>,
}

impl Session {
    /// Notes that the calling thread serves a request of this session, until the result is dropped.
    /// A transport calls this before the operation. It has an effect only with
    /// [`tree_changes`](crate::SessionOptions::tree_changes).
    pub fn serving(&self) -> Serving {
        Serving { before: SERVED.replace(self.address()), not_send: PhantomData }
    }

    pub(super) fn is_served_here(&self) -> bool {
        SERVED.get() == self.address()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        SERVED.set(self.before);
    }
}
