//! The namespace: a tree of mounts, shared by contexts.

use crate::cache::tree::Tree;
use crate::mount::Owned;
use crate::mount::attach::{LockedMounts, subtree};
use core::mem;
use prim::shared::PlainArc as Arc;
use std::collections::BTreeMap;
use sync::PerCpuArc;
use sync::rcu::RcuOption;

/// Owns a tree of mounts. After its last context, its mounts are detached.
pub(crate) struct Namespace {
    tree: PerCpuArc<Tree>,
    pub(crate) id: u64,
    /// Replaced by `pivot_root`, under the mounts' lock. Each new context loads it, so readers take no lock. Emptied by drop
    /// alone.
    root: RcuOption<Owned>,
}

impl Namespace {
    /// Returns a namespace of `root` and the mounts below it.
    pub(crate) fn new(tree: PerCpuArc<Tree>, root: Owned) -> Arc<Self> {
        let id = tree.next_number();
        let namespace = Self { root: RcuOption::some(&tree.domain, root), tree, id };
        namespace.claim(&namespace.root());
        Arc::new(namespace)
    }

    /// Marks `top` and every mount below it as part of this namespace.
    pub(crate) fn claim(&self, top: &Owned) {
        subtree(top).iter().for_each(|mount| mount.set_namespace(self.id));
    }

    pub(crate) fn root(&self) -> Owned {
        self.root.load(&self.tree.domain.read()).cloned().expect("emptied by drop alone")
    }

    /// Replaces the root mount. The mounts' lock is held.
    pub(crate) fn set_root(&self, root: Owned) {
        self.root.set(&self.tree.domain, Some(root));
    }

    /// Returns all mounts, parents before children.
    pub(crate) fn mounts(&self) -> Vec<Owned> {
        subtree(&self.root())
    }

    /// Returns a copy of the tree of mounts: the new mounts, by the numbers of the old ones, and the new root.
    pub(crate) fn copy(&self) -> (BTreeMap<u64, Owned>, Owned) {
        let mut points = LockedMounts::lock(&self.tree);
        let old_root = self.root();
        let root = old_root.copy();
        let mut copies = BTreeMap::from([(old_root.id, root.clone())]);
        for old in self.mounts() {
            // If the mount point was just removed, the mounts below it are left out.
            let _ = points.attach_copy(&old, &mut copies);
        }
        (copies, root)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let mut cell = mem::replace(&mut self.root, RcuOption::none(&self.tree.domain));
        if let Some(root) = cell.get_mut() {
            let mut points = LockedMounts::lock(&self.tree);
            let all = points.dissolve(root);
            drop(points);
            drop(cell);
            drop(all);
        }
        // Replaced values wait until their batch is full, and they hold the tree: without a flush they would
        // keep the tree forever.
        self.tree.domain.flush();
    }
}

impl core::fmt::Debug for Namespace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Namespace").field("id", &self.id).finish_non_exhaustive()
    }
}
