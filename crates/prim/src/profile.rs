//! What the time goes to: a tag for the work at hand. In production it compiles to nothing; a simulated machine adds
//! virtual time up by tag, each nanosecond under the innermost one.
//!
//! Source: the shares of spin time that published profiles give (`perf`, `oprofile`), which are by function.

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    /// None of the others.
    Other,
    /// The program that uses the file system.
    User,
    /// The file system and what lies around it.
    Kernel,
    /// Acquiring a spinning lock.
    SpinLock,
    /// Acquiring a spinning reader/writer lock.
    RwLock,
    /// Acquiring the writers' side of a sequence lock, or waiting for a writer.
    SeqLock,
    /// Acquiring a sleeping lock that was not free.
    Mutex,
    /// Acquiring a sleeping reader/writer lock that was not free.
    RwSem,
    /// Taking and giving back references.
    Ref,
    /// Going to sleep and waking up.
    Sleep,
}

impl Tag {
    /// How many tags there are; each as `usize` is below it.
    pub const COUNT: usize = Self::Sleep as usize + 1;
}

/// Until it is dropped, the thread's time goes to the tag it was made with.
#[derive(Debug)]
#[must_use = "the tag lasts as long as the scope"]
pub struct Scope {
    /// The tag belongs to the thread that set it.
    not_send: core::marker::PhantomData<*const ()>,
}

impl Drop for Scope {
    /// Restores the tag before.
    #[inline(always)]
    fn drop(&mut self) {}
}

/// Sets the calling thread's tag until the scope is dropped. Scopes nest; they end in the reverse order.
#[inline(always)]
pub fn scope(_tag: Tag) -> Scope {
    Scope { not_send: core::marker::PhantomData }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_scope_takes_no_room() {
        assert_eq!((size_of::<Scope>(), Tag::COUNT), (0, 10));
    }
}
