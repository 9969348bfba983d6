//! Operations on files: open, read, write, seek, allocate.

use super::user_budget::Node;
use super::{Caller, Entry, NewMode, Session, without_fsetid};
use crate::options::Checks;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use vfs::{Allocate, Base, Context, Errno, MAY_EXEC, MAY_WRITE, OpenFile, OpenFlags, PathRef, SeekFor};

/// Flags that the session passes to the tree. The kernel handles the others.
const PASSED_ON: u32 = 3 | OpenFlags::TRUNC.bits() | OpenFlags::APPEND.bits() | OpenFlags::NOATIME.bits();

/// The file is opened to execute it: `FMODE_EXEC` in Linux.
const TO_EXECUTE: u32 = 0o40;

/// The rule for set-id bits when contents change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    /// Set-id bits stay if root has opened the file.
    AsOpened,
    /// Set-id bits are cleared.
    Nothing,
}

/// An open file.
pub(crate) struct OpenHandle {
    pub(super) file: OpenFile,
    /// The kernel may write to the backing file without a request.
    is_backed: bool,
    /// Root is known to have opened it, so changes through it keep set-id bits.
    is_roots: bool,
}

impl OpenHandle {
    /// Changes the contents of the file by `f`. `clears`: without the right to keep set-id bits.
    pub(super) fn change<R>(
        &self,
        session: &Session,
        clears: bool,
        f: impl FnOnce(&OpenFile) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        // The tree clears the bits itself if another user than root has opened the file.
        if !(clears && self.is_roots) {
            return f(&self.file);
        }
        session.clear_set_ids(self.file.held())?;
        without_fsetid(|| f(&self.file))
    }
}

/// Inodes that the kernel may change without a request, by [identity](Held::identity), with the number of handles that allow
/// it.
#[derive(Default)]
pub(crate) struct Backed(Mutex<HashMap<u64, usize>>);

impl Backed {
    /// Returns whether the kernel may change the inode of `held` without a request.
    pub(super) fn has(&self, held: &PathRef) -> bool {
        self.0.lock().contains_key(&held.identity())
    }

    fn begin(&self, held: &PathRef) {
        *self.0.lock().entry(held.identity()).or_default() += 1;
    }

    fn end(&self, held: &PathRef) {
        if let Slot::Occupied(mut handles) = self.0.lock().entry(held.identity()) {
            *handles.get_mut() -= 1;
            if *handles.get() == 0 {
                handles.remove();
            }
        }
        held.mark_stale();
    }
}

/// The reply to an open.
#[derive(Debug)]
pub struct Opened {
    /// The number of the open file in later requests.
    pub handle: u64,
    /// The kernel may keep the pages that it has cached.
    pub keep_cache: bool,
    /// The kernel must not put writes into pages.
    pub is_direct: bool,
    /// The backing file, if the kernel may read and write it without requests.
    pub backing: Option<Arc<OwnedFd>>,
}

impl Session {
    /// OPEN.
    ///
    /// # Errors
    /// As for [`vfs::Context::open`]; `ESTALE`.
    pub fn open(&self, caller: &Caller, node: u64, flags: u32) -> Result<Opened, Errno> {
        let held = self.node(node)?;
        let requested = OpenFlags::from_bits_retain(flags & PASSED_ON);
        let file = if flags & TO_EXECUTE != 0 && self.options.checks == Checks::Own {
            // To execute a program, its caller need not be able to read it.
            self.callers.with_groups(caller).access_held(&held, MAY_EXEC)?;
            self.callers.checked(caller).open_held(&held, requested)?
        } else {
            self.open_as(caller, &held, requested)?
        };
        Ok(self.opened(caller, &held, file, requested))
    }

