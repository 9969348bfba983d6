//! Signals that ask a mount to end, waited for together with its end.

use crate::interrupt::ignored;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Signals that ask for the end.
pub(super) struct Signals {
    /// Has a byte for each that came.
    came: UnixStream,
    last: Arc<AtomicUsize>,
}

/// What a mount waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// It has ended.
    Ended,
    /// A signal of this number came.
    Signal(u8),
}

impl Signals {
    /// Listens from now on, but not to signals that the parent had ignored (`nohup`).
    pub(super) fn listen() -> io::Result<Self> {
        let (came, sender) = UnixStream::pair()?;
        came.set_nonblocking(true)?;
        let last = Arc::new(AtomicUsize::new(0));
        let ignored = ignored();
        for number in [SIGINT, SIGTERM, SIGHUP] {
            if ignored & (1 << (number - 1)) == 0 {
                signal_hook::flag::register_usize(number, Arc::clone(&last), number.unsigned_abs() as usize)?;
                signal_hook::low_level::pipe::register(number, sender.try_clone()?)?;
            }
        }
        Ok(Self { came, last })
    }

    /// Waits for a signal, or for `end` to become readable. Of several signals one is told.
    pub(super) fn wait(&mut self, end: BorrowedFd<'_>) -> io::Result<Woken> {
        loop {
            let mut fds = [PollFd::from_borrowed_fd(end, PollFlags::IN), PollFd::new(&self.came, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [ended, came] = fds.map(|fd| !fd.revents().is_empty());
            if ended {
                return Ok(Woken::Ended);
            }
            if came && self.came.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {
                // Relaxed: the number is all that is said.
                let number = u8::try_from(self.last.load(Ordering::Relaxed)).unwrap_or(0);
                return Ok(Woken::Signal(number));
            }
        }
    }
}
