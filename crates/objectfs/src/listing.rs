//! Listings of directories: one request for all names and their attributes.
//!
//! # What it is
//! An open directory keeps its listing, in the order of a keyed hash of the names, which is also
//! their cookie. So a name has the same place in each listing. If the node has all names of the
//! directory, and they are valid, a listing makes no request.

use crate::deadline::Deadline;
use crate::meta::{Found, Kind};
use crate::node::{Node, is_fresh};
use crate::object_fs::ObjectFs;
use crate::store::STATS;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use vfs::{DirEntry, Errno, Listed, Open, S_IFDIR, S_IFLNK, S_IFREG, Want};

/// A listed name.
#[derive(Clone)]
pub(crate) struct ListedNode {
    cookie: u64,
    name: Box<str>,
    node: Arc<Node>,
}

/// A name and its node.
type NamedNode = (Box<str>, Arc<Node>);

/// The listing that an open directory keeps.
#[derive(Default)]
pub(crate) struct DirList(Mutex<Option<Arc<[ListedNode]>>>);

impl ObjectFs {
    pub(crate) fn list(
        &self,
        until: Deadline,
        dir: &Open<'_>,
        after: u64,
        want: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        let list = dir.state.get::<DirList>();
        let kept = list.filter(|_| after > 0).and_then(|list| list.0.lock().clone());
        let all = match kept {
            Some(all) => all,
            None => {
                let all = self.all_names(until, &self.node(dir.inode)?)?;
                if let Some(list) = list {
                    *list.0.lock() = Some(all.clone());
                }
                all
            }
        };
        for some in all[all.partition_point(|entry| entry.cookie <= after)..].chunks(STATS) {
            if want.attributes {
                // A request that fails is made again by the caller's lookup, which then fails.
                let _ = self.learn_kept(until, some.iter().map(|entry| &entry.node));
            }
            if some.iter().any(|entry| !emit(self.entry(entry, want))) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the entry. Adds attributes if the caller wants them and they may be cached.
    fn entry(&self, entry: &ListedNode, want: Want) -> Listed {
        let facts = entry.node.facts();
        if want.attributes && self.is_known(&facts) && !self.ttl.is_zero() {
            return Listed::with_inode(entry.name.as_bytes(), entry.cookie, self.new_inode(&entry.node, &facts));
        }
        let kind = match entry.node.kind {
            Kind::File => S_IFREG,
            Kind::Dir => S_IFDIR,
            Kind::Link => S_IFLNK,
        };
        Listed::new(DirEntry { name: entry.name.as_bytes().into(), ino: entry.node.id, kind }, entry.cookie)
    }

    /// Returns all names in the order of their cookies.
    fn all_names(&self, until: Deadline, dir: &Arc<Node>) -> Result<Arc<[ListedNode]>, Errno> {
        let nodes = self.nodes.lock();
        let listed = if is_fresh(dir.facts().complete, self.ttl) {
            let here = nodes.children(dir.id).filter(|(_, node)| !node.facts().is_gone);
            here.map(|(name, node)| (name.into(), node.clone())).collect()
        } else {
            drop(nodes);
            self.learn_names(until, dir, usize::MAX)?
        };
        let entry = |(name, node): NamedNode| ListedNode { cookie: self.order.cookie(name.as_bytes()), name, node };
        let mut all: Vec<_> = listed.into_iter().map(entry).collect();
        all.sort_unstable_by(|a, b| (a.cookie, &a.name).cmp(&(b.cookie, &b.name)));
        Ok(all.into())
    }

    /// Lists a directory, and notes the names and attributes in the answer.
    pub(crate) fn learn_names(&self, until: Deadline, dir: &Arc<Node>, limit: usize) -> Result<Vec<NamedNode>, Errno> {
        let began = Instant::now();
        let mut names = self.store.list(until, &self.key_of(dir.id)?, limit)?;
        // Where several have one name, a file remains, else a link.
        let rank = |found: &Found| [Kind::File, Kind::Link, Kind::Dir].iter().position(|kind| *kind == found.kind());
        names.names.sort_by(|a, b| (&a.name, rank(&a.found)).cmp(&(&b.name, rank(&b.found))));
        names.names.dedup_by(|a, b| a.name == b.name);
        let mut nodes = self.nodes.lock();
        // Names that this mount changed meanwhile may be missing, or removed.
        let is_void = dir.facts().changed_since(began);
        let mut listed = Vec::with_capacity(names.names.len());
        for entry in names.names {
            let node = nodes.found(dir.id, &entry.name, &entry.found, self.ttl.is_zero() || is_void);
            if !is_void {
                node.learn(&entry.found, began);
            }
            listed.push((entry.name, node));
        }
        if names.is_complete && !is_void {
            let here: BTreeSet<u64> = listed.iter().map(|(_, node)| node.id).collect();
            for (_, node) in nodes.children(dir.id).filter(|(_, node)| !here.contains(&node.id)) {
                node.facts().lost(began);
            }
            let mut facts = dir.facts();
            (facts.complete, facts.has_marker, facts.is_large) = (Some(began), names.has_marker, false);
        }
        Ok(listed)
    }
}
