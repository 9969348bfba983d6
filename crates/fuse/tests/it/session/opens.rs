//! What a file system keeps for each open, and its ends.

use crate::session::kernel::{Kernel, PLAIN, RDONLY, RDWR, SUPER, WRONLY};
use lightfoot_fuse::{ROOT_NODE, Session, SessionOptions};
use parking_lot::Mutex;
use ramfs::RamFs;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;
use vfs::{
    Base, Errno, FileSystem, FsTraits, Inode, Layer, MountFlags, Open, OpenFlags, OpenState, Opened, Opens, Position,
    Request, Written,
};

/// Numbers that are open, the next one, and the numbers of the opens that wrote.
#[derive(Default)]
struct Seen {
    open: BTreeSet<u64>,
    next: u64,
    wrote: Vec<u64>,
    version: Option<NonZeroU64>,
}

/// Numbers its opens. Pages of a file that is opened for the second time must not be kept. All files have one version.
struct Numbered(RamFs, Arc<Mutex<Seen>>);

impl Layer for Numbered {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.0
    }

    fn traits(&self) -> FsTraits {
        FsTraits { opens: Opens::Yes { flush: false }, ..FileSystem::traits(&self.0) }
    }

    fn open(&self, _: &Request, _: &Inode, _: OpenFlags) -> Result<Opened, Errno> {
        let mut seen = self.1.lock();
        seen.next += 1;
        let number = seen.next;
        seen.open.insert(number);
        Ok(Opened {
            state: OpenState::Word(number),
            keeps_pages: number != 2,
            version: seen.version,
            ..Opened::default()
        })
    }

    fn release(&self, file: Open<'_>) {
        assert!(self.1.lock().open.remove(&file.state.word().unwrap()), "released twice");
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        self.1.lock().wrote.push(file.state.word().unwrap());
        self.0.write(request, file, at, data)
    }
}

fn numbered(options: SessionOptions) -> (Kernel, Arc<Mutex<Seen>>) {
    let seen = Arc::<Mutex<Seen>>::default();
    (Kernel::over(Numbered(RamFs::new(), seen.clone()), options), seen)
}

fn open(seen: &Mutex<Seen>) -> Vec<u64> {
    seen.lock().open.iter().copied().collect()
}

#[test]
fn each_handle_has_its_state_until_its_release() {
    let (kernel, seen) = numbered(SessionOptions::default());
    let (entry, made) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
    let writer = kernel.open(&SUPER, entry.node, WRONLY).unwrap();
    let reader = kernel.open(&SUPER, entry.node, RDONLY).unwrap();
    for handle in [writer.handle, made.handle, writer.handle] {
        assert_eq!(kernel.write(entry.node, handle, 0, b"data"), Ok(4));
    }
    assert_eq!(kernel.write(entry.node, reader.handle, 0, b"data"), Err(Errno::EBADF));
    assert_eq!(seen.lock().wrote, [2, 1, 2]);
    kernel.unlink(&SUPER, ROOT_NODE, b"f").unwrap();
    kernel.release(made.handle);
    // A second release, and one of a number that was never given out.
    kernel.release(made.handle);
    kernel.release(u64::MAX);
    assert_eq!(open(&seen), [2, 3]);
    assert_eq!(kernel.write(entry.node, writer.handle, 0, b"more"), Ok(4));
    kernel.release(writer.handle);
    kernel.release(reader.handle);
    kernel.forget(entry.node, 1);
    kernel.check_nothing_left("opens");
    assert_eq!(open(&seen), []);
}

#[test]
fn the_end_of_the_session_releases_what_the_kernel_has_open() {
    let (kernel, seen) = numbered(SessionOptions::default());
    let (entry, _) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, RDWR).unwrap();
    for _ in 0..5 {
        kernel.open(&SUPER, entry.node, RDONLY).unwrap();
    }
    kernel.open(&SUPER, entry.node + 100, RDONLY).unwrap_err();
    assert_eq!(open(&seen), [1, 2, 3, 4, 5, 6]);
    kernel.end();
    assert_eq!(open(&seen), []);
}

#[test]
fn a_file_system_decides_whether_the_kernel_keeps_its_pages() {
    let (kernel, _) = numbered(SessionOptions { kernel_cache: true, ..SessionOptions::default() });
    let (entry, made) = kernel.create(&SUPER, ROOT_NODE, b"f", PLAIN, WRONLY).unwrap();
    let kept = [0; 3].map(|_| kernel.open(&SUPER, entry.node, WRONLY).unwrap().keep_cache);
    assert_eq!((made.keep_cache, kept), (true, [false, true, true]));
}

#[test]
fn the_kernel_keeps_what_has_the_version_of_its_own_open_before() {
    let seen = Arc::<Mutex<Seen>>::default();
    let one = Kernel::over(
        Numbered(RamFs::new(), seen.clone()),
        SessionOptions { kernel_cache: true, ..SessionOptions::default() },
    );
    // Its file system counts the opens of all: the second one keeps nothing.
    drop([0; 2].map(|_| one.vfs.context().open(Base::CWD, b"/", OpenFlags::DIRECTORY, 0).unwrap()));
    // No access is recorded, for which the kernel would drop a listing.
    one.vfs.context().remount(Base::CWD, b"/", MountFlags::NOATIME).unwrap();
    let other = Session::new(&one.vfs, one.options().clone()).unwrap();
    one.file("f");
    one.dir("d");
    let nodes = [&*one.session, &*other]
        .map(|kernel| [b"f", b"d"].map(|name| kernel.lookup(&SUPER, ROOT_NODE, name).unwrap().node));
    let keeps = |kernel: &Session, [file, dir]: [u64; 2]| {
        let directory = kernel.opendir(&SUPER, dir).unwrap();
        [kernel.open(&SUPER, file, WRONLY).unwrap().keep_cache, kernel.keeps_listing(directory)]
    };
    for (version, expected) in
        [(5, false), (5, true), (6, false), (6, true), (5, false), (0, false), (0, true), (5, false)]
    {
        seen.lock().version = NonZeroU64::new(version);
        assert_eq!(keeps(&one, nodes[0]), [expected; 2], "{version}");
        assert_eq!(keeps(&other, nodes[1]), [expected; 2], "{version}, another mount");
    }
}
