//! The tree: one file system's dentries, and every change to them.
//!
//! # What it is
//! The dcache of one instance: a slab of slots, the hash table over them, and the few operations that link, unlink and move
//! entries so that walks that run meanwhile see the old state or the new. Everything else (which errors, whose permission)
//! is decided above, in `namespace`.
//!
//! # How it is locked
//! Ranks (`rank.rs`), outermost first: an open directory's listing > `rename_lock` (renames between directories) > directory locks
//! (ancestor first, else by address) > an inode's `data_lock` > `rename_seq` > the write section of a dentry's `seq` > a bucket's
//! lock bit > an inode's `seq`. See `docs/locking.md`.
//!
//! # Where it comes from
//! Linux's `fs/dcache.c` in its parts: `d_alloc`, `d_add`, `d_delete`, `__d_move`, `dput`; own code.

mod children;

use crate::attr::{Attr, S_IFDIR, S_IFLNK, S_IFMT};
use crate::dentry::{COMPLETE, DIR, Dentry, HASHED, INODE, LINK, PARENT_PINNED, SEARCH_ALL, hash_len};
use crate::errno::Errno;
use crate::fs::{FileSystem, Request};
use crate::inode::Inode;
use crate::name::{NameKey, short};
use crate::rank::{Rank, Ranks};
use crate::slot::{Pinned, Table, dentry_beside, entry_hash, link, outlive, rest_of};
use crate::walk::fallback::Fallbacks;
use children::{insert_child, remove_child};
use prim::PerCpu;
use prim::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Relaxed},
};
use sync::rcu::{RcuDomain, ReadGuard};
use sync::{GetNotDead, Mutex, SeqLock, Slab};

/// Buckets of a new tree; it grows from there. 64 KiB, so that a few hundred threads that make and remove names in
/// directories of their own seldom meet on a line of buckets (the lab: 64 CPUs keep 0.94 of the rate of one, 0.49 with 256).
const MIN_BUCKETS: usize = 8192;

/// Negative entries that are kept; beyond, a miss is asked again.
const MAX_NEGATIVES: u32 = 65_536;

/// See the [module documentation](self).
pub(crate) struct Tree {
    /// Before `slab`: fields drop in order, and the table's nodes lie in the slab.
    table: Table,
    slab: Slab<Dentry>,
    pub(crate) domain: RcuDomain,
    pub(crate) key: NameKey,
    root: Pinned,
    pub(crate) fs: Box<dyn FileSystem>,
    /// [`COMPLETE`] if the file system leaves its names to the cache.
    complete: u64,
    entry_size: i64,
    negatives: AtomicU32,
    pub(crate) fallbacks: PerCpu<Fallbacks>,
    pub(crate) ranks: Ranks,
    pub(crate) rename_lock: Mutex<()>,
    pub(crate) rename_seq: RenameSeq,
}

/// The sequence of all renames, on a line of its own: lookups that miss read it.
#[repr(align(128))]
pub(crate) struct RenameSeq(pub(crate) SeqLock);

/// What an instance's caches hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Entries in the table, to within 64 for each thread.
    pub entries: usize,
    /// Bytes of dentries and inodes, in use or ready for use; the system's memory is taken 2 MiB at a time.
    pub slot_bytes: usize,
    /// Bytes of the hash table.
    pub table_bytes: usize,
    /// Buckets of the hash table.
    pub buckets: usize,
    /// Dentries that are in use, named or held; the root is one. Counted by looking at all of them.
    pub live_dentries: usize,
    /// References on dentries beyond the one that each name holds on itself.
    pub held: usize,
}

impl Tree {
    pub(crate) fn new(fs: Box<dyn FileSystem>) -> Self {
        let domain = RcuDomain::new();
        let key = NameKey::random();
        let slab = Slab::new();
        let complete = if fs.names_in_cache() { COMPLETE } else { 0 };
        let entry_size = i64::try_from(fs.entry_size()).unwrap_or(0);
        let root = {
            let dentry: &Dentry = slab.alloc();
            let inode = &rest_of(dentry).inode;
            let new = fs.root();
            inode.begin(&new.attr, new.node);
            inode.slot_users.store(2, Relaxed);
            dentry.set_entry(&domain, dentry, 0, b"");
            dentry.set_object(object_of(inode, new.attr.mode, complete) | HASHED);
            dentry.count.revive(1);
            Pinned::from_counted(dentry)
        };
        Self {
            table: Table::new(MIN_BUCKETS, key),
            slab,
            domain,
            key,
            root,
            fs,
            complete,
            entry_size,
            negatives: AtomicU32::new(0),
            fallbacks: PerCpu::new(Fallbacks::default),
            ranks: Ranks::new(),
            rename_lock: Mutex::new(()),
            rename_seq: RenameSeq(SeqLock::new()),
        }
    }

