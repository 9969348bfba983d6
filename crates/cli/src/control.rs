//! The control socket of a mount: where its process is asked how it is.
//!
//! # What it is
//! A Unix socket named after the mount's device, `lightfoot/mount-MAJOR:MINOR.sock` in `/run` for root and in
//! `$XDG_RUNTIME_DIR` for others (else `/tmp/lightfoot-UID`). Who asks sends a line, `snapshot`, and gets a line of JSON, a
//! [`Status`]. The directory is its owner's alone, so nobody else can ask.
//!
//! # What it is not
//! A way to change anything.
//!
//! # How it is locked
//! Not at all: one thread answers one after the other, and none waits for longer than [`PATIENCE`].

mod status;

pub(crate) use status::{HostStatus, Served, Status};

use crate::error::Reason;
use crate::mount::{Entry, Failure};
use rustix::process::geteuid;
use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::thread;
use std::time::Duration;

/// How long one who asks or answers may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest line that is read of who asks, and of who answers.
const LONGEST: (u64, u64) = (64, 64 << 20);

/// A socket that answers; it is removed when this is dropped.
pub(crate) struct Control {
    path: PathBuf,
    /// Device and number of its file: another mount may have taken the name.
    own: (u64, u64),
}

impl Control {
    /// Answers for `served` from now on, on a thread of its own.
    pub(crate) fn serve(served: Weak<Served>, device: (u32, u32)) -> io::Result<Self> {
        let dir = own_dirs(geteuid().as_raw()).into_iter().find(|dir| make_own(dir).is_ok());
        let path = dir.ok_or_else(|| io::Error::other("no directory for it"))?.join(file_name(device));
        // Nobody else has the device: what is there was left by somebody who has gone.
        let _ = fs::remove_file(&path);
        path.parent().into_iter().for_each(remove_dead);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let file = fs::symlink_metadata(&path)?;
        let answer_all = move || {
            for asking in listener.incoming() {
                let Some(served) = served.upgrade() else { return };
                if let Err(error) = asking.and_then(|stream| answer(&stream, &served)) {
                    tracing::debug!(%error, "who asked was not answered");
                }
            }
        };
        thread::Builder::new().name("lightfoot-ctl".into()).spawn(answer_all)?;
        Ok(Self { path, own: (file.dev(), file.ino()) })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let is_own = fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.own);
        if is_own {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn answer(mut stream: &UnixStream, served: &Served) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST.0)).read_line(&mut line)?;
    let mut reply = match line.trim_end() {
        "snapshot" => serde_json::to_string(&served.status())?,
        _ => r#"{"error":"say: snapshot"}"#.into(),
    };
    reply.push('\n');
    stream.write_all(reply.as_bytes())
}

/// How the mount is.
///
/// # Errors
/// If its process does not answer.
pub(crate) fn ask(mount: &Entry) -> Result<Status, Failure> {
    let (stream, socket) = connect(mount)?;
    let no_answer = |reason| Failure::NoAnswer { path: mount.at.clone(), socket: socket.clone(), reason };
    let asked = || -> io::Result<String> {
        stream.set_read_timeout(Some(PATIENCE))?;
        (&stream).write_all(b"snapshot\n")?;
        let mut line = String::new();
        BufReader::new((&stream).take(LONGEST.1)).read_line(&mut line)?;
        Ok(line)
    };
    let line = asked().map_err(|error| match error.kind() {
        // What a time-out of a socket is called.
        io::ErrorKind::WouldBlock => no_answer("it took too long".into()),
        _ => no_answer(error.into()),
    })?;
    serde_json::from_str(&line).map_err(|_| no_answer(Reason::from("it is of another version")))
}

/// The process that answers for the mount, if it can be asked.
pub(crate) fn process_of(mount: &Entry) -> Option<rustix::process::Pid> {
    let (stream, _) = connect(mount).ok()?;
    Some(rustix::net::sockopt::socket_peercred(&stream).ok()?.pid)
}

fn connect(mount: &Entry) -> Result<(UnixStream, PathBuf), Failure> {
    let name = file_name(mount.device);
    let places: Vec<PathBuf> = own_dirs(mount.uid).into_iter().map(|dir| dir.join(&name)).collect();
    let mut reason = io::Error::from(io::ErrorKind::NotFound);
    let mut socket = places.first().cloned().unwrap_or_default();
    for place in places {
        // Who may not look there learns that instead of that nothing is there.
        match fs::symlink_metadata(&place) {
            Ok(file) if file.uid() == mount.uid || file.uid() == 0 => match UnixStream::connect(&place) {
                Ok(stream) => return Ok((stream, place)),
                Err(error) => (reason, socket) = (error, place),
            },
            Err(error) if error.kind() != io::ErrorKind::NotFound => (reason, socket) = (error, place),
            _ => {}
        }
    }
    Err(Failure::NoAnswer { path: mount.at.clone(), socket, reason: reason.into() })
}

fn file_name((major, minor): (u32, u32)) -> String {
    format!("mount-{major}:{minor}.sock")
}

/// Where sockets of the user are, the best place first.
fn own_dirs(uid: u32) -> Vec<PathBuf> {
    if uid == 0 {
        return vec!["/run/lightfoot".into(), "/tmp/lightfoot-0".into()];
    }
    let said = env::var_os("XDG_RUNTIME_DIR").filter(|_| uid == geteuid().as_raw()).map(PathBuf::from);
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    let below = said.into_iter().chain([usual]).filter(|dir| dir.is_absolute()).map(|dir| dir.join("lightfoot"));
    below.chain([format!("/tmp/lightfoot-{uid}").into()]).collect()
}

/// Removes sockets that nobody answers, of mounts that are no more: who was killed has left them.
fn remove_dead(dir: &Path) {
    let Ok(files) = fs::read_dir(dir) else { return };
    let mounted = crate::mount::devices();
    for file in files.flatten() {
        let name = file.file_name();
        let is_mounted = || mounted.iter().any(|&device| name == *file_name(device));
        let is_socket = file.file_type().is_ok_and(|kind| kind.is_socket());
        let is_dead =
            |path| UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        if is_socket && !is_mounted() && is_dead(file.path()) {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// Makes the directory, or finds it to be ours alone.
fn make_own(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(dir)?;
    let is_own = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o077 == 0;
    if is_own { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}
