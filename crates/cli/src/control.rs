//! Mounts of Lightfoot from outside: finding them, and requesting their status through a control socket.
//!
//! # What it is
//! A Unix socket named after the mount's device, `lightfoot/mount-MAJOR:MINOR.sock` in `/run` for root and in
//! `$XDG_RUNTIME_DIR` for others (else `/tmp/lightfoot-UID`). A client sends a line, `snapshot`, and receives a line of JSON, a
//! [`Status`]. Only its owner can enter the directory of the socket, so nobody else can connect.
//!
//! # What it is not
//! A way to change a mount.
//!
//! # How it is locked
//! Not at all: one thread serves one client after the other, and waits for none longer than [`TIMEOUT`].

mod find;
mod status;

pub(crate) use find::find;
pub(crate) use status::{HostStatus, ServedMount, Status};

use crate::command_error::CommandError;
use fuse::mountinfo::{self, MountInfo};
use message::{Reason, show};
use rustix::fs::{major, minor};
use rustix::io::Errno;
use rustix::process::{Pid, geteuid};
use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// How long one side waits for the other.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest request, in bytes.
const MAX_REQUEST: u64 = 64;

/// The longest reply, in bytes.
const MAX_REPLY: u64 = 64 << 20;

/// Why a mount cannot be found, or does not report its status.
#[derive(Debug, Error)]
pub(crate) enum ControlError {
    /// Nothing is mounted there.
    #[error("{}: not a mount point (`findmnt -t fuse.lightfoot` lists the mounts of Lightfoot)", show(.0))]
    NotMounted(PathBuf),

    /// Something else is mounted there.
    #[error("{}: a mount of {fs_type}, not of Lightfoot (`findmnt -t fuse.lightfoot` lists those)", show(.path))]
    OtherMount {
        /// Where.
        path: PathBuf,
        /// The type of its file system.
        fs_type: String,
    },

    /// Its process does not reply.
    #[error(
        "{}: no reply from its process on {}: {reason} (run this as its owner or as root; if the process has died, unmount)",
        show(.path),
        show(.socket)
    )]
    NoReply {
        /// The mount.
        path: PathBuf,
        /// The last socket that was tried.
        socket: PathBuf,
        /// Why not.
        reason: Reason,
    },
}

impl CommandError for ControlError {
    fn status(&self) -> u8 {
        match self {
            Self::NotMounted(_) | Self::OtherMount { .. } => 2,
            Self::NoReply { .. } => 1,
        }
    }
}

/// The file of a socket that a thread serves; removed when this is dropped.
pub(crate) struct ControlSocket {
    path: PathBuf,
    /// Device and inode number of the file, because another mount may have taken the name since.
    file: (u64, u64),
}

impl ControlSocket {
    /// Starts a thread that reports the status of `mount`, until that is dropped.
    ///
    /// # Errors
    /// If no directory for the socket can be created, or the thread cannot.
    pub(crate) fn serve(mount: Weak<ServedMount>, device: u64) -> io::Result<Self> {
        let dir = socket_dirs(geteuid().as_raw()).into_iter().find(|dir| make_private(dir).is_ok());
        let path = dir.ok_or_else(|| io::Error::other("no directory for it"))?.join(file_name(device));
        // A device number has one mount, so an existing file is left over from one that ended.
        let _ = fs::remove_file(&path);
        path.parent().into_iter().for_each(remove_dead);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let file = fs::symlink_metadata(&path)?;
        let reply_all = move || {
            for client in listener.incoming() {
                let Some(mount) = mount.upgrade() else { return };
                if let Err(error) = client.and_then(|stream| reply(&stream, &mount)) {
                    tracing::debug!(%error, "no reply to a client of the control socket");
                }
            }
        };
        thread::Builder::new().name("lightfoot-ctl".into()).spawn(reply_all)?;
        Ok(Self { path, file: (file.dev(), file.ino()) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let is_own = fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.file);
        if is_own {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn reply(mut stream: &UnixStream, mount: &ServedMount) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_REQUEST)).read_line(&mut line)?;
    let mut reply = match line.trim_end() {
        "snapshot" => serde_json::to_string(&mount.status())?,
        _ => r#"{"error":"unknown request (use snapshot)"}"#.into(),
    };
    reply.push('\n');
    stream.write_all(reply.as_bytes())
}

/// The status of a mount, from its process.
///
/// # Errors
/// If the process does not reply.
pub(crate) fn status(mount: &MountInfo) -> Result<Status, ControlError> {
    let (stream, socket) = connect(mount)?;
    let no_reply = |reason| ControlError::NoReply { path: mount.mountpoint.clone(), socket: socket.clone(), reason };
    let request = || -> io::Result<String> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        (&stream).write_all(b"snapshot\n")?;
        let mut line = String::new();
        BufReader::new((&stream).take(MAX_REPLY)).read_line(&mut line)?;
        Ok(line)
    };
    let line = request().map_err(|error| match error.kind() {
        // A timeout of a socket.
        io::ErrorKind::WouldBlock => no_reply("timed out".into()),
        _ => no_reply(error.into()),
    })?;
    serde_json::from_str(&line).map_err(|_| no_reply("it runs another version of lightfoot".into()))
}

