//! Queue nodes, on which the waiting threads of an [`McsLock`](crate::McsLock) or a
//! [`QueuedLock`](crate::QueuedLock) spin.
//!
//! # What it is
//! A lock word has no room for its waiters, and [`RawLock`](sync::RawLock) passes no node. So each CPU index owns
//! [`LEVELS`] nodes, one for each lock that its thread holds or waits for. A [`NodeRef`] is a node in use.
//!
//! # What it is not
//! A queue: each lock's module defines the meaning and the orderings of `next` and `waiting`.
//!
//! # How it is locked
//! Only the thread that owns the CPU index reads and writes whether a node is free.
//!
//! # Invariants
//! 1. Only the owner of the node's CPU index changes `Node::lock`.
//! 2. While `Node::lock` is not zero the node is, or is about to be, in the queue of the lock at that address.
//! 3. Nodes do not move, and live as long as the machine.
//! 4. At most one node of a CPU index has the address of a given lock. A guard that was forgotten leaves its node behind,
//!    and memory at that address may become another lock: the next claim for the address marks such a node [`LOST`], and
//!    no thread ever uses it again.
//!
//! # Source
//! The per-CPU `mcs_nodes` of Linux's queued spinlock (Long and Zijlstra, 2015). There the four levels are contexts
//! (thread and interrupts); here they are locks held.

use prim::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};
use prim::{PerCpu, PerMachine};

/// Nodes of one CPU index.
const LEVELS: usize = 4;

/// `Node::lock` of a node whose guard was forgotten. Not an address of a lock, which is aligned.
const LOST: usize = 1;

/// One node of one queue. All zero when free.
#[derive(Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct Node {
    /// The node behind this one in the queue.
    pub(crate) next: AtomicPtr<Node>,
    /// The address of the lock that this node queues for; 0: free.
    lock: AtomicUsize,
    /// 1 until the thread in front hands the lock over.
    pub(crate) waiting: AtomicU32,
}

/// The nodes of one CPU index, on their own cache lines.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Nodes([Node; LEVELS]);

/// Shared by all locks, as the CPU indexes are.
static NODES: PerMachine<PerCpu<Nodes>> = PerMachine::new(|| PerCpu::new(Nodes::default));

/// A node that represents the calling thread in the queue of one lock.
#[derive(Clone, Copy)]
pub(crate) struct NodeRef {
    pub(crate) node: &'static Node,
    /// CPU index and level of the node as one number, for a lock word with no room for a pointer; never 0.
    pub(crate) code: u32,
}

impl NodeRef {
    /// Claims a free node for the queue of the lock at `lock`. `None` if this thread uses all [`LEVELS`] nodes already.
    #[inline]
    pub(crate) fn claim<L>(lock: &L) -> Option<Self> {
        // Invariant 4. (A thread that holds the lock, and takes it again, waits for itself for ever.)
        prim::uncharged(|| {
            if let Some(forgotten) = Self::at(lock) {
                // Relaxed: invariant 1.
                forgotten.node.lock.store(LOST, Relaxed);
            }
        });
        let claimed = Self::find(0)?;
        // Relaxed: invariant 1.
        claimed.node.lock.store(address(lock), Relaxed);
        // Relaxed, both: the store that links the node into the queue releases them.
        claimed.node.next.store(core::ptr::null_mut(), Relaxed);
        claimed.node.waiting.store(1, Relaxed);
        Some(claimed)
    }

    /// Returns the calling thread's node in the queue of the lock at `lock`.
    #[inline]
    pub(crate) fn at<L>(lock: &L) -> Option<Self> {
        Self::find(address(lock))
    }

    /// Frees the node. No other thread may be able to reach it.
    #[inline]
    pub(crate) fn free(self) {
        // Relaxed: invariant 1.
        self.node.lock.store(0, Relaxed);
    }

    /// Returns the node with that code.
    #[inline]
    pub(crate) fn of_code(code: u32) -> Self {
        let number = code as usize - LEVELS;
        Self { node: &NODES.get().get(number / LEVELS).0[number % LEVELS], code }
    }

    #[inline]
    fn find(lock: usize) -> Option<Self> {
        let cpu = prim::cpu::id();
        let nodes = &NODES.get().get(cpu).0;
        // Relaxed: invariant 1.
        let level = nodes.iter().position(|node| node.lock.load(Relaxed) == lock)?;
        Some(Self { node: &nodes[level], code: ((cpu + 1) * LEVELS + level) as u32 })
    }
}

fn address<L>(lock: &L) -> usize {
    (&raw const *lock).addr()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_four_nodes_and_each_is_found_by_its_lock() {
        let locks = [0u32; 5];
        let nodes: Vec<NodeRef> = locks[..4].iter().map(|lock| NodeRef::claim(lock).expect("four")).collect();
        assert!(NodeRef::claim(&locks[4]).is_none() && NodeRef::at(&locks[4]).is_none());
        for (lock, claimed) in locks.iter().zip(&nodes) {
            assert!(core::ptr::eq(NodeRef::at(lock).expect("claimed").node, claimed.node));
            assert!(core::ptr::eq(NodeRef::of_code(claimed.code).node, claimed.node));
            assert_ne!(claimed.code, 0);
        }
        nodes[1].free();
        let again = NodeRef::claim(&locks[4]).expect("one is free");
        assert_eq!(again.code, nodes[1].code);
        [nodes[0], again, nodes[2], nodes[3]].into_iter().for_each(NodeRef::free);
        assert!(locks.iter().all(|lock| NodeRef::at(lock).is_none()));
    }

    #[test]
    fn each_cpu_index_has_its_own_nodes_that_stay() {
        let of = |cpu: usize| NODES.get().get(cpu);
        let (a, b) = (of(0), of(40));
        assert!(!core::ptr::eq(a, b));
        assert!(core::ptr::eq(a, of(0)) && core::ptr::eq(b, of(40)));
        assert_eq!((size_of::<Nodes>(), align_of::<Nodes>()), (128, 128));
    }
}
