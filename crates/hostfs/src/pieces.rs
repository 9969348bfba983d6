//! Entries that open directories have read from the host and not returned yet: how many open directories of a user keep some.
//!
//! # What it is
//! The host returns entries in large pieces. A stream ([`crate::listing`]) keeps the rest of a piece for
//! the next call, so that no entry is read twice. One user can have thousands of open directories, so
//! only a few streams of each user keep entries; the others read them again.
//!
//! # How it is locked
//! One mutex, a leaf, never held during a call to the host.

use crate::counts::count_down;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// How many streams of a user keep entries.
const MOST: usize = 16;

/// The number of such streams, by user.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces(Arc<Mutex<HashMap<u32, usize>>>);

/// The right of a stream to keep entries, until this is dropped.
#[derive(Debug)]
pub(crate) struct Piece {
    of: Pieces,
    uid: u32,
}

impl Pieces {
    /// Returns the right to keep entries for `uid`; `None`: the user has enough of them.
    pub(crate) fn keep(&self, uid: u32) -> Option<Piece> {
        let mut users = self.0.lock();
        let count = users.entry(uid).or_default();
        if *count >= MOST {
            return None;
        }
        *count += 1;
        Some(Piece { of: self.clone(), uid })
    }

    /// Returns the number of streams of all users that keep entries.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().values().sum()
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        count_down(&mut self.of.0.lock(), self.uid);
    }
}
