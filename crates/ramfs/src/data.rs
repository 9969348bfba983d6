//! The data of one inode: contents, extended attributes and flags, and the number of the user who pays for them.
//!
//! # What it is
//! The file system makes the [`Data`] of an inode when a caller first writes contents, or sets an
//! attribute or a flag. An inode without any of these has no `Data`. The file system charges
//! storage to the [`Limits`] before it uses the storage.
//!
//! # How it is locked
//! One [`BiasedRwLock`] protects all data of an inode. So a read is atomic against writes, and
//! threads that read one file write to no common cache line. The locks of `limits` nest inside. The
//! file system has the slots of the readers.
//!
//! # Cost of shared pages
//! Each file is charged for all of its pages, the pages that it shares with other files included.
//! So a write to a file that shares pages needs no room, and the owner of the other file has no
//! effect on the charge. The file system may take less memory than it reports.
//!
//! # Limitations
//! The charge follows `chown(2)` in the order of the calls of `set_attr`. If two calls run at once
//! and their changes take effect in the other order, the charge stays with the wrong one of the two
//! owners. In any case the charge is returned to the account from which it was taken.

use crate::contents::{Contents, PAGE_BYTES, Shares};
use crate::limits::{Amount, Limits, QuotaHandle};
use crate::xattrs::Xattrs;
use core::ops::Range;
use sync::{BiasedReaders, BiasedRwLock, PagePool};
use vfs::{Allocate, Errno, InodeFlags, SeekFor, SetXattr, Written};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Data {
    state: BiasedRwLock<State>,
}

#[derive(Debug)]
struct State {
    /// The user who is charged: the file's owner, as of the last call of [`Data::set_owner`].
    owner: u32,
    /// Names beyond the first that are charged as inodes.
    links: u64,
    contents: Contents,
    xattrs: Xattrs,
    flags: InodeFlags,
}

/// The limits to which one call charges storage, and the pool that the storage comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Charge<'l> {
    pub(crate) limits: &'l Limits,
    pub(crate) pool: &'l PagePool,
    pub(crate) readers: &'l BiasedReaders,
    /// As [`QuotaHandle::privileged`].
    pub(crate) privileged: bool,
}

impl Charge<'_> {
    fn take(self, uid: u32, bytes: u64) -> Result<(), Errno> {
        self.limits.take(QuotaHandle { uid, privileged: self.privileged }, Amount { bytes, inodes: 0 })
    }

    fn give(self, uid: u32, bytes: u64) {
        self.limits.give(uid, Amount { bytes, inodes: 0 });
    }
}

impl Data {
    /// Empty data of a file that belongs to `owner`, of the file system with these readers.
    pub(crate) fn new(readers: &BiasedReaders, owner: u32) -> Self {
        let (contents, xattrs, flags) = (Contents::default(), Xattrs::default(), InodeFlags::empty());
        let state = State { owner, links: 0, contents, xattrs, flags };
        Self { state: BiasedRwLock::new(readers, state) }
    }

    /// Charges for a further name: `ENOSPC`.
    pub(crate) fn add_link(&self, readers: &BiasedReaders, limits: &Limits) -> Result<(), Errno> {
        let mut state = self.state.write(readers);
        limits.take_link()?;
        state.links += 1;
        Ok(())
    }

    /// Returns the charge for a name, unless it was the last one, with which the inode is charged.
    pub(crate) fn remove_link(&self, readers: &BiasedReaders, limits: &Limits) {
        let mut state = self.state.write(readers);
        if state.links != 0 {
            state.links -= 1;
            limits.give_links(1);
        }
    }

    /// Returns the names beyond the first that are still charged.
    pub(crate) fn links(&self, readers: &BiasedReaders) -> u64 {
        self.state.read(readers).links
    }

    /// Reads from `offset` on, where the caller has made sure that all of `buf` is within the file.
    pub(crate) fn read(&self, readers: &BiasedReaders, offset: u64, buf: &mut [u8]) {
        self.state.read(readers).contents.read(offset, buf);
    }

