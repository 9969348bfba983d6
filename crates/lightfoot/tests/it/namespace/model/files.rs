//! Open files.

use super::flags::*;
use super::walk::{Last, Walk, check_path};
use super::*;

impl Model {
    pub(super) fn open(&mut self, slot: usize, path: &[u8], flags: u32, mode: u32) -> Res<()> {
        if flags & O_CREAT != 0 && flags & O_DIRECTORY != 0 {
            return Err(EINVAL);
        }
        check_path(path)?;
        let (inode, created, want_dir) = self.open_inode(path, flags, mode & 0o7777)?;
        if !created {
            self.check_found(inode, flags, want_dir)?;
        }
        if flags & O_TRUNC != 0 && !created && self.is_file(inode) {
            self.drop_privileges(inode);
            self.set_len(inode, 0);
            self.touch_modified(inode);
        }
        if matches!(self.inodes[inode].kind, Kind::Special(..)) {
            return Err(ENXIO);
        }
        let access = flags & O_ACCMODE;
        let (readable, writable) = (access != O_WRONLY, access != O_RDONLY);
        let append = flags & O_APPEND != 0;
        self.slots[slot] = Some(Handle { inode, readable, writable, append, offset: 0 });
        Ok(())
    }

    /// Finds or makes the file to open. Answers the inode, whether it is new, and whether the path insists on a
    /// directory.
    fn open_inode(&mut self, path: &[u8], flags: u32, mode: u32) -> Res<(Id, bool, bool)> {
        let create = flags & O_CREAT != 0;
        let mut follow = flags & O_NOFOLLOW == 0 && !(create && flags & O_EXCL != 0);
        let mut want_dir = flags & O_DIRECTORY != 0;
        let (mut start, mut path) = (self.start(), path.to_vec());
        let mut walk = Walk::default();
        loop {
            let (dir, last) = self.walk_to_last(start, &path, &mut walk)?;
            let (name, slash) = match last {
                Last::Name(name, slash) => (name, slash),
                dots => return Ok((self.step_dots(dir, &dots), false, want_dir)),
            };
            if create && slash {
                return Err(EISDIR);
            }
            follow |= slash;
            want_dir |= slash;
            let Some(child) = self.find(dir, &name)? else {
                if !create {
                    return Err(ENOENT);
                }
                self.may_create(dir)?;
                let kind = Kind::File { data: Vec::new(), pages: BTreeSet::new() };
                return Ok((self.make(dir, name, kind, mode), true, want_dir));
            };
            match &self.inodes[child].kind {
                Kind::Symlink(body) if follow => {
                    walk.follow_one()?;
                    self.may_follow(dir, child)?;
                    (start, path) = (dir, body.clone());
                }
                _ if create && flags & O_EXCL == 0 => {
                    self.may_create_in_sticky(dir, child)?;
                    return Ok((child, false, want_dir));
                }
                _ => return Ok((child, false, want_dir)),
            }
        }
    }

    /// `O_CREAT` on what is there already, belongs to somebody else, and lies in a sticky directory:
    /// `fs.protected_regular` and `fs.protected_fifos` decide for these two kinds of file; all others are refused
    /// always.
    fn may_create_in_sticky(&self, dir: Id, child: Id) -> Res<()> {
        let level = match self.inodes[child].kind {
            Kind::Dir { .. } => 0,
            Kind::File { .. } => self.world.protected_regular,
            Kind::Special(S_IFIFO, _) => self.world.protected_fifos,
            _ => 1,
        };
        let (dir, child) = (&self.inodes[dir], &self.inodes[child]);
        let shared = dir.perm & S_ISVTX != 0 && (dir.perm & 0o002 != 0 || (level >= 2 && dir.perm & 0o020 != 0));
        let foreign = child.uid != self.cred.uid && child.uid != dir.uid;
        if level > 0 && shared && foreign { Err(EACCES) } else { Ok(()) }
    }

    /// What may be wrong with opening something that was there already.
    fn check_found(&self, id: Id, flags: u32, want_dir: bool) -> Res<()> {
        let writes = flags & O_ACCMODE != O_RDONLY || flags & O_TRUNC != 0;
        let is_dir = self.is_dir(id);
        match () {
            () if flags & O_CREAT != 0 && flags & O_EXCL != 0 => return Err(EEXIST),
            () if flags & O_CREAT != 0 && is_dir => return Err(EISDIR),
            () if want_dir && !is_dir => return Err(ENOTDIR),
            () if matches!(self.inodes[id].kind, Kind::Symlink(_)) => return Err(ELOOP),
            () if is_dir && writes => return Err(EISDIR),
            () => {}
        }
        let reads = flags & O_ACCMODE != O_WRONLY;
        self.permission(id, if reads { READ } else { 0 } | if writes { WRITE } else { 0 })
    }

    /// Reads at an offset, or at the handle's own and moves that.
    pub(super) fn read(&mut self, slot: usize, offset: Option<u64>, len: usize) -> Res<Vec<u8>> {
        let handle = self.slot(slot)?.clone();
        if !handle.readable {
            return Err(EBADF);
        }
        let Kind::File { data, .. } = &self.inodes[handle.inode].kind else { return Err(EISDIR) };
        let start = (offset.unwrap_or(handle.offset) as usize).min(data.len());
        let read = data[start..data.len().min(start.saturating_add(len))].to_vec();
        self.touch_accessed(handle.inode);
        if offset.is_none() {
            self.slots[slot].as_mut().expect("the slot is in use").offset += read.len() as u64;
        }
        Ok(read)
    }

    /// Writes at an offset, or at the handle's own and moves that. Appending handles write at the end, at
    /// whatever offset they are called.
    pub(super) fn write(&mut self, slot: usize, offset: Option<u64>, fill: u8, len: usize) -> Res<u64> {
        let handle = self.slot(slot)?.clone();
        if !handle.writable {
            return Err(EBADF);
        }
        if len == 0 {
            return Ok(0);
        }
        self.drop_privileges(handle.inode);
        self.touch_modified(handle.inode);
        let Kind::File { data, pages } = &mut self.inodes[handle.inode].kind else { return Err(EINVAL) };
        let start = if handle.append { data.len() } else { offset.unwrap_or(handle.offset) as usize };
        let end = start + len;
        data.resize(data.len().max(end), 0);
        data[start..end].fill(fill);
        pages.extend(start as u64 / 4096..=(end as u64 - 1) / 4096);
        if offset.is_none() {
            self.slots[slot].as_mut().expect("the slot is in use").offset = end as u64;
        }
        Ok(len as u64)
    }

    pub(super) fn ftruncate(&mut self, slot: usize, len: u64) -> Res<()> {
        let handle = self.slot(slot)?.clone();
        if !handle.writable || !self.is_file(handle.inode) {
            return Err(EINVAL);
        }
        self.drop_privileges(handle.inode);
        self.set_len(handle.inode, len);
        self.touch_modified(handle.inode);
        Ok(())
    }

    pub(super) fn lseek(&mut self, slot: usize, whence: Whence, offset: i64) -> Res<u64> {
        let handle = self.slot(slot)?;
        let base = match (whence, &self.inodes[handle.inode].kind) {
            (Whence::Start, _) => 0,
            (Whence::Current, _) => handle.offset as i64,
            (Whence::End, Kind::File { data, .. }) => data.len() as i64,
            (Whence::End, _) => return Err(EINVAL),
        };
        let offset = base.checked_add(offset).and_then(|offset| u64::try_from(offset).ok()).ok_or(EINVAL)?;
        self.slots[slot].as_mut().expect("the slot is in use").offset = offset;
        Ok(offset)
    }
}
