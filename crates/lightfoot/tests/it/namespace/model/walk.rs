//! From a path to an inode, as `path_resolution(7)` has it.

use super::*;

const PATH_MAX: usize = 4096;
const NAME_MAX: usize = 255;
const MAX_SYMLINKS: u32 = 40;

/// The last component of a path, not looked up yet.
pub(super) enum Last {
    /// A name, and whether slashes come after it.
    Name(Vec<u8>, bool),
    Dot,
    DotDot,
    /// There is none: nothing but slashes.
    Root,
}

/// What a walk has used up.
#[derive(Default)]
pub(super) struct Walk {
    links: u32,
}

impl Walk {
    pub(super) fn follow_one(&mut self) -> Res<()> {
        self.links += 1;
        if self.links > MAX_SYMLINKS { Err(ELOOP) } else { Ok(()) }
    }
}

/// What is wrong with a path before anything is looked up.
pub(super) fn check_path(path: &[u8]) -> Res<()> {
    match path.len() {
        0 => Err(ENOENT),
        len if len >= PATH_MAX => Err(ENAMETOOLONG),
        _ if path.contains(&0) => Err(EINVAL),
        _ => Ok(()),
    }
}

impl Model {
    /// Finds what a path names; `follow` decides about a symbolic link in the last place.
    pub(super) fn lookup(&self, path: &[u8], follow: bool) -> Res<Id> {
        check_path(path)?;
        self.resolve(self.start(), path, follow, &mut Walk::default())
    }

    /// Finds a path's parent directory and leaves the last component to the caller.
    pub(super) fn lookup_parent(&self, path: &[u8]) -> Res<(Id, Last)> {
        check_path(path)?;
        self.walk_to_last(self.start(), path, &mut Walk::default())
    }

    fn resolve(&self, start: Id, path: &[u8], follow: bool, walk: &mut Walk) -> Res<Id> {
        let (dir, last) = self.walk_to_last(start, path, walk)?;
        let (name, slash) = match last {
            Last::Name(name, slash) => (name, slash),
            dots => return Ok(self.step_dots(dir, &dots)),
        };
        let child = self.find(dir, &name)?.ok_or(ENOENT)?;
        let found = match &self.inodes[child].kind {
            Kind::Symlink(body) if follow || slash => {
                walk.follow_one()?;
                self.may_follow(dir, child)?;
                self.resolve(dir, body, true, walk)?
            }
            _ => child,
        };
        if slash && !self.is_dir(found) { Err(ENOTDIR) } else { Ok(found) }
    }

    /// Walks to the directory that holds the last component. Every directory on the way must be searchable, this one
    /// included.
    pub(super) fn walk_to_last(&self, start: Id, path: &[u8], walk: &mut Walk) -> Res<(Id, Last)> {
        let mut dir = if path.starts_with(b"/") { self.root } else { start };
        let names: Vec<&[u8]> = path.split(|b| *b == b'/').filter(|name| !name.is_empty()).collect();
        let Some((last, way)) = names.split_last() else {
            return Ok((dir, Last::Root));
        };
        for name in way {
            self.permission(dir, EXEC)?;
            dir = self.step(dir, name, walk)?;
        }
        self.permission(dir, EXEC)?;
        Ok((dir, last_of(last, path.ends_with(b"/"))))
    }

    /// One component that is not the last: what it names must be a directory.
    fn step(&self, dir: Id, name: &[u8], walk: &mut Walk) -> Res<Id> {
        let Last::Name(name, _) = last_of(name, false) else {
            return Ok(self.step_dots(dir, &last_of(name, false)));
        };
        let child = self.find(dir, &name)?.ok_or(ENOENT)?;
        let found = match &self.inodes[child].kind {
            Kind::Symlink(body) => {
                walk.follow_one()?;
                self.resolve(dir, body, true, walk)?
            }
            _ => child,
        };
        if self.is_dir(found) { Ok(found) } else { Err(ENOTDIR) }
    }

    pub(super) fn step_dots(&self, dir: Id, dots: &Last) -> Id {
        match (&self.inodes[dir].kind, dots) {
            (Kind::Dir { parent, .. }, Last::DotDot) if dir != self.root => *parent,
            _ => dir,
        }
    }

    /// One name in one directory.
    pub(super) fn find(&self, dir: Id, name: &[u8]) -> Res<Option<Id>> {
        match () {
            () if self.is_removed_dir(dir) => Err(ENOENT),
            () if name.len() > NAME_MAX => Err(ENAMETOOLONG),
            () => Ok(self.entries(dir)?.get(name).map(|id| self.shown(*id))),
        }
    }

    /// `fs.protected_symlinks`.
    pub(super) fn may_follow(&self, dir: Id, link: Id) -> Res<()> {
        let (dir, link) = (&self.inodes[dir], &self.inodes[link]);
        let shared = dir.perm & (S_ISVTX | 0o002) == S_ISVTX | 0o002;
        let foreign = link.uid != self.cred.uid && link.uid != dir.uid;
        if self.world.protected_symlinks && shared && foreign { Err(EACCES) } else { Ok(()) }
    }

    pub(super) fn chdir(&mut self, path: &[u8]) -> Res<()> {
        let id = self.lookup(path, true)?;
        if !self.is_dir(id) {
            return Err(ENOTDIR);
        }
        self.permission(id, EXEC)?;
        self.cwd = id;
        Ok(())
    }

    pub(super) fn getcwd(&self) -> Res<RawPath> {
        if self.is_removed_dir(self.cwd) {
            return Err(ENOENT);
        }
        let path = self.path_of(self.cwd);
        if path.len() >= PATH_MAX { Err(ENAMETOOLONG) } else { Ok(RawPath(path)) }
    }

    /// The path of a directory that has one.
    pub(crate) fn path_of(&self, mut dir: Id) -> Vec<u8> {
        let mut names = Vec::new();
        while dir != self.root && names.len() <= self.inodes.len() {
            let parent = self.step_dots(dir, &Last::DotDot);
            let entries = self.entries(parent);
            // What is mounted, the model finds only from above.
            let Some((name, _)) = entries.into_iter().flatten().find(|(_, id)| **id == dir) else { break };
            names.push(name.clone());
            dir = parent;
        }
        names.push(Vec::new());
        names.reverse();
        [if names.len() == 1 { b"/".to_vec() } else { Vec::new() }, names.join(&b'/')].concat()
    }
}

fn last_of(name: &[u8], slash: bool) -> Last {
    match name {
        b"." => Last::Dot,
        b".." => Last::DotDot,
        name => Last::Name(name.to_vec(), slash),
    }
}
