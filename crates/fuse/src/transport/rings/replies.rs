//! The way back to the kernel through a ring: the thread that serves it gives all replies to the kernel.
//!
//! # What it is
//! A reply to the request that the thread serves is kept for the thread; the body of the reply is
//! copied only if it was not written to the slot. Any other reply is late ([`LateReply`]): it is
//! put on a list, and the thread is woken.
//!
//! # How it is locked
//! One mutex, which nobody holds while something waits. Any thread may reply.

use super::super::reply::Channel;
use fusedev::{Device, Waker};
use parking_lot::Mutex;
use rustix::io::Errno;
use std::io;
use std::mem::{swap, take};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Replies {
    device: Arc<Device>,
    waker: Arc<Waker>,
    /// The longest body.
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The request that the thread serves: its number, and the address of the memory for the body.
    current: Option<(u64, usize)>,
    done: Option<Done>,
    /// The body of `done`, if it is not in place.
    body: Vec<u8>,
    late: Vec<LateReply>,
    is_over: bool,
}

/// The reply to the request that the thread serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    /// 0, or an errno.
    pub(super) error: i32,
    /// The length of the body in bytes.
    pub(super) len: usize,
    /// Whether the body was written to the slot.
    pub(super) is_in_place: bool,
}

/// A reply to a request that was served before.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LateReply {
    pub(super) unique: u64,
    pub(super) error: i32,
    pub(super) body: Vec<u8>,
}

impl Replies {
    /// Returns a value for bodies of at most `most` bytes.
    pub(super) fn new(device: Arc<Device>, waker: Arc<Waker>, most: usize) -> Self {
        Self { device, waker, most, state: Mutex::default() }
    }

    /// Notes that the thread begins to serve the request `unique`, and that the body of the reply
    /// is written to `room`.
    pub(super) fn begin(&self, unique: u64, room: &[u8]) {
        let mut state = self.state.lock();
        (state.current, state.done) = (Some((unique, room.as_ptr().addr())), None);
    }

    /// Notes that the thread has served the request. Returns its reply, or `None` if the reply
    /// comes later; `body` gets a body that is not in the slot.
    pub(super) fn end(&self, body: &mut Vec<u8>) -> Option<Done> {
        let mut state = self.state.lock();
        state.current = None;
        let done = state.done.take();
        if done.is_some_and(|done| !done.is_in_place) {
            swap(&mut state.body, body);
        }
        done
    }

    /// Returns the replies that have come later.
    pub(super) fn late(&self) -> Vec<LateReply> {
        take(&mut self.state.lock().late)
    }

    /// Gives memory back that long bodies have used.
    pub(super) fn give_back(&self) {
        self.state.lock().body = Vec::new();
    }

    /// Nobody takes replies any more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_over = true;
        state.late.clear();
    }
}

impl Channel for Replies {
    fn reply(&self, unique: u64, error: i32, body: &[u8]) -> io::Result<()> {
        let body = if error == 0 { body } else { &[] };
        if body.len() > self.most {
            return Err(Errno::INVAL.into());
        }
        let mut state = self.state.lock();
        match state.current {
            // It has a reply: a second one, after a panic.
            Some((current, _)) if current == unique && state.done.is_some() => return Err(Errno::NOENT.into()),
            Some((current, room)) if current == unique => {
                let is_in_place = !body.is_empty() && body.as_ptr().addr() == room;
                state.done = Some(Done { error, len: body.len(), is_in_place });
                if !is_in_place {
                    state.body.clear();
                    state.body.extend_from_slice(body);
                }
            }
            _ if state.is_over => return Err(Errno::NOENT.into()),
            _ => {
                state.late.push(LateReply { unique, error, body: body.to_vec() });
                drop(state);
                self.waker.wake();
            }
        }
        Ok(())
    }

    fn open_backing(&self, file: BorrowedFd<'_>) -> io::Result<i32> {
        self.device.open_backing(file)
    }

    fn close_backing(&self, id: i32) -> io::Result<()> {
        self.device.close_backing(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    fn replies() -> Replies {
        let device = Device::from(OwnedFd::from(io::pipe().unwrap().0));
        Replies::new(Arc::new(device), Arc::new(Waker::new().unwrap()), 8)
    }

    #[test]
    fn a_reply_to_the_request_that_is_served_is_kept_for_its_thread() {
        let (replies, mut body) = (replies(), Vec::new());
        let room = *b"12345678";
        for (sent, error, len, is_in_place) in
            [(&room[..3], 0, 3, true), (b"ab", 0, 2, false), (&room[..3], 2, 0, false), (&room[1..], 0, 7, false)]
        {
            replies.begin(4, &room);
            replies.reply(4, error, sent).unwrap();
            assert_eq!(replies.end(&mut body), Some(Done { error, len, is_in_place }));
            assert!(is_in_place || error != 0 || body == sent);
        }
        assert_eq!(replies.late(), []);
    }

    #[test]
    fn a_second_reply_and_one_that_is_too_long_are_refused() {
        let (replies, mut body) = (replies(), Vec::new());
        replies.begin(4, &[]);
        assert_eq!(replies.reply(4, 0, &[0; 9]).unwrap_err().raw_os_error(), Some(22));
        replies.reply(4, 0, b"first").unwrap();
        assert_eq!(replies.reply(4, 5, &[]).unwrap_err().raw_os_error(), Some(2));
        assert_eq!(replies.end(&mut body).map(|done| done.error), Some(0));
        assert_eq!(body, b"first");
    }

    #[test]
    fn a_reply_that_comes_later_goes_to_the_list_until_the_end() {
        let (replies, mut body) = (replies(), Vec::new());
        replies.begin(4, &[]);
        assert_eq!(replies.end(&mut body), None, "it is parked");
        replies.begin(6, &[]);
        // While the thread serves another request.
        replies.reply(4, 0, b"x").unwrap();
        assert_eq!(replies.end(&mut body), None);
        replies.reply(6, 4, b"not sent").unwrap();
        let late = |unique, error, body: &[u8]| LateReply { unique, error, body: body.to_vec() };
        assert_eq!(replies.late(), [late(4, 0, b"x"), late(6, 4, b"")]);
        replies.close();
        assert_eq!(replies.reply(8, 0, b"").unwrap_err().raw_os_error(), Some(2));
        assert_eq!(replies.late(), []);
    }
}
