//! A commit: the changes of a fork become changes of the tree that it was made from.
//!
//! # What it is
//! A merge of three maps: the fork's tree now, its origin, and the parent's tree now. A record that only the fork changed
//! replaces the parent's. Each name has its own record, so different names in one directory commute. The length and the links of
//! a directory add up, and its times become the later ones. Everything else that both have changed is a conflict. The new tree is
//! built aside, and checked: each changed file has a path. So nothing is added to a directory that the other side removed, and
//! no directory is inside of itself.
//!
//! With a conflict nothing changes. A fork of the trunk is [published](crate::publish) to the base instead.
//!
//! # How it is locked
//! The gate of the fork, then the gate of its parent, for the whole commit.

use crate::diff::{Change, changes, node_of, path_of};
use crate::record::{Key, Node, Part, Record};
use crate::rollback::exchange;
use crate::state::{Parent, State, count, give_back, used_by};
use crate::store::Fork;
use crate::tree::Tree;
use crate::undo::{At, undone};
use crate::upper::event::Event;
use crate::usage::Usage;
use core::fmt;
use prim::atomic::Ordering::Relaxed;
use std::collections::BTreeMap;
use std::sync::Arc;
use vfs::{Errno, Foreign, S_IFDIR};

/// The options of a commit.
///
/// ```
/// use lightfoot_workspaces::CommitOptions;
///
/// assert!(!CommitOptions::default().check_only);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommitOptions {
    /// Only look for conflicts.
    pub check_only: bool,
    /// Which side wins, where the fork and the parent have changed a file.
    pub conflicts: OnConflict,
    /// Also publish set-user-ID and set-group-ID bits, devices, files of other owners, and extended attributes of the namespaces
    /// `security` and `trusted`.
    pub privileged: bool,
    /// Also report a conflict for each file or listing that a program has read in the fork, and that the parent, or the base, has
    /// changed since: see [`note_reads`](crate::Workspaces::note_reads).
    pub reads: bool,
}

/// Which side wins, where the fork and the parent have changed a file. Conflicts of directories, of files with several
/// names, of files that one side has renamed, of rights and of reserved names are always reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnConflict {
    /// None: the commit reports the conflict, and changes nothing.
    #[default]
    Refuse,
    /// The parent gets the file of the fork, and loses its own change.
    Mine,
    /// The parent keeps its file, and the fork loses its change.
    Theirs,
}

/// The result of a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Commit {
    /// The parent has these changes now; with [`CommitOptions::check_only`]: would have.
    Done(Vec<Change>),
    /// The parent has none of the changes, for these reasons.
    Conflicts(Vec<Conflict>),
}

/// A reason against a commit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Conflict {
    /// The path from the root of the fork, without a slash at the start.
    pub path: Vec<u8>,
    /// The kind of the conflict.
    pub kind: ConflictKind,
}

/// The kind of a conflict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ConflictKind {
    /// The fork and the parent have given the name to different files, or one has removed it.
    Name,
    /// Both have changed the contents of the file.
    Contents,
    /// Both have changed the mode, the owner or the extended attributes.
    Attributes,
    /// One side has removed the file, or its directory, which the other side has changed.
    Removed,
    /// The file needs a privilege: it has a set-user-ID or set-group-ID bit, is a device, has another owner, or has attributes of
    /// the system.
    Privilege,
    /// The base's directory cannot have the name: a commit keeps its files there.
    Reserved,
    /// A program has read it in the fork, and the parent or the base has changed it since.
    Read,
}

impl fmt::Display for ConflictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "changed or replaced here and in the parent",
            Self::Contents => "the contents were changed here and in the parent",
            Self::Attributes => "mode, owner or attributes were changed here and in the parent",
            Self::Removed => "changed on one side and removed on the other",
            Self::Privilege => "set-user-ID, device, owner or system attribute needs a privilege",
            Self::Reserved => "the name is reserved for commits",
            Self::Read => "read here, and changed in the parent since",
        })
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C {}: {}", Foreign::bytes(&self.path), self.kind)
    }
}

impl Fork {
    /// Makes the changes of the fork changes of the tree that it was made from; see [`Commit`]. The changes of a fork of the trunk are
    /// written into the base. All or nothing: the base has them after a crash, or a later
    /// [`recover`](Self::recover) completes or removes them. The fork stays, and its changes so far are not
    /// [changes](Self::changes) any more.
    ///
    /// # Errors
    /// `EINVAL`: this is the trunk; `ENODATA`: the reads of the fork are not known; `ESTALE`: the parent was discarded; `ENOSPC`: the
    /// limits of the parent; `EBUSY`: another commit to the base runs or was cut off; the errors of the base.
    pub fn commit(&self, options: CommitOptions) -> Result<Commit, Errno> {
        let done = match &self.0.parent {
            Parent::Base => Err(Errno::EINVAL),
            _ if options.reads && self.0.reads().is_none() => Err(Errno::ENODATA),
            Parent::Trunk => crate::publish::publish(&self.0, options),
            Parent::Fork(parent) => merge_into(&self.0, &*parent.upgrade().ok_or(Errno::ESTALE)?, options),
        }?;
        let seen = |conflict: Conflict| Conflict { path: self.0.seen(&conflict.path), ..conflict };
        Ok(match done {
            Commit::Conflicts(conflicts) => Commit::Conflicts(conflicts.into_iter().map(seen).collect()),
            done => done,
        })
    }
}

