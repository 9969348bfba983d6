//! The changes of a fork: its map, and the rules of POSIX for names, links and times.
//!
//! # What it is not
//! Aware of the base: a caller reads the base first, and gives a node that is about to change to [`Tree::adopt`].
//!
//! # How it is locked
//! By the fork's mutex, for as long as one change takes in memory.

use crate::map::Map;
use crate::record::{Covered, Entry, Key, KeyBuf, Node, Part, RECORD_BYTES, Record, Stamp, Xattrs};
use core::ops::Bound;
use std::collections::BTreeSet;
use std::sync::Arc;
use vfs::{Attr, Errno, PathRef};

/// The length that an entry adds to a directory that a fork made, as on tmpfs.
const ENTRY_SIZE: u64 = 20;

/// A node with its place, as it is before its first change.
pub(crate) struct Unchanged {
    pub(crate) node: Arc<Node>,
    /// Names of the node and of the directories above it, which have no record: node, directory, name.
    pub(crate) places: Vec<(u64, u64, Arc<[u8]>)>,
}

/// See the [module documentation](self).
#[derive(Clone, Default)]
pub(crate) struct Tree {
    pub(crate) map: Map<Key, Record>,
    /// The last place in listings.
    pub(crate) serial: u64,
    /// Files without names that may be open.
    orphans: BTreeSet<u64>,
    /// The bytes of all records.
    pub(crate) bytes: u64,
}

impl Tree {
    /// Returns the record of a node.
    pub(crate) fn node(&self, node: u64) -> Option<&Arc<Node>> {
        self.map.get(&*KeyBuf::node(node))?.node()
    }

    /// Returns the record of a node, to change it: `ESTALE` if there is none.
    pub(crate) fn node_mut(&mut self, node: u64) -> Result<&mut Node, Errno> {
        match self.map.get_mut(&*KeyBuf::node(node)) {
            Some(Record::Node(found)) => Ok(Arc::make_mut(found)),
            _ => Err(Errno::ESTALE),
        }
    }

    /// Returns a node that other trees have changed as it is here, or in the base.
    pub(crate) fn before(&self, changed: &Node) -> Result<Arc<Node>, Errno> {
        match (self.node(changed.attr.ino), &changed.base) {
            (Some(old), _) => Ok(old.clone()),
            (None, Some(base)) => Node::of_base(base.clone(), changed.attr.ino).map(Arc::new),
            (None, None) => Err(Errno::ESTALE),
        }
    }

    /// Returns the attributes of a node that has a record.
    pub(crate) fn attr(&self, node: u64) -> Result<Attr, Errno> {
        self.node(node).map(|node| node.attr).ok_or(Errno::ESTALE)
    }

    fn put(&mut self, key: Key, record: Record) {
        self.bytes += cost(&key, &record);
        if let Some(old) = self.map.insert(key.clone(), record) {
            self.bytes -= cost(&key, &old);
        }
    }

    fn take(&mut self, key: &[u8]) -> Option<Record> {
        let old = self.map.remove(key)?;
        self.bytes -= cost(key, &old);
        Some(old)
    }

    /// Gives a node a record. Does nothing if the node has one already.
    pub(crate) fn adopt(&mut self, node: u64, unchanged: Unchanged) {
        if self.node(node).is_some() {
            return;
        }
        self.put(KeyBuf::node(node).key(), Record::Node(unchanged.node));
        for (node, dir, name) in unchanged.places {
            let key = KeyBuf::place(node);
            if self.map.get(&*key).is_none() {
                self.put(key.key(), Record::Place(dir, name));
            }
        }
    }

    /// Adds a new node, without a name.
    pub(crate) fn make(&mut self, node: u64, new: Node) {
        self.orphans.insert(node);
        self.put(KeyBuf::node(node).key(), Record::Node(Arc::new(new)));
    }

    /// Sets or removes a record, as the log has it.
    pub(crate) fn replay(&mut self, key: Key, record: Option<Record>) {
        if let Some(Part::Node(number)) = Part::of(&key) {
            match &record {
                Some(Record::Node(node)) if node.attr.nlink == 0 => drop(self.orphans.insert(number)),
                _ => drop(self.orphans.remove(&number)),
            }
        }
        match record {
            Some(record) => {
                if let Record::Entry(entry) = &record {
                    self.serial = self.serial.max(entry.serial);
                }
                self.put(key, record);
            }
            None => drop(self.take(&key)),
        }
    }

