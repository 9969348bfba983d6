//! Open files of each user: no user takes all descriptors.
//!
//! # What it is
//! A file that is open keeps its descriptor, so the budget cannot close it. The user that opened it first is charged until
//! the last release. A user may have half of the descriptors that the others have left: however many one user opens, the
//! next one gets some. The process's own user, and root, may have all.
//!
//! # What it is not
//! A limit of how many times one file is open: those share a descriptor. A file that its user has removed stays charged
//! only while it is open.
//!
//! # How it is locked
//! One mutex, a leaf, never held during a call to the host.
//!
//! # Where it comes from
//! `RLIMIT_NOFILE` of each user's processes, which a server of many users takes away; the dynamic thresholds of
//! A. Choudhury, E. Hahne, "Dynamic queue length thresholds for shared-memory packet switches" (1998).

use crate::system;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use vfs::Errno;

/// This part of the process's descriptors is never for open files of other users: the budget's and the process's own.
const RESERVED_PART: u64 = 4;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Opens {
    /// The most descriptors of open files.
    capacity: usize,
    /// The user of the process.
    own: u32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The users that are charged for nodes.
    nodes: HashMap<u64, u32>,
    /// The number of nodes of each user.
    users: HashMap<u32, usize>,
}

impl Opens {
    pub(crate) fn new() -> Self {
        let limit = system::max_descriptors().unwrap_or(u64::MAX);
        let capacity = usize::try_from(limit - limit / RESERVED_PART).unwrap_or(usize::MAX);
        Self { capacity, own: system::user().as_raw(), state: Mutex::default() }
    }

    /// Charges `uid` for the descriptor of a node that it opens, unless a user is charged for it already.
    ///
    /// # Errors
    /// `EMFILE` if the user has its share.
    pub(crate) fn charge(&self, uid: u32, node: u64) -> Result<(), Errno> {
        if uid == self.own || uid == 0 {
            return Ok(());
        }
        let state = &mut *self.state.lock();
        let total = state.nodes.len();
        let Entry::Vacant(vacant) = state.nodes.entry(node) else { return Ok(()) };
        let used = state.users.entry(uid).or_default();
        if *used >= self.capacity.saturating_sub(total - *used) / 2 {
            return Err(Errno::EMFILE);
        }
        *used += 1;
        vacant.insert(uid);
        Ok(())
    }

    /// Ends the charge for a node that is no longer open.
    pub(crate) fn end(&self, node: u64) {
        let state = &mut *self.state.lock();
        let Some(uid) = state.nodes.remove(&node) else { return };
        if let Entry::Occupied(mut used) = state.users.entry(uid) {
            *used.get_mut() -= 1;
            if *used.get() == 0 {
                used.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_user_gets_half_of_what_the_others_leave() {
        let opens = Opens { capacity: 64, own: 7, state: Mutex::default() };
        let mut node = 0;
        let mut take_all = |uid| {
            let mut count = 0;
            while count < 1000 {
                node += 1;
                if opens.charge(uid, node).is_err() {
                    break;
                }
                count += 1;
            }
            count
        };
        assert_eq!([1001, 1002, 1003].map(&mut take_all), [32, 16, 8]);
        assert_eq!([0, 7].map(&mut take_all), [1000, 1000], "root and the process's user");
        // A file that is open already takes nothing; one that was closed gives back.
        assert_eq!(opens.charge(1001, 1), Ok(()));
        opens.end(51);
        assert_eq!((opens.charge(1003, 5000), opens.charge(1003, 5001)), (Ok(()), Err(Errno::EMFILE)));
    }
}
