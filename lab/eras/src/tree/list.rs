//! Doubly linked lists through a table, by number: children of a directory, unused entries, inodes of the file system.
//!
//! Links are atomics, so that the neighbours' lines which an insertion or a removal writes are charged on a simulated
//! machine as they were paid for then. Each list is under a lock of its era. Every reader and writer holds that
//! lock, so all accesses are Relaxed.

use prim::atomic::{AtomicU32, Ordering::Relaxed};

/// No number.
pub(crate) const NONE: u32 = u32::MAX;

/// Where a list begins.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Head(AtomicU32);

/// The place of one member in a list.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Links {
    next: AtomicU32,
    before: AtomicU32,
}

impl Head {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(NONE))
    }

    pub(crate) fn first(&self) -> Option<u32> {
        some(self.0.load(Relaxed))
    }

    /// Puts `number` first.
    pub(crate) fn insert<'a>(&self, number: u32, links: impl Fn(u32) -> &'a Links) {
        let first = self.0.load(Relaxed);
        let own = links(number);
        own.next.store(first, Relaxed);
        own.before.store(NONE, Relaxed);
        if first != NONE {
            links(first).before.store(number, Relaxed);
        }
        self.0.store(number, Relaxed);
    }

    /// Takes `number`, which is in this list, out.
    pub(crate) fn remove<'a>(&self, number: u32, links: impl Fn(u32) -> &'a Links) {
        let own = links(number);
        let (next, before) = (own.next.load(Relaxed), own.before.load(Relaxed));
        match some(before) {
            Some(before) => links(before).next.store(next, Relaxed),
            None => self.0.store(next, Relaxed),
        }
        if next != NONE {
            links(next).before.store(before, Relaxed);
        }
    }
}

impl Links {
    pub(crate) fn new() -> Self {
        Self { next: AtomicU32::new(NONE), before: AtomicU32::new(NONE) }
    }

    pub(crate) fn next(&self) -> Option<u32> {
        some(self.next.load(Relaxed))
    }
}

pub(crate) fn some(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_what_was_put_in_and_not_taken_out() {
        let check = |removed: &[u32]| {
            let links: Vec<Links> = (0..5).map(|_| Links::new()).collect();
            let head = Head::new();
            (0..5).for_each(|number| head.insert(number, |n| &links[n as usize]));
            removed.iter().for_each(|&number| head.remove(number, |n| &links[n as usize]));
            let left: Vec<u32> = core::iter::successors(head.first(), |&n| links[n as usize].next()).collect();
            let want: Vec<u32> = (0..5).rev().filter(|number| !removed.contains(number)).collect();
            assert_eq!(left, want, "{removed:?}");
        };
        check(&[]);
        check(&[0]);
        check(&[4]);
        check(&[2]);
        check(&[4, 3, 0]);
        check(&[1, 2, 3]);
        check(&[0, 1, 2, 3, 4]);
    }
}
