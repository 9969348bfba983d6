//! Operations that change what inodes say about themselves.

use super::walk::check_path;
use super::*;

/// What `utimensat` does with a pair of `None`: nothing, not even look at the path.
const NO_TIMES: (Option<i64>, Option<i64>) = (None, None);

impl Model {
    pub(super) fn readlink(&self, path: &[u8]) -> Res<RawPath> {
        match &self.inodes[self.lookup(path, false)?].kind {
            Kind::Symlink(body) => Ok(RawPath(body.clone())),
            _ => Err(EINVAL),
        }
    }

    pub(super) fn read_dir(&mut self, path: &[u8]) -> Res<Vec<(RawPath, u32)>> {
        let dir = self.lookup(path, true)?;
        if !self.is_dir(dir) {
            return Err(ENOTDIR);
        }
        self.permission(dir, READ)?;
        if !self.is_removed_dir(dir) {
            self.touch_accessed(dir);
        }
        let entries = self.entries(dir)?.iter();
        Ok(entries.map(|(name, id)| (RawPath(name.clone()), self.attr(*id).mode & S_IFMT)).collect())
    }

    pub(super) fn change_mode(&mut self, id: Id, mode: u32) -> Res<()> {
        if !self.is_owner_or_root(id) {
            return Err(EPERM);
        }
        let keeps_setgid = self.in_group_or_root(self.inodes[id].gid);
        self.inodes[id].perm = mode & if keeps_setgid { 0o7777 } else { 0o7777 & !S_ISGID };
        self.touch_changed(id);
        Ok(())
    }

    pub(super) fn change_owner(&mut self, id: Id, uid: Option<u32>, gid: Option<u32>) -> Res<()> {
        let inode = &self.inodes[id];
        let owner = inode.uid == self.cred.uid;
        let dropped = if self.is_dir(id) { 0 } else { (inode.perm & S_ISUID) | self.setgid_to_drop(id) };
        let uid_allowed = uid.is_none_or(|uid| owner && uid == inode.uid);
        let gid_allowed = gid.is_none_or(|gid| owner && (gid == inode.gid || self.cred.in_group(gid)));
        let bits_allowed = dropped == 0 || owner;
        let allowed = uid_allowed && gid_allowed && bits_allowed;
        if !allowed && !self.cred.is_root() {
            return Err(EPERM);
        }
        let (uid, gid) = (uid.unwrap_or(inode.uid), gid.unwrap_or(inode.gid));
        (self.inodes[id].uid, self.inodes[id].gid) = (uid, gid);
        self.drop_bits(id, dropped);
        self.touch_changed(id);
        Ok(())
    }

    /// The set-group-ID bit, if a change of the file by this process takes it away.
    fn setgid_to_drop(&self, id: Id) -> u32 {
        let inode = &self.inodes[id];
        let kept = inode.perm & S_IXGRP == 0 && self.in_group_or_root(inode.gid);
        if kept { 0 } else { inode.perm & S_ISGID }
    }

    /// Clears mode bits. A caller outside of the group that changes a mode clears set-group-ID too.
    fn drop_bits(&mut self, id: Id, dropped: u32) {
        if dropped == 0 {
            return;
        }
        let setgid = if self.in_group_or_root(self.inodes[id].gid) { 0 } else { S_ISGID };
        self.inodes[id].perm &= !(dropped | setgid);
    }

    /// What writing to a file does to its set-ID bits: nothing if root writes.
    pub(super) fn drop_privileges(&mut self, id: Id) {
        if !self.cred.is_root() {
            let dropped = (self.inodes[id].perm & S_ISUID) | self.setgid_to_drop(id);
            self.drop_bits(id, dropped);
        }
    }

    pub(super) fn truncate(&mut self, path: &[u8], len: i64) -> Res<()> {
        let len = u64::try_from(len).map_err(|_| EINVAL)?;
        let id = self.lookup(path, true)?;
        match self.inodes[id].kind {
            Kind::Dir { .. } => return Err(EISDIR),
            Kind::File { .. } => self.permission(id, WRITE)?,
            _ => return Err(EINVAL),
        }
        self.drop_privileges(id);
        if self.set_len(id, len) {
            self.touch_modified(id);
        }
        Ok(())
    }

    /// Sets a file's length. Answers whether `truncate` takes that for a change: also the same length is one where
    /// pages are.
    pub(super) fn set_len(&mut self, id: Id, len: u64) -> bool {
        let Kind::File { data, pages } = &mut self.inodes[id].kind else { panic!("inode {id} is not a file") };
        let changed = data.len() as u64 != len || !pages.is_empty();
        data.resize(len as usize, 0);
        pages.retain(|page| page * 4096 < len);
        changed
    }

    pub(super) fn utimens(&mut self, path: &[u8], atime: Option<i64>, mtime: Option<i64>) -> Res<()> {
        if (atime, mtime) == NO_TIMES {
            return Ok(());
        }
        check_path(path)?;
        let id = self.lookup(path, true)?;
        if !self.is_owner_or_root(id) {
            return Err(EPERM);
        }
        let inode = &mut self.inodes[id];
        inode.atime = atime.unwrap_or(inode.atime);
        inode.mtime = mtime.unwrap_or(inode.mtime);
        self.touch_changed(id);
        Ok(())
    }
}
