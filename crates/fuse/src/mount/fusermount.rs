//! Mounting by `fusermount3`, which is set-user-id root: for users who may not call `mount(2)`.
//!
//! # What it is
//! The helper opens `/dev/fuse`, mounts, and sends the descriptor through a socket. That socket is its standard input: a
//! descriptor that no other program of this process can inherit in between.
//!
//! # Where it comes from
//! `util/fusermount.c` and `fuse_kern_mount` in libfuse.

use crate::options::{Checks, MountOptions};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The program.
const HELPER: &str = "fusermount3";

/// Names the descriptor of the socket.
const SOCKET: &str = "_FUSE_COMMFD";

/// Why the helper did not mount.
#[derive(Debug)]
pub(super) enum HelperError {
    /// The program does not exist.
    Missing,
    /// It refused, with this message.
    Refused(String),
    /// It could not be run, or did not send the descriptor.
    System(io::Error),
}

impl From<io::Error> for HelperError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// A helper that waits for the end of this process, or for a drop of this, and then unmounts the
/// mount if it is still there.
#[derive(Debug)]
pub(super) struct Waiting {
    /// The helper waits for the end of this socket.
    socket: Option<UnixStream>,
    helper: Child,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.socket.take());
        let _ = self.helper.wait();
    }
}

/// Mounts on `mountpoint`, which must be absolute, and returns the device of the connection; with
/// [`MountOptions::auto_unmount`] also the helper, which waits.
pub(super) fn mount_by_helper(
    mountpoint: &Path,
    options: &MountOptions,
) -> Result<(OwnedFd, Option<Waiting>), HelperError> {
    let (ours, its) = UnixStream::pair()?;
    let mut command = Command::new(HELPER);
    command.arg("-o").arg(words(options)).arg("--").arg(mountpoint).env(SOCKET, "0");
    command.stdin(Stdio::from(OwnedFd::from(its))).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => HelperError::Missing,
        _ => HelperError::System(error),
    })?;
    // The command has the other side of the socket, too.
    drop(command);
    let received = receive(&ours);
    if options.auto_unmount
        && let Ok(Some(device)) = received
    {
        return Ok((device, Some(Waiting { socket: Some(ours), helper: child })));
    }
    drop(ours);
    let output = child.wait_with_output()?;
    match received? {
        Some(device) => Ok((device, None)),
        None => Err(HelperError::Refused(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// Unmounts the helper's mount; lazily, as it is called when somebody uses the mount, too.
pub(super) fn unmount_by_helper(mountpoint: &Path) -> io::Result<()> {
    let output = Command::new(HELPER).args(["-u", "-q", "-z", "--"]).arg(mountpoint).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}

/// Returns the options, as the helper takes them.
fn words(options: &MountOptions) -> String {
    // A comma would end the word, and the rest would be another option.
    let name = options.name.replace('\\', r"\\").replace(',', r"\,");
    let mut words = format!("fsname={name},subtype=lightfoot");
    let switches = [
        (options.read_only, ",ro"),
        (options.nosuid, ",nosuid"),
        (options.nodev, ",nodev"),
        (options.noexec, ",noexec"),
        (options.nosymfollow, ",nosymfollow"),
        (options.noatime, ",noatime"),
        (options.session.checks == Checks::Kernel, ",default_permissions"),
        (options.allow_other, ",allow_other"),
        (options.auto_unmount, ",auto_unmount"),
    ];
    switches.into_iter().filter(|(is_on, _)| *is_on).for_each(|(_, word)| words.push_str(word));
    words
}

/// Returns the descriptor that the helper sends; `None` if it closes its side without.
fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
    let sent = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_words_of_the_helper() {
        let options = MountOptions { name: "a tree".into(), noexec: true, nodev: false, ..MountOptions::default() };
        assert_eq!(words(&options), "fsname=a tree,subtype=lightfoot,nosuid,noexec,default_permissions");
        let options = MountOptions { allow_other: true, read_only: true, nosuid: false, ..options };
        assert_eq!(words(&options), "fsname=a tree,subtype=lightfoot,ro,noexec,default_permissions,allow_other");
        let options = MountOptions { auto_unmount: true, ..MountOptions::default() };
        assert!(words(&options).ends_with(",auto_unmount"));
    }

    #[test]
    fn a_name_is_one_word_of_the_helper() {
        let options = MountOptions { name: r"/a,allow_other,b\".into(), ..MountOptions::default() };
        assert!(words(&options).starts_with(r"fsname=/a\,allow_other\,b\\,subtype=lightfoot,"), "{}", words(&options));
    }

    #[test]
    fn a_helper_that_sends_nothing_has_refused() {
        let (ours, its) = UnixStream::pair().expect("a pair");
        drop(its);
        assert!(receive(&ours).expect("an end").is_none());
    }
}
