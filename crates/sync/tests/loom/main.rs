//! The loom models of this crate: CONTRIBUTING.md has the command. Empty outside loom.
#![cfg(loom)]

// A module that `fuse_forget` compiles names this crate as its own manifest does.
extern crate lightfoot_sync as sync;

mod biased_rwlock;
mod fuse_forget;
mod hashtable;
mod insert_unique;
mod lockref;
mod mutex;
mod once_box;
mod percpu_arc;
mod percpu_credits;
mod percpu_rwlock;
mod raw_lock;
mod rcu;
mod rcu_reclaim;
mod rwsem;
mod seqcount;
mod seqrwlock;
mod signature_table;
mod single_flight;
mod slab;
mod slab_return;
mod tas;
mod vfs_forget;