/// The process that serves the mount, if its socket can be reached.
pub(crate) fn process_of(mount: &MountInfo) -> Option<Pid> {
    let (stream, _) = connect(mount).ok()?;
    Some(rustix::net::sockopt::socket_peercred(&stream).ok()?.pid)
}

fn connect(mount: &MountInfo) -> Result<(UnixStream, PathBuf), ControlError> {
    let name = file_name(mount.device);
    let places: Vec<PathBuf> = socket_dirs(mount.uid).into_iter().map(|dir| dir.join(&name)).collect();
    let mut reason = io::Error::from(Errno::NOENT);
    let mut socket = places.first().cloned().unwrap_or_default();
    for place in places {
        // Report "permission denied" for one place rather than "not found" for another.
        match fs::symlink_metadata(&place) {
            Ok(file) if file.uid() == mount.uid || file.uid() == 0 => match UnixStream::connect(&place) {
                Ok(stream) => return Ok((stream, place)),
                Err(error) => (reason, socket) = (error, place),
            },
            Err(error) if error.kind() != io::ErrorKind::NotFound => (reason, socket) = (error, place),
            _ => {}
        }
    }
    Err(ControlError::NoReply { path: mount.mountpoint.clone(), socket, reason: reason.into() })
}

fn file_name(device: u64) -> String {
    format!("mount-{}:{}.sock", major(device), minor(device))
}

/// The directories for sockets of a user, the preferred one first.
fn socket_dirs(uid: u32) -> Vec<PathBuf> {
    if uid == 0 {
        return vec!["/run/lightfoot".into(), "/tmp/lightfoot-0".into()];
    }
    let of_session = env::var_os("XDG_RUNTIME_DIR").filter(|_| uid == geteuid().as_raw()).map(PathBuf::from);
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    let runtime = of_session.into_iter().chain([usual]).filter(|dir| dir.is_absolute());
    runtime.map(|dir| dir.join("lightfoot")).chain([format!("/tmp/lightfoot-{uid}").into()]).collect()
}

/// Removes sockets of mounts that no longer exist: a killed process leaves its socket.
fn remove_dead(dir: &Path) {
    let Ok(files) = fs::read_dir(dir) else { return };
    let mounted = mountinfo::list().unwrap_or_default();
    for file in files.flatten() {
        let name = file.file_name();
        let is_mounted = || mounted.iter().any(|mount| name == *file_name(mount.device));
        let is_socket = file.file_type().is_ok_and(|kind| kind.is_socket());
        let is_dead =
            |path| UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_socket && !is_mounted() && is_dead(file.path()) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Creates the directory for this user alone, or checks that an existing one is.
fn make_private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(dir)?;
    let is_private = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    if is_private { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}
