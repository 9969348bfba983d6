//! Each generation of the directory cache, side by side, and the workloads that they are put under.
//!
//! # What it is
//! [`catalogue`] lists the generations; each is a small file here that describes its locks, and
//! why, on top of the tree that all of them share (`tree.rs`). Their interface is the trait
//! [`Era`]; a thread of a program works through a [`Process`]. All pass the same tests
//! (`tests/it/oracle.rs`, `tests/it/torture.rs`). [`workload`] has the loads of the published
//! measurements.
//!
//! | generation                                    | file                             |
//! |-----------------------------------------------|----------------------------------|
//! | one lock                                      | `big_lock.rs`                    |
//! | `dcache_lock`: for each component, or across the walk | `dcache_lock.rs`, `fastwalk.rs` |
//! | chains searched without a lock                | `dcache_rcu.rs`, `linux_2_6_32.rs` |
//! | fine-grained locks                            | `vfs_scale.rs`, `statvfs.rs`     |
//! | the store-free walk                           | `store_free_2009.rs`, `outer_sequence.rs`, `rcu_walk.rs` |
//! | the count in the lock's word                  | `lockref_2013.rs`                |
//! | the sequence lock with readers                | `patches_2013.rs`, `linux_3_12.rs` |
//! | files freed by three kinds of RCU             | `linux_3_12.rs`                  |
//! | the semaphore's early exit                    | `rwsem.rs`                       |
//! | Lightfoot                                     | `lightfoot.rs`                   |
//!
//! # What it is not
//! Linux: the locks are taken where and in the order in which they were then, and entries have the layout that they had;
//! all else is as plain as can be. Sources are the publications and the documentation, never the code.
//!
//! ```
//! let era = (lightfoot_eras::find("linux-2.6.32").unwrap().make)(&lightfoot_eras::Options::default());
//! let process = era.process();
//! process.make_directory(b"/tmp")?;
//! let file = process.create(b"/tmp/new")?;
//! process.close(file);
//! assert_eq!(process.stat(b"/tmp/../tmp/new")?.links, 1);
//! # Ok::<(), lightfoot_eras::Error>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod big_lock;
mod catalogue;
mod dcache_lock;
mod dcache_rcu;
pub mod era;
mod fastwalk;
mod lightfoot;
mod linux_2_6_32;
mod linux_3_12;
mod lockref_2013;
mod options;
mod outer_sequence;
mod patches_2013;
mod path;
mod rcu_walk;
mod rwsem;
mod statvfs;
mod store_free_2009;
mod tree;
mod vfs_scale;
pub mod workload;

pub use catalogue::{EraEntry, catalogue, find};
pub use era::{Attributes, Era, Error, FileSystemStatus, Handle, Process, Result};
pub use options::Options;
pub use rcu_walk::walk_of_2_6_38;
