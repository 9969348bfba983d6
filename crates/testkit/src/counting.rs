//! A file system around a file system, that counts.
//!
//! # What it is
//! [`Counting`] hands every call on. Its [`Counts`] say how many calls there were, and know which inodes the tree was
//! told of and which came to their end.
//!
//! # How it is locked
//! One mutex around the counts, held for no call.
//!
//! # Where it comes from
//! Own code.

use crate::context::{Failure, Outcome};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use vfs::{
    Allocate, Attr, Credentials, DirEntry, Errno, FileSystem, Inode, Invalidator, NameRules, NewInode, OpenFlags,
    Permission, RenameFlags, Request, SeekFor, SetAttr, SetXattr, StatFs, Valid, Written,
};

/// How long the end of a tree is waited for: what takes longer never comes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A file system that counts what it is asked and hands it on.
pub struct Counting<F: FileSystem + ?Sized> {
    counts: Arc<Counts>,
    name: Option<&'static str>,
    inner: Box<F>,
}

/// What a [`Counting`] counted.
#[derive(Debug, Default)]
pub struct Counts {
    lookups: AtomicU64,
    revalidations: AtomicU64,
    made: AtomicU64,
    evictions: AtomicU64,
    nodes: Mutex<Nodes>,
    ended: Condvar,
    invalidator: OnceLock<Invalidator>,
    names_in_cache: OnceLock<bool>,
}

#[derive(Debug, Default)]
struct Nodes {
    /// Those that the tree was told of and that did not end.
    alive: BTreeSet<u64>,
    /// Those that ended without being alive.
    ended_twice: Vec<u64>,
    /// How many lookups ran at once at most, and run.
    most_at_once: u32,
    running: u32,
    is_over: bool,
}

impl Counts {
    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

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

    /// Calls of `create` and `create_unnamed` that made an inode.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.load(Relaxed)
    }

    /// Calls of `evict`.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        self.evictions.load(Relaxed)
    }

    /// Inodes that the tree was told of and that did not come to their end. Lookups that ran beside changes may have
    /// been thrown away; they are counted all the same.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.nodes().alive.len()
    }

    /// Inodes that came to an end when they had none to come to.
    #[must_use]
    pub fn ended_twice(&self) -> Vec<u64> {
        self.nodes().ended_twice.clone()
    }

    /// Lookups that ran at the same time, at most.
    #[must_use]
    pub fn most_lookups_at_once(&self) -> u32 {
        self.nodes().most_at_once
    }

    /// What the file system was handed when it was first mounted; `None` before that.
    #[must_use]
    pub fn invalidator(&self) -> Option<&Invalidator> {
        self.invalidator.get()
    }

    /// Waits until the file system has gone, but no longer than `patience`, and says whether it has. The tree's
    /// reclaimer may free it a moment after its last user.
    #[must_use]
    pub fn ends_within(&self, patience: Duration) -> bool {
        let waited = self.ended.wait_timeout_while(self.nodes(), patience, |nodes| !nodes.is_over);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }

    /// Puts all that is cached in doubt, unless the names live in the cache.
    pub(crate) fn doubt(&self) {
        if self.names_in_cache.get() == Some(&false)
            && let Some(invalidator) = self.invalidator()
        {
            invalidator.all();
        }
    }

    /// Waits until the file system has gone.
    pub(crate) fn wait_for_the_end(&self) -> Outcome {
        let failure = |words: String| Err(Failure::new(words));
        if !self.ends_within(PATIENCE) {
            return failure("the tree was dropped: expected its file system to go, but it stays".into());
        }
        let nodes = self.nodes();
        if !nodes.ended_twice.is_empty() {
            return failure(format!(
                "expected one end for each inode, came more for the nodes {:?}",
                nodes.ended_twice
            ));
        }
        // Who answered a lookup that was thrown away was told of no end.
        if !nodes.alive.is_empty() && nodes.most_at_once == 1 {
            return failure(format!("expected an end for each inode, came none for the nodes {:?}", nodes.alive));
        }
        Ok(())
    }

    fn told(&self, node: u64) {
        self.nodes().alive.insert(node);
    }
}

impl<F: FileSystem + ?Sized> Counting<F> {
    /// Wraps `inner`.
    pub fn of(inner: Box<F>) -> (Self, Arc<Counts>) {
        let counts = Arc::new(Counts::default());
        (Self { counts: counts.clone(), name: None, inner }, counts)
    }

    /// Its type is called `name`, whatever the inner one is called.
    #[must_use]
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// Asks for an inode as a lookup does, and counts.
    fn ask(&self, ask: impl FnOnce(&F) -> Result<NewInode, Errno>) -> Result<NewInode, Errno> {
        {
            let mut nodes = self.counts.nodes();
            nodes.running += 1;
            nodes.most_at_once = nodes.most_at_once.max(nodes.running);
        }
        let told = ask(&self.inner);
        let mut nodes = self.counts.nodes();
        nodes.running -= 1;
        if let Ok(new) = &told {
            nodes.alive.insert(new.node);
        }
        told
    }

    /// Hands a making on, and counts what was made.
    fn made(&self, made: Result<u64, Errno>) -> Result<u64, Errno> {
        if let Ok(node) = made {
            self.counts.made.fetch_add(1, Relaxed);
            self.counts.told(node);
        }
        made
    }
}

