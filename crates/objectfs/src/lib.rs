//! An object store as a file system for `lightfoot-vfs`: a read-write tree over any operator of OpenDAL.
//!
//! # What it is
//! [`ObjectFs`] shows objects as files and common prefixes as directories: the object `a/b` is the
//! file `b` in the directory `a`. A directory that was made through this file system has an object,
//! its marker `a/`. Times, modes and owners are kept in the metadata of objects. A path whose directories
//! are not in the cache is looked up as a whole. Reads request ranges, and the next range ahead of
//! a sequential read; a file is written when it is closed or synced, and only its changed parts are
//! sent. `docs/objects.md`
//! is its manual.
//!
//! ```
//! use lightfoot_objectfs::{ObjectFs, ObjectOptions};
//! use opendal::{Operator, services::Memory};
//!
//! let fs = ObjectFs::new(Operator::new(Memory::default())?, ObjectOptions::default())?;
//! let tree = vfs::Vfs::new(fs).context();
//! tree.mkdir(vfs::Base::CWD, b"/logs", 0o755)?;
//! assert!(tree.attr(vfs::Base::CWD, b"/logs", true)?.is_dir());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it is not
//! A place for hard links or special files (`EOPNOTSUPP`), nor for set-user-ID bits (`EPERM`). Nor a
//! place for two writers of one file: the second one to close the file fails with `ESTALE`.
//!
//! # How it is locked
//! The table of nodes has a mutex, held for no request to the store. A file has two mutexes.
//! `facts` protects its attributes, and no thread holds it during a request to the store. `content`
//! protects its write buffer; a thread holds it while the object is loaded, written, copied or
//! removed. A thread that needs two `content` locks takes them in the order of their nodes. Writers
//! of objects hold `moves` shared, and the rename of a directory holds it exclusively, before any
//! `content`. Order: `moves`, `content`, table, `facts`. Each request to the store, and each wait
//! for a `content`, ends at the deadline of its caller.
//!
//! # Where it comes from
//! The rules of s3fs and mountpoint-s3 for prefixes and markers.
//!
//! # Limitations
//! If a bucket has an object `a` and objects below `a/`, the tree shows one of the two. Names must
//! be UTF-8, and a path must not begin or end with white space (OpenDAL removes it). The whole
//! listing of a directory is in memory.

#![forbid(unsafe_code)]

mod amend;
mod attributes;
mod blocks;
mod bucket;
mod buffer;
mod calls;
mod changes;
mod contents;
mod copies;
mod deadline;
mod errors;
mod failures;
mod kept;
mod key;
mod limits;
mod listing;
mod lookup;
mod meta;
mod node;
mod nodes;
mod object_fs;
mod options;
mod reader;
mod store;
mod upload;
mod waiting;
mod window;

pub use bucket::{Bucket, BucketError, Keys};
pub use calls::{Calls, Counted};
pub use object_fs::ObjectFs;
pub use options::ObjectOptions;
pub use store::Ending;

/// OpenDAL, whose operators this crate takes.
pub use opendal;
