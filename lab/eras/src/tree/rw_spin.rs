//! The spinning reader/writer lock of the kernel until 2014: one word that counts readers down.
//!
//! # What it is
//! A word that begins at [`FREE`]. A reader subtracts one, a writer subtracts all of it. A thread that finds too
//! little adds it back, and waits until the word is high enough. Every reader writes the word twice: that was the cost of
//! `fs->lock` for each walk.
//!
//! # What it is not
//! Fair: readers that overlap keep a writer out for ever. (Queued rwlocks came in 2014.)
//!
//! # State
//! | word      | meaning                              |
//! |-----------|--------------------------------------|
//! | `FREE`    | free                                 |
//! | `FREE - n`| `n` readers                          |
//! | 0         | a writer                             |
//! | below 0   | a writer, and readers that ask       |
//!
//! # Orderings
//! | here                                       | partner                                           |
//! |--------------------------------------------|---------------------------------------------------|
//! | `read`: subtract, Acquire                  | `WriteGuard::drop`: add, Release                  |
//! | `write`: exchange, Acquire                 | `WriteGuard::drop` and `ReadGuard::drop`: Release |
//!
//! # Source
//! `rwlock_t` of i386 and x86-64, Linux 2.0 to 3.15, as its documentation describes it.

use prim::atomic::{
    AtomicI32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::hint::spin_until;
use prim::profile::{Tag, scope};

/// More than there can be readers.
const FREE: i32 = 0x0100_0000;

/// See the [module documentation](self). It holds no data: the guarded data are atomic.
#[derive(Debug)]
pub(crate) struct RwSpin(AtomicI32);

/// Held by a reader.
pub(crate) struct ReadGuard<'a>(&'a AtomicI32);

/// Held by the writer.
pub(crate) struct WriteGuard<'a>(&'a AtomicI32);

impl RwSpin {
    pub(crate) fn new() -> Self {
        Self(AtomicI32::new(FREE))
    }

    pub(crate) fn read(&self) -> ReadGuard<'_> {
        let _scope = scope(Tag::RwLock);
        // ORDERING: Acquire pairs with the Release in `WriteGuard::drop`: this section follows the last writer's.
        while self.0.fetch_sub(1, Acquire) <= 0 {
            // Relaxed, both: the next turn decides.
            self.0.fetch_add(1, Relaxed);
            spin_until(|| self.0.load(Relaxed) > 0);
        }
        ReadGuard(&self.0)
    }

    pub(crate) fn write(&self) -> WriteGuard<'_> {
        let _scope = scope(Tag::RwLock);
        // ORDERING: Acquire pairs with the Release in `WriteGuard::drop` and in `ReadGuard::drop`: this section follows
        // those before it.
        while self.0.compare_exchange(FREE, 0, Acquire, Relaxed).is_err() {
            spin_until(|| self.0.load(Relaxed) == FREE);
        }
        WriteGuard(&self.0)
    }
}

impl Drop for ReadGuard<'_> {
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `write`: the next writer's section follows this one.
        self.0.fetch_add(1, Release);
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `read` and in `write`: the next section follows this one.
        self.0.fetch_add(FREE, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prim::atomic::AtomicU32;

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let (lock, a, b) = (RwSpin::new(), AtomicU32::new(0), AtomicU32::new(0));
        drop((lock.read(), lock.read()));
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    for _ in 0..2_000 {
                        let _held = lock.write();
                        a.store(a.load(Relaxed) + 1, Relaxed);
                        b.store(b.load(Relaxed) + 1, Relaxed);
                    }
                });
                s.spawn(|| {
                    for _ in 0..2_000 {
                        let _held = lock.read();
                        assert_eq!(a.load(Relaxed), b.load(Relaxed));
                    }
                });
            }
        });
        assert_eq!((a.into_inner(), lock.0.into_inner()), (4_000, FREE));
    }
}
