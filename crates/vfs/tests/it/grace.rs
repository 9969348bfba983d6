//! Calls of a file system are outside of read sections: while one blocks, grace periods end.

use lightfoot_vfs::{
    After, Attr, Base, CachedNames, Context, Errno, FileSystem, FsTraits, Inode, InodeFlags, MAY_READ, MAY_WRITE,
    NameStore, NewInode, NewNode, Open, OpenFlags, Opened, Opens, Request, S_IFDIR, S_IFREG, Vfs,
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

/// Asks the test for a grace period, and waits for its end.
struct Line {
    ask: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
}

/// A file system whose names live in the cache, and that waits for a grace period in each call that may block.
#[derive(Default)]
struct Waiting {
    line: Arc<Mutex<Option<Line>>>,
    calls: Arc<Mutex<Vec<&'static str>>>,
    last: AtomicU64,
}

impl Waiting {
    fn wait(&self, call: &'static str) {
        if let Some(line) = &*self.line.lock().unwrap() {
            self.calls.lock().unwrap().push(call);
            line.ask.send(()).unwrap();
            line.ended.recv().unwrap();
        }
    }
}

fn attr_of(ino: u64, mode: u32) -> Attr {
    Attr { ino, mode, nlink: 1, ..Attr::default() }
}

impl FileSystem for Waiting {
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
        new.attr.ino = 2 + self.last.fetch_add(1, Relaxed);
        Ok(new.attr.ino)
    }

    fn unlink(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<After, Errno> {
        self.wait("unlink");
        Ok(After::NONE)
    }

    fn inode_flags(&self, _: &Request, _: &Inode) -> Result<InodeFlags, Errno> {
        self.wait("inode_flags");
        Ok(InodeFlags::APPEND)
    }

    fn set_inode_flags(&self, _: &Request, _: &Inode, _: InodeFlags) -> Result<(), Errno> {
        Ok(())
    }

    fn attributes(&self, _: &Request, inode: &Inode) -> Result<Attr, Errno> {
        self.wait("attributes");
        Ok(inode.attr())
    }

    fn open(&self, _: &Request, _: &Inode, _: OpenFlags) -> Result<Opened, Errno> {
        self.wait("open");
        Ok(Opened::default())
    }

    fn release(&self, _: Open<'_>) {
        self.wait("release");
    }

    fn evict(&self, _: &Inode) {
        self.wait("evict");
    }
}

/// That `act` makes these calls, and that a grace period of the tree ends during each of them.
fn check(name: &str, expected: &[&str], act: fn(&Context)) {
    let fs = Waiting::default();
    let (line, calls) = (fs.line.clone(), fs.calls.clone());
    let vfs = Vfs::new(fs);
    let context = vfs.context();
    context.mkdir(Base::CWD, b"/d", 0o755).unwrap();
    context.mknod(Base::CWD, b"/d/f", S_IFREG | 0o644, 0).unwrap();
    context.hold(Base::CWD, b"/d/f", true).unwrap().mark_stale();
    context.mknod(Base::CWD, b"/d/log", S_IFREG | 0o644, 0).unwrap();
    let log = context.hold(Base::CWD, b"/d/log", true).unwrap();
    context.set_inode_flags_held(&log, InodeFlags::APPEND).unwrap();
    drop(log);
    let ((ask, asked), (end, ended)) = (mpsc::channel(), mpsc::channel());
    *line.lock().unwrap() = Some(Line { ask, ended });
    thread::scope(|scope| {
        let worker = scope.spawn(|| act(&context));
        while !worker.is_finished() {
            if asked.try_recv().is_ok() {
                vfs.barrier();
                end.send(()).unwrap();
            }
            thread::yield_now();
        }
        worker.join().unwrap();
    });
    line.lock().unwrap().take();
    assert_eq!(*calls.lock().unwrap(), expected, "{name}");
}

#[test]
fn grace_periods_end_while_the_file_system_is_called() {
    check("stat", &["attributes"], |context| {
        context.attr(Base::CWD, b"/d/f", true).unwrap();
    });
    check("access", &["attributes"], |context| {
        context.access(Base::CWD, b"/d/f", true, MAY_READ).unwrap();
    });
    check("access to a file with flags", &["inode_flags"], |context| {
        context.access(Base::CWD, b"/d/log", true, MAY_WRITE).unwrap();
    });
    check("open and close", &["attributes", "open", "release"], |context| {
        drop(context.open(Base::CWD, b"/d/f", OpenFlags::empty(), 0).unwrap());
    });
    check("many", &["attributes"], |context| {
        context.attr_many(Base::CWD, &[b"/d/f"], true, |_, found| assert!(found.is_ok()));
    });
    check("unlink what is held", &["unlink", "evict"], |context| {
        let held = context.hold(Base::CWD, b"/d/f", true).unwrap();
        context.unlink(Base::CWD, b"/d/f").unwrap();
        drop(held);
    });
}
