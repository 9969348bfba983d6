//! The directory of a user's control sockets, which one process at a time may change.
//!
//! # What it is
//! A process that mounts removes the sockets that killed processes left in the directory. A socket
//! that is bound but does not listen yet refuses connections as the socket of a killed process
//! does. And another process can replace such a dead socket between the check and the removal. So
//! sockets are bound and removed only through a [`LockedDir`].
//!
//! # How it is locked
//! `flock(2)` on the directory, which only its owner can open. No operation under this lock blocks.
//!
//! # Where it comes from
//! `unix(7)`, `flock(2)`.

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// See the [module documentation](self). Unlocked when it is dropped.
pub(super) struct LockedDir {
    path: PathBuf,
    _lock: OwnedFd,
}

impl LockedDir {
    /// Creates the directory for this user alone, or checks that an existing one is, and locks it.
    ///
    /// # Errors
    /// If others can use it, or it cannot be created or locked.
    pub(super) fn lock(path: &Path) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(path)?;
        let is_private = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
        if !is_private {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let lock = open(path, flags, Mode::empty())?;
        while let Err(error) = flock(&lock, FlockOperation::LockExclusive) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        Ok(Self { path: path.into(), _lock: lock })
    }

    /// Binds a socket in the place of any file by this name, and listens.
    ///
    /// # Errors
    /// As for `bind(2)`.
    pub(super) fn bind(&self, name: &str) -> io::Result<(UnixListener, SocketFile)> {
        let path = self.path.join(name);
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let file = fs::symlink_metadata(&path)?;
        Ok((listener, SocketFile { dir: self.path.clone(), path, file: (file.dev(), file.ino()) }))
    }

    /// Removes each socket to which no process listens, unless `is_used` returns true for the name of its file.
    pub(super) fn remove_dead(&self, is_used: impl Fn(&OsStr) -> bool) {
        for file in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            if !is_used(&file.file_name()) {
                remove_dead_socket(&file.path());
            }
        }
    }
}

/// Removes the file of a socket to which no process listens.
pub(crate) fn remove_dead_socket(path: &Path) {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && is_dead(path) {
        let _ = fs::remove_file(path);
    }
}

/// Returns whether no process listens to a socket. Does not wait for one whose queue is full.
fn is_dead(path: &Path) -> bool {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let Ok(socket) = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None) else { return false };
    SocketAddrUnix::new(path).is_ok_and(|address| connect(&socket, &address) == Err(Errno::CONNREFUSED))
}

/// The file of a socket; removed when this is dropped.
pub(super) struct SocketFile {
    dir: PathBuf,
    path: PathBuf,
    /// Device and inode number of the file, because another mount may have taken the name since.
    file: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Ok(_lock) = LockedDir::lock(&self.dir) else { return };
        let is_own = fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.file);
        if is_own {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;

    fn temporary_dir(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("lightfoot-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_socket_that_is_being_made_is_not_taken_for_a_dead_one() {
        let path = temporary_dir("sockets");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    LockedDir::lock(&path).expect("a directory").remove_dead(|_| false);
                }
            });
            let round = |number: u32| -> io::Result<()> {
                let (_listener, file) = LockedDir::lock(&path)?.bind(&format!("mount-{number}.sock"))?;
                UnixStream::connect(&file.path).map(drop)
            };
            let failed = (0..3000).find_map(|number| Some((number, round(number).err()?)));
            is_over.store(true, Relaxed);
            assert!(failed.is_none(), "{failed:?}");
        });
        fs::remove_dir(&path).expect("all sockets were removed");
    }

    #[test]
    fn only_sockets_without_a_process_are_removed() {
        let path = temporary_dir("dead-sockets");
        let dir = LockedDir::lock(&path).expect("a directory");
        let names = || {
            let names = fs::read_dir(&path).expect("a directory").flatten().map(|file| file.file_name());
            let mut names: Vec<_> = names.filter_map(|name| name.into_string().ok()).collect();
            names.sort();
            names
        };
        for name in ["used", "dead"] {
            drop(UnixListener::bind(path.join(name)).expect("a socket"));
        }
        let alive = UnixListener::bind(path.join("alive")).expect("a socket");
        fs::write(path.join("file"), "").expect("a file");
        dir.remove_dead(|name| name == "used");
        assert_eq!(names(), ["alive", "file", "used"]);
        drop(alive);
        fs::remove_dir_all(&path).expect("it can be removed");
    }
}
