//! The tree of a case, and its checks.
//!
//! # What it is
//! Short forms of a context's operations, from its root, and checks that return a [`Failure`] instead of panicking.
//!
//! # How it is locked
//! The threads of a case share it.

use crate::counting::{Counting, Counts};
use crate::features::Features;
use crate::ledger::{Ledger, Opens};
use crate::outcome::{Failure, OrFail, Outcome};
use crate::subject::{Outside, Restart, Subject};
use core::fmt::{self, Debug};
use std::sync::Arc;
use vfs::{Attr, Base, Budget, Credentials, DirEntry, Errno, OpenFile, OpenFlags, PathAt, RenameFlags, Vfs};

/// Opens for reading and writing, and creates the file if it is missing.
pub(crate) const MAKE: OpenFlags = OpenFlags::RDWR.union(OpenFlags::CREAT);

/// Opens a directory.
pub(crate) const DIR: OpenFlags = OpenFlags::RDONLY.union(OpenFlags::DIRECTORY);

/// A fresh file system in its own tree.
pub struct Fixture {
    vfs: Vfs,
    at: vfs::Context,
    counts: Arc<Counts>,
    opens: Arc<Opens>,
    features: Features,
    outside: Option<Box<dyn Outside>>,
    restart: Option<Box<Restart>>,
}

impl Debug for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("counts", &self.counts).field("opens", &self.opens).finish_non_exhaustive()
    }
}

impl Fixture {
    /// Returns a tree over `subject`.
    #[must_use]
    pub fn new(subject: Subject, features: Features) -> Self {
        let (ledger, opens) = Ledger::of(subject.fs);
        let (fs, counts) = Counting::of(Box::new(ledger));
        let vfs = Vfs::builder().shards_every_directory(subject.is_sharded).build(fs);
        let at = vfs.context();
        at.set_umask(0);
        let Subject { outside, restart, .. } = subject;
        Self { vfs, at, counts, opens, features, outside, restart }
    }

    /// Returns the tree.
    #[must_use]
    pub fn vfs(&self) -> &Vfs {
        &self.vfs
    }

    /// Returns a context at its root with root's credentials and no umask.
    #[must_use]
    pub fn at(&self) -> &vfs::Context {
        &self.at
    }

    /// Returns a context at the root with these credentials and no umask.
    pub(crate) fn of(&self, credentials: Credentials) -> vfs::Context {
        let context = self.vfs.context();
        context.set_umask(0);
        context.set_credentials(credentials);
        context
    }

    /// Counts of the requests to the file system.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the opens of its files.
    pub(crate) fn opens(&self) -> &Opens {
        &self.opens
    }

    /// Returns the file system's features.
    #[must_use]
    pub fn features(&self) -> Features {
        self.features
    }

    /// Returns the links that directories have, where each counts its subdirectories as `counted`.
    pub(crate) fn links<const N: usize>(&self, counted: [u32; N]) -> [Result<u32, Errno>; N] {
        counted.map(|links| Ok(if self.features.counts_subdirectories { links } else { 1 }))
    }

    /// Changes the storage from outside, if the subject can do that.
    #[must_use]
    pub fn outside(&self) -> Option<&dyn Outside> {
        self.outside.as_deref()
    }

    /// Returns a second tree over the same storage, as after a restart, whose cache has this
    /// budget; `None`: the subject cannot begin again.
    #[must_use]
    pub fn restarted(&self, budget: Budget) -> Option<Vfs> {
        self.restart.as_ref().map(|restart| Vfs::with_budget(Counting::of(restart()).0, budget))
    }

    /// Marks everything in the cache as stale, so that the next answers come from the file system. Does nothing if names
    /// live in the cache.
    pub fn mark_stale(&self) {
        self.counts.mark_stale();
    }

    /// Runs `check` with the cache as it is, and again with a stale cache.
    pub(crate) fn twice(&self, check: impl Fn() -> Outcome) -> Outcome {
        check()?;
        self.mark_stale();
        check().map_err(|failure| Failure::new(format!("{failure} (with a stale cache)")))
    }

    /// Returns the attributes; a symbolic link's own.
    pub(crate) fn attr(&self, path: impl AsRef<[u8]>) -> Result<Attr, Errno> {
        self.at.attr(Base::CWD, path.as_ref(), false)
    }

    pub(crate) fn open(&self, path: impl AsRef<[u8]>, flags: OpenFlags) -> Result<OpenFile, Errno> {
        self.at.open(Base::CWD, path.as_ref(), flags, 0o644)
    }

