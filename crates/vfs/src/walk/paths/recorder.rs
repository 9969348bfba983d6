//! The recording of a path for the table of whole paths: a walk that notes its steps.
//!
//! # What it is
//! [`Shortcut::record`] walks a path by the steps of a [`tracer`](super::tracer). It marks each
//! directory and each link, and notes the right to search it. A path that needs any other step is
//! not recorded.
//!
//! # How it is ordered
//! See [`whole_path`](crate::slots::whole_path). The recorder sets the marks first, and then reads
//! the names, flags, rights and mounts that they protect. The mounts' sequence shows whether a
//! mount changed meanwhile.
//!
//! # Where it comes from
//! Named there.

use crate::base::access::credentials::MAY_EXEC;
use crate::mount::place::Place;
use crate::slots::dentry::Dentry;
use crate::slots::object::{Object, ObjectFlags};
use crate::slots::slot::{dentry_beside, inode_of};
use crate::slots::whole_path::lists::Pair;
use crate::slots::whole_path::{Check, List};
use crate::walk::paths::shortcut::{Shortcut, directory_of};
use crate::walk::paths::tracer::{Pass, Traced};
use crate::walk::permission::may_rcu;
use crate::walk::rcu_walk::Step;
use sync::signature_table::Signature;

/// The users that may search a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Searchers {
    Everyone,
    /// The walk's credentials, and all equal ones.
    Class,
    /// Others.
    Others,
    /// The walk must look at more than credentials, mode, owner and ACL.
    Unknown,
}

struct Notes<'g> {
    list: List,
    has_room: bool,
    /// The directory that was searched last.
    dir: Option<&'g Dentry>,
    /// Everyone may search all directories, and none is a mount point.
    is_open: bool,
}

impl<'g> Shortcut<'g> {
    /// Walks `path` from `start`, and adds its end to the table. `None`: it is not a path of plain steps, or a directory
    /// changes now.
    pub(super) fn record(&self, signature: Signature, start: Place<'g>, path: &[u8]) -> Option<()> {
        let (Traced { end, is_followed }, notes, mounts) = self.tree.paths.unchanged(|stamp| {
            let mounts = self.tree.mount_seq.raw_begin();
            let mut notes = Notes { list: List::new(stamp), has_room: true, dir: None, is_open: true };
            let traced = self.trace(start, path, |at, pass| self.note(&mut notes, at, pass))?;
            Some((traced, notes, mounts))
        })?;
        if self.tree.mount_seq.read_retry(mounts) {
            return None;
        }
        let is_expiring = end.object.is_negative() && end.object.has_expiry();
        if is_expiring || !end.object.is_hashed() || end.object.has(ObjectFlags::LINK | ObjectFlags::MOUNTED) {
            return None;
        }
        let Notes { list, has_room, dir, is_open, .. } = notes;
        let check = Check { seq: end.seq, stamp: list.stamp }.routed(list.is_routed());
        if is_open && !list.is_routed() {
            self.keep_list(has_room, Pair::of(start.dentry, dir?), &list);
            self.table.put(signature, end.dentry, check, self.tree.paths.stamps());
            return Some(());
        }
        // A path with a list of its text must have the list: without it, the path is not found.
        if list.is_routed() && !has_room {
            return None;
        }
        let class = self.cred().class()?;
        let own = |signature| self.own(class, start, signature);
        let (signature, pair) = if is_followed {
            let signature = self.followed(own(signature))?;
            (signature, Pair::of_text(signature))
        } else if list.is_routed() {
            (own(signature), Pair::of_text(own(self.sign(start, directory_of(path)?)?)))
        } else {
            (own(signature), Pair::of(start.dentry, dir?))
        };
        self.keep_list(has_room, pair, &list);
        class.note_entry(is_followed);
        self.table.put(signature, end.dentry, check, self.tree.paths.stamps());
        Some(())
    }

