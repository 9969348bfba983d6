//! Signals that end a command, waited for together with another end; and one that must not end a mount.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use std::fs;
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use vfs::Cancel;

/// Receives INT, TERM and HUP, and survives XFSZ.
pub(crate) struct Signals {
    /// Has a byte for each signal that arrived.
    arrived: UnixStream,
    last: Arc<AtomicUsize>,
}

/// The number of the signal that ended a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interrupted(pub(crate) u8);

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// The other end has come.
    Ended,
    /// A signal of this number arrived.
    Signal(u8),
}

impl Signals {
    /// Begins to listen, except for signals that the parent process ignored (`nohup`).
    pub(crate) fn listen() -> io::Result<Self> {
        let (arrived, sender) = UnixStream::pair()?;
        arrived.set_nonblocking(true)?;
        // With any handler, a write beyond the limit of this process (`RLIMIT_FSIZE`) fails with `EFBIG`. Without one, a
        // user's write would end the mount for all.
        signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        let last = Arc::new(AtomicUsize::new(0));
        let ignored = ignored();
        for number in [SIGINT, SIGTERM, SIGHUP] {
            if ignored & (1 << (number - 1)) == 0 {
                signal_hook::flag::register_usize(number, Arc::clone(&last), number.unsigned_abs() as usize)?;
                signal_hook::low_level::pipe::register(number, sender.try_clone()?)?;
            }
        }
        Ok(Self { arrived, last })
    }

    /// Runs `act`. A signal that arrives meanwhile cancels the calls that `act` makes, and is the
    /// error.
    ///
    /// # Errors
    /// The signal.
    pub(crate) fn cancel<R>(&mut self, act: impl FnOnce() -> R) -> Result<R, Interrupted> {
        let cancel = Cancel::new();
        let done = thread::scope(|scope| {
            let arrived = &self.arrived;
            // Ends with `act`, as the other end is dropped. Without the pair, signals wait for `act`.
            let pair = UnixStream::pair().ok();
            let ends = pair.map(|(end, act_ended)| {
                scope.spawn({
                    let cancel = cancel.clone();
                    move || {
                        let mut fds = [PollFd::new(arrived, PollFlags::IN), PollFd::new(&act_ended, PollFlags::IN)];
                        while poll(&mut fds, None) == Err(Errno::INTR) {}
                        if !fds[0].revents().is_empty() {
                            cancel.cancel();
                        }
                    }
                });
                end
            });
            let done = cancel.scope(act);
            drop(ends);
            done
        });
        if cancel.is_cancelled() { Err(Interrupted(self.number())) } else { Ok(done) }
    }

    /// Returns the number of the last signal; 0 before the first.
    pub(crate) fn number(&self) -> u8 {
        // Relaxed: the number is all that the handler passes.
        u8::try_from(self.last.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Waits for a signal, or for `end` to become readable. Of several signals it returns one.
    pub(crate) fn wait(&mut self, end: BorrowedFd<'_>) -> io::Result<Woken> {
        loop {
            let mut fds = [PollFd::from_borrowed_fd(end, PollFlags::IN), PollFd::new(&self.arrived, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let [ended, signalled] = fds.map(|fd| !fd.revents().is_empty());
            if ended {
                return Ok(Woken::Ended);
            }
            if signalled && self.arrived.read(&mut [0; 64]).is_ok_and(|bytes| bytes > 0) {
                return Ok(Woken::Signal(self.number()));
            }
        }
    }
}

/// Returns the set of ignored signals, bit `n - 1` for signal `n`; empty if `/proc` cannot be read.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}
