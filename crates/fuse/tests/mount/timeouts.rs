//! Timeouts of requests: the kernel ends a mount whose server does not reply.

use crate::{Mount, long};
use lightfoot_fuse::MountOptions;
use ramfs::RamFs;
use std::sync::{Arc, Condvar, Mutex};
use vfs::{Errno, Inode, Layer, Request, StatFs, Vfs};

/// Where calls wait until the mutex has `true`.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

/// Replies to no request for free room before the gate is open.
struct Hanging(RamFs, Arc<Gate>);

impl Layer for Hanging {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.0
    }

    fn statfs(&self, _: &Request, _: &Inode) -> Result<StatFs, Errno> {
        let closed = self.1.0.lock().unwrap();
        drop(self.1.1.wait_while(closed, |is_open| !*is_open).unwrap());
        Err(Errno::EIO)
    }
}

/// Whether this kernel has them: Linux 6.15.
fn has_timeouts() -> bool {
    let uname = rustix::system::uname();
    let mut numbers = uname.release().to_str().unwrap().split(['.', '-']).map(|part| part.parse().unwrap_or(0u32));
    (numbers.next(), numbers.next()) >= (Some(6), Some(15))
}

#[test]
fn a_mount_whose_server_does_not_reply_ends() {
    if !has_timeouts() {
        return println!("SKIPPED: the kernel has no timeouts of requests: before Linux 6.15");
    }
    let gate = Arc::new(Gate::default());
    let options = MountOptions { request_timeout: Some(1), ..long() };
    let Some(mut mount) = Mount::new(&Vfs::new(Hanging(RamFs::new(), gate.clone())), &options) else { return };
    std::fs::write(mount.path("file"), "x").unwrap();
    let hung = rustix::fs::statfs(&mount.at).unwrap_err().raw_os_error();
    *gate.0.lock().unwrap() = true;
    gate.1.notify_all();
    // Of the connection that was aborted; and not the file system's EIO.
    assert!([103, 107].contains(&hung), "{hung}");
    crate::wait_for("the end of the server", || mount.mounted().is_over());
    assert_eq!(mount.take().wait().unwrap_err().kind(), std::io::ErrorKind::ConnectionAborted);
}
