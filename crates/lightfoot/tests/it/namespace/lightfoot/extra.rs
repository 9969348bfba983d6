//! The later operations.

use super::{Errno, Lightfoot, Res, Slot};
use crate::namespace::errno::{EBUSY, EINVAL};
use crate::namespace::ops::{Extra, Lock, MOUNT_FLAGS, Op, RawPath, Storage, XattrAt};
use crate::namespace::outcome::{Attr, Outcome, lock_text};
use ramfs::RamFs;
use std::ops::Range;
use vfs::{Allocate, Credentials, LockInfo, LockKind, LockWait, MountFlags, PathAt, PathRef};
use vfs::{RenameFlags, Resolve, SeekFor, SetXattr, UnmountFlags};

/// Flags of mounts as `ST_*` numbers them, and as `MS_*` does.
const NOSYMFOLLOW: (u32, u32) = (0x2000, 256);

impl Lightfoot {
    pub(super) fn extra(&mut self, op: &Extra) -> Res<Outcome> {
        let context = &self.context;
        Ok(match op {
            Extra::Rename { from, to, flags } => {
                let flags = RenameFlags::from_bits(*flags).ok_or(EINVAL)?;
                context.rename(PathAt::new(self.base()?, from), PathAt::new(self.base()?, to), flags)?.into()
            }
            Extra::LinkFollowing { from, to } => self.link(from, true, to)?.into(),
            Extra::LinkOpen { slot, to } => {
                let held: &PathRef = self.file(*slot)?.held();
                context.link(PathAt::new(held.into(), b""), PathAt::new(self.base()?, to), false)?.into()
            }
            Extra::OpenHow { slot, path, flags, mode, resolve } => {
                let resolve = Resolve::from_linux(*resolve as u32)?;
                self.open(*slot, path, *flags, *mode, resolve)?.into()
            }
            Extra::AccessLink { path, bits } => context.access(self.base()?, path, false, *bits)?.into(),
            Extra::SetXattr { at, name, value, how } => self.set_xattr(at, name, value, *how)?.into(),
            Extra::GetXattr { at, name } => self.get_xattr(at, name)?.into(),
            Extra::RemoveXattr { at, name } => self.remove_xattr(at, name)?.into(),
            Extra::ListXattrs { at } => self.list_xattrs(at)?.into(),
            Extra::Allocate { slot, how, offset, len } => {
                let (how, keep_size) = match how {
                    Storage::Reserve => (Allocate::Reserve, false),
                    Storage::ReserveKeepSize => (Allocate::Reserve, true),
                    Storage::PunchHole => (Allocate::PunchHole, true),
                };
                self.file(*slot)?.allocate(how, keep_size, *offset, *len)?.into()
            }
            Extra::SeekFor { slot, hole, offset } => self.seek_for(*slot, *hole, *offset)?.into(),
            Extra::StatVfs { path } => self.statvfs(path)?,
            Extra::List { slot } => self.list(*slot)?.into(),
            Extra::Rewind { slot } => self.rewind(*slot)?.into(),
            Extra::Fork { unshare } => self.fork(*unshare)?.into(),
            Extra::Chroot { path } => context.set_root(path)?.into(),
            Extra::PivotRoot { new_root, put_old } if self.refuses_pivot(new_root, put_old)? => return Err(EBUSY),
            Extra::PivotRoot { new_root, put_old } => context.pivot_root(new_root, put_old).map_err(|_| EINVAL)?.into(),
            Extra::Flock { slot, lock } => self.file(*slot)?.flock(lock_kind(*lock), LockWait::Never)?.into(),
            Extra::LockRange { slot, lock, start, len } => {
                self.file(*slot)?.lock_range(lock_kind(*lock), range(*start, *len), LockWait::Never)?.into()
            }
            Extra::TestLock { slot, lock, start, len } => {
                let found = self.file(*slot)?.test_lock(lock_kind(*lock), range(*start, *len))?;
                found.map_or_else(|| lock_text("none", 0, 0), |found| text_of(&found)).into()
            }
            mounts => self.mounts(mounts)?.into(),
        })
    }

