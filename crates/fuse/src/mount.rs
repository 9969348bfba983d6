//! Mounting: checks the mount point, mounts a tree, and unmounts it.
//!
//! # What it is
//! [`mount`] checks the mount point first, so that an error names its defect. Then the kernel
//! mounts: directly for root, by `fusermount3` for others. Threads of this process serve the
//! requests. [`Mounted`] unmounts.
//!
//! # Where it comes from
//! `fuse(4)`, `mount.fuse(8)`, `umount2(2)`.

mod direct;
mod fusermount;
mod opened_place;

pub use direct::remount;

use crate::checkers::{Refusal, mount_refusal};
use crate::message::{shell_word, show, without_number};
use crate::mountinfo::{self, MountInfo};
use crate::options::MountOptions;
use crate::session::{Part, Session};
use crate::transport::{KernelSender, Server, ServerError, Transport};
use crate::transport_kind::{NoRing, TransportKind};
use fusedev::Device;
use fusermount::HelperError;
use opened_place::{open_mountpoint, path_of, visible_of};
use rustix::fs::{AtFlags, CWD, FlockOperation, StatxFlags, flock, statx};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use vfs::{Foreign, Vfs};

/// How often, and after which pauses, a process tries to lock a mount point: 10 seconds.
const LOCK_TRIES: u32 = 1000;
const LOCK_EVERY: Duration = Duration::from_millis(10);

/// How often a mount whose connection is ending is looked at: more often than a connection has slots.
const MAX_LOOKS: u32 = 10_000;

