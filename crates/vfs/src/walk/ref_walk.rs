//! ref-walk: the walk that holds what it stands on.
//!
//! # What it is
//! The same steps as in [rcu-walk](super::rcu_walk), each made with a count on the place it starts from, so it may sleep, ask the
//! file system, and cannot fail because of what others do. It makes as few steps as are needed: the walk goes on in
//! rcu-walk after each.
//!
//! # How it is locked
//! One directory lock at a time, held while an entry is looked for, not while the file system is asked. Who crosses a mount that
//! is being unmounted waits for the mounts' lock.

use crate::context::{Context, Held, Place};
use crate::cred::{Credentials, MAY_EXEC};
use crate::dentry::{CHECKED, DIR, Dentry, HASHED, LINK, MOUNTED};
use crate::errno::Errno;
use crate::fs::Request;
use crate::mount::MountFlags;
use crate::name::NAME_MAX;
use crate::permission::may_block;
use crate::rank::Rank;
use crate::walk::Found;
use crate::walk::arrive::protected_link;
use crate::walk::rcu_walk::{At, MAX_LINKS, RcuWalk};
use crate::walk::resolve::{Base, Resolve, is_within};
use sync::rcu::ReadGuard;

/// A walk that holds a count on its place, and the text that it has still to walk.
pub(crate) struct RefWalk {
    here: Held,
    /// `here` is taken as it is: what is mounted on it, or for how long its name is good, was seen to.
    arrived: bool,
    root: Held,
    cred: Credentials,
    patience: Option<u64>,
    resolve: Resolve,
    rest: Vec<u8>,
    links: u32,
}

impl RefWalk {
    /// Takes a count on the place where an rcu-walk left. `None`: it is not what it was any more, or about to be unmounted.
    pub(crate) fn legitimise(walk: &RcuWalk<'_>, patience: Option<u64>, at: At<'_>, rest: Vec<u8>) -> Option<Self> {
        let mount = at.mount.to_arc()?;
        let here = Held::new(mount, at.mount.get().sb.pin_rcu(walk.guard, at.dentry, at.seq)?);
        // The context's state holds the root for as long as the read section lasts, or an earlier ref-walk does.
        let root_mount = walk.root.mount.to_arc()?;
        let root = Held::new(root_mount, walk.root.mount.get().sb.pin_again(walk.root.dentry));
        let arrived = at.object & (MOUNTED | CHECKED) == 0;
        let (cred, resolve, links) = (walk.cred.clone(), walk.resolve, walk.links);
        Some(Self { here, arrived, root, cred, patience, resolve, rest, links })
    }

    /// A walk that holds the place where `path` starts.
    ///
    /// # Errors
    /// `EXDEV` for an absolute path out of a scope.
    pub(crate) fn from_start(context: &Context, links: u32, base: Base<'_>, path: &[u8]) -> Result<Self, Errno> {
        let (root, cwd) = context.root_and_cwd();
        let start = base.dir.cloned().unwrap_or(cwd);
        let root = if base.resolve.is_scoped() { base.scope.cloned().unwrap_or_else(|| start.clone()) } else { root };
        let is_absolute = path.first() == Some(&b'/');
        if is_absolute && base.resolve.has(Resolve::BENEATH) {
            return Err(Errno::EXDEV);
        }
        let here = if is_absolute { root.clone() } else { start };
        let guard = context.tree().domain.read();
        let state = context.state(&guard);
        let resolve = base.resolve.union(state.link_policy());
        let (cred, patience) = (state.cred.clone(), state.patience);
        Ok(Self { here, arrived: true, root, cred, patience, resolve, rest: path.to_vec(), links })
    }