    /// With the rights of root, as the kernel's.
    fn fork(&mut self, unshare: bool) -> Res<()> {
        // What is mounted in a process that has ended is unmounted after a grace period, and until then no name that it is on is
        // renamed: the kernel's is unmounted when its thread has ended.
        if self.other.take().is_some() {
            self.vfs.barrier();
        }
        let other = self.context.fork();
        if unshare {
            let user = other.credentials();
            other.set_credentials(Credentials::root());
            other.unshare_mounts()?;
            other.set_credentials(user);
        }
        self.other = Some(other);
        self.mount_points.fork(unshare);
        Ok(())
    }

    /// See [`MountPoints`](crate::namespace::ops::MountPoints).
    pub(super) fn refuses(&mut self, op: &Op) -> bool {
        let mut points = std::mem::take(&mut self.mount_points);
        let answer = points.refuses(op, |path, follow| {
            let attr: Attr =
                self.context.attr_as::<_, vfs::Errno>(self.base().ok()?, path, follow, super::attr).ok()?;
            Some((attr.dev, attr.ino))
        });
        self.mount_points = points;
        answer
    }

    fn mounts(&self, op: &Extra) -> Res<()> {
        let context = &self.context;
        match op {
            Extra::Unmount { path, .. } | Extra::Mount { path, .. } if self.is_root(path)? => return Err(EBUSY),
            Extra::Bind { to, .. } if self.is_root(to)? => return Err(EBUSY),
            Extra::MoveMount { from, to } if self.is_root(from)? || self.is_root(to)? => return Err(EBUSY),
            Extra::Mount { path, flags } => {
                context.mount(RamFs::new(), self.base()?, path, mount_flags(*flags))?;
            }
            Extra::Bind { from, to, flags, recursive } => {
                context.bind(
                    PathAt::new(self.base()?, from),
                    PathAt::new(self.base()?, to),
                    mount_flags(*flags),
                    *recursive,
                )?;
            }
            Extra::MoveMount { from, to } => {
                context.move_mount(PathAt::new(self.base()?, from), PathAt::new(self.base()?, to))?
            }
            Extra::Remount { path, flags } => context.remount(self.base()?, path, mount_flags(*flags))?,
            Extra::Unmount { path, detach } => {
                let flags = if *detach { UnmountFlags::DETACH } else { UnmountFlags::default() };
                context.unmount(self.base()?, path, flags)?;
            }
            other => unreachable!("{other:?} is about no mount"),
        }
        Ok(())
    }

    /// See the kernel's.
    fn refuses_pivot(&self, new_root: &[u8], put_old: &[u8]) -> Res<bool> {
        let (new, old) = (self.stat(new_root, true)?, self.stat(put_old, true)?);
        Ok(new.nlink == 0 || old.nlink == 0 || (new.dev, new.ino) == (old.dev, old.ino))
    }

