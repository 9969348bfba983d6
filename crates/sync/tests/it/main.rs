//! The integration tests of this crate, one module for each subject.
#![cfg(not(loom))]

mod exclusion;
mod foreign_domain;
mod locks;
mod percpu_rwlock;
mod rcu;
mod rcu_refused;
mod rwsem;
mod seqrwlock;