/// Why mounting failed: the text has the form `what: why (what to do)`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// `/dev/fuse` does not exist.
    #[error(
        "/dev/fuse: no such device (load the kernel module with `modprobe fuse`, or give the container the device)"
    )]
    NoDevice,
    /// `/dev/fuse` cannot be opened.
    #[error("/dev/fuse: {} (run as root, or let your user read and write the device)", without_number(.0))]
    DeviceRefused(io::Error),
    /// Only root may mount directly, and the helper is not installed.
    #[error("fusermount3: not found (install the package fuse3, or run as root)")]
    NoHelper,
    /// The helper refused.
    #[error("{}: fusermount3 refused to mount: {}", show(.mountpoint), Foreign::of(.message))]
    Refused {
        /// The mount point.
        mountpoint: PathBuf,
        /// The helper's message.
        message: String,
    },
    /// The mount point does not exist or cannot be accessed.
    #[error("{}: {} ({})", show(.mountpoint), without_number(.source), advice(.source))]
    NoMountpoint {
        /// The mount point.
        mountpoint: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The mount point is not a directory.
    #[error("{}: not a directory", show(.0))]
    NotADirectory(PathBuf),
    /// The mount point has entries, which the mount would hide.
    #[error("{}: not empty (empty the directory, or hide its entries with `-o nonempty`)", show(.0))]
    NotEmpty(PathBuf),
    /// Lightfoot is mounted there already.
    #[error("{}: already a mount of Lightfoot (run `lightfoot unmount`, or cover it with `-o nonempty`)", show(.0))]
    Mounted(PathBuf),
    /// The server of an earlier mount has exited, and that mount could not be unmounted.
    #[error("{}: a mount whose server has exited; unmounting it failed: {} (run `umount -l {}`)", show(.mountpoint), without_number(.source), shell_word(.mountpoint))]
    Stale {
        /// The mount point.
        mountpoint: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The root directory of the tree cannot be opened.
    #[error("the root directory of the tree: {0}")]
    NoRoot(vfs::Errno),
    /// The options leave a permission unchecked.
    #[error("{0}")]
    Unchecked(Refusal),
    /// The process may not mount.
    #[error("{}: not permitted to mount (a container needs CAP_SYS_ADMIN and a security profile that allows mounts)", show(.0))]
    NotPermitted(PathBuf),
    /// Io_uring was [required](crate::Uring::Required).
    #[error("{}: no io_uring: {reason} (mount without `-o uring`)", show(.mountpoint))]
    NoRing {
        /// The mount point.
        mountpoint: PathBuf,
        /// Why not.
        reason: NoRing,
    },
    /// The kernel refused.
    #[error("{}: the kernel refused to mount: {}", show(.mountpoint), without_number(.source))]
    Kernel {
        /// The mount point.
        mountpoint: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A mounted tree. A drop unmounts it.
#[derive(Debug)]
pub struct Mounted {
    session: Arc<Session>,
    mountpoint: PathBuf,
    device: u64,
    transport_kind: TransportKind,
    /// The helper has mounted, and must also unmount.
    is_by_helper: bool,
    /// With [`MountOptions::auto_unmount`]: the helper ends after the unmount.
    _waiting: Option<fusermount::Waiting>,
    end: io::PipeReader,
    server: Option<JoinHandle<io::Result<()>>>,
}

/// Mounts `vfs` on the directory `mountpoint`. Threads of this process serve its requests.
///
/// First unmounts a mount that an exited server has left on `mountpoint`.
///
/// # Errors
/// See [`MountError`].
pub fn mount(vfs: &Vfs, mountpoint: &Path, options: &MountOptions) -> Result<Mounted, MountError> {
    mount_part(vfs, Part::whole(vfs).map_err(MountError::NoRoot)?, mountpoint, options)
}

/// As [`mount()`], for a part of the tree.
///
/// # Errors
/// See [`MountError`].
pub fn mount_part(vfs: &Vfs, part: Part, mountpoint: &Path, options: &MountOptions) -> Result<Mounted, MountError> {
    let at = || mountpoint.to_path_buf();
    check_options(options, vfs.checks_callers())?;
    clean_up_stale(mountpoint)?;
    // All checks and the mount concern the directory that is opened here: another user may exchange
    // names above it meanwhile.
    let unusable = |source| MountError::NoMountpoint { mountpoint: at(), source };
    let opened = open_mountpoint(mountpoint)?;
    let _lock = lock_mountpoint(&path_of(&opened));
    // Another process may have mounted on it while this one waited for the lock.
    let opened = visible_of(opened).map_err(|errno| unusable(errno.into()))?;
    let pinned = path_of(&opened);
    let full = pinned.read_link().map_err(unusable)?;
    if !options.nonempty {
        check_is_free(mountpoint, &full, &pinned)?;
    }
    check_device()?;
    let session = Session::of_part(vfs, part, options.session.clone()).map_err(MountError::NoRoot)?;
    let transport = Transport::new(session.clone(), options);
    let kernel = |source| MountError::Kernel { mountpoint: at(), source };
    let (end, open_while_served) = io::pipe().map_err(kernel)?;
    let (device, is_by_helper, waiting) =
        connect(&full, &pinned, options).map_err(|error| refused(mountpoint, error))?;
    drop(opened);
    let device = Arc::new(device);
    // From here on there is a mount. If an error follows, it must be unmounted, as it has no
    // server.
    let not_served = |error| {
        let _ = unmount_now(&full, is_by_helper);
        match error {
            ServerError::NoRing(reason) => MountError::NoRing { mountpoint: at(), reason },
            ServerError::Io(source) => kernel(source),
        }
    };
    let mut server = Server::negotiate(transport, device.clone(), options).map_err(not_served)?;
    session.notify_by(KernelSender { device, session: Arc::downgrade(&session) });
    server.begin(options).map_err(not_served)?;
    session.allow_waiting(server.waiting());
    let transport_kind = server.transport_kind();
    let device = mountinfo::top(&full).ok().flatten().map_or(0, |mount| mount.device);
    let at_end = full.clone();
    let serve = move || {
        let _open = open_while_served;
        match server.run(|| direct::abort(&at_end, device)) {
            Err(error) if !is_aborted(&error) => Err(error),
            // The device reports the same if the mount has ended and if somebody has aborted the
            // connection.
            _ if is_left_behind(&at_end, device) => Err(aborted()),
            _ => Ok(()),
        }
    };
    let server = std::thread::Builder::new().name("lightfoot-fuse".into()).spawn(serve);
    let server = server.map_err(|error| not_served(error.into()))?;
    tracing::info!(mountpoint = %Foreign::of(&full), "mounted");
    Ok(Mounted {
        session,
        mountpoint: full,
        device,
        transport_kind,
        is_by_helper,
        _waiting: waiting,
        end,
        server: Some(server),
    })
}

/// Checks that under these options somebody checks every permission: [`crate::refusal`]. [`mount`] does the same. `is_host`: the tree
/// has a host directory ([`Vfs::checks_callers`]).
///
/// # Errors
/// [`MountError::Unchecked`].
pub fn check_options(options: &MountOptions, is_host: bool) -> Result<(), MountError> {
    mount_refusal(options, is_host).map_or(Ok(()), |refusal| Err(MountError::Unchecked(refusal)))
}

/// Mounts, directly through `pinned`, a path that leads to the directory `full` whatever its names
/// are, or by the helper. Returns whether the helper has mounted, and the helper's
/// process if it waits.
fn connect(
    full: &Path,
    pinned: &Path,
    options: &MountOptions,
) -> Result<(Device, bool, Option<fusermount::Waiting>), HelperError> {
    let directly = if options.auto_unmount { None } else { direct::mount_directly(pinned, options)? };
    match directly {
        Some(device) => Ok((device, false, None)),
        None => {
            let (device, waiting) = fusermount::mount_by_helper(full, options)?;
            Ok((device.into(), true, waiting))
        }
    }
}

/// Detaches a mount that cannot be served.
fn unmount_now(mountpoint: &Path, is_by_helper: bool) -> io::Result<()> {
    match unmount_top(mountpoint, UnmountFlags::DETACH) {
        Err(Errno::PERM) if is_by_helper => fusermount::unmount_by_helper(mountpoint),
        done => Ok(done?),
    }
}

impl Mounted {
    /// Returns the session that serves the mount.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Returns the mount point, absolute and without symbolic links.
    #[must_use]
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// Returns the device number of the mount, as in `makedev(3)`; 0 if `/proc/self/mountinfo` does
    /// not list the mount.
    #[must_use]
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Returns the transport of its requests.
    #[must_use]
    pub fn transport_kind(&self) -> &TransportKind {
        &self.transport_kind
    }

    /// Returns a descriptor for `poll(2)` that becomes readable when the mount has ended, for any
    /// reason, and the server too.
    #[must_use]
    pub fn end(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// Unmounts. If files are open, detaches the mount (`MNT_DETACH`): open files work until they are closed, and then the
    /// server ends. To end it earlier, exit the process; the kernel then fails all requests.
    ///
    /// # Errors
    /// As for `umount2(2)`; an error without errno if another mount covers this one.
    pub fn unmount(&self) -> io::Result<()> {
        if self.is_over() && !is_left_behind(&self.mountpoint, self.device) {
            return Ok(());
        }
        // Another process may have mounted on top of this mount, or on the mount point after this
        // mount ended.
        let is_ours = |mount: &MountInfo| mount.device == self.device;
        if self.device != 0
            && let Ok(mounts) = mountinfo::stack(&self.mountpoint)
            && !mounts.last().is_some_and(is_ours)
        {
            let is_covered = mounts.iter().any(is_ours);
            return if is_covered { Err(io::Error::other("another mount covers it")) } else { Ok(()) };
        }
        match unmount_top(&self.mountpoint, UnmountFlags::empty()) {
            Err(Errno::BUSY) => {
                tracing::info!(mountpoint = %Foreign::of(&self.mountpoint), "busy: detached; it ends when the last file is closed");
                unmount_top(&self.mountpoint, UnmountFlags::DETACH)?;
            }
            Err(Errno::PERM) if self.is_by_helper => fusermount::unmount_by_helper(&self.mountpoint)?,
            // Another process has unmounted it.
            Err(Errno::INVAL | Errno::NOENT) | Ok(()) => {}
            Err(other) => return Err(other.into()),
        }
        Ok(())
    }

    /// Returns whether the mount has ended, for any reason, and the server too.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.server.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the mount has ended, for any reason.
    ///
    /// # Errors
    /// The error that ended the server; one of the kind `ConnectionAborted` if the connection was aborted while it was mounted: by
    /// an administrator, or by the kernel after [`request_timeout`](MountOptions::request_timeout).
    pub fn wait(mut self) -> io::Result<()> {
        let server = self.server.take().map(JoinHandle::join);
        match server {
            Some(Ok(ended)) => ended,
            Some(Err(_)) => Err(io::Error::other("a thread of the server panicked")),
            None => Ok(()),
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = self.unmount() {
            tracing::warn!(%error, mountpoint = %Foreign::of(&self.mountpoint), "unmounting failed");
        }
    }
}

/// Unmounts the visible mount on `mountpoint`, an absolute path without symbolic links.
fn unmount_top(mountpoint: &Path, flags: UnmountFlags) -> Result<(), Errno> {
    match mountinfo::top(mountpoint) {
        Ok(Some(mount)) => direct::unmount_pinned(&mount, flags),
        Ok(None) => Err(Errno::INVAL),
        // Without `/proc`.
        Err(_) => unmount(mountpoint, flags | UnmountFlags::NOFOLLOW),
    }
}

/// Locks the directory against other processes that mount on it, until the result is dropped: of
/// two processes that begin at the same time, the second finds the mount of the first. A program
/// that holds the lock for other reasons delays a mount by at most [`LOCK_TRIES`] pauses.
fn lock_mountpoint(full: &Path) -> Option<File> {
    let dir = File::open(full).ok()?;
    for _ in 0..LOCK_TRIES {
        match flock(&dir, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(dir),
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(LOCK_EVERY),
            Err(_) => break,
        }
    }
    tracing::debug!(mountpoint = %Foreign::of(full), "not locked: two processes may mount here at the same time");
    None
}

/// Returns whether the mount on `mountpoint` has no connection to a server. Every operation on it
/// that reaches the server fails with `ENOTCONN`; the kernel may still answer `lstat(2)` from its
/// cache, so the attributes are requested from the server. With io_uring the kernel takes some time
/// to end the connection of a server that has exited. Before the connection ends, requests fail
/// with `ECANCELED`, at most one for each slot. Further requests wait for the end of the connection
/// and fail with `ECONNABORTED`.
fn is_dead(mountpoint: &Path) -> bool {
    let how = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_FORCE_SYNC;
    let mut looks = (0..MAX_LOOKS).map(|_| statx(CWD, mountpoint, how, StatxFlags::TYPE).err());
    let is_ending = |error: &Option<Errno>| matches!(error, Some(Errno::CONNABORTED | Errno::CANCELED));
    looks.find(|error| !is_ending(error)).flatten() == Some(Errno::NOTCONN)
}

/// Unmounts a mount on `mountpoint` whose server has exited.
fn clean_up_stale(mountpoint: &Path) -> Result<(), MountError> {
    if !is_dead(mountpoint) {
        return Ok(());
    }
    tracing::warn!(mountpoint = %Foreign::of(mountpoint), "unmounting an earlier mount, whose server has exited");
    let full = resolved_parent(mountpoint);
    let done = full.as_ref().map_or(Err(Errno::NOENT), |full| unmount_top(full, UnmountFlags::DETACH));
    if done.is_err() {
        let _ = Command::new("fusermount3").arg("-uz").arg("--").arg(mountpoint).output();
    }
    match done {
        _ if !is_dead(mountpoint) => Ok(()),
        Err(errno) => Err(MountError::Stale { mountpoint: mountpoint.into(), source: errno.into() }),
        Ok(()) => Err(MountError::Stale { mountpoint: mountpoint.into(), source: Errno::BUSY.into() }),
    }
}

/// Returns the absolute path, with the links above the last part resolved: a mount whose server has
/// exited cannot be resolved itself.
fn resolved_parent(mountpoint: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(mountpoint).ok()?;
    Some(absolute.parent()?.canonicalize().ok()?.join(absolute.file_name()?))
}

/// Checks that the mount hides nothing. `pinned` leads to the directory `full`.
fn check_is_free(mountpoint: &Path, full: &Path, pinned: &Path) -> Result<(), MountError> {
    let at = || mountpoint.to_path_buf();
    if mountinfo::top(full).is_ok_and(|mount| mount.is_some_and(|mount| mount.is_lightfoot())) {
        return Err(MountError::Mounted(at()));
    }
    let unusable = |source| MountError::NoMountpoint { mountpoint: at(), source };
    for entry in pinned.read_dir().map_err(unusable)? {
        if entry.map_err(unusable)?.file_name() != "lost+found" {
            return Err(MountError::NotEmpty(at()));
        }
    }
    Ok(())
}

/// Checks that this process can open the device.
fn check_device() -> Result<(), MountError> {
    let opened = File::options().read(true).write(true).open("/dev/fuse");
    match opened {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(MountError::NoDevice),
        Err(error) => Err(MountError::DeviceRefused(error)),
    }
}

/// Returns whether the mount is still there, though its connection has ended.
fn is_left_behind(mountpoint: &Path, device: u64) -> bool {
    let top = mountinfo::top(mountpoint).ok().flatten();
    // Another mount may have got the device number.
    device != 0 && top.is_some_and(|mount| mount.device == device) && is_dead(mountpoint)
}

fn aborted() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "it was aborted, by somebody or after a timeout of requests")
}

/// Returns whether the kernel has ended the connection while it handed over a request:
/// `ECONNABORTED`, also when a detached mount ends with the last process that used it. (`ENODEV`,
/// the other error at the end of a connection, ends the server without an error.)
fn is_aborted(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::CONNABORTED.raw_os_error())
}

/// Returns a remedy for the user whose mount point cannot be used.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "create it with `mkdir -p`",
        io::ErrorKind::PermissionDenied => "use a directory of your own",
        _ => "use another directory",
    }
}

