//! Listings of directories: the next entries, or those that follow a cookie.
//!
//! # What it is
//! Entries come in batches: from the cache, if it has all names; from a cached listing; or from the file
//! system, which may return attributes with them ([`prime`](crate::walk::prime)).
//!
//! # How it is locked
//! A mutex of the open directory protects the position of the listing, which is taken out while entries are
//! returned. Each batch is read under the directory's lock.
//!
//! # Where it comes from
//! `getdents64(2)`, `telldir(3)`; cookies that stay with their entries, as NFS and FUSE need them.

use crate::base::attr::{S_IFDIR, S_IFMT};
use crate::base::errno::Errno;
use crate::base::rank::{Locked, Rank};
use crate::cache::listings::{Whole, entry_bytes};
use crate::cache::reclaim::LockedDirs;
use crate::cache::superblock::SuperBlock;
use crate::fs::{DirEntry, Listed, NewInode, Want};
use crate::mount::place::PathRef;
use crate::ops::file::OpenFile;
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use crate::walk::prime;
use prim::atomic::Ordering::Relaxed;
use prim::shared::PlainArc as Arc;
use std::collections::VecDeque;
use sync::MutexGuard;
use sync::lockdep::Ranked;

/// Entries that a listing reads from the cache under one hold of the directory's lock.
const LIST_BATCH: usize = 64;

/// Entries of one call of the file system, which may be far away, or of a cached listing.
const FETCH_BATCH: usize = 1024;

/// An entry and its cookie.
type CookieEntry = (DirEntry, u64);

/// The entries since the beginning, to cache them if the listing becomes complete.
#[derive(Debug)]
struct Collected {
    /// The directory's counter of changes at the beginning of the listing.
    version: u64,
    entries: Vec<CookieEntry>,
    bytes: u64,
}

/// The position of a listing of a directory.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Entries that were read but not returned yet.
    taken: VecDeque<CookieEntry>,
    /// The cookie of the entry returned last.
    given: u64,
    /// The cookie of the entry read last.
    cookie: u64,
    /// The entry read last, held so that the next batch finds its place at once.
    last: Option<PathRef>,
    /// A cached listing, and how much of it was read.
    kept: Option<(Arc<Whole>, usize)>,
    collected: Option<Collected>,
    done: bool,
}

impl OpenFile {
    /// Returns the next batch of entries of the directory; empty at the end. Without `.` and `..`.
    ///
    /// A name that the directory has from the first call to the last is returned exactly once,
    /// whatever is created, removed or renamed meanwhile, even over this name. A name that is added
    /// meanwhile is not returned.
    ///
    /// # Errors
    /// `ENOTDIR`; `EBADF` on a place opened with `PATH`; the file system's.
    pub fn next_entries(&self) -> Result<Vec<DirEntry>, Errno> {
        self.next_entries_with(Want::NAMES)
    }

    /// As [`next_entries`](Self::next_entries), by a caller that uses the data in `want` of all
    /// entries of a listing. The attributes that the file system returns with the names are in the
    /// cache afterwards ([`Listed::inode`]).
    ///
    /// # Errors
    /// As for [`OpenFile::next_entries`].
    pub fn next_entries_with(&self, want: Want) -> Result<Vec<DirEntry>, Errno> {
        let inode = self.listed()?;
        let mut held = self.listing_lock();
        let listing = held.get_or_insert_default();
        let mut entries = Vec::from(core::mem::take(&mut listing.taken));
        if entries.is_empty() {
            entries = self.next_batch(inode, listing, want)?;
        }
        listing.given = listing.cookie;
        self.accessed(inode);
        Ok(entries.into_iter().map(|(entry, _)| entry).collect())
    }

    /// Calls `emit` with each entry after the entry with the cookie `after` (0: from the start),
    /// and the entry's cookie, until `emit` returns `false`. `emit` has not taken that entry, and
    /// the next call begins with it. `.` and `..` are left out.
    ///
    /// An entry keeps its cookie while it has its name. Continuing from the end of the last call
    /// needs no search. `emit` may use the tree freely. If another thread lists the same open
    /// directory meanwhile, that thread begins at its own cookie or at the start. `want`: as for
    /// [`OpenFile::next_entries_with`].
    ///
    /// # Errors
    /// As for [`OpenFile::next_entries`].
    pub fn entries_after(
        &self,
        after: u64,
        want: Want,
        emit: &mut dyn FnMut(&DirEntry, u64) -> bool,
    ) -> Result<(), Errno> {
        let inode = self.listed()?;
        let mut listing = self.listing_lock().take().unwrap_or_default();
        if after == 0 || listing.given != after {
            *listing = Listing { given: after, cookie: after, ..Listing::default() };
        }
        let done = self.give_out(inode, &mut listing, want, emit);
        **self.listing_lock() = Some(listing);
        done
    }

