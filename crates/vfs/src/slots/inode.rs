//! The inode: a file, independent of its names.
//!
//! # What it is
//! An inode has two cache lines. The *hot* line holds the attributes that `stat(2)` and permission
//! checks read. It lies beside the dentry of the file's first name, so that a walk can prefetch the
//! line while it still compares the name. The *cold* line serves opening, linking and freeing, and
//! holds the file system's own word and data.
//!
//! Here: the memory, and readers of it. [`mod@reference`]: references on inodes; [`rights`]:
//! changes of attributes; [`staleness`]: whether the attributes are the file system's current ones;
//! [`obeyed`]: flags that the VFS obeys.
//!
//! # How it is locked
//! `seq` is a sequence lock: writers of attributes exclude one another by it; readers copy and
//! check. Readers also check the dentry's sequence, since the memory is reused: an inode is freed
//! only after each of its names changed its sequence. `data_lock` orders writes and truncation of
//! the contents.
//!
//! # Where it comes from
//! Linux's `struct inode` and its `i_rwsem`, `i_private`, `i_link`.

mod obeyed;
mod reference;
mod rights;
mod staleness;

pub(crate) use reference::{DeadInode, InodeRef};
pub(crate) use staleness::AttrSample;

use crate::base::access::acl::Acls;
use crate::base::access::credentials::Rights;
use crate::base::attr::Attr;
use crate::base::packed_attr::{NO_BIRTH, PackedAttr, extra, sharded_extra};
use crate::base::valid::Valid;
use crate::slots::dentry::Dentry;
use crate::slots::slot::{InSlot, Private, RcuBytes, first_line};
use prim::atomic::{
    AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use sync::rcu::{RcuDomain, ReadGuard};
use sync::{Mutex, SeqLock};

/// A file, independent of its names: attributes, and the file system's own word and data.
#[repr(C, align(64))]
pub struct Inode {
    seq: SeqLock,
    mode: AtomicU32,
    nlink: AtomicU32,
    uid: AtomicU32,
    gid: AtomicU32,
    /// Storage in units of 4096 bytes; the device number of a device node, which has no storage.
    pages_or_rdev: AtomicU32,
    size: AtomicU64,
    ino: AtomicU64,
    atime: AtomicI64,
    mtime: AtomicI64,
    ctime: AtomicI64,

    /// References: dentries of this inode, and lookups that found it by its node.
    refs: AtomicU32,
    /// Uses of the slot: one by the dentry in it, one by this inode.
    pub(crate) slot_users: AtomicU32,
    /// The file system's number of the inode.
    node: AtomicU64,
    pub(crate) private: Private,
    /// A symbolic link's body.
    pub(crate) link_body: RcuBytes,
    pub(crate) data_lock: Mutex<()>,
    /// Until when the attributes may be used for held files: ticks, [`FOREVER`], [`AGED`] or
    /// [`OLD`].
    attr_until: AtomicU32,
    /// While the slot is free, the slab's. While the inode lives, when the file was made ([`NO_BIRTH`]: not kept here), as the bits
    /// of an address that is never followed.
    pub(crate) free_link: AtomicPtr<Dentry>,
    /// The next inode on the chain of the table of nodes.
    pub(crate) next: AtomicUsize,
    /// Its ACLs; read only if `mode` has [`HAS_ACL`].
    acl: InSlot<Acls>,
}

/// The kind of copies that the cache has of a file system's attributes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    /// Whether the attributes are copies of attributes that the file system reports:
    /// [`crate::Attributes::FileSystem`].
    pub(crate) is_reported: bool,
    /// The inode exists from the creation of the file on: [`crate::NameStore::Cache`].
    pub(crate) is_from_birth: bool,
}

