//! What the later operations do to names, roughly: enough for the generator to know what there is. No test compares it.

use super::flags::*;
use super::walk::Last;
use super::*;

impl Model {
    /// Where a relative path starts.
    pub(super) fn start(&self) -> Id {
        self.base.unwrap_or(self.cwd)
    }

    /// What is mounted on it, or else itself.
    pub(super) fn shown(&self, mut id: Id) -> Id {
        for _ in 0..self.mounts.len() {
            match self.mounts.iter().rev().find(|(at, _)| *at == id) {
                Some((_, top)) if *top != id => id = *top,
                _ => break,
            }
        }
        id
    }

    /// Whether something is mounted there, or it is shown elsewhere.
    pub(crate) fn is_mounted(&self, id: Id) -> bool {
        self.mounts.iter().any(|(at, top)| *at == id || *top == id)
    }

    /// Paths of what is mounted, as far as they are known.
    pub(crate) fn mount_points(&self) -> Vec<Vec<u8>> {
        self.mounts.iter().filter(|(at, _)| self.is_dir(*at)).map(|(at, _)| self.path_of(*at)).collect()
    }

    pub(crate) fn acts_as_root(&self) -> bool {
        self.cred.is_root()
    }

    pub(crate) fn is_open(&self, slot: usize) -> bool {
        self.slot(slot).is_ok()
    }

    pub(super) fn apply_at(&mut self, slot: usize, op: &Op) -> Outcome {
        let Ok(handle) = self.slot(slot) else { return Outcome::Err(EBADF) };
        self.base = Some(handle.inode);
        let outcome = self.apply(op);
        self.base = None;
        outcome
    }

    pub(super) fn apply_by_other(&mut self, op: &Op) -> Outcome {
        self.switch();
        let outcome = self.apply(op);
        self.switch();
        outcome
    }

    /// Exchanges the two processes.
    pub(crate) fn switch(&mut self) {
        let Some(second) = &mut self.second else { return };
        std::mem::swap(&mut self.root, &mut second.root);
        std::mem::swap(&mut self.cwd, &mut second.cwd);
        std::mem::swap(&mut self.umask, &mut second.umask);
        if let Some(mounts) = &mut second.mounts {
            std::mem::swap(&mut self.mounts, mounts);
        }
    }

    pub(super) fn extra(&mut self, op: &Extra) -> Res<()> {
        match op {
            Extra::Rename { from, to, flags } => match *flags {
                0 => self.rename(from, to),
                RENAME_NOREPLACE if self.lookup(to, false).is_ok() => Err(EEXIST),
                RENAME_NOREPLACE => self.rename(from, to),
                _ => self.exchange(from, to),
            },
            Extra::LinkFollowing { from, to } => {
                let old = self.lookup(from, true)?;
                self.link_to(old, to)
            }
            Extra::LinkOpen { slot, to } => {
                let old = self.slot(*slot)?.inode;
                self.link_to(old, to)
            }
            Extra::Fork { unshare } => {
                let mounts = unshare.then(|| self.mounts.clone());
                self.second = Some(Process { root: self.root, cwd: self.cwd, umask: self.umask, mounts });
                Ok(())
            }
            Extra::Chroot { path } => {
                let root = self.lookup(path, true)?;
                let may = self.cred.is_root() && self.is_dir(root);
                self.root = if may { root } else { self.root };
                Ok(())
            }
            Extra::OpenHow { slot, path, flags, mode, .. } => self.open_as(*slot, path, *flags, *mode),
            Extra::Mount { path, .. } => {
                let at = self.lookup(path, true)?;
                let parent = self.step_dots(at, &Last::DotDot);
                self.inodes.push(Inode { nlink: 2, ..self.inodes[ROOT].clone() });
                let top = self.inodes.len() - 1;
                self.inodes[top].kind = Kind::Dir { entries: BTreeMap::new(), parent, removed: false };
                self.mounts.push((at, top));
                Ok(())
            }
            Extra::Bind { from, to, .. } => {
                let (top, at) = (self.lookup(from, true)?, self.lookup(to, true)?);
                if self.is_dir(top) != self.is_dir(at) {
                    return Err(ENOTDIR);
                }
                self.mounts.push((at, top));
                Ok(())
            }
            Extra::MoveMount { from, to } => {
                let (top, at) = (self.lookup(from, true)?, self.lookup(to, true)?);
                let moved = self.mounts.iter_mut().rev().find(|mount| mount.1 == top).ok_or(EINVAL)?;
                moved.0 = at;
                Ok(())
            }
            Extra::Unmount { path, .. } => {
                let top = self.lookup(path, true)?;
                let place = self.mounts.iter().rposition(|mount| mount.1 == top).ok_or(EINVAL)?;
                self.mounts.remove(place);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn open_as(&mut self, slot: usize, path: &[u8], flags: u32, mode: u32) -> Res<()> {
        if flags & O_TMPFILE == O_TMPFILE {
            let dir = self.lookup(path, true)?;
            self.may_create(dir)?;
            let kind = Kind::File { data: Vec::new(), pages: BTreeSet::new() };
            let (id, now, cred) = (self.inodes.len(), self.clock, self.cred.clone());
            let (uid, gid, perm) = (cred.uid, cred.gid, mode & 0o7777);
            self.inodes.push(Inode { kind, perm, uid, gid, nlink: 0, atime: now, mtime: now, ctime: now });
            self.slots[slot] = Some(Handle { inode: id, readable: true, writable: true, append: false, offset: 0 });
            return Ok(());
        }
        if flags & O_PATH != 0 {
            let inode = self.lookup(path, flags & O_NOFOLLOW == 0)?;
            self.slots[slot] = Some(Handle { inode, readable: false, writable: false, append: false, offset: 0 });
            return Ok(());
        }
        self.open(slot, path, flags, mode)
    }

    fn link_to(&mut self, old: Id, to: &[u8]) -> Res<()> {
        let (dir, name) = self.place_for(to, false)?;
        self.may_link(old)?;
        self.may_create(dir)?;
        if self.is_dir(old) {
            return Err(EPERM);
        }
        self.entries_mut(dir).insert(name, old);
        self.inodes[old].nlink += 1;
        Ok(())
    }

    fn exchange(&mut self, a: &[u8], b: &[u8]) -> Res<()> {
        let ((a_dir, a_last), (b_dir, b_last)) = (self.lookup_parent(a)?, self.lookup_parent(b)?);
        let (Last::Name(a_name, _), Last::Name(b_name, _)) = (a_last, b_last) else { return Err(EBUSY) };
        let (a, b) = (self.find(a_dir, &a_name)?.ok_or(ENOENT)?, self.find(b_dir, &b_name)?.ok_or(ENOENT)?);
        if self.is_mounted(a) || self.is_mounted(b) {
            return Err(EBUSY);
        }
        if self.is_at_or_below(a_dir, b) || self.is_at_or_below(b_dir, a) {
            return Err(EINVAL);
        }
        self.permission(a_dir, WRITE | EXEC)?;
        self.permission(b_dir, WRITE | EXEC)?;
        self.entries_mut(a_dir).insert(a_name, b);
        self.entries_mut(b_dir).insert(b_name, a);
        for (id, dir) in [(a, b_dir), (b, a_dir)] {
            if let Kind::Dir { parent, .. } = &mut self.inodes[id].kind {
                *parent = dir;
            }
        }
        Ok(())
    }
}
