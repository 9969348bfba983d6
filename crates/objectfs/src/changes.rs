//! Changes of names: creation, removal, renames.
//!
//! # What it is
//! A directory that loses a name gets a marker first, so that it stays when it becomes empty. A file that is open when it loses
//! its name is loaded into its buffer first.

use crate::buffer::Buffer;
use crate::deadline::Deadline;
use crate::kept::{Kept, kept_bits};
use crate::key::{Key, LINK, text};
use crate::meta::Kind;
use crate::node::{Facts, Node};
use crate::nodes::ROOT;
use crate::object_fs::ObjectFs;
use parking_lot::MutexGuard;
use std::time::Instant;
use vfs::{Attr, Errno, NAME_MAX, NewNode, Rename, RenameFlags, S_IFDIR, S_IFLNK, S_IFREG};

/// A rename.
struct Move<'m> {
    node: &'m Node,
    target: Option<&'m Node>,
    /// The directory and the name before the rename.
    old: (u64, &'m str),
    new: (u64, &'m str),
}

impl ObjectFs {
    pub(crate) fn make(&self, until: Deadline, dir: u64, name: &[u8], new: &mut NewNode<'_>) -> Result<u64, Errno> {
        let attr = &mut new.attr;
        let kind = match attr.kind() {
            S_IFDIR => Kind::Dir,
            S_IFREG => Kind::File,
            S_IFLNK if self.options.symlinks => Kind::Link,
            _ => return Err(Errno::EOPNOTSUPP),
        };
        let name = text(name).ok_or(Errno::EINVAL)?;
        let _stays = self.stay(until)?;
        let key = self.new_key(dir, name, kind)?;
        let kept = self.kept_of(attr);
        let meta = if kind == Kind::Dir {
            self.store.mark(until, &key, Some(kept))?;
            None
        } else {
            let made = self.store.create(until, &key, new.link_body.unwrap_or_default(), kept);
            Some(made.inspect_err(|errno| self.note_made_elsewhere(dir, *errno))?)
        };
        self.has_changed(dir);
        let node = self.nodes.lock().known(dir, name, kind, false);
        let mut facts = node.facts();
        match meta {
            Some(meta) => facts.changed_to(meta),
            // Empty: its name did not exist.
            None => {
                *facts = Facts { complete: Some(Instant::now()), has_marker: true, ..Facts::default() };
                facts.keep(self.store.storable(kept));
            }
        }
        facts.fetched = Some(Instant::now());
        let (made, now) = (self.attr(&node, &facts), attr.mtime);
        *attr = Attr { atime: now, mtime: now, ctime: now, ..made };
        Ok(node.id)
    }

    /// Returns the attributes that a new object keeps.
    fn kept_of(&self, attr: &Attr) -> Kept {
        let owner = self.keeps_owners().then_some((attr.uid, attr.gid));
        let mode = Some(attr.mode & kept_bits(attr.is_dir()));
        Kept { mode, uid: owner.map(|of| of.0), gid: owner.map(|of| of.1), ..Kept::default() }.written(attr.mtime)
    }

    /// Marks the names of a directory as incomplete, if a new name was there.
    fn note_made_elsewhere(&self, dir: u64, errno: Errno) {
        if errno == Errno::EEXIST
            && let Some(dir) = self.nodes.lock().get(dir)
        {
            dir.facts().complete = None;
        }
    }

    /// Returns the key of a new name.
    fn new_key(&self, dir: u64, name: &str, kind: Kind) -> Result<Key, Errno> {
        let dir = self.key_of(dir)?;
        if kind == Kind::Link && name.len() + LINK.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let key = dir.of(name, kind).filter(|_| self.store.link_name(name).is_none()).ok_or(Errno::EINVAL)?;
        if self.store.takes(&key) { Ok(key) } else { Err(Errno::ENAMETOOLONG) }
    }

    pub(crate) fn remove(&self, until: Deadline, dir: u64, name: &[u8], node: &Node) -> Result<(), Errno> {
        let name = text(name).ok_or(Errno::ENOENT)?;
        let _stays = self.stay(until)?;
        let key = self.key_of(node.id)?;
        if node.is_dir && self.store.below(until, &key)?.has_names {
            return Err(Errno::ENOTEMPTY);
        }
        self.keep_dir(until, dir)?;
        let mut content = node.content(until)?;
        let _leaving = node.leave();
        self.keep_contents(until, node, &mut content)?;
        self.store.delete(until, &key)?;
        node.facts().is_nameless = true;
        self.note_removal((dir, name));
        Ok(())
    }

    /// Removes a name from the table after its removal from the store. In a rename, a listing between
    /// the two requests has found the old name again.
    fn note_removal(&self, (dir, name): (u64, &str)) {
        self.nodes.lock().remove(dir, name);
        self.has_changed(dir);
    }

    /// Notes a change of the names in `dir` by this mount. The caller has made the request that
    /// changes the names: the answer to a listing that began before this call is void.
    fn has_changed(&self, dir: u64) {
        self.failures.lock().clear();
        if let Some(dir) = self.nodes.lock().get(dir) {
            dir.facts().changed = Some(Instant::now());
        }
    }

    /// Gives the directory a marker, as the directory is about to lose a name.
    fn keep_dir(&self, until: Deadline, dir: u64) -> Result<(), Errno> {
        let Some(node) = self.nodes.lock().get(dir).cloned().filter(|_| dir != ROOT) else { return Ok(()) };
        if !node.facts().has_marker {
            self.store.mark(until, &self.key_of(dir)?, None)?;
            node.facts().has_marker = true;
        }
        Ok(())
    }

    /// Loads a file that is about to lose its name, if it is open.
    fn keep_contents(&self, until: Deadline, node: &Node, content: &mut Option<Buffer>) -> Result<(), Errno> {
        if !node.is_dir && node.facts().opens > 0 {
            self.fill(until, node, content)?;
        }
        Ok(())
    }

    pub(crate) fn move_name(&self, until: Deadline, rename: &Rename<'_>) -> Result<(), Errno> {
        if rename.flags.contains(RenameFlags::EXCHANGE) {
            return Err(Errno::EINVAL);
        }
        let old = (rename.old_dir.node(), text(rename.old_name).ok_or(Errno::ENOENT)?);
        let new = (rename.new_dir.node(), text(rename.new_name).ok_or(Errno::EINVAL)?);
        let node = self.node(rename.inode)?;
        let target = rename.target.map(|target| self.node(target)).transpose()?;
        let moved = Move { node: &node, target: target.as_deref(), old, new };
        let moved = if node.is_dir { self.move_dir(until, &moved) } else { self.move_file(until, &moved) };
        rename.inode.mark_stale();
        moved
    }

    fn move_file(&self, until: Deadline, &Move { node, target, old, new }: &Move<'_>) -> Result<(), Errno> {
        let _stays = self.stay(until)?;
        let (from, to) = (self.key_of(node.id)?, self.new_key(new.0, new.1, node.kind)?);
        self.keep_dir(until, old.0)?;
        let (mut content, mut replaced) = contents_of(until, node, target)?;
        let _leaving = target.map(Node::leave);
        if let (Some(target), Some(replaced)) = (target, &mut replaced) {
            self.keep_contents(until, target, replaced)?;
        }
        let is_dirty = content.as_ref().is_some_and(|buffer| buffer.is_dirty);
        let size = node.facts().meta.as_ref().map_or(0, |meta| meta.size);
        let copied = if is_dirty { Err(Errno::EOPNOTSUPP) } else { self.store.copy(until, &from, &to, size) };
        match copied {
            Err(Errno::EOPNOTSUPP) => self.write_as(until, node, &mut content, &to)?,
            Err(errno) => return Err(errno),
            // The copy has its own time, perhaps its own tag.
            Ok(()) => node.facts().fetched = None,
        }
        // From here on the new name is there, even if the old one cannot be removed.
        if let Some(target) = target {
            let replaced = self.key_of(target.id)?;
            if replaced != to {
                self.store.delete(until, &replaced)?;
            }
            target.facts().is_nameless = true;
        }
        self.note_move(old, new);
        self.store.delete(until, &from)?;
        self.note_removal(old);
        Ok(())
    }

    /// Writes the contents of a file as another object.
    fn write_as(&self, until: Deadline, node: &Node, content: &mut Option<Buffer>, to: &Key) -> Result<(), Errno> {
        let was_loaded = content.is_some();
        let from = self.key_of(node.id)?;
        let buffer = self.load(until, node, content)?;
        self.put(until, node, (&from, to), buffer)?;
        if !was_loaded {
            *content = None;
            node.facts().local = None;
        }
        Ok(())
    }

    fn move_dir(&self, until: Deadline, &Move { node, target, old, new }: &Move<'_>) -> Result<(), Errno> {
        if !self.options.copies_directories {
            return Err(Errno::EXDEV);
        }
        let _alone = until.lock(|| self.moves.write(), |left| self.moves.try_write_for(left))?;
        let (from, to) = (self.key_of(node.id)?, self.new_key(new.0, new.1, Kind::Dir)?);
        if target.is_some() && self.store.below(until, &to)?.has_names {
            return Err(Errno::ENOTEMPTY);
        }
        self.keep_dir(until, old.0)?;
        let copied = self.store.copy_prefix(until, &from, &to)?;
        if let Some(target) = target {
            target.facts().is_nameless = true;
        }
        node.facts().has_marker = true;
        // From here on the new names are there, even if an old one cannot be removed.
        self.note_move(old, new);
        self.store.remove_all(until, copied)?;
        self.note_removal(old);
        Ok(())
    }

    /// Moves the name in the table, and notes both directories as changed.
    fn note_move(&self, old: (u64, &str), new: (u64, &str)) {
        self.nodes.lock().rename(old, new);
        self.has_changed(old.0);
        self.has_changed(new.0);
    }
}

type Content<'n> = MutexGuard<'n, Option<Buffer>>;

/// Returns the write buffers of a file that moves and of the file that it replaces, locked in the
/// order of their nodes.
fn contents_of<'n>(
    until: Deadline,
    node: &'n Node,
    target: Option<&'n Node>,
) -> Result<(Content<'n>, Option<Content<'n>>), Errno> {
    match target {
        None => Ok((node.content(until)?, None)),
        Some(target) if node.id < target.id => {
            let content = node.content(until)?;
            Ok((content, Some(target.content(until)?)))
        }
        Some(target) => {
            let replaced = target.content(until)?;
            Ok((node.content(until)?, Some(replaced)))
        }
    }
}
