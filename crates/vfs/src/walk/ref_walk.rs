//! ref-walk: the walk that holds what it stands on.
//!
//! # What it is
//! The same steps as in [rcu-walk](super::rcu_walk), each made with a count on the place it starts from and under the directory's
//! lock, so it may sleep, ask the file system, and cannot fail because of what others do. It makes as few steps as are
//! needed: the walk goes on in rcu-walk after each.
//!
//! # How it is locked
//! One directory lock at a time, held while an entry is looked up or asked of the file system.

use crate::context::Context;
use crate::cred::{Credentials, MAY_EXEC};
use crate::dentry::{DIR, Dentry, HASHED, LINK};
use crate::errno::Errno;
use crate::fs::Request;
use crate::name::NAME_MAX;
use crate::rank::Rank;
use crate::slot::Pinned;
use crate::tree::Tree;
use crate::walk::Found;
use crate::walk::rcu_walk::{At, MAX_LINKS, RcuWalk};
use sync::rcu::ReadGuard;

/// A walk that holds a count on its place, and the text that it has still to walk.
pub(crate) struct RefWalk<'t> {
    tree: &'t Tree,
    /// `None` only while it is exchanged.
    here: Counted<'t>,
    root: Counted<'t>,
    cred: Credentials,
    rest: Vec<u8>,
    links: u32,
}

/// A count that gives itself back.
struct Counted<'t> {
    tree: &'t Tree,
    pinned: Option<Pinned>,
}

impl<'t> Counted<'t> {
    fn new(tree: &'t Tree, pinned: Pinned) -> Self {
        Self { tree, pinned: Some(pinned) }
    }

    fn dentry(&self) -> &Dentry {
        // The option is emptied by drop alone.
        self.pinned.as_ref().map_or_else(|| self.tree.root(), Pinned::get)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if let Some(pinned) = self.pinned.take() {
            self.tree.unpin(pinned);
        }
    }
}

impl<'t> RefWalk<'t> {
    /// Takes a count on the place where an rcu-walk left. `None`: it is not what it was any more.
    pub(crate) fn legitimise(tree: &'t Tree, walk: &RcuWalk<'_>, at: At<'_>, rest: Vec<u8>) -> Option<Self> {
        let here = Counted::new(tree, tree.pin_rcu(walk.guard, at.dentry, at.seq)?);
        // The context's state holds the root for as long as the read section lasts, or an earlier ref-walk does.
        let root = Counted::new(tree, tree.pin_again(walk.root));
        Some(Self { tree, here, root, cred: walk.cred.clone(), rest, links: walk.links })
    }

    /// A walk that holds the place where `path` starts.
    ///
    /// # Errors
    /// `ENOENT` if `base` is dead, which it is not while its caller holds it.
    pub(crate) fn from_start(
        context: &'t Context,
        links: u32,
        base: Option<&Dentry>,
        path: &[u8],
    ) -> Result<Self, Errno> {
        let tree = context.tree();
        let guard = tree.domain.read();
        let state = context.state(&guard);
        let root = Counted::new(tree, tree.pin_again(state.root.dentry()));
        let here = match base {
            _ if path.first() == Some(&b'/') => tree.pin_again(state.root.dentry()),
            Some(base) => tree.pin(base).ok_or(Errno::ENOENT)?,
            None => tree.pin_again(state.cwd.dentry()),
        };
        let here = Counted::new(tree, here);
        Ok(Self { tree, here, root, cred: state.cred.clone(), rest: path.to_vec(), links })
    }

    pub(crate) fn tree(&self) -> &Tree {
        self.tree
    }

    pub(crate) fn here(&self) -> &Dentry {
        self.here.dentry()
    }

    pub(crate) fn root(&self) -> &Dentry {
        self.root.dentry()
    }

    pub(crate) fn cred(&self) -> &Credentials {
        &self.cred
    }