    /// Notes a directory or a link, and marks it. Returns whether the path can be recorded.
    fn note(&self, notes: &mut Notes<'g>, at: &Step<'g>, pass: Pass) -> bool {
        let address = core::ptr::from_ref(at.dentry).expose_provenance();
        match pass {
            Pass::Look => at.dentry.pass().is_hashed(),
            Pass::Cross => {
                notes.has_room &= notes.list.push(&self.table.lists, address, at.seq);
                notes.list.cross();
                notes.has_room
            }
            Pass::Follow => {
                let object = at.dentry.pass();
                notes.has_room &= notes.list.push_once(&self.table.lists, address, at.seq);
                notes.list.follow();
                object.is_hashed() && !object.has_expiry()
            }
            Pass::Search => {
                // The first look keeps a directory unmarked that the path may not pass; the second one counts.
                let searchers = match self.searchers(at, at.object) {
                    Searchers::Everyone | Searchers::Class => self.searchers(at, at.dentry.pass()),
                    other => other,
                };
                notes.is_open &= searchers == Searchers::Everyone;
                // The names of the start and of a mount's root do not matter.
                let is_nameless = notes.dir.is_none() || core::ptr::eq(at.dentry, at.mount.get().root());
                notes.has_room &= is_nameless || notes.list.push_once(&self.table.lists, address, at.seq);
                notes.dir = Some(at.dentry);
                matches!(searchers, Searchers::Everyone | Searchers::Class)
            }
        }
    }

    /// Returns the users that may search the directory at a place, if it has this object word. (For
    /// a mount point, perhaps in another namespace, the answer is never "everyone": its entries are
    /// for the start's mount.)
    fn searchers(&self, at: &Step<'g>, object: Object) -> Searchers {
        if !object.is_hashed() {
            return Searchers::Unknown;
        }
        if object.is_open_dir() {
            return Searchers::Everyone;
        }
        let flags = ObjectFlags::CHECKED | ObjectFlags::FOLDED;
        if !object.is_dir() || object.has(flags) {
            return Searchers::Unknown;
        }
        // (Changes of rights look at the mark of the dentry beside the inode.)
        let inode = inode_of(at.dentry, object).filter(|inode| core::ptr::eq(dentry_beside(inode), at.dentry));
        let Some(inode) = inode else { return Searchers::Unknown };
        match may_rcu(self.guard, inode, inode.rights(), self.cred(), MAY_EXEC) {
            Ok(()) => Searchers::Class,
            Err(_) => Searchers::Others,
        }
    }

    /// Puts a list, unless there is an equal one, which may be older and so serves more entries.
    fn keep_list(&self, has_room: bool, pair: Pair, list: &List) {
        let lists = &self.table.lists;
        let now = self.tree.paths.stamps();
        if has_room && !lists.find(pair).is_some_and(|old| now.is_soft_since(old.stamp) && old.is_same(list)) {
            lists.put(pair, list);
        }
    }

    /// Debug builds walk after a lookup by the table: if nothing changed from the lookup to the end of the walk, both have
    /// found the same place, and the walk was not refused.
    #[cfg(debug_assertions)]
    pub(super) fn compare(&self, start: Place<'g>, path: &[u8], found: super::shortcut::End<'g>) {
        let mut is_refused = false;
        let end = self.trace(start, path, |at, pass| {
            if pass != Pass::Search {
                return true;
            }
            let searchers = self.searchers(at, at.object);
            // (An ACL is not replaced in one write section.)
            let is_certain = || at.dentry.inode().is_some_and(|inode| !inode.has_acl()) && !at.changed();
            is_refused = searchers == Searchers::Others && is_certain();
            matches!(searchers, Searchers::Everyone | Searchers::Class)
        });
        if found.dentry.seq.retry(found.check.seq) || self.tree.paths.stamp() != found.check.stamp {
            return;
        }
        assert!(!is_refused, "the table leads through a directory that the walk may not search");
        // `None`: the walk found a change that is not counted yet.
        if let Some(Traced { end, .. }) = end {
            let is_same = core::ptr::eq(end.dentry, found.dentry) && end.mount.ptr_eq(found.mount);
            assert!(is_same, "the table leads to another place than the walk");
        }
    }
}
