//! Places in a queue of spinning threads: a few for each CPU index, shared by all queued locks of the machine.
//!
//! # What it is
//! A queued lock of one word has no room for its waiters, and a lock interface without a node parameter has none to
//! borrow; so each CPU index owns [`LEVELS`] nodes, one for each lock of this kind that it can hold or wait for at once.
//! Like the indexes of [`cpu`](crate::cpu) they belong to the machine, not to an instance. A simulated machine has its
//! own.
//!
//! # What it is not
//! A queue: what the words mean, and their orderings, is the lock's affair.
//!
//! # Source
//! The per-CPU `mcs_nodes` of Linux's queued spinlock (Long and Zijlstra, 2015).

use crate::PerCpu;
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

/// The nodes of CPU index `cpu`. They stay where they are.
#[inline]
#[must_use]
pub fn of(cpu: usize) -> &'static Nodes {
    imp::nodes().get(cpu)
}

#[cfg(not(loom))]
mod imp {
    use super::{Nodes, PerCpu};
    use std::sync::OnceLock;

    static NODES: OnceLock<PerCpu<Nodes>> = OnceLock::new();

    #[inline(always)]
    pub(super) fn nodes() -> &'static PerCpu<Nodes> {
        NODES.get_or_init(|| PerCpu::new(Nodes::default))
    }
}

#[cfg(loom)]
mod imp {
    use super::{Nodes, PerCpu};

    loom::lazy_static! {
        static ref NODES: PerCpu<Nodes> = PerCpu::new(Nodes::default);
    }

    pub(super) fn nodes() -> &'static PerCpu<Nodes> {
        &NODES
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_index_has_nodes_of_its_own_that_stay() {
        let (a, b) = (of(0), of(40));
        assert!(!core::ptr::eq(a, b));
        assert!(core::ptr::eq(a, of(0)) && core::ptr::eq(b, of(40)));
        assert_eq!((size_of::<Nodes>(), align_of::<Nodes>()), (128, 128));
    }
}
