//! Changes of names and open files for watchers and observers: [`crate::notify`] with dentries.
//!
//! # What it is
//! Observers are notified after a change, so that a copy that they make at that moment is right.
//! Watchers are notified just before a removal, while the entry still shows the way up. So
//! [`removed`] is called before a removal, and [`gone`] after it.
//!
//! # How it is locked
//! Changes of names are published under the lock of their directory, or of the name where the
//! directory is sharded. So events of one name come in order. The climb reads the way up without a
//! lock, as a reverse path does, and repeats if something on it moved.

use crate::base::access::credentials::{Credentials, MAY_EXEC, MAY_READ};
use crate::base::errno::Errno;
use crate::cache::moving::MoveEnd;
use crate::cache::observer::{Changed, Identity};
use crate::cache::superblock::SuperBlock;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathRef, above};
use crate::notify::{Change, EventKind, Home, Scope, Trail, Watch, Watches};
use crate::slots::dentry::Dentry;
use crate::walk::permission::{may, may_rcu};
use sync::rcu::ReadGuard;

/// Tries to read the way up undisturbed; after them the last result is used.
const TRIES: u32 = 4;

/// The first step of the way up from a file: a directory, and a name of the file there, which it may have lost, or not have yet.
type FirstStep<'a> = (&'a Dentry, &'a [u8]);

impl Home for PathRef {
    fn watches(&self) -> &Watches {
        &self.sb().watches
    }
}

impl Context {
    /// Watches the file at `path`: a file, a directory and its entries, or with [`Scope::Subtree`] everything
    /// below it on its file system. The queue holds at most `capacity` events
    /// ([`crate::DEFAULT_QUEUED_EVENTS`] is inotify's), then one overflow event. Until it is dropped, the
    /// watch holds the place, as an open file would.
    ///
    /// In a subtree, the watch reports a name only if this context's credentials (of the time of
    /// this call) could list the name at the time of the event. They need read and search
    /// permission for each directory from the watched directory down to the name, by the modes and
    /// ACLs in the cache.
    ///
    /// # Errors
    /// `EACCES` without read permission; errors of a walk.
    pub fn watch(&self, base: Base<'_>, path: &[u8], scope: Scope, capacity: usize) -> Result<Watch, Errno> {
        let (held, cred) = self.resolve(base, path, true, |found| {
            may(found, found.inode()?.rights(), MAY_READ)?;
            Ok::<_, Errno>((found.pin()?, found.cred.clone()))
        })?;
        let key = core::ptr::from_ref(held.dentry()) as u64;
        Ok(Watches::watch(held, key, scope, cred, capacity))
    }
}

/// Reports that an entry was added.
#[inline(always)]
pub(crate) fn created(sb: &SuperBlock, dir: &Dentry, entry: &Dentry, name: &[u8], is_dir: bool) {
    if !sb.watches.is_idle() {
        report(sb, EventKind::Created, entry, Some((dir, name)), is_dir, 0);
        changed_entry(sb, dir, name, Identity::behind(sb, entry));
    }
}

/// Prepares the report that an entry is removed. Returns the argument of [`gone`].
#[must_use = "observers hear of the removal by `gone`"]
#[inline(always)]
pub(crate) fn removed(sb: &SuperBlock, dir: &Dentry, entry: &Dentry, name: &[u8], is_dir: bool) -> Option<Identity> {
    if sb.watches.is_idle() {
        return None;
    }
    report(sb, EventKind::Deleted, entry, Some((dir, name)), is_dir, 0);
    report(sb, EventKind::DeletedSelf, entry, Some((dir, name)), is_dir, 0);
    Identity::behind(sb, entry)
}

/// Reports that the entry of `victim` was removed.
#[inline(always)]
pub(crate) fn gone(sb: &SuperBlock, dir: &Dentry, name: &[u8], victim: Option<Identity>) {
    if victim.is_some() {
        changed_entry(sb, dir, name, victim);
    }
}

#[cold]
fn changed_entry(sb: &SuperBlock, dir: &Dentry, name: &[u8], inode: Option<Identity>) {
    changed_in(sb, Identity::behind(sb, dir), name, inode);
}

