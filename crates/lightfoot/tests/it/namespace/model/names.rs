//! Operations that change which names there are.

use super::walk::{Last, check_path};
use super::*;

impl Model {
    /// Finds where a new name goes: the directory exists, the name does not. `dir_wanted` allows slashes after it.
    pub(super) fn place_for(&self, path: &[u8], dir_wanted: bool) -> Res<(Id, Vec<u8>)> {
        let (dir, last) = self.lookup_parent(path)?;
        let Last::Name(name, slash) = last else { return Err(EEXIST) };
        match self.find(dir, &name)? {
            Some(_) => Err(EEXIST),
            None if slash && !dir_wanted => Err(ENOENT),
            None => Ok((dir, name)),
        }
    }

    pub(super) fn may_create(&self, dir: Id) -> Res<()> {
        self.permission(dir, WRITE | EXEC)
    }

    /// Whether the process may take a name away; `as_dir` is set if the caller removes it as a directory.
    fn may_delete(&self, dir: Id, victim: Id, as_dir: bool) -> Res<()> {
        self.permission(dir, WRITE | EXEC)?;
        let sticky = self.inodes[dir].perm & S_ISVTX != 0;
        let mine = [dir, victim].iter().any(|id| self.is_owner_or_root(*id));
        match () {
            () if self.is_mounted(victim) => Err(EBUSY),
            () if sticky && !mine => Err(EPERM),
            () if as_dir && !self.is_dir(victim) => Err(ENOTDIR),
            () if !as_dir && self.is_dir(victim) => Err(EISDIR),
            () => Ok(()),
        }
    }

    /// Makes an inode and its name. `perm` is what the caller requested, before the umask.
    pub(super) fn make(&mut self, dir: Id, name: Vec<u8>, kind: Kind, perm: u32) -> Id {
        let parent = &self.inodes[dir];
        let (is_dir, inherits) = (matches!(kind, Kind::Dir { .. }), parent.perm & S_ISGID != 0);
        let mut perm = perm;
        let executable_setgid = perm & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP;
        if !is_dir && inherits && executable_setgid && !self.in_group_or_root(parent.gid) {
            perm &= !S_ISGID;
        }
        if !matches!(kind, Kind::Symlink(_)) {
            perm &= !self.umask;
        }
        if is_dir && inherits {
            perm |= S_ISGID;
        }
        let gid = if inherits { parent.gid } else { self.cred.gid };
        let nlink = if is_dir { 2 } else { 1 };
        let now = self.clock;
        let id = self.inodes.len();
        self.inodes.push(Inode { kind, perm, uid: self.cred.uid, gid, nlink, atime: now, mtime: now, ctime: now });
        self.entries_mut(dir).insert(name, id);
        self.inodes[dir].nlink += u64::from(is_dir);
        self.touch_modified(dir);
        id
    }

    pub(super) fn mkdir(&mut self, path: &[u8], mode: u32) -> Res<()> {
        let (dir, name) = self.place_for(path, true)?;
        self.may_create(dir)?;
        let kind = Kind::Dir { entries: BTreeMap::new(), parent: dir, removed: false };
        self.make(dir, name, kind, mode & (0o777 | S_ISVTX));
        Ok(())
    }

    pub(super) fn mknod(&mut self, path: &[u8], mode: u32, rdev: (u32, u32)) -> Res<()> {
        let kind = match mode & S_IFMT {
            0 | S_IFREG => Kind::File { data: Vec::new(), pages: BTreeSet::new() },
            S_IFDIR => return Err(EPERM),
            kind @ (S_IFCHR | S_IFBLK) => Kind::Special(kind, rdev),
            kind @ (S_IFIFO | S_IFSOCK) => Kind::Special(kind, (0, 0)),
            _ => return Err(EINVAL),
        };
        let (dir, name) = self.place_for(path, false)?;
        self.may_create(dir)?;
        let device = matches!(kind, Kind::Special(S_IFCHR | S_IFBLK, _));
        let whiteout = matches!(kind, Kind::Special(S_IFCHR, (0, 0)));
        if device && !whiteout && !self.cred.is_root() {
            return Err(EPERM);
        }
        self.make(dir, name, kind, mode & 0o7777);
        Ok(())
    }

    pub(super) fn symlink(&mut self, body: &[u8], path: &[u8]) -> Res<()> {
        check_path(body)?;
        let (dir, name) = self.place_for(path, false)?;
        self.may_create(dir)?;
        self.make(dir, name, Kind::Symlink(body.to_vec()), 0o777);
        Ok(())
    }

    pub(super) fn link(&mut self, from: &[u8], to: &[u8]) -> Res<()> {
        let old = self.lookup(from, false)?;
        let (dir, name) = self.place_for(to, false)?;
        self.may_link(old)?;
        self.may_create(dir)?;
        match () {
            () if self.is_dir(old) => return Err(EPERM),
            () if self.inodes[old].nlink == 0 => return Err(ENOENT),
            () => {}
        }
        self.entries_mut(dir).insert(name, old);
        self.inodes[old].nlink += 1;
        self.touch_changed(old);
        self.touch_modified(dir);
        Ok(())
    }

