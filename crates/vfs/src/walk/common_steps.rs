//! The common steps of rcu-walk: from directories that everyone may search, to entries whose names
//! are short and cached.
//!
//! # What it is
//! The loop that most walks never leave. A walk that leaves it continues in [`RcuWalk::walk_on`],
//! out of line, with the steps of [`rcu_walk`](super::rcu_walk).

use crate::base::name::{Components, ShortName};
use crate::walk::rcu_walk::{PreviousStep, RcuWalk, RunEnd, Step};

/// Where the common steps of a walk end: at a place, before the component at an offset. `None`: a directory changed, and
/// the walk must begin again.
pub(crate) type Left<'g> = Option<(Step<'g>, usize)>;

impl<'g> RcuWalk<'g> {
    /// Walks `path` from `at` by common steps only, beginning with the component at the offset `start`. `Ok`: the end,
    /// without further work; else [`RcuWalk::walk_on`] continues.
    ///
    /// The loop calls nothing and has one way out, so that the place stays in registers. The common
    /// result never passes through memory: a wide load over fresh narrow stores would wait for them
    /// to retire, and with them for every cache miss of the walk. The object word of a place inside
    /// the path is not kept: where the walk leaves the loop, it is read again, and the place's
    /// sequence still checks it.
    #[inline(always)]
    pub(crate) fn walk(&self, at: Step<'g>, path: &[u8], begin: usize) -> Result<Step<'g>, Left<'g>> {
        let (mount, mut dentry, mut seq, mut start) = (at.mount, at.dentry, at.seq, begin);
        if !at.object.is_open_dir() {
            return Err(Some((at, begin)));
        }
        let parts = Components::new(path);
        let len = path.len();
        let mut block = start;
        let mut delimiters = parts.delimiters(block);
        let last = loop {
            while delimiters == 0 {
                block += 64;
                delimiters = parts.later_delimiters(block);
            }
            let end = block + delimiters.trailing_zeros() as usize;
            // An empty component, as behind a slash at the end of the path, is not a common one.
            let is_short = (end - start).wrapping_sub(1) < ShortName::MAX;
            if end == len {
                break is_short;
            }
            delimiters &= delimiters - 1;
            if !is_short {
                break false;
            }
            let name = parts.short_at(start, end - start);
            let Some((entry, entry_seq)) = self.find(dentry, name, self.key.hash_short(name), false) else {
                break false;
            };
            let object = entry.object();
            if dentry.seq.retry(seq) {
                return Err(None);
            }
            (dentry, seq, start) = (entry, entry_seq, end + 1);
            if !object.is_open_dir() {
                break false;
            }
        };
        if last {
            let name = parts.short_at(start, len - start);
            if let Some((entry, entry_seq)) = self.find(dentry, name, self.key.hash_short(name), true) {
                let object = entry.object();
                if dentry.seq.retry(seq) {
                    return Err(None);
                }
                let end = Step { mount, dentry: entry, seq: entry_seq, object };
                return if object.is_plain_end() { Ok(end) } else { Err(Some((end, len))) };
            }
        }
        let object = if start == begin { at.object } else { dentry.object() };
        Err(Some((Step { mount, dentry, seq, object }, start)))
    }

    /// Walks `path` from `at` by all steps, beginning with the component at the offset `start`. `Ok`: the end, without
    /// further work; else [`RcuWalk::conclude`] continues.
    #[inline(never)]
    pub(crate) fn walk_on(
        &self,
        (at, start): (Step<'g>, usize),
        path: &[u8],
        before: &PreviousStep<'g>,
    ) -> Result<Step<'g>, (Step<'g>, RunEnd)> {
        let at = self.run(at, &Components::new(path), start, before)?;
        if !at.object.is_plain_end() || (path.last() == Some(&b'/') && path.len() > 1) {
            return Err((at, RunEnd::End));
        }
        Ok(at)
    }
}
