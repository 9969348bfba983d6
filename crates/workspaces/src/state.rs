//! The state of one fork, and the state that all forks of a store share.
//!
//! # What it is
//! Each change reads the base first, where it must. Then it takes effect in one critical section on the fork's map, inside of the
//! fork's gate, which a new fork closes: so a new fork has each call whole or not at all.
//!
//! # How it is locked
//! The gate, then the lock of a file's contents, then the fork's mutex, or the mutex of the held files. The mutexes are never held
//! during a call to the base. A lock of contents is held while the base is read for a page.

use crate::contents::{Contents, File, Source};
use crate::gate::LateEnds;
use crate::lower::{Held, HeldFiles, Lower};
use crate::page::Pages;
use crate::reads::Reads;
use crate::record::{Node, Record, Stamp, is_name};
use crate::tree::{Tree, Unchanged};
use crate::upper::Upper;
use crate::upper::event::{Event, Name};
use crate::usage::{ForkLimits, Usage};
use core::cell::OnceCell;
use core::fmt;
use parking_lot::{Mutex, RwLock};
use prim::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use vfs::{Attr, Errno, Inode, Invalidator, NewInode, Open, OpenFlags, Valid, Want};

/// The part that all forks of a store have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) lower: Lower,
    pub(crate) pages: Pages,
    pub(crate) upper: Option<Upper>,
    /// Whether new forks note reads.
    pub(crate) notes_reads: AtomicBool,
    next_node: AtomicU64,
    next_epoch: AtomicU64,
    next_fork: AtomicU64,
    /// All forks, with those that have ended.
    forks: Mutex<Vec<Weak<State>>>,
}

impl Shared {
    /// `upper`: the directory that keeps the store. `next`: the next numbers of nodes, epochs and forks.
    pub(crate) fn new(lower: Lower, pages: Pages, upper: Option<Upper>, next: (u64, u64, u64)) -> Self {
        let (next_node, next_epoch, next_fork) = (next.0.into(), next.1.into(), next.2.into());
        let (notes_reads, forks) = Default::default();
        Self { lower, pages, upper, notes_reads, next_node, next_epoch, next_fork, forks }
    }

    /// Returns a number that no node had before.
    pub(crate) fn next_node(&self) -> u64 {
        // Relaxed, here and below: only the number must be new.
        self.next_node.fetch_add(1, Relaxed)
    }

    /// Notes a new fork.
    pub(crate) fn add(&self, fork: &Arc<State>) {
        let mut forks = self.forks.lock();
        if forks.len() == forks.capacity() {
            forks.retain(|fork| fork.strong_count() > 0);
        }
        forks.push(Arc::downgrade(fork));
    }

    /// Returns all forks.
    pub(crate) fn all(&self) -> Vec<Arc<State>> {
        self.forks.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns a number that no fork had before.
    pub(crate) fn next_fork(&self) -> u64 {
        self.next_fork.fetch_add(1, Relaxed)
    }

    fn next_epoch(&self) -> u64 {
        self.next_epoch.fetch_add(1, Relaxed)
    }
}

/// The state of one fork.
pub(crate) struct State {
    pub(crate) shared: Arc<Shared>,
    /// The number of the fork, and of the fork that it was made from: 0 for the trunk.
    pub(crate) id: u64,
    pub(crate) from: u64,
    /// The name that a directory keeps.
    pub(crate) name: Mutex<Option<Name>>,
    /// The root of the tree.
    pub(crate) root: u64,
    /// The directory that programs see as the root, and its path from the root.
    pub(crate) shown: u64,
    pub(crate) dir: Vec<u8>,
    pub(crate) tree: Mutex<Tree>,
    /// The tree and its use at the moment of the fork, or of the last commit.
    pub(crate) origin: Mutex<Snapshot>,
    /// When the last commit of the fork to the base ended, which changed times there.
    pub(crate) settled: AtomicI64,
    /// The tree that it was made from.
    pub(crate) parent: Parent,
    pub(crate) held: Mutex<HeldFiles>,
    /// [Closed](Self::close), or passed by [each change](Self::enter).
    pub(crate) gate: RwLock<()>,
    pub(crate) late_ends: LateEnds,
    epoch: AtomicU64,
    /// How many times each node is open.
    pub(crate) opens: Mutex<HashMap<u64, u32>>,
    /// The ways to the caches of its mounts, also of those that have ended.
    pub(crate) invalidators: Mutex<Vec<Invalidator>>,
    pub(crate) usage: Usage,
    /// The reads, if they are noted.
    pub(crate) reads: Option<Mutex<Arc<Reads>>>,
}

/// A tree, with the bytes and the inodes that it uses.
pub(crate) type Snapshot = (Tree, (u64, u64));

/// The tree from which a fork was made.
#[derive(Clone, Debug)]
pub(crate) enum Parent {
    /// The base: this is the trunk.
    Base,
    /// The trunk, which has no changes.
    Trunk,
    Fork(Weak<State>),
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("usage", &self.usage).finish_non_exhaustive()
    }
}

