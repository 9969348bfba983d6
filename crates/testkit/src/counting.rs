//! A file system that wraps another one and counts.
//!
//! # What it is
//! [`Counting`] is a layer that forwards every call. Its [`Counts`] have the number of calls, the inodes that the tree
//! received, and those that it evicted.
//!
//! # How it is locked
//! One mutex around the counts, never held during a call.

use crate::outcome::{Failure, Outcome};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use vfs::{
    Errno, FileId, FileSystem, FsTraits, Inode, Invalidator, Layer, Listed, NameStore, NewInode, NewNode, NextNames,
    Open, Request, Want,
};

/// How long to wait for the end of a tree. One that takes longer is stuck.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A file system that counts its requests and forwards them.
pub struct Counting<F: FileSystem + ?Sized> {
    counts: Arc<Counts>,
    name: Option<&'static str>,
    inner: Box<F>,
}

/// The counts of a [`Counting`].
#[derive(Debug, Default)]
pub struct Counts {
    lookups: AtomicU64,
    revalidations: AtomicU64,
    listings: AtomicU64,
    made: AtomicU64,
    evictions: AtomicU64,
    nodes: Mutex<Nodes>,
    ended: Condvar,
    invalidator: OnceLock<Invalidator>,
    names_in_cache: OnceLock<bool>,
}

#[derive(Debug, Default)]
struct Nodes {
    /// Nodes that the tree received and did not evict.
    alive: BTreeSet<u64>,
    /// Nodes that came with listings, by ids, or ahead of lookups. The tree may have used them or not.
    offered: BTreeSet<u64>,
    /// Nodes that the tree evicted without having them.
    evicted_twice: Vec<u64>,
    /// The most lookups at the same time, and those that run now.
    most_at_once: u32,
    running: u32,
    is_over: bool,
}

impl Counts {
    /// Calls of `lookup`.
    #[must_use]
    pub fn lookups(&self) -> u64 {
        self.lookups.load(Relaxed)
    }

    /// Calls of `revalidate`.
    #[must_use]
    pub fn revalidations(&self) -> u64 {
        self.revalidations.load(Relaxed)
    }

    /// Calls of `read_dir`.
    #[must_use]
    pub fn listings(&self) -> u64 {
        self.listings.load(Relaxed)
    }

    /// Successful calls of `create`.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.load(Relaxed)
    }

    /// Calls of `evict`.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evictions.load(Relaxed)
    }

    /// Inodes that the tree received and did not evict. Includes answers of lookups that the tree discarded because of a
    /// change at the same time.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.nodes.lock().alive.len()
    }

    /// Nodes that the tree evicted without having them.
    #[must_use]
    pub fn evicted_twice(&self) -> Vec<u64> {
        self.nodes.lock().evicted_twice.clone()
    }

    /// Returns the invalidator of the file system; `None` before it is mounted.
    #[must_use]
    pub fn invalidator(&self) -> Option<&Invalidator> {
        self.invalidator.get()
    }

    /// Waits until the file system was dropped, at most for `timeout`, and returns whether it was. The tree's reclaimer may
    /// drop it a moment after its last user.
    #[must_use]
    pub fn ends_within(&self, timeout: Duration) -> bool {
        let mut nodes = self.nodes.lock();
        self.ended.wait_while_for(&mut nodes, |nodes| !nodes.is_over, timeout);
        nodes.is_over
    }

    /// Marks everything in the cache as stale, unless the names live in the cache.
    pub(crate) fn mark_stale(&self) {
        if self.names_in_cache.get() == Some(&false)
            && let Some(invalidator) = self.invalidator()
        {
            invalidator.all();
        }
    }

    /// Waits until the file system was dropped, and checks the evictions.
    pub(crate) fn wait_for_the_end(&self) -> Outcome {
        let failure = |message: String| Err(Failure::new(message));
        if !self.ends_within(TIMEOUT) {
            return failure("the tree was dropped: expected its file system to be dropped, too".into());
        }
        let nodes = self.nodes.lock();
        if !nodes.evicted_twice.is_empty() {
            return failure(format!(
                "expected one eviction of each inode, got more of the nodes {:?}",
                nodes.evicted_twice
            ));
        }
        // The answer of a lookup that the tree discarded is not evicted.
        if !nodes.alive.is_empty() && nodes.most_at_once == 1 {
            return failure(format!("expected an eviction of each inode, got none of the nodes {:?}", nodes.alive));
        }
        Ok(())
    }

    /// Notes a node that the tree received.
    fn note_node(&self, node: u64) {
        self.nodes.lock().alive.insert(node);
    }
}

