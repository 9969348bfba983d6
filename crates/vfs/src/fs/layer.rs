//! File systems around file systems.
//!
//! # What it is
//! A [`Layer`] contains a file system and is one itself: each method forwards to the inner one unless the
//! layer defines it. So a wrapper (counting, read-only, faults) consists only of the methods that differ, and
//! every layer forwards new methods of [`FileSystem`] at once.
//!
//! The data of an inode ([`Inode::data_or`]) is the innermost file system's; a layer keeps its own by node. A layer with a state for
//! each open keeps the inner one's in its own, and passes on an [`Open`] with that state.
//!
//! # Where it comes from
//! Stackable file systems: J. Heidemann, G. Popek, "File-System Development with Stackable Layers" (1994).

use crate::base::attr::{Attr, SetAttr};
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, OpenFlags};
use crate::fs::invalidator::Invalidator;
use crate::fs::{
    After, Allocate, Copying, FileId, FileSystem, FsTraits, Listed, NewInode, NewNode, NextNames, Open, Opened,
    Position, Rename, Request, SeekFor, SetXattr, StatFs, Want, Written,
};
use crate::slots::inode::Inode;

/// Declares [`Layer`] with each method forwarding to the inner file system, and makes each layer a [`FileSystem`].
macro_rules! forward {
    ($(fn $name:ident($($arg:ident: $of:ty),*) $(-> $result:ty)?;)*) => {
        /// A file system around another one: see the module documentation. Implement this, not [`FileSystem`], which then follows.
        ///
        /// ```
        /// # use lightfoot_vfs::{After, Errno, FileSystem, Inode, Layer, Request};
        /// /// Nothing can be removed from the file system inside it.
        /// struct Sticky<F>(F);
        ///
        /// impl<F: FileSystem> Layer for Sticky<F> {
        ///     type Inner = F;
        ///
        ///     fn inner(&self) -> &F {
        ///         &self.0
        ///     }
        ///
        ///     fn unlink(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<After, Errno> {
        ///         Err(Errno::EPERM)
        ///     }
        /// }
        /// ```
        pub trait Layer: Send + Sync + 'static {
            /// The type of the file system inside.
            type Inner: FileSystem + ?Sized;

            /// Returns the file system inside.
            fn inner(&self) -> &Self::Inner;

            /// Forwards [`FileSystem::traits`] to the inner file system. (Whatever this returns, the layer is one whose methods may
            /// wait: [`CachedNames::never_waits`](crate::CachedNames::never_waits).)
            fn traits(&self) -> FsTraits {
                self.inner().traits()
            }

            $(
                #[doc = concat!("Forwards [`FileSystem::", stringify!($name), "`] to the inner file system.")]
                #[doc = ""]
                #[doc = "# Errors"]
                #[doc = "The inner file system's, if it can fail."]
                fn $name(&self, $($arg: $of),*) $(-> $result)? {
                    FileSystem::$name(self.inner(), $($arg),*)
                }
            )*
        }

        impl<L: Layer> FileSystem for L {
            fn traits(&self) -> FsTraits {
                Layer::traits(self).waiting()
            }

            $(
                fn $name(&self, $($arg: $of),*) $(-> $result)? {
                    Layer::$name(self, $($arg),*)
                }
            )*
        }

        /// The methods that are forwarded.
        #[cfg(test)]
        const FORWARDED: &[&str] = &["traits", $(stringify!($name)),*];
    };
}

forward! {
    fn root() -> NewInode;
    fn mounted(invalidator: Invalidator);
    fn lookup(request: &Request, dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> Result<NewInode, Errno>;
    fn lookup_many(
        request: &Request, wanted: &[(&Inode, &[u8])], found: &mut dyn FnMut(usize, Result<NewInode, Errno>)
    );
    fn revalidate(request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<NewInode, Errno>;
    fn id(inode: &Inode) -> Option<FileId>;
    fn by_id(request: &Request, id: &FileId) -> Result<NewInode, Errno>;
    fn parent(request: &Request, id: &FileId) -> Result<(FileId, Box<[u8]>), Errno>;
    fn read_link(request: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno>;
    fn read_dir(
        request: &Request, dir: &Open<'_>, after: u64, want: Want, emit: &mut dyn FnMut(Listed) -> bool
    ) -> Result<(), Errno>;
    fn create(request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno>;
    fn link(request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno>;
    fn unlink(request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno>;
    fn rename(request: &Request, rename: &Rename<'_>) -> Result<After, Errno>;
    fn set_attr(request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno>;
    fn attributes(request: &Request, inode: &Inode) -> Result<Attr, Errno>;
    fn birth(request: &Request, inode: &Inode) -> Result<Option<i64>, Errno>;
    fn open(request: &Request, inode: &Inode, flags: OpenFlags) -> Result<Opened, Errno>;
    fn release(file: Open<'_>);
    fn read(request: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno>;
    fn write(request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno>;
    fn copy_range(
        request: &Request, from: (&Open<'_>, u64), to: (&Open<'_>, u64), len: u64, how: Copying
    ) -> Result<Written, Errno>;
    fn set_len(request: &Request, inode: &Inode, len: u64) -> Result<(u64, After), Errno>;
    fn allocate(
        request: &Request, file: &Open<'_>, how: Allocate, keep_size: bool, offset: u64, len: u64
    ) -> Result<u64, Errno>;
    fn seek(request: &Request, file: &Open<'_>, offset: u64, what: SeekFor) -> Result<u64, Errno>;
    fn sync(request: &Request, file: &Open<'_>, data_only: bool) -> Result<(), Errno>;
    fn flush(request: &Request, file: &Open<'_>) -> Result<(), Errno>;
    fn get_xattr(request: &Request, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno>;
    fn set_xattr(request: &Request, inode: &Inode, name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno>;
    fn remove_xattr(request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno>;
    fn list_xattrs(request: &Request, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno>;
    fn statfs(request: &Request, inode: &Inode) -> Result<StatFs, Errno>;
    fn inode_flags(request: &Request, inode: &Inode) -> Result<InodeFlags, Errno>;
    fn set_inode_flags(request: &Request, inode: &Inode, flags: InodeFlags) -> Result<(), Errno>;
    fn evict(inode: &Inode);
}

#[cfg(test)]
mod tests {
    use super::FORWARDED;

    /// Returns the methods of [`FileSystem`](super::FileSystem), in the order of its text.
    fn methods() -> Vec<&'static str> {
        include_str!("../fs.rs").lines().filter_map(|line| line.strip_prefix("    fn ")?.split('(').next()).collect()
    }

    #[test]
    fn every_method_of_a_file_system_is_forwarded() {
        let sorted = |mut names: Vec<&'static str>| {
            names.sort_unstable();
            names
        };
        assert_eq!(sorted(FORWARDED.to_vec()), sorted(methods()));
    }

    #[test]
    fn the_table_of_methods_has_each_method_once() {
        let text = include_str!("../../../../docs/semantics.md");
        let (_, table) = text.split_once("### Methods of a file system").expect("the table's heading");
        let cells = table.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
        let mut listed: Vec<_> = cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim_matches('`')).collect();
        let mut methods = methods();
        listed.sort_unstable();
        methods.sort_unstable();
        assert_eq!(listed, methods);
    }
}