impl State {
    /// Returns a fork with these numbers of itself and of the fork that it was made from.
    pub(crate) fn new(
        shared: Arc<Shared>,
        tree: Tree,
        usage: Usage,
        parent: Parent,
        (id, from): (u64, u64),
    ) -> Result<Self, Errno> {
        let root = shared.lower.root.clone();
        let node = shared.lower.number(root.attr()?.ino, || shared.next_node());
        // Relaxed: set before the first fork.
        let reads = shared.notes_reads.load(Relaxed).then(Mutex::default);
        let mut held = HeldFiles::default();
        held.hold(node, Held { file: root, place: None });
        Ok(Self {
            epoch: AtomicU64::new(shared.next_epoch()),
            shared,
            id,
            from,
            name: Mutex::default(),
            root: node,
            shown: node,
            dir: Vec::new(),
            origin: Mutex::new((tree.clone(), usage.now())),
            settled: AtomicI64::new(0),
            parent,
            tree: Mutex::new(tree),
            held: Mutex::new(held),
            gate: RwLock::new(()),
            late_ends: LateEnds::default(),
            opens: Mutex::default(),
            invalidators: Mutex::default(),
            usage,
            reads,
        })
    }

    /// Shows a directory of the tree alone, by its path from the root. After an error, the fork shows nothing.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`: also for a symbolic link; the base's.
    pub(crate) fn show(&mut self, dir: &[u8]) -> Result<(), Errno> {
        let names: Vec<&[u8]> = dir.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        (self.dir, self.shown) = (names.join(&b'/'), 0);
        let mut at = self.root;
        for name in names {
            at = if is_name(name) { self.find(at, name)? } else { return Err(Errno::ENOENT) };
            if !self.current(at)?.attr.is_dir() {
                return Err(Errno::ENOTDIR);
            }
        }
        self.shown = at;
        Ok(())
    }

    /// Makes the next write to each file copy its contents first: another tree has them now.
    pub(crate) fn begin_epoch(&self) {
        self.epoch.store(self.shared.next_epoch(), Relaxed);
    }

    /// Returns the number of a file of the base.
    pub(crate) fn number(&self, ino: u64) -> u64 {
        self.shared.lower.number(ino, || {
            let node = self.shared.next_node();
            self.shared.upper.as_ref().map_or(node, |upper| upper.number(ino, node))
        })
    }

    /// Returns the state of a node: its record, or the base's. `ESTALE`: the fork does not hold the file.
    pub(crate) fn current(&self, node: u64) -> Result<Arc<Node>, Errno> {
        if let Some(found) = self.tree.lock().node(node) {
            return Ok(found.clone());
        }
        let base = self.held.lock().get(node).map(|held| held.file.clone()).ok_or(Errno::ESTALE)?;
        Node::of_base(base, node).map(Arc::new)
    }

    /// Returns a node that is about to change, with the names on the way to it.
    fn unchanged(&self, node: u64) -> Result<Option<Unchanged>, Errno> {
        if self.tree.lock().node(node).is_some() {
            return Ok(None);
        }
        let mut current = self.current(node)?;
        Arc::make_mut(&mut current).birth = current.birth().unwrap_or_default();
        let (mut places, mut at) = (Vec::new(), node);
        let held = self.held.lock();
        while let Some((dir, name)) = held.get(at).and_then(|held| held.place.clone()) {
            places.push((at, dir, name));
            at = dir;
        }
        Ok(Some(Unchanged { node: current, places }))
    }

