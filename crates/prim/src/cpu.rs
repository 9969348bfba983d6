//! The per-CPU index. In production it is a small dense number. A thread owns one from its first use until it ends;
//! then another thread may get it. So a per-CPU slot has exactly one writer at any time and needs no read-modify-write.
//! (A kernel disables preemption instead; user space cannot.)

/// The thread does not own an index: before the first use, and in destructors that run after it was returned.
#[cfg(not(loom))]
const NONE: u32 = u32::MAX;

#[cfg(not(loom))]
mod imp {
    use super::NONE;
    use core::cell::Cell;
    use core::ffi::c_void;
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::collections::BTreeSet;
    use std::sync::{Mutex, OnceLock, PoisonError};

    thread_local! {
        static ID: Cell<u32> = const { Cell::new(NONE) };
        static LEASE: Lease = const { Lease };
    }

    /// Returned indexes.
    static FREE: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

    /// The lowest index that was never used. Written under the lock of [`FREE`].
    static COUNT: AtomicU32 = AtomicU32::new(0);

    /// The key whose destructor returns the index of a thread that ends. The C library calls it after the destructors
    /// of thread-locals (musl: between them), and again for a thread that took an index in a destructor.
    static AT_END: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();

    /// Keeps a dynamic library with this code loaded while the thread lives, as every thread-local with a destructor
    /// does. Returns the index where the system has no key left for [`AT_END`].
    struct Lease;

    impl Drop for Lease {
        fn drop(&mut self) {
            if at_end().is_none() {
                give_back();
            }
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
            // Relaxed: the lock orders it.
            free.pop_first().unwrap_or_else(|| COUNT.fetch_add(1, Relaxed))
        };
        ID.set(id);
        if let Some(key) = at_end() {
            // SAFETY: the key is never deleted. The value need only differ from null.
            unsafe { libc::pthread_setspecific(key, core::ptr::dangling::<c_void>()) };
        }
        // Fails only in a destructor of a thread-local that runs after LEASE's.
        let _ = LEASE.try_with(|_| ());
        id as usize
    }

    fn at_end() -> Option<libc::pthread_key_t> {
        *AT_END.get_or_init(|| {
            let mut key = 0;
            // SAFETY: it writes the key, and calls the function in threads that end.
            let error = unsafe { libc::pthread_key_create(&raw mut key, Some(returned)) };
            (error == 0).then_some(key)
        })
    }

    /// # Safety
    /// None; a key's destructor has this type.
    unsafe extern "C" fn returned(_value: *mut c_void) {
        give_back();
    }

    /// Returns the index of the calling thread. The mutex orders the last writes of the old owner before the first
    /// reads of the new one.
    fn give_back() {
        let id = ID.replace(NONE);
        FREE.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    pub(super) fn count() -> usize {
        // Relaxed: a number that nothing depends on.
        COUNT.load(Relaxed) as usize
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

/// Returns the index that the calling thread owns until it ends: small, dense, reused.
#[inline(always)]
#[must_use]
pub fn id() -> usize {
    imp::id()
}

/// Returns whether the calling thread still owns index `id`. Returns `false` in a destructor that
/// runs after the thread returned the index (a destructor of a later `pthread_key_create(3)`): the
/// index and its per-CPU state may then belong to another thread.
#[inline(always)]
#[must_use]
pub fn is(id: usize) -> bool {
    imp::is(id)
}

/// Returns one more than the highest index used so far.
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
    fn an_index_that_a_destructor_of_a_thread_local_took_is_reused_too() {
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                let _ = super::id();
            }
        }
        std::thread_local!(static LATE: Late = const { Late });
        for _ in 0..1000 {
            // Its destructor runs after those that are registered later.
            let body = || {
                LATE.with(|_| ());
                super::id()
            };
            std::thread::spawn(body).join().expect("no panic");
        }
        assert!(super::count() <= 64, "{}", super::count());
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
