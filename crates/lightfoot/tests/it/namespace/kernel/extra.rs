//! The later operations.

use super::second::Second;
use super::{Kernel, Res, last_errno, open_flags};
use crate::namespace::errno::{EAGAIN, EBUSY, EINVAL};
use crate::namespace::ops::flags::O_PATH;
use crate::namespace::ops::{Extra, Lock, MOUNT_FLAGS, RawPath, S_IFDIR, S_IFMT, Storage, XattrAt};
use crate::namespace::outcome::{Outcome, lock_text};
use rustix::fd::{AsFd, AsRawFd};
use rustix::fs::{self as sys, AtFlags, FallocateFlags, Mode, RenameFlags, ResolveFlags, SeekFrom, XattrFlags};
use rustix::io::Errno as SysErrno;
use std::mem::MaybeUninit;

/// Entries that a listing gives at a time: as many as Lightfoot does.
const LIST_BATCH: usize = 64;

/// How often a scoped walk is tried: any rename or mount on the machine may disturb it.
const TRIES: usize = 1000;

impl Kernel {
    pub(super) fn extra(&mut self, op: &Extra) -> Res<Outcome> {
        Ok(match op {
            Extra::Rename { from, to, flags } => {
                let flags = RenameFlags::from_bits_retain(*flags);
                sys::renameat_with(self.base()?, self.at(from), self.base()?, self.at(to), flags)?.into()
            }
            Extra::LinkFollowing { from, to } => {
                let base = self.base()?;
                sys::linkat(base, self.at(from), base, self.at(to), AtFlags::SYMLINK_FOLLOW)?.into()
            }
            Extra::LinkOpen { slot, to } => {
                sys::linkat(self.slot(*slot)?, "", self.base()?, self.at(to), AtFlags::EMPTY_PATH)?.into()
            }
            Extra::OpenHow { slot, path, flags, mode, resolve } => {
                self.open_how(*slot, path, *flags, *mode, *resolve)?.into()
            }
            Extra::AccessLink { path, bits } => {
                let (flags, bits) =
                    (AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW, sys::Access::from_bits_retain(*bits as _));
                sys::accessat(self.base()?, self.at(path), bits, flags)?.into()
            }
            Extra::SetXattr { at, name, value, how } => self.set_xattr(at, name, value, *how)?.into(),
            Extra::GetXattr { at, name } => self.get_xattr(at, name)?.into(),
            Extra::RemoveXattr { at, name } => self.remove_xattr(at, name)?.into(),
            Extra::ListXattrs { at } => self.list_xattrs(at)?.into(),
            Extra::Allocate { slot, how, offset, len } => {
                let how = match how {
                    Storage::Reserve => FallocateFlags::empty(),
                    Storage::ReserveKeepSize => FallocateFlags::KEEP_SIZE,
                    Storage::PunchHole => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                };
                sys::fallocate(self.slot(*slot)?, how, *offset, *len)?.into()
            }
            Extra::SeekFor { slot, hole, offset } => self.seek_for(*slot, *hole, *offset)?.into(),
            Extra::StatVfs { path } => self.statvfs(path)?,
            Extra::List { slot } => self.list(*slot)?.into(),
            Extra::Rewind { slot } => sys::seek(self.slot(*slot)?, SeekFrom::Start(0)).map(|_| ())?.into(),
            Extra::Fork { unshare } => self.fork(*unshare),
            Extra::Chroot { path } => rustix::process::chroot(self.at(path))?.into(),
            Extra::PivotRoot { new_root, put_old } if self.refuses_pivot(new_root, put_old)? => return Err(EBUSY),
            Extra::PivotRoot { new_root, put_old } => {
                rustix::process::pivot_root(self.at(new_root), self.at(put_old)).map_err(|_| EINVAL)?.into()
            }
            Extra::Flock { slot, lock } => sys::flock(self.slot(*slot)?, flock_operation(*lock))?.into(),
            Extra::LockRange { slot, lock, start, len } => {
                self.lock(*slot, libc::F_OFD_SETLK, *lock, *start, *len).map(|_| ())?.into()
            }
            Extra::TestLock { slot, lock, start, len } => {
                let found = self.lock(*slot, libc::F_OFD_GETLK, *lock, *start, *len)?;
                let kind = [(libc::F_RDLCK, "shared"), (libc::F_WRLCK, "exclusive"), (libc::F_UNLCK, "none")]
                    .into_iter()
                    .find_map(|(number, name)| (number == i32::from(found.l_type)).then_some(name));
                lock_text(kind.expect("a kind of lock"), found.l_start as u64, found.l_len as u64).into()
            }
            mounts => self.mounts(mounts)?,
        })
    }

    fn fork(&mut self, unshare: bool) -> Outcome {
        // Only one thread at a time may begin.
        self.second = None;
        let second = Second::fork(unshare);
        second.become_user(self.user);
        self.second = Some(second);
        self.mount_points.fork(unshare);
        Outcome::Done
    }

    /// `fcntl(2)` with a lock of the open file; rustix has none.
    fn lock(&self, slot: usize, command: i32, lock: Lock, start: u64, len: u64) -> Res<libc::flock> {
        let l_type = match lock {
            Lock::Shared => libc::F_RDLCK,
            Lock::Exclusive => libc::F_WRLCK,
            Lock::None => libc::F_UNLCK,
        };
        let (l_start, l_len) = (start as i64, len as i64);
        let mut lock = libc::flock { l_type: l_type as i16, l_whence: libc::SEEK_SET as i16, l_start, l_len, l_pid: 0 };
        let fd = self.slot(slot)?.as_raw_fd();
        // SAFETY: the descriptor is open, and the structure outlives the call.
        match unsafe { libc::fcntl(fd, command, &raw mut lock) } {
            0 => Ok(lock),
            _ => Err(last_errno()),
        }
    }

