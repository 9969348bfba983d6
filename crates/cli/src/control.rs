//! Mounts of Lightfoot from outside: finding them, and requesting their status through a control socket.
//!
//! # What it is
//! A Unix socket named after the mount's device, `lightfoot/mount-MAJOR:MINOR.sock` in `/run` for root and in
//! `$XDG_RUNTIME_DIR` for others (else `/tmp/lightfoot-UID`). A client sends a line, `snapshot`, and receives a line of JSON, a
//! [`Status`]. Only its owner can enter the directory of the socket, so no other user can connect.
//!
//! # What it is not
//! A way to change a mount, but for its forks ([`crate::workspaces_server`]).
//!
//! # How it is locked
//! A thread accepts clients. Each client has a thread, while these are fewer than [`CLIENTS`], which waits at most [`TIMEOUT`] for it.

mod exchange;
mod find;
mod locked_dir;
mod status;

pub(crate) use find::find;
pub(crate) use locked_dir::remove_dead_socket;
pub(crate) use status::{FileSystemStatus, HostStatus, LockStatus, ServedMount, Status, StoreStatus};

use crate::command_error::CommandError;
use exchange::Exchange;
use fuse::message::{Reason, show};
use fuse::mountinfo::{self, MountInfo};
use locked_dir::{LockedDir, SocketFile};
use rustix::fs::{major, minor};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, geteuid, pidfd_open};
use serde::de::DeserializeOwned;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};
use thiserror::Error;
use vfs::Foreign;

/// How long one side waits for the other.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// The most clients with own threads: a commit may take long, and a client may send nothing.
const CLIENTS: usize = 16;

/// The longest request, in bytes.
const MAX_REQUEST: u64 = 4096;

/// The longest reply, in bytes.
const MAX_REPLY: usize = 64 << 20;

/// Why a mount cannot be found, or does not report its status.
#[derive(Debug, Error)]
pub(crate) enum ControlError {
    /// Nothing is mounted there.
    #[error("{}: not a mount point (`lightfoot list` lists the mounts of Lightfoot)", show(.0))]
    NotMounted(PathBuf),

    /// Something else is mounted there.
    #[error("{}: a mount of {}, not of Lightfoot (`lightfoot list` lists those)", show(.path), Foreign::of(.fs_type))]
    OtherMount { path: PathBuf, fs_type: String },

    /// Its process does not reply.
    #[error(
        "{}: no reply from its process on {}: {reason} (run this as its owner or as root; if the process has died, unmount)",
        show(.path),
        show(.socket)
    )]
    NoReply { path: PathBuf, socket: PathBuf, reason: Reason },
}

impl CommandError for ControlError {
    fn status(&self) -> u8 {
        if matches!(self, Self::NoReply { .. }) { 1 } else { 2 }
    }
}

/// The file of a socket that a thread serves; removed when this is dropped.
pub(crate) struct ControlSocket {
    _file: SocketFile,
}

impl ControlSocket {
    /// Starts a thread that reports the status of `mount`, until that is dropped.
    ///
    /// # Errors
    /// If no directory for the socket can be created, or the thread cannot.
    pub(crate) fn serve(mount: Weak<ServedMount>, device: u64) -> io::Result<Self> {
        let dirs = socket_dirs(geteuid().as_raw());
        let dir = dirs.iter().find_map(|dir| LockedDir::lock(dir).ok());
        let dir = dir.ok_or_else(|| io::Error::other("no directory for it"))?;
        if let Ok(mounts) = mountinfo::list() {
            dir.remove_dead(|name| mounts.iter().any(|mount| name == file_name(mount.device).as_str()));
        }
        let (listener, file) = dir.bind(&file_name(device))?;
        drop(dir);
        let reply_all = move || {
            let clients = Arc::new(());
            for client in listener.incoming() {
                let (Some(mount), one) = (mount.upgrade(), clients.clone()) else { return };
                let serve = move || {
                    let (_one, replied) = (one, client.and_then(|stream| reply(&stream, &mount)));
                    let _ = replied
                        .inspect_err(|error| tracing::debug!(%error, "no reply to a client of the control socket"));
                };
                if Arc::strong_count(&clients) > CLIENTS {
                    serve();
                } else {
                    let _ = thread::Builder::new().name("lightfoot-ctl".into()).spawn(serve);
                }
            }
        };
        thread::Builder::new().name("lightfoot-ctl".into()).spawn(reply_all)?;
        Ok(Self { _file: file })
    }
}

