//! Lookups: of one name, of a whole path, and by a listing where many names of a directory are requested.
//!
//! # Limitations
//! A name that exists neither as an object nor as a prefix costs two requests.

use crate::deadline::Deadline;
use crate::key::{Key, text};
use crate::node::{Node, is_fresh};
use crate::nodes::Nodes;
use crate::object_fs::ObjectFs;
use crate::store::Found;
use std::sync::Arc;
use std::time::Instant;
use vfs::{Errno, NewInode, NextNames};

/// How many names of a directory are requested one by one, within the time of validity, before the
/// directory is listed.
const ONE_BY_ONE: u32 = 4;

/// The most names that are listed for a lookup.
const LISTED: usize = 10_000;

impl ObjectFs {
    pub(crate) fn look_up(
        &self,
        until: Deadline,
        dir: u64,
        name: &[u8],
        next: &mut NextNames<'_>,
    ) -> Result<NewInode, Errno> {
        let name = text(name).ok_or(Errno::ENOENT)?;
        let (parent, dir_key) = {
            let mut nodes = self.nodes.lock();
            if let Some(known) = self.known_answer(&mut nodes, dir, name) {
                return known;
            }
            let parent = nodes.get(dir).cloned().ok_or(Errno::ESTALE)?;
            (parent, nodes.key(dir).ok_or(Errno::ESTALE)?)
        };
        let names: Vec<&str> = next.names().map_while(text).collect();
        if names.is_empty() && self.is_listing_due(&parent) {
            let began = Instant::now();
            self.learn_names(until, &parent, LISTED)?;
            if let Some(known) = self.known_answer(&mut self.nodes.lock(), dir, name) {
                return known;
            }
            // Unless a change made that listing void.
            let mut facts = parent.facts();
            facts.is_large = !facts.changed_since(began);
        }
        let mut is_absent = false;
        if !names.is_empty() {
            let path = format!("{name}/{}", names.join("/"));
            let whole = [dir_key.path(), &path].concat();
            is_absent = self.failures.lock().has(&whole, self.ttl);
            if !is_absent {
                let began = Instant::now();
                if let Some(last) = self.find(until, &dir_key, &path, false)? {
                    return Ok(self.note_path(dir, name, &names, &last, began, next));
                }
                self.failures.lock().add(whole, began);
                is_absent = true;
            }
        }
        let began = Instant::now();
        let Some(found) = self.find(until, &dir_key, name, !names.is_empty())? else {
            if let Some(node) = self.nodes.lock().child(dir, name) {
                node.facts().lost(began);
            }
            return Err(Errno::ENOENT);
        };
        if is_absent && names.len() == 1 && found.is_dir() {
            next.absent();
        }
        let node = self.note(dir, name, &found, began);
        let facts = node.facts();
        Ok(self.new_inode(&node, &facts))
    }

    /// Returns the answer about a name, if the answer needs no request.
    fn known_answer(&self, nodes: &mut Nodes, dir: u64, name: &str) -> Option<Result<NewInode, Errno>> {
        let has_all = is_fresh(nodes.get(dir)?.facts().complete, self.ttl);
        let absent = has_all.then_some(Err(Errno::ENOENT));
        let Some(node) = nodes.child(dir, name).cloned() else { return absent };
        let facts = node.facts();
        if facts.local.is_some() || is_fresh(facts.fetched, self.ttl) {
            nodes.known(dir, name, node.is_dir, false);
            return Some(Ok(self.new_inode(&node, &facts)));
        }
        if facts.is_gone { absent } else { None }
    }

    /// Returns whether so many names of a directory are requested that one listing is cheaper.
    fn is_listing_due(&self, dir: &Node) -> bool {
        let mut facts = dir.facts();
        if self.ttl.is_zero() || facts.is_large {
            return false;
        }
        let (since, count) =
            facts.asked.filter(|(since, _)| is_fresh(Some(*since), self.ttl)).unwrap_or((Instant::now(), 0));
        let is_due = count >= ONE_BY_ONE;
        facts.asked = (!is_due).then_some((since, count + 1));
        is_due
    }

    /// Returns the object or the directory at `path` in the directory `dir`. Looks for the more likely of the two first.
    fn find(&self, until: Deadline, dir: &Key, path: &str, is_dir_likely: bool) -> Result<Option<Found>, Errno> {
        let is_dir = || dir.dir(path).map_or(Ok(false), |key| self.store.has_names(until, &key, false));
        if is_dir_likely && is_dir()? {
            return Ok(Some(Found::Dir));
        }
        if let Some(key) = dir.object(path)
            && let Some(found) = self.store.stat(until, &key)?
        {
            return Ok(Some(found));
        }
        Ok((!is_dir_likely && is_dir()?).then_some(Found::Dir))
    }

    /// Notes a path that exists as a whole: all its names but the last are directories. Returns the
    /// answer about the first name.
    fn note_path(
        &self,
        dir: u64,
        name: &str,
        names: &[&str],
        last: &Found,
        began: Instant,
        next: &mut NextNames<'_>,
    ) -> NewInode {
        let first = self.note(dir, name, &Found::Dir, began);
        let mut parent = first.id;
        for (at, name) in names.iter().enumerate() {
            // Only the first name is locked: the answer about the others may be older than a change by this mount.
            if self.nodes.lock().get(parent).is_none_or(|dir| dir.facts().changed_since(began)) {
                break;
            }
            let found = if at + 1 == names.len() { last } else { &Found::Dir };
            let node = self.note(parent, name, found, began);
            next.found(self.new_inode(&node, &node.facts()));
            parent = node.id;
        }
        self.new_inode(&first, &first.facts())
    }

    /// Notes the answer to a request that began at `began`.
    fn note(&self, dir: u64, name: &str, found: &Found, began: Instant) -> Arc<Node> {
        let node = self.nodes.lock().known(dir, name, found.is_dir(), false);
        node.learn(found, began);
        node
    }
}