    /// Writes at `offset` as much as there is room for: `ENOSPC`, `EDQUOT` if there is none, `ENOMEM`.
    pub(crate) fn write(&self, charge: Charge<'_>, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        let state = &mut *self.state.write(charge.readers);
        let len = state.contents.write(charge.pool, offset, data, || charge.take(state.owner, PAGE_BYTES))?;
        Ok(Written::new(len, state.contents.blocks()))
    }

    /// Drops everything from `len` on; returns the storage that remains, in units of 512 bytes.
    /// `ENOMEM`, with nothing dropped, if a page that other files share must be copied for it.
    pub(crate) fn cut(&self, charge: Charge<'_>, len: u64) -> Result<u64, Errno> {
        let state = &mut *self.state.write(charge.readers);
        let freed = state.contents.cut(charge.pool, len)?;
        charge.give(state.owner, freed);
        Ok(state.contents.blocks())
    }

    /// Returns the pages that `range` touches, which are shared after this call.
    pub(crate) fn share(&self, readers: &BiasedReaders, range: &Range<u64>) -> Shares {
        self.state.write(readers).contents.share(range)
    }

    /// Replaces all pages that `range`, which begins at a page, touches, or none; returns the storage, in units of 512 bytes: `ENOSPC`,
    /// `EDQUOT`.
    pub(crate) fn put(&self, charge: Charge<'_>, range: &Range<u64>, shares: Shares) -> Result<u64, Errno> {
        let state = &mut *self.state.write(charge.readers);
        let (before, after) = (state.contents.stored(range), shares.len() as u64 * PAGE_BYTES);
        charge.take(state.owner, after.saturating_sub(before))?;
        state.contents.put(range, shares);
        charge.give(state.owner, before.saturating_sub(after));
        Ok(state.contents.blocks())
    }

    /// Returns the storage taken, in units of 512 bytes.
    pub(crate) fn blocks(&self, readers: &BiasedReaders) -> u64 {
        self.state.read(readers).contents.blocks()
    }

    /// Changes the storage of `len` bytes from `offset` on, or of none of them: `ENOSPC`, `EDQUOT`, `EFBIG`, `ENOMEM`.
    pub(crate) fn allocate(&self, charge: Charge<'_>, how: Allocate, offset: u64, len: u64) -> Result<u64, Errno> {
        let range = offset..offset.checked_add(len).ok_or(Errno::EFBIG)?;
        let state = &mut *self.state.write(charge.readers);
        if how == Allocate::PunchHole {
            let freed = state.contents.punch(charge.pool, &range)?;
            charge.give(state.owner, freed);
            return Ok(state.contents.blocks());
        }
        if how == Allocate::Zero {
            state.contents.make_own(charge.pool, &range)?;
        }
        let missing = state.contents.missing(&range);
        charge.take(state.owner, missing)?;
        state.contents.reserve(charge.pool, &range).inspect_err(|_| charge.give(state.owner, missing))?;
        if how == Allocate::Zero {
            state.contents.zero(charge.pool, &range)?;
        }
        Ok(state.contents.blocks())
    }

    /// Returns the first offset from `offset` on with storage, or without; `None` if there is none
    /// before the end.
    pub(crate) fn seek(&self, readers: &BiasedReaders, offset: u64, what: SeekFor) -> Option<u64> {
        let state = self.state.read(readers);
        match what {
            SeekFor::Data => state.contents.next_data(offset),
            SeekFor::Hole => Some(state.contents.next_hole(offset)),
        }
    }

    /// Returns the value of an extended attribute: `ENODATA`.
    pub(crate) fn xattr(&self, readers: &BiasedReaders, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.state.read(readers).xattrs.get(name)
    }

    /// Returns the names of all extended attributes.
    pub(crate) fn xattr_names(&self, readers: &BiasedReaders) -> Vec<Box<[u8]>> {
        self.state.read(readers).xattrs.names()
    }

    /// Sets an extended attribute: `EEXIST`, `ENODATA`, `ENOSPC`, `EDQUOT`.
    pub(crate) fn set_xattr(&self, charge: Charge<'_>, name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno> {
        let state = &mut *self.state.write(charge.readers);
        let (before, after) = (state.xattrs.bytes(), state.xattrs.bytes_with(name, value, how)?);
        charge.take(state.owner, after.saturating_sub(before))?;
        state.xattrs.set(name, value);
        charge.give(state.owner, before.saturating_sub(after));
        Ok(())
    }

