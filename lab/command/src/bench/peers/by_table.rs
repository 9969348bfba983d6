//! Lightfoot with a table of whole paths in front of the walk.

use super::contender::Peer;
use lightfoot::{Context, Metadata, RamFs, Vfs};

/// Bytes of the table: room for the files of the tree and some more.
const BYTES: usize = 2 << 20;

/// A tree in memory with a table.
pub(super) struct ByTable(Context);

impl Peer for ByTable {
    type Metadata = Metadata;

    fn empty() -> Self {
        Self(Vfs::builder().whole_paths(BYTES).build(RamFs::new()).context())
    }

    fn add(&mut self, path: &str, metadata: Metadata) {
        if metadata.is_dir() {
            return self.0.create_dir(path).expect("its parent is there");
        }
        let file = self.0.create(path).expect("its parent is there");
        file.set_len(metadata.len()).expect("memory can be written to");
    }

    fn metadata(&self, path: &str) -> Option<Metadata> {
        self.0.metadata(path).ok()
    }

    fn len(metadata: &Metadata) -> u64 {
        metadata.len()
    }
}
