//! The dcache: how entries come, go and move.
//!
//! # What it is
//! The few operations that link, unlink and move the entries of one superblock so that walks that run meanwhile see the old state
//! or the new, and the end of dentries and inodes. Everything else (which errors, whose permission) is decided above, in
//! `namespace`; what the file system is asked, in [`crate::miss`].
//!
//! # How it is locked
//! Who changes a directory's entries holds its lock. See `docs/locking.md`.
//!
//! # Where it comes from
//! Linux's `fs/dcache.c` in its parts: `d_alloc`, `d_add`, `d_delete`, `__d_move`, `d_exchange`, `dput`; own code.

mod children;
mod end;
mod moving;

pub(crate) use moving::Moved;

use crate::acl::Acls;
use crate::attr::Attr;
use crate::cache::{FreeSlot, Kind, name_bytes};
use crate::dentry::{
    CHECKED, COLD, COMPLETE, Dentry, HASHED, INLINE_MAX, INODE, PARENT_PINNED, SEARCH_ALL, folded_hash, hash_len,
};
use crate::fs::{NewInode, Valid};
use crate::inode::Inode;
use crate::name::short;
use crate::slot::{Pinned, entry_hash, link, outlive, rest_of};
use crate::superblock::{SuperBlock, change_dir_flags, object_of};
use children::{insert_child, remove_child};
use prim::atomic::Ordering::Relaxed;
use sync::GetNotDead;
use sync::rcu::ReadGuard;

/// What a new inode begins with.
pub(crate) struct Fresh<'a> {
    pub(crate) node: u64,
    pub(crate) attr: &'a Attr,
    pub(crate) link_body: Option<&'a [u8]>,
    pub(crate) valid: Valid,
    /// What a file system told of it, for what is seldom there.
    pub(crate) told: Option<&'a NewInode>,
}

impl<'a> From<&'a NewInode> for Fresh<'a> {
    fn from(new: &'a NewInode) -> Self {
        Self { node: new.node, attr: &new.attr, link_body: new.link_body.as_deref(), valid: new.valid, told: Some(new) }
    }
}

impl SuperBlock {
    /// The hash by which `name` is filed.
    #[inline]
    pub(crate) fn hash(&self, name: &[u8]) -> u64 {
        match &self.rules {
            None => self.key.hash(name),
            Some(rules) => folded_hash(rules.hash(self.key.word(), name)),
        }
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
        let table = self.table();
        if let Some(rules) = &self.rules {
            let is_name = |own: &[u8]| rules.equal(own, name);
            return table.find_slow(guard, filed, |entry| entry.is_folded_rcu(dir, hash, guard, is_name));
        }
        match short(name) {
            Some(name) => {
                let wanted = hash_len(hash, name.len);
                table.find_slow(guard, filed, |entry| entry.is_short(dir, wanted, name))
            }
            None => table.find_slow(guard, filed, |entry| entry.is_entry_rcu(dir, hash, name, guard)),
        }
    }

    /// The entry `name` of the locked directory `dir`, positive or negative. It stays while the lock is held.
    pub(crate) fn cached(&self, dir: &Dentry, name: &[u8], hash: u64) -> Option<&Dentry> {
        let guard = self.domain.read();
        self.lookup_rcu(&guard, dir, name, hash).map(|entry| outlive(self, entry))
    }

    /// Forgets that there is no `name` in the locked directory `dir`, since there will be one.
    pub(crate) fn forget_negative(&self, dir: &Dentry, name: &[u8], hash: u64) {
        if dir.has(COMPLETE) {
            return;
        }
        if let Some(entry) = self.cached(dir, name, hash)
            && entry.object() & INODE == 0
        {
            self.delete(dir, entry, hash, 0, 0);
        }
    }