    /// `fs.protected_hardlinks`.
    pub(super) fn may_link(&self, old: Id) -> Res<()> {
        let perm = self.inodes[old].perm;
        let risky = perm & S_ISUID != 0 || perm & (S_ISGID | S_IXGRP) == S_ISGID | S_IXGRP;
        let safe = self.is_file(old) && !risky && self.permission(old, READ | WRITE).is_ok();
        if !self.world.protected_hardlinks || safe || self.is_owner_or_root(old) { Ok(()) } else { Err(EPERM) }
    }

    pub(super) fn unlink(&mut self, path: &[u8]) -> Res<()> {
        let (dir, last) = self.lookup_parent(path)?;
        let Last::Name(name, slash) = last else { return Err(EISDIR) };
        let victim = self.find(dir, &name)?.ok_or(ENOENT)?;
        if slash {
            return Err(if self.is_dir(victim) { EISDIR } else { ENOTDIR });
        }
        self.may_delete(dir, victim, false)?;
        self.entries_mut(dir).remove(&name);
        self.inodes[victim].nlink -= 1;
        self.touch_changed(victim);
        self.touch_modified(dir);
        Ok(())
    }

    pub(super) fn rmdir(&mut self, path: &[u8]) -> Res<()> {
        let (dir, last) = self.lookup_parent(path)?;
        let name = match last {
            Last::Name(name, _) => name,
            Last::Dot => return Err(EINVAL),
            Last::DotDot => return Err(ENOTEMPTY),
            Last::Root => return Err(EBUSY),
        };
        let victim = self.find(dir, &name)?.ok_or(ENOENT)?;
        self.may_delete(dir, victim, true)?;
        if !self.entries(victim)?.is_empty() {
            return Err(ENOTEMPTY);
        }
        self.entries_mut(dir).remove(&name);
        self.bury(victim);
        self.inodes[dir].nlink -= 1;
        self.touch_changed(victim);
        self.touch_modified(dir);
        Ok(())
    }

    fn bury(&mut self, victim: Id) {
        self.inodes[victim].nlink = 0;
        if let Kind::Dir { removed, .. } = &mut self.inodes[victim].kind {
            *removed = true;
        }
    }

    pub(super) fn rename(&mut self, from: &[u8], to: &[u8]) -> Res<()> {
        let (old_dir, old_last) = self.lookup_parent(from)?;
        let (new_dir, new_last) = self.lookup_parent(to)?;
        let (Last::Name(old_name, old_slash), Last::Name(new_name, new_slash)) = (old_last, new_last) else {
            return Err(EBUSY);
        };
        let source = self.find(old_dir, &old_name)?.ok_or(ENOENT)?;
        let target = self.find(new_dir, &new_name)?;
        let is_dir = self.is_dir(source);
        match target {
            _ if !is_dir && (old_slash || new_slash) => return Err(ENOTDIR),
            _ if self.is_at_or_below(new_dir, source) => return Err(EINVAL),
            Some(target) if self.is_at_or_below(old_dir, target) => return Err(ENOTEMPTY),
            Some(target) if target == source => return Ok(()),
            _ => {}
        }
        self.may_delete(old_dir, source, is_dir)?;
        match target {
            Some(target) => self.may_delete(new_dir, target, is_dir)?,
            None => self.may_create(new_dir)?,
        }
        if is_dir && old_dir != new_dir {
            self.permission(source, WRITE)?;
        }
        if target.is_some_and(|target| self.entries(target).is_ok_and(|entries| !entries.is_empty())) {
            return Err(ENOTEMPTY);
        }
        self.move_name((old_dir, old_name), (new_dir, new_name), target);
        Ok(())
    }

    fn move_name(&mut self, old: (Id, Vec<u8>), new: (Id, Vec<u8>), target: Option<Id>) {
        let ((old_dir, old_name), (new_dir, new_name)) = (old, new);
        let source = self.entries_mut(old_dir).remove(&old_name).expect("the source has its name");
        self.entries_mut(new_dir).insert(new_name, source);
        if let Kind::Dir { parent, .. } = &mut self.inodes[source].kind {
            *parent = new_dir;
            self.inodes[old_dir].nlink -= 1;
            self.inodes[new_dir].nlink += 1;
        }
        if let Some(target) = target {
            if self.is_dir(target) {
                self.bury(target);
                self.inodes[new_dir].nlink -= 1;
            } else {
                self.inodes[target].nlink -= 1;
            }
            self.touch_changed(target);
        }
        self.touch_modified(old_dir);
        self.touch_modified(new_dir);
        self.touch_changed(source);
    }

    /// Whether `id` is `top` or below it, following `..`.
    pub(super) fn is_at_or_below(&self, mut id: Id, top: Id) -> bool {
        // Bounded: what is mounted below itself, the model takes for a loop.
        for _ in 0..=self.inodes.len() {
            let parent = self.step_dots(id, &Last::DotDot);
            match () {
                () if id == top => return true,
                () if id == ROOT => return false,
                () => id = parent,
            }
        }
        true
    }
}
