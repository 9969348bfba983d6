//! `lightfoot unmount`: ends a mount of Lightfoot, and waits until what was written is where it belongs.
//!
//! As root by `umount2(2)`, else by `fusermount3`. What is not Lightfoot's is left alone.

use crate::control;
use crate::error::{Error, Reason};
use crate::mount::{Entry, Failure};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::{PidfdFlags, geteuid, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Command;

/// How long the process behind a mount may take to end, in seconds.
const PATIENCE_S: i64 = 10;

/// What `lightfoot unmount` is asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Unmount {
    /// Where it is mounted
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Take it away at once, though files are open: who has them open may end first, and then the mount does
    #[arg(short, long)]
    lazy: bool,
}

/// Unmounts, and waits for the end of the process that answered.
pub(crate) fn run(unmount: &Unmount) -> Result<(), Error> {
    let mount = Entry::find(&unmount.mountpoint)?;
    let process = control::process_of(&mount).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    let flags = if unmount.lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() };
    match rustix::mount::unmount(&mount.at, flags | UnmountFlags::NOFOLLOW) {
        Ok(()) => {}
        Err(Errno::PERM) if mount.uid != geteuid().as_raw() => {
            return Err(Failure::NotYours { path: mount.at, uid: mount.uid }.into());
        }
        Err(Errno::PERM) => by_helper(&mount, unmount.lazy)?,
        Err(Errno::BUSY) => return Err(Failure::InUse(mount.at).into()),
        Err(errno) => {
            return Err(Failure::Unmount { path: mount.at, reason: io::Error::from(errno).into() }.into());
        }
    }
    if let Some(process) = process.filter(|_| !unmount.lazy)
        && !has_ended(&process)
    {
        eprintln!("lightfoot: {:?} is unmounted; its process has more to do, and ends by itself", mount.at);
    }
    Ok(())
}

fn by_helper(mount: &Entry, is_lazy: bool) -> Result<(), Failure> {
    let refused = |reason: Reason| Failure::Unmount { path: mount.at.clone(), reason };
    let mut helper = Command::new("fusermount3");
    helper.arg("-u").args(is_lazy.then_some("-z")).arg("--").arg(&mount.at);
    let ended = helper.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => refused("the helper fusermount3 is not there: install the package fuse3".into()),
        _ => refused(error.into()),
    })?;
    let said = String::from_utf8_lossy(&ended.stderr);
    match said.trim() {
        _ if ended.status.success() => Ok(()),
        said if said.contains("busy") => Err(Failure::InUse(mount.at.clone())),
        said => Err(refused(said.trim_start_matches("fusermount3: ").into())),
    }
}

/// Whether the process has ended, once it had time to.
fn has_ended(process: &OwnedFd) -> bool {
    let patience = Timespec { tv_sec: PATIENCE_S, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&patience)).is_ok_and(|ended| ended > 0)
}
