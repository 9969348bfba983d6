//! Operations on names: look up, make, remove, rename, link.

use super::{Caller, Entry, Session};
use std::time::Duration;
use vfs::{Base, Context, Errno, RenameFlags};

impl Session {
    /// LOOKUP. An `ENOENT` may be remembered for [`Session::negative_ttl`].
    ///
    /// # Errors
    /// `ESTALE`; those of a walk of one step.
    pub fn lookup(&self, caller: &Caller, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        let dir = self.node(parent)?;
        let found = self.callers.looking(caller, |context| context.hold(Base::at(&dir), name, false));
        if let Err(Errno::ENOMEM) = found {
            self.make_much_room();
        }
        self.entry(found?)
    }

    /// For how long the kernel may remember that a name is not there; zero: it is not told.
    #[must_use]
    pub fn negative_ttl(&self) -> Duration {
        self.options.ttls.negative
    }

    /// MKNOD.
    ///
    /// # Errors
    /// Those of [`Context::mknod`]; `ESTALE`.
    pub fn mknod(
        &self,
        caller: &Caller,
        parent: u64,
        name: &[u8],
        (mode, umask): (u32, u32),
        rdev: u32,
    ) -> Result<Entry, Errno> {
        self.make((caller, umask), parent, name, |context, dir| context.mknod(dir, name, mode, rdev))
    }

    /// MKDIR.
    ///
    /// # Errors
    /// Those of [`Context::mkdir`]; `ESTALE`.
    pub fn mkdir(&self, caller: &Caller, parent: u64, name: &[u8], (mode, umask): (u32, u32)) -> Result<Entry, Errno> {
        self.make((caller, umask), parent, name, |context, dir| context.mkdir(dir, name, mode))
    }

    /// SYMLINK.
    ///
    /// # Errors
    /// Those of [`Context::symlink`]; `ESTALE`.
    pub fn symlink(&self, caller: &Caller, parent: u64, name: &[u8], body: &[u8]) -> Result<Entry, Errno> {
        self.make((caller, 0), parent, name, |context, dir| context.symlink(body, dir, name))
    }

    /// LINK.
    ///
    /// # Errors
    /// Those of [`Context::link`]; `ESTALE`.
    pub fn link(&self, caller: &Caller, node: u64, parent: u64, name: &[u8]) -> Result<Entry, Errno> {
        let held = self.node(node)?;
        self.make((caller, 0), parent, name, |context, dir| context.link((Base::at(&held), b"", false), (dir, name)))
    }

    fn make(
        &self,
        (caller, umask): (&Caller, u32),
        parent: u64,
        name: &[u8],
        make: impl FnOnce(&Context, Base<'_>) -> Result<(), Errno>,
    ) -> Result<Entry, Errno> {
        let dir = self.node(parent)?;
        let context = self.callers.making(caller, umask);
        make(&context, Base::at(&dir))?;
        self.entry(self.callers.everyone().hold(Base::at(&dir), name, false)?)
    }

    /// UNLINK.
    ///
    /// # Errors
    /// Those of [`Context::unlink`]; `ESTALE`.
    pub fn unlink(&self, caller: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno> {
        let dir = self.node(parent)?;
        self.callers.making(caller, 0).unlink(Base::at(&dir), name)
    }

    /// RMDIR.
    ///
    /// # Errors
    /// Those of [`Context::rmdir`]; `ESTALE`.
    pub fn rmdir(&self, caller: &Caller, parent: u64, name: &[u8]) -> Result<(), Errno> {
        let dir = self.node(parent)?;
        self.callers.making(caller, 0).rmdir(Base::at(&dir), name)
    }

    /// RENAME, RENAME2; `flags` by Linux's numbers.
    ///
    /// # Errors
    /// Those of [`Context::rename`]; `EINVAL` for flags that there are none of here; `ESTALE`.
    pub fn rename(
        &self,
        caller: &Caller,
        (from, name): (u64, &[u8]),
        (to, new_name): (u64, &[u8]),
        flags: u32,
    ) -> Result<(), Errno> {
        let flags = RenameFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
        let (from, to) = (self.node(from)?, self.node(to)?);
        self.callers.making(caller, 0).rename((Base::at(&from), name), (Base::at(&to), new_name), flags)
    }
}
