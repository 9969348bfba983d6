//! **Lightfoot**: an adapter to `vfs` and `ramfs`.
//!
//! The walk is the store-free walk; `docs/walk.md` has the differences from the eras before: `stat`
//! takes no count, not even on the last component; children do not count on their directory; counts
//! move by one fetch-add.
//!
//! # What the adapter does itself
//! * It charges by [`prim::cost`] how long the instructions of a walk take, as the other eras do:
//!   the library has no such calls. Work under a directory's lock is charged there
//!   ([`counted_fs`]).
//! * [`hold_parent`](Process::hold_parent) reads the directory's attributes by the file's reverse
//!   path: twice as many components as `dget_parent` has locks. It holds nothing. The library has
//!   no operation that holds the directory of an open file and needs none, since an open file keeps
//!   its directory for `..` and reverse paths without a count. All steps are store-free: an
//!   application would do this to get the same effect.
//! * A read holds no lock while it works, a write holds the file's data lock: that is how the library reads and writes.
//!   There is no semaphore to compare.
//! * The cost of a mount in instructions is charged before the call, under a lock of the adapter:
//!   the library has its own, but nothing of the adapter's runs under it.
//! * With a table of whole paths a lookup is charged as one component. Its further work is charged
//!   after it: each walk after a miss, as any walk, and each check of a list, as the name of one
//!   component.
//! * `statvfs` sums up separate counters; no mount is read-only.

mod counted_fs;

use crate::era::{Attributes, Era, Error, FileSystemStatus, Handle, HandleOf, Process, Result};
use crate::options::Options;
use crate::path::Route;
use counted_fs::{CountedFs, Counters};
use locks::lockstat::Class;
use prim::shared::Arc;
use vfs::{
    Base, Context, Errno, MountFlags, OpenFile, OpenFlags, PathAt, RenameFlags, UnmountFlags, Vfs, WholePathStats,
};

/// See the [module documentation](self).
pub(crate) struct Lightfoot {
    vfs: Vfs,
    shared: Arc<Counters>,
}

struct LightfootSeat<'e> {
    context: Context,
    vfs: &'e Vfs,
    shared: &'e Counters,
}

impl Lightfoot {
    pub(crate) fn make(options: &Options) -> Box<dyn Era> {
        let shared = Arc::new(Counters::new(options));
        let table = Vfs::builder().whole_paths(options.table_kib << 10);
        Box::new(Self { vfs: table.build(CountedFs::new(shared.clone())), shared })
    }
}

impl Era for Lightfoot {
    fn process(&self) -> Box<dyn Process + '_> {
        Box::new(LightfootSeat { context: self.vfs.context(), vfs: &self.vfs, shared: &self.shared })
    }

    fn visit_locks(&self, _visit: &mut dyn FnMut(&Class)) {}

    fn verify(&self) -> core::result::Result<(), String> {
        self.vfs.barrier();
        let (stats, files) = (self.vfs.stats(), self.shared.files());
        if stats.live_dentries as u64 != files {
            return Err(format!("{} entries, {files} files", stats.live_dentries));
        }
        if stats.held != 0 {
            return Err(format!("{} references are still held", stats.held));
        }
        Ok(())
    }
}