fn changed_in(sb: &SuperBlock, dir: Option<Identity>, name: &[u8], inode: Option<Identity>) {
    if let Some(dir) = dir {
        sb.observers.changed(&sb.watches, &Changed::Entry { dir, name, inode });
    }
}

/// Reports that an entry was moved.
pub(crate) fn moved(sb: &SuperBlock, entry: &Dentry, from: MoveEnd<'_>, to: MoveEnd<'_>, is_dir: bool) {
    if sb.watches.is_idle() {
        return;
    }
    let cookie = sb.watches.new_cookie();
    report(sb, EventKind::MovedFrom, entry, Some((from.dir, from.named.name)), is_dir, cookie);
    report(sb, EventKind::MovedTo, entry, Some((to.dir, to.named.name)), is_dir, cookie);
    report(sb, EventKind::MovedSelf, entry, Some((to.dir, to.named.name)), is_dir, 0);
    let inode = Identity::behind(sb, entry);
    [from, to].into_iter().for_each(|end| changed_entry(sb, end.dir, end.named.name, inode));
}

/// Reports that the name of a place leads to another file system now.
pub(crate) fn covered(place: &PathRef) {
    let (sb, entry) = (place.sb(), place.dentry());
    if sb.watches.is_idle() {
        return;
    }
    let guard = sb.domain.read();
    let name: Box<[u8]> = entry.with_name_rcu(&guard, |name| name.into());
    let dir = above(entry).and_then(|dir| Identity::behind(sb, dir));
    drop(guard);
    changed_in(sb, dir, &name, Identity::behind(sb, entry));
}

/// Contents or attributes changed.
pub(crate) fn touched(sb: &SuperBlock, kind: EventKind, dentry: &Dentry) {
    if !sb.watches.is_idle() {
        report(sb, kind, dentry, None, dentry.object().is_dir(), 0);
        if let Some(inode) = Identity::behind(sb, dentry) {
            sb.observers.changed(&sb.watches, &Changed::Inode(inode));
        }
    }
}

/// A directory on the way up, and its sequence at that moment.
type Passed<'g> = (&'g Dentry, u32);

#[cold]
fn report(sb: &SuperBlock, kind: EventKind, of: &Dentry, first: Option<FirstStep<'_>>, is_dir: bool, cookie: u32) {
    let guard = sb.domain.read();
    sb.watches.publish(
        Change { kind, is_dir, cookie },
        |trail| {
            for _ in 0..TRIES {
                trail.restart();
                if climb(&guard, trail, of, first) {
                    return;
                }
            }
        },
        |&passed, cred| may_list(&guard, passed, cred),
    );
}

/// Returns whether `cred` may read and search a directory on the way up; `None` if it has changed
/// since, so that its name on the way may be wrong.
fn may_list(guard: &ReadGuard<'_>, (dir, seq): Passed<'_>, cred: &Credentials) -> Option<bool> {
    let may = dir.inode().map(|inode| may_rcu(guard, inode, inode.rights(), cred, MAY_READ | MAY_EXEC));
    (!dir.seq.retry(seq)).then_some(matches!(may, Some(Ok(()))))
}

/// Pushes the way up from `of` (by its `first` step, if given) onto the trail; `false`
/// if it changed meanwhile.
fn climb<'g>(
    guard: &'g ReadGuard<'_>,
    trail: &mut Trail<Passed<'g>>,
    of: &'g Dentry,
    first: Option<FirstStep<'g>>,
) -> bool {
    let key = |dentry: &Dentry| core::ptr::from_ref(dentry) as u64;
    let mut seen: Vec<Passed<'_>> = Vec::new();
    let mut at = of;
    if let Some((dir, name)) = first {
        if !trail.push(key(of), name, (of, of.seq.raw_begin())) {
            return true;
        }
        at = dir;
    }
    loop {
        let seq = at.seq.begin();
        seen.push((at, seq));
        let more = at.with_name_rcu(guard, |name| trail.push(key(at), name, (at, seq)));
        let Some(parent) = above(at).filter(|_| more) else { break };
        at = parent;
    }
    seen.iter().all(|(dentry, seq)| !dentry.seq.retry(*seq))
}
