//! Open files: the descriptor of each, and how many each user has.
//!
//! # What it is
//! Each open of a regular file has its own descriptor, with the access and the flags of the open.
//! So the host appends and writes through as each open requests, and reports a write error once for
//! each open: `fsync(2)`, `close(2)`.
//!
//! The budget cannot close these descriptors, nor the descriptors of open directories
//! ([`crate::listing`]). A descriptor is charged to the user that opened the file, until the
//! release. A user may have half of the descriptors that the other users do not use: however many
//! one user opens, the next user gets some. The process's own user, and root, may have all.
//!
//! # How it is locked
//! One mutex, a leaf, never held during a call to the host.
//!
//! # Where it comes from
//! `RLIMIT_NOFILE` of each user's processes, which a server of many users takes away; the dynamic thresholds of
//! A. Choudhury, E. Hahne, "Dynamic queue length thresholds for shared-memory packet switches" (1998).

use crate::counts::count_down;
use crate::system;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use vfs::Errno;

/// One in so many of the process's descriptors is never for open files of other users: these
/// descriptors are for the budget and the process.
const RESERVED_PART: u64 = 4;

/// An open regular file: its state for the VFS.
#[derive(Debug)]
pub(crate) struct HostOpen {
    pub(crate) fd: Arc<OwnedFd>,
    /// The user that is charged.
    pub(crate) uid: u32,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Opens {
    /// The most descriptors of open files.
    capacity: usize,
    /// The user of the process.
    own: u32,
    /// All opens.
    open: AtomicUsize,
    charged: Mutex<Charged>,
}

#[derive(Debug, Default)]
struct Charged {
    total: usize,
    users: HashMap<u32, usize>,
}

impl Opens {
    pub(crate) fn new() -> Self {
        let limit = system::max_descriptors().unwrap_or(u64::MAX);
        let capacity = usize::try_from(limit - limit / RESERVED_PART).unwrap_or(usize::MAX);
        Self { capacity, own: system::user().as_raw(), open: AtomicUsize::new(0), charged: Mutex::default() }
    }

    /// Returns the number of open files.
    pub(crate) fn len(&self) -> usize {
        // Relaxed, here and below: a counter.
        self.open.load(Relaxed)
    }

    /// Charges `uid` for an open.
    ///
    /// # Errors
    /// `EMFILE` if the user has its share.
    pub(crate) fn begin(&self, uid: u32) -> Result<(), Errno> {
        if self.is_limited(uid) {
            let charged = &mut *self.charged.lock();
            let used = charged.users.entry(uid).or_default();
            if *used >= self.capacity.saturating_sub(charged.total - *used) / 2 {
                return Err(Errno::EMFILE);
            }
            *used += 1;
            charged.total += 1;
        }
        self.open.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Ends the charge for an open.
    pub(crate) fn end(&self, uid: u32) {
        self.open.fetch_sub(1, Relaxed);
        if !self.is_limited(uid) {
            return;
        }
        let charged = &mut *self.charged.lock();
        charged.total -= usize::from(count_down(&mut charged.users, uid));
    }

    fn is_limited(&self, uid: u32) -> bool {
        uid != self.own && uid != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_gets_half_of_what_the_others_leave() {
        let opens = Opens { capacity: 64, own: 7, open: AtomicUsize::new(0), charged: Mutex::default() };
        let take_all = |uid| (0..1000).take_while(|_| opens.begin(uid).is_ok()).count();
        assert_eq!([1001, 1002, 1003].map(take_all), [32, 16, 8]);
        assert_eq!([0, 7].map(take_all), [1000, 1000], "root and the process's user");
        // A closed descriptor is free again, for other users as well.
        opens.end(1002);
        opens.end(1002);
        assert_eq!(opens.len(), 32 + 14 + 8 + 2000);
        assert_eq!((opens.begin(1003), opens.begin(1003)), (Ok(()), Err(Errno::EMFILE)));
        (0..32).for_each(|_| opens.end(1001));
        assert_eq!(take_all(1003), 25 - 9);
    }
}
