//! Lookups: of one name, of a whole path, and by a listing where many names of a directory are requested.
//!
//! # Limitations
//! A name that exists neither as an object nor as a prefix costs two requests.

use crate::deadline::Deadline;
use crate::kept::Kept;
use crate::key::{Key, text};
use crate::meta::Found;
use crate::node::{Node, is_fresh};
use crate::nodes::Nodes;
use crate::object_fs::ObjectFs;
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
        let name = text(name).filter(|name| self.store.link_name(name).is_none()).ok_or(Errno::ENOENT)?;
        let (parent, dir_key) = {
            let mut nodes = self.nodes.lock();
            if let Some(known) = self.known_answer(&mut nodes, dir, name) {
                return known;
            }
            let parent = nodes.get(dir).cloned().ok_or(Errno::ESTALE)?;
            (parent, nodes.key(dir).ok_or(Errno::ESTALE)?)
        };
        let known_after_request = || {
            self.learn_next(until, &parent, name)?;
            Ok(self.known_answer(&mut self.nodes.lock(), dir, name))
        };
        if let Some(known) = known_after_request()? {
            return known;
        }
        let names = next.names().map_while(text).take_while(|name| self.store.link_name(name).is_none());
        let names: Vec<&str> = names.collect();
        if names.is_empty() && self.is_listing_due(&parent) {
            let began = Instant::now();
            self.learn_names(until, &parent, LISTED)?;
            if let Some(known) = known_after_request()? {
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
                    return self.note_path(until, (dir, name), &names, &last, began, next);
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
        if self.is_known(&facts) {
            nodes.known(dir, name, node.kind, false);
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
        let found_dir = || dir.dir(path).map_or(Ok(None), |key| self.find_dir(until, &key));
        if is_dir_likely && let Some(found) = found_dir()? {
            return Ok(Some(found));
        }
        if let Some(key) = dir.object(path)
            && let Some(found) = self.store.stat(until, &key)?
        {
            return Ok(Some(found));
        }
        if let Some(link) = self.store.find_link(until, dir, path)? {
            return Ok(Some(link));
        }
        if is_dir_likely { Ok(None) } else { found_dir() }
    }

    fn find_dir(&self, until: Deadline, dir: &Key) -> Result<Option<Found>, Errno> {
        let below = self.store.below(until, dir)?;
        match (below.has_marker, below.has_names) {
            (true, _) if self.store.keeps => self.store.stat(until, dir),
            (false, false) => Ok(None),
            _ => Ok(Some(Found::Dir(Some(Kept::default())))),
        }
    }

    /// Notes a path that exists as a whole: all its names but the last are directories. Returns the
    /// answer about the first name.
    fn note_path(
        &self,
        until: Deadline,
        (dir, name): (u64, &str),
        names: &[&str],
        last: &Found,
        began: Instant,
        next: &mut NextNames<'_>,
    ) -> Result<NewInode, Errno> {
        let mut nodes = vec![self.note(dir, name, &Found::Dir(None), began)];
        // Only the first name is locked: the answer about the others may be older than a change by this mount.
        let is_void = |dir: &Node| dir.facts().changed_since(began);
        for (at, name) in names.iter().enumerate() {
            let parent = nodes[at].clone();
            if is_void(&parent) {
                break;
            }
            let found = if at + 1 == names.len() { last } else { &Found::Dir(None) };
            nodes.push(self.note(parent.id, name, found, began));
        }
        self.learn_kept(until, nodes.iter())?;
        for pair in nodes.windows(2).take_while(|pair| !is_void(&pair[0])) {
            next.found(self.new_inode(&pair[1], &pair[1].facts()));
        }
        Ok(self.new_inode(&nodes[0], &nodes[0].facts()))
    }

    /// Notes the answer to a request that began at `began`.
    fn note(&self, dir: u64, name: &str, found: &Found, began: Instant) -> Arc<Node> {
        let node = self.nodes.lock().found(dir, name, found, false);
        node.learn(found, began);
        node
    }
}