    /// Makes `slot` the entry `name` with a new inode in the locked directory `dir`. One count is the name's own.
    pub(crate) fn add<'s>(
        &'s self,
        slot: FreeSlot<'s>,
        dir: &Dentry,
        name: &[u8],
        hash: u64,
        new: &Fresh<'_>,
    ) -> &'s Dentry {
        let dentry = begin(slot);
        let inode = self.begin_inode(dentry, new);
        inode.slot_users.store(2, Relaxed);
        self.publish(dir, dentry, name, hash, object_of(inode, new.attr.mode, self.dir_flags), new.valid);
        dentry
    }

    /// Begins the life of the inode beside `dentry`.
    fn begin_inode<'d>(&self, dentry: &'d Dentry, new: &Fresh<'_>) -> &'d Inode {
        let inode = &rest_of(dentry).inode;
        inode.begin(new.attr, new.node);
        if let Some(body) = new.link_body {
            self.charge_body(body.len(), 1);
            inode.link_body.set(&self.domain, Some(body.into()));
        }
        if let Some(new) = new.told
            && (new.access_acl.is_some() || new.default_acl.is_some())
        {
            let (access, default) = (new.access_acl.clone(), new.default_acl.clone());
            inode.set_acl(&self.domain, Some(Acls { access, default }));
        }
        self.inodes.add(&self.domain, inode);
        inode
    }

    /// Counts the bytes of a symbolic link's body.
    pub(crate) fn charge_body(&self, len: usize, by: i64) {
        if self.is_limited {
            self.share(Kind::Entry).charge(by * (len + size_of::<Box<[u8]>>()) as i64);
        }
    }

    /// A dentry with a new inode and no name, on the parent `dir`; the count is the caller's.
    pub(crate) fn add_unnamed(&self, slot: FreeSlot<'_>, dir: &Dentry, new: &Fresh<'_>) -> Pinned {
        let dentry = begin(slot);
        let inode = self.begin_inode(dentry, new);
        inode.slot_users.store(2, Relaxed);
        dentry.set_entry(&self.domain, dir, 0, format!("#{}", new.attr.ino).as_bytes());
        dentry.retire_name();
        dentry.set_object(object_of(inode, new.attr.mode, self.dir_flags) | PARENT_PINNED);
        dir.count.get();
        dentry.count.revive(1);
        dentry.seq.write_end();
        Pinned::from_counted(dentry)
    }

    /// Makes `slot` one more name of `inode`, on which the caller has taken a reference for it, in the locked directory `dir`.
    pub(crate) fn add_alias<'s>(
        &'s self,
        slot: FreeSlot<'s>,
        dir: &Dentry,
        (name, hash): (&[u8], u64),
        inode: &Inode,
        valid: Valid,
    ) -> &'s Dentry {
        let dentry = begin(slot);
        rest_of(dentry).inode.slot_users.store(1, Relaxed);
        self.publish(dir, dentry, name, hash, object_of(inode, inode.mode(), self.dir_flags), valid);
        dentry
    }

    /// Remembers in the locked directory `dir` that there is no `name`.
    pub(crate) fn add_negative(&self, dir: &Dentry, name: &[u8], hash: u64, valid: Valid) {
        // Without room for it, it is asked for again.
        let Ok(slot) = self.slot(Kind::Negative, Some(dir)) else { return };
        let dentry = begin(slot);
        rest_of(dentry).inode.slot_users.store(1, Relaxed);
        self.publish(dir, dentry, name, hash, 0, valid);
    }

    /// Ends what [`begin`] began: gives the slot its name and makes it reachable.
    fn publish(&self, dir: &Dentry, dentry: &Dentry, name: &[u8], hash: u64, object: u64, valid: Valid) {
        dentry.set_entry(&self.domain, dir, hash, name);
        self.charge_name(object, name.len(), 1);
        let cold = if self.is_limited { COLD } else { 0 };
        // A walk goes through an open directory without a closer look; one that is good for a time only needs it.
        let checked = checked_flag(valid);
        let object = if checked == 0 { object } else { object & !SEARCH_ALL };
        dentry.set_object(object | HASHED | cold | checked);
        dentry.count.revive(1);
        dentry.seq.write_end();
        insert_child(dir, dentry);
        if !dir.has(COMPLETE) {
            set_expiry(dentry, valid);
            self.versions.bump(dir);
        }
        let guard = self.domain.read();
        link(self.table(), &self.domain, &guard, dentry, entry_hash(dir, hash));
    }

    /// Counts the bytes of a name that does not fit in its slot.
    pub(crate) fn charge_name(&self, object: u64, len: usize, by: i64) {
        if self.is_limited && len > INLINE_MAX {
            let kind = if object & INODE == 0 { Kind::Negative } else { Kind::Entry };
            self.share(kind).charge(by * name_bytes(len));
        }
    }

    /// Takes a dead entry of the locked directory `dir` out of the cache. Nothing has changed: lookups that run need not run again.
    pub(crate) fn evict_entry(&self, dir: &Dentry, dentry: &Dentry) {
        let hash = dentry.filed_hash_rcu(dir, self.key, &self.domain.read());
        self.unlink_name(dir, dentry, hash);
        remove_child(dir, dentry);
        self.bury(dentry);
    }

    /// What the file system says now of an entry of the locked directory that it was asked about again.
    pub(crate) fn refresh(&self, dentry: &Dentry, new: &NewInode) {
        let Some(inode) = dentry.inode() else { return };
        inode.update(|attr| {
            let kind = attr.kind();
            *attr = Attr { mode: kind | new.attr.mode & 0o7777, ..new.attr };
        });
        set_expiry(dentry, new.valid);
        dentry.change_flags(CHECKED, checked_flag(new.valid));
        if new.attr.is_dir() {
            change_dir_flags(dentry, 0, 0);
        }
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
            let hash = child.filed_hash_rcu(dir, self.key, &self.domain.read());
            self.delete(dir, child, hash, 0, 0);
        }
    }

    fn unhash(&self, dir: &Dentry, dentry: &Dentry, hash: u64) {
        self.unlink_name(dir, dentry, hash);
        if !dir.has(COMPLETE) {
            self.versions.bump(dir);
        }
    }

    fn unlink_name(&self, dir: &Dentry, dentry: &Dentry, hash: u64) {
        dentry.seq.write_begin();
        dentry.clear_hashed();
        dentry.retire_name();
        let guard = self.domain.read();
        let removed = self.table().remove(&self.domain, &guard, dentry, entry_hash(dir, hash));
        debug_assert!(removed, "a hashed entry is on the chain of its name");
        dentry.seq.write_end();
    }

    /// Takes an entry out of the table when nobody can hold it or change its directory any more.
    pub(crate) fn unhash_last(&self, dentry: &Dentry) {
        if let Some(dir) = dentry.parent() {
            let hash = dentry.filed_hash_rcu(dir, self.key, &self.domain.read());
            self.unhash(dir, dentry, hash);
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
}

/// Begins a write section of the slot's dentry, which [`SuperBlock::publish`] ends: who still stands on the slot's former life and
/// sees anything of the new one, the inode's attributes included, also sees that the sequence moved.
fn begin(slot: FreeSlot<'_>) -> &Dentry {
    let dentry = slot.take();
    dentry.seq.write_begin();
    dentry
}

/// The flag of an entry that is good for a time only.
fn checked_flag(valid: Valid) -> u64 {
    if valid == Valid::UntilTold { 0 } else { CHECKED }
}

/// Sets until when an entry is good. Such entries are in no listing of ours, so `cookie` is free.
fn set_expiry(dentry: &Dentry, valid: Valid) {
    let until = match valid {
        Valid::UntilTold => u64::MAX,
        Valid::For(ns) => u64::try_from(prim::clock::monotonic_ns()).unwrap_or(0).saturating_add(ns),
    };
    // Relaxed: a time; who reads an old one asks once too often, or sees what was good a moment ago.
    dentry.cookie.store(until, Relaxed);
}

impl Dentry {
    /// Whether the time that the entry was good for is over.
    pub(crate) fn is_expired(&self) -> bool {
        u64::try_from(prim::clock::monotonic_ns()).unwrap_or(0) >= self.cookie.load(Relaxed)
    }

    /// Lets the entry be asked for before it is used next. From any thread, without a lock. A root has no name to be asked for by.
    pub(crate) fn expire(&self) {
        if self.is_in(self) {
            return;
        }
        self.cookie.store(0, Relaxed);
        if self.object() & crate::dentry::DIR == 0 {
            self.change_flags(0, CHECKED);
        } else {
            change_dir_flags(self, 0, CHECKED);
        }
    }
}

#[cfg(test)]
mod tests;