impl<F: FileSystem + ?Sized> Drop for Counting<F> {
    fn drop(&mut self) {
        self.counts.nodes().is_over = true;
        self.counts.ended.notify_all();
    }
}

impl<F: FileSystem + ?Sized> FileSystem for Counting<F> {
    fn root(&self) -> NewInode {
        let root = self.inner.root();
        self.counts.told(root.node);
        root
    }

    fn type_name(&self) -> &str {
        self.name.unwrap_or_else(|| self.inner.type_name())
    }

    fn mounted(&self, invalidator: Invalidator) {
        let _ = self.counts.invalidator.set(invalidator.clone());
        self.inner.mounted(invalidator);
    }

    fn names_in_cache(&self) -> bool {
        *self.counts.names_in_cache.get_or_init(|| self.inner.names_in_cache())
    }

    fn caches_listings(&self) -> bool {
        self.inner.caches_listings()
    }

    fn default_valid(&self) -> Valid {
        self.inner.default_valid()
    }

    fn name_rules(&self) -> Option<Box<dyn NameRules>> {
        self.inner.name_rules()
    }

    fn own_permissions(&self) -> bool {
        self.inner.own_permissions()
    }

    fn entry_size(&self) -> u64 {
        self.inner.entry_size()
    }

    fn lookup(&self, request: &Request, dir: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        self.counts.lookups.fetch_add(1, Relaxed);
        self.ask(|inner| inner.lookup(request, dir, name))
    }

    fn revalidate(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<NewInode, Errno> {
        self.counts.revalidations.fetch_add(1, Relaxed);
        self.ask(|inner| inner.revalidate(request, dir, name, inode))
    }

    fn read_link(&self, request: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        self.inner.read_link(request, inode)
    }

    fn permission(&self, cred: &Credentials, inode: &Inode, mask: u32, rcu: bool) -> Permission {
        self.inner.permission(cred, inode, mask, rcu)
    }

    fn read_dir(&self, dir: &Inode, after: u64, emit: &mut dyn FnMut(DirEntry, u64) -> bool) -> Result<(), Errno> {
        self.inner.read_dir(dir, after, emit)
    }

    fn create(
        &self,
        request: &Request,
        dir: &Inode,
        name: &[u8],
        attr: &mut Attr,
        link_body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        self.made(self.inner.create(request, dir, name, attr, link_body))
    }

    fn create_unnamed(&self, request: &Request, dir: &Inode, attr: &mut Attr) -> Result<u64, Errno> {
        self.made(self.inner.create_unnamed(request, dir, attr))
    }

    fn link(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.inner.link(request, dir, name, inode)
    }

    fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.inner.unlink(request, dir, name, inode)
    }

    fn rename(
        &self,
        request: &Request,
        from: (&Inode, &[u8]),
        to: (&Inode, &[u8]),
        inode: &Inode,
        target: Option<&Inode>,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        self.inner.rename(request, from, to, inode, target, flags)
    }

    fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        self.inner.set_attr(request, inode, set)
    }

    fn attributes(&self, request: &Request, inode: &Inode) -> Result<Attr, Errno> {
        self.inner.attributes(request, inode)
    }

    fn wants_opens(&self) -> bool {
        self.inner.wants_opens()
    }

    fn open(&self, request: &Request, inode: &Inode, flags: OpenFlags) -> Result<(), Errno> {
        self.inner.open(request, inode, flags)
    }

    fn release(&self, inode: &Inode, flags: OpenFlags) {
        self.inner.release(inode, flags);
    }

    fn backing(&self, inode: &Inode, flags: OpenFlags) -> Option<Arc<OwnedFd>> {
        self.inner.backing(inode, flags)
    }

    fn read_at(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.inner.read_at(inode, offset, buf)
    }

    fn write_at(&self, request: &Request, inode: &Inode, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        self.inner.write_at(request, inode, offset, data)
    }

    fn set_len(&self, request: &Request, inode: &Inode, len: u64) -> Result<u64, Errno> {
        self.inner.set_len(request, inode, len)
    }

    fn allocate(
        &self,
        request: &Request,
        inode: &Inode,
        how: Allocate,
        keep_size: bool,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        self.inner.allocate(request, inode, how, keep_size, offset, len)
    }

    fn seek(&self, inode: &Inode, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        self.inner.seek(inode, offset, what)
    }

    fn sync(&self, inode: &Inode, data_only: bool) -> Result<(), Errno> {
        self.inner.sync(inode, data_only)
    }

    fn sync_all(&self) -> Result<(), Errno> {
        self.inner.sync_all()
    }

    fn get_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.inner.get_xattr(inode, name)
    }

    fn set_xattr(
        &self,
        request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        self.inner.set_xattr(request, inode, name, value, how)
    }

    fn remove_xattr(&self, request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        self.inner.remove_xattr(request, inode, name)
    }

    fn list_xattrs(&self, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        self.inner.list_xattrs(inode)
    }

    fn statfs(&self) -> Result<StatFs, Errno> {
        self.inner.statfs()
    }

    fn evict(&self, inode: &Inode) {
        self.counts.evictions.fetch_add(1, Relaxed);
        // First: once the inner one is told, the node may be given to another inode.
        {
            let mut nodes = self.counts.nodes();
            if !nodes.alive.remove(&inode.node()) {
                nodes.ended_twice.push(inode.node());
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
