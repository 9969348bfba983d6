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

mod node;

pub use node::{LEVELS, Node, Nodes};

use crate::PerCpu;

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
