//! Time that passes between operations of a workload, in the program or in the kernel. All of it is
//! simulated: on real hardware these functions do nothing, so that only the directory cache is
//! measured there.

use prim::profile::{Tag, scope};

/// Charges `ns` nanoseconds of the program's computation.
pub(super) fn user(ns: u64) {
    spend(Tag::User, ns);
}

/// Charges `ns` nanoseconds of the kernel's work outside of the directory cache: allocation,
/// permission, copying, the network.
pub(super) fn kernel(ns: u64) {
    spend(Tag::Kernel, ns);
}

/// Makes the program sleep for `ns` nanoseconds. The program's CPU is free for other threads
/// meanwhile.
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