    /// Returns all nodes that have records.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.map.range(Bound::<&[u8]>::Unbounded).filter_map(|(_, record)| record.node())
    }

    /// Gives a node other extended attributes.
    pub(crate) fn set_xattrs(&mut self, node: u64, xattrs: Arc<Xattrs>, now: i64) -> Result<(), Errno> {
        let changed = self.node_mut(node)?;
        let before = changed.bytes();
        (changed.xattrs, changed.attr.ctime) = (Some(xattrs), now);
        let after = changed.bytes();
        self.bytes = self.bytes + after - before;
        Ok(())
    }

    /// Returns the record of a name.
    pub(crate) fn name(&self, dir: u64, name: &[u8]) -> Option<&Record> {
        self.map.get(&*KeyBuf::name(dir, name))
    }

    /// Returns the place of a node.
    pub(crate) fn place(&self, node: u64) -> Option<(u64, Key)> {
        match self.map.get(&*KeyBuf::place(node)) {
            Some(Record::Place(dir, name)) => Some((*dir, name.clone())),
            _ => None,
        }
    }

    /// Enters a node into a directory, which has no entry of this name, and counts the link.
    pub(crate) fn enter(&mut self, dir: u64, name: &[u8], node: u64) -> Result<(), Errno> {
        let entered = self.node_mut(node)?;
        let (kind, is_dir) = (entered.attr.kind(), entered.attr.is_dir());
        entered.is_unnamed = false;
        if is_dir {
            entered.attr.nlink = entered.attr.nlink.max(2);
        } else {
            entered.attr.nlink += 1;
        }
        self.orphans.remove(&node);
        let covered = self.covered(dir, name);
        self.put_entry(dir, name, Entry { node, kind, serial: 0, covered });
        // The place of a file with several names is the first that it has still.
        if self.place(node).is_none() {
            self.put(KeyBuf::place(node).key(), Record::Place(dir, Key::from(name)));
        }
        self.count(dir, is_dir, 1)
    }

    /// Returns the name of the base that a changed name hides.
    pub(crate) fn covered(&self, dir: u64, name: &[u8]) -> Option<Covered> {
        match self.name(dir, name) {
            Some(Record::Whiteout(covered)) => Some(*covered),
            Some(Record::Entry(entry)) => entry.covered,
            _ => None,
        }
    }

    /// Gives a name a new place in listings and an entry.
    fn put_entry(&mut self, dir: u64, name: &[u8], entry: Entry) {
        self.serial += 1;
        self.put(KeyBuf::name(dir, name).key(), Record::Entry(Entry { serial: self.serial, ..entry }));
        self.put(KeyBuf::serial(dir, self.serial).key(), Record::Listed(Key::from(name)));
    }

    /// Removes a name of a node from a directory, and counts the link. `covered`: the base's node of the name.
    pub(crate) fn leave(&mut self, dir: u64, name: &[u8], node: u64, covered: Option<u64>) -> Result<(), Errno> {
        let key = KeyBuf::name(dir, name);
        let covered = self.covered(dir, name).or(covered.map(Covered::now));
        self.take_name(dir, name);
        if self.place(node).is_some_and(|(at, of)| at == dir && *of == *name) {
            self.take(&KeyBuf::place(node));
        }
        if let Some(covered) = covered {
            self.put(key.key(), Record::Whiteout(covered));
        }
        let left = self.node_mut(node)?;
        let is_dir = left.attr.is_dir();
        left.attr.nlink -= u32::from(!is_dir && left.attr.nlink > 0);
        if left.attr.nlink == 0 {
            self.orphans.insert(node);
        }
        self.count(dir, is_dir, -1)
    }

    /// Removes the record of a name.
    fn take_name(&mut self, dir: u64, name: &[u8]) {
        if let Some(Record::Entry(entry)) = self.take(&KeyBuf::name(dir, name)) {
            self.take(&KeyBuf::serial(dir, entry.serial));
        }
    }

    /// Ends a directory that left its directory for good: removes its records, but for its attributes.
    pub(crate) fn end_dir(&mut self, dir: u64) -> Result<(), Errno> {
        self.node_mut(dir)?.attr.nlink = 0;
        self.orphans.insert(dir);
        let start = KeyBuf::name(dir, b"");
        let of_dir = self.map.range(Bound::Included(&*start)).map(|(key, _)| key.clone());
        let keys: Vec<Key> = of_dir.take_while(|key| key.starts_with(&dir.to_be_bytes())).collect();
        for key in keys {
            self.take(&key);
        }
        Ok(())
    }

    /// Counts an entry that a directory got or lost.
    pub(crate) fn count(&mut self, dir: u64, is_dir: bool, difference: i32) -> Result<(), Errno> {
        let dir = self.node_mut(dir)?;
        if is_dir {
            dir.attr.nlink = dir.attr.nlink.saturating_add_signed(difference);
        }
        if dir.base.is_none() {
            dir.attr.size = dir.attr.size.saturating_add_signed(i64::from(difference) * ENTRY_SIZE as i64);
        }
        Ok(())
    }

    /// Returns the records of the names in a directory.
    pub(crate) fn names(&self, dir: u64) -> impl Iterator<Item = (&[u8], &Record)> {
        self.map.range(Bound::Included(&*KeyBuf::name(dir, b""))).map_while(move |(key, record)| match Part::of(key) {
            Some(Part::Name(of, name)) if of == dir => Some((name, record)),
            _ => None,
        })
    }

    /// Returns at most `limit` entries of a directory behind a serial number, in the order in which they were made.
    pub(crate) fn listed(&self, dir: u64, after: u64, limit: usize) -> Vec<(Key, Entry)> {
        let from = KeyBuf::serial(dir, after);
        let behind = self.map.range(Bound::Excluded(&*from)).map_while(|(key, record)| match (Part::of(key), record) {
            (Some(Part::Serial(of, _)), Record::Listed(name)) if of == dir => Some(name),
            _ => None,
        });
        let entry = |name: &Key| match self.name(dir, name) {
            Some(Record::Entry(entry)) => Some((name.clone(), *entry)),
            _ => None,
        };
        behind.filter_map(entry).take(limit).collect()
    }

    /// Removes a node without links, which nothing uses any more. Returns it.
    pub(crate) fn end(&mut self, node: u64) -> Option<Arc<Node>> {
        if !self.orphans.remove(&node) {
            return None;
        }
        self.take(&KeyBuf::place(node));
        self.take(&KeyBuf::node(node))?.node().cloned()
    }

    /// Returns a name of a node that the fork has made. Reads all records.
    #[cold]
    pub(crate) fn other_name(&self, number: u64) -> Option<(u64, Key)> {
        let name = |(key, record): (&Key, &Record)| match (Part::of(key), record) {
            (Some(Part::Name(dir, name)), Record::Entry(entry)) if entry.node == number => Some((dir, name.into())),
            _ => None,
        };
        self.map.range(Bound::<&[u8]>::Unbounded).find_map(name)
    }

    /// Gives a name the record that it has in another tree.
    pub(crate) fn set_name(&mut self, dir: u64, name: &[u8], record: Option<&Record>) {
        let covered = self.covered(dir, name);
        self.take_name(dir, name);
        match record {
            Some(Record::Entry(entry)) => {
                self.put_entry(dir, name, Entry { covered: covered.or(entry.covered), ..*entry });
            }
            Some(record) => self.put(KeyBuf::name(dir, name).key(), record.clone()),
            None => {}
        }
    }

    /// Gives a node the record that it has in another tree.
    pub(crate) fn set_node(&mut self, number: u64, node: Arc<Node>) {
        self.orphans.remove(&number);
        self.put(KeyBuf::node(number).key(), Record::Node(node));
    }

    /// Gives a node the place that it has in another tree.
    pub(crate) fn set_place(&mut self, number: u64, dir: u64, name: Key) {
        self.put(KeyBuf::place(number).key(), Record::Place(dir, name));
    }

    /// Removes a node that nothing uses.
    pub(crate) fn take_node(&mut self, number: u64) {
        self.orphans.insert(number);
        self.end(number);
    }

    /// Takes all links of a node that a program may have open.
    pub(crate) fn take_links(&mut self, number: u64) {
        if let Ok(node) = self.node_mut(number) {
            node.attr.nlink = 0;
            self.orphans.insert(number);
        }
    }

    /// Notes that a file of the base, `file`, has the state and the name of a node.
    pub(crate) fn publish(&mut self, number: u64, (dir, name): (u64, &[u8]), file: Arc<PathRef>, attr: &Attr, at: u64) {
        let Ok(node) = self.node_mut(number) else { return };
        (node.base, node.stamp) = (Some(file), Some(Stamp::of(attr)));
        let kind = node.attr.kind();
        match self.name(dir, name) {
            None if at != number => {
                self.put_entry(dir, name, Entry { node: number, kind, serial: 0, covered: Some(Covered::now(at)) });
            }
            _ => self.cover(dir, name, at),
        }
    }

    /// Gives a file of the base that has changed an entry at its place, where it has none.
    pub(crate) fn keep_name(&mut self, number: u64) {
        let Some((dir, name)) = self.place(number) else { return };
        let kind = self.node(number).filter(|node| node.attr.nlink > 0).map(|node| node.attr.kind());
        if let (Some(kind), None) = (kind, self.name(dir, &name)) {
            self.put_entry(dir, &name, Entry { node: number, kind, serial: 0, covered: Some(Covered::now(number)) });
        }
    }

    /// Notes the file of the base that has a name.
    pub(crate) fn cover(&mut self, dir: u64, name: &[u8], node: u64) {
        if let Some(Record::Entry(entry)) = self.map.get_mut(&*KeyBuf::name(dir, name)) {
            entry.covered = Some(Covered::now(node));
        }
    }

    /// Keeps a node of another tree without a name.
    pub(crate) fn keep(&mut self, number: u64, node: &Node) {
        let attr = Attr { nlink: 0, ..node.attr };
        self.make(number, Node { attr, is_unnamed: false, ..node.clone() });
    }

    /// Gives new names places in listings behind all of another tree.
    pub(crate) fn list_after(&mut self, other: &Self) {
        self.serial = self.serial.max(other.serial);
    }

    /// Returns the tree as a new fork has it: no program has a file without a name open there.
    pub(crate) fn fork(&self) -> (Self, Vec<Arc<Node>>) {
        let mut fork = self.clone();
        let ended = self.orphans.iter().filter_map(|node| fork.end(*node)).collect();
        (fork, ended)
    }
}

/// Returns the bytes that a record counts.
fn cost(key: &[u8], record: &Record) -> u64 {
    key.len() as u64 + record.node().map_or(RECORD_BYTES, |node| node.bytes())
}
