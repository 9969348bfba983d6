//! File systems whose callbacks panic.

use lightfoot_vfs::{
    After, Attr, Base, CachedNames, Context, Errno, FileSystem, FsTraits, Inode, MountFlags, NameStore, NewInode,
    NewNode, Open, OpenFlags, Opens, Request, S_IFDIR, S_IFREG, UnmountFlags, Vfs,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;

/// Data of an inode. Counts its drops, which panic after `panics` was set.
struct Data {
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Drops of inodes' data.
    data: AtomicU32,
    /// Drops of the file system.
    file_systems: AtomicU32,
    evictions: AtomicU32,
    releases: AtomicU32,
    panics: AtomicBool,
}

impl Counts {
    fn add(&self, counter: &AtomicU32) {
        counter.fetch_add(1, SeqCst);
        if self.panics.load(SeqCst) {
            std::panic::panic_any(Payload);
        }
    }
}

/// What the file systems panic with: its drop panics too.
struct Payload;

impl Drop for Payload {
    fn drop(&mut self) {
        assert!(thread::panicking(), "the payload of a panic was dropped");
    }
}

/// A file system whose names live in the cache, with data of each inode.
#[derive(Default)]
struct Fs {
    counts: Arc<Counts>,
    last_node: AtomicU32,
}

fn attr_of(ino: u64, mode: u32) -> Attr {
    Attr { ino, mode, nlink: 1, ..Attr::default() }
}

impl FileSystem for Fs {
    fn root(&self) -> NewInode {
        NewInode { node: 1, attr: attr_of(1, S_IFDIR | 0o755), ..NewInode::default() }
    }

    fn traits(&self) -> FsTraits {
        FsTraits {
            names: NameStore::Cache(CachedNames::default()),
            opens: Opens::Yes { flush: false },
            ..FsTraits::default()
        }
    }

    fn create(&self, _: &Request, _: &Inode, _: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        new.attr.ino = 2 + u64::from(self.last_node.fetch_add(1, SeqCst));
        Ok(new.attr.ino)
    }

    fn unlink(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<After, Errno> {
        Ok(After::NONE)
    }

    fn evict(&self, inode: &Inode) {
        inode.data_or(|| Data { counts: self.counts.clone() });
        self.counts.add(&self.counts.evictions);
    }

    fn release(&self, _: Open<'_>) {
        self.counts.add(&self.counts.releases);
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.counts.data.fetch_add(1, SeqCst);
        assert!(!self.counts.panics.load(SeqCst), "data that does not want to be dropped");
    }
}

impl Drop for Fs {
    fn drop(&mut self) {
        self.counts.add(&self.counts.file_systems);
    }
}

fn make(context: &Context, path: &str, kind: u32) {
    match kind {
        S_IFDIR => context.mkdir(Base::CWD, path.as_bytes(), 0o755).unwrap(),
        _ => context.mknod(Base::CWD, path.as_bytes(), S_IFREG | 0o644, 0).unwrap(),
    }
}

#[test]
fn a_file_system_that_panics_in_its_callbacks_is_unmounted_and_nothing_is_freed_early() {
    let vfs = Vfs::new(Fs::default());
    let context = vfs.context();
    make(&context, "/mnt", S_IFDIR);
    make(&context, "/other", S_IFDIR);
    let fs = Fs::default();
    let counts = fs.counts.clone();
    context.mount(fs, Base::CWD, b"/mnt", MountFlags::default()).unwrap();
    for number in 0..64 {
        make(&context, &format!("/mnt/{number}"), S_IFREG);
        make(&context, &format!("/other/{number}"), S_IFREG);
    }
    let open = context.open(Base::CWD, b"/mnt/0", OpenFlags::RDWR, 0).unwrap();
    counts.panics.store(true, SeqCst);
    drop(open);
    assert_eq!((counts.releases.load(SeqCst), vfs.callback_panics()), (1, 1));
    // A file that was closed does not keep the mount writable.
    context.remount(Base::CWD, b"/mnt", MountFlags::RDONLY).unwrap();
    context.unmount(Base::CWD, b"/mnt", UnmountFlags::default()).unwrap();
    vfs.barrier();
    // 64 files and the root.
    assert_eq!((counts.evictions.load(SeqCst), counts.data.load(SeqCst)), (65, 65));
    assert_eq!(counts.file_systems.load(SeqCst), 1);
    // One release, 65 evictions, 65 drops of data, the file system's drop.
    assert_eq!(vfs.callback_panics(), 132);
    for number in 0..64 {
        context.attr(Base::CWD, format!("/other/{number}").as_bytes(), true).unwrap();
    }
}
