//! The numbers of requests to the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A number of [`Calls`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Counted {
    /// Attributes of an object.
    Stat,
    /// A listing, of all its pages.
    List,
    /// Bytes of an object.
    Read,
    /// A new object, of all its parts.
    Write,
    /// A copy inside the store.
    Copy,
    /// A removal.
    Delete,
    /// A further try of a request, which is not counted again under its kind.
    Retry,
    /// A request that failed after all tries. A request for an object that does not exist does not count.
    Failure,
    /// Bytes of requests to a bucket, without their heads.
    Sent,
    /// Bytes of answers of a bucket, without their heads.
    Received,
    /// An object in a listing that no request can name, and that is not shown.
    Hidden,
}

impl Counted {
    /// All that is counted: first the requests.
    pub const ALL: [Self; 11] = [
        Self::Stat,
        Self::List,
        Self::Read,
        Self::Write,
        Self::Copy,
        Self::Delete,
        Self::Retry,
        Self::Failure,
        Self::Sent,
        Self::Received,
        Self::Hidden,
    ];

    /// The number of kinds of requests.
    const REQUESTS: usize = 6;

    /// Returns whether it is a kind of requests.
    #[must_use]
    pub fn is_request(self) -> bool {
        (self as usize) < Self::REQUESTS
    }

    /// Returns the name of the number in statistics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stat => "stat",
            Self::List => "list",
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Delete => "delete",
            Self::Retry => "retries",
            Self::Failure => "errors",
            Self::Sent => "sent_bytes",
            Self::Received => "received_bytes",
            Self::Hidden => "hidden",
        }
    }
}

/// The numbers of requests to the store so far.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<[AtomicU64; Counted::ALL.len()]>);

impl Calls {
    /// Returns the number of this kind so far.
    #[must_use]
    pub fn of(&self, kind: Counted) -> u64 {
        self.0[kind as usize].load(Relaxed)
    }

    /// Returns the number of all requests so far.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.0[..Counted::REQUESTS].iter().map(|count| count.load(Relaxed)).sum()
    }

    /// Counts, and returns the number before.
    pub(crate) fn count(&self, kind: Counted) -> u64 {
        self.add(kind, 1)
    }

    /// Counts several, and returns the number before.
    pub(crate) fn add(&self, kind: Counted, number: u64) -> u64 {
        // Relaxed: a number by itself.
        self.0[kind as usize].fetch_add(number, Relaxed)
    }
}