    pub(crate) fn root(&self) -> &Dentry {
        self.root.get()
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Finds `name` in `dir` for certain. With `dir`'s lock held the answer stays right.
    pub(crate) fn lookup_rcu<'g>(
        &'g self,
        guard: &'g ReadGuard<'_>,
        dir: &Dentry,
        name: &[u8],
        hash: u64,
    ) -> Option<&'g Dentry> {
        let filed = entry_hash(dir, hash);
        match short(name) {
            Some(name) => {
                let wanted = hash_len(hash, name.len);
                self.table.find_slow(guard, filed, |entry| entry.is_short(dir, wanted, name))
            }
            None => self.table.find_slow(guard, filed, |entry| entry.is_entry_rcu(dir, hash, name, guard)),
        }
    }

    /// The positive entry `name` of the locked directory `dir`, from the cache or the file system. It stays while the lock is held.
    ///
    /// # Errors
    /// What the file system answers, but for `ENOENT`, which is `None`.
    pub(crate) fn find_locked(
        &self,
        request: impl FnOnce() -> Request,
        dir: &Dentry,
        name: &[u8],
        hash: u64,
    ) -> Result<Option<&Dentry>, Errno> {
        {
            let guard = self.domain.read();
            if let Some(entry) = self.lookup_rcu(&guard, dir, name, hash) {
                return Ok((entry.object() & INODE != 0).then(|| outlive(self, entry)));
            }
        }
        if dir.has(COMPLETE) {
            return Ok(None);
        }
        self.ask(&request(), dir, name, hash)
    }

    #[cold]
    fn ask(&self, request: &Request, dir: &Dentry, name: &[u8], hash: u64) -> Result<Option<&Dentry>, Errno> {
        let inode = dir.inode().ok_or(Errno::ENOENT)?;
        match self.fs.lookup(request, inode, name) {
            Ok(new) => Ok(Some(self.add(dir, (name, hash), &new.attr, new.node, new.link_body.as_deref()))),
            Err(Errno::ENOENT) => {
                self.add_negative(dir, name, hash);
                Ok(None)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Forgets that there is no `name` in the locked directory `dir`, since there will be one.
    pub(crate) fn forget_negative(&self, dir: &Dentry, name: &[u8], hash: u64) {
        if dir.has(COMPLETE) {
            return;
        }
        let guard = self.domain.read();
        if let Some(entry) = self.lookup_rcu(&guard, dir, name, hash)
            && entry.object() & INODE == 0
        {
            self.delete(dir, entry, hash, 0, 0);
        }
    }

    /// Adds `name` with a new inode to the locked directory `dir`. One count is the name's own.
    pub(crate) fn add(
        &self,
        dir: &Dentry,
        (name, hash): (&[u8], u64),
        attr: &Attr,
        node: u64,
        link_body: Option<&[u8]>,
    ) -> &Dentry {
        let dentry = self.take_slot();
        let inode = &rest_of(dentry).inode;
        inode.begin(attr, node);
        inode.slot_users.store(2, Relaxed);
        if link_body.is_some() {
            inode.link_body.set(&self.domain, link_body.map(Box::from));
        }
        self.publish(dir, dentry, name, hash, object_of(inode, attr.mode, self.complete));
        dentry
    }

    /// Adds `name` as one more name of `inode` to the locked directory `dir`.
    pub(crate) fn add_alias(&self, dir: &Dentry, name: &[u8], hash: u64, inode: &Inode) {
        inode.get();
        let dentry = self.take_slot();
        rest_of(dentry).inode.slot_users.store(1, Relaxed);
        self.publish(dir, dentry, name, hash, object_of(inode, inode.mode(), self.complete));
    }

    /// Remembers in the locked directory `dir` that there is no `name`.
    pub(crate) fn add_negative(&self, dir: &Dentry, name: &[u8], hash: u64) {
        // Relaxed, here and in `delete`: a bound, exact only to within the threads that race for it.
        if self.negatives.load(Relaxed) >= MAX_NEGATIVES {
            return;
        }
        self.negatives.fetch_add(1, Relaxed);
        let dentry = self.take_slot();
        rest_of(dentry).inode.slot_users.store(1, Relaxed);
        self.publish(dir, dentry, name, hash, 0);
    }

    /// A slot for a new entry, in a write section of its dentry's `seq`, which [`Tree::publish`] ends: who still stands on the slot's
    /// former life and sees anything of the new one, the inode's attributes included, also sees that the sequence moved.
    fn take_slot(&self) -> &Dentry {
        let dentry = self.slab.alloc();
        dentry.seq.write_begin();
        dentry
    }

    /// Ends what [`Tree::take_slot`] began: gives the slot its name and makes it reachable.
    fn publish(&self, dir: &Dentry, dentry: &Dentry, name: &[u8], hash: u64, object: u64) {
        dentry.set_entry(&self.domain, dir, hash, name);
        dentry.set_object(object | HASHED);
        dentry.count.revive(1);
        dentry.seq.write_end();
        insert_child(dir, dentry);
        let guard = self.domain.read();
        link(&self.table, &self.domain, &guard, dentry, entry_hash(dir, hash));
    }

    /// Takes the entry `dentry`, whose name's hash is `hash`, out of the locked directory `dir`; its file has `links` fewer
    /// from `now` on. Who holds it keeps it.
    pub(crate) fn delete(&self, dir: &Dentry, dentry: &Dentry, hash: u64, links: i32, now: i64) {
        self.unhash(dir, dentry, hash);
        remove_child(dir, dentry);
        self.release(dir, dentry, links, now);
    }

    /// Drops what is remembered of a locked directory that is about to go: its negative entries.
    pub(crate) fn forget_children(&self, dir: &Dentry) {
        while let Some(child) = dir.first_child.get() {
            let hash = child.name_hash_rcu(self.key, &self.domain.read());
            self.delete(dir, child, hash, 0, 0);
        }
    }

    fn unhash(&self, dir: &Dentry, dentry: &Dentry, hash: u64) {
        dentry.seq.write_begin();
        dentry.clear_hashed();
        dentry.retire_name();
        let guard = self.domain.read();
        let removed = self.table.remove(&self.domain, &guard, dentry, entry_hash(dir, hash));
        debug_assert!(removed, "a hashed entry is on the chain of its name");
        dentry.seq.write_end();
    }

    /// Gives up the count that the name held, and the name's share of its file's links.
    fn release(&self, dir: &Dentry, dentry: &Dentry, links: i32, now: i64) {
        let inode = dentry.inode();
        if inode.is_none() {
            self.negatives.fetch_sub(1, Relaxed);
        }
        let dies = dentry.count.try_kill(1);
        match inode {
            Some(inode) if dies && inode.is_last() => inode.last_link_went(links),
            Some(inode) => inode.link_changed(-links, now),
            None => {}
        }
        if dies {
            self.bury(dentry);
            return;
        }
        // Somebody holds it: from now on it counts on its parent, for `..` and reverse paths.
        dir.count.get();
        dentry.change_flags(0, PARENT_PINNED);
        self.unpin_ref(dentry);
    }

    /// Moves `dentry` from `old` to `new` directory (both locked) under another name, over `target` if there is one, whose file
    /// has so many links fewer from `now` on.
    pub(crate) fn move_entry(
        &self,
        (old, old_hash): (&Dentry, u64),
        (new, name, hash): (&Dentry, &[u8], u64),
        dentry: &Dentry,
        target: Option<(&Dentry, i32)>,
        now: i64,
    ) {
        {
            let _ranked = self.ranks.acquire(Rank::RenameSeq);
            let _renaming = self.rename_seq.0.write_lock();
            let guard = self.domain.read();
            dentry.seq.write_begin();
            if let Some((target, _)) = target {
                target.seq.write_begin();
            }
            let removed = self.table.remove(&self.domain, &guard, dentry, entry_hash(old, old_hash));
            debug_assert!(removed, "a hashed entry is on the chain of its name");
            dentry.set_entry(&self.domain, new, hash, name);
            link(&self.table, &self.domain, &guard, dentry, entry_hash(new, hash));
            if let Some((target, _)) = target {
                // After the new name is there: a lookup of it always finds one or the other.
                target.change_flags(HASHED, 0);
                target.retire_name();
                self.table.remove(&self.domain, &guard, target, entry_hash(new, hash));
                target.seq.write_end();
            }
            dentry.seq.write_end();
        }
        remove_child(old, dentry);
        insert_child(new, dentry);
        if let Some((target, links)) = target {
            remove_child(new, target);
            self.release(new, target, links, now);
        }
    }

    /// The directory's length, links and times after an entry came (`by` = 1), went (-1) or changed (0).
    pub(crate) fn touch_dir(&self, dir: &Dentry, by: i64, subdirs: i32, now: i64) {
        if let Some(inode) = dir.inode() {
            inode.entry_changed(by * self.entry_size, subdirs, now);
        }
    }

    /// Takes a count on `dentry` if it is still what it was when its sequence was `seq`.
    pub(crate) fn pin_rcu(&self, _guard: &ReadGuard<'_>, dentry: &Dentry, seq: u32) -> Option<Pinned> {
        let pinned = self.pin(dentry)?;
        if dentry.seq.retry(seq) {
            self.unpin(pinned);
            return None;
        }
        Some(pinned)
    }

    /// Takes a count on `dentry` unless it is dead.
    pub(crate) fn pin(&self, dentry: &Dentry) -> Option<Pinned> {
        match dentry.count.get_not_dead() {
            GetNotDead::Got => Some(Pinned::from_counted(dentry)),
            GetNotDead::Dead => None,
            GetNotDead::DeadLast => {
                self.last_put(dentry);
                None
            }
        }
    }

    /// Takes one more count on a dentry that the caller holds.
    pub(crate) fn pin_again(&self, held: &Dentry) -> Pinned {
        held.count.get();
        Pinned::from_counted(held)
    }

    /// Gives a count back.
    #[inline]
    pub(crate) fn unpin(&self, pinned: Pinned) {
        self.unpin_ref(pinned.get());
    }

    #[inline]
    fn unpin_ref(&self, dentry: &Dentry) {
        if dentry.count.put() {
            self.last_put(dentry);
        }
    }

    /// Nobody holds `dentry` and it has no name. Unless somebody takes it up again, it dies.
    #[cold]
    fn last_put(&self, dentry: &Dentry) {
        let mut dead = dentry;
        while dead.count.try_kill(0) {
            let parent = dead.has(PARENT_PINNED).then(|| dead.parent()).flatten();
            self.bury(dead);
            match parent {
                Some(parent) if parent.count.put() => dead = parent,
                _ => return,
            }
        }
    }

    /// Frees a dead dentry, and its inode with the last name.
    fn bury(&self, dentry: &Dentry) {
        dentry.clear_name(&self.domain);
        let Some(inode) = dentry.inode() else { return self.leave_slot(dentry) };
        dentry.set_object(0);
        if core::ptr::eq(inode, &raw const rest_of(dentry).inode) && inode.is_last() {
            self.evict(inode);
            self.slab.free(dentry);
            return;
        }
        if inode.put() {
            self.evict(inode);
            self.leave_slot(dentry_beside(inode));
        }
        self.leave_slot(dentry);
    }

    /// One use less of the slot of `dentry`: by the dentry itself, or by the inode beside it.
    fn leave_slot(&self, dentry: &Dentry) {
        // ORDERING: AcqRel, with itself by the slot's other user: who frees the slot has seen the other's last access.
        if rest_of(dentry).inode.slot_users.fetch_sub(1, AcqRel) == 1 {
            self.slab.free(dentry);
        }
    }

    fn evict(&self, inode: &Inode) {
        self.fs.evict(inode);
        inode.private.clear();
        if inode.mode() & S_IFMT == S_IFLNK {
            inode.link_body.set(&self.domain, None);
        }
    }

    /// Counts everything. Right only while nothing changes.
    pub(crate) fn stats(&self) -> CacheStats {
        let guard = self.domain.read();
        let (table_bytes, buckets) = self.table.reserved(&guard);
        let mut stats = CacheStats {
            entries: self.table.len_hint(),
            slot_bytes: self.slab.touched_bytes(),
            table_bytes,
            buckets,
            ..CacheStats::default()
        };
        self.slab.for_each(|dentry| {
            let count = dentry.count.count() as usize;
            if !dentry.count.is_dead() {
                stats.live_dentries += 1;
                stats.held += count - usize::from(dentry.has(HASHED));
            }
        });
        stats
    }
}

/// The object word for `inode`, without [`HASHED`].
fn object_of(inode: &Inode, mode: u32, complete: u64) -> u64 {
    let flags = match mode & S_IFMT {
        S_IFDIR => DIR | complete | search_flag(mode),
        S_IFLNK => LINK,
        _ => 0,
    };
    core::ptr::from_ref(inode) as u64 | flags
}

fn search_flag(mode: u32) -> u64 {
    if mode & 0o111 == 0o111 { SEARCH_ALL } else { 0 }
}

/// Keeps a directory's [`SEARCH_ALL`] what its mode says.
pub(crate) fn mode_changed(dentry: &Dentry, attr: &Attr) {
    if attr.is_dir() {
        dentry.change_flags(SEARCH_ALL, search_flag(attr.mode));
    }
}

impl core::fmt::Debug for Tree {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tree").field("entries", &self.table.len_hint()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
