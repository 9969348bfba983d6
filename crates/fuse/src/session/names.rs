//! Operations on names: look up, create, remove, rename, link.

use super::{Caller, Entry, NameIn, NewMode, Session};
use crate::options::Checks;
use std::time::Duration;
use vfs::{Base, Context, Errno, Labels, PathAt, PathRef, RenameFlags};

impl Session {
    /// LOOKUP. The kernel may cache an `ENOENT` for [`Session::negative_ttl`].
    ///
    /// # Errors
    /// `ESTALE`; as for a walk of one step.
    pub fn lookup(&self, caller: &Caller, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        if matches!(name, b"." | b"..") && self.exports() {
            return self.look_up_handle(caller, parent, name == b"..");
        }
        let dir = self.node(parent)?;
        let look = || {
            let found = self.look_up(caller, &dir, name)?;
            self.check_found(caller, &found)?;
            Ok(found)
        };
        self.entry(caller, self.with_room(caller, &dir, look)?)
    }

    /// Looks up `name` in `dir` for the kernel, and counts it: as a miss if the tree called the
    /// file system.
    pub(super) fn look_up(&self, caller: &Caller, dir: &PathRef, name: &[u8]) -> Result<PathRef, Errno> {
        let asked = self.vfs.names_asked_here();
        let found = self.callers.looking(caller, |context| context.hold(Base::at(dir), name, false));
        self.metrics.record_name(dir.dev(), self.vfs.names_asked_here() == asked);
        found
    }

    /// Returns how long the kernel may cache that a name does not exist in the directory `parent`.
    /// Zero: not at all.
    #[must_use]
    pub fn negative_ttl(&self, parent: u64) -> Duration {
        self.node(parent).map_or(Duration::ZERO, |dir| self.ttls_of(&dir).negative)
    }

    /// MKNOD.
    ///
    /// # Errors
    /// As for [`vfs::Context::mknod_labelled`]; `EINVAL` for a label outside of `security.`;
    /// `EPERM` if the session acts with credentials that may not set labels; `ESTALE`.
    pub fn mknod(
        &self,
        caller: &Caller,
        parent: u64,
        name: &[u8],
        new: NewMode<'_>,
        rdev: u32,
    ) -> Result<Entry, Errno> {
        let (dir, new) = (self.node(parent)?, self.permitted(caller, new)?);
        self.make(caller, &dir, name, |dir| {
            self.making(caller, dir, new, |context| {
                context.mknod_labelled(Base::at(dir), name, new.mode, rdev, new.labels)
            })
        })
    }

    /// MKDIR.
    ///
    /// # Errors
    /// As for [`mknod`](Self::mknod).
    pub fn mkdir(&self, caller: &Caller, parent: u64, name: &[u8], new: NewMode<'_>) -> Result<Entry, Errno> {
        let (dir, new) = (self.node(parent)?, self.permitted(caller, new)?);
        self.make(caller, &dir, name, |dir| {
            self.making(caller, dir, new, |context| context.mkdir_labelled(Base::at(dir), name, new.mode, new.labels))
        })
    }

    /// SYMLINK.
    ///
    /// # Errors
    /// As for [`vfs::Context::symlink`] and [`mknod`](Self::mknod).
    pub fn symlink(
        &self,
        caller: &Caller,
        parent: u64,
        name: &[u8],
        body: &[u8],
        labels: Labels<'_>,
    ) -> Result<Entry, Errno> {
        let (dir, labels) = (self.node(parent)?, self.permitted(caller, NewMode::new(0, 0).labelled(labels))?.labels);
        self.make(caller, &dir, name, |dir| {
            self.making(caller, dir, NewMode::new(0, 0), |context| {
                context.symlink_labelled(body, Base::at(dir), name, labels)
            })
        })
    }

    /// LINK.
    ///
    /// # Errors
    /// As for [`vfs::Context::link`]; `ESTALE`.
    pub fn link(&self, caller: &Caller, node: u64, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        let (held, dir) = (self.node(node)?, self.node(parent)?);
        // The host also checks whether the caller may link this file (`protected_hardlinks`).
        let context = self.callers.making_in(caller, 0, 0, &[&dir, &held]);
        self.make(caller, &dir, name, |dir| {
            context.link(PathAt::new(Base::at(&held), b""), PathAt::new(Base::at(dir), name), false)
        })
    }

    /// Calls `make` with a context that has the groups which may decide whether `caller` may make a
    /// file in `dir`, and whether the file keeps set-group-id. If the kernel names the group of
    /// `dir`, that group is enough, unless an ACL names other groups.
    pub(super) fn making<R>(
        &self,
        caller: &Caller,
        dir: &PathRef,
        new: NewMode<'_>,
        make: impl Fn(&Context) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        if self.options.checks == Checks::Kernel && self.names_groups() {
            let made = make(&self.callers.making_with_group(caller, new.umask));
            if caller.who.is_root() || made.as_ref().err() != Some(&Errno::EACCES) {
                return made;
            }
        }
        make(&self.callers.making_in(caller, new.umask, new.mode, &[dir]))
    }

    fn make(
        &self,
        caller: &Caller,
        dir: &PathRef,
        name: &[u8],
        make: impl Fn(&PathRef) -> Result<(), Errno>,
    ) -> Result<Entry, Errno> {
        self.with_room(caller, dir, || self.check_share(caller, dir).and_then(|()| make(dir)))?;
        let made = || self.callers.everyone().hold(Base::at(dir), name, false);
        self.entry(caller, self.with_room(caller, dir, made)?)
    }

    /// UNLINK.
    ///
    /// # Errors
    /// As for [`vfs::Context::unlink`]; `ESTALE`.
    pub fn unlink(&self, caller: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno> {
        let dir = self.node(parent)?;
        let context = self.callers.making_in(caller, 0, 0, &[&dir]);
        self.with_room(caller, &dir, || context.unlink(Base::at(&dir), name))
    }

    /// RMDIR.
    ///
    /// # Errors
    /// As for [`vfs::Context::rmdir`]; `ESTALE`.
    pub fn rmdir(&self, caller: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno> {
        let dir = self.node(parent)?;
        let context = self.callers.making_in(caller, 0, 0, &[&dir]);
        self.with_room(caller, &dir, || context.rmdir(Base::at(&dir), name))
    }

    /// RENAME, RENAME2, with the flags of `renameat2(2)`.
    ///
    /// # Errors
    /// As for [`vfs::Context::rename`]; `EINVAL` for unknown flags; `ESTALE`.
    pub fn rename(&self, caller: &Caller, from: NameIn<'_>, to: NameIn<'_>, flags: u32) -> Result<(), Errno> {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
        let (dir, new_dir) = (self.node(from.parent)?, self.node(to.parent)?);
        let context = self.callers.making_in(caller, 0, 0, &[&dir, &new_dir]);
        let (from, to) = (PathAt::new(Base::at(&dir), from.name), PathAt::new(Base::at(&new_dir), to.name));
        self.with_room(caller, &dir, || context.rename(from, to, flags))
    }
}