    /// Makes a change of some nodes, in one critical section. `more`: the bytes that its records may take; 0 for a
    /// removal, which always succeeds. `contents`: a change of contents, for the log.
    ///
    /// # Errors
    /// `ENOSPC`; `ESTALE`; the errors of `change`.
    pub(crate) fn change<R>(
        &self,
        nodes: &[u64],
        more: u64,
        contents: Option<Event>,
        change: impl FnOnce(&mut Tree) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let unchanged =
            nodes.iter().map(|node| Ok((*node, self.unchanged(*node)?))).collect::<Result<Vec<_>, Errno>>()?;
        let mut tree = self.tree.lock();
        self.usage.check(more)?;
        let (before, old) = (tree.bytes, self.shared.upper.is_some().then(|| tree.clone()));
        for (node, unchanged) in unchanged {
            if let Some(unchanged) = unchanged {
                tree.adopt(node, unchanged);
            }
        }
        let mut changed = change(&mut tree);
        self.usage.settle(before, tree.bytes);
        if let Some(old) = old {
            let is_removal = more == 0 && contents.is_none();
            let log = || contents.into_iter().chain(self.changed(&old, &tree)).collect();
            changed = changed.and_then(|changed| self.log(is_removal, log).map(|()| changed));
            if changed.is_err() {
                self.usage.settle(tree.bytes, before);
                *tree = old;
            }
        }
        changed
    }

    /// Returns the node of a name: `ENOENT`.
    pub(crate) fn find(&self, dir: u64, name: &[u8]) -> Result<u64, Errno> {
        match self.tree.lock().name(dir, name) {
            Some(Record::Entry(entry)) => return Ok(entry.node),
            Some(_) => return Err(Errno::ENOENT),
            None => {}
        }
        let current = self.current(dir)?;
        let found = self.shared.lower.find(current.base.as_ref().ok_or(Errno::ENOENT)?, name)?;
        let node = self.number(found.attr()?.ino);
        let held = Held { file: Arc::new(found), place: Some((dir, Arc::from(name))) };
        self.held.lock().hold(node, held);
        Ok(node)
    }

    /// Returns the answer to a lookup of a node.
    pub(crate) fn inode(&self, node: u64) -> Result<NewInode, Errno> {
        let current = self.current(node)?;
        let [access_acl, default_acl] = self.acls(node, &current)?;
        // Names of a changed directory still come from the base.
        let shown = current.base.as_ref().filter(|_| !self.shared.lower.is_fixed);
        let valid = shown.map_or_else(Valid::default, |base| base.valid());
        let link_body = current.link_body.as_ref().map(|body| Box::from(&**body));
        Ok(NewInode { node, attr: current.attr, link_body, valid, access_acl, default_acl })
    }

    /// Checks that a directory has no names: `ENOTEMPTY`.
    pub(crate) fn check_empty(&self, dir: u64) -> Result<(), Errno> {
        if self.tree.lock().names(dir).any(|(_, record)| matches!(record, Record::Entry(_))) {
            return Err(Errno::ENOTEMPTY);
        }
        let current = self.current(dir)?;
        let Some(base) = &current.base else { return Ok(()) };
        let open = self.shared.lower.open(base)?;
        let mut is_empty = true;
        open.entries_after(0, Want::NAMES, &mut |entry, _| {
            is_empty = self.tree.lock().name(dir, &entry.name).is_some();
            is_empty
        })?;
        if is_empty { Ok(()) } else { Err(Errno::ENOTEMPTY) }
    }

