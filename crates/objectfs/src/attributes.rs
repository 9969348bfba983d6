//! Attributes that the metadata of objects keep: requests for them, and changes of them.
//!
//! # What it is
//! A listing has no metadata, so the attributes of the names in it are requested one by one, some at a
//! time: when a program lists a directory with its attributes, or looks up names of a listed directory.

use crate::deadline::Deadline;
use crate::errors::gone;
use crate::kept::kept_bits;
use crate::limits::TRIES;
use crate::node::{Node, is_fresh};
use crate::nodes::ROOT;
use crate::object_fs::ObjectFs;
use crate::store::STATS;
use std::sync::Arc;
use std::time::Instant;
use vfs::{Errno, Inode, Request, SetAttr, SetTime};

impl ObjectFs {
    /// Requests the attributes of those nodes that lack only them.
    ///
    /// # Errors
    /// The error of the first request that failed; the other answers are noted.
    pub(crate) fn learn_kept<'n>(
        &self,
        until: Deadline,
        nodes: impl Iterator<Item = &'n Arc<Node>>,
    ) -> Result<(), Errno> {
        let lacks = |node: &&Arc<Node>| self.store.keeps && node.id != ROOT && self.lacks_kept(node);
        let lacking = nodes.filter(lacks).filter_map(|node| Some((node, self.key_of(node.id).ok()?)));
        let (nodes, keys): (Vec<_>, Vec<_>) = lacking.unzip();
        if nodes.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        let mut first = Ok(());
        for (node, found) in nodes.into_iter().zip(self.store.stat_many(until, keys)?) {
            match found {
                Ok(Some(found)) => node.learn(&found, began),
                Ok(None) => node.facts().lost(began),
                Err(errno) => first = first.and(Err(errno)),
            }
        }
        first
    }

    /// Requests the attributes of the name, and of names after it, if the directory was listed.
    ///
    /// # Errors
    /// As [`ObjectFs::learn_kept`].
    pub(crate) fn learn_next(&self, until: Deadline, dir: &Node, name: &str) -> Result<(), Errno> {
        if !self.store.keeps || !is_fresh(dir.facts().complete, self.ttl) {
            return Ok(());
        }
        let batch: Vec<_> = {
            let nodes = self.nodes.lock();
            let after = nodes.children(dir.id).skip_while(|(other, _)| *other < name);
            after.take(STATS).map(|(_, node)| node.clone()).collect()
        };
        self.learn_kept(until, batch.iter())
    }

    /// Returns whether all facts but the attributes are valid.
    fn lacks_kept(&self, node: &Node) -> bool {
        let facts = node.facts();
        is_fresh(facts.fetched, self.ttl) && !facts.is_gone && !self.is_known(&facts)
    }

    /// Changes attributes. An object keeps its times, its permissions and, if root owns the tree, its owner.
    ///
    /// # Errors
    /// `EPERM`: the attribute is fixed; `EAGAIN`: other programs keep writing the object.
    pub(crate) fn set_attributes(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        let node = self.node(inode)?;
        let attr = inode.attr();
        let differs = |wanted: Option<u32>, is: u32| wanted.is_some_and(|wanted| wanted != is);
        let is_other_mode = differs(set.mode, attr.mode & 0o7777);
        let is_other_owner = differs(set.uid, attr.uid) || differs(set.gid, attr.gid);
        let keeps = self.store.keeps && node.id != ROOT;
        let is_kept = set.mode.is_none_or(|mode| mode & !kept_bits(node.is_dir) == 0);
        if is_other_mode && !(keeps && is_kept) || is_other_owner && !(keeps && self.keeps_owners()) {
            return Err(Errno::EPERM);
        }
        if !self.store.keeps {
            return self.touch(request, inode, set);
        }
        let owner = |id: Option<u32>| id.filter(|_| is_other_owner);
        // A change of the length, which comes next, sets the time.
        let mtime = set.mtime.filter(|mtime| set.size.is_none() || *mtime != SetTime::Now);
        let (mode, size) = (set.mode.filter(|_| is_other_mode), None);
        let set = SetAttr { mode, uid: owner(set.uid), gid: owner(set.gid), size, mtime, ..*set };
        if set != SetAttr::default() {
            self.amend(request, inode, &node, &set)?;
            inode.mark_stale();
        }
        Ok(())
    }

    /// Changes attributes that the metadata of the object keep.
    fn amend(&self, request: &Request, inode: &Inode, node: &Node, set: &SetAttr) -> Result<(), Errno> {
        if node.id == ROOT {
            let mut facts = node.facts();
            facts.kept = facts.kept.changed(set, request.now());
            return Ok(());
        }
        let until = Deadline::of(request);
        let stays = self.stay(until)?;
        let content = node.content(until)?;
        if content.is_some() {
            // They are stored together with the contents.
            drop((content, stays));
            return self.rewrite(request, inode, set);
        }
        for _ in 0..TRIES {
            match self.store.amend(until, &self.key_of(node.id)?, |kept| kept.changed(set, request.now())) {
                Err(Errno::EEXIST) => {}
                amended => {
                    let mut facts = node.facts();
                    let amended = amended.map_err(gone)?;
                    facts.has_marker |= node.is_dir;
                    facts.amended_to(amended.kept, amended.meta.filter(|_| !node.is_dir));
                    return Ok(());
                }
            }
        }
        Err(Errno::EAGAIN)
    }

    /// Changes attributes of an object without them: the call succeeds if it changes nothing, or if it
    /// sets the time of change to the present. This writes the object once more.
    fn touch(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        let attr = inode.attr();
        let is_other = |wanted: Option<SetTime>, is: i64| matches!(wanted, Some(SetTime::At(at)) if at != is);
        if is_other(set.mtime, attr.mtime) || is_other(set.atime, attr.atime) {
            return Err(Errno::EPERM);
        }
        if set.mtime == Some(SetTime::Now) && !attr.is_dir() {
            return self.rewrite(request, inode, set);
        }
        Ok(())
    }
}
