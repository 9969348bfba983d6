//! The per-CPU index. In production it is a small dense number. A thread owns one from its first use until it ends;
//! then another thread may get it. So a per-CPU slot has exactly one writer at any time and needs no read-modify-write.
//! (A kernel disables preemption instead; user space cannot.)

/// The thread does not own an index: before the first use, and in thread-local destructors that run after it was
/// returned.
#[cfg(not(loom))]
const NONE: u32 = u32::MAX;

#[cfg(not(loom))]
mod imp {
    use super::NONE;
    use core::cell::Cell;
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};

    thread_local! {
        static ID: Cell<u32> = const { Cell::new(NONE) };
        static LEASE: Lease = const { Lease };
    }

    /// Returned indexes, and the lowest index that was never used.
    static FREE: Mutex<(BTreeSet<u32>, u32)> = Mutex::new((BTreeSet::new(), 0));

    /// Returns the index when the thread ends. The mutex orders the last writes of the old owner before the first
    /// reads of the new one.
    struct Lease;

    impl Drop for Lease {
        fn drop(&mut self) {
            let id = ID.replace(NONE);
            FREE.lock().unwrap_or_else(PoisonError::into_inner).0.insert(id);
        }
    }

    #[inline(always)]
    pub(super) fn id() -> usize {
        let id = ID.get();
        if id == NONE { register() } else { id as usize }
    }

    #[inline(always)]
    pub(super) fn is(id: usize) -> bool {
        ID.get() as usize == id
    }

    #[cold]
    #[inline(never)]
    fn register() -> usize {
        let id = {
            let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
            free.0.pop_first().unwrap_or_else(|| {
                free.1 += 1;
                free.1 - 1
            })
        };
        ID.set(id);
        // Fails only in a thread-local destructor after LEASE's own ran; the index then stays with the dead thread.
        let _ = LEASE.try_with(|_| ());
        id as usize
    }

    pub(super) fn count() -> usize {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).1 as usize
    }
}

#[cfg(loom)]
mod imp {
    use core::cell::Cell;
    use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    loom::lazy_static! {
        static ref NEXT: AtomicUsize = AtomicUsize::new(0);
    }
    loom::thread_local! {
        static ID: Cell<usize> = Cell::new(usize::MAX);
    }

    pub(super) fn id() -> usize {
        ID.with(|id| {
            if id.get() == usize::MAX {
                id.set(NEXT.fetch_add(1, Relaxed));
            }
            id.get()
        })
    }

    pub(super) fn is(id: usize) -> bool {
        ID.with(|own| own.get() == id)
    }

    pub(super) fn count() -> usize {
        NEXT.load(Relaxed)
    }
}

/// The index that the calling thread owns until it ends: small, dense, reused.
#[inline(always)]
#[must_use]
pub fn id() -> usize {
    imp::id()
}

/// Whether the calling thread still owns index `id`. `false` in a thread-local destructor that runs after the index
/// was returned: per-CPU state of that index may then belong to another thread.
#[inline(always)]
#[must_use]
pub fn is(id: usize) -> bool {
    imp::is(id)
}

/// One more than the highest index used so far.
#[must_use]
pub fn count() -> usize {
    imp::count()
}

#[cfg(all(test, not(loom)))]
mod tests {
    #[test]
    fn an_index_is_reused_after_its_thread_ended() {
        let first = std::thread::spawn(super::id).join().unwrap();
        let mut seen = Vec::new();
        for _ in 0..64 {
            seen.push(std::thread::spawn(super::id).join().unwrap());
        }
        assert!(seen.iter().all(|&id| id < 64), "{first} {seen:?}");
        assert!(super::count() <= 64);
    }

    #[test]
    fn two_live_threads_never_share_an_index() {
        let barrier = std::sync::Barrier::new(8);
        let ids: std::collections::BTreeSet<usize> = std::thread::scope(|s| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    s.spawn(|| {
                        barrier.wait();
                        let id = super::id();
                        barrier.wait();
                        id
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert_eq!(ids.len(), 8);
    }
}
