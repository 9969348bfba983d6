//! The order of a listing by a hash of the names.

use std::hash::{BuildHasher, RandomState};

/// An order of names for [`FileSystem::read_dir`](vfs::FileSystem::read_dir): by a hash, which is also the cookie. So other names never
/// change the position of a name. The hash is keyed: a user cannot choose two names with one hash.
///
/// ```
/// let order = lightfoot_pathfs::HashOrder::default();
/// assert_eq!(order.cookie(b"name"), order.cookie(b"name"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct HashOrder(RandomState);

impl HashOrder {
    /// Returns the cookie of a name: 1 to 2^62 - 1.
    #[must_use]
    pub fn cookie(&self, name: &[u8]) -> u64 {
        self.0.hash_one(name) >> 2 | 1
    }
}