    fn give_out(
        &self,
        inode: &Inode,
        listing: &mut Listing,
        want: Want,
        emit: &mut dyn FnMut(&DirEntry, u64) -> bool,
    ) -> Result<(), Errno> {
        loop {
            while let Some((entry, cookie)) = listing.taken.front() {
                if !emit(entry, *cookie) {
                    return Ok(());
                }
                listing.given = *cookie;
                listing.taken.pop_front();
            }
            let next = self.next_batch(inode, listing, want)?;
            if next.is_empty() {
                self.accessed(inode);
                return Ok(());
            }
            listing.taken.extend(next);
        }
    }

    /// Returns the bytes of the entries that this open directory keeps for the next call.
    #[must_use]
    pub fn listing_bytes(&self) -> u64 {
        self.listing_lock().as_ref().map_or(0, |listing| {
            let taken: u64 = listing.taken.iter().map(|(entry, _)| entry_bytes(entry)).sum();
            let collected = listing.collected.as_ref().map_or(0, |all| all.bytes);
            taken + collected + listing.kept.as_ref().map_or(0, |(whole, _)| whole.bytes())
        })
    }

    /// Frees the entries that this open directory keeps. The listing continues where it is, and calls
    /// the file system again for them.
    pub fn trim_listing(&self) {
        let mut held = self.listing_lock();
        if let Some(listing) = &mut **held {
            **listing = Listing { given: listing.given, cookie: listing.given, ..Listing::default() };
        }
    }

    /// Begins the listing again.
    pub fn rewind(&self) {
        **self.listing_lock() = None;
    }

    fn listing_lock(&self) -> Ranked<'_, Rank, MutexGuard<'_, Option<Box<Listing>>>> {
        self.held.sb().ranks.lock(Rank::Handle, &self.listing)
    }

    /// Returns the inode of the open directory.
    fn listed(&self) -> Result<&Inode, Errno> {
        self.check_open()?;
        let inode = self.inode()?;
        if inode.mode() & S_IFMT == S_IFDIR { Ok(inode) } else { Err(Errno::ENOTDIR) }
    }

    /// Returns the entries after the one read last; none at the end.
    fn next_batch(&self, inode: &Inode, listing: &mut Listing, want: Want) -> Result<Vec<CookieEntry>, Errno> {
        if listing.done {
            return Ok(Vec::new());
        }
        let sb = self.held.sb();
        let dir = self.held.dentry();
        let locked = sb.lock_dir(dir);
        if !dir.object().is_complete() {
            return self.fetch_entries(locked, inode, listing, want);
        }
        let mut next = match (&listing.last, listing.cookie) {
            (None, 0) => dir.first_child.get(),
            (last, cookie) => after(dir, last.as_ref().map(PathRef::dentry), cookie),
        };
        let mut entries = Vec::new();
        let mut last = None;
        while let Some(entry) = next
            && entries.len() < LIST_BATCH
        {
            if !entry.object().is_negative() {
                let cookie = entry.cookie.load(Relaxed);
                entries.push((describe(sb, entry)?, cookie));
                last = Some(entry);
                listing.cookie = cookie;
            }
            next = entry.sib_next.get();
        }
        listing.done = next.is_none();
        listing.last = last.filter(|_| !listing.done).map(|last| self.held.beside(sb.pin_again(last)));
        Ok(entries)
    }

