//! A profile of time by kind of work. In production it compiles to nothing; a simulated machine adds up virtual time by
//! tag, each nanosecond under the innermost tag.
//!
//! Source: the shares of spin time that published profiles give (`perf`, `oprofile`), which are by function.

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    /// None of the others.
    Other,
    /// The program that uses the file system.
    User,
    /// The file system and the code around it.
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
    /// Taking and dropping references.
    Ref,
    /// Going to sleep and waking up.
    Sleep,
}

impl Tag {
    /// The number of tags; each tag as `usize` is below it.
    pub const COUNT: usize = Self::Sleep as usize + 1;
}

/// Counts the thread's time under a tag until it is dropped.
#[derive(Debug)]
#[must_use = "the tag lasts as long as the scope"]
pub struct Scope {
    /// The tag belongs to the thread that set it.
    not_send: core::marker::PhantomData<*const ()>,
}

impl Drop for Scope {
    /// Restores the previous tag.
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
