//! Watches: the events of a watched file or directory, one at a time, in a loop, or from an event
//! loop.
//!
//! # What it is
//! The core's watch, with an iterator, and with an eventfd for programs that wait for several things at once. The eventfd
//! exists from the first call of [`Watch::descriptor`]. It is readable while events are queued.
//!
//! # How it is locked
//! By the core's queue. A thread that queues an event in an empty queue adds to the eventfd. A
//! thread that takes the last event resets the eventfd, then looks at the queue again. So an event
//! that comes between both steps leaves the eventfd readable.

use rustix::event::{EventfdFlags, eventfd};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
/// One change that a [`Watch`] reports.
///
/// ```
/// use lightfoot::{EventKind, Scope, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/inbox")?;
/// let watch = ctx.watch("/inbox", Scope::Directory)?;
/// ctx.create_dir("/inbox/new")?;
/// let event = watch.try_next().expect("a directory was created");
/// assert_eq!((event.kind, event.is_dir, event.name()), (EventKind::Created, true, "new".as_ref()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Event;

/// The kind of an event.
///
/// ```
/// use lightfoot::{EventKind, Scope, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/a", "")?;
/// let watch = ctx.watch("/", Scope::Directory)?;
/// ctx.rename("/a", "/b")?;
/// let (from, to) = (watch.try_next().unwrap(), watch.try_next().unwrap());
/// assert_eq!((from.kind, to.kind), (EventKind::MovedFrom, EventKind::MovedTo));
/// assert_eq!(from.cookie, to.cookie); // Both belong to one rename.
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::EventKind;

/// Whether a watch also reports events below the directories in its directory.
///
/// ```
/// use lightfoot::{Scope, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir_all("/a/b")?;
/// let (near, far) = (ctx.watch("/", Scope::Directory)?, ctx.watch("/", Scope::Subtree)?);
/// ctx.create_dir("/a/b/c")?;
/// assert!(near.try_next().is_none());
/// assert_eq!(far.try_next().unwrap().path, std::path::Path::new("a/b/c"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Scope;

/// The queued events of one watched file or directory. A drop ends the watch.
///
/// Threads may share a watch: each event is returned to one thread.
///
/// ```
/// use lightfoot::{EventKind, Scope, Vfs};
/// use std::time::Duration;
///
/// let ctx = Vfs::ram().context();
/// let watch = ctx.watch("/", Scope::Subtree)?;
/// ctx.create_dir("/src")?;
/// ctx.write("/src/main.rs", "fn main() {}")?;
///
/// // Ends when no event has come for a tenth of a second.
/// let seen: Vec<_> = watch.iter(Some(Duration::from_millis(100))).map(|event| (event.kind, event.path)).collect();
/// assert_eq!(seen[0], (EventKind::Created, "src".into()));
/// assert_eq!(seen[1], (EventKind::Created, "src/main.rs".into()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Watch {
    inner: vfs::Watch,
    bell: OnceLock<Arc<OwnedFd>>,
}

impl Watch {
    pub(crate) fn new(inner: vfs::Watch) -> Self {
        Self { inner, bell: OnceLock::new() }
    }

    /// Returns the oldest queued event, if there is one. Does not block.
    #[must_use = "an event is given once"]
    pub fn try_next(&self) -> Option<Event> {
        let event = self.inner.try_next();
        self.reset();
        event
    }

    /// Returns the oldest event. Blocks until there is an event, for at most `timeout` (`None`:
    /// without a limit).
    ///
    /// `None` after the timeout, and after [`EventKind::Unmounted`](crate::EventKind::Unmounted)
    /// was returned, as no event can follow.
    #[must_use = "an event is given once"]
    pub fn next(&self, timeout: Option<Duration>) -> Option<Event> {
        let event = self.inner.next(timeout);
        self.reset();
        event
    }

    /// Returns the events in order. The iterator blocks for at most `timeout` before each event
    /// (`None`: without a limit). It ends after a timeout, and after
    /// [`EventKind::Unmounted`](crate::EventKind::Unmounted). `Some(Duration::ZERO)` does not
    /// block.
    pub fn iter(&self, timeout: Option<Duration>) -> impl Iterator<Item = Event> {
        std::iter::from_fn(move || if timeout == Some(Duration::ZERO) { self.try_next() } else { self.next(timeout) })
    }

    /// Returns a descriptor that is readable while events are queued, for `poll(2)`, `epoll(7)`,
    /// mio, tokio's `AsyncFd`. When the descriptor is readable, call [`Watch::try_next`] until it
    /// returns `None`. The descriptor can be readable without an event, if another thread took the
    /// event.
    ///
    /// Do not read from the descriptor.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM` of `eventfd(2)`.
    pub fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(fd) = self.bell.get() {
            return Ok(fd.as_fd());
        }
        let fd = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        // If another thread comes first, this descriptor is closed.
        let bell = self.bell.get_or_init(|| fd);
        let rung = bell.clone();
        self.inner.set_bell(move || ring(&rung));
        Ok(bell.as_fd())
    }

    /// Returns the number of queued events, where an overflow counts as one: `FIONREAD`, in events
    /// instead of bytes.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.inner.pending()
    }

    /// Returns the scope of the watch.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.inner.scope()
    }

    /// Makes the descriptor unreadable if no event is queued.
    fn reset(&self) {
        let Some(bell) = self.bell.get().filter(|_| self.inner.pending() == 0) else { return };
        // EAGAIN: another thread has reset the eventfd.
        let _ = rustix::io::read(bell, &mut [0; 8]);
        if self.inner.pending() != 0 {
            ring(bell);
        }
    }
}

/// (EAGAIN: it is readable already.)
fn ring(bell: &OwnedFd) {
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