    /// CREATE: creates a file and opens it; without opens
    /// ([`SessionOptions::no_open`](crate::SessionOptions::no_open)) with the handle 0, which needs
    /// no release: with this option the kernel sends no RELEASE, for this operation neither.
    ///
    /// The kernel sends CREATE for a name that, by its cache, does not exist, and checks no
    /// permission of the file in the reply. So a file that exists is never opened here.
    ///
    /// # Errors
    /// As for [`vfs::Context::open_labelled`]; for labels as for [`mknod`](Self::mknod); `EEXIST`
    /// with `O_EXCL` if the name exists. Without `O_EXCL` the error is `ESTALE`: the kernel repeats
    /// the whole `open(2)` with `LOOKUP_REVAL`, looks the name up, and checks the file that it
    /// finds.
    pub fn create(
        &self,
        caller: &Caller,
        parent: u64,
        name: &[u8],
        new: NewMode<'_>,
        flags: u32,
    ) -> Result<(Entry, Opened), Errno> {
        let is_exclusive = flags & OpenFlags::EXCL.bits() != 0;
        let flags = self.own_flags(flags).union(OpenFlags::CREAT).union(OpenFlags::NOFOLLOW).union(OpenFlags::EXCL);
        let made = self.open_new(caller, parent, name, new, flags);
        let file = match made {
            Err(Errno::EEXIST) if !is_exclusive => return Err(Errno::ESTALE),
            made => made?,
        };
        self.made(caller, file, flags)
    }

    /// TMPFILE: makes a file without a name in the directory's file system, and opens it as [`create`](Self::create) does.
    ///
    /// # Errors
    /// As for [`create`](Self::create); `EOPNOTSUPP` if the file system has no files without names.
    pub fn tmpfile(
        &self,
        caller: &Caller,
        parent: u64,
        new: NewMode<'_>,
        flags: u32,
    ) -> Result<(Entry, Opened), Errno> {
        let exclusive = OpenFlags::from_bits_retain(flags & OpenFlags::EXCL.bits());
        let flags = self.own_flags(flags).union(OpenFlags::TMPFILE).union(exclusive);
        self.made(caller, self.open_new(caller, parent, b".", new, flags)?, flags)
    }

    /// Makes a file with these flags.
    fn open_new(
        &self,
        caller: &Caller,
        parent: u64,
        name: &[u8],
        new: NewMode<'_>,
        flags: OpenFlags,
    ) -> Result<OpenFile, Errno> {
        let (dir, new) = (self.node(parent)?, self.permitted(caller, new)?);
        let open = |context: &Context| context.open_labelled(Base::at(&dir), name, flags, new.mode, new.labels);
        let make = || self.check_share(caller, &dir).and_then(|()| self.making(caller, &dir, new, open));
        self.with_room(caller, &dir, make)
    }

    /// Returns the reply to the making of `file`, which is open with `flags`.
    fn made(&self, caller: &Caller, file: OpenFile, flags: OpenFlags) -> Result<(Entry, Opened), Errno> {
        let entry = self.entry(caller, file.held().clone())?;
        let opened = if self.options.no_open {
            Opened { handle: 0, keep_cache: self.keeps_pages(), is_direct: false, backing: None }
        } else {
            self.opened(caller, &*self.node(entry.node)?, file, flags)
        };
        Ok((entry, opened))
    }

    fn open_as(&self, caller: &Caller, held: &PathRef, requested: OpenFlags) -> Result<OpenFile, Errno> {
        let flags = self.own_flags(requested.bits());
        // Also to read: the open file is the caller's, whom a host directory charges for it.
        let context = self.callers.making(caller, 0);
        let appends = requested.contains(OpenFlags::APPEND);
        let open = |context: &Context| {
            if appends { context.open_held_to_append(held, flags) } else { context.open_held(held, flags) }
        };
        if flags.can_read() && !requested.can_read() {
            // The session adds the read, so the caller needs no permission for it.
            context.access_held(held, MAY_WRITE)?;
            return open(&self.callers.checked(caller));
        }
        open(&context)
    }

