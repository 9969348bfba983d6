//! Insertion and removal of entries, and references on them.
//!
//! # What it is
//! The operations that link and unlink the entries of one superblock so that concurrent walks see
//! the old state or the new one. `ops` decides the rest (errors, permission); `walk/lookup.rs`
//! calls the file system.
//!
//! # How it is locked
//! A thread that changes a directory's entries holds its lock. See `docs/locking.md`.
//!
//! # Where it comes from
//! Linux's `fs/dcache.c` in its parts: `d_alloc`, `d_add`, `d_delete`, `__d_move`, `d_exchange`,
//! `dput`.

use crate::base::attr::{Attr, S_IFMT};
use crate::base::errno::Errno;
use crate::base::name::{Named, ShortName};
use crate::cache::acls::acls_of;
use crate::cache::budget::SlotKind;
use crate::cache::reclaim::{FreeSlot, name_bytes};
use crate::cache::superblock::SuperBlock;
use crate::fs::{InitExtra, NewInode, Valid};
use crate::slots::children::{insert_child, remove_child, remove_positive};
use crate::slots::dentry::{Dentry, INLINE_MAX, folded_hash, hash_len};
use crate::slots::expiry::set_expiry;
use crate::slots::inode::{AttrSample, Inode, InodeRef};
use crate::slots::object::{Object, ObjectFlags};
use crate::slots::shard::Names;
use crate::slots::slot::{DeadDentry, DentryRef, cold_part, entry_hash, entry_of, link};
use crate::slots::whole_path::Moving;
use prim::atomic::Ordering::Relaxed;
use sync::rcu::ReadGuard;

/// Initial state of a new inode.
pub(crate) struct NewInodeArgs<'a> {
    pub(crate) node: u64,
    pub(crate) attr: &'a Attr,
    pub(crate) link_body: Option<&'a [u8]>,
    pub(crate) valid: Valid,
    pub(crate) rare: ExtraArgs<'a>,
}

/// Initial values that few inodes have.
#[derive(Clone, Copy)]
pub(crate) enum ExtraArgs<'a> {
    Nothing,
    /// From a reply of the file system.
    Replied(&'a NewInode),
    /// Of a file that was just made.
    Made(&'a InitExtra<'a>),
}

impl<'a> ExtraArgs<'a> {
    /// Returns the arguments of a file that was just made, with the values `beside` its attributes.
    #[inline(always)]
    pub(crate) fn of(beside: Option<&'a InitExtra<'a>>) -> Self {
        beside.map_or(Self::Nothing, Self::Made)
    }
}

impl<'a> From<&'a NewInode> for NewInodeArgs<'a> {
    fn from(new: &'a NewInode) -> Self {
        Self {
            node: new.node,
            attr: &new.attr,
            link_body: new.link_body.as_deref(),
            valid: new.valid,
            rare: ExtraArgs::Replied(new),
        }
    }
}