    /// See the kernel's.
    fn is_root(&self, path: &[u8]) -> Res<bool> {
        let place = self.stat(path, true)?;
        let same = |other: Attr| (place.dev, place.ino) == (other.dev, other.ino);
        let of = |context: &vfs::Context, path: &[u8]| {
            context.attr_as::<_, vfs::Errno>(vfs::Base::CWD, path, true, super::attr)
        };
        for context in [Some(&self.context), self.other.as_ref()].into_iter().flatten() {
            // The search of these two was allowed when they became what they are.
            let context = context.fork();
            context.set_credentials(Credentials::root());
            if same(of(&context, b"/")?) || same(of(&context, b".")?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn set_xattr(&self, at: &XattrAt, name: &[u8], value: &[u8], how: u32) -> Res<()> {
        let how = [SetXattr::Any, SetXattr::Create, SetXattr::Replace][how as usize];
        let context = &self.context;
        Ok(match at {
            XattrAt::Path(path) => context.set_xattr(self.base()?, path, true, name, value, how),
            XattrAt::Link(path) => context.set_xattr(self.base()?, path, false, name, value, how),
            XattrAt::Slot(slot) => self.file(*slot)?.set_xattr(name, value, how),
        }?)
    }

    fn get_xattr(&self, at: &XattrAt, name: &[u8]) -> Res<Vec<u8>> {
        let context = &self.context;
        let value = match at {
            XattrAt::Path(path) => context.get_xattr(self.base()?, path, true, name),
            XattrAt::Link(path) => context.get_xattr(self.base()?, path, false, name),
            XattrAt::Slot(slot) => self.file(*slot)?.get_xattr(name),
        }?;
        Ok(value.into_vec())
    }

    fn remove_xattr(&self, at: &XattrAt, name: &[u8]) -> Res<()> {
        let context = &self.context;
        Ok(match at {
            XattrAt::Path(path) => context.remove_xattr(self.base()?, path, true, name),
            XattrAt::Link(path) => context.remove_xattr(self.base()?, path, false, name),
            XattrAt::Slot(slot) => self.file(*slot)?.remove_xattr(name),
        }?)
    }

    fn list_xattrs(&self, at: &XattrAt) -> Res<Vec<(RawPath, u32)>> {
        let context = &self.context;
        let names = match at {
            XattrAt::Path(path) => context.list_xattrs(self.base()?, path, true),
            XattrAt::Link(path) => context.list_xattrs(self.base()?, path, false),
            XattrAt::Slot(slot) => self.file(*slot)?.list_xattrs(),
        }?;
        let mut names: Vec<_> = names.into_iter().map(|name| (RawPath(name.into_vec()), 0)).collect();
        names.sort();
        Ok(names)
    }

    /// As every `lseek(2)`, moves the position.
    fn seek_for(&mut self, slot: usize, hole: bool, offset: u64) -> Res<u64> {
        let Slot { file, position, .. } = self.slots[slot].as_mut().ok_or(super::EBADF)?;
        *position = file.seek_for(if hole { SeekFor::Hole } else { SeekFor::Data }, offset)?;
        Ok(*position)
    }

    fn statvfs(&self, path: &[u8]) -> Res<Outcome> {
        let stat = self.context.statvfs(self.base()?, path)?;
        let bits = stat.flags.bits();
        let plain: u32 = MOUNT_FLAGS.iter().filter(|flag| **flag != NOSYMFOLLOW.0).sum();
        let flags = bits & plain | if bits & NOSYMFOLLOW.1 != 0 { NOSYMFOLLOW.0 } else { 0 };
        let text = format!("blocks of {}, names of {}, flags {flags:#x}", stat.fs.block_size, stat.fs.name_max);
        Ok(text.into_bytes().into())
    }

    fn list(&mut self, slot: usize) -> Res<Vec<(RawPath, u32)>> {
        let Slot { file, listed, .. } = self.slots[slot].as_mut().ok_or(super::EBADF)?;
        *listed = file.attr()?.is_dir();
        let entries = file.next_entries()?;
        let mut listing: Vec<_> =
            entries.into_iter().map(|entry| (RawPath(entry.name.into_vec()), entry.kind)).collect();
        listing.sort();
        Ok(listing)
    }

    /// `lseek(2)` to the start, whatever is open.
    fn rewind(&mut self, slot: usize) -> Result<(), Errno> {
        let Slot { file, position, .. } = self.slots[slot].as_mut().ok_or(super::EBADF)?;
        if file.flags().contains(vfs::OpenFlags::PATH) {
            return Err(super::EBADF);
        }
        *position = 0;
        file.rewind();
        Ok(())
    }
}

fn mount_flags(flags: u32) -> MountFlags {
    let link = if flags & NOSYMFOLLOW.0 != 0 { NOSYMFOLLOW.1 } else { 0 };
    MountFlags::from_bits(flags & !NOSYMFOLLOW.0 | link).expect("the flags have other numbers")
}

fn lock_kind(lock: Lock) -> LockKind {
    match lock {
        Lock::Shared => LockKind::Shared,
        Lock::Exclusive => LockKind::Exclusive,
        Lock::None => LockKind::Unlock,
    }
}

/// As `fcntl(2)` counts: a length of 0 is to the end.
fn range(start: u64, len: u64) -> Range<u64> {
    start..if len == 0 { u64::MAX } else { start + len }
}

fn text_of(found: &LockInfo) -> Vec<u8> {
    let kind = if found.kind == LockKind::Shared { "shared" } else { "exclusive" };
    lock_text(kind, found.start, if found.end == u64::MAX { 0 } else { found.end - found.start })
}
