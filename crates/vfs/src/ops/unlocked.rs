//! Operations on a locked name: the file system is called with no directory locked.
//!
//! # How they work
//! In a remote file system an operation locks its name ([`name_locks`](crate::cache::name_locks))
//! and looks it up as a walk does. It locks the directory for the checks before the call, releases
//! the lock, calls the file system, and locks the directory again to change the cache. It holds a
//! count on the entry meanwhile.
//!
//! During the call a lookup, a listing or an invalidation may have changed the entry in the cache,
//! and the directory itself may have been replaced in the cache, because the file system reported
//! another one under its name. So the operation searches the cache again after the call: a created
//! name may have an entry already, and a removed name may have lost its entry.
//!
//! # How it is locked
//! As [`name_locks`](crate::cache::name_locks). A thread has at most the locks of one directory and
//! of another one in it.
//!
//! # Where it comes from
//! As [`entry`](crate::ops::entry).

use crate::base::deadline::Deadline;
use crate::base::errno::Errno;
use crate::cache::budget::SlotKind;
use crate::cache::insert::{ExtraArgs, NewInodeArgs};
use crate::cache::name_locks::NameLocks;
use crate::cache::reclaim::{FreeSlot, LockedDirs, MayEvict};
use crate::cache::returned::Files;
use crate::fs::{NewNode, Request};
use crate::mount::context::Context;
use crate::mount::place::PathRef;
use crate::ops::checks::{LINK_MARKS, add_link, check_no_mount, end_link};
use crate::ops::entry::{Caller, Entry, Mode};
use crate::ops::last_component::Last;
use crate::ops::publish;
use crate::slots::dentry::Dentry;
use crate::slots::inode::{Inode, InodeRef};
use crate::slots::slot::DentryRef;
use crate::walk::lookup;
use crate::walk::nul_or;
use crate::walk::walk_end::{DirRef, LockedOrRef};
use crate::walk::walk_position::Here;
use core::cell::{Cell, OnceCell};

/// The name that an operation has locked, and the entries that it holds.
pub(crate) struct Unlocked<'t> {
    /// Empty in a fast file system, which has no such operation.
    name: Option<NameLocks<'t>>,
    dir: &'t Here,
    deadline: Option<i64>,
    found: OnceCell<DentryRef>,
    made: OnceCell<DentryRef>,
    /// The entry is not in the cache any more: the operation begins again.
    pub(super) begins_again: Cell<bool>,
}

impl<'t> Unlocked<'t> {
    /// Returns the request of an operation, which has one deadline.
    fn with_deadline<'r>(&self, mut request: Request<'r>) -> Request<'r> {
        request.deadline = self.deadline;
        request
    }

    /// Returns the entry of the name, if it exists.
    pub(super) fn find<'r>(&'r self, entry: &Entry<'t, '_>) -> Result<Option<&'r Dentry>, Errno> {
        lookup::check_name(entry.dir, entry.last.name)?;
        let request = self.with_deadline(entry.caller.request());
        let found = lookup::find_name_locked(self.dir, entry.last.name, &request)?;
        Ok(found.map(|found| self.hold(&self.found, found)))
    }

    /// Gives the name back: the operation changes nothing.
    pub(super) fn give_back(&self) {
        self.name.iter().for_each(NameLocks::give_back);
    }

    /// Holds an entry for as long as the operation.
    fn hold<'r>(&'r self, place: &'r OnceCell<DentryRef>, entry: DentryRef) -> &'r Dentry {
        if let Err(entry) = place.set(entry) {
            self.dir.sb().unpin(entry);
        }
        place.get().expect("set before").get(self.dir.sb().slots())
    }
}

impl Drop for Unlocked<'_> {
    fn drop(&mut self) {
        self.give_back();
        [self.found.take(), self.made.take()].into_iter().flatten().for_each(|held| self.dir.sb().unpin(held));
    }
}

