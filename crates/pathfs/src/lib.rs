//! File systems by whole paths, over `lightfoot-vfs`.
//!
//! [`PathFileSystem`] is a simple back end, and [`PathAdapter`] makes a file system of it. [`NameTree`] is the table of nodes and
//! names behind it, and [`HashOrder`] the order of its listings: a file system that builds other keys than paths takes these alone.
//!
//! ```
//! use lightfoot_pathfs::{PathAdapter, PathFileSystem};
//! use vfs::{Attr, Base, Errno, S_IFDIR, Vfs};
//!
//! struct Empty;
//!
//! impl PathFileSystem for Empty {
//!     fn metadata(&self, path: &[u8]) -> Result<Attr, Errno> {
//!         if path.is_empty() { Ok(Attr { mode: S_IFDIR | 0o755, ..Attr::default() }) } else { Err(Errno::ENOENT) }
//!     }
//! }
//!
//! let context = Vfs::new(PathAdapter::new(Empty)).context();
//! assert_eq!(context.attr(Base::CWD, b"/file", true), Err(Errno::ENOENT));
//! ```

#![forbid(unsafe_code)]

mod hash_order;
mod name_tree;
mod path_adapter;

pub use hash_order::HashOrder;
pub use name_tree::{NameIn, NameTree};
pub use path_adapter::{PathAdapter, PathEntry, PathFileSystem};
