//! From the log of a directory to the forks that it has.
//!
//! # What it is
//! The batches are repeated in order, on real trees. So forks share the parts of their maps that they shared before. The files of the
//! base are looked up by their paths; a fork that needs one that is not there any more is [lost](SavedFork::is_lost).

use super::event::{Event, Name, Saved, SavedBase, SavedContents};
use super::slots::Slots;
use crate::contents::{Contents, File};
use crate::lower::Lower;
use crate::page::Page;
use crate::record::{MADE, Node, Record, Stamp};
use crate::tree::Tree;
use crate::usage::ForkLimits;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use vfs::PathRef;

/// A fork of the log, or of an image.
#[derive(Default)]
pub(crate) struct SavedFork {
    pub(crate) from: u64,
    pub(crate) limits: ForkLimits,
    pub(crate) name: Option<Name>,
    pub(crate) tree: Tree,
    pub(crate) origin: Tree,
    pub(crate) settled: i64,
    /// Whether a file of the base that it needs is not there any more.
    pub(crate) is_lost: bool,
}

/// See the [module documentation](self).
pub(crate) struct Replay<'r> {
    lower: &'r Lower,
    slots: &'r Arc<Slots>,
    pages: HashMap<u64, Weak<Page>>,
    contents: HashMap<(u64, u64), Arc<File>>,
    /// The files of the base that later events move.
    moves: VecDeque<(Vec<u8>, Vec<u8>)>,
    pub(crate) forks: BTreeMap<u64, SavedFork>,
    /// The next numbers of nodes, epochs and forks.
    pub(crate) next: (u64, u64, u64),
}

impl<'r> Replay<'r> {
    pub(crate) fn new(lower: &'r Lower, slots: &'r Arc<Slots>) -> Self {
        // Fork 0 is the trunk.
        let forks = BTreeMap::from([(0, SavedFork::default())]);
        let (pages, contents, moves) = Default::default();
        Self { lower, slots, pages, contents, moves, forks, next: (MADE, 1, 1) }
    }