impl Context {
    /// Locks a name in the directory that a walk found, and calls `f`. `None`: the directory moved
    /// before the lock, or the entry of the name left the cache, so the operation must walk again.
    #[cold]
    #[inline(never)]
    pub(super) fn in_name_locked<'p, R>(
        &self,
        found: DirRef,
        last: &Last<'p>,
        path: &[u8],
        f: &dyn Fn(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno>,
    ) -> Option<Result<R, Errno>> {
        let DirRef { mount, kept, seq, links } = found;
        let sb = &*mount.sb;
        let dir = match kept {
            LockedOrRef::Locked(locked) => {
                let (dir, _lock, _) = locked.bind(sb);
                sb.pin_again(dir)
            }
            LockedOrRef::Counted(dir) => dir,
        };
        let at = Here::Counted(PathRef::new(mount.clone(), dir));
        let hash = sb.hash_again(last.name, last.short);
        let (cred, timeout) = self.cred_and_timeout();
        let caller = Caller { cred: &cred, timeout };
        let deadline = caller.request().deadline;
        let name = match sb.lock_remote_names([(at.dentry(), hash); 2], Deadline::at(deadline)) {
            Ok(name) => name,
            Err(errno) => return Some(Err(errno)),
        };
        if at.dentry().seq.retry(seq) {
            return None;
        }
        let (found, made, begins_again) = Default::default();
        let unlocked = Unlocked { name, dir: &at, deadline, found, made, begins_again };
        let entry = Entry {
            context: self,
            mount: mount.borrow(),
            sb,
            dir: at.dentry(),
            last,
            hash,
            names: None,
            links,
            caller,
            keeper: Mode::Name(&mount, &unlocked),
        };
        // The found entry is counted, so it needs no right to stay.
        let done = f(&entry, LockedDirs::new(()).may_evict());
        if unlocked.begins_again.get() {
            return None;
        }
        Some(done.map_err(|errno| nul_or(path, errno)))
    }
}