fn merge_into(state: &State, parent: &State, options: CommitOptions) -> Result<Commit, Errno> {
    let (is_mine, _closed) = (options.conflicts == OnConflict::Mine, state.close());
    let (stale, done) = {
        // The pause of this fork covers the parent.
        let _closed = parent.gate.write();
        let (mut ours, origin, mut theirs) = (state.tree.lock().clone(), state.origin(), parent.tree.lock().clone());
        let (mut used, mut before) = (parent.usage.now(), Conflicts::new());
        let (merged, usage) = loop {
            let usage = Usage::new(parent.usage.limits, used);
            let (merged, mut conflicts) = Merge::of(state, parent, (&ours, &origin, &theirs), &usage)?;
            if options.reads {
                stale_reads(state, (&ours, &origin, &theirs), &mut conflicts)?;
            }
            if conflicts.is_empty() {
                usage.settle(theirs.bytes, merged.bytes);
                break (merged, usage);
            }
            // Each time, at least one change ends.
            let is_refused = options.conflicts == OnConflict::Refuse || conflicts == before;
            let side = if is_mine { &theirs } else { &ours };
            match if is_refused { None } else { undone(state, (side, &origin), &conflicts)? } {
                Some(tree) if is_mine => (used, theirs) = (used_by(&tree), tree),
                Some(tree) => ours = tree,
                None => return Ok(Commit::Conflicts(conflicts.into_keys().collect())),
            }
            before = conflicts;
        };
        let done = changes(state, &ours, &origin)?;
        if options.check_only {
            return Ok(Commit::Done(done));
        }
        let settle = Event::Settle { fork: state.id, at: state.settled.load(Relaxed), is_new: true };
        let merged = parent.replace(merged, usage);
        let are_undone = !is_mine && !before.is_empty();
        let ours = are_undone.then(|| state.replace_counted(ours));
        let stale = exchange([merged].into_iter().chain(ours).collect(), false, Some(settle))?;
        *state.origin.lock() = (state.tree.lock().clone(), state.usage.now());
        // The parent has the contents of this fork now.
        state.begin_epoch();
        (stale, done)
    };
    stale.iter().zip([parent, state]).for_each(|(stale, of)| stale.mark(of));
    Ok(Commit::Done(done))
}

/// Adds the reads of the fork that the parent or the base has changed since.
fn stale_reads(
    state: &State,
    (ours, origin, theirs): (&Tree, &Tree, &Tree),
    conflicts: &mut Conflicts,
) -> Result<(), Errno> {
    let Some(reads) = state.reads() else { return Ok(()) };
    let mut paths = state.stale_reads(&reads)?;
    for (key, new, old) in theirs.map.diff(&origin.map, Record::is_same) {
        match (Part::of(key), new.and_then(Record::node)) {
            (Some(Part::Name(dir, name)), _) if reads.has_name(dir, name) => {
                let base = if new.is_none() || old.is_none() { state.covered_in(ours, dir, name)? } else { None };
                let is_other = node_of(new, base) != node_of(old, base);
                paths.extend(path_of(state, theirs, (dir, name)).filter(|_| is_other));
            }
            (Some(Part::Node(number)), Some(new))
                if reads.has_node(number) && !new.looks_like(&*origin.before(new)?) =>
            {
                let place = state.name_of(theirs, number)?.or(state.name_of(origin, number)?);
                paths.extend(place.and_then(|(dir, name)| path_of(state, theirs, (dir, &name))));
            }
            _ => {}
        }
    }
    let read = |path| (Conflict { path, kind: ConflictKind::Read }, None);
    conflicts.extend(paths.into_iter().map(read));
    Ok(())
}

struct Merge<'m> {
    merged: Tree,
    state: &'m State,
    parent: &'m State,
    ours: &'m Tree,
    origin: &'m Tree,
    theirs: &'m Tree,
    /// The use of the parent, as it will be.
    usage: &'m Usage,
    conflicts: Conflicts,
    /// Directories with an entry that both sides have removed, and whether that was a directory.
    counted_twice: Vec<(u64, bool)>,
}

