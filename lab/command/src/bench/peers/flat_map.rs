//! Flat maps from full paths to metadata, in two crates of concurrent hash maps.
//!
//! A flat map finds a file in one step, whatever its depth. It checks no permission and follows no link, and a rename of a
//! directory must visit all paths below it.

use super::contender::Peer;
use foldhash::fast::RandomState;
use lightfoot::Metadata;

/// A map of the crate `papaya`: readers take no lock.
pub(super) struct PapayaPaths(papaya::HashMap<String, Metadata, RandomState>);

impl Peer for PapayaPaths {
    type Metadata = Metadata;

    fn empty() -> Self {
        Self(papaya::HashMap::default())
    }

    fn add(&mut self, path: &str, metadata: Metadata) {
        self.0.pin().insert(path.into(), metadata);
    }

    fn metadata(&self, path: &str) -> Option<Metadata> {
        self.0.pin().get(path).copied()
    }

    fn len(metadata: &Metadata) -> u64 {
        metadata.len()
    }
}

/// A map of the crate `dashmap`: readers take the lock of one of its shards.
pub(super) struct DashPaths(dashmap::DashMap<String, Metadata, RandomState>);

impl Peer for DashPaths {
    type Metadata = Metadata;

    fn empty() -> Self {
        Self(dashmap::DashMap::default())
    }

    fn add(&mut self, path: &str, metadata: Metadata) {
        self.0.insert(path.into(), metadata);
    }

    fn metadata(&self, path: &str) -> Option<Metadata> {
        self.0.get(path).map(|entry| *entry)
    }

    fn len(metadata: &Metadata) -> u64 {
        metadata.len()
    }
}