    /// Changes the contents of a file by `change`, and then its attributes. `keep`: how much of the base's contents the
    /// change needs. `size` returns the new length, from the old one and the result of `change`.
    ///
    /// # Errors
    /// `ENOSPC`, `ENOMEM`; the base's.
    pub(crate) fn change_contents<R>(
        &self,
        (inode, file): (&Inode, Option<&Open<'_>>),
        (keep, now): (u64, i64),
        change: impl FnOnce(&mut Contents, Source<'_>) -> Result<R, Errno>,
        size: impl FnOnce(u64, &R) -> u64,
    ) -> Result<(R, Attr), Errno> {
        let node = inode.node();
        let opened = OnceCell::new();
        let base = |at: u64, part: &mut [u8]| match file {
            Some(file) => self.fill(file, at, part),
            None => {
                let state = opened.get_or_init(|| self.open_base(&*self.current(node)?));
                let state = state.as_ref().map_err(|errno| *errno)?;
                self.fill(&Open { inode, flags: OpenFlags::RDONLY, state }, at, part)
            }
        };
        let source = Source { pages: &self.shared.pages, usage: &self.usage, base: &base };
        let copied = self.copied(node, keep, source)?;
        let _inside = self.enter();
        let (own, counted) = self.own_contents(node, keep, copied, source)?;
        let mut contents = own.state.write();
        let changed = change(&mut contents, source);
        let done = changed.inspect_err(|_| {
            // Contents that the node does not get take no space.
            self.usage.give(counted.map_or(0, |before| contents.bytes().saturating_sub(before)));
        })?;
        let blocks = contents.blocks();
        let event = self.shared.upper.as_ref().map(|_| Event::contents(node, &own, &contents, false));
        let attr = self.change(&[node], 0, event, |tree| {
            let changed = tree.node_mut(node)?;
            changed.touch(now);
            changed.attr.size = size(changed.attr.size, &done);
            changed.attr.blocks = blocks;
            changed.contents = Some(own.clone());
            Ok(changed.attr)
        })?;
        // The log has all pages now.
        contents.unlogged = Vec::new();
        Ok((done, attr))
    }

    /// Returns a copy of the file of the base, if a change needs it: the change passes the gate after this, since commits and
    /// forks would wait for a long copy.
    fn copied(&self, node: u64, keep: u64, source: Source<'_>) -> Result<Option<Copied>, Errno> {
        if self.shared.lower.is_fixed {
            return Ok(None);
        }
        let current = self.current(node)?;
        let Some(base) = current.base.as_ref().filter(|_| current.contents.is_none()) else { return Ok(None) };
        let (of, len) = (Stamp::of(&base.attr_anew()?), current.attr.size.min(keep));
        // A fork meanwhile does not have these bytes.
        let usage = Usage::new(self.usage.limits, self.usage.now());
        let contents = Contents::copy_of_base(len, Source { usage: &usage, ..source })?;
        Ok(Some(Copied { of, len, contents }))
    }

    /// Returns the contents of a node as this fork's own; if they are new, with the bytes that the node counts so far.
    fn own_contents(
        &self,
        node: u64,
        keep: u64,
        copied: Option<Copied>,
        source: Source<'_>,
    ) -> Result<(Arc<File>, Option<u64>), Errno> {
        let current = self.current(node)?;
        let epoch = self.epoch.load(Relaxed);
        let from = current.contents.as_ref().map(|file| file.epoch);
        let (contents, before) = match &current.contents {
            Some(file) if file.epoch == epoch => return Ok((file.clone(), None)),
            Some(file) => {
                let contents = file.state.read().clone();
                let before = contents.bytes();
                (contents, before)
            }
            None if current.base.is_none() => (Contents::default(), 0),
            None if self.shared.lower.is_fixed => (Contents::over(current.attr.size, current.attr.blocks), 0),
            None => {
                let len = current.attr.size.min(keep);
                let stamp =
                    current.base.as_ref().map(|base| base.attr_anew()).transpose()?.map(|attr| Stamp::of(&attr));
                match copied.filter(|copied| Some(copied.of) == stamp && copied.len == len) {
                    Some(Copied { contents, .. }) => {
                        self.usage.take(contents.bytes())?;
                        (contents, 0)
                    }
                    None => (Contents::copy_of_base(len, source)?, 0),
                }
            }
        };
        Ok((File::new(epoch, from, contents), Some(before)))
    }
}

/// A copy of a file of the base, and the file that was copied.
struct Copied {
    of: Stamp,
    len: u64,
    contents: Contents,
}

/// Returns the use of a tree, counted anew.
pub(crate) fn used_by(tree: &Tree) -> (u64, u64) {
    let usage = Usage::new(ForkLimits::default(), (tree.bytes, 0));
    tree.nodes().for_each(|node| count(&usage, node));
    usage.now()
}

/// Counts the pages and the inode of a node.
pub(crate) fn count(usage: &Usage, node: &Node) {
    usage.settle(0, node.contents.as_ref().map_or(0, |file| file.state.read().bytes()));
    if node.base.is_none() {
        usage.count_inode();
    }
}

/// Gives back the pages and the inode of a node that ended.
pub(crate) fn give_back(usage: &Usage, node: &Node) {
    usage.give(node.contents.as_ref().map_or(0, |file| file.state.read().bytes()));
    if node.base.is_none() {
        usage.give_inode();
    }
}
