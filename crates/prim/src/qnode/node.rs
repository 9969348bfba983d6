//! A place in a queue of spinning threads, and the few that one CPU index owns: what they consist of.
//!
//! The simulated machine compiles this file once more, with its own atomics. How the words are used and ordered is the
//! affair of the locks.

use crate::atomic::{AtomicPtr, AtomicU32, AtomicUsize};

/// Nodes of one CPU index.
pub const LEVELS: usize = 4;

/// One place in one queue. All zero when free.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub struct Node {
    /// Who queued up behind.
    pub next: AtomicPtr<Node>,
    /// The address of the lock this place is for; 0: free. Written by the owner of the index only.
    pub lock: AtomicUsize,
    /// 1 until whoever is in front hands over.
    pub waiting: AtomicU32,
}

/// The nodes of one CPU index, on lines of their own.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Nodes(pub [Node; LEVELS]);
