//! Calls that wait for changes by other programs: `inotify(7)`.
//!
//! See [`crate::system`].

use super::{Call, call};
use core::mem::MaybeUninit;
use rustix::event::{EventfdFlags, PollFd, Timespec};
use rustix::fs::inotify::{self, CreateFlags, Event, WatchFlags};
use rustix::io::Errno as HostErrno;
use std::os::fd::OwnedFd;

/// Returns a queue of events: `inotify_init1(2)`.
pub(crate) fn new_inotify() -> Result<OwnedFd, HostErrno> {
    call(Call::InotifyInit, || inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK))
}

/// Calls `eventfd(2)`.
pub(crate) fn new_eventfd() -> Result<OwnedFd, HostErrno> {
    call(Call::Eventfd, || rustix::event::eventfd(0, EventfdFlags::CLOEXEC))
}

/// Wakes the threads that wait for an eventfd. The first write to one cannot fail.
pub(crate) fn wake(eventfd: &OwnedFd) {
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

/// Calls `inotify_add_watch(2)`.
pub(crate) fn add_watch(inotify: &OwnedFd, path: &[u8], events: WatchFlags) -> Result<i32, HostErrno> {
    call(Call::AddWatch, || inotify::add_watch(inotify, path, events))
}

/// `inotify_rm_watch(2)`. The watch may have ended already, with its directory.
pub(crate) fn remove_watch(inotify: &OwnedFd, watch: i32) {
    let _ = inotify::remove_watch(inotify, watch);
}

/// Waits for one of the descriptors: `poll(2)`.
pub(crate) fn poll(fds: &mut [PollFd<'_>], timeout: &Timespec) -> Result<usize, HostErrno> {
    rustix::event::poll(fds, Some(timeout))
}

/// Reads the events that wait, as far as `buf` has room, and gives each to `each`. Returns whether there were any.
pub(crate) fn read_events(inotify: &OwnedFd, buf: &mut [MaybeUninit<u8>], mut each: impl FnMut(&Event<'_>)) -> bool {
    let mut reader = inotify::Reader::new(inotify, buf);
    let mut any = false;
    while let Ok(event) = reader.next() {
        any = true;
        each(&event);
        if reader.is_buffer_empty() {
            break;
        }
    }
    any
}
