//! The input of a screen: keys, signals, and the status of the mount, each from its own thread.
//!
//! # What it is
//! So the screen obeys keys also while the mount's process does not reply. The threads end with the process.

use crate::control::{self, ControlError, Status};
use crate::signals::{Signals, Woken};
use fuse::mountinfo::{self, MountInfo};
use ratatui::crossterm::event::{self, Event};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Returns the status of `mount` now, or `None` if it has ended. A mount that was detached has ended,
/// though its process may serve open files.
///
/// # Errors
/// It is mounted, and its process does not reply.
pub(super) fn take(mount: &MountInfo) -> Result<Option<Box<Status>>, ControlError> {
    let status = control::status(mount);
    let is_it = |other: &MountInfo| other.device == mount.device && other.mountpoint == mount.mountpoint;
    if mountinfo::list().is_ok_and(|mounts| !mounts.iter().any(is_it)) {
        return Ok(None);
    }
    Ok(Some(Box::new(status?)))
}

/// An input on which a screen acts.
pub(super) enum Happened {
    /// A key, or a new size.
    Input(Event),
    /// The terminal has no input any more.
    NoInput(io::Error),
    /// A signal of this number.
    Signal(u8),
    /// The status of the mount.
    Status(Box<Status>),
    /// The mount has ended.
    Ended,
    /// Its process does not reply.
    NoReply(ControlError),
    /// A thread of the feed panicked, and reported it.
    Panicked,
}

/// Starts the threads. The status comes at once, and then each `delay`, until it does not.
///
/// # Errors
/// Handlers of signals or threads cannot be made.
pub(super) fn start(mount: &MountInfo, delay: Duration) -> io::Result<Receiver<Happened>> {
    let (sender, receiver) = channel();
    let mut signals = Signals::listen()?;
    let (never, other_end) = UnixStream::pair()?;
    let (of_signals, of_input, mount) = (sender.clone(), sender.clone(), mount.clone());
    spawn("top-signals", of_signals, move |sender| {
        let _open = &other_end;
        while let Ok(Woken::Signal(number)) = signals.wait(never.as_fd()) {
            let _ = sender.send(Happened::Signal(number));
        }
    })?;
    spawn("top-input", of_input, |sender| {
        loop {
            let read = event::read();
            let is_last = read.is_err();
            let sent = sender.send(read.map_or_else(Happened::NoInput, Happened::Input));
            if is_last || sent.is_err() {
                return;
            }
        }
    })?;
    spawn("top-status", sender, move |sender| {
        loop {
            let happened = match take(&mount) {
                Ok(Some(status)) => Happened::Status(status),
                Ok(None) => Happened::Ended,
                Err(error) => Happened::NoReply(error),
            };
            let is_last = !matches!(happened, Happened::Status(_));
            if sender.send(happened).is_err() || is_last {
                return;
            }
            thread::sleep(delay);
        }
    })?;
    Ok(receiver)
}

fn spawn(
    name: &str,
    sender: Sender<Happened>,
    work: impl FnOnce(&Sender<Happened>) + Send + 'static,
) -> io::Result<()> {
    let contained = move || {
        if catch_unwind(AssertUnwindSafe(|| work(&sender))).is_err() {
            let _ = sender.send(Happened::Panicked);
        }
    };
    thread::Builder::new().name(name.into()).spawn(contained).map(drop)
}
