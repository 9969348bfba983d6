//! Lookups of whole paths that failed, so that a walk does not request each of their names again.

use crate::node::is_fresh;
use core::time::Duration;
use std::collections::VecDeque;
use std::time::Instant;

/// How many whole paths whose lookup failed are remembered.
const FAILURES: usize = 16;

/// The whole paths that were looked up lately, and that do not exist.
#[derive(Default)]
pub(crate) struct Failures {
    keys: VecDeque<(String, Instant)>,
    /// When this mount changed a name last. Answers to earlier requests are void.
    changed: Option<Instant>,
}

impl Failures {
    pub(crate) fn has(&self, key: &str, ttl: Duration) -> bool {
        self.keys.iter().any(|(failed, at)| failed == key && is_fresh(Some(*at), ttl))
    }

    pub(crate) fn add(&mut self, key: String, at: Instant) {
        if self.changed.is_some_and(|changed| at <= changed) {
            return;
        }
        if self.keys.len() == FAILURES {
            self.keys.pop_front();
        }
        self.keys.push_back((key, at));
    }

    /// Forgets all paths, as this mount has changed a name.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.changed = Some(Instant::now());
    }
}