/// Conflicts with their places.
pub(crate) type Conflicts = BTreeMap<Conflict, Option<At>>;

impl<'m> Merge<'m> {
    /// Merges our changes since the origin into their tree. Returns the result, and the conflicts.
    fn of(
        state: &'m State,
        parent: &'m State,
        (ours, origin, theirs): (&'m Tree, &'m Tree, &'m Tree),
        usage: &'m Usage,
    ) -> Result<(Tree, Conflicts), Errno> {
        let merged = theirs.clone();
        let mut merge = Self {
            merged,
            state,
            parent,
            ours,
            origin,
            theirs,
            usage,
            conflicts: Conflicts::new(),
            counted_twice: Vec::new(),
        };
        merge.run()?;
        Ok((merge.merged, merge.conflicts))
    }

    fn run(&mut self) -> Result<(), Errno> {
        let (ours, origin) = (self.ours, self.origin);
        for (key, new, old) in ours.map.diff(&origin.map, Record::is_same) {
            match Part::of(key) {
                Some(Part::Name(dir, name)) => self.name((dir, name), new, old)?,
                Some(Part::Node(number)) => self.node(number, new, old)?,
                _ => {}
            }
        }
        for (key, _, _) in ours.map.diff(&origin.map, Record::is_same) {
            let Some(Part::Place(number)) = Part::of(key) else { continue };
            let Some((dir, name)) = ours.place(number) else { continue };
            if self.state.is_of(&self.merged, (dir, &name), number)? {
                self.merged.set_place(number, dir, name);
            }
        }
        for (dir, is_dir) in core::mem::take(&mut self.counted_twice) {
            if is_alive(&self.merged, dir) {
                self.merged.count(dir, is_dir, 1)?;
            }
        }
        self.check_paths()
    }

    fn conflict(&mut self, path: Option<Vec<u8>>, kind: ConflictKind, at: Option<At>) {
        self.conflicts.insert(Conflict { path: path.unwrap_or_default(), kind }, at);
    }

    /// Returns a path of a node on one of the sides.
    fn path(&self, number: u64) -> Option<Vec<u8>> {
        [self.ours, self.theirs, self.origin].into_iter().find_map(|tree| {
            let (dir, name) = tree.place(number)?;
            path_of(self.state, tree, (dir, &name))
        })
    }

    /// Merges a name that the fork has changed.
    fn name(&mut self, (dir, name): (u64, &[u8]), new: Option<&Record>, old: Option<&Record>) -> Result<(), Errno> {
        let their = self.theirs.name(dir, name);
        // A name that the base shows through on one side is the base's on the other.
        let is_shown = [new, old, their].iter().any(Option::is_none);
        let base = if is_shown { self.state.covered_in(self.ours, dir, name)? } else { None };
        let [our_node, old_node, their_node] = [new, old, their].map(|record| node_of(record, base));
        let lives = |number: Option<u64>| {
            number.is_some_and(|number| [self.ours, self.theirs].iter().any(|tree| is_alive(tree, number)))
        };
        // Both have removed the file.
        let is_gone = our_node.is_none() && their_node.is_none() && !lives(old_node);
        if our_node == old_node || is_gone {
            // Both sides have counted the entry that their directory lost.
            if is_gone && old_node.is_some() {
                let kind = match old {
                    Some(Record::Entry(entry)) => Some(entry.kind),
                    _ => self.state.base_attr(self.ours, (dir, name))?.map(|attr| attr.kind()),
                };
                self.counted_twice.push((dir, kind == Some(S_IFDIR)));
            }
            return Ok(());
        }
        if their_node != old_node {
            let path = [self.ours, self.theirs].into_iter().find_map(|tree| path_of(self.state, tree, (dir, name)));
            self.conflict(path, ConflictKind::Name, Some(At::Name((dir, name.into()))));
            return Ok(());
        }
        if let Some(left) = old_node.filter(|left| !is_alive(self.ours, *left)) {
            self.left(left)?;
        }
        self.merged.set_name(dir, name, new);
        Ok(())
    }

    /// Merges the attributes and the contents of a node that the fork has changed.
    fn node(&mut self, number: u64, new: Option<&Record>, old: Option<&Record>) -> Result<(), Errno> {
        let ours = match new {
            Some(Record::Node(node)) if node.attr.nlink > 0 => node.clone(),
            _ => return self.left(number),
        };
        let Some(theirs) = self.theirs.node(number).filter(|node| node.attr.nlink > 0).cloned() else {
            if old.is_some() {
                let at = self.state.name_of(self.ours, number)?.map(At::Name);
                self.conflict(self.path(number), ConflictKind::Removed, at);
            }
            count(self.usage, &ours);
            self.merged.set_node(number, ours);
            return Ok(());
        };
        match three_way(&ours, &*self.origin.before(&ours)?, &theirs) {
            Ok(merged) => {
                give_back(self.usage, &theirs);
                count(self.usage, &merged);
                self.merged.set_node(number, Arc::new(merged));
            }
            Err(kind) => self.conflict(self.path(number), kind, Some(At::file(number, kind))),
        }
        Ok(())
    }

    /// Removes a node that the fork has removed, if the parent has its record.
    fn left(&mut self, number: u64) -> Result<(), Errno> {
        let Some(theirs) = self.merged.node(number).filter(|node| node.attr.nlink > 0).cloned() else { return Ok(()) };
        let old = self.origin.before(&theirs)?;
        if theirs.attr.nlink != old.attr.nlink || !theirs.looks_like(&old) {
            let at = self.parent.name_of(self.theirs, number)?.map(At::Name);
            self.conflict(self.path(number), ConflictKind::Removed, at);
        } else if self.parent.is_open(number) {
            self.merged.take_links(number);
        } else {
            give_back(self.usage, &theirs);
            self.merged.take_node(number);
        }
        Ok(())
    }

    /// Checks that each name that one side has changed has a path, and each file that the fork has changed a name.
    fn check_paths(&mut self) -> Result<(), Errno> {
        let (merged, root) = (core::mem::take(&mut self.merged), self.state.root);
        let mut lost = Vec::new();
        for side in [self.ours, self.theirs] {
            for (key, record, _) in side.map.diff(&self.origin.map, Record::is_same) {
                let (place, is_lost, at) = match (Part::of(key), record) {
                    (Some(Part::Name(dir, name)), Some(Record::Entry(_))) => {
                        ((dir, Key::from(name)), !self.state.is_reached(&merged, dir)?, None)
                    }
                    (Some(Part::Node(number)), Some(Record::Node(node))) if node.attr.nlink > 0 && number != root => {
                        let Some(place) = self.state.name_of(side, number)? else { continue };
                        (place.clone(), self.state.name_of(&merged, number)?.is_none(), Some(At::Name(place)))
                    }
                    _ => continue,
                };
                // A name in a directory that its own side has removed is not lost now.
                if is_lost && self.state.is_reached(side, place.0)? {
                    lost.extend(path_of(self.state, side, (place.0, &place.1)).map(|path| (path, at)));
                }
            }
        }
        self.merged = merged;
        lost.into_iter().for_each(|(path, at)| self.conflict(Some(path), ConflictKind::Removed, at));
        Ok(())
    }
}

/// Returns whether a node has a name in a tree.
fn is_alive(tree: &Tree, number: u64) -> bool {
    tree.node(number).is_some_and(|node| node.attr.nlink > 0)
}

/// Returns one of three values: the one that changed. `None`: both changed, to different values.
fn either<T: PartialEq + Clone>(ours: &T, old: &T, theirs: &T) -> Option<T> {
    if ours == old || ours == theirs { Some(theirs.clone()) } else { (theirs == old).then(|| ours.clone()) }
}

/// Merges two states of a node.
fn three_way(ours: &Node, old: &Node, theirs: &Node) -> Result<Node, ConflictKind> {
    let rights = |node: &Node| (node.attr.mode, node.attr.uid, node.attr.gid);
    let (mode, uid, gid) = either(&rights(ours), &rights(old), &rights(theirs)).ok_or(ConflictKind::Attributes)?;
    let xattrs = either(&ours.xattrs, &old.xattrs, &theirs.xattrs).ok_or(ConflictKind::Attributes)?;
    let is_changed = |node: &Node| !node.has_contents_of(old);
    let from = match (is_changed(ours), is_changed(theirs)) {
        (true, true) if !ours.has_contents_of(theirs) => return Err(ConflictKind::Contents),
        (true, _) => ours,
        _ => theirs,
    };
    let by = |of: fn(&Node) -> u64| of(theirs).saturating_add_signed(of(ours) as i64 - of(old) as i64);
    let size = if ours.attr.is_dir() { by(|node| node.attr.size) } else { from.attr.size };
    let nlink = u32::try_from(by(|node| node.attr.nlink.into())).unwrap_or(u32::MAX);
    let later = |of: fn(&Node) -> i64| of(ours).max(of(theirs));
    let attr = vfs::Attr {
        mode,
        uid,
        gid,
        size,
        nlink,
        blocks: from.attr.blocks,
        atime: later(|node| node.attr.atime),
        mtime: if ours.attr.is_dir() { later(|node| node.attr.mtime) } else { from.attr.mtime },
        ctime: later(|node| node.attr.ctime),
        ..theirs.attr
    };
    Ok(Node { attr, xattrs, contents: from.contents.clone(), ..theirs.clone() })
}