impl<'t> Entry<'t, '_> {
    /// Checks, with the directory locked, that the directory has its name, that `old`, the entry to
    /// remove, is still the name's entry, and that nothing is mounted on `old`. After a success the
    /// name is in flight.
    fn begin_change(&self, unlocked: &Unlocked<'t>, old: Option<&Dentry>) -> Result<(), Errno> {
        let _held = self.sb.lock_dir(self.dir);
        if !self.dir.object().is_hashed() {
            return Err(Errno::ENOENT);
        }
        if let Some(old) = old {
            if !self.is_entry(old) {
                return Err(self.leave());
            }
            check_no_mount(old)?;
            if old.object().is_dir() {
                let _held = self.sb.lock_dir_nested(old);
                self.context.check_empty(old)?;
            }
        }
        unlocked.name.iter().for_each(NameLocks::begin_change);
        Ok(())
    }

    /// Returns whether `entry` is the cached one of the name. The directory is locked.
    fn is_entry(&self, entry: &Dentry) -> bool {
        self.sb.cached(self.dir, self.named()).is_some_and(|cached| core::ptr::eq(cached, entry))
    }

    /// Returns whether the directory, which is locked, has been replaced in the cache since the
    /// check before the call. If so, marks the name stale in the dentry that the directory has now.
    fn is_replaced(&self, dir: &Inode) -> bool {
        let is_replaced = !self.dir.object().is_hashed();
        if is_replaced {
            self.sb.expire_name(dir, self.last.name);
        }
        is_replaced
    }

    /// [`Entry::make`] of a locked name, after its checks.
    ///
    /// # Errors
    /// The file system's; `ESTALE`: it has made the entry, but the name or the directory now leads
    /// elsewhere.
    #[cold]
    #[inline(never)]
    pub(super) fn make_name_locked<'r>(
        &'r self,
        unlocked: &'r Unlocked<'t>,
        new: &mut NewNode<'_>,
    ) -> Result<Option<&'r Dentry>, Errno> {
        let (sb, dir) = (self.sb, self.dir_inode()?);
        let request = unlocked.with_deadline(self.making());
        let now = request.now();
        (new.attr.atime, new.attr.mtime, new.attr.ctime) = (now, now, now);
        let slot = sb.slot(SlotKind::Entry)?;
        self.begin_change(unlocked, None)?;
        let invalidations = sb.invalidations();
        let pre_attrs = sb.pre_attrs(Files { dir: Some((dir, 1)), ..Files::default() });
        let created = sb.fs().create(&request, dir, Some(self.last.name), new);
        let is_dir = new.attr.is_dir();
        let made = {
            let _held = sb.lock_dir(self.dir);
            let node = self.end_creation(created)?;
            self.touch_dir(dir, 1, i32::from(is_dir), now);
            pre_attrs.post_attrs(&new.after);
            let (valid, rare) = (sb.valid_in(self.dir), ExtraArgs::of(new.beside));
            let fresh = NewInodeArgs { node, attr: &new.attr, link_body: new.link_body, valid, rare };
            self.enter(dir, node, invalidations, || self.add_made(slot, &fresh))
        };
        let Some(made) = made.map(|made| unlocked.hold(&unlocked.made, made)) else { return Ok(None) };
        let begun = sb.begin_xattrs(&request, made, new.beside);
        publish::created(sb, self.dir, made, self.last.name, is_dir);
        if let Err(errno) = begun {
            // An entry that cannot be removed stays without its label.
            let _ = self.remove_name_locked(unlocked, made, is_dir);
            return Err(errno);
        }
        Ok(Some(made))
    }

    /// Notes, with the directory locked, that the file system was called to create the name. As in [`Entry::make`], also after an error.
    fn end_creation<T>(&self, created: Result<T, Errno>) -> Result<T, Errno> {
        self.sb.note_change(self.dir);
        self.sb.forget_negative(self.dir, self.named());
        if let (Err(_), Some(dir)) = (&created, self.dir.inode()) {
            self.is_replaced(dir);
        }
        created
    }

    /// Has the name, in the locked directory, lead to the inode `node`: calls `add`, unless a
    /// lookup has entered it already. `None`: the name, or the directory, now leads elsewhere, and
    /// must stay.
    fn enter(&self, dir: &Inode, node: u64, invalidations: u64, add: impl FnOnce()) -> Option<DentryRef> {
        let sb = self.sb;
        if self.is_replaced(dir) {
            return None;
        }
        let is_it = |entry: &Dentry| entry.inode().is_some_and(|inode| inode.node() == node);
        match sb.cached(self.dir, self.named()) {
            Some(entry) if is_it(entry) => {}
            Some(other) if !sb.prune(None, self.dir, other, self.hash) => {}
            _ => add(),
        }
        let made = sb.cached(self.dir, self.named());
        lookup::expire_if_invalidated(sb, invalidations, made);
        made.filter(|made| is_it(made)).and_then(|made| sb.pin(made))
    }

    /// Adds the new inode, unless it is a directory that was moved elsewhere, and looked up there,
    /// since it was made.
    fn add_made(&self, slot: FreeSlot<'t>, new: &NewInodeArgs<'_>) {
        let sb = self.sb;
        match sb.add_unless_there(None, slot, self.dir, self.named(), new) {
            Err((slot, inode)) if !new.attr.is_dir() && inode.attr().kind() == new.attr.kind() => {
                sb.add_alias(None, slot, self.dir, self.named(), inode, new.valid);
            }
            Err((_, inode)) => sb.put_inode(inode),
            Ok(()) => {}
        }
    }

    /// [`Entry::link`] of a locked name, after its checks.
    #[cold]
    pub(super) fn link_name_locked(&self, unlocked: &Unlocked<'t>, inode: &Inode, ctime: i64) -> Result<(), Errno> {
        let (sb, dir) = (self.sb, self.dir_inode()?);
        let request = unlocked.with_deadline(self.caller.request());
        let slot = sb.slot(SlotKind::Entry)?;
        self.begin_change(unlocked, None)?;
        let pre_attrs =
            sb.pre_attrs(Files { file: Some((inode, LINK_MARKS)), dir: Some((dir, 1)), ..Files::default() });
        add_link(inode, request.now())?;
        let invalidations = sb.invalidations();
        let linked = sb.fs().link(&request, dir, self.last.name, inode);
        let made = {
            let _held = sb.lock_dir(self.dir);
            let after = end_link(inode, self.end_creation(linked), ctime)?;
            self.touch_dir(dir, 1, 0, request.now());
            pre_attrs.post_attrs(&after);
            let valid = sb.valid_in(self.dir);
            self.enter(dir, inode.node(), invalidations, || {
                sb.add_alias(None, slot, self.dir, self.named(), InodeRef::again(inode), valid);
            })
        };
        if let Some(made) = made.map(|made| unlocked.hold(&unlocked.made, made)) {
            publish::created(sb, self.dir, made, self.last.name, false);
        }
        Ok(())
    }

    /// Removes a locked name, after the checks of its rights. A directory is closed first.
    #[cold]
    #[inline(never)]
    pub(super) fn remove_name_locked(
        &self,
        unlocked: &Unlocked<'t>,
        victim: &Dentry,
        is_dir: bool,
    ) -> Result<(), Errno> {
        let (sb, name) = (self.sb, self.last.name);
        let (dir, inode) = (self.dir_inode()?, victim.inode().ok_or(Errno::ENOENT)?);
        let request = unlocked.with_deadline(self.caller.request());
        if is_dir {
            // Waits until no name of the directory is locked.
            unlocked.name.iter().try_for_each(|name| name.close(victim, Deadline::at(unlocked.deadline)))?;
        }
        self.begin_change(unlocked, Some(victim))?;
        let pre_attrs = sb.pre_attrs(Files { file: Some((inode, 1)), dir: Some((dir, 1)), ..Files::default() });
        let after = sb.fs().unlink(&request, dir, name, inode)?;
        let (links, now) = (if is_dir { 2 } else { 1 }, request.now());
        let _held = sb.lock_dir(self.dir);
        let gone = publish::removed(sb, self.dir, victim, name, is_dir);
        sb.end_name(self.dir, self.named(), inode);
        inode.link_changed(-links, now);
        sb.note_change(self.dir);
        self.touch_dir(dir, -1, -i32::from(is_dir), now);
        pre_attrs.post_attrs(&after);
        self.is_replaced(dir);
        publish::gone(sb, self.dir, name, gone);
        Ok(())
    }
}