    /// Removes an extended attribute: `ENODATA`.
    pub(crate) fn remove_xattr(&self, charge: Charge<'_>, name: &[u8]) -> Result<(), Errno> {
        let state = &mut *self.state.write(charge.readers);
        let before = state.xattrs.bytes();
        state.xattrs.remove(name)?;
        charge.give(state.owner, before - state.xattrs.bytes());
        Ok(())
    }

    pub(crate) fn flags(&self, readers: &BiasedReaders) -> InodeFlags {
        self.state.read(readers).flags
    }

    /// Replaces the flags of the inode.
    pub(crate) fn set_flags(&self, readers: &BiasedReaders, flags: InodeFlags) {
        self.state.write(readers).flags = flags;
    }

    /// Makes `uid` the user who is charged for this data, and for `beside`, the inode without its
    /// data: `EDQUOT`.
    pub(crate) fn set_owner(&self, charge: Charge<'_>, uid: u32, beside: Amount) -> Result<(), Errno> {
        let state = &mut *self.state.write(charge.readers);
        if state.owner != uid {
            let amount = Amount { bytes: state.bytes() + beside.bytes, inodes: beside.inodes };
            charge.limits.transfer(state.owner, QuotaHandle { uid, privileged: charge.privileged }, amount)?;
            state.owner = uid;
        }
        Ok(())
    }

    /// Returns the user who is charged, and the number of bytes.
    pub(crate) fn charge(&self, readers: &BiasedReaders) -> (u32, u64) {
        let state = self.state.read(readers);
        (state.owner, state.bytes())
    }
}

impl State {
    fn bytes(&self) -> u64 {
        self.contents.bytes() + self.xattrs.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{RamLimits, UserLimits};

    const PAGES: u64 = 10;

    fn limits() -> Limits {
        let per_user = UserLimits { bytes: Some(8 * PAGE_BYTES), inodes: None };
        Limits::new(&RamLimits { bytes: Some(PAGES * PAGE_BYTES), inodes: None, per_user: Some(per_user) })
    }

    /// Returns a charge of `limits`, with a pool that stays for as long as the test.
    fn charge(limits: &Limits) -> Charge<'_> {
        Charge { limits, pool: Box::leak(Box::default()), readers: readers(), privileged: false }
    }