impl SuperBlock {
    /// `name`, with its hash in the table.
    #[inline]
    pub(crate) fn named<'a>(&self, name: &'a [u8]) -> Named<'a> {
        Named::new(name, self.hash(name))
    }

    /// Returns the hash of `name` in the table.
    #[inline]
    pub(crate) fn hash(&self, name: &[u8]) -> u64 {
        match &self.rules {
            None => self.key.hash(name),
            Some(rules) => folded_hash(rules.hash(self.key.word(), name)),
        }
    }

    /// Returns the hash of the last name of a path, which is `short` if it is short, in the table.
    #[inline(always)]
    pub(crate) fn hash_again(&self, name: &[u8], short: Option<ShortName>) -> u64 {
        match short {
            Some(short) if self.rules.is_none() => self.key.hash_short(short),
            _ => self.hash(name),
        }
    }

    /// Finds a name in `dir` without false misses. The result stays valid while `dir`'s lock is held.
    pub(crate) fn lookup_rcu<'g>(
        &'g self,
        guard: &'g ReadGuard<'_>,
        dir: &Dentry,
        named: Named<'_>,
    ) -> Option<&'g Dentry> {
        let Named { name, hash, short } = named;
        let filed = entry_hash(dir, hash);
        let table = self.table();
        if let Some(rules) = &self.rules {
            let is_name = |own: &[u8]| rules.equal(own, name);
            return table.find_slow(guard, filed, |entry| entry.is_folded_rcu(dir, hash, guard, is_name));
        }
        match short {
            Some(name) => self.find_short(guard, dir, name, hash),
            None => table.find_slow(guard, filed, |entry| entry.is_entry_rcu(dir, named, guard)),
        }
    }

    /// Finds a short name, which is compared byte by byte.
    #[inline(always)]
    pub(crate) fn find_short<'g>(
        &'g self,
        guard: &'g ReadGuard<'_>,
        dir: &Dentry,
        name: ShortName,
        hash: u64,
    ) -> Option<&'g Dentry> {
        let wanted = hash_len(hash, name.len);
        self.table().find_sure(guard, entry_hash(dir, hash), |entry| entry.is_short(dir, wanted, name))
    }

    /// Returns the entry of a name in the locked directory `dir`, positive or negative. It stays
    /// while the lock is held.
    pub(crate) fn cached<'d>(&self, dir: &'d Dentry, named: Named<'_>) -> Option<&'d Dentry> {
        let guard = self.domain.read();
        self.lookup_rcu(&guard, dir, named).and_then(|entry| entry_of(dir, entry))
    }

    /// Removes the negative entry of a name in the locked directory `dir`, before the name is created.
    #[inline]
    pub(crate) fn forget_negative(&self, dir: &Dentry, named: Named<'_>) {
        if dir.object().is_complete() {
            return;
        }
        if let Some(entry) = self.cached(dir, named)
            && entry.object().is_negative()
        {
            self.uncache(dir, entry, named.hash);
        }
    }

    /// Makes `slot` the entry of a name with a new inode in the directory `dir`, which is locked, or `names` of it. The name holds
    /// one count.
    #[inline(always)]
    pub(crate) fn add_in<'s>(
        &'s self,
        guard: &ReadGuard<'_>,
        names: Option<&Names<'_>>,
        slot: FreeSlot<'s>,
        dir: &Dentry,
        named: Named<'_>,
        new: &NewInodeArgs<'_>,
    ) -> &'s Dentry {
        let dentry = begin(slot);
        let inode = self.begin_inode(dentry, new);
        self.publish(guard, names, dir, dentry, named, Object::of(inode, new.attr.mode, self.dir_flags), new.valid);
        self.note_change(dir);
        dentry
    }

    /// Adds the answer of a lookup, unless its node has an inode already: then returns the slot,
    /// and that inode.
    pub(crate) fn add_unless_there<'s>(
        &'s self,
        names: Option<&Names<'_>>,
        slot: FreeSlot<'s>,
        dir: &Dentry,
        named: Named<'_>,
        new: &NewInodeArgs<'_>,
    ) -> Result<(), (FreeSlot<'s>, InodeRef<'s>)> {
        let (dentry, inode) = self.begin_unless_there(slot, new)?;
        let object = Object::of(inode, new.attr.mode, self.dir_flags);
        self.publish(&self.domain.read(), names, dir, dentry, named, object, new.valid);
        Ok(())
    }

    /// Begins the write section of `slot`, and the life of the inode in it. If the inode's node has
    /// an inode already, returns the slot and that other inode instead.
    #[inline]
    pub(super) fn begin_unless_there<'s>(
        &'s self,
        slot: FreeSlot<'s>,
        new: &NewInodeArgs<'_>,
    ) -> Result<(&'s Dentry, InodeRef<'s>), (FreeSlot<'s>, InodeRef<'s>)> {
        let dentry = slot.dentry();
        dentry.seq.write_begin();
        let inode = &cold_part(dentry).inode;
        inode.prepare(new.attr, new.node, self.inode_kept);
        inode.slot_users.store(2, Relaxed);
        if let Some(there) = self.inodes.add_unless_there(self, inode) {
            dentry.seq.write_end();
            return Err((slot, there));
        }
        let dentry = slot.take();
        let inode = inode.begin_prepared();
        self.equip_inode(&inode, new);
        Ok((dentry, inode))
    }

    /// Begins the life of the inode beside `dentry`.
    #[inline(always)]
    pub(super) fn begin_inode<'d>(&self, dentry: &'d Dentry, new: &NewInodeArgs<'_>) -> InodeRef<'d> {
        let inode = cold_part(dentry).inode.begin(new.attr, new.node, self.inode_kept);
        inode.slot_users.store(2, Relaxed);
        self.equip_inode(&inode, new);
        self.inodes.add(&self.domain, &inode);
        inode
    }

    /// Gives a new inode its values besides the attributes.
    #[inline(always)]
    pub(super) fn equip_inode(&self, inode: &Inode, new: &NewInodeArgs<'_>) {
        self.set_valid(inode, new.valid);
        if let Some(body) = new.link_body {
            self.charge_body(body.len(), 1);
            inode.link_body.set(&self.domain, Some(body.into()));
        }
        match new.rare {
            ExtraArgs::Nothing => {}
            ExtraArgs::Replied(new) => inode.begin_acls(&self.domain, acls_of(new)),
            ExtraArgs::Made(beside) => self.equip_made(inode, beside),
        }
    }

    #[cold]
    fn equip_made(&self, inode: &Inode, beside: &InitExtra<'_>) {
        inode.begin_acls(&self.domain, Some(beside.acls.clone()));
        if let Some(data) = beside.take_data() {
            inode.private.get_or_set(|| data);
        }
    }

    /// Counts the bytes of a symbolic link's body.
    pub(crate) fn charge_body(&self, len: usize, by: i64) {
        if self.is_evictable {
            self.share(SlotKind::Entry).charge(by * (len + size_of::<Box<[u8]>>()) as i64);
        }
    }

    /// Makes `slot` a further name of `inode` in the directory `dir`, which is locked, or `names` of it.
    pub(crate) fn add_alias<'s>(
        &'s self,
        names: Option<&Names<'_>>,
        slot: FreeSlot<'s>,
        dir: &Dentry,
        named: Named<'_>,
        inode: InodeRef<'_>,
        valid: Valid,
    ) -> &'s Dentry {
        let dentry = begin(slot);
        cold_part(dentry).inode.slot_users.store(1, Relaxed);
        let mode = inode.mode();
        self.publish(&self.domain.read(), names, dir, dentry, named, Object::of(inode, mode, self.dir_flags), valid);
        dentry
    }

    /// Makes `slot` a negative entry of the directory `dir`, which is locked, or `names` of it.
    pub(crate) fn add_negative(
        &self,
        names: Option<&Names<'_>>,
        slot: FreeSlot<'_>,
        dir: &Dentry,
        named: Named<'_>,
        valid: Valid,
    ) {
        let dentry = begin(slot);
        cold_part(dentry).inode.slot_users.store(1, Relaxed);
        self.publish(&self.domain.read(), names, dir, dentry, named, Object::NEGATIVE, valid);
    }

    /// Ends the write section of [`begin`]: gives the slot its name and makes it reachable.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "the place of an entry, and what it is")]
    fn publish(
        &self,
        guard: &ReadGuard<'_>,
        names: Option<&Names<'_>>,
        dir: &Dentry,
        dentry: &Dentry,
        named: Named<'_>,
        object: Object,
        valid: Valid,
    ) {
        dentry.set_entry(&self.domain, dir, named);
        self.charge_name(object, named.name.len(), 1);
        let cold = if self.is_evictable { ObjectFlags::COLD } else { ObjectFlags::empty() };
        // A walk skips the slow step in an open directory; an entry with an expiry needs it.
        let checked = checked_flag(valid);
        let object = if checked.is_empty() { object } else { object.without(ObjectFlags::SEARCH_ALL) };
        dentry.set_object(object.with(ObjectFlags::HASHED | cold | checked));
        dentry.count.revive(1);
        insert_child(dir, dentry, names);
        if !dir.object().is_complete() {
            // In the write section: a thread that finds the inode by its node, and lets this name expire, waits for its end.
            set_expiry(dentry, valid);
        }
        dentry.seq.write_end();
        link(self.table(), &self.domain, guard, dentry, entry_hash(dir, named.hash));
    }

    /// Counts the bytes of a name that is longer than its slot allows.
    #[inline(always)]
    pub(crate) fn charge_name(&self, object: Object, len: usize, by: i64) {
        if self.is_evictable && len > INLINE_MAX {
            let kind = if object.is_negative() { SlotKind::Negative } else { SlotKind::Entry };
            self.share(kind).charge(by * name_bytes(len));
        }
    }

    /// Removes a dead entry of the directory `dir`, which is locked, or `names` of it, from the cache. The directory did not
    /// change, so running lookups need not run again.
    pub(crate) fn evict_entry(&self, names: Option<&Names<'_>>, dir: &Dentry, dentry: DeadDentry<'_>) {
        let guard = self.domain.read();
        let hash = dentry.filed_hash_rcu(dir, self.key, &guard);
        self.unlink_name(&guard, dir, &dentry, hash);
        drop(guard);
        remove_child(dir, &dentry, names);
        self.bury(dentry);
    }

    /// Updates the inode of `dentry` by the reply to a lookup. `before`: as [`Inode::learn_reply`].
    pub(crate) fn renew_inode(&self, dentry: &Dentry, inode: &Inode, new: &NewInode, before: Option<&AttrSample>) {
        let kind = inode.mode() & S_IFMT;
        self.renew_acls(dentry, inode, acls_of(new));
        self.note_valid(new.valid);
        inode.learn_reply(&self.paths, &Attr { mode: kind | new.attr.mode & 0o7777, ..new.attr }, before, new.valid);
    }

    /// Updates an entry of the locked directory by the file system's new answer. `before`: its attributes before the request.
    pub(crate) fn refresh(&self, dentry: &Dentry, new: &NewInode, before: Option<&AttrSample>) {
        let Some(inode) = dentry.inode() else { return };
        self.renew_inode(dentry, inode, new, before);
        // A reply that may be older than the inode's attributes is not valid for longer than they are.
        let valid = if new.valid == Valid::UntilInvalidated { self.valid_of(inode) } else { new.valid };
        if !dentry.is_in_cache_alone() {
            set_expiry(dentry, valid);
        }
        dentry.update_flags(&self.paths, |object| object.without(ObjectFlags::CHECKED).with(checked_flag(valid)));
    }

    /// Removes the positive entry `dentry`, whose name has the hash `hash`, from the directory
    /// `dir`; the caller has locked `dir`, or the `names` of its shard. The file loses `links`
    /// links at `now`. Holders keep the dentry. Runs in the caller's section, if there is one: of a
    /// file system that never waits.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "the place of an entry, and what goes with it")]
    pub(crate) fn delete_in(
        &self,
        guard: Option<&ReadGuard<'_>>,
        names: Option<&Names<'_>>,
        dir: &Dentry,
        dentry: &Dentry,
        hash: u64,
        links: i32,
        now: i64,
    ) {
        match guard {
            // The directory of a quick file system is complete: no lookup runs in it.
            Some(guard) => self.unlink_name(guard, dir, dentry, hash),
            None => self.unhash(&self.domain.read(), dir, dentry, hash),
        }
        remove_positive(dir, dentry, names);
        self.release(dir, dentry, links, now);
    }

    /// Removes the entry `dentry`, whose name has the hash `hash`, from the cache of the locked directory `dir`. Its
    /// file keeps its links.
    pub(crate) fn uncache(&self, dir: &Dentry, dentry: &Dentry, hash: u64) {
        self.uncache_name(None, dir, dentry, hash);
    }

    /// As `uncache`, where `dir` is locked, or `names` of it.
    pub(crate) fn uncache_name(&self, names: Option<&Names<'_>>, dir: &Dentry, dentry: &Dentry, hash: u64) {
        self.unhash(&self.domain.read(), dir, dentry, hash);
        remove_child(dir, dentry, names);
        self.release(dir, dentry, 0, 0);
    }

    /// Drops the negative and the expired entries of a locked directory that was removed.
    pub(crate) fn forget_children(&self, dir: &Dentry) {
        while let Some(child) = dir.first_child.get() {
            let hash = child.filed_hash_rcu(dir, self.key, &self.domain.read());
            if !self.prune(None, dir, child, hash) {
                break;
            }
        }
    }

    #[inline]
    fn unhash(&self, guard: &ReadGuard<'_>, dir: &Dentry, dentry: &Dentry, hash: u64) {
        self.unlink_name(guard, dir, dentry, hash);
        self.note_change(dir);
    }

    /// Notes a change of the locked directory `dir`: answers to lookups in it that were requested
    /// before are discarded. (An entry that such an answer adds is not a change.)
    #[inline(always)]
    pub(crate) fn note_change(&self, dir: &Dentry) {
        if !dir.object().is_complete() {
            self.versions.bump(dir);
        }
    }

    #[inline(always)]
    fn unlink_name(&self, guard: &ReadGuard<'_>, dir: &Dentry, dentry: &Dentry, hash: u64) {
        let dentry = Moving::leave(&self.paths, dentry);
        dentry.clear_hashed();
        dentry.retire_name();
        let removed = self.table().remove(&self.domain, guard, &dentry, entry_hash(dir, hash));
        debug_assert!(removed, "a hashed entry is on the chain of its name");
    }

    /// Takes an entry out of the table when no thread can hold it or change its directory any more.
    pub(crate) fn unhash_last(&self, dentry: &Dentry) {
        if let Some(dir) = dentry.parent() {
            let guard = self.domain.read();
            let hash = dentry.filed_hash_rcu(dir, self.key, &guard);
            self.unhash(&guard, dir, dentry, hash);
        }
    }

    /// Updates the directory's length, links and times after an entry was added (`by` = 1), removed (-1) or
    /// changed (0).
    #[inline]
    pub(crate) fn touch_dir(&self, dir: &Dentry, by: i64, subdirs: i32, now: i64) {
        if let Some(inode) = dir.inode() {
            inode.entry_changed(by * self.entry_size, subdirs, now);
        }
    }

    /// Takes a count on `dentry` if its sequence still is `seq`.
    pub(crate) fn pin_rcu(&self, _guard: &ReadGuard<'_>, dentry: &Dentry, seq: u32) -> Option<DentryRef> {
        let pinned = self.pin(dentry)?;
        if dentry.seq.retry(seq) {
            self.unpin(pinned);
            return None;
        }
        Some(pinned)
    }

    /// Takes a count on the directory of a dentry that the caller holds.
    ///
    /// # Errors
    /// `ENOENT`: it has none.
    pub(crate) fn pin_parent(&self, held: &Dentry) -> Result<DentryRef, Errno> {
        // A held dentry keeps its parent alive, but may move to another one. The section keeps the
        // current parent.
        let _guard = self.domain.read();
        loop {
            let parent = held.parent().ok_or(Errno::ENOENT)?;
            if let Some(pinned) = self.pin(parent) {
                return Ok(pinned);
            }
        }
    }

    /// Takes a count on `dentry` unless it is dead. The caller found the dentry in its current read
    /// section, or has the lock of the dentry's directory. Otherwise the slot could be free, and
    /// its memory returned to the system.
    pub(crate) fn pin(&self, dentry: &Dentry) -> Option<DentryRef> {
        match DentryRef::unless_dead(self.slots(), dentry) {
            Ok(pinned) => Some(pinned),
            Err(false) => None,
            Err(true) => {
                self.last_put(dentry);
                None
            }
        }
    }

    /// Takes one more count on a dentry that the caller holds.
    pub(crate) fn pin_again(&self, held: &Dentry) -> DentryRef {
        DentryRef::again(self.slots(), held)
    }

    /// Gives a count back.
    #[inline]
    pub(crate) fn unpin(&self, pinned: DentryRef) {
        self.unpin_ref(pinned.get(self.slots()));
    }

    #[inline]
    pub(super) fn unpin_ref(&self, dentry: &Dentry) {
        if dentry.count.put() {
            self.last_put(dentry);
        }
    }
}

/// Begins a write section of the slot's dentry; [`SuperBlock::publish`] ends it. A walk that still stands on
/// the slot's former life and sees any part of the new one, the inode's attributes included, also sees the
/// changed sequence.
pub(super) fn begin(slot: FreeSlot<'_>) -> &Dentry {
    let dentry = slot.take();
    dentry.seq.write_begin();
    dentry
}

/// Returns the flag of an entry with an expiry.
fn checked_flag(valid: Valid) -> ObjectFlags {
    if valid == Valid::UntilInvalidated { ObjectFlags::empty() } else { ObjectFlags::CHECKED }
}

#[cfg(test)]
mod tests;
