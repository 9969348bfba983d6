//! The errors of `close(2)` in the library.

use lightfoot::fs::{FsTraits, Layer, Open, Opens, Request};
use lightfoot::{Errno, FileSystem, OpenOptions, RamFs, Vfs};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Has no room left when a file is closed, as a network file system may find out.
struct Late(RamFs, Arc<[AtomicU32; 2]>);

impl Layer for Late {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.0
    }

    fn traits(&self) -> FsTraits {
        FsTraits { opens: Opens::Yes { flush: true }, ..self.0.traits() }
    }

    fn flush(&self, _: &Request, _: &Open<'_>) -> Result<(), Errno> {
        self.1[0].fetch_add(1, SeqCst);
        Err(Errno::ENOSPC)
    }

    fn release(&self, _: Open<'_>) {
        self.1[1].fetch_add(1, SeqCst);
    }
}

#[test]
fn close_returns_the_error_that_a_drop_loses() {
    let counts = Arc::<[AtomicU32; 2]>::default();
    let now = || [0, 1].map(|at| counts[at].load(SeqCst));
    let ctx = Vfs::new(Late(RamFs::new(), counts.clone())).context();
    let mut file = ctx.create("/file").unwrap();
    file.write_all(b"contents").unwrap();
    let clone = file.try_clone().unwrap();
    assert_eq!(file.close().unwrap_err().raw_os_error(), Some(Errno::ENOSPC.raw()));
    assert_eq!(now(), [1, 0], "the clone has it open");
    assert_eq!(clone.close().unwrap_err().raw_os_error(), Some(Errno::ENOSPC.raw()));
    assert_eq!(now(), [2, 1]);
    // A reader writes nothing.
    ctx.open("/file").unwrap().close().unwrap();
    drop(OpenOptions::new().append(true).open(&ctx, "/file").unwrap());
    assert_eq!(now(), [2, 3]);
}

#[test]
fn close_in_memory_cannot_fail() {
    let ctx = Vfs::ram().context();
    let file = ctx.create("/file").unwrap();
    (&file).write_all(b"contents").unwrap();
    file.close().unwrap();
    assert_eq!(ctx.read("/file").unwrap(), b"contents");
}