    fn open_how(&mut self, slot: usize, path: &RawPath, flags: u32, mode: u32, resolve: u64) -> Res<()> {
        let resolve = ResolveFlags::from_bits_retain(resolve);
        let (how, mode) = (open_flags(flags), Mode::from_raw_mode(mode));
        let open = || Ok(sys::openat2(self.base()?, self.at(path), how, mode, resolve)?);
        let fd = (1..TRIES).find_map(|_| Some(open()).filter(|fd| !matches!(fd, Err(EAGAIN))));
        let fd = fd.unwrap_or(Err(EAGAIN))?;
        self.keep(slot, fd, flags & O_PATH)
    }

    fn set_xattr(&self, at: &XattrAt, name: &RawPath, value: &RawPath, how: u32) -> Res<()> {
        let (how, name) = (XattrFlags::from_bits_retain(how), name.to_vec());
        Ok(match at {
            XattrAt::Path(path) => sys::setxattr(self.at(path), name, value, how),
            XattrAt::Link(path) => sys::lsetxattr(self.at(path), name, value, how),
            XattrAt::Slot(slot) => sys::fsetxattr(self.slot(*slot)?, name, value, how),
        }?)
    }

    fn get_xattr(&self, at: &XattrAt, name: &RawPath) -> Res<Vec<u8>> {
        let (mut value, name) = (vec![0; 1 << 16], name.to_vec());
        let len = match at {
            XattrAt::Path(path) => sys::getxattr(self.at(path), name, &mut value[..]),
            XattrAt::Link(path) => sys::lgetxattr(self.at(path), name, &mut value[..]),
            XattrAt::Slot(slot) => sys::fgetxattr(self.slot(*slot)?, name, &mut value[..]),
        }?;
        value.truncate(len);
        Ok(value)
    }

    fn remove_xattr(&self, at: &XattrAt, name: &RawPath) -> Res<()> {
        let name = name.to_vec();
        Ok(match at {
            XattrAt::Path(path) => sys::removexattr(self.at(path), name),
            XattrAt::Link(path) => sys::lremovexattr(self.at(path), name),
            XattrAt::Slot(slot) => sys::fremovexattr(self.slot(*slot)?, name),
        }?)
    }

    fn list_xattrs(&self, at: &XattrAt) -> Res<Vec<(RawPath, u32)>> {
        let mut list = vec![0; 1 << 16];
        let len = match at {
            XattrAt::Path(path) => sys::listxattr(self.at(path), &mut list[..]),
            XattrAt::Link(path) => sys::llistxattr(self.at(path), &mut list[..]),
            XattrAt::Slot(slot) => sys::flistxattr(self.slot(*slot)?, &mut list[..]),
        }?;
        let names = list[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let mut names: Vec<_> = names.map(|name| (RawPath::from(name), 0)).collect();
        names.sort();
        Ok(names)
    }

    /// Not by rustix, which asserts what it gets.
    fn seek_for(&self, slot: usize, hole: bool, offset: u64) -> Res<u64> {
        let whence = if hole { libc::SEEK_HOLE } else { libc::SEEK_DATA };
        let fd = self.slot(slot)?.as_raw_fd();
        // SAFETY: the descriptor is open.
        let found = unsafe { libc::lseek(fd, offset as i64, whence) };
        u64::try_from(found).map_err(|_| last_errno())
    }

    fn statvfs(&self, path: &RawPath) -> Res<Outcome> {
        let place = sys::openat(self.base()?, self.at(path), open_flags(O_PATH), Mode::empty())?;
        let stat = sys::fstatvfs(&place)?;
        let flags = stat.f_flag.bits() & u64::from(MOUNT_FLAGS.iter().sum::<u32>());
        let text = format!("blocks of {}, names of {}, flags {flags:#x}", stat.f_bsize, stat.f_namemax);
        Ok(text.into_bytes().into())
    }

    fn list(&mut self, slot: usize) -> Res<Vec<(RawPath, u32)>> {
        let is_dir = sys::fstat(self.slot(slot)?)?.st_mode & S_IFMT == S_IFDIR;
        let begun = std::mem::replace(&mut self.listed[slot], is_dir);
        let fd = self.slot(slot)?.as_fd();
        if is_dir && !begun {
            // From the start, wherever lseek has put the position.
            let _ = sys::seek(fd, SeekFrom::Start(0));
        }
        let mut buffer = [MaybeUninit::uninit(); 16384];
        let mut listing = Vec::new();
        let mut entries = sys::RawDir::new(fd, &mut buffer);
        let mut next = None;
        while listing.len() < LIST_BATCH
            && let Some(entry) = entries.next()
        {
            match entry {
                Ok(entry) if [b".".as_slice(), b".."].contains(&entry.file_name().to_bytes()) => {}
                Ok(entry) => {
                    listing.push((RawPath::from(entry.file_name().to_bytes()), entry.file_type().as_raw_mode()));
                    next = Some(entry.next_entry_cookie());
                }
                // A removed directory lists nothing.
                Err(SysErrno::NOENT) => break,
                Err(errno) => return Err(errno.into()),
            }
        }
        if let Some(next) = next.filter(|_| listing.len() == LIST_BATCH) {
            sys::seek(fd, SeekFrom::Start(next))?;
        }
        listing.sort();
        Ok(listing)
    }
}

fn flock_operation(lock: Lock) -> sys::FlockOperation {
    match lock {
        Lock::Shared => sys::FlockOperation::NonBlockingLockShared,
        Lock::Exclusive => sys::FlockOperation::NonBlockingLockExclusive,
        Lock::None => sys::FlockOperation::Unlock,
    }
}
