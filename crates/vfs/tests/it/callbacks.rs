//! File systems whose callbacks panic, or run beside the end of what they are given.

use lightfoot_vfs::{
    After, Attr, Base, Context, Credentials, Errno, FileSystem, FsTraits, Inode, MountFlags, NewInode, NewNode, Open,
    OpenFlags, Permission, Request, S_IFDIR, S_IFREG, UnheldInode, UnmountFlags, Vfs,
};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier, OnceLock};
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

type Check = dyn Fn(UnheldInode<'_>) + Send + Sync;

/// A file system whose names live in the cache, with data of each inode, and its own permission checks.
#[derive(Default)]
struct Fs {
    counts: Arc<Counts>,
    /// Called in each permission check of rcu-walk.
    check: Arc<OnceLock<Box<Check>>>,
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
        FsTraits { names_in_cache: true, own_permissions: true, wants_opens: true, ..FsTraits::default() }
    }

    fn create(&self, _: &Request, _: &Inode, _: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        new.attr.ino = 2 + u64::from(self.last_node.fetch_add(1, SeqCst));
        Ok(new.attr.ino)
    }

    fn unlink(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<After, Errno> {
        Ok(After::NONE)
    }

    fn permission(&self, _: &Request, inode: &Inode, _: u32) -> Permission {
        inode.data_or(|| Data { counts: self.counts.clone() });
        Permission::ByMode
    }

    fn try_permission(&self, _: &Credentials, inode: UnheldInode<'_>, _: u32) -> Permission {
        let Some(check) = self.check.get() else { return Permission::NotHere };
        check(inode);
        Permission::ByMode
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
fn a_walk_reads_the_data_of_an_inode_that_ended_beside_it_until_its_read_section_ends() {
    let fs = Fs::default();
    let (counts, check) = (fs.counts.clone(), fs.check.clone());
    let vfs = Vfs::new(fs);
    let context = vfs.context();
    make(&context, "/d", S_IFDIR);
    // A check that may block gives the inode its data.
    assert_eq!(context.attr(Base::CWD, b"/d/x", true), Err(Errno::ENOENT));
    // The walk is inside its check; then the directory is removed; then the walk reads the data.
    let turns = Arc::new(Barrier::new(2));
    let (inside, seen) = (turns.clone(), Arc::new(AtomicU32::new(0)));
    let (read, of) = (seen.clone(), counts.clone());
    let is_first = AtomicBool::new(true);
    let act = move |inode: UnheldInode<'_>| {
        if inode.node() == 2 && is_first.swap(false, SeqCst) {
            let data = inode.data::<Data>();
            inside.wait();
            inside.wait();
            let dropped = of.data.load(SeqCst);
            assert!(dropped != 0 || data.is_some_and(|data| Arc::ptr_eq(&data.counts, &of)));
            read.store(1 + dropped, SeqCst);
        }
    };
    assert!(check.set(Box::new(act)).is_ok());
    thread::scope(|scope| {
        scope.spawn(|| {
            turns.wait();
            context.rmdir(Base::CWD, b"/d").unwrap();
            turns.wait();
        });
        assert_eq!(vfs.context().attr(Base::CWD, b"/d/x", true), Err(Errno::ENOENT));
    });
    assert_eq!(counts.evictions.load(SeqCst), 1);
    assert_eq!(seen.load(SeqCst), 1, "data dropped before the read section of the walk ended");
    vfs.barrier();
    assert_eq!(counts.data.load(SeqCst), 1);
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
    // One release, 65 evictions, the file system's drop. The data is dropped by RCU, which catches its panics itself.
    assert_eq!(vfs.callback_panics(), 67);
    for number in 0..64 {
        context.attr(Base::CWD, format!("/other/{number}").as_bytes(), true).unwrap();
    }
}
