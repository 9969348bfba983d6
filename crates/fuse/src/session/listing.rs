//! Listings of directories, with cookies that stay with their entries.
//!
//! The cookie of an entry is the file system's own; `.` and `..`, which come first, have two that no file system gives out.

use super::{Caller, Entry, Session};
use vfs::{Base, DirEntry, Errno, Held, OpenFile, OpenFlags};

/// The cookie of `.`.
const DOT: u64 = i64::MAX as u64 - 2;
/// The cookie of `..`.
const DOT_DOT: u64 = i64::MAX as u64 - 1;

/// One name of a listing, as it is given out.
#[derive(Debug)]
pub struct Listed<'e> {
    /// Its name.
    pub name: &'e [u8],
    /// Inode number.
    pub ino: u64,
    /// File type (`S_IFMT`).
    pub kind: u32,
    /// Where to go on after it.
    pub cookie: u64,
}

impl Session {
    /// OPENDIR.
    ///
    /// # Errors
    /// Those of [`vfs::Context::open`]; `ESTALE`.
    pub fn opendir(&self, caller: &Caller, node: u64) -> Result<u64, Errno> {
        Ok(self.directories.insert(self.open_directory(caller, node)?))
    }

    fn open_directory(&self, caller: &Caller, node: u64) -> Result<OpenFile, Errno> {
        let held = self.node(node)?;
        let flags = OpenFlags::RDONLY.union(OpenFlags::DIRECTORY);
        self.callers.looking(caller, |context| context.open_held(&held, flags))
    }

    /// READDIR: calls `emit` with the names that follow `cookie` (0: from the start) until that says that its room is used up.
    ///
    /// # Errors
    /// `EBADF`; the file system's, if no name was given out before.
    pub fn readdir(&self, handle: u64, cookie: u64, emit: &mut dyn FnMut(&Listed<'_>) -> bool) -> Result<(), Errno> {
        let Some(directory) = self.directories.get(handle) else { return Err(Errno::EBADF) };
        let held = directory.held();
        let own = self.shown_ino_of(held)?;
        if cookie == 0 && !emit(&Listed { name: b".", ino: own, kind: vfs::S_IFDIR, cookie: DOT }) {
            return Ok(());
        }
        if (cookie == 0 || cookie == DOT)
            && !emit(&Listed { name: b"..", ino: self.parent_ino(held), kind: vfs::S_IFDIR, cookie: DOT_DOT })
        {
            return Ok(());
        }
        let after = if cookie == DOT || cookie == DOT_DOT { 0 } else { cookie };
        let mut any = false;
        let done = directory.entries_after(after, &mut |entry: &DirEntry, cookie| {
            let listed =
                Listed { name: &entry.name, ino: self.shown_ino(held.dev(), entry.ino), kind: entry.kind, cookie };
            let taken = emit(&listed);
            any |= taken;
            taken
        });
        if any { Ok(()) } else { done }
    }

    fn parent_ino(&self, held: &Held) -> u64 {
        let parent = self.callers.everyone().hold(Base::at(held), b"..", false);
        parent.and_then(|parent| self.shown_ino_of(&parent)).unwrap_or(super::ROOT_NODE)
    }

    /// What READDIRPLUS tells besides a name: a lookup of it, but for `.` and `..`. Names that went meanwhile are `None`.
    #[must_use]
    pub fn listed_entry(&self, caller: &Caller, handle: u64, listed: &Listed<'_>) -> Option<Entry> {
        let directory = self.directories.get(handle)?;
        let found =
            self.callers.looking(caller, |context| context.hold(Base::at(directory.held()), listed.name, false));
        self.entry(found.ok()?).ok()
    }

    /// RELEASEDIR.
    pub fn releasedir(&self, handle: u64) {
        drop(self.directories.remove(handle));
    }

    /// FSYNCDIR.
    ///
    /// # Errors
    /// `EBADF`; the file system's.
    pub fn fsyncdir(&self, handle: u64, data_only: bool) -> Result<(), Errno> {
        self.directories.get(handle).ok_or(Errno::EBADF)?.sync(data_only)
    }
}
