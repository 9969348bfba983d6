//! A common design of virtual file systems in user space: nodes with reference counts, and in each directory a hash map
//! under a lock.

use super::contender::Peer;
use foldhash::fast::RandomState;
use lightfoot::Metadata;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;

type Children = RwLock<HashMap<Box<str>, Arc<Node>, RandomState>>;

/// A file or directory. Files have no children.
struct Node {
    metadata: Option<Metadata>,
    children: Children,
}

impl Node {
    fn new(metadata: Option<Metadata>) -> Arc<Self> {
        Arc::new(Self { metadata, children: Children::default() })
    }
}

/// The tree, by its root.
pub(super) struct LockedTree(Arc<Node>);

impl LockedTree {
    /// Returns the node at `path`: each step locks a directory for reading and takes a reference on
    /// the child.
    fn node(&self, path: &str) -> Option<Arc<Node>> {
        let mut node = Arc::clone(&self.0);
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let child = Arc::clone(node.children.read().get(name)?);
            node = child;
        }
        Some(node)
    }
}

impl Peer for LockedTree {
    type Metadata = Metadata;

    fn empty() -> Self {
        Self(Node::new(None))
    }

    fn add(&mut self, path: &str, metadata: Metadata) {
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some(dir) = self.node(dir) {
            dir.children.write().insert(name.into(), Node::new(Some(metadata)));
        }
    }

    fn metadata(&self, path: &str) -> Option<Metadata> {
        self.node(path)?.metadata
    }

    fn len(metadata: &Metadata) -> u64 {
        metadata.len()
    }
}