impl Process for LightfootSeat<'_> {
    fn change_directory(&self, path: &[u8]) -> Result<()> {
        self.charge_walk(path)?;
        self.context.set_current_dir(path).map_err(error)
    }

    fn stat(&self, path: &[u8]) -> Result<Attributes> {
        let attr = self.looked_up(path, || self.context.attr(Base::CWD, path, true).map_err(error))?;
        prim::cost(self.shared.options.stat_ns);
        Ok(Attributes { inode: attr.ino, is_directory: attr.is_dir(), links: attr.nlink })
    }

    fn open(&self, path: &[u8]) -> Result<Handle> {
        self.charge_walk(path)?;
        let opened = match self.context.open(Base::CWD, path, OpenFlags::RDWR, 0) {
            Err(Errno::EISDIR) => self.context.open(Base::CWD, path, OpenFlags::RDONLY, 0),
            opened => opened,
        };
        self.opened(opened)
    }

    fn create(&self, path: &[u8]) -> Result<Handle> {
        self.charge_walk(path)?;
        let flags = OpenFlags::RDWR.union(OpenFlags::CREAT).union(OpenFlags::EXCL);
        self.opened(self.context.open(Base::CWD, path, flags, 0o644))
    }

    fn close(&self, handle: Handle) {
        prim::cost(self.shared.options.open_ns);
        drop(handle);
    }

    fn make_directory(&self, path: &[u8]) -> Result<()> {
        self.charge_walk(path)?;
        self.context.mkdir(Base::CWD, path, 0o755).map_err(error)
    }

    fn unlink(&self, path: &[u8]) -> Result<()> {
        self.charge_walk(path)?;
        self.context.unlink(Base::CWD, path).map_err(error)
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.charge_walk(from)?;
        self.charge_walk(to)?;
        self.context.rename(PathAt::cwd(from), PathAt::cwd(to), RenameFlags::default()).map_err(error)
    }

    fn list(&self, path: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.charge_walk(path)?;
        let dir =
            self.context.open(Base::CWD, path, OpenFlags::RDONLY.union(OpenFlags::DIRECTORY), 0).map_err(error)?;
        loop {
            let entries = dir.next_entries().map_err(error)?;
            if entries.is_empty() {
                return Ok(());
            }
            entries.iter().for_each(|entry| visit(&entry.name));
        }
    }

    fn reverse_path(&self, handle: &Handle, path: &mut Vec<u8>) -> Result<()> {
        *path = self.context.path_of(file_of(handle)?.held());
        prim::cost(self.shared.options.path_ns * components(path));
        Ok(())
    }

    fn hold_parent(&self, handle: &Handle, work_ns: u64) -> Result<()> {
        let mut path = Vec::new();
        loop {
            self.reverse_path(handle, &mut path)?;
            let end = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash.max(1));
            let found = self.context.attr(Base::CWD, &path[..end], true);
            if found.is_ok() || self.context.path_of(file_of(handle)?.held()) == path {
                prim::cost(work_ns);
                return found.map(drop).map_err(error);
            }
            // A directory on the way was renamed in between.
        }
    }

    fn status(&self, path: &[u8]) -> Result<FileSystemStatus> {
        self.charge_walk(path)?;
        self.context.access(Base::CWD, path, true, 0).map_err(error)?;
        Ok(FileSystemStatus { files: self.shared.files(), is_read_only: false })
    }

    fn mount(&self, path: &[u8]) -> Result<()> {
        self.charge_walk(path)?;
        self.shared.attach();
        self.context.bind(PathAt::cwd(path), PathAt::cwd(path), MountFlags::default(), false).map_err(error)
    }

    fn unmount(&self, path: &[u8]) -> Result<()> {
        self.charge_walk(path)?;
        self.shared.attach();
        self.context.unmount(Base::CWD, path, UnmountFlags::default()).map_err(error)
    }

    fn read(&self, handle: &Handle, work_ns: u64) -> Result<()> {
        self.shared.set_work_ns(work_ns);
        file_of(handle)?.read_at(0, &mut [0]).map(drop).map_err(error)
    }

    fn write(&self, handle: &Handle, work_ns: u64) -> Result<()> {
        let file = file_of(handle)?;
        if file.attr().is_ok_and(|attr| attr.is_dir()) {
            return Err(Error::IsDirectory);
        }
        self.shared.set_work_ns(work_ns);
        file.write_at(0, &[0]).map(drop).map_err(error)
    }
}

impl LightfootSeat<'_> {
    fn opened(&self, file: core::result::Result<OpenFile, Errno>) -> Result<Handle> {
        let file = file.map_err(error)?;
        prim::cost(self.shared.options.open_ns);
        Ok(Handle(HandleOf::Lightfoot(Box::new(file))))
    }

    /// Calls `look_up`, which looks `path` up, and charges the time of the lookup. The lookup uses
    /// the table of whole paths if there is a table; else it is a walk.
    fn looked_up<T>(&self, path: &[u8], look_up: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.shared.options.table_kib == 0 {
            self.charge_walk(path)?;
            return look_up();
        }
        let components = components_of(path)?;
        self.charge_components(1);
        let before = self.vfs.whole_path_stats_here();
        let found = look_up();
        let after = self.vfs.whole_path_stats_here();
        // A path that is recorded, or refused, is walked once more.
        let walks = |stats: &WholePathStats| stats.misses + stats.recorded + stats.refused;
        self.charge_components(components * (walks(&after) - walks(&before)));
        prim::cost((after.by_list - before.by_list) * self.shared.options.component_ns);
        found
    }

    /// Charges the time that a walk takes besides the walk's accesses to memory. Fails with
    /// [`Error::Invalid`] for an empty path, as in all eras.
    fn charge_walk(&self, path: &[u8]) -> Result<()> {
        self.charge_components(components_of(path)?);
        Ok(())
    }

    fn charge_components(&self, components: u64) {
        let options = &self.shared.options;
        prim::cost(components * (options.component_ns + options.search_ns + options.permission_ns));
    }
}

fn components_of(path: &[u8]) -> Result<u64> {
    Ok(Route::whole(path)?.components.count() as u64)
}

fn components(path: &[u8]) -> u64 {
    path.iter().filter(|&&byte| byte == b'/').count() as u64
}

fn file_of(handle: &Handle) -> Result<&OpenFile> {
    match &handle.0 {
        HandleOf::Lightfoot(file) => Ok(file),
        HandleOf::Entry(_) => Err(Error::Unsupported),
    }
}

fn error(errno: Errno) -> Error {
    match errno {
        Errno::ENOENT => Error::NoEntry,
        Errno::EEXIST => Error::Exists,
        Errno::ENOTDIR => Error::NotDirectory,
        Errno::EISDIR => Error::IsDirectory,
        Errno::ENOTEMPTY => Error::NotEmpty,
        Errno::EINVAL | Errno::EBUSY => Error::Invalid,
        Errno::ENAMETOOLONG => Error::NameTooLong,
        Errno::ENOSPC | Errno::ENOMEM => Error::NoSpace,
        _ => Error::Unsupported,
    }
}