    /// Writes `contents` at the start of a file; creates it if it is missing.
    pub(crate) fn write(&self, path: impl AsRef<[u8]>, contents: &[u8]) -> Outcome {
        let path = path.as_ref();
        let file = self.open(path, MAKE).or_fail(format_args!("making {}", path.escape_ascii()))?;
        write_all(&file, 0, contents)
    }

    /// Returns the contents of a file.
    pub(crate) fn read(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, Errno> {
        read_all(&self.open(path, OpenFlags::RDONLY)?)
    }

    pub(crate) fn mkdir(&self, path: impl AsRef<[u8]>) -> Result<(), Errno> {
        self.at.mkdir(Base::CWD, path.as_ref(), 0o755)
    }

    /// Makes directories, those above others first.
    pub(crate) fn make_dirs<const N: usize>(&self, paths: [&str; N]) -> Outcome {
        paths.iter().try_for_each(|path| self.mkdir(path).or_fail(format_args!("mkdir {path}")))
    }

    pub(crate) fn unlink(&self, path: impl AsRef<[u8]>) -> Result<(), Errno> {
        self.at.unlink(Base::CWD, path.as_ref())
    }

    pub(crate) fn rmdir(&self, path: impl AsRef<[u8]>) -> Result<(), Errno> {
        self.at.rmdir(Base::CWD, path.as_ref())
    }

    pub(crate) fn link(&self, old: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> Result<(), Errno> {
        self.at.link(PathAt::cwd(old.as_ref()), PathAt::cwd(new.as_ref()), false)
    }

    pub(crate) fn symlink(&self, body: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<(), Errno> {
        self.at.symlink(body.as_ref(), Base::CWD, path.as_ref())
    }

    pub(crate) fn rename(&self, old: impl AsRef<[u8]>, new: impl AsRef<[u8]>) -> Result<(), Errno> {
        self.rename_with(old, new, RenameFlags::default())
    }

    pub(crate) fn rename_with(
        &self,
        old: impl AsRef<[u8]>,
        new: impl AsRef<[u8]>,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.at.rename(PathAt::cwd(old.as_ref()), PathAt::cwd(new.as_ref()), flags)
    }

    /// Returns all entries of a directory, in the order of the listing.
    pub(crate) fn list(&self, path: impl AsRef<[u8]>) -> Result<Vec<DirEntry>, Errno> {
        entries(&self.open(path, DIR)?)
    }

    /// Returns the names in a directory, sorted.
    pub(crate) fn names(&self, path: impl AsRef<[u8]>) -> Result<Vec<String>, Errno> {
        let names = self.list(path)?.into_iter().map(|entry| entry.name.escape_ascii().to_string());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Ends the tree, waits until its file system was dropped, and checks that each inode was evicted once, and each open
    /// released once.
    pub(crate) fn finish(self) -> Outcome {
        let Self { vfs, at, counts, opens, .. } = self;
        drop((at, vfs));
        counts.wait_for_the_end()?;
        opens.check_the_end()
    }
}

/// Writes all of `data`, with as many calls as needed.
pub(crate) fn write_all(file: &OpenFile, offset: u64, data: &[u8]) -> Outcome {
    let mut done = 0;
    while done < data.len() {
        let at = offset + done as u64;
        let (written, _) = file.write_at(at, &data[done..]).or_fail(format_args!("writing at {at}"))?;
        if written == 0 {
            return Err(Failure::new(format!("writing at {at}: expected some bytes to be written, got 0")));
        }
        done += written;
    }
    Ok(())
}

/// Returns the contents of the file.
pub(crate) fn read_all(file: &OpenFile) -> Result<Vec<u8>, Errno> {
    let (mut all, mut buf) = (Vec::new(), vec![0; 4096]);
    loop {
        match file.read_at(all.len() as u64, &mut buf)? {
            0 => return Ok(all),
            read => all.extend_from_slice(&buf[..read]),
        }
    }
}

/// Returns the entries of an open directory, from its position to the end.
pub(crate) fn entries(dir: &OpenFile) -> Result<Vec<DirEntry>, Errno> {
    let mut all = Vec::new();
    loop {
        let some = dir.next_entries()?;
        if some.is_empty() {
            return Ok(all);
        }
        all.extend(some);
    }
}

/// Returns `len` bytes of contents that begin at the offset `from`: most bytes near one another differ.
pub(crate) fn pattern(from: u64, len: usize) -> Vec<u8> {
    (from..).take(len).map(|at| (at % 251) as u8).collect()
}