    /// Returns the readers that all tests share.
    fn readers() -> &'static BiasedReaders {
        static READERS: std::sync::LazyLock<BiasedReaders> = std::sync::LazyLock::new(BiasedReaders::new);
        &READERS
    }

    fn free(limits: &Limits) -> u64 {
        limits.statfs().blocks_free
    }

    #[test]
    fn a_file_takes_the_room_that_there_is() {
        let limits = limits();
        let (one, two) = (Data::new(readers(), 1), Data::new(readers(), 2));
        let all = [1; 20 * PAGE_BYTES as usize];
        // The user's limit, then the file system's.
        assert_eq!(one.write(charge(&limits), 0, &all), Ok(Written::new(8 * 4096, 64)));
        assert_eq!(one.write(charge(&limits), 8 * PAGE_BYTES, b"x"), Err(Errno::EDQUOT));
        assert_eq!(two.write(charge(&limits), 1 << 30, &all), Ok(Written::new(2 * 4096, 16)));
        assert_eq!(two.write(charge(&limits), 0, b"x"), Err(Errno::ENOSPC));
        assert_eq!(one.cut(charge(&limits), PAGE_BYTES + 1), Ok(16));
        assert_eq!(free(&limits), 6);
        assert_eq!(two.allocate(charge(&limits), Allocate::PunchHole, 1 << 30, PAGE_BYTES), Ok(8));
        assert_eq!(free(&limits), 7);
    }

    #[test]
    fn storage_is_reserved_as_a_whole_or_not_at_all() {
        let limits = limits();
        let data = Data::new(readers(), 1);
        assert_eq!(data.write(charge(&limits), PAGE_BYTES, b"abc"), Ok(Written::new(3, 8)));
        for (offset, len, errno) in
            [(0, u64::MAX, Errno::ENOSPC), (0, 11 * PAGE_BYTES, Errno::ENOSPC), (0, 9 * PAGE_BYTES, Errno::EDQUOT)]
        {
            assert_eq!(data.allocate(charge(&limits), Allocate::Reserve, offset, len), Err(errno));
        }
        assert_eq!(data.allocate(charge(&limits), Allocate::Reserve, u64::MAX, 1), Err(Errno::EFBIG));
        assert_eq!(data.allocate(charge(&limits), Allocate::Reserve, 10, 8 * PAGE_BYTES - 10), Ok(64));
        assert_eq!((free(&limits), data.blocks(readers())), (2, 64));
        let mut buf = [9; 4];
        data.read(readers(), PAGE_BYTES, &mut buf);
        assert_eq!(&buf, b"abc\0");
        assert_eq!(data.allocate(charge(&limits), Allocate::Zero, PAGE_BYTES + 1, 1), Ok(64));
        data.read(readers(), PAGE_BYTES, &mut buf);
        assert_eq!(&buf, b"a\0c\0");
        assert_eq!(
            (data.seek(readers(), 5, SeekFor::Data), data.seek(readers(), 5, SeekFor::Hole)),
            (Some(5), Some(8 * PAGE_BYTES))
        );
        assert_eq!(data.seek(readers(), 8 * PAGE_BYTES, SeekFor::Data), None);
    }

    #[test]
    fn attributes_take_room_and_give_it_back() {
        let limits = Limits::new(&RamLimits { bytes: Some(200), ..RamLimits::none() });
        let data = Data::new(readers(), 1);
        let set = |value: &[u8], how| data.set_xattr(charge(&limits), b"user.x", value, how);
        assert_eq!(set(&[0; 200], SetXattr::Any), Err(Errno::ENOSPC));
        assert_eq!(data.xattr(readers(), b"user.x"), Err(Errno::ENODATA));
        assert_eq!(set(&[0; 130], SetXattr::Any), Ok(()));
        assert_eq!(set(&[0; 131], SetXattr::Any), Err(Errno::ENOSPC));
        assert_eq!(set(&[1; 10], SetXattr::Create), Err(Errno::EEXIST));
        assert_eq!(set(&[1; 10], SetXattr::Replace), Ok(()));
        assert_eq!(data.charge(readers()), (1, 64 + 6 + 10));
        assert_eq!(set(&[1; 130], SetXattr::Any), Ok(()));
        assert_eq!(data.xattr_names(readers()).len(), 1);
        assert_eq!(data.remove_xattr(charge(&limits), b"user.x"), Ok(()));
        assert_eq!(data.remove_xattr(charge(&limits), b"user.x"), Err(Errno::ENODATA));
        assert_eq!(data.charge(readers()), (1, 0));
        assert!(limits.take(QuotaHandle { uid: 1, privileged: false }, Amount { bytes: 200, inodes: 0 }).is_ok());
    }

    #[test]
    fn the_new_owner_pays_for_what_is_there() {
        let limits = limits();
        let (one, two) = (Data::new(readers(), 1), Data::new(readers(), 2));
        let pages = |count: usize| vec![1; count * 4096];
        assert!(one.write(charge(&limits), 0, &pages(5)).is_ok());
        assert!(two.write(charge(&limits), 0, &pages(4)).is_ok());
        assert_eq!(one.set_owner(charge(&limits), 2, Amount::default()), Err(Errno::EDQUOT));
        assert_eq!(one.charge(readers()), (1, 5 * PAGE_BYTES));
        assert_eq!(two.cut(charge(&limits), 3 * PAGE_BYTES), Ok(24));
        assert_eq!(one.set_owner(charge(&limits), 2, Amount::default()), Ok(()));
        assert_eq!(one.charge(readers()), (2, 5 * PAGE_BYTES));
        assert_eq!(one.write(charge(&limits), 5 * PAGE_BYTES, b"x"), Err(Errno::EDQUOT));
        assert_eq!(free(&limits), 2);
    }
}
