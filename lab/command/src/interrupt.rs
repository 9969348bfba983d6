//! Signals that request the end. They only set a number, which is checked between entries and
//! between slices; so the ordinary way out removes everything that was made.

use crate::error::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The last signal that requested the end; 0 while no signal has.
pub(crate) struct Interrupt {
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Begins to listen, but not to signals that the parent had ignored (`nohup`).
    pub(crate) fn listen() -> Result<Self, Error> {
        let signal = Arc::new(AtomicUsize::new(0));
        let ignored = ignored();
        for number in [SIGINT, SIGTERM, SIGHUP] {
            if ignored & (1 << (number - 1)) == 0 {
                signal_hook::flag::register_usize(number, Arc::clone(&signal), number.unsigned_abs() as usize)
                    .map_err(|error| Error::Signals(error.into()))?;
            }
        }
        Ok(Self { signal })
    }

    /// Returns an interrupt that no signal sets.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        Self { signal: Arc::default() }
    }

    /// Returns an error once a signal has requested the end.
    pub(crate) fn check(&self) -> Result<(), Error> {
        // Relaxed: only the number is passed.
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Error::Interrupted(i32::try_from(signal).unwrap_or(SIGTERM))),
        }
    }
}

/// Returns the set of signals that are ignored, bit `n - 1` for signal `n`; empty if that cannot be
/// found out.
pub(crate) fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}
