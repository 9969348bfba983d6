//! Mounting: from a tree and a directory to a mount that answers, and to its end.
//!
//! # What it is
//! [`mount`] looks at the mount point first, so that what is wrong is said in terms of it; has the kernel mount (directly as root, by
//! `fusermount3` otherwise); and runs the transport on threads of its own. [`Mounted`] ends it.
//!
//! # Where it comes from
//! `fuse(4)`, `mount.fuse(8)`, `umount2(2)`.

mod direct;

use crate::options::MountOptions;
use crate::session::Session;
use crate::transport::{KernelSender, Transport, mount_config};
use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;
use vfs::Vfs;

/// Why a tree could not be mounted, in a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// There is no `/dev/fuse`.
    #[error(
        "/dev/fuse is not there: load the kernel's module with `modprobe fuse`, or let the container have the device"
    )]
    NoDevice,
    /// `/dev/fuse` cannot be opened.
    #[error("/dev/fuse cannot be opened ({}): run as root, or let your user read and write the device", plain(.0))]
    DeviceRefused(io::Error),
    /// Only root may mount directly, and there is no helper.
    #[error("mounting needs root or the helper fusermount3, which is not there: install the package fuse3")]
    NoHelper,
    /// The helper refused.
    #[error("fusermount3 refused to mount on {}: {message}", .mountpoint.display())]
    Refused {
        /// Where.
        mountpoint: PathBuf,
        /// What it said.
        message: String,
    },
    /// The mount point is not there, or cannot be looked at.
    #[error("the mount point {} cannot be used ({}): {}", .mountpoint.display(), plain(.source), way_out(.source))]
    NoMountpoint {
        /// Where.
        mountpoint: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The mount point is no directory.
    #[error("the mount point {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The mount point holds something that would be hidden.
    #[error("the mount point {} is not empty; what it holds would be hidden: empty it, or say `-o nonempty`", .0.display())]
    NotEmpty(PathBuf),
    /// A tree of Lightfoot is mounted there already.
    #[error("{} is a mount of Lightfoot already; unmount it with `lightfoot unmount`, or say `-o nonempty` to cover it", .0.display())]
    Mounted(PathBuf),
    /// A server that died left its mount behind, and it could not be cleaned up.
    #[error("{} is a mount whose server has gone, and it cannot be unmounted ({}): `umount -l {}`", .mountpoint.display(), plain(.source), .mountpoint.display())]
    Stale {
        /// Where.
        mountpoint: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The tree cannot be looked at.
    #[error("the tree has no root that can be shown: {0}")]
    NoRoot(vfs::Errno),
    /// Root may not mount here.
    #[error("mounting on {} is not permitted, for root neither: a container must be given CAP_SYS_ADMIN, and a profile that allows mounts", .0.display())]
    NotPermitted(PathBuf),
    /// The kernel refused.
    #[error("the kernel refused to mount on {}: {}", .mountpoint.display(), plain(.source))]
    Kernel {
        /// Where.
        mountpoint: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// A tree that is mounted. It is unmounted when this is dropped.
#[derive(Debug)]
pub struct Mounted {
    session: Arc<Session>,
    mountpoint: PathBuf,
    device: u64,
    /// Where a helper mounted, it has to unmount.
    unmounter: Mutex<fuser::SessionUnmounter>,
    end: io::PipeReader,
    server: Option<JoinHandle<io::Result<()>>>,
}

/// Mounts `vfs` on the directory `mountpoint`, which is answered for from then on by threads of this process.
///
/// A mount that a dead server left there is unmounted first.
///
/// # Errors
/// [`MountError`] says which, and what to do.
pub fn mount(vfs: &Vfs, mountpoint: &Path, options: &MountOptions) -> Result<Mounted, MountError> {
    let at = || mountpoint.to_path_buf();
    clean_up_stale(mountpoint)?;
    let is_dir =
        mountpoint.metadata().map_err(|source| MountError::NoMountpoint { mountpoint: at(), source })?.is_dir();
    if !is_dir {
        return Err(MountError::NotADirectory(at()));
    }
    let full = mountpoint.canonicalize().map_err(|source| MountError::NoMountpoint { mountpoint: at(), source })?;
    if !options.nonempty {
        check_is_free(mountpoint, &full)?;
    }
    check_device()?;
    let session = Session::new(vfs, options.session.clone()).map_err(MountError::NoRoot)?;
    let transport = Transport::new(session.clone(), options.clone());
    let mut server = serve(transport, &full, options).map_err(|source| refused(mountpoint, source))?;
    let sender = KernelSender { notifier: server.notifier(), session: Arc::downgrade(&session) };
    session.notify_by(sender);
    let unmounter = Mutex::new(server.unmount_callable());
    let kernel = |source| MountError::Kernel { mountpoint: at(), source };
    let (end, open_while_served) = io::pipe().map_err(kernel)?;
    let serve = move || {
        let _open = open_while_served;
        server.run()
    };
    let server = std::thread::Builder::new().name("lightfoot-fuse".into()).spawn(serve).map_err(kernel)?;
    let device = device_of(&full).unwrap_or(0);
    tracing::info!(mountpoint = %full.display(), "mounted");
    Ok(Mounted { session, mountpoint: full, device, unmounter, end, server: Some(server) })
}

/// Mounts, directly or by the helper, and greets the kernel.
fn serve(transport: Transport, mountpoint: &Path, options: &MountOptions) -> io::Result<fuser::Session<Transport>> {
    let config = mount_config(options);
    let Some(device) = direct::mount_directly(mountpoint, options)? else {
        return fuser::Session::new(transport, mountpoint, &config);
    };
    let greeted = fuser::Session::from_fd(transport, device, config.acl, config.clone());
    if greeted.is_err() {
        let _ = unmount(mountpoint, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
    }
    greeted
}

impl Mounted {
    /// The session behind it.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// Where it is mounted.
    #[must_use]
    pub fn mountpoint(&self) -> &Path {
        &self.mountpoint
    }

    /// The number of its device, as `/proc/self/mountinfo` has it: major and minor as `makedev(3)`; 0 if it could not be found.
    #[must_use]
    pub fn device(&self) -> u64 {
        self.device
    }

    /// What becomes readable, for `poll(2)`, when the server ends: the mount is gone, by whatever means.
    #[must_use]
    pub fn end(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }

    /// Unmounts; with files open, as soon as the last is closed for who uses them, at once for everybody else (`MNT_DETACH`).
    /// Who cannot wait for that ends the process: the kernel then fails what is still asked.
    ///
    /// # Errors
    /// Those of `umount2(2)`; that another mount covers it.
    pub fn unmount(&self) -> io::Result<()> {
        if self.is_over() {
            return Ok(());
        }
        // What others mounted on the place after us, or after we went, is not ours to unmount.
        let on_it = entries_of(&self.mountpoint);
        let is_ours = |entry: &Entry| entry.device == self.device;
        if self.device != 0 && !on_it.last().is_some_and(is_ours) {
            let is_covered = on_it.iter().any(is_ours);
            return if is_covered { Err(io::Error::other("another mount covers it")) } else { Ok(()) };
        }
        let plain = self.unmount_directly(UnmountFlags::empty());
        match plain {
            Err(Errno::BUSY) => {
                tracing::info!(mountpoint = %self.mountpoint.display(), "busy: detached, and closed for who still uses it");
                self.unmount_directly(UnmountFlags::DETACH)?;
            }
            Err(Errno::PERM) => self.unmounter.lock().unmount()?,
            // Somebody else was faster.
            Err(Errno::INVAL | Errno::NOENT) | Ok(()) => {}
            Err(other) => return Err(other.into()),
        }
        Ok(())
    }

    fn unmount_directly(&self, flags: UnmountFlags) -> Result<(), Errno> {
        unmount(&self.mountpoint, flags | UnmountFlags::NOFOLLOW)
    }

    /// Whether the server has ended: the mount is gone, by whatever means.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.server.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until the mount is gone, by whatever means.
    ///
    /// # Errors
    /// What ended the server, if it was an error.
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
            tracing::warn!(%error, mountpoint = %self.mountpoint.display(), "not unmounted");
        }
    }
}

/// Unmounts what a server that died left on `mountpoint`: nothing can be done there but that.
fn clean_up_stale(mountpoint: &Path) -> Result<(), MountError> {
    // `ENOTCONN`, "Transport endpoint is not connected".
    let is_stale = |path: &Path| {
        let looked = path.symlink_metadata();
        looked.is_err_and(|error| error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()))
    };
    if !is_stale(mountpoint) {
        return Ok(());
    }
    tracing::warn!(mountpoint = %mountpoint.display(), "the server of a former mount has gone: unmounting what it left");
    let done = unmount(mountpoint, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW);
    if done.is_err() {
        let _ = Command::new("fusermount3").arg("-uz").arg("--").arg(mountpoint).output();
    }
    match done {
        _ if !is_stale(mountpoint) => Ok(()),
        Err(errno) => Err(MountError::Stale { mountpoint: mountpoint.into(), source: errno.into() }),
        Ok(()) => Err(MountError::Stale { mountpoint: mountpoint.into(), source: Errno::BUSY.into() }),
    }
}

/// Whether nothing is there that would be hidden.
fn check_is_free(mountpoint: &Path, full: &Path) -> Result<(), MountError> {
    let at = || mountpoint.to_path_buf();
    if entry_of(full).is_some_and(|entry| entry.is_ours) {
        return Err(MountError::Mounted(at()));
    }
    let unusable = |source| MountError::NoMountpoint { mountpoint: at(), source };
    for entry in full.read_dir().map_err(unusable)? {
        if entry.map_err(unusable)?.file_name() != "lost+found" {
            return Err(MountError::NotEmpty(at()));
        }
    }
    Ok(())
}

/// Whether the device is there and may be opened; what `fusermount3` opens for us need not be ours to open.
fn check_device() -> Result<(), MountError> {
    let opened = std::fs::File::options().read(true).write(true).open("/dev/fuse");
    match opened {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(MountError::NoDevice),
        Err(error) => Err(MountError::DeviceRefused(error)),
    }
}

/// What went wrong, without the number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// What to do about a mount point that cannot be used.
fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "make it with `mkdir -p`",
        io::ErrorKind::PermissionDenied => "choose one that is yours",
        _ => "choose another",
    }
}

