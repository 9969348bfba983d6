//! Memory of listings: the entries that open directories keep from one request to the next.
//!
//! # What it is
//! A file system returns more entries than the reply to a request has room for, so an open directory
//! keeps the others for the next request. The bytes are charged to the user who opened the directory.
//! If all open directories of the user keep too much, a directory gives its entries back at the end of
//! the request, and the next request reads them again. One open directory of each user may keep any
//! number.
//!
//! # How it is locked
//! One mutex for the table of users, held at the open of a directory. Sums are atomic.

use super::who::Account;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vfs::OpenFile;

/// The most bytes that the open directories of a user keep together.
const MOST: u64 = 2 << 20;

/// When the table has so many users, those without an open directory are removed.
const MANY_USERS: usize = 1024;

/// The sums of all users.
#[derive(Default)]
pub(super) struct ListingBudgets(Mutex<HashMap<Account, Arc<AtomicU64>>>);

impl ListingBudgets {
    /// Returns the open directory `file`, charged to `account`. `is_same`: the kernel may keep its listing.
    pub(super) fn directory(&self, account: Account, file: OpenFile, is_same: bool) -> OpenDirectory {
        let mut users = self.0.lock();
        if users.len() >= MANY_USERS {
            users.retain(|_, sum| Arc::strong_count(sum) > 1);
        }
        let of_user = users.entry(account).or_default().clone();
        OpenDirectory { file, is_same, charged: AtomicU64::new(0), of_user }
    }
}

/// An open directory.
pub(super) struct OpenDirectory {
    file: OpenFile,
    /// [`Node::note_open`](super::user_budget::Node::note_open).
    pub(super) is_same: bool,
    /// The bytes of its entries in `of_user`.
    charged: AtomicU64,
    of_user: Arc<AtomicU64>,
}

impl OpenDirectory {
    /// Ends a request: charges the entries that the directory keeps, or gives them back.
    pub(super) fn settle(&self) {
        let kept = self.file.listing_bytes();
        let of_user = self.charge(kept);
        if of_user > MOST.max(kept) {
            self.file.trim_listing();
            self.charge(0);
        }
    }

    /// Charges `bytes` in place of the charge before. Returns the sum of the user.
    fn charge(&self, bytes: u64) -> u64 {
        // Relaxed: sums. Two requests on one directory may charge in any order.
        let before = self.charged.swap(bytes, Relaxed);
        self.of_user.fetch_add(bytes, Relaxed);
        self.of_user.fetch_sub(before, Relaxed) - before
    }
}

impl Drop for OpenDirectory {
    fn drop(&mut self) {
        self.charge(0);
    }
}

impl Deref for OpenDirectory {
    type Target = OpenFile;

    fn deref(&self) -> &OpenFile {
        &self.file
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Caller, ROOT_NODE, Session, SessionOptions};
    use super::*;
    use hostfs::{HostFs, HostOptions};
    use vfs::{Errno, Vfs, Want};

    const NAMES: usize = 2000;

    /// Reads `most` names of an open directory; the cookie after them.
    fn names(session: &Session, handle: u64, after: u64, most: usize) -> (Vec<Vec<u8>>, u64) {
        let (mut names, mut next) = (Vec::new(), after);
        let listed = session.readdir(handle, after, Want::NAMES, &mut |listed| {
            if names.len() >= most {
                return false;
            }
            names.push(listed.name.to_vec());
            next = listed.cookie;
            true
        });
        assert_eq!(listed, Ok(()));
        (names, next)
    }

    #[test]
    fn the_open_directories_of_a_user_keep_few_bytes() {
        let source = tempfile::tempdir().unwrap();
        for number in 0..NAMES {
            std::fs::write(source.path().join(format!("a-rather-long-name-of-a-file-{number}")), "").unwrap();
        }
        let host = HostFs::new(source.path(), &HostOptions::default()).unwrap();
        let session = Session::new(&Vfs::new(host), SessionOptions::default()).unwrap();
        let [alice, bob] = [Caller::of(50_001, 50_001), Caller::of(50_002, 50_002)];
        let opened = |caller| session.opendir(caller, ROOT_NODE).unwrap();
        let handles: Vec<_> = (0..200).map(|_| opened(&alice)).collect();
        let after: Vec<_> = handles.iter().map(|&handle| names(&session, handle, 0, 10).1).collect();
        let kept = |handle| session.directories.get(handle).unwrap().listing_bytes();
        let of_alice: u64 = handles.iter().copied().map(kept).sum();
        let most_of_one = handles.iter().copied().map(kept).max().unwrap();
        assert!(most_of_one > 0 && of_alice <= MOST.max(most_of_one), "{of_alice}");
        // The user's sum is not another user's.
        let of_bob = opened(&bob);
        names(&session, of_bob, 0, 10);
        assert!(kept(of_bob) > 0);
        // Each listing continues where it was.
        for (&handle, after) in handles.iter().zip(after).step_by(20) {
            let mut all: std::collections::BTreeSet<_> = names(&session, handle, 0, 10).0.into_iter().collect();
            let rest = names(&session, handle, after, usize::MAX).0;
            assert_eq!(rest.len(), NAMES + 2 - 10);
            all.extend(rest);
            assert_eq!(all.len(), NAMES + 2);
        }
        // A closed directory gives back its charge.
        let sum = session.directories.get(handles[0]).unwrap().of_user.clone();
        handles.iter().for_each(|&handle| session.releasedir(handle));
        assert_eq!(sum.load(Relaxed), 0);
        assert_eq!(session.readdir(handles[0], 0, Want::NAMES, &mut |_| true), Err(Errno::EBADF));
    }
}