fn reply(mut stream: &UnixStream, mount: &ServedMount) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_REQUEST)).read_line(&mut line)?;
    let mut reply = match line.trim_end() {
        "snapshot" => serde_json::to_string(&mount.status())?,
        line => {
            // A client that does not read gets no more lines.
            let mut is_read = true;
            mount.forks.answer(line, &mut |line| is_read = is_read && stream.write_all(line.as_bytes()).is_ok())?
        }
    };
    reply.push('\n');
    stream.write_all(reply.as_bytes())
}

/// Returns the status of a mount, from its process.
///
/// # Errors
/// If the process does not reply within [`TIMEOUT`], or reports another mount.
pub(crate) fn status(mount: &MountInfo) -> Result<Status, ControlError> {
    let (status, socket): (Status, _) = ask(mount, "snapshot\n", TIMEOUT, |_| true)?;
    if status.mountpoint != Foreign::text(mount.mountpoint.to_string_lossy()).to_string() {
        let reason = "it reports another mount".into();
        return Err(ControlError::NoReply { path: mount.mountpoint.clone(), socket, reason });
    }
    Ok(status)
}

/// Sends a line to the process of a mount. Returns the first reply that `is_last` accepts, and the path of the socket.
///
/// # Errors
/// If the process does not reply within `patience`, or replies something else.
pub(crate) fn ask<T: DeserializeOwned>(
    mount: &MountInfo,
    line: &str,
    patience: Duration,
    mut is_last: impl FnMut(&T) -> bool,
) -> Result<(T, PathBuf), ControlError> {
    let no_reply = |socket, reason| ControlError::NoReply { path: mount.mountpoint.clone(), socket, reason };
    let connected = connect(mount, Instant::now() + patience);
    let (exchange, socket) = connected.map_err(|(error, socket)| no_reply(socket, error.into()))?;
    let no_reply = |reason| no_reply(socket.clone(), reason);
    let failed = |error: io::Error| {
        no_reply(if error.kind() == io::ErrorKind::TimedOut { "timed out".into() } else { error.into() })
    };
    let mut exchange = exchange.request(line.as_bytes()).map_err(failed)?;
    loop {
        let reply = exchange.line(MAX_REPLY).map_err(failed)?;
        let reply = exchange::parse(&reply).ok_or_else(|| no_reply("it runs another version of lightfoot".into()))?;
        if is_last(&reply) {
            return Ok((reply, socket));
        }
    }
}

/// Returns a descriptor of the process that serves the mount. Waits at most `patience`.
///
/// # Errors
/// `TimedOut` if the queue of its socket stays full, and the errors of `connect(2)` and `pidfd_open(2)`.
pub(crate) fn process_of(mount: &MountInfo, patience: Duration) -> io::Result<OwnedFd> {
    let (exchange, _) = connect(mount, Instant::now() + patience).map_err(|(error, _)| error)?;
    Ok(pidfd_open(rustix::net::sockopt::socket_peercred(&exchange.stream)?.pid, PidfdFlags::empty())?)
}

/// Connects to the process of the mount. Returns the socket's path, too, also with an error.
fn connect(mount: &MountInfo, until: Instant) -> Result<(Exchange, PathBuf), (io::Error, PathBuf)> {
    let places: Vec<PathBuf> =
        socket_dirs(mount.uid).into_iter().map(|dir| dir.join(file_name(mount.device))).collect();
    let mut reason = io::Error::from(Errno::NOENT);
    let mut socket = places.first().cloned().unwrap_or_default();
    for place in places {
        // Report "permission denied" for one place rather than "not found" for another.
        match fs::symlink_metadata(&place) {
            Ok(file) if file.uid() == mount.uid || file.uid() == 0 => match Exchange::begin(&place, until) {
                Ok(exchange) => return Ok((exchange, place)),
                Err(error) => (reason, socket) = (error, place),
            },
            Err(error) if error.kind() != io::ErrorKind::NotFound => (reason, socket) = (error, place),
            _ => {}
        }
    }
    Err((reason, socket))
}

fn file_name(device: u64) -> String {
    format!("mount-{}:{}.sock", major(device), minor(device))
}

/// Returns the directories for sockets of a user, the preferred one first.
pub(crate) fn socket_dirs(uid: u32) -> Vec<PathBuf> {
    if uid == 0 {
        return vec!["/run/lightfoot".into(), "/tmp/lightfoot-0".into()];
    }
    let of_session = env::var_os("XDG_RUNTIME_DIR").filter(|_| uid == geteuid().as_raw()).map(PathBuf::from);
    let runtime = of_session.into_iter().chain([format!("/run/user/{uid}").into()]).filter(|dir| dir.is_absolute());
    runtime.map(|dir| dir.join("lightfoot")).chain([format!("/tmp/lightfoot-{uid}").into()]).collect()
}
