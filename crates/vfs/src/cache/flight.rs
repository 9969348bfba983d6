//! A name that is being looked up: one request for all threads that wait for it.

use crate::base::errno::Errno;

/// The key of a lookup: a name in the directory at an address, and the directory's counter of changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LookupKey {
    pub(crate) dir: usize,
    pub(crate) version: u64,
    pub(crate) name: Box<[u8]>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LookupResult {
    /// The cache has the entry now.
    There,
    /// The name does not exist.
    Absent,
    /// The directory changed meanwhile.
    Again,
    Failed(Errno),
}
