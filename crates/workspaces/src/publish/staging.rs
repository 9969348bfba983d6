//! The files of a commit to the base, prepared beside their places.

use super::journal::{Attributes, Path, Step, Target, copy_bytes, found, join, staged, write_all};
use crate::contents::PAGE_BYTES;
use crate::page::ZEROS;
use crate::record::{Entry, Node, Record};
use crate::state::State;
use crate::tree::Tree;
use std::collections::HashMap;
use vfs::{Errno, OpenFile, S_IFDIR, S_IFLNK, S_IFREG};

/// See the [module documentation](self).
pub(super) struct Staging<'s> {
    pub(super) state: &'s State,
    pub(super) tree: &'s Tree,
    pub(super) target: Target<'s>,
    next: u64,
    /// The prepared file of a node, for its other names.
    first: HashMap<u64, Path>,
    /// Directories of the base that move into a new directory: node, and path from the root of the base.
    pub(super) moved: Vec<(u64, Path)>,
    /// Directories of the base that are made anew: the inode number before, and after.
    pub(super) remade: HashMap<u64, u64>,
}

/// Returns the attributes of a node, as a commit gives them to its file.
pub(super) fn attributes(node: &Node) -> Attributes {
    Attributes {
        mode: node.attr.mode,
        owner: (node.attr.uid, node.attr.gid),
        mtime: node.attr.mtime,
        xattrs: node.xattrs.as_ref().map(|xattrs| (**xattrs).clone()),
    }
}

impl<'s> Staging<'s> {
    pub(super) fn new(state: &'s State, tree: &'s Tree, target: Target<'s>) -> Self {
        let (next, first, moved, remade) = Default::default();
        Self { state, tree, target, next, first, moved, remade }
    }

    /// Returns a new path in the directory of the commit.
    pub(super) fn path(&mut self) -> Path {
        self.next += 1;
        staged(&self.next.to_string())
    }

    /// Prepares a node, which will be at `place`. Not for directories of the base.
    pub(super) fn node(&mut self, number: u64, at: &[u8], place: &[u8]) -> Result<(), Errno> {
        self.target.0.progress.step();
        let node = self.tree.node(number).cloned();
        if let Some(first) = self.first.get(&number) {
            return self.target.link(&self.target.0.at(first)?, at);
        }
        let Some(node) = node.filter(|node| node.base.is_none() || self.is_replaced(number, node)) else {
            let file = self.state.base_in(self.tree, number)?.ok_or(Errno::ESTALE)?;
            return self.target.link(&file, at);
        };
        let (context, base) = (&self.target.0.context, self.target.base());
        match node.attr.kind() {
            S_IFDIR => {
                self.target.make_dir(at)?;
                for (name, record) in self.tree.names(number) {
                    let Record::Entry(Entry { node: child, .. }) = *record else { continue };
                    let place = join(place, name);
                    if self.is_base_dir(child) {
                        self.moved.push((child, place));
                    } else {
                        self.node(child, &join(at, name), &place)?;
                    }
                }
            }
            S_IFREG => {
                let file = self.target.create(at)?;
                self.contents(&node, &file)?;
                file.sync(false)?;
            }
            S_IFLNK => context.symlink(node.link_body.as_deref().unwrap_or_default(), base, at)?,
            _ => context.mknod(base, at, node.attr.mode, node.attr.rdev)?,
        }
        self.target.set(at, &attributes(&node))?;
        if !node.attr.is_dir() {
            self.first.insert(number, at.to_vec());
        }
        Ok(())
    }

    /// Returns whether a node is a directory of the base.
    pub(super) fn is_base_dir(&self, number: u64) -> bool {
        match self.tree.node(number) {
            Some(node) => node.base.is_some() && node.attr.is_dir(),
            None => self
                .state
                .base_in(self.tree, number)
                .ok()
                .flatten()
                .is_some_and(|base| base.attr().is_ok_and(|attr| attr.is_dir())),
        }
    }

    /// Returns whether a new file replaces the file of the base: its contents have changed, and it had and has one name.
    pub(super) fn is_replaced(&self, number: u64, node: &Node) -> bool {
        let is_one = node.base.as_ref().is_some_and(|base| base.attr().is_ok_and(|attr| attr.nlink == 1));
        is_one && node.attr.nlink == 1 && self.has_changed_contents(number, node)
    }

    /// Returns whether the contents have changed since the origin.
    pub(super) fn has_changed_contents(&self, number: u64, node: &Node) -> bool {
        let origin = self.state.origin.lock().0.node(number).cloned();
        node.contents.is_some() && origin.is_none_or(|origin| !origin.has_contents_of(node))
    }

    /// Writes the contents of a node to a new file.
    pub(super) fn contents(&self, node: &Node, to: &OpenFile) -> Result<(), Errno> {
        let Some(contents) = &node.contents else { return to.set_len(node.attr.size) };
        let base = node.base.as_ref().map(|base| self.state.shared.lower.open(base)).transpose()?;
        let contents = contents.state.read();
        let shown = contents.shown().0.min(node.attr.size);
        if let Some(base) = base
            && copy_bytes(&base, to, shown)? < shown
        {
            return Err(Errno::ESTALE);
        }
        let mut bytes = ZEROS;
        for (number, page) in contents.pages().take_while(|(number, _)| number * PAGE_BYTES < node.attr.size) {
            // A page without bytes hides the base.
            match page {
                Some(page) => page.read(0, &mut bytes)?,
                None => bytes = ZEROS,
            }
            let at = number * PAGE_BYTES;
            write_all(to, at, &bytes[..(node.attr.size - at).min(PAGE_BYTES) as usize])?;
        }
        to.set_len(node.attr.size)
    }

    /// Returns the steps that replace the contents of a file with several names.
    pub(super) fn overwrite(&mut self, node: &Node, at: Path) -> Result<Step, Errno> {
        let (from, before) = (self.path(), self.path());
        let file = self.target.create(&from)?;
        self.contents(node, &file)?;
        file.sync(false)?;
        let base = node.base.as_ref().ok_or(Errno::ESTALE)?;
        let old = self.target.0.open(base)?;
        let (saved, attr) = (self.target.create(&before)?, old.attr()?);
        copy_bytes(&old, &saved, attr.size)?;
        saved.sync(false)?;
        Ok(Step::Overwrite { from, at, before, found: found(&attr) })
    }

    /// Returns the step that changes the attributes of a file of the base.
    pub(super) fn change(&self, node: &Node, at: Path) -> Result<Step, Errno> {
        let base = node.base.as_ref().ok_or(Errno::ESTALE)?;
        let attr = base.attr_anew()?;
        let mut new = attributes(node);
        let xattrs = new.xattrs.as_ref().map(|_| self.target.0.xattrs(base)).transpose()?;
        let old = Attributes::of(&attr, xattrs);
        if attr.is_dir() {
            new.mtime = attr.mtime;
        }
        let ino = self.remade.get(&attr.ino).copied().unwrap_or(attr.ino);
        Ok(Step::Change { at, ino, new, old })
    }
}
