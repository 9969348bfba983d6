//! ref-walk: the walk that holds its place.
//!
//! # What it is
//! The steps of [rcu-walk](super::rcu_walk), each with a count on its start. So a step may sleep
//! and call the file system, and other threads cannot make it fail. It takes as few steps as
//! needed: after each the walk continues in rcu-walk.
//!
//! # How it is locked
//! One directory lock at a time, held during a search in the cache, not during a request to the
//! file system. A walk that crosses a mount that is being unmounted waits for the mounts' lock.

use crate::base::access::credentials::{Credentials, MAY_EXEC};
use crate::base::attr::Attr;
use crate::base::deadline::Timeout;
use crate::base::errno::Errno;
use crate::base::flags::Resolve;
use crate::fs::Request;
use crate::mount::Mount;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathRef, Place};
use crate::slots::dentry::Dentry;
use crate::slots::object::ObjectFlags;
use crate::slots::slot::DentryRef;
use crate::walk::follow::{LinkStep, Up, check_up, leads_to_root, up_from};
use crate::walk::lookup;
use crate::walk::permission::may_block;
use crate::walk::question::{Question, WalkEndRef};
use crate::walk::rcu_walk::{RcuWalk, Step};
use crate::walk::resolve::is_within;
use crate::walk::walk_end::WalkEnd;
use crate::walk::walk_position::Here;
use core::cell::Cell;
use sync::PerCpuArc;
use sync::rcu::ReadGuard;

/// A walk that holds a count on its place, with the rest of its path.
pub(crate) struct RefWalk {
    here: Here,
    /// Mounts on `here`, and its expiry, were already handled.
    arrived: bool,
    /// The attributes of `here` came with its name, or were requested since.
    is_new: bool,
    root: RootRef,
    pub(super) cred: Credentials,
    pub(super) timeout: Timeout,
    pub(super) resolve: Resolve,
    pub(super) rest: Vec<u8>,
    pub(super) links: u32,
    /// A request has failed with `ESTALE`.
    met_stale: Cell<bool>,
}

/// The root of a walk, held. Most walks have the same root, so its dentry is counted only where the
/// mount does not hold it: the root of a mount stays as long as the mount, whose count is by CPU
/// index.
enum RootRef {
    OfMount(PerCpuArc<Mount>),
    Place(PathRef),
}

impl RootRef {
    /// `None`: its mount is being unmounted. Another holder keeps the root during the read section.
    fn hold(root: &Place<'_>) -> Option<Self> {
        let mount = root.mount.to_arc()?;
        if core::ptr::eq(mount.root(), root.dentry) {
            return Some(Self::OfMount(mount));
        }
        let pinned = mount.sb.pin_again(root.dentry);
        Some(Self::Place(PathRef::new(mount, pinned)))
    }

    fn place(&self) -> Place<'_> {
        match self {
            Self::OfMount(mount) => Place { mount: mount.borrow(), dentry: mount.root() },
            Self::Place(root) => root.place(),
        }
    }

    fn to_place(&self) -> PathRef {
        match self {
            Self::OfMount(mount) => PathRef::root_of(mount.clone()),
            Self::Place(root) => root.clone(),
        }
    }

    fn mount(&self) -> &PerCpuArc<Mount> {
        match self {
            Self::OfMount(mount) => mount,
            Self::Place(root) => root.mount(),
        }
    }
}

impl RefWalk {
    /// Takes a count on the place where an rcu-walk stopped. `None`: it has changed, or is being unmounted.
    pub(crate) fn legitimise(walk: &RcuWalk<'_>, timeout: Timeout, at: Step<'_>, rest: Vec<u8>) -> Option<Self> {
        let here = Here::hold(walk.guard, &at)?;
        // The context's state holds the root during the read section, or an earlier ref-walk does.
        let root = RootRef::hold(&walk.root)?;
        let by_name = !at.object.has(ObjectFlags::START) && !at.dentry.is_in(at.dentry);
        let arrived = !(at.object.is_mountpoint() || at.object.has_expiry() && by_name);
        let (cred, resolve, links) = (walk.cred.clone(), walk.resolve, walk.links);
        let met_stale = Cell::new(false);
        Some(Self { here, arrived, is_new: false, root, cred, timeout, resolve, rest, links, met_stale })
    }

