//! Attributes that are in doubt: the file system is asked before they are shown.
//!
//! # What it is
//! A file system that does not leave attributes to the VFS (of a host directory, of a server) says of an inode that what is known of
//! it may be old, by [`Inode::doubt`], after its own changes too. Who wants to see attributes then asks for them by
//! [`crate::FileSystem::attributes`]. A walk cannot ask in rcu-walk: it goes on by holding the place ([`Fallback::Attributes`]).
//!
//! # How it is locked
//! By nothing. The doubt ends before the file system is asked, so a change that it does not see any more begins the doubt anew. An
//! answer is put in place only of the attributes that were there when it was asked for: what was changed here meanwhile stays, and
//! is in doubt.
//!
//! # Where it comes from
//! `STATX_ATTR` validity of FUSE (`attr_valid`) and NFS (`NFS_INO_INVALID_ATTR`) in Linux.

use crate::attr::Attr;
use crate::context::Held;
use crate::cred::Credentials;
use crate::dentry::HASHED;
use crate::errno::Errno;
use crate::fs::Request;
use crate::inode::Inode;
use crate::superblock::{SuperBlock, change_dir_flags};
use crate::walk::Found;
use crate::walk::fallback::Fallback;

impl SuperBlock {
    /// The attributes of `inode`, which is held.
    ///
    /// # Errors
    /// What the file system answers if it must be asked.
    #[inline]
    pub(crate) fn attr_now(&self, inode: &Inode) -> Result<Attr, Errno> {
        if inode.is_doubted() { self.ask_for_attr(inode) } else { Ok(inode.attr()) }
    }

    #[cold]
    fn ask_for_attr(&self, inode: &Inode) -> Result<Attr, Errno> {
        inode.set_doubted(false);
        let before = inode.attr();
        let told = self.fs.attributes(&Request::of(&Credentials::root()), inode);
        let is_same = |attr: &Attr| if attr.kind() == before.kind() { Ok(()) } else { Err(Errno::ESTALE) };
        let attr = told.and_then(|attr| is_same(&attr).map(|()| attr)).inspect_err(|_| inode.doubt())?;
        let is_known = inode.update(|now| {
            if *now == before {
                *now = attr;
            }
            *now == attr
        });
        if !is_known {
            // Something was changed here meanwhile, and what was told may be from before: it does not undo that.
            inode.doubt();
        } else if attr.is_dir() && before.mode != attr.mode {
            change_dir_flags(crate::slot::dentry_beside(inode), 0, 0);
        }
        Ok(attr)
    }
}

impl Found<'_> {
    /// The attributes. A walk that cannot ask for them goes on by itself.
    ///
    /// # Errors
    /// What the file system answers; `EAGAIN`, which the walk does not show its caller.
    #[inline(always)]
    pub(crate) fn attr(&self) -> Result<Attr, Errno> {
        let inode = self.inode()?;
        if inode.is_doubted() { self.attr_asked(inode) } else { Ok(inode.attr()) }
    }

    /// The attributes of an inode that is in doubt.
    ///
    /// # Errors
    /// As for [`Found::attr`].
    #[cold]
    #[inline(never)]
    pub(crate) fn attr_asked(&self, inode: &Inode) -> Result<Attr, Errno> {
        if self.is_held() { self.sb().attr_now(inode) } else { Err(self.ask_again(Fallback::Attributes)) }
    }
}

impl Held {
    /// Its attributes: `fstat(2)` of an `O_PATH` handle.
    ///
    /// # Errors
    /// Those of [`crate::FileSystem::attributes`], if the file system said that they may have changed.
    pub fn attr(&self) -> Result<Attr, Errno> {
        self.sb().attr_now(self.inode()?)
    }

    /// Its attributes, for which the file system is asked whatever is known.
    ///
    /// # Errors
    /// Those of [`crate::FileSystem::attributes`].
    pub fn attr_anew(&self) -> Result<Attr, Errno> {
        self.sb().ask_for_attr(self.inode()?)
    }

    /// Says that its attributes may have changed without the file system's knowing, as [`Inode::doubt`] does.
    pub fn doubt(&self) {
        if let Ok(inode) = self.inode() {
            inode.doubt();
        }
    }

    /// A number that no other inode of this tree has as long as this is held; all names of a file have one.
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.dentry().inode().map_or(0, |inode| core::ptr::from_ref(inode) as u64)
    }

    /// The number of the mount that it is seen through; no other of this tree has it.
    #[must_use]
    pub fn mount_id(&self) -> u64 {
        self.mount().id()
    }

    /// The directory that it is in, and its name there, at one moment; `None` if it has no name, or is what its mount shows first.
    #[must_use]
    pub fn parent_and_name(&self) -> Option<(Self, Box<[u8]>)> {
        let (sb, dentry) = (self.sb(), self.dentry());
        if core::ptr::eq(dentry, self.mount().root()) {
            return None;
        }
        loop {
            let guard = sb.domain.read();
            let seq = dentry.seq.begin();
            let is_named = dentry.has(HASHED);
            let parent = dentry.parent().filter(|_| is_named);
            let name: Box<[u8]> = dentry.with_name_rcu(&guard, |name| name.into());
            // If it still is the parent below, it was all the time, and a directory with a name in it does not go.
            let held = parent.and_then(|parent| sb.pin(parent));
            drop(guard);
            if !dentry.seq.retry(seq) {
                return parent.and(held).map(|held| (self.beside(held), name));
            }
            held.into_iter().for_each(|held| sb.unpin(held));
        }
    }

    pub(crate) fn inode(&self) -> Result<&Inode, Errno> {
        self.dentry().inode().ok_or(Errno::EIO)
    }
}
