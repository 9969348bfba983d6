//! An image: all forks of a store in one file, by which the log begins anew.
//!
//! # What it is
//! The trees of the forks at one moment, at which the next log begins. A fork is written as its difference from an earlier one of the
//! image, so that the two share the parts of their maps after a start, as before. A durable image gets its name last:
//! before that a start reads the older image and the logs.

use super::event::Event;
use super::log::Log;
use super::replay::SavedFork;
use super::{Upper, errno};
use crate::record::{Part, Record};
use crate::state::{Shared, State};
use crate::tree::Tree;
use core::time::Duration;
use prim::atomic::Ordering::Relaxed;
use std::collections::{BTreeMap, HashSet};
use std::fs::{DirEntry, File, read_dir, remove_file, rename};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use vfs::Errno;

/// How long changes may wait for an image that waits for other changes to end.
const PATIENCE: Duration = Duration::from_millis(20);

/// Changes of a batch.
const CHANGES: usize = 4096;

/// Returns the paths of the image and of the log of a number.
pub(super) fn paths(dir: &Path, number: u64) -> [PathBuf; 2] {
    ["image", "log"].map(|name| dir.join(format!("{name}-{number}")))
}

/// Makes the names in a directory durable.
pub(super) fn sync_dir(dir: &Path) -> Result<(), Errno> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(errno)
}

impl Upper {
    /// Writes an image, and begins a new log. Does nothing if a long call makes a change at this moment.
    ///
    /// # Errors
    /// `ENOSPC`; the directory's.
    pub(crate) fn image(&self, shared: &Shared) -> Result<(), Errno> {
        let _one = self.marking.lock();
        let (taken, number) = {
            let Some(_paused) = self.pause.try_write_for(PATIENCE) else { return Ok(()) };
            let mut writing = self.log.lock();
            let number = writing.number + 1;
            let next = Log::create(&paths(&self.dir, number)[1])?;
            sync_dir(&self.dir)?;
            let old = core::mem::replace(&mut writing.log, next);
            writing.before += old.len;
            writing.number = number;
            writing.unmarked.push(old.file);
            drop(writing);
            (take(shared), number)
        };
        // The image has pages that no mark covers.
        self.mark_up_to(u64::MAX)?;
        write(&self.dir, number, shared, &taken)
    }
}

/// Returns the numbers of the files of a directory that have this name.
pub(super) fn numbers(dir: &Path, name: &str) -> Result<Vec<u64>, Errno> {
    let number = |entry: DirEntry| entry.file_name().to_str()?.strip_prefix(name)?.parse::<u64>().ok();
    Ok(read_dir(dir).map_err(errno)?.flatten().filter_map(number).collect())
}

/// Removes the other images and logs.
fn remove_others(dir: &Path, number: u64) {
    let found = ["image-", "log-"].map(|name| numbers(dir, name).unwrap_or_default()).concat();
    // An error: the next image removes them.
    let remove = |other| paths(dir, other).iter().for_each(|path| drop(remove_file(path)));
    found.into_iter().filter(|other| *other != number).for_each(remove);
}

/// Returns the forks as they are now. The next write to a file copies its contents first.
pub(super) fn take(shared: &Shared) -> BTreeMap<u64, SavedFork> {
    let taken = |state: Arc<State>| {
        state.begin_epoch();
        let fork = SavedFork {
            from: state.from,
            limits: state.usage.limits,
            name: state.name.lock().clone(),
            tree: state.tree.lock().clone(),
            origin: state.origin(),
            settled: state.settled.load(Relaxed),
            // Its name has it.
            is_lost: false,
        };
        (state.id, fork)
    };
    shared.all().into_iter().filter(|state| state.id > 0).map(taken).collect()
}

/// Writes an image, and removes the older files.
pub(super) fn write(dir: &Path, number: u64, shared: &Shared, taken: &BTreeMap<u64, SavedFork>) -> Result<(), Errno> {
    let path = dir.join("image.new");
    fill(&path, shared, taken).inspect_err(|_| drop(remove_file(&path)))?;
    rename(&path, &paths(dir, number)[0]).map_err(errno)?;
    sync_dir(dir).map(|()| remove_others(dir, number))
}

/// Writes an image to a file, durably.
fn fill(path: &Path, shared: &Shared, taken: &BTreeMap<u64, SavedFork>) -> Result<(), Errno> {
    let mut image = Image { log: Log::create(path)?, shared, seen: HashSet::new() };
    let numbers = shared.lower.numbers().into_iter();
    image.log.append(&numbers.map(|(ino, node)| Event::Number { ino, node }).collect::<Vec<_>>())?;
    taken.keys().try_for_each(|fork| image.fork(*fork, taken))?;
    image.log.append(&[Event::Mark { upto: 0 }])?;
    image.log.file.sync_all().map_err(errno)
}

struct Image<'i> {
    log: Log,
    shared: &'i Shared,
    /// Contents that are in the image.
    seen: HashSet<(u64, u64)>,
}

impl Image<'_> {
    fn fork(&mut self, fork: u64, taken: &BTreeMap<u64, SavedFork>) -> Result<(), Errno> {
        let SavedFork { from, limits, name, tree, origin, settled, .. } = &taken[&fork];
        // A sibling began as it did; the parent has the tree that it began with, and changes since.
        let sibling = taken.range(..fork).rev().find(|(_, other)| other.from == *from);
        let none = Tree::default();
        let (like, like_tree) = match (sibling, taken.get(from)) {
            (Some((like, sibling)), _) => (*like, &sibling.origin),
            (None, Some(parent)) => (*from, &parent.tree),
            (None, None) => (0, &none),
        };
        let of_origin = sibling.is_some();
        // The new fork does not have its files without names.
        let like_tree = &like_tree.fork().0;
        self.log.append(&[Event::Begin { fork, from: *from, like, of_origin, limits: *limits }])?;
        self.changes((fork, true), like_tree, origin)?;
        self.log.append(&[Event::Settle { fork, at: *settled, is_new: false }])?;
        self.changes((fork, false), origin, tree)?;
        name.clone().map_or(Ok(()), |name| self.log.append(&[Event::Name { fork, name }]))
    }

    /// Adds the difference of two trees, and the contents that only the second has.
    fn changes(&mut self, of: (u64, bool), old: &Tree, new: &Tree) -> Result<(), Errno> {
        for (key, record, _) in new.map.diff(&old.map, Record::is_same) {
            if let (Some(Part::Node(number)), Some(Record::Node(node))) = (Part::of(key), record)
                && let Some(file) = &node.contents
                && self.seen.insert((number, file.epoch))
            {
                self.log.append(&[Event::contents(number, file, &file.state.read(), true)])?;
            }
        }
        let Some(Event::Tree { fork, of_origin, mut changes }) = Event::tree(&self.shared.lower, of, old, new) else {
            return Ok(());
        };
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(CHANGES));
            self.log.append(&[Event::Tree { fork, of_origin, changes }])?;
            changes = rest;
        }
        Ok(())
    }
}