/// Flag in an inode's own `mode`, never shown: it has an access ACL.
const HAS_ACL: u32 = 1 << 31;
/// Such a flag: it has a default ACL.
const HAS_DEFAULT_ACL: u32 = 1 << 30;
/// Such a flag: it was created without a name and may get one.
const LINKABLE: u32 = 1 << 29;
/// Such a flag: its attributes are stale; the VFS requests them before it shows them.
const STALE: u32 = 1 << 28;
/// Such a flag: its file system reports its attributes, so that each change marks them stale.
const REPORTED: u32 = 1 << 27;
/// Bits of the same: how many times the attributes became stale or were requested, modulo 1024. See [`staleness`].
const VERSION: u32 = 0x3ff << VERSION_BIT;
/// The lowest bit of [`VERSION`].
const VERSION_BIT: u32 = 17;
/// Flag in an inode's own `mode`, never shown: its file system has flags of it that the VFS obeys (see [`obeyed`]).
const HAS_FLAGS: u32 = 1 << 16;
/// Bits of an inode's own `mode`, never shown.
const OWN_FLAGS: u32 = HAS_ACL | HAS_DEFAULT_ACL | LINKABLE | STALE | REPORTED | VERSION | HAS_FLAGS;

/// Nanoseconds of a tick of `attr_until`, as a power of two: 67 ms. So it counts the clock's first nine years; after them,
/// attributes with a time of validity are requested at each use.
const TICK_BITS: u32 = 26;
/// `attr_until`: until the file system invalidates them.
const FOREVER: u32 = u32::MAX;
/// `attr_until`: invalidated, otherwise valid until that.
const AGED: u32 = 0;
/// `attr_until`: invalidated, otherwise valid for a time.
const OLD: u32 = 1;

/// Returns the tick of a time, rounded down.
fn tick_of(ns: u64) -> u32 {
    u32::try_from(ns >> TICK_BITS).unwrap_or(FOREVER - 1).clamp(OLD + 1, FOREVER - 1)
}

impl Inode {
    pub(crate) fn vacant() -> Self {
        Self {
            seq: SeqLock::new(),
            mode: AtomicU32::new(0),
            nlink: AtomicU32::new(0),
            uid: AtomicU32::new(0),
            gid: AtomicU32::new(0),
            pages_or_rdev: AtomicU32::new(0),
            size: AtomicU64::new(0),
            ino: AtomicU64::new(0),
            atime: AtomicI64::new(0),
            mtime: AtomicI64::new(0),
            ctime: AtomicI64::new(0),
            refs: AtomicU32::new(0),
            slot_users: AtomicU32::new(0),
            node: AtomicU64::new(0),
            private: Private::none(),
            link_body: RcuBytes::none(),
            data_lock: Mutex::new(()),
            attr_until: AtomicU32::new(AGED),
            free_link: AtomicPtr::new(core::ptr::null_mut()),
            next: AtomicUsize::new(0),
            acl: InSlot::none(),
        }
    }

