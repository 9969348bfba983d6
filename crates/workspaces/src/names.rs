//! Names and paths of nodes, in any tree of a store.
//!
//! # What it is
//! A node that has changed has a place in its tree; a directory above it too. Other nodes are where lookups found them. Both may be
//! wrong for a file with several names, so a name is checked against the tree and the base before its use.

use crate::record::{Place, Record};
use crate::remade::Remade;
use crate::state::State;
use crate::tree::Tree;
use std::sync::Arc;
use vfs::{Attr, Errno, PathRef};

impl State {
    /// Returns a path from the root of the tree as programs see it.
    pub(crate) fn seen(&self, path: &[u8]) -> Vec<u8> {
        let below = path.strip_prefix(&*self.dir).and_then(|rest| rest.strip_prefix(b"/"));
        if path == self.dir { Vec::new() } else { below.unwrap_or(path).to_vec() }
    }

    /// Returns the base's node of a name, if the base shows through in the directory.
    pub(crate) fn covered(&self, dir: u64, name: &[u8]) -> Result<Option<u64>, Errno> {
        match &self.current(dir)?.base {
            Some(base) => self.of_base(base, name),
            None => Ok(None),
        }
    }

    /// Returns the node of a name in a directory of the base, if there is one.
    fn of_base(&self, dir: &PathRef, name: &[u8]) -> Result<Option<u64>, Errno> {
        let found = self.shared.lower.find_if(dir, name)?;
        found.map(|found| Ok(self.number(found.attr()?.ino))).transpose()
    }

    /// As [`covered`](Self::covered), in another tree of the store. `None` also for a directory that neither has.
    pub(crate) fn covered_in(&self, tree: &Tree, dir: u64, name: &[u8]) -> Result<Option<u64>, Errno> {
        self.base_in(tree, dir)?.map_or(Ok(None), |base| self.of_base(&base, name))
    }

    /// Returns the base behind a directory, in a tree of the store.
    pub(crate) fn base_in(&self, tree: &Tree, dir: u64) -> Result<Option<Arc<PathRef>>, Errno> {
        if let Some(node) = tree.node(dir) {
            return Ok(node.base.clone());
        }
        if let Some(held) = self.held.lock().get(dir) {
            return Ok(Some(held.file.clone()));
        }
        // The directory has not changed, nor has a directory above it.
        let Some((above, name)) = tree.place(dir) else { return Ok(None) };
        let Some(above) = self.base_in(tree, above)? else { return Ok(None) };
        Ok(self.shared.lower.find_if(&above, &name)?.map(Arc::new))
    }

    /// Returns the attributes of a name's file in the base, with its number in the forks, as they are now.
    pub(crate) fn base_attr(&self, tree: &Tree, (dir, name): (u64, &[u8])) -> Result<Option<Attr>, Errno> {
        let Some(base) = self.base_in(tree, dir)? else { return Ok(None) };
        let Some(found) = self.shared.lower.find_if(&base, name)? else { return Ok(None) };
        let attr = found.attr_anew()?;
        Ok(Some(Attr { ino: self.number(attr.ino), ..attr }))
    }

    /// Keeps what this fork has changed, after a commit of another fork: the names of files that were `replaced`, and directories.
    pub(crate) fn follow(&self, remade: &Remade, replaced: &[u64]) {
        let _inside = self.enter();
        // An error of the log, here and below: the next start does not have the names.
        let _ = self.anchor(remade);
        let mut tree = self.tree.lock();
        let old = tree.clone();
        replaced.iter().for_each(|number| tree.keep_name(*number));
        let _ = self.log(true, || self.changed(&old, &tree).into_iter().collect());
        self.usage.settle(old.bytes, tree.bytes);
    }

    /// Returns whether a path leads to a directory that has changed, in a tree of the store.
    pub(crate) fn is_reached(&self, tree: &Tree, dir: u64) -> Result<bool, Errno> {
        let mut at = dir;
        for _ in 0..vfs::PATH_MAX {
            if at == self.root {
                return Ok(true);
            }
            match tree.place(at).or_else(|| self.held_places(at).pop()) {
                Some((above, name)) if self.is_of(tree, (above, &name), at)? => at = above,
                _ => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Returns a name of a node that has a record, in a tree of the store.
    pub(crate) fn name_of(&self, tree: &Tree, number: u64) -> Result<Option<Place>, Errno> {
        let held = self.held_places(number);
        for (dir, name) in tree.place(number).into_iter().chain(held) {
            if self.is_of(tree, (dir, &name), number)? {
                return Ok(Some((dir, name)));
            }
        }
        Ok(tree.other_name(number))
    }

    /// Returns the places by which lookups found a node of the base.
    pub(crate) fn held_places(&self, number: u64) -> Vec<Place> {
        self.held.lock().places(number)
    }

    /// Returns whether a name is of a node, in a tree of the store.
    pub(crate) fn is_of(&self, tree: &Tree, (dir, name): (u64, &[u8]), number: u64) -> Result<bool, Errno> {
        Ok(match tree.name(dir, name) {
            Some(Record::Entry(entry)) => entry.node == number,
            Some(_) => false,
            None => self.covered_in(tree, dir, name)? == Some(number),
        })
    }
}