    pub(crate) fn root(&self) -> Place<'_> {
        self.root.place()
    }

    pub(crate) fn cred(&self) -> &Credentials {
        &self.cred
    }

    pub(crate) fn patience(&self) -> Option<u64> {
        self.patience
    }

    pub(crate) fn resolve(&self) -> Resolve {
        self.resolve
    }

    pub(crate) fn rest(&self) -> &[u8] {
        &self.rest
    }

    pub(crate) fn links(&self) -> u32 {
        self.links
    }

    /// What is asked of the file system, by whom.
    fn request(&self) -> Request {
        let request = Request::of(&self.cred);
        self.patience.map_or(request, |ns| request.within(ns))
    }

    /// The place that it holds.
    pub(crate) fn held(&self) -> &Held {
        &self.here
    }

    fn here(&self) -> &Dentry {
        self.here.dentry()
    }

    /// Where rcu-walk goes on.
    pub(crate) fn sample(&self) -> At<'_> {
        let place = self.here.place();
        if self.arrived { At::start(place) } else { At::sample(place.mount, place.dentry) }
    }

    /// The place that rcu-walk takes as it is even if its name is good no longer: it was asked about just now.
    pub(crate) fn fresh(&self) -> *const Dentry {
        if self.arrived { self.here() } else { core::ptr::null() }
    }

    /// Whether nothing is left to walk.
    pub(crate) fn is_done(&self, follow: bool) -> bool {
        self.rest.iter().all(|&byte| byte == b'/') && !self.must_follow(follow) && !self.must_arrive()
    }

    fn must_follow(&self, follow: bool) -> bool {
        self.here().has(LINK) && (follow || !self.rest.is_empty())
    }

    fn must_arrive(&self) -> bool {
        !self.arrived && self.here().object() & (MOUNTED | CHECKED) != 0
    }

    /// Takes what the caller wants of the place where the walk has ended.
    pub(crate) fn take_end<R, E: From<Errno>>(
        &self,
        guard: &ReadGuard<'_>,
        take: &mut dyn FnMut(&Found<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let at = At::start(self.here.place());
        if !self.rest.is_empty() && at.object & DIR == 0 {
            return Err(Errno::ENOTDIR.into());
        }
        take(&Found::at_held(self, guard, &at))
    }

    /// One step forward: sees to what is mounted on the place, follows the link that it is, or goes to the next component.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`, `ENAMETOOLONG`, `EXDEV`, `ETIMEDOUT`, or what the file system answers.
    pub(crate) fn step(&mut self, follow: bool) -> Result<(), Errno> {
        if self.must_arrive() {
            return self.arrive();
        }
        self.arrived = true;
        if self.must_follow(follow) {
            return self.follow();
        }
        let start = self.rest.iter().take_while(|&&byte| byte == b'/').count();
        if start == self.rest.len() {
            return Ok(());
        }
        let end = self.rest[start..].iter().position(|&byte| byte == b'/').map_or(self.rest.len(), |at| start + at);
        let here = self.here();
        let inode = here.inode().ok_or(Errno::ENOENT)?;
        if !here.has(DIR) {
            return Err(Errno::ENOTDIR);
        }
        may_block(self.here.sb(), (inode, &inode.attr()), &self.cred, MAY_EXEC)?;
        match &self.rest[start..end] {
            b"." => {}
            b".." => {
                if let Some(up) = self.parent()? {
                    self.here = up;
                    self.arrived = false;
                }
            }
            name => {
                self.here = self.child(name)?;
                self.cross()?;
            }
        }
        self.rest.drain(..end);
        Ok(())
    }

    /// From a name to what it leads to: asks whether it is still good, then crosses to what is mounted on it.
    fn arrive(&mut self) -> Result<(), Errno> {
        if self.here().has(CHECKED) && self.here().is_expired() {
            // Also if somebody has taken the name away meanwhile: it may have been asked about, and be another's now.
            return self.revalidate();
        }
        self.cross()?;
        self.arrived = true;
        Ok(())
    }

    fn cross(&mut self) -> Result<(), Errno> {
        while self.here().has(MOUNTED) {
            let child = {
                let guard = self.here.sb().domain.read();
                let Some(child) = self.here.mount().child_rcu(&guard, self.here()) else { return Ok(()) };
                if self.resolve.has(Resolve::NO_XDEV) {
                    return Err(Errno::EXDEV);
                }
                child.to_arc()
            };
            match child {
                Some(child) => self.here = Held::root_of(child),
                // About to be unmounted: wait until it is, or stays.
                None => drop(self.here.sb().ranks.lock(Rank::Mounts, &self.here.sb().mounts)),
            }
        }
        Ok(())
    }

    /// Asks the file system whether the name that the walk stands on is still what it was: from its directory, by its name.
    fn revalidate(&mut self) -> Result<(), Errno> {
        let sb = self.here.sb();
        let (dir, name) = {
            let guard = sb.domain.read();
            let here = self.here();
            let seq = here.seq.begin();
            let name = here.with_name_rcu(&guard, <[u8]>::to_vec);
            let dir = here.parent().and_then(|dir| sb.pin(dir));
            match dir {
                Some(dir) if !here.seq.retry(seq) => (self.here.beside(dir), name),
                // It moves just now: next time.
                dir => {
                    dir.into_iter().for_each(|dir| sb.unpin(dir));
                    return Ok(());
                }
            }
        };
        let found = sb.find_held(&dir, &name, &self.request())?.ok_or(Errno::ENOENT)?;
        self.here = dir.beside(found);
        // Asked just now, so it is taken as it is even if it is good for no time at all.
        self.cross()?;
        self.arrived = true;
        Ok(())
    }

    /// The directory above; `None` at the root.
    fn parent(&self) -> Result<Option<Held>, Errno> {
        let mut from = self.here.clone();
        loop {
            if from.place().is(&self.root.place()) {
                return if self.resolve.has(Resolve::BENEATH) { Err(Errno::EXDEV) } else { Ok(None) };
            }
            if !core::ptr::eq(from.dentry(), from.mount().root()) {
                break;
            }
            let up = {
                let guard = from.sb().domain.read();
                let Some(up) = from.mount().attachment(&guard) else { return Ok(None) };
                Held::new(up.parent.clone(), up.parent.sb.pin_again(up.mountpoint()))
            };
            if self.resolve.has(Resolve::NO_XDEV) {
                return Err(Errno::EXDEV);
            }
            from = up;
        }
        let up = loop {
            // A held dentry keeps its parent alive, but may get another one.
            let parent = from.dentry().parent().ok_or(Errno::ENOENT)?;
            if let Some(pinned) = from.sb().pin(parent) {
                let up = from.beside(pinned);
                if from.dentry().is_in(up.dentry()) {
                    break up;
                }
            }
        };
        self.check_up(&up)?;
        Ok(Some(up))
    }

    /// As in rcu-walk: within the scope, and within what the mount shows.
    fn check_up(&self, up: &Held) -> Result<(), Errno> {
        let sb = up.sb();
        if self.resolve.is_scoped() && !is_within(sb, up.place(), &self.root.place()) {
            return Err(Errno::EXDEV);
        }
        let mount_root = Place { mount: up.mount().borrow(), dentry: up.mount().root() };
        if !core::ptr::eq(mount_root.dentry, sb.root()) && !is_within(sb, up.place(), &mount_root) {
            return Err(Errno::ENOENT);
        }
        Ok(())
    }

    /// The entry `name`, from the cache or from the file system.
    fn child(&self, name: &[u8]) -> Result<Held, Errno> {
        if !self.here().has(HASHED) {
            return Err(Errno::ENOENT);
        }
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let entry = self.here.sb().find_held(&self.here, name, &self.request())?;
        entry.map(|entry| self.here.beside(entry)).ok_or(Errno::ENOENT)
    }

    fn follow(&mut self) -> Result<(), Errno> {
        let refused = self.resolve.has(Resolve::NO_SYMLINKS) || self.here.mount().has(MountFlags::NOSYMFOLLOW);
        if self.links >= MAX_LINKS || refused {
            return Err(Errno::ELOOP);
        }
        let is_last = self.rest.iter().all(|&byte| byte == b'/');
        if is_last && self.resolve.has(Resolve::PROTECTED_LINKS) {
            protected_link(self.here(), &self.cred)?;
        }
        self.links += 1;
        let body = self.here.sb().link_body(self.here(), &self.request())?;
        let next = if body.first() == Some(&b'/') {
            if self.resolve.has(Resolve::BENEATH) {
                return Err(Errno::EXDEV);
            }
            if self.resolve.has(Resolve::NO_XDEV) && !self.root.mount().ptr_eq(self.here.mount()) {
                return Err(Errno::EXDEV);
            }
            self.root.clone()
        } else {
            loop {
                let parent = self.here().parent().ok_or(Errno::ENOENT)?;
                if let Some(pinned) = self.here.sb().pin(parent) {
                    break self.here.beside(pinned);
                }
            }
        };
        self.here = next;
        self.arrived = true;
        let rest = core::mem::replace(&mut self.rest, body);
        if !rest.is_empty() {
            self.rest.push(b'/');
            self.rest.extend_from_slice(&rest);
        }
        Ok(())
    }
}