    /// Begins a life with these attributes, the file system's number and one name, whose reference it returns. No other
    /// thread can reach the inode yet.
    #[inline(always)]
    pub(crate) fn begin(&self, attr: &Attr, node: u64, kept: Kept) -> InodeRef<'_> {
        self.prepare(attr, node, kept);
        self.begin_prepared()
    }

    /// Does the first half of [`begin`](Self::begin): no reference can be taken yet.
    #[inline(always)]
    pub(crate) fn prepare(&self, attr: &Attr, node: u64, kept: Kept) {
        self.mode.store(if kept.is_reported { REPORTED } else { 0 }, Relaxed);
        self.store(attr);
        self.node.store(node, Relaxed);
        let birth = if kept.is_from_birth { attr.ctime } else { NO_BIRTH };
        // Relaxed: as the attributes. The slot has left the slab, whose word this is while the slot is free.
        self.free_link.store(core::ptr::without_provenance_mut(birth as usize), Relaxed);
    }

    /// Does the second half of [`begin`](Self::begin).
    pub(crate) fn begin_prepared(&self) -> InodeRef<'_> {
        // ORDERING: Release, pairs with the Acquire of `InodeRef::take`: a thread that found the slot's former inode
        // by its node, and gets a reference on this one, sees that the node is another.
        // (crates/sync/tests/loom/vfs_forget.rs)
        self.refs.store(1, Release);
        InodeRef(self)
    }

    /// Returns the file system's number of the inode.
    #[must_use]
    pub fn node(&self) -> u64 {
        self.node.load(Relaxed)
    }

    /// Returns when the file was made, in nanoseconds since the epoch. `None`: its file system keeps its names outside of the cache
    /// ([`NameStore::FileSystem`](crate::NameStore::FileSystem)), so that the inode may have begun later than the file.
    #[inline]
    #[must_use]
    pub fn birth(&self) -> Option<i64> {
        Some(self.birth_word()).filter(|birth| *birth != NO_BIRTH)
    }

    #[inline(always)]
    fn birth_word(&self) -> i64 {
        // Relaxed: it does not change while the inode lives.
        self.free_link.load(Relaxed).addr() as i64
    }

    /// Returns the file system's own data of this inode, if it is a `T`: set once by
    /// [`Inode::data_or`], dropped with the inode.
    #[must_use]
    pub fn data<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.private.get()?.downcast_ref()
    }

    /// Returns the file system's own data, made by `make` if there is none yet. `None` if there is
    /// some of another type.
    pub fn data_or<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.private.get_or_set(|| Box::new(make())).downcast_ref()
    }

    /// Returns the attributes, all of one moment.
    #[inline]
    #[must_use]
    pub fn attr(&self) -> Attr {
        self.seq.read(|| self.load())
    }

    /// Returns the attributes, all of one moment, as they lie here. `None` if they are stale, or if
    /// a writer is at work: then the caller must look again in a function that may wait.
    #[inline(always)]
    pub(crate) fn packed(&self) -> Option<PackedAttr> {
        let Some(line) = first_line(self) else {
            return (!self.is_stale()).then(|| PackedAttr::from(&self.attr()).with_birth(self.birth()));
        };
        // ORDERING: the count is in the first word, which `prim::wide::load` loads before the others, as by Acquire: it
        // pairs with the Release that ends a write, so the rest is not older. `read_retry` shows that it is not newer.
        // (not visible to loom, which loads word by word, above)
        let first = line.words()[0];
        let is_refused = first & (1 | u64::from(STALE) << 32) != 0 || self.seq.read_retry(first as u32);
        (!is_refused).then(|| PackedAttr::new(line, self.birth_word()))
    }

    /// Sets for how long the attributes are valid after this call.
    #[inline(always)]
    pub(crate) fn set_valid(&self, valid: Valid) {
        let until = match valid {
            Valid::UntilInvalidated => FOREVER,
            Valid::For(ns) => tick_of(monotonic_ns().saturating_add(ns)),
        };
        // Relaxed: a time, as an entry's.
        self.attr_until.store(until, Relaxed);
    }

    /// Returns whether the attributes are valid for a time only.
    pub(crate) fn has_ttl(&self) -> bool {
        !matches!(self.attr_until.load(Relaxed), FOREVER | AGED)
    }

    /// Returns whether the attributes are too old for a user that holds the file and does not look
    /// its name up.
    pub(crate) fn is_old(&self) -> bool {
        let until = self.attr_until.load(Relaxed);
        until != FOREVER && tick_of(monotonic_ns()) >= until
    }

    /// Makes the attributes too old: the name was invalidated.
    pub(crate) fn age(&self) {
        self.attr_until.store(if self.has_ttl() { OLD } else { AGED }, Relaxed);
    }

    /// Updates a directory that gained or lost an entry: its length, links and times.
    #[inline(always)]
    pub(crate) fn entry_changed(&self, size_by: i64, nlink_by: i32, now: i64) {
        let _held = self.seq.write_lock();
        // Relaxed: inside the sequence lock's write section.
        self.size.store(self.size.load(Relaxed).wrapping_add_signed(size_by), Relaxed);
        let links = self.nlink.load(Relaxed);
        // A file system that does not count subdirectories gives each directory one link.
        self.nlink.store(if links == 1 { 1 } else { links.saturating_add_signed(nlink_by) }, Relaxed);
        self.mtime.store(now, Relaxed);
        self.ctime.store(now, Relaxed);
        self.note_change();
    }

    /// Updates a file that gained or lost a name.
    #[inline]
    pub(crate) fn link_changed(&self, nlink_by: i32, now: i64) {
        let _held = self.seq.write_lock();
        // Relaxed: as above.
        self.nlink.store(self.nlink.load(Relaxed).saturating_add_signed(nlink_by), Relaxed);
        self.ctime.store(now, Relaxed);
        self.note_change();
    }

    /// Updates a file that lost its last name and has no other reference, without the lock.
    pub(crate) fn last_link_went(&self, links: i32) {
        self.nlink.store(self.nlink.load(Relaxed).saturating_add_signed(-links), Relaxed);
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size.load(Relaxed)
    }

    /// File type and permission bits.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.mode.load(Relaxed) & !OWN_FLAGS
    }

    /// Mode, owner and group, of one moment.
    #[inline(always)]
    pub(crate) fn rights(&self) -> Rights {
        // Relaxed: ordered by the samples of `seq`.
        let load =
            || Rights { mode: self.mode.load(Relaxed), uid: self.uid.load(Relaxed), gid: self.gid.load(Relaxed) };
        let rights = self.seq.read(load);
        Rights { mode: rights.mode & !OWN_FLAGS, ..rights }
    }

    /// Bytes of storage.
    pub(crate) fn stored(&self) -> u64 {
        sharded_extra(self.mode(), self.pages_or_rdev.load(Relaxed)).1 * 512
    }

    /// Names, and of a directory also subdirectories. The caller has its lock.
    pub(crate) fn links(&self) -> u32 {
        self.nlink.load(Relaxed)
    }

    /// Returns whether it has an access ACL.
    pub(crate) fn has_acl(&self) -> bool {
        self.mode.load(Relaxed) & HAS_ACL != 0
    }

    /// Returns whether new entries of the directory begin with an ACL.
    pub(crate) fn has_default_acl(&self) -> bool {
        self.mode.load(Relaxed) & HAS_DEFAULT_ACL != 0
    }

    /// Returns whether the inode, created without a name, may get one.
    pub(crate) fn is_linkable(&self) -> bool {
        self.mode.load(Relaxed) & LINKABLE != 0
    }

    /// Lets the inode, created without a name and not yet reachable, get one.
    pub(crate) fn set_linkable(&self) {
        self.mode.store(self.mode.load(Relaxed) | LINKABLE, Relaxed);
    }

    /// Notes that the inode got its first name: after its last one it gets no other, as Linux's
    /// `I_LINKABLE`.
    pub(crate) fn clear_linkable(&self) {
        if self.is_linkable() {
            let _held = self.seq.write_lock();
            // Relaxed: inside the sequence lock's write section.
            self.mode.store(self.mode.load(Relaxed) & !LINKABLE, Relaxed);
        }
    }

    /// Returns the ACLs of the inode, if it has any.
    pub(crate) fn acl<'g>(&'g self, guard: &'g ReadGuard<'_>) -> Option<&'g Acls> {
        self.acl.load(guard)
    }

    /// Replaces its ACLs. The caller excludes other writers of them.
    pub(crate) fn set_acl(&self, domain: &RcuDomain, acls: Option<Acls>) {
        let flag = |has: bool, flag: u32| if has { flag } else { 0 };
        let access = flag(acls.as_ref().is_some_and(|acls| acls.access.is_some()), HAS_ACL);
        let default = flag(acls.as_ref().is_some_and(|acls| acls.default.is_some()), HAS_DEFAULT_ACL);
        self.acl.replace(domain, acls, Acls::heap_bytes);
        let _held = self.seq.write_lock();
        // Relaxed: inside the sequence lock's write section.
        let mode = self.mode.load(Relaxed) & !(HAS_ACL | HAS_DEFAULT_ACL);
        self.mode.store(mode | access | default, Relaxed);
    }

    /// Gives a new inode, which no other thread sees yet, its ACLs.
    pub(crate) fn begin_acls(&self, domain: &RcuDomain, acls: Option<Acls>) {
        if acls.is_some() {
            self.set_acl(domain, acls);
        }
    }

    /// Drops the ACLs of a dead inode.
    pub(crate) fn clear_acl(&self, domain: &RcuDomain) {
        // Without the exchange as a rule. The inode is dead, so no thread sets one.
        if !self.acl.is_none() {
            self.acl.replace(domain, None, Acls::heap_bytes);
        }
    }

    /// Returns whether it owns no memory.
    #[cfg(test)]
    pub(crate) fn owns_nothing(&self) -> bool {
        self.private.get().is_none() && self.link_body.is_none() && self.acl.is_none()
    }

    pub(crate) fn is_alive(&self) -> bool {
        // Relaxed: a first look; `InodeRef::take` decides.
        self.refs.load(Relaxed) != 0
    }

    pub(crate) fn refs(&self) -> u32 {
        // Relaxed: a hint.
        self.refs.load(Relaxed)
    }

    /// Returns whether the caller's dentry is the only one (no other thread can add one then).
    pub(crate) fn is_last(&self) -> bool {
        // ORDERING: Acquire, pairs with the AcqRel of `InodeRef::put` in the threads that dropped the other dentries.
        self.refs.load(Acquire) == 1
    }

    /// Copies the attributes. Stable only if the caller checks `seq`.
    #[inline(always)]
    fn load(&self) -> Attr {
        // Relaxed: ordered by the caller's samples of `seq`.
        let mode = self.mode.load(Relaxed) & !OWN_FLAGS;
        let (rdev, blocks) = sharded_extra(mode, self.pages_or_rdev.load(Relaxed));
        Attr {
            ino: self.ino.load(Relaxed),
            mode,
            nlink: self.nlink.load(Relaxed),
            uid: self.uid.load(Relaxed),
            gid: self.gid.load(Relaxed),
            rdev,
            size: self.size.load(Relaxed),
            blocks,
            atime: self.atime.load(Relaxed),
            mtime: self.mtime.load(Relaxed),
            ctime: self.ctime.load(Relaxed),
        }
    }

    #[inline(always)]
    fn store(&self, attr: &Attr) {
        // Relaxed: inside the sequence lock's write section, or before the inode is reachable.
        self.mode.store(attr.mode | self.mode.load(Relaxed) & OWN_FLAGS, Relaxed);
        self.nlink.store(attr.nlink, Relaxed);
        self.uid.store(attr.uid, Relaxed);
        self.gid.store(attr.gid, Relaxed);
        self.pages_or_rdev.store(extra(attr), Relaxed);
        self.size.store(attr.size, Relaxed);
        self.ino.store(attr.ino, Relaxed);
        self.atime.store(attr.atime, Relaxed);
        self.mtime.store(attr.mtime, Relaxed);
        self.ctime.store(attr.ctime, Relaxed);
    }
}

fn monotonic_ns() -> u64 {
    u64::try_from(prim::clock::monotonic_ns()).unwrap_or(0)
}

impl core::fmt::Debug for Inode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Inode").field("node", &self.node()).field("attr", &self.attr()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::{offset_of, size_of};

    #[test]
    fn what_stat_reports_lies_in_the_first_line() {
        assert_eq!(size_of::<Inode>(), 128);
        assert_eq!(offset_of!(Inode, seq), 0);
        assert_eq!(offset_of!(Inode, ctime), 56);
        assert_eq!(offset_of!(Inode, refs), 64);
    }
}