    /// Returns the flags with which the session opens a file. With writeback the kernel also reads
    /// the pages that it writes in part, and appends by itself.
    fn own_flags(&self, flags: u32) -> OpenFlags {
        let mut bits = flags & PASSED_ON;
        if self.options.writeback {
            bits &= !OpenFlags::APPEND.bits();
            if bits & 3 == OpenFlags::WRONLY.bits() {
                bits = bits & !3 | OpenFlags::RDWR.bits();
            }
        }
        OpenFlags::from_bits_retain(bits)
    }

    /// Returns whether the kernel keeps its pages of a file that is opened again.
    fn keeps_pages(&self) -> bool {
        self.options.kernel_cache || self.options.ttls.attr > Duration::ZERO
    }

    /// `requested`: the flags of the caller. If a read access must be recorded, the kernel drops
    /// its pages of the file, since a read of these pages sends no request.
    fn opened(&self, caller: &Caller, node: &Node, file: OpenFile, requested: OpenFlags) -> Opened {
        let is_recorded = !requested.can_write() && file.is_access_due();
        let backing = if self.options.passthrough { file.backing() } else { None };
        let keep_cache = node.note_open(&file) && self.keeps_pages() && !is_recorded;
        let is_backed = backing.is_some();
        let is_direct = self.options.direct_appends && !self.options.writeback && only_appends(requested);
        if is_backed {
            self.backed.begin(file.held());
        }
        Opened {
            handle: self.files.insert(OpenHandle { file, is_backed, is_roots: caller.who.is_root() }),
            keep_cache,
            is_direct,
            backing,
        }
    }

    /// Calls `f`, which changes contents, as [`with_file`](Self::with_file).
    fn change_file<R>(
        &self,
        node: u64,
        handle: u64,
        keeps: Keeps,
        f: impl FnOnce(&OpenFile) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        match self.files.get(handle) {
            Some(open) => open.change(self, keeps == Keeps::Nothing, f),
            // The context of unknown callers keeps no set-id bits.
            None => self.with_file(node, handle, OpenFlags::WRONLY, f),
        }
    }

    /// Calls `f` with the open file `handle`. Without handles (`no_open`) opens the node for this call.
    fn with_file<R>(
        &self,
        node: u64,
        handle: u64,
        flags: OpenFlags,
        f: impl FnOnce(&OpenFile) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        match self.files.get(handle) {
            Some(open) => f(&open.file),
            None if self.options.no_open && handle == 0 => {
                f(&self.callers.unknown().open_held(&**self.node(node)?, flags)?)
            }
            None => Err(Errno::EBADF),
        }
    }

    /// READ: fills `buf` from `offset` on. Returns the number of bytes, less than `buf.len()` only at the end of the file.
    ///
    /// # Errors
    /// `EBADF`; the file system's errors.
    pub fn read(&self, node: u64, handle: u64, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.with_file(node, handle, OpenFlags::RDONLY, |file| file.read_full_at(offset, buf))
    }

    /// WRITE: writes `data` at `offset`. Returns the number of bytes, less than `data.len()` only
    /// if an error followed. Keeps set-id bits if root has opened the file.
    ///
    /// # Errors
    /// `EBADF`; the file system's errors if nothing was written.
    pub fn write(&self, node: u64, handle: u64, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        self.write_as(Keeps::AsOpened, node, handle, offset, data)
    }

