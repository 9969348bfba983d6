//! The byte ranges of all owners in one file, to find a range that overlaps another.
//!
//! # What it is
//! A search tree by first byte and owner. Each node has the greatest end below it, so a search passes
//! over a subtree whose ranges all end too early. The tree is a treap: each node has a random priority,
//! greater than the priorities below it. So its depth is logarithmic, whatever ranges the users of the
//! file choose: they do not know the seed.
//!
//! # How it is locked
//! By the shard's mutex, of which the table is a part.
//!
//! # Where it comes from
//! "Introduction to Algorithms", "Interval trees"; C. Aragon and R. Seidel, "Randomized Search Trees" (1989).

use core::ops::Range;

/// A range of an owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) owner: u64,
}

impl Span {
    /// No two ranges in the tree have one key: the ranges of an owner do not overlap.
    fn key(&self) -> (u64, u64) {
        (self.start, self.owner)
    }
}

type Tree = Option<Box<Node>>;

struct Node {
    span: Span,
    /// The greatest end in this subtree.
    last_end: u64,
    priority: u64,
    left: Tree,
    right: Tree,
}

/// See the [module documentation](self).
pub(super) struct Intervals {
    root: Tree,
    /// The state of the random numbers, which is not zero.
    random: u64,
    /// The nodes that searches visited.
    #[cfg(test)]
    pub(super) visited: core::cell::Cell<usize>,
}

impl Intervals {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            root: None,
            random: seed | 1,
            #[cfg(test)]
            visited: core::cell::Cell::new(0),
        }
    }

    pub(super) fn insert(&mut self, span: Span) {
        let node = Node { span, last_end: span.end, priority: self.next_random(), left: None, right: None };
        let (before, after) = split(self.root.take(), &|other| other.key() < span.key());
        self.root = join(join(before, Some(Box::new(node))), after);
    }

    pub(super) fn remove(&mut self, span: Span) {
        let (before, rest) = split(self.root.take(), &|other| other.key() < span.key());
        let (_, after) = split(rest, &|other| other.key() == span.key());
        self.root = join(before, after);
    }

    /// Returns the first range of another owner that shares a byte with `range`.
    pub(super) fn first_of_another(&self, owner: u64, range: &Range<u64>) -> Option<Span> {
        self.search(&self.root, owner, range)
    }

    fn search(&self, tree: &Tree, owner: u64, range: &Range<u64>) -> Option<Span> {
        let node = tree.as_deref()?;
        #[cfg(test)]
        self.visited.set(self.visited.get() + 1);
        if node.last_end <= range.start {
            return None;
        }
        if let Some(found) = self.search(&node.left, owner, range) {
            return Some(found);
        }
        if node.span.start >= range.end {
            return None;
        }
        if node.span.end > range.start && node.span.owner != owner {
            return Some(node.span);
        }
        self.search(&node.right, owner, range)
    }

    /// Returns the next number of Marsaglia's xorshift.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

impl Node {
    fn with(mut self: Box<Self>, left: Tree, right: Tree) -> Tree {
        let end = |tree: &Tree| tree.as_ref().map_or(0, |node| node.last_end);
        self.last_end = self.span.end.max(end(&left)).max(end(&right));
        (self.left, self.right) = (left, right);
        Some(self)
    }
}

/// Splits a tree into the ranges that are before a place, and the others.
fn split(tree: Tree, is_before: &impl Fn(&Span) -> bool) -> (Tree, Tree) {
    let Some(mut node) = tree else { return (None, None) };
    let (left, right) = (node.left.take(), node.right.take());
    if is_before(&node.span) {
        let (before, after) = split(right, is_before);
        (node.with(left, before), after)
    } else {
        let (before, after) = split(left, is_before);
        (before, node.with(after, right))
    }
}

/// Joins two trees; all ranges of the first tree come before all ranges of the second tree.
fn join(first: Tree, second: Tree) -> Tree {
    let (mut one, mut other) = match (first, second) {
        (Some(one), Some(other)) => (one, other),
        (one, other) => return one.or(other),
    };
    if one.priority >= other.priority {
        let (left, right) = (one.left.take(), one.right.take());
        one.with(left, join(right, Some(other)))
    } else {
        let (left, right) = (other.left.take(), other.right.take());
        other.with(join(Some(one), left), right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many nodes a search visits in a tree with `count` ranges of as many owners.
    fn visits(count: u64, span: impl Fn(u64) -> (u64, u64), range: &Range<u64>, finds: bool) -> usize {
        let mut tree = Intervals::new(0x5eed);
        for owner in 1..=count {
            let (start, end) = span(owner);
            tree.insert(Span { start, end, owner });
        }
        tree.visited.set(0);
        assert_eq!(tree.first_of_another(0, range).is_some(), finds);
        tree.visited.get()
    }

    type Spans = fn(u64) -> (u64, u64);

    #[test]
    fn a_search_visits_few_of_the_ranges_of_others() {
        const COUNT: u64 = 40_000;
        // Ranges in a row, on one place, and all before the place of the search; the last also with one long range.
        let cases: [(&str, Spans, Range<u64>, bool); 5] = [
            ("in a row", |owner| (2 * owner, 2 * owner + 1), 50_001..50_002, false),
            ("in a row, found", |owner| (2 * owner, 2 * owner + 1), 50_000..50_001, true),
            ("one place", |_| (10, 20), 15..16, true),
            ("all before", |owner| (owner, COUNT + 1), COUNT + 1..u64::MAX, false),
            ("nested", |owner| (COUNT - owner, COUNT + owner), 3 * COUNT..4 * COUNT, false),
        ];
        for (label, span, range, finds) in cases {
            let visited = visits(COUNT, span, &range, finds);
            assert!(visited <= 80, "{label}: {visited} of {COUNT}");
        }
    }
}
