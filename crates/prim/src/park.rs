//! Parking on a word: a thread sleeps while a 32-bit atomic holds an expected value; the thread that changes it wakes
//! it.
//!
//! As with futex(2), the check of the word and falling asleep are one step, so a thread never misses a waker that
//! changes the word first and unparks after. Spurious wake-ups are allowed; callers loop.

use crate::atomic::AtomicU32;
use core::time::Duration;

/// Sleeps while `word` holds `expected`; returns when woken, when the word differs, or spuriously.
pub fn park(word: &AtomicU32, expected: u32) {
    park_for(word, expected, None);
}

/// As [`park`], for `timeout` at most. `false` if the time ran out.
pub fn park_timeout(word: &AtomicU32, expected: u32, timeout: Duration) -> bool {
    park_for(word, expected, Some(timeout))
}

#[cfg(not(loom))]
mod imp {
    use super::{AtomicU32, Duration};
    use rustix::thread::futex::{Flags, Timespec, wait, wake};

    #[cold]
    pub(super) fn park_for(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> bool {
        let timeout = timeout
            .map(|t| Timespec { tv_sec: t.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: t.subsec_nanos().into() });
        wait(word, Flags::PRIVATE, expected, timeout.as_ref()) != Err(rustix::io::Errno::TIMEDOUT)
    }

    /// Wakes one thread parked on `word`.
    #[cold]
    pub fn unpark_one(word: &AtomicU32) {
        let _ = wake(word, Flags::PRIVATE, 1);
    }

    /// Wakes every thread parked on `word`.
    #[cold]
    pub fn unpark_all(word: &AtomicU32) {
        let _ = wake(word, Flags::PRIVATE, i32::MAX as u32);
    }
}

#[cfg(loom)]
mod imp {
    use super::{AtomicU32, Duration};
    use crate::atomic::Ordering::Relaxed;
    use loom::sync::{Condvar, Mutex};

    loom::lazy_static! {
        static ref QUEUE: Mutex<()> = Mutex::new(());
        static ref WOKEN: Condvar = Condvar::new();
    }

    pub(super) fn park_for(word: &AtomicU32, expected: u32, _timeout: Option<Duration>) -> bool {
        let held = QUEUE.lock().unwrap();
        if word.load(Relaxed) == expected {
            drop(WOKEN.wait(held).unwrap());
        }
        true
    }

    /// Wakes every thread parked on `word` (under loom on any word: spurious wake-ups are allowed).
    pub fn unpark_one(word: &AtomicU32) {
        unpark_all(word);
    }

    /// Wakes every thread parked on `word`.
    pub fn unpark_all(_word: &AtomicU32) {
        let _held = QUEUE.lock().unwrap();
        WOKEN.notify_all();
    }
}

use imp::park_for;
pub use imp::{unpark_all, unpark_one};
