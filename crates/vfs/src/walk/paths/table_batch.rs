//! Many lookups by the table of whole paths, side by side.
//!
//! # What it is
//! A lookup of a path that is not in the processor's caches waits for two lines: the table's, then the dentry's with the
//! inode's beside it. Here [`GROUP`] lookups wait for each at the same time.
//!
//! # Where it comes from
//! As in [`batch`](crate::walk::batch): group prefetching of hash joins (Chen, Ailamaki, Gibbons, Mowry, ICDE 2004).

use crate::mount::place::Place;
use crate::slots::slot::inode_beside;
use crate::walk::paths::shortcut::{End, Shortcut};
use crate::walk::rcu_walk::Step;
use sync::signature_table::Signature;

/// Lookups that wait together.
const GROUP: usize = 16;

impl<'g> Shortcut<'g> {
    /// Calls `emit` for each of `paths`, which begin at `start`, with the result of `quick` for its
    /// end by the table. Returns the numbers of the other paths.
    pub(crate) fn read_many<R>(
        &self,
        paths: &[&[u8]],
        start: impl Fn(&[u8]) -> Place<'g>,
        quick: impl Fn(&Step<'_>) -> Option<R>,
        mut emit: impl FnMut(usize, R),
    ) -> Vec<usize> {
        let mut rest = Vec::new();
        for (number, group) in paths.chunks(GROUP).enumerate() {
            let mut signatures: [Option<Signature>; GROUP] = [None; GROUP];
            for (signature, path) in signatures.iter_mut().zip(group) {
                *signature = self.sign(start(path), path);
                signature.iter().for_each(|signature| self.table.entries.prefetch(*signature));
            }
            let mut ends: [Option<End<'g>>; GROUP] = [None; GROUP];
            for ((end, signature), path) in ends.iter_mut().zip(signatures).zip(group) {
                *end = signature.and_then(|signature| self.look_up(signature, start(path), path));
                if let Some(End { dentry, .. }) = end {
                    prim::hint::prefetch(core::ptr::from_ref(*dentry));
                    prim::hint::prefetch(inode_beside(*dentry));
                }
            }
            for (at, (end, path)) in ends.iter().zip(group).enumerate() {
                let number = number * GROUP + at;
                match end.and_then(|end| self.read_end(start(path), path, end, &quick).ok()) {
                    Some(result) => emit(number, result),
                    None => rest.push(number),
                }
            }
        }
        rest
    }
}