    pub(crate) fn rest(&self) -> &[u8] {
        &self.rest
    }

    pub(crate) fn links(&self) -> u32 {
        self.links
    }

    /// Whether nothing is left to walk.
    pub(crate) fn is_done(&self, follow: bool) -> bool {
        self.rest.iter().all(|&byte| byte == b'/') && !self.must_follow(follow)
    }

    fn must_follow(&self, follow: bool) -> bool {
        self.here().has(LINK) && (follow || !self.rest.is_empty())
    }

    /// Takes what the caller wants of the place where the walk has ended.
    pub(crate) fn take_end<R, E: From<Errno>>(
        &self,
        guard: &ReadGuard<'_>,
        take: &mut dyn FnMut(&Found<'_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let at = At::sample(self.here());
        if !self.rest.is_empty() && at.object & DIR == 0 {
            return Err(Errno::ENOTDIR.into());
        }
        take(&Found::at_held(self, guard, &at))
    }

    /// One step forward: follows the link that the walk stands on, or goes to the next component.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`, `ENAMETOOLONG`, or what the file system answers.
    pub(crate) fn step(&mut self, follow: bool) -> Result<(), Errno> {
        if self.must_follow(follow) {
            return self.follow();
        }
        let start = self.rest.iter().take_while(|&&byte| byte == b'/').count();
        if start == self.rest.len() {
            return Ok(());
        }
        let end = self.rest[start..].iter().position(|&byte| byte == b'/').map_or(self.rest.len(), |at| start + at);
        let here = self.here();
        let inode = here.inode().ok_or(Errno::ENOENT)?;
        if !here.has(DIR) {
            return Err(Errno::ENOTDIR);
        }
        self.cred.may(&inode.attr(), MAY_EXEC)?;
        let next = match &self.rest[start..end] {
            b"." => None,
            b".." => self.parent(),
            name => Some(self.child(name)?),
        };
        if let Some(next) = next {
            self.here = Counted::new(self.tree, next);
        }
        self.rest.drain(..end);
        Ok(())
    }

    /// The directory above; `None` at the root.
    fn parent(&self) -> Option<Pinned> {
        let here = self.here();
        if core::ptr::eq(here, self.root()) {
            return None;
        }
        loop {
            // A held dentry keeps its parent alive, but may get another one.
            let parent = here.parent()?;
            if let Some(pinned) = self.tree.pin(parent) {
                if here.is_in(parent) {
                    return Some(pinned);
                }
                self.tree.unpin(pinned);
            }
        }
    }

    /// The entry `name`, from the cache or from the file system.
    fn child(&self, name: &[u8]) -> Result<Pinned, Errno> {
        let (tree, dir) = (self.tree, self.here());
        let _held = tree.ranks.lock(Rank::Directory, &dir.lock);
        if !dir.has(HASHED) {
            return Err(Errno::ENOENT);
        }
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let entry = tree.find_locked(|| Request::of(&self.cred), dir, name, tree.key.hash(name))?;
        entry.and_then(|entry| tree.pin(entry)).ok_or(Errno::ENOENT)
    }

    fn follow(&mut self) -> Result<(), Errno> {
        if self.links >= MAX_LINKS {
            return Err(Errno::ELOOP);
        }
        self.links += 1;
        let body = {
            let guard = self.tree.domain.read();
            let inode = self.here().inode().ok_or(Errno::ENOENT)?;
            inode.link_body.load(&guard).ok_or(Errno::EIO)?.to_vec()
        };
        let next = if body.first() == Some(&b'/') { Some(self.tree.pin_again(self.root())) } else { self.parent() };
        if let Some(next) = next {
            self.here = Counted::new(self.tree, next);
        }
        let rest = core::mem::replace(&mut self.rest, body);
        if !rest.is_empty() {
            self.rest.push(b'/');
            self.rest.extend_from_slice(&rest);
        }
        Ok(())
    }
}