fn refused(mountpoint: &Path, source: io::Error) -> MountError {
    let mountpoint = mountpoint.to_path_buf();
    let has_errno = source.raw_os_error().is_some();
    if !rustix::process::geteuid().is_root() {
        if source.kind() == io::ErrorKind::NotFound {
            return MountError::NoHelper;
        }
        if !has_errno {
            return MountError::Refused { mountpoint, message: source.to_string().trim().to_owned() };
        }
    }
    // Where `fuser` says more than the reason, the reason comes last.
    let text = source.to_string();
    if source.kind() == io::ErrorKind::PermissionDenied || text.contains("Operation not permitted") {
        return MountError::NotPermitted(mountpoint);
    }
    let source = match text.trim().rsplit_once("}: ") {
        Some((_, reason)) if !has_errno => io::Error::other(reason.to_owned()),
        _ if !has_errno => io::Error::other(text.trim().to_owned()),
        _ => source,
    };
    MountError::Kernel { mountpoint, source }
}

/// The device number of the mount on `mountpoint`, without asking the file system: from `/proc/self/mountinfo`.
#[must_use]
pub fn device_of(mountpoint: &Path) -> Option<u64> {
    entry_of(mountpoint).map(|entry| entry.device)
}

/// A line of `/proc/self/mountinfo`.
struct Entry {
    device: u64,
    is_ours: bool,
}