/// Returns the error of a mount that the kernel or the helper refused.
fn refused(mountpoint: &Path, error: HelperError) -> MountError {
    let mountpoint = mountpoint.to_path_buf();
    let is_root = rustix::process::geteuid().is_root();
    match error {
        HelperError::Missing if is_root => MountError::NotPermitted(mountpoint),
        HelperError::Missing => MountError::NoHelper,
        HelperError::Refused(message) if is_root && message.contains("Operation not permitted") => {
            MountError::NotPermitted(mountpoint)
        }
        HelperError::Refused(message) => MountError::Refused { mountpoint, message },
        HelperError::System(source) if source.kind() == io::ErrorKind::PermissionDenied => {
            MountError::NotPermitted(mountpoint)
        }
        HelperError::System(source) => MountError::Kernel { mountpoint, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The other threads of a mount stop when one thread ends with an error.
    #[test]
    fn a_mount_over_io_uring_ends_when_its_threads_are_stopped() {
        let offer = std::fs::read_to_string("/sys/module/fuse/parameters/enable_uring").unwrap_or_default();
        if offer.trim() != "Y" || !rustix::process::geteuid().is_root() {
            return println!("SKIPPED: no io_uring for mounts, or no root (tools/check/with-uring)");
        }
        let at = std::env::temp_dir().join(format!("lightfoot-stopped-{}", std::process::id()));
        std::fs::create_dir(&at).unwrap();
        let options = MountOptions { uring: crate::Uring::Required, ..MountOptions::default() };
        let vfs = Vfs::new(ramfs::RamFs::new());
        let session = Session::new(&vfs, options.session.clone()).unwrap();
        let (device, _, _) = connect(&at, &at, &options).unwrap();
        let device = Arc::new(device);
        let transport = Transport::new(session.clone(), &options);
        let mut server = Server::negotiate(transport, device.clone(), &options).unwrap();
        session.notify_by(KernelSender { device, session: Arc::downgrade(&session) });
        server.begin(&options).unwrap();
        let stop = server.stop();
        let serves = std::thread::spawn(move || server.run(|| {}));
        std::fs::write(at.join("f"), b"x").unwrap();
        stop.stop();
        serves.join().unwrap().unwrap();
        assert!(is_dead(&at));
        unmount(&at, UnmountFlags::DETACH).unwrap();
        std::fs::remove_dir(&at).unwrap();
    }

    #[test]
    fn no_error_shows_control_characters_of_a_name() {
        let at = || PathBuf::from("/m\u{1b}[2J\n");
        let source = || io::Error::from_raw_os_error(2);
        let errors = [
            MountError::Refused { mountpoint: at(), message: "fusermount3: \u{1b}[2J: no\nsuch".into() },
            MountError::NoMountpoint { mountpoint: at(), source: source() },
            MountError::NotADirectory(at()),
            MountError::NotEmpty(at()),
            MountError::Mounted(at()),
            MountError::Stale { mountpoint: at(), source: source() },
            MountError::NotPermitted(at()),
            MountError::Kernel { mountpoint: at(), source: source() },
            MountError::Kernel { mountpoint: at(), source: io::Error::other("\u{1b}[2J") },
        ];
        for error in errors {
            let text = error.to_string();
            assert!(!text.contains(char::is_control), "{text:?}");
        }
    }
}
