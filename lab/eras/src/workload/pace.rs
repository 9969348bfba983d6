//! Time that passes between operations of a workload, in the program or in the kernel. All of it is
//! simulated: on real hardware these functions do nothing, so that only the directory cache is
//! measured there.

use prim::profile::{Tag, scope};

/// The program computes.
pub(super) fn user(ns: u64) {
    spend(Tag::User, ns);
}

/// The kernel does work outside of the directory cache: allocation, permission, copying, the network.
pub(super) fn kernel(ns: u64) {
    spend(Tag::Kernel, ns);
}

/// The program sleeps: its CPU is free for others.
pub(super) fn idle(ns: u64) {
    if ns > 0 {
        prim::idle(ns);
    }
}

fn spend(tag: Tag, ns: u64) {
    if ns > 0 {
        let _scope = scope(tag);
        prim::cost(ns);
    }
}