/// What is mounted on `mountpoint` and is seen, without asking the file system.
fn entry_of(mountpoint: &Path) -> Option<Entry> {
    entries_of(mountpoint).pop()
}

/// All that is mounted on `mountpoint`, of which the last is seen.
fn entries_of(mountpoint: &Path) -> Vec<Entry> {
    let list = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let wanted = mountpoint.as_os_str().as_encoded_bytes();
    let of_line = |line: &[u8]| {
        let mut fields = line.split(|&byte| byte == b' ');
        let device = std::str::from_utf8(fields.nth(2)?).ok()?.to_owned();
        let at = unescape(fields.nth(1)?);
        let (major, minor) = device.split_once(':')?;
        let device = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        // After optional fields and a hyphen.
        let kind = fields.skip_while(|&field| field != b"-").nth(1)?;
        (at == wanted).then_some(Entry { device, is_ours: kind == b"fuse.lightfoot" })
    };
    list.split(|&byte| byte == b'\n').filter_map(of_line).collect()
}

/// Undoes the octal escapes of `proc_pid_mountinfo(5)`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| byte == b'\\');
        let octal = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_mountinfo_are_undone() {
        assert_eq!(unescape(b"/a\\040b\\134c\\n"), b"/a b\\c\\n");
    }

    #[test]
    fn the_root_has_a_device() {
        assert!(device_of(Path::new("/")).is_some());
        assert!(device_of(Path::new("/no/such/mount")).is_none());
    }
}