    /// Creates a walk that holds the start of `path`.
    ///
    /// # Errors
    /// `EXDEV` for an absolute path with `BENEATH`.
    pub(crate) fn from_start(context: &Context, links: u32, base: Base<'_>, path: &[u8]) -> Result<Self, Errno> {
        // All of one state: a thread may replace it meanwhile.
        let guard = context.tree().domain.read();
        let state = context.state(&guard);
        let start = base.dir.unwrap_or(&state.cwd).clone();
        let root = if base.resolve.is_scoped() { base.scope.unwrap_or(&start) } else { &state.root }.clone();
        let is_absolute = path.first() == Some(&b'/');
        if is_absolute && base.resolve.contains(Resolve::BENEATH) {
            return Err(Errno::EXDEV);
        }
        let here = if is_absolute { root.clone() } else { start };
        let resolve = base.resolve.union(state.link_policy());
        let root = RootRef::Place(root);
        let (cred, timeout) = ((*state.cred).clone(), state.timeout);
        let here = Here::Counted(here);
        let (rest, met_stale) = (path.to_vec(), Cell::new(false));
        Ok(Self { here, arrived: true, is_new: false, root, cred, timeout, resolve, rest, links, met_stale })
    }

    pub(crate) fn root(&self) -> Place<'_> {
        self.root.place()
    }

    /// Returns the request to the file system.
    fn request(&self) -> Request<'static> {
        Request::with(&self.cred, self.timeout, 0)
    }

    fn here(&self) -> &Dentry {
        self.here.dentry()
    }

    /// Another dentry of the same mount.
    fn beside(&self, pinned: DentryRef) -> PathRef {
        PathRef::new(self.here.mount().clone(), pinned)
    }

    /// Returns the place where rcu-walk continues.
    pub(crate) fn sample(&self) -> Step<'_> {
        let place = self.here.place();
        if self.arrived { Step::start(place) } else { Step::sample(place.mount, place.dentry) }
    }

    /// Returns the place that rcu-walk accepts even if its name expired: it was just revalidated.
    pub(crate) fn fresh(&self) -> *const Dentry {
        if self.arrived { self.here() } else { core::ptr::null() }
    }

    /// Returns the place where the walk is.
    pub(crate) fn place(&self) -> PathRef {
        self.here.to_place()
    }

    /// Marks the name by which the walk has come here as stale. The walk itself continues from
    /// here.
    pub(crate) fn expire(&self) {
        self.here().expire(&self.here.sb().paths);
    }

    /// Returns whether a request of the walk has failed with `ESTALE`.
    pub(crate) fn met_stale(&self) -> bool {
        self.met_stale.get()
    }

    fn note_stale<R>(&self, done: Result<R, Errno>) -> Result<R, Errno> {
        if matches!(done, Err(Errno::ESTALE)) {
            self.met_stale.set(true);
        }
        done
    }

    /// Returns whether the walk is at its end.
    pub(crate) fn is_done(&self, follow: bool) -> bool {
        self.rest.iter().all(|&byte| byte == b'/') && !self.must_follow(follow) && !self.must_arrive()
    }

    fn must_follow(&self, follow: bool) -> bool {
        self.here().object().is_link() && (follow || !self.rest.is_empty())
    }

    fn must_arrive(&self) -> bool {
        !self.arrived && self.here().object().has(ObjectFlags::MOUNTED | ObjectFlags::CHECKED)
    }

    /// Calls the caller's closure on the end of the walk, where the walk is. If the closure needs the file system, calls
    /// that outside of the read section, and the closure again.
    pub(crate) fn finish<R, E: From<Errno>>(&self, take: &mut dyn FnMut(&WalkEnd<'_>) -> Result<R, E>) -> Result<R, E> {
        let mut end = WalkEndRef { here: &self.here, asked: Cell::new(None), answers: Vec::new() };
        loop {
            let taken = self.take_end(&end, &self.here.sb().domain.read(), take);
            // Each question comes once, so this ends.
            let Some(question) = end.asked.take() else { return taken };
            end.answers.push((question, self.note_stale(self.ask(question))));
        }
    }

    fn ask(&self, question: Question) -> Result<Attr, Errno> {
        let (sb, inode) = (self.here.sb(), self.here().inode().ok_or(Errno::ENOENT)?);
        match question {
            Question::Attributes => sb.attr_now(inode),
            Question::Permission(mask) => {
                let attr = inode.attr();
                may_block(sb, inode, attr.rights(), &self.cred, mask).map(|()| attr)
            }
        }
    }

    fn take_end<R, E: From<Errno>>(
        &self,
        end: &WalkEndRef<'_>,
        guard: &ReadGuard<'_>,
        take: &mut dyn FnMut(&WalkEnd<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let at = Step::start(self.here.place());
        if !self.rest.is_empty() && !at.object.is_dir() {
            return Err(Errno::ENOTDIR.into());
        }
        let mut found = WalkEnd::of(guard, &self.cred, self.links, &at);
        found.held = Some(end);
        take(&found)
    }

    /// Takes one step forward: crosses a mount point, follows a link, or steps to the next
    /// component.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`, `ENAMETOOLONG`, `EXDEV`, `ETIMEDOUT`, or errors of the file
    /// system.
    pub(crate) fn step(&mut self, follow: bool) -> Result<(), Errno> {
        self.here.sb().end_late_puts();
        let stepped = self.renew().and_then(|()| self.take_step(follow)).and_then(|()| self.renew());
        self.note_stale(stepped)
    }

    /// Requests the attributes of a place that the walk did not find by its name, if they are too old.
    fn renew(&mut self) -> Result<(), Errno> {
        if self.is_new || self.must_arrive() {
            return Ok(());
        }
        self.is_new = true;
        match self.here().inode() {
            Some(inode) if inode.is_old() => self.here.sb().fetch_attr(inode).map(drop),
            _ => Ok(()),
        }
    }

    fn take_step(&mut self, follow: bool) -> Result<(), Errno> {
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
        if !here.object().is_dir() {
            return Err(Errno::ENOTDIR);
        }
        may_block(self.here.sb(), inode, inode.rights(), &self.cred, MAY_EXEC)?;
        match &self.rest[start..end] {
            b"." => {}
            b".." => {
                if let Some(up) = self.parent()? {
                    self.here = Here::Counted(up);
                    (self.arrived, self.is_new) = (false, false);
                } else {
                    self.cross()?;
                }
            }
            name => {
                self.here = Here::Counted(self.child(name, &self.rest[end..])?);
                self.is_new = true;
                self.cross()?;
            }
        }
        self.rest.drain(..end);
        Ok(())
    }

    /// From a name to its target: revalidates an expired entry, then crosses mount points.
    fn arrive(&mut self) -> Result<(), Errno> {
        if self.here().object().has_expiry() && self.here().is_expired() {
            // Also if the name was removed meanwhile: a revalidation may have removed it, and the name may
            // belong to another file now.
            return self.revalidate();
        }
        self.cross()?;
        self.arrived = true;
        Ok(())
    }

    fn cross(&mut self) -> Result<(), Errno> {
        while self.here().object().is_mountpoint() {
            let child = {
                let guard = self.here.sb().domain.read();
                let Some(child) = self.here.mount().child_owned(&guard, self.here()) else { return Ok(()) };
                if self.resolve.contains(Resolve::NO_XDEV) {
                    return Err(Errno::EXDEV);
                }
                child.borrow().to_arc().ok_or_else(|| child.clone())
            };
            match child {
                Ok(child) => (self.here, self.is_new) = (Here::Counted(PathRef::root_of(child)), false),
                // The mount is being unmounted: wait for the end of the unmount.
                Err(child) => drop(child.lock_ending()),
            }
        }
        Ok(())
    }

    /// Revalidates the entry of the place, by its directory and name.
    fn revalidate(&mut self) -> Result<(), Errno> {
        let sb = self.here.sb();
        let (dir, name) = {
            let guard = sb.domain.read();
            let here = self.here();
            let seq = here.seq.begin();
            let name = here.with_name_rcu(&guard, <[u8]>::to_vec);
            let dir = here.parent().and_then(|dir| sb.pin(dir));
            match dir {
                Some(dir) if !here.seq.retry(seq) => (self.beside(dir), name),
                // The directory is being moved: the next step revalidates it.
                dir => {
                    dir.into_iter().for_each(|dir| sb.unpin(dir));
                    return Ok(());
                }
            }
        };
        let dir = Here::Counted(dir);
        let found = lookup::find_held(&dir, &name, &[], &self.request())?.ok_or(Errno::ENOENT)?;
        self.here = Here::Counted(self.beside(found));
        self.is_new = true;
        // Just revalidated, so it is accepted even if it is valid for no time at all.
        self.cross()?;
        self.arrived = true;
        Ok(())
    }

    /// Returns the directory above; `None` at the root.
    fn parent(&self) -> Result<Option<PathRef>, Errno> {
        let mut from = self.here.to_place();
        loop {
            let up = {
                let guard = from.sb().domain.read();
                match up_from(&guard, &from.place(), &self.root.place(), self.resolve)? {
                    Up::Parent => break,
                    Up::Stays => return Ok(None),
                    Up::Mountpoint(up) => PathRef::new(up.parent.clone(), up.parent.sb.pin_again(up.mountpoint())),
                }
            };
            from = up;
        }
        let up = loop {
            let up = from.beside(from.sb().pin_parent(from.dentry())?);
            if from.dentry().is_in(up.dentry()) {
                break up;
            }
        };
        self.check_up(&up)?;
        Ok(Some(up))
    }

    fn check_up(&self, up: &PathRef) -> Result<(), Errno> {
        let is_within = |root: &Place<'_>| Some(is_within(up.sb(), up.place(), root));
        check_up(&up.place(), &self.root.place(), self.resolve, is_within).unwrap_or(Ok(()))
    }

    /// Returns the entry `name`, from the cache or from the file system. `next`: the path behind
    /// it.
    fn child(&self, name: &[u8], next: &[u8]) -> Result<PathRef, Errno> {
        lookup::check_name(self.here(), name)?;
        let entry = lookup::find_held(&self.here, name, next, &self.request())?;
        entry.map(|entry| self.beside(entry)).ok_or(Errno::ENOENT)
    }

    fn follow(&mut self) -> Result<(), Errno> {
        let is_last = self.rest.iter().all(|&byte| byte == b'/');
        let (mount, resolve, followed) = (self.here.mount(), self.resolve, self.links);
        LinkStep { link: self.here(), mount, cred: &self.cred, resolve, followed, is_last }.check()?;
        self.links += 1;
        let body = self.here.sb().link_body(self.here(), &self.request())?;
        let is_roots_mount = || self.root.mount().ptr_eq(self.here.mount());
        let next = if leads_to_root(&body, self.resolve, is_roots_mount)? {
            self.root.to_place()
        } else {
            self.beside(self.here.sb().pin_parent(self.here())?)
        };
        self.here = Here::Counted(next);
        (self.arrived, self.is_new) = (true, false);
        let rest = core::mem::replace(&mut self.rest, body);
        if !rest.is_empty() {
            self.rest.push(b'/');
            self.rest.extend_from_slice(&rest);
        }
        Ok(())
    }
}
