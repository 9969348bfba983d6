//! Timeouts of requests: the kernel ends a mount whose server does not reply.

use crate::{Mount, long};
use lightfoot_fuse::MountOptions;
use ramfs::RamFs;
use testkit::Gate;
use vfs::{Errno, Inode, Layer, Request, StatFs, Vfs};

/// Replies to no request for free room before the gate is open.
struct Hanging(RamFs, Gate);

impl Layer for Hanging {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.0
    }

    fn statfs(&self, _: &Request, _: &Inode) -> Result<StatFs, Errno> {
        self.1.pass();
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
    let gate = Gate::default();
    gate.close();
    let options = MountOptions { request_timeout: Some(1), ..long() };
    let Some(mut mount) = Mount::new(&Vfs::new(Hanging(RamFs::new(), gate.clone())), &options) else { return };
    std::fs::write(mount.path("file"), "x").unwrap();
    let hung = rustix::fs::statfs(&mount.at).unwrap_err().raw_os_error();
    gate.open();
    // Of the connection that was aborted; and not the file system's EIO.
    assert!([103, 107].contains(&hung), "{hung}");
    crate::wait_for("the end of the server", || mount.mounted().is_over());
    assert_eq!(mount.take().wait().unwrap_err().kind(), std::io::ErrorKind::ConnectionAborted);
}
