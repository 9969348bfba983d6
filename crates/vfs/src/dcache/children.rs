//! A directory's entries in the order of their listing: a doubly linked list, newest first.
//!
//! Cookies fall along the list and are never used twice, so that a listing can continue from its last cookie
//! even if that entry was removed. The directory's lock protects all of it.

use crate::dcache::dentry::Dentry;
use prim::atomic::Ordering::Relaxed;

/// Puts `dentry` at the head of `dir`'s listing. `dir` is locked.
pub(super) fn insert_child(dir: &Dentry, dentry: &Dentry) {
    // Relaxed: all of this under the directory's lock.
    let cookie = dir.last_cookie.load(Relaxed) + 1;
    dir.last_cookie.store(cookie, Relaxed);
    dentry.cookie.store(cookie, Relaxed);
    let first = dir.first_child.get();
    if let Some(first) = first {
        first.sib_prev.set(dentry);
    }
    dentry.sib_next.set_option(first);
    dentry.sib_prev.set_option(None);
    dir.first_child.set(dentry);
    dir.children.store(dir.children.load(Relaxed) + u32::from(!dentry.object().is_negative()), Relaxed);
}

/// Removes `dentry` from `dir`'s listing. `dir` is locked.
pub(super) fn remove_child(dir: &Dentry, dentry: &Dentry) {
    let (before, after) = (dentry.sib_prev.get(), dentry.sib_next.get());
    match before {
        Some(before) => before.sib_next.set_option(after),
        None => dir.first_child.set_option(after),
    }
    if let Some(after) = after {
        after.sib_prev.set_option(before);
    }
    dir.children.store(dir.children.load(Relaxed) - u32::from(!dentry.object().is_negative()), Relaxed);
}
