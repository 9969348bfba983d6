//! Interrupts that came before their requests.
//!
//! # How it is locked
//! By the owner.
//!
//! # Where it comes from
//! `fuse_interrupt` of libfuse's `lib/fuse.c`.

use std::collections::VecDeque;

/// The numbers of the last `MOST` of them. Most are of requests that have ended.
#[derive(Default)]
pub(super) struct Early<const MOST: usize>(VecDeque<u64>);

impl<const MOST: usize> Early<MOST> {
    /// Keeps an interrupt until its request begins.
    pub(super) fn keep(&mut self, unique: u64) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(unique);
    }

    /// Returns whether the request, which begins, was interrupted before.
    pub(super) fn take(&mut self, unique: u64) -> bool {
        self.0.iter().position(|early| *early == unique).and_then(|at| self.0.remove(at)).is_some()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
