//! A directory's entries in the order of their listing: a doubly linked list, newest first.
//!
//! Cookies fall along the list and are never used twice, so that a listing can continue from its
//! last cookie even if that entry was removed. An entry that takes another entry's name also takes
//! its place and cookie, so that a listing returns the name once. The directory's lock protects all
//! of it.

use crate::slots::dentry::{Dentry, put_between, put_first, take_out};
use crate::slots::shard::Names;
use prim::atomic::Ordering::Relaxed;

/// Puts `dentry` at the head of `dir`'s listing. `dir` is locked, or the name's shard of it, which `names` is.
#[inline(always)]
pub(crate) fn insert_child(dir: &Dentry, dentry: &Dentry, names: Option<&Names<'_>>) {
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

/// Removes `dentry` from `dir`'s listing. `dir` is locked, or the name's shard of it, which `names` is.
pub(crate) fn remove_child(dir: &Dentry, dentry: &Dentry, names: Option<&Names<'_>>) {
    if let Some(names) = names {
        return names.remove(dir, dentry);
    }
    take_out(&dir.first_child, dentry);
    dir.children.store(dir.children.load(Relaxed) - u32::from(!dentry.object().is_negative()), Relaxed);
}

/// As [`remove_child`], of a positive entry.
#[inline(always)]
pub(crate) fn remove_positive(dir: &Dentry, dentry: &Dentry, names: Option<&Names<'_>>) {
    if let Some(names) = names {
        return names.remove(dir, dentry);
    }
    take_out(&dir.first_child, dentry);
    dir.children.store(dir.children.load(Relaxed) - 1, Relaxed);
}

/// Gives `dentry`, which is on no list, the place and the cookie of the entry `over` in `dir`'s listing. Both are positive. `dir` is
/// locked, or the name's shard of it, which `names` is.
pub(crate) fn replace_child(dir: &Dentry, over: &Dentry, dentry: &Dentry, names: Option<&Names<'_>>) {
    // Where the file system lists, a cookie is a time and stays.
    if dir.object().is_complete() {
        // Relaxed: under the lock.
        dentry.cookie.store(over.cookie.load(Relaxed), Relaxed);
    }
    match names {
        Some(names) => names.replace(dir, over, dentry),
        None => put_between(&dir.first_child, dentry, over.sib_prev.get(), over.sib_next.get()),
    }
}

/// Exchanges the places and the cookies of two positive entries, of locked directories.
pub(crate) fn exchange_children([a_dir, b_dir]: [&Dentry; 2], [a, b]: [&Dentry; 2]) {
    if a_dir.object().is_complete() {
        // Relaxed: under the locks.
        let cookies = [a, b].map(|entry| entry.cookie.load(Relaxed));
        a.cookie.store(cookies[1], Relaxed);
        b.cookie.store(cookies[0], Relaxed);
    }
    let of_a = [a.sib_prev.get(), a.sib_next.get()];
    let of_b = [b.sib_prev.get(), b.sib_next.get()];
    // If they were neighbours, they are neighbours afterwards, too.
    let [before, after] = of_b.map(|beside| beside.map(|beside| if core::ptr::eq(beside, a) { b } else { beside }));
    put_between(&b_dir.first_child, a, before, after);
    let [before, after] = of_a.map(|beside| beside.map(|beside| if core::ptr::eq(beside, b) { a } else { beside }));
    put_between(&a_dir.first_child, b, before, after);
}
