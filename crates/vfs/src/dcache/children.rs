//! A directory's entries in the order of their listing: a doubly linked list, newest first.
//!
//! Cookies fall along the list and are never used twice, so that a listing can continue from its last cookie
//! even if that entry was removed. The directory's lock protects all of it.

use crate::dcache::dentry::Dentry;
use crate::dcache::slot::Link;
use crate::dcache::split::Names;
use prim::atomic::Ordering::Relaxed;

/// Puts `dentry` at the head of `dir`'s listing. `dir` is locked, or the name's stripe of it, which `names` is.
#[inline(always)]
pub(super) fn insert_child(dir: &Dentry, dentry: &Dentry, names: Option<&Names<'_>>) {
    if let Some(names) = names {
        return names.insert(dentry);
    }
    // Relaxed: all of this under the directory's lock.
    let cookie = dir.last_cookie.load(Relaxed) + 1;
    dir.last_cookie.store(cookie, Relaxed);
    dentry.cookie.store(cookie, Relaxed);
    put_first(&dir.first_child, dentry);
    dir.children.store(dir.children.load(Relaxed) + u32::from(!dentry.object().is_negative()), Relaxed);
}

/// Removes `dentry` from `dir`'s listing. `dir` is locked, or the name's stripe of it, which `names` is.
pub(super) fn remove_child(dir: &Dentry, dentry: &Dentry, names: Option<&Names<'_>>) {
    if let Some(names) = names {
        return names.remove(dir, dentry);
    }
    take_out(&dir.first_child, dentry);
    dir.children.store(dir.children.load(Relaxed) - u32::from(!dentry.object().is_negative()), Relaxed);
}

/// The same of a positive entry.
#[inline(always)]
pub(super) fn remove_positive(dir: &Dentry, dentry: &Dentry, names: Option<&Names<'_>>) {
    if let Some(names) = names {
        return names.remove(dir, dentry);
    }
    take_out(&dir.first_child, dentry);
    dir.children.store(dir.children.load(Relaxed) - 1, Relaxed);
}

/// Puts `dentry` at the head of the list that begins with `first`.
#[inline(always)]
pub(super) fn put_first(first: &Link, dentry: &Dentry) {
    let next = first.get();
    if let Some(next) = next {
        next.sib_prev.set(dentry);
    }
    dentry.sib_next.set_option(next);
    dentry.sib_prev.set_option(None);
    first.set(dentry);
}

/// Takes `dentry` off the list that begins with `first`.
#[inline(always)]
pub(super) fn take_out(first: &Link, dentry: &Dentry) {
    let (before, after) = (dentry.sib_prev.get(), dentry.sib_next.get());
    match before {
        Some(before) => before.sib_next.set_option(after),
        None => first.set_option(after),
    }
    if let Some(after) = after {
        after.sib_prev.set_option(before);
    }
}
