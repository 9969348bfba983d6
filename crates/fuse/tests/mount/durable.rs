//! `O_SYNC` and `O_DSYNC`: OPEN does not hand them on, since the kernel requests an FSYNC after each write.

use crate::{Mount, ram, session, wait_for};
use lightfoot_fuse::{MountOptions, Op, SessionOptions};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::pwrite;

fn count(mount: &Mount, op: Op) -> u64 {
    let ops = mount.mounted().session().metrics().snapshot().ops;
    ops.iter().find(|found| found.name == op.name()).map_or(0, |found| found.count)
}

#[test]
fn each_write_of_a_file_that_is_opened_for_it_is_followed_by_an_fsync() {
    for writeback in [false, true] {
        let session = SessionOptions { writeback, ..session() };
        let Some(mount) = Mount::new(&ram(), &MountOptions { session, ..MountOptions::default() }) else { return };
        let mut fsyncs = 0;
        for (flags, expected) in [
            (OFlags::empty(), 0),
            (OFlags::DIRECT, 0),
            (OFlags::SYNC, 3),
            (OFlags::DSYNC, 3),
            (OFlags::SYNC | OFlags::DIRECT, 3),
            (OFlags::DSYNC | OFlags::DIRECT, 3),
        ] {
            let file = openat(CWD, mount.path("file"), OFlags::RDWR | OFlags::CREATE | flags, Mode::RUSR).unwrap();
            for at in 0..3 {
                assert_eq!(pwrite(&file, &[7; 4096], at * 4096), Ok(4096));
            }
            fsyncs += expected;
            // A request is counted after its reply. One too many stays one too many.
            wait_for(&format!("{fsyncs} with {flags:?}, writeback {writeback}"), || count(&mount, Op::Fsync) == fsyncs);
        }
    }
}