    /// Returns the next entries from a cached listing, or from the file system. `locked`: the
    /// directory, which a remote file system lists without the lock.
    fn fetch_entries(
        &self,
        locked: Locked<'_>,
        inode: &Inode,
        listing: &mut Listing,
        want: Want,
    ) -> Result<Vec<CookieEntry>, Errno> {
        let (sb, dir) = (self.held.sb(), self.held.dentry());
        if sb.keeps_listing_of(inode) && listing.cookie == 0 {
            let version = sb.versions.of(dir);
            listing.kept = sb.listings.get(dir, version).map(|whole| (whole, 0));
            listing.collected = Some(Collected { version, entries: Vec::new(), bytes: 0 });
        }
        if let Some(next) = self.kept_entries(listing, want) {
            return Ok(next);
        }
        let (invalidations, version) = (sb.invalidations(), sb.versions.of(dir));
        let locked = sb.name_locks.is_none().then_some(locked);
        let mut entries: Vec<CookieEntry> = Vec::new();
        let mut inodes: Vec<(usize, NewInode)> = Vec::new();
        sb.fs().read_dir(&self.request(), &self.open(inode), listing.cookie, want, &mut |listed| {
            let Listed { entry, cookie, inode } = listed;
            inodes.extend(inode.filter(|_| want.attributes).map(|inode| (entries.len(), inode)));
            entries.push((entry, cookie));
            entries.len() < FETCH_BATCH
        })?;
        // A change in the meantime, which the answer may lack, was counted.
        let is_current = locked.is_some();
        let mut locked = LockedDirs::new(locked.unwrap_or_else(|| sb.lock_dir(dir)));
        if want.attributes && !entries.is_empty() {
            sb.note_listing(inodes.is_empty());
            if is_current || sb.versions.of(dir) == version {
                let listed = inodes.iter().map(|(at, inode)| (&*entries[*at].0.name, inode));
                prime::learn_listed(sb, locked.may_evict(), dir, invalidations, listed);
            }
        }
        listing.cookie = entries.last().map_or(listing.cookie, |(_, cookie)| *cookie);
        listing.done = entries.len() < FETCH_BATCH;
        self.collect(listing, &entries);
        Ok(entries)
    }

    /// Returns the next entries from a cached listing, if the listing has one. It has no
    /// attributes: if the caller uses those, and the cache lacks some, a file system that may
    /// return them with its listings is called again.
    fn kept_entries(&self, listing: &mut Listing, want: Want) -> Option<Vec<CookieEntry>> {
        let (sb, dir) = (self.held.sb(), self.held.dentry());
        let (whole, at) = listing.kept.as_mut()?;
        let next = whole.from(*at, FETCH_BATCH);
        let names = next.iter().map(|(entry, _)| &*entry.name);
        if want.attributes && !sb.lists_names_only() && !prime::has_all(sb, dir, names) {
            if *at != 0 {
                listing.collected = None;
            }
            listing.kept = None;
            return None;
        }
        *at += next.len();
        // The position in the file system, in case the listing restarts from a cookie.
        listing.cookie = next.last().map_or(listing.cookie, |(_, cookie)| *cookie);
        listing.done = next.len() < FETCH_BATCH;
        let next = next.to_vec();
        if listing.done {
            listing.kept = None;
        }
        Some(next)
    }

    /// Caches the listing if it is complete and the directory did not change meanwhile.
    fn collect(&self, listing: &mut Listing, entries: &[CookieEntry]) {
        let (sb, dir) = (self.held.sb(), self.held.dentry());
        let Some(mut all) = listing.collected.take() else { return };
        all.entries.extend_from_slice(entries);
        all.bytes += entries.iter().map(|(entry, _)| entry_bytes(entry)).sum::<u64>();
        if sb.versions.of(dir) != all.version || all.bytes > sb.listings.most() {
            return;
        }
        if listing.done { sb.listings.put(dir, all.version, all.entries) } else { listing.collected = Some(all) }
    }
}

/// Returns the entry of the locked directory `dir` after the one with `cookie`, which was `last`.
fn after<'d>(dir: &'d Dentry, last: Option<&'d Dentry>, cookie: u64) -> Option<&'d Dentry> {
    if let Some(last) = last
        && last.object().is_hashed()
        && last.is_in(dir)
        && last.cookie.load(Relaxed) == cookie
    {
        return last.sib_next.get();
    }
    // The entry with the cookie was removed or moved, or is unknown: cookies fall along the list.
    let mut entries = core::iter::successors(dir.first_child.get(), |entry| entry.sib_next.get());
    entries.find(|entry| entry.cookie.load(Relaxed) < cookie)
}

fn describe(sb: &SuperBlock, entry: &Dentry) -> Result<DirEntry, Errno> {
    let attr = entry.inode().ok_or(Errno::EIO)?.attr();
    let guard = sb.domain.read();
    Ok(DirEntry { name: entry.with_name_rcu(&guard, |name| name.into()), ino: attr.ino, kind: attr.kind() })
}
