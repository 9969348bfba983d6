//! Replies under way, and the notices that overtake them.
//!
//! # What it is
//! A reply has facts, and a time for which the kernel may use them. If the facts change after the session has read them, the
//! kernel can get the notice of the change before it takes the reply. It then keeps the old facts for the whole time. Two
//! kinds of replies need protection:
//!
//! - LOOKUP of a name that the kernel has. The kernel takes no lock for it. The reply makes the name valid again, also a
//!   name that a notice has expired meanwhile.
//! - LINK, for the file that gets a name, and before Linux 6.16 SETATTR. The kernel takes their attributes whatever notices
//!   came meanwhile.
//!
//! Such a reply is [`UnderWay`] from before its facts are read until it is sent. A reply that a notice overtakes is valid for
//! no time. The process that waits for a reply takes it when it runs, which nothing reports. So a notice that
//! comes while the reply is under way, or within [`DELAY_NS`] after it, is sent again that much
//! later.
//!
//! # What it is not
//! Needed for other replies, since the kernel orders these itself:
//!
//! - A process that looks a name up for the first time, makes a name, or lists a directory has the directory's lock until
//!   it has taken the reply. A notice about a name takes that lock too.
//! - Attributes in replies to LOOKUP, GETATTR, STATX and READDIRPLUS: the kernel drops them if `INVAL_INODE` has come since
//!   it sent the request.
//! - Pages: the kernel locks them for a read, and `INVAL_INODE` waits for that lock.
//! - A node that the kernel does not have yet: see `transport/sender.rs`.
//!
//! # How it is locked
//! A subject has a slot by its hash. Each slot has a mutex, held for a few instructions. Two subjects in one slot cost a
//! notice or a lookup more.
//!
//! # Where it comes from
//! `fuse_dentry_revalidate`, `fuse_do_setattr` and `fuse_iget` in Linux's `fs/fuse`.
//!
//! # Limitations
//! A process that does not take its reply within a second keeps the old facts.

use super::Session;
use crate::notices::{DELAY_NS, Notice, Notices};
use core::fmt;
use parking_lot::Mutex;
use prim::clock;
use std::hash::{BuildHasher, RandomState};

/// 24 bytes each.
const SLOTS: usize = 4096;

/// For how many nanoseconds after a reply was sent the kernel may take it. A test may be slow between a reply and a notice.
const UNTAKEN_NS: i64 = if cfg!(test) { 3600 * DELAY_NS } else { DELAY_NS };

/// The facts of a reply.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Subject<'n> {
    /// The file that a name in a directory leads to.
    Name(u64, &'n [u8]),
    /// The attributes of a node.
    Attributes(u64),
}

#[derive(Default)]
pub(crate) struct Slot {
    /// The number of notices so far; it may begin anew.
    notices: u32,
    /// Until when the kernel may take a reply that was sent.
    until_ns: i64,
}

impl Slot {
    /// Counts a notice. Returns whether the kernel may take a reply after it that was sent before.
    fn overtake(&mut self, now_ns: i64) -> bool {
        self.notices = self.notices.wrapping_add(1);
        now_ns < self.until_ns
    }
}

/// See the [module documentation](self).
pub(crate) struct Replies {
    /// Empty if no notices come.
    slots: Box<[Mutex<Slot>]>,
    hasher: RandomState,
}

impl Replies {
    pub(super) fn new(has_notices: bool) -> Self {
        let count = if has_notices { SLOTS } else { 0 };
        Self { slots: (0..count).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }

    /// `None`: no notices come.
    pub(crate) fn slot(&self, subject: Subject<'_>) -> Option<&Mutex<Slot>> {
        self.slots.get(self.hasher.hash_one(subject) as usize % SLOTS)
    }
}

/// A reply from before its facts are read until it is sent, when this is dropped.
pub(crate) struct UnderWay<'s> {
    session: &'s Session,
    subject: Subject<'s>,
    slot: &'s Mutex<Slot>,
    /// The slot's notices at the beginning.
    notices: u32,
}

impl UnderWay<'_> {
    /// Returns whether the facts may have changed since the session read them.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.slot.lock().notices != self.notices
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let is_overtaken = {
            let mut slot = self.slot.lock();
            slot.until_ns = clock::monotonic_ns() + UNTAKEN_NS;
            slot.notices != self.notices
        };
        if is_overtaken {
            self.session.notices.get().into_iter().for_each(|notices| self.session.repeat(notices, self.subject));
        }
    }
}

impl fmt::Debug for UnderWay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subject.fmt(f)
    }
}

impl Session {
    /// Begins a reply about `subject`. `None`: no notice can overtake it.
    pub(crate) fn under_way<'s>(&'s self, subject: Subject<'s>) -> Option<UnderWay<'s>> {
        let slot = self.replies.slot(subject)?;
        Some(UnderWay { session: self, subject, slot, notices: slot.lock().notices })
    }

    /// Queues a notice of a change, and once more if replies of before may reach the kernel after it.
    pub(super) fn notify(&self, notices: &Notices, notice: Notice) {
        let subject = match &notice {
            Notice::Expire { parent, name } | Notice::Drop { parent, name } | Notice::Delete { parent, name, .. } => {
                Some(Subject::Name(*parent, name))
            }
            Notice::InvalInode { node, .. } => Some(Subject::Attributes(*node)),
            Notice::Prune(_) => None,
        };
        let slot = subject.and_then(|subject| Some((subject, self.replies.slot(subject)?)));
        if let Some((subject, slot)) = slot
            && slot.lock().overtake(clock::monotonic_ns())
        {
            self.repeat(notices, subject);
        }
        notices.push(notice);
    }

    /// As [`notify`](Self::notify), that everything may have changed.
    pub(super) fn notify_all(&self, notices: &Notices) {
        let now_ns = clock::monotonic_ns();
        // All slots count the notice.
        if self.replies.slots.iter().filter(|slot| slot.lock().overtake(now_ns)).count() > 0 {
            notices.push_later(None);
        }
        notices.push_all();
    }

    /// Queues a notice about `subject` for later. A name that the kernel cannot expire is valid for a short time anyway.
    fn repeat(&self, notices: &Notices, subject: Subject<'_>) {
        match subject {
            Subject::Name(parent, name) if self.expires_names() => {
                notices.push_later(Some(Notice::Expire { parent, name: name.into() }));
            }
            Subject::Name(..) => (),
            Subject::Attributes(node) => {
                notices.push_later(Some(Notice::InvalInode { node, offset: -1, len: 0 }));
            }
        }
    }
}
