//! `MemoryFS` of the crate `vfs`: one map from full paths to files, under one lock.

use super::contender::Peer;
use lightfoot::Metadata;
use std::io::Write;
use vfs_crate::{FileSystem, MemoryFS, VfsMetadata};

/// The file system.
pub(super) struct MemoryFsPeer(MemoryFS);

impl Peer for MemoryFsPeer {
    type Metadata = VfsMetadata;

    fn empty() -> Self {
        Self(MemoryFS::new())
    }

    fn add(&mut self, path: &str, metadata: Metadata) {
        if metadata.is_dir() {
            return self.0.create_dir(path).expect("its parent is there");
        }
        let mut file = self.0.create_file(path).expect("its parent is there");
        file.write_all(&vec![0; metadata.len() as usize]).expect("memory can be written to");
    }

    fn metadata(&self, path: &str) -> Option<VfsMetadata> {
        self.0.metadata(path).ok()
    }

    fn len(metadata: &VfsMetadata) -> u64 {
        metadata.len
    }
}
