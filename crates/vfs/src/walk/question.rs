//! Questions of the caller's closure to the file system at the end of a walk, and the answers.
//!
//! # How it is locked
//! No lock: a ref-walk holds the end of its path, and calls the file system outside of the read
//! section.

use crate::base::attr::Attr;
use crate::base::errno::Errno;
use crate::cache::fallback::Fallback;
use crate::walk::walk_position::Here;
use core::cell::Cell;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// The attributes: those in the cache are stale.
    Attributes,
    /// Whether the walk may do this (of `MAY_*`); the attributes come with a yes.
    Permission(u32),
}

impl Question {
    /// Why an rcu-walk with this question becomes a ref-walk.
    pub(crate) fn fallback(self) -> Fallback {
        match self {
            Question::Attributes => Fallback::Attributes,
            Question::Permission(_) => Fallback::Permission,
        }
    }
}

/// The end of a walk that holds it, and the file system's answers for the caller's closure.
pub(crate) struct WalkEndRef<'w> {
    pub(super) here: &'w Here,
    /// The closure's question, after it ran.
    pub(super) asked: Cell<Option<Question>>,
    pub(super) answers: Vec<(Question, Result<Attr, Errno>)>,
}

impl WalkEndRef<'_> {
    /// Returns the answer to a question of the closure; `EAGAIN` if the file system was not called for it yet.
    pub(crate) fn answer(&self, question: Question) -> Result<Attr, Errno> {
        match self.answers.iter().find(|(of, _)| *of == question) {
            Some((_, answer)) => *answer,
            None => {
                self.asked.set(Some(question));
                Err(Errno::EAGAIN)
            }
        }
    }
}
