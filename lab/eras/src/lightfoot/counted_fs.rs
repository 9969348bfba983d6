//! The RAM file system, which counts its files and charges the time of an operation's own
//! instructions where its locks are held.

use crate::options::Options;
use prim::PerCpu;
use prim::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use prim::shared::Arc;
use ramfs::RamFs;
use sync::Mutex;
use vfs::{After, Errno, FileSystem, Inode, Layer, NewNode, Open, Position, Rename, Request, Written};

type Result<T> = core::result::Result<T, Errno>;

/// State that the file system and the era share.
pub(super) struct Counters {
    pub(super) options: Options,
    /// Held while a mount or an unmount takes its time.
    mounts: Mutex<()>,
    own: PerCpu<Own>,
}

/// The data of one CPU.
#[repr(align(128))]
struct Own {
    /// Files made less files removed.
    files: AtomicI64,
    /// How long the read or the write that the thread is in takes.
    work_ns: AtomicU64,
}

pub(super) struct CountedFs {
    ram: RamFs,
    shared: Arc<Counters>,
}

impl Counters {
    pub(super) fn new(options: &Options) -> Self {
        let own = PerCpu::new(|| Own { files: AtomicI64::new(0), work_ns: AtomicU64::new(0) });
        Self { options: options.clone(), mounts: Mutex::new(()), own }
    }

    /// Returns the number of files that have a name, with the root.
    pub(super) fn files(&self) -> u64 {
        let sum: i64 = self.own.iter().map(|own| own.files.load(Relaxed)).sum();
        u64::try_from(sum + 1).unwrap_or(0)
    }

    /// Charges the time of a mount or an unmount, one caller at a time.
    pub(super) fn attach(&self) {
        let _alone = self.mounts.lock();
        prim::cost(self.options.attach_ns);
    }

    /// Sets the time that the calling thread's next read or write takes.
    pub(super) fn set_work_ns(&self, ns: u64) {
        self.own.this().work_ns.store(ns, Relaxed);
    }

    fn work(&self) {
        prim::cost(self.own.this().work_ns.load(Relaxed));
    }

    fn files_changed(&self, by: i64) {
        let own = &self.own.this().files;
        // Relaxed: the slot is this thread's own.
        own.store(own.load(Relaxed) + by, Relaxed);
    }
}

impl CountedFs {
    pub(super) fn new(shared: Arc<Counters>) -> Self {
        Self { ram: RamFs::new(), shared }
    }
}

impl Layer for CountedFs {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.ram
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64> {
        prim::cost(self.shared.options.create_ns);
        let node = self.ram.create(request, dir, name, new)?;
        self.shared.files_changed(1);
        Ok(node)
    }

    fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After> {
        prim::cost(self.shared.options.unlink_ns);
        let after = self.ram.unlink(request, dir, name, inode)?;
        self.shared.files_changed(-1);
        Ok(after)
    }

    fn rename(&self, request: &Request, rename: &Rename<'_>) -> Result<After> {
        prim::cost(self.shared.options.create_ns);
        let after = self.ram.rename(request, rename)?;
        if rename.target.is_some() {
            self.shared.files_changed(-1);
        }
        Ok(after)
    }

    fn read(&self, request: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.shared.work();
        self.ram.read(request, file, offset, buf)
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written> {
        self.shared.work();
        self.ram.write(request, file, at, data)
    }

    /// There are no limits here, so nothing is returned.
    fn evict(&self, _: &Inode) {}
}