    /// Repeats all events.
    pub(crate) fn run(&mut self, events: Vec<Event>) {
        let moved = |event: &Event| match event {
            Event::Moved { from, to } => Some((from.clone(), to.clone())),
            _ => None,
        };
        self.moves = events.iter().filter_map(moved).collect();
        events.into_iter().for_each(|event| self.event(event));
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Number { ino, node } => {
                self.lower.set_number(ino, node);
                self.next.0 = self.next.0.max(node + 1);
            }
            Event::Begin { fork, from, like, of_origin, limits } => {
                self.next.2 = self.next.2.max(fork + 1);
                let Some(like) = self.forks.get(&like) else { return };
                let (tree, _) = if of_origin { like.origin.fork() } else { like.tree.fork() };
                let origin = tree.clone();
                self.forks.insert(fork, SavedFork { from, limits, tree, origin, ..SavedFork::default() });
            }
            Event::Name { fork, name } => {
                if let Some(fork) = self.forks.get_mut(&fork) {
                    fork.is_lost |= name.is_lost;
                    fork.name = Some(name);
                }
            }
            Event::Tree { fork, of_origin, changes } => self.tree(fork, of_origin, changes),
            Event::Contents(saved) => self.contents(saved),
            Event::Settle { fork, at, is_new } => {
                if let Some(fork) = self.forks.get_mut(&fork) {
                    let [to, from] =
                        if is_new { [&mut fork.origin, &mut fork.tree] } else { [&mut fork.tree, &mut fork.origin] };
                    to.clone_from(from);
                    fork.settled = at;
                }
            }
            Event::End { fork } => drop(self.forks.remove(&fork)),
            Event::Moved { .. } => drop(self.moves.pop_front()),
            Event::Mark { .. } => {}
        }
    }

    fn tree(&mut self, fork: u64, of_origin: bool, changes: Vec<Saved>) {
        let Some(mut of) = self.forks.remove(&fork) else { return };
        let tree = if of_origin { &mut of.origin } else { &mut of.tree };
        for Saved { key, record, base, contents } in changes {
            let number = key.first_chunk().map_or(0, |number| u64::from_be_bytes(*number));
            self.next.0 = self.next.0.max(number + 1);
            let record = record.map(|mut record| {
                if let Record::Node(node) = &mut record {
                    let node = Arc::make_mut(node);
                    node.contents = contents.and_then(|epoch| self.contents.get(&(number, epoch)).cloned());
                    node.base = match base {
                        SavedBase::None => None,
                        SavedBase::Same => tree.node(number).and_then(|before| before.base.clone()),
                        SavedBase::Path(path) => self.base(&path, node.stamp),
                    };
                }
                record
            });
            tree.replay(key, record);
        }
        self.forks.insert(fork, of);
    }

    /// Returns the file of the base at a path, if it is the file that was there: where commits have moved it, or at a place
    /// before, since the last commit may not have come so far.
    fn base(&self, path: &[u8], stamp: Option<Stamp>) -> Option<Arc<PathRef>> {
        let mut places = vec![path.to_vec()];
        for (from, to) in &self.moves {
            places.extend(places.last().and_then(|place| moved(place, from, to)));
        }
        let (lower, ino) = (self.lower, stamp.map_or(0, |stamp| stamp.ino));
        let at = |place: &Vec<u8>| lower.at(place).ok().filter(|held| held.attr().is_ok_and(|attr| attr.ino == ino));
        places.iter().rev().find_map(at).map(Arc::new)
    }

    fn contents(&mut self, saved: SavedContents) {
        let (key, slots) = ((saved.node, saved.epoch), self.slots);
        self.next.1 = self.next.1.max(saved.epoch + 1);
        let from = saved.from.and_then(|epoch| self.contents.get(&(saved.node, epoch)));
        let copy = || from.map_or_else(Contents::default, |from| from.state.read().clone());
        let file = match self.contents.get(&key) {
            Some(file) => file.clone(),
            None => File::new(saved.epoch, None, copy()),
        };
        let mut contents = file.state.write();
        // The pages that the change has dropped were below the length before it.
        let longer = saved.shown.0.max(contents.shown().0);
        contents.set_shown((longer, saved.shown.1));
        for (number, page) in saved.pages {
            let page = page.map(|slot| slot.map(|slot| claim(&mut self.pages, slots, slot)));
            contents.set_page(number, page);
        }
        contents.set_shown(saved.shown);
        drop(contents);
        self.contents.insert(key, file);
    }

    /// Ends: only the forks that have names stay, with the contents that they need. Their files without names end, which no
    /// program has open. Returns the slots that are not in use.
    pub(crate) fn end(&mut self) -> Vec<u64> {
        self.contents.clear();
        self.forks.retain(|number, fork| *number == 0 || fork.name.is_some());
        for fork in self.forks.values_mut() {
            fork.tree = fork.tree.fork().0;
            let lost = |node: &Arc<Node>| node.stamp.is_some() && node.base.is_none() && node.attr.nlink > 0;
            fork.is_lost |= fork.tree.nodes().chain(fork.origin.nodes()).any(lost);
        }
        let used: BTreeSet<u64> =
            self.pages.iter().filter(|(_, page)| page.strong_count() > 0).map(|(number, _)| *number).collect();
        self.slots.loaded(&used)
    }
}

/// Returns the new path of a file that a move concerns.
fn moved(path: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let rest = path.strip_prefix(from)?;
    (rest.is_empty() || rest[0] == b'/').then(|| [to, rest].concat())
}

/// Returns the page with a slot.
fn claim(pages: &mut HashMap<u64, Weak<Page>>, slots: &Arc<Slots>, number: u64) -> Arc<Page> {
    if let Some(page) = pages.get(&number).and_then(Weak::upgrade) {
        return page;
    }
    let page = Arc::new(Page::Disk(slots.claim(number)));
    pages.insert(number, Arc::downgrade(&page));
    page
}