impl<F: FileSystem + ?Sized> Counting<F> {
    /// Wraps `inner`.
    pub fn of(inner: Box<F>) -> (Self, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        (Self { counts: counts.clone(), name: None, inner }, counts)
    }

    /// Sets the name of its type, in place of the inner one's.
    #[must_use]
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// Runs a lookup and counts it.
    fn count_lookup(&self, lookup: impl FnOnce(&F) -> Result<NewInode, Errno>) -> Result<NewInode, Errno> {
        {
            let mut nodes = self.counts.nodes.lock();
            nodes.running += 1;
            nodes.most_at_once = nodes.most_at_once.max(nodes.running);
        }
        let found = lookup(&self.inner);
        let mut nodes = self.counts.nodes.lock();
        nodes.running -= 1;
        if let Ok(new) = &found {
            nodes.alive.insert(new.node);
        }
        found
    }

    /// Counts an inode that was made.
    fn made(&self, made: Result<u64, Errno>) -> Result<u64, Errno> {
        if let Ok(node) = made {
            self.counts.made.fetch_add(1, Relaxed);
            self.counts.note_node(node);
        }
        made
    }
}

impl<F: FileSystem + ?Sized> Drop for Counting<F> {
    fn drop(&mut self) {
        self.counts.nodes.lock().is_over = true;
        self.counts.ended.notify_all();
    }
}

impl<F: FileSystem + ?Sized> Layer for Counting<F> {
    type Inner = F;

    fn inner(&self) -> &F {
        &self.inner
    }

    fn root(&self) -> NewInode {
        let root = self.inner.root();
        self.counts.note_node(root.node);
        root
    }

    fn traits(&self) -> FsTraits {
        let mut traits = self.inner.traits();
        let _ = self.counts.names_in_cache.set(matches!(traits.names, NameStore::Cache(_)));
        if let Some(name) = self.name {
            traits.type_name = name.into();
        }
        traits
    }

    fn mounted(&self, invalidator: Invalidator) {
        let _ = self.counts.invalidator.set(invalidator.clone());
        self.inner.mounted(invalidator);
    }

    fn lookup(&self, request: &Request, dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.counts.lookups.fetch_add(1, Relaxed);
        let found = self.count_lookup(|inner| inner.lookup(request, dir, name, next));
        self.counts.nodes.lock().offered.extend(next.answers().iter().flatten().map(|new| new.node));
        found
    }

    /// Counts one request, whatever the number of names.
    fn lookup_many(
        &self,
        request: &Request,
        wanted: &[(&Inode, &[u8])],
        found: &mut dyn FnMut(usize, Result<NewInode, Errno>),
    ) {
        self.counts.lookups.fetch_add(1, Relaxed);
        self.inner.lookup_many(request, wanted, &mut |at, answer| {
            self.counts.nodes.lock().offered.extend(answer.as_ref().ok().map(|new| new.node));
            found(at, answer);
        });
    }

    fn revalidate(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<NewInode, Errno> {
        self.counts.revalidations.fetch_add(1, Relaxed);
        self.count_lookup(|inner| inner.revalidate(request, dir, name, inode))
    }

    fn by_id(&self, request: &Request, id: &FileId) -> Result<NewInode, Errno> {
        let found = self.inner.by_id(request, id)?;
        self.counts.nodes.lock().offered.insert(found.node);
        Ok(found)
    }

    fn read_dir(
        &self,
        request: &Request,
        dir: &Open<'_>,
        after: u64,
        want: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        self.counts.listings.fetch_add(1, Relaxed);
        self.inner.read_dir(request, dir, after, want, &mut |listed| {
            self.counts.nodes.lock().offered.extend(listed.inode.as_ref().map(|inode| inode.node));
            emit(listed)
        })
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        self.made(self.inner.create(request, dir, name, new))
    }

    fn evict(&self, inode: &Inode) {
        self.counts.evictions.fetch_add(1, Relaxed);
        // First: after the inner eviction another inode may get the node.
        {
            let mut nodes = self.counts.nodes.lock();
            let was_offered = nodes.offered.remove(&inode.node());
            if !nodes.alive.remove(&inode.node()) && !was_offered {
                nodes.evicted_twice.push(inode.node());
            }
        }
        self.inner.evict(inode);
    }
}

impl<F: FileSystem + ?Sized> core::fmt::Debug for Counting<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Counting").field("counts", &self.counts).finish_non_exhaustive()
    }
}