    /// As [`write`](Self::write), but clears set-id bits: for callers without `CAP_FSETID`, and
    /// unknown callers.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn write_clearing(&self, node: u64, handle: u64, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        self.write_as(Keeps::Nothing, node, handle, offset, data)
    }

    fn write_as(&self, keeps: Keeps, node: u64, handle: u64, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        self.change_file(node, handle, keeps, |file| {
            let mut done = 0;
            while done < data.len() {
                match file.write_at(offset + done as u64, &data[done..]) {
                    Ok((0, _)) => break,
                    Ok((written, _)) => done += written,
                    Err(_) if done > 0 => break,
                    Err(errno) => return Err(errno),
                }
            }
            Ok(done)
        })
    }

    /// FSYNC.
    ///
    /// # Errors
    /// `EBADF`; the file system's errors.
    pub fn fsync(&self, node: u64, handle: u64, data_only: bool) -> Result<(), Errno> {
        self.with_file(node, handle, OpenFlags::RDONLY, |file| file.sync(data_only))
    }

    /// FALLOCATE, with the mode bits of `fallocate(2)`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for other modes; as for [`OpenFile::allocate`].
    pub fn fallocate(
        &self,
        caller: &Caller,
        node: u64,
        handle: u64,
        mode: u32,
        (offset, len): (u64, u64),
    ) -> Result<(), Errno> {
        const KEEP_SIZE: u32 = 1;
        const PUNCH_HOLE: u32 = 2;
        const ZERO_RANGE: u32 = 16;
        let how = match mode & !KEEP_SIZE {
            0 => Allocate::Reserve,
            PUNCH_HOLE if mode & KEEP_SIZE != 0 => Allocate::PunchHole,
            ZERO_RANGE => Allocate::Zero,
            _ => return Err(Errno::EOPNOTSUPP),
        };
        let keep_size = mode & KEEP_SIZE != 0;
        let keeps = if caller.who.is_root() { Keeps::AsOpened } else { Keeps::Nothing };
        self.change_file(node, handle, keeps, |file| file.allocate(how, keep_size, offset, len))
    }

    /// COPY_FILE_RANGE: copies up to `len` bytes of one open file to another, each with an offset. Returns the number of bytes,
    /// which may be less than `len`: at most 16 MiB at once. The target's set-id bits stay if `caller` is root and has opened it.
    ///
    /// # Errors
    /// `EINVAL` for flags; `ENOSYS` without opens, after which the kernel copies by itself;
    /// `EBADF`; as for [`OpenFile::copy_to`].
    pub fn copy_file_range(
        &self,
        caller: &Caller,
        (handle, offset): (u64, u64),
        (to_handle, to): (u64, u64),
        len: u64,
        flags: u64,
    ) -> Result<u64, Errno> {
        /// A limit, since the thread of a queue serves no other request during the copy.
        const MOST: u64 = 16 << 20;
        if self.options.no_open {
            return Err(Errno::ENOSYS);
        }
        if flags != 0 {
            return Err(Errno::EINVAL);
        }
        let source = self.files.get(handle).ok_or(Errno::EBADF)?;
        let target = self.files.get(to_handle).ok_or(Errno::EBADF)?;
        // The tree does not learn of writes by passthrough, and so of a new length.
        if source.is_backed {
            source.file.held().attr_anew()?;
        }
        target.change(self, !caller.who.is_root(), |file| source.file.copy_to(offset, file, to, len.min(MOST)))
    }

    /// LSEEK: finds data (`SEEK_DATA`, 3) or a hole (`SEEK_HOLE`, 4).
    ///
    /// # Errors
    /// `EINVAL` for another `whence`; as for [`OpenFile::seek_for`].
    pub fn lseek(&self, node: u64, handle: u64, offset: u64, whence: u32) -> Result<u64, Errno> {
        let what = match whence {
            3 => SeekFor::Data,
            4 => SeekFor::Hole,
            _ => return Err(Errno::EINVAL),
        };
        self.with_file(node, handle, OpenFlags::RDONLY, |file| {
            // The tree does not learn of writes by passthrough, and so of a new length.
            if self.options.passthrough && self.backed.has(file.held()) {
                file.held().attr_anew()?;
            }
            file.seek_for(what, offset)
        })
    }

    /// RELEASE: the last descriptor of `handle` was closed.
    pub fn release(&self, handle: u64) {
        let closed = self.files.remove(handle);
        if let Some(open) = closed.as_ref().filter(|open| open.is_backed) {
            self.backed.end(open.file.held());
        }
        drop(closed);
    }
}

/// Returns whether an open only appends. The kernel cannot map such a file, which needs pages.
fn only_appends(flags: OpenFlags) -> bool {
    flags.contains(OpenFlags::APPEND) && flags.can_write() && !flags.can_read()
}
