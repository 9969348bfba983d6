//! The namespace: a tree of mounts that contexts see.

use super::{Mount, Owned};
use crate::rank::Rank;
use crate::slot::outlive;
use crate::tree::Tree;
use prim::shared::Arc;
use sync::{Mutex, PerCpuArc};

/// Owns a tree of mounts. When the last context that sees it has gone, its mounts are taken apart.
pub(crate) struct Namespace {
    tree: PerCpuArc<Tree>,
    pub(crate) id: u64,
    /// Replaced by `pivot_root`, under the mounts' lock. Emptied by drop alone.
    root: Mutex<Option<Owned>>,
}

impl Namespace {
    /// A namespace of `root` and what is mounted below it.
    pub(crate) fn new(tree: PerCpuArc<Tree>, root: Owned) -> Arc<Self> {
        let id = tree.next_number();
        let namespace = Self { tree, id, root: Mutex::new(None) };
        namespace.claim(&root);
        *namespace.root.lock() = Some(root);
        Arc::new(namespace)
    }

    /// Marks `top` and all that is mounted below it as seen in this namespace.
    pub(super) fn claim(&self, top: &Owned) {
        let mut all = vec![top.clone()];
        while let Some(mount) = all.pop() {
            mount.set_namespace(self.id);
            all.extend(mount.children(&self.tree.domain.read()));
        }
    }

    /// The mount that everything else is mounted below.
    pub(crate) fn root(&self) -> Owned {
        self.root.lock().clone().expect("emptied by drop alone")
    }

    /// Replaces the root mount. The mounts' lock is held.
    pub(super) fn set_root(&self, root: Owned) {
        *self.root.lock() = Some(root);
    }

    /// All mounts, parents before what is mounted on them.
    pub(crate) fn mounts(&self) -> Vec<Owned> {
        let mut all = vec![self.root()];
        let mut next = 0;
        while next < all.len() {
            let children = all[next].children(&self.tree.domain.read());
            all.extend(children);
            next += 1;
        }
        all
    }

    /// A copy of the tree of mounts, and for each old mount the one in its place.
    pub(super) fn copy(&self) -> (Vec<(Owned, Owned)>, Owned) {
        let mut pairs: Vec<(Owned, Owned)> = Vec::new();
        let mut points = self.tree.ranks.lock(Rank::Mounts, &self.tree.mounts);
        for old in self.mounts() {
            let new = Mount::new(old.sb.clone(), old.sb.pin_again(old.root()), old.flags());
            let guard = self.tree.domain.read();
            if let Some(attachment) = old.attachment(&guard) {
                let is_parent = |pair: &&(Owned, Owned)| pair.0.share().ptr_eq(&attachment.parent);
                let parent = pairs.iter().find(is_parent).map(|pair| pair.1.share());
                // Its parent comes before it; a mount point that has just gone takes what is below with it.
                let mountpoint = outlive(&attachment.parent.sb, attachment.mountpoint());
                let attached = parent.is_some_and(|parent| points.attach(&new, &parent, mountpoint).is_ok());
                if !attached {
                    continue;
                }
            }
            pairs.push((old, new));
        }
        let root = pairs[0].1.clone();
        (pairs, root)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let root = self.root.lock().take();
        if let Some(root) = root {
            let mut points = self.tree.ranks.lock(Rank::Mounts, &self.tree.mounts);
            let all = points.dissolve(&root);
            drop(points);
            drop(root);
            drop(all);
        }
        // What was replaced waits for others to fill its batch, and it holds the tree: it would keep it for good.
        self.tree.domain.flush();
    }
}

impl core::fmt::Debug for Namespace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Namespace").field("id", &self.id).finish_non_exhaustive()
    }
}
