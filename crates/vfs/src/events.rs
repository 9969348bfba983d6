//! What the namespace and open files tell those who watch: [`crate::notify`] with dentries.
//!
//! # How it is locked
//! Changes of names are told under the lock of their directory, so events of one directory come in their order. The way up is read
//! as a reverse path is, without a lock, and again if something on it moved.

use crate::context::{Context, Held};
use crate::cred::MAY_READ;
use crate::dentry::Dentry;
use crate::errno::Errno;
use crate::namespace::Base;
use crate::notify::{Change, EventKind, Home, Scope, Trail, Watch, Watches};
use crate::permission::may;
use crate::superblock::SuperBlock;

/// Tries to read the way up undisturbed; then what was read last is told.
const TRIES: u32 = 4;

impl Home for Held {
    fn watches(&self) -> &Watches {
        &self.sb().watches
    }
}

impl Context {
    /// Watches what `path` leads to: a file, a directory and its entries, or with [`Scope::Subtree`] all that is below it on its file
    /// system. At most `capacity` events wait ([`crate::DEFAULT_QUEUED_EVENTS`] is inotify's); then one overflow does. The watch holds
    /// the place, as an open file would, until it is dropped.
    ///
    /// # Errors
    /// `EACCES` without read permission; those of a walk.
    pub fn watch(&self, base: Base<'_>, path: &[u8], scope: Scope, capacity: usize) -> Result<Watch, Errno> {
        let held = self.resolve(base, path, true, |found| {
            may(found, &found.inode()?.attr(), MAY_READ)?;
            found.pin()
        })?;
        let key = core::ptr::from_ref(held.dentry()) as u64;
        Ok(Watches::watch(held, key, scope, capacity))
    }
}

impl SuperBlock {
    /// An entry came.
    pub(crate) fn created(&self, dir: &Dentry, entry: &Dentry, name: &[u8], is_dir: bool) {
        self.tell_of(EventKind::Created, entry, Some((dir, name)), is_dir, 0);
    }

    /// An entry is about to go.
    pub(crate) fn removed(&self, dir: &Dentry, entry: &Dentry, name: &[u8], is_dir: bool) {
        if self.watches.is_idle() {
            return;
        }
        self.tell_of(EventKind::Deleted, entry, Some((dir, name)), is_dir, 0);
        self.tell_of(EventKind::DeletedSelf, entry, Some((dir, name)), is_dir, 0);
    }

    /// An entry has moved.
    pub(crate) fn moved(&self, entry: &Dentry, from: (&Dentry, &[u8]), to: (&Dentry, &[u8]), is_dir: bool) {
        if self.watches.is_idle() {
            return;
        }
        let cookie = self.watches.new_cookie();
        self.tell_of(EventKind::MovedFrom, entry, Some(from), is_dir, cookie);
        self.tell_of(EventKind::MovedTo, entry, Some(to), is_dir, cookie);
        self.tell_of(EventKind::MovedSelf, entry, Some(to), is_dir, 0);
    }

    /// Contents or attributes changed.
    pub(crate) fn touched(&self, kind: EventKind, dentry: &Dentry) {
        self.tell_of(kind, dentry, None, dentry.has(crate::dentry::DIR), 0);
    }

    #[inline]
    fn tell_of(&self, kind: EventKind, of: &Dentry, by: Option<(&Dentry, &[u8])>, is_dir: bool, cookie: u32) {
        let change = Change { kind, is_dir, cookie };
        self.watches.publish(change, |trail| {
            for _ in 0..TRIES {
                trail.restart();
                if self.climb(trail, of, by) {
                    return;
                }
            }
        });
    }

    /// Pushes the way from `of` (in the directory and by the name of `by`, if that is given) up; `false`: it changed meanwhile.
    fn climb(&self, trail: &mut Trail, of: &Dentry, by: Option<(&Dentry, &[u8])>) -> bool {
        let guard = self.domain.read();
        let key = |dentry: &Dentry| core::ptr::from_ref(dentry) as u64;
        let mut seen: Vec<(&Dentry, u32)> = Vec::new();
        let mut at = of;
        if let Some((dir, name)) = by {
            if !trail.push(key(of), name) {
                return true;
            }
            at = dir;
        }
        loop {
            let seq = at.seq.begin();
            seen.push((at, seq));
            let more = at.with_name_rcu(&guard, |name| trail.push(key(at), name));
            match at.parent() {
                Some(parent) if more && !core::ptr::eq(parent, at) => at = parent,
                _ => break,
            }
        }
        seen.iter().all(|(dentry, seq)| !dentry.seq.retry(*seq))
    }
}
