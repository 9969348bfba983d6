//! The walk that is recorded for the table of whole paths: it notes its steps.
//!
//! # What it is
//! [`Shortcut::trace`] walks by names that are in the cache, over mount points, and through
//! symbolic links whose text is in the cache. A path that needs any other step has no trace. The
//! text of a link may have `.` and `..`, the path itself may not.
//!
//! A link with an absolute text leads to the root, which an entry's key does not have. So the path
//! must be absolute: its start is then the root. And the path must cross no mount before the link:
//! the mounts of the list lead from the start's mount to the end's mount.
//!
//! `..` leads to the parent of a directory that the list has, below the start and on one mount that
//! shows its whole file system: while that directory's sequence is the same, so is its parent.
//!
//! # How it is ordered
//! As [`recorder`](super::recorder).
//!
//! # Where it comes from
//! The rules are in [`rcu_walk`](crate::walk::rcu_walk) and [`follow`](crate::walk::follow).

use crate::base::flags::MountFlags;
use crate::base::name::{Named, is_name};
use crate::mount::place::Place;
use crate::slots::slot::{entry_hash, inode_of};
use crate::walk::follow::MAX_LINKS;
use crate::walk::paths::shortcut::Shortcut;
use crate::walk::rcu_walk::Step;

/// How a recorded walk passes a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// The walk searches the directory.
    Search,
    /// The walk looks for a mount on the directory.
    Look,
    /// The walk continues in the mount on the directory.
    Cross,
    /// The walk follows the symbolic link.
    Follow,
}

/// The end of a trace.
#[derive(Clone, Copy)]
pub(super) struct Traced<'g> {
    pub(super) end: Step<'g>,
    /// The path's last name is a symbolic link, which was followed.
    pub(super) is_followed: bool,
}

/// The text of a path or of a link.
#[derive(Clone, Copy)]
struct Text<'t> {
    bytes: &'t [u8],
    is_body: bool,
    /// Whether a link at its end is followed.
    follow: bool,
}

struct Tracer<'s, 'g, P> {
    shortcut: &'s Shortcut<'g>,
    start: Place<'g>,
    is_absolute: bool,
    is_followed: bool,
    links: u32,
    passes: P,
}

impl<'g> Shortcut<'g> {
    /// Returns the end of `path` by steps that can be recorded. `passes` is called on each place before it is searched, crossed or
    /// followed, and returns whether it may be.
    pub(super) fn trace(
        &self,
        start: Place<'g>,
        path: &[u8],
        passes: impl FnMut(&Step<'g>, Pass) -> bool,
    ) -> Option<Traced<'g>> {
        let is_absolute = path.first() == Some(&b'/');
        let mut tracer = Tracer { shortcut: self, start, is_absolute, is_followed: false, links: 0, passes };
        let text = Text { bytes: path, is_body: false, follow: self.follow };
        let end = tracer.descend(Step::sample(start.mount, start.dentry), text)?;
        Some(Traced { end, is_followed: tracer.is_followed })
    }
}

impl<'g, P: FnMut(&Step<'g>, Pass) -> bool> Tracer<'_, 'g, P> {
    /// Returns the end of a text that begins in the directory `at`.
    fn descend(&mut self, mut at: Step<'g>, text: Text<'_>) -> Option<Step<'g>> {
        let has_slash = text.bytes.last() == Some(&b'/');
        let mut names = text.bytes.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).peekable();
        // (The path of a root, and the text of no byte, have no trace.)
        if text.bytes.is_empty() || (names.peek().is_none() && !text.is_body) {
            return None;
        }
        let mut is_new = false;
        while let Some(name) = names.next() {
            if is_new {
                at = self.cross(at)?;
            }
            // The sample is older than the mark. If the sequence is still the same, a sample after
            // the mark is equal.
            if !(self.passes)(&at, Pass::Search) || at.changed() {
                return None;
            }
            (at, is_new) = match name {
                b"." if text.is_body => (at, false),
                b".." if text.is_body => (self.up(at)?, true),
                name => (self.find(at, name)?, true),
            };
            let is_last = names.peek().is_none();
            if at.object.is_link() && (!is_last || text.follow || has_slash) {
                at = self.follow(at)?;
                self.is_followed |= is_last && !text.is_body;
            }
        }
        // (`ENOENT` comes before `ENOTDIR`.)
        let is_end = !has_slash || at.object.is_dir() || at.object.is_negative();
        (is_end && !at.changed()).then_some(at)
    }

    /// Returns the entry of a name in a directory.
    fn find(&self, at: Step<'g>, name: &[u8]) -> Option<Step<'g>> {
        // (Of a name with a NUL byte the walk has another error than the cache.)
        if !is_name(name) {
            return None;
        }
        let Shortcut { tree, guard, .. } = *self.shortcut;
        let (dir, hash) = (at.dentry, tree.key.hash(name));
        let mut seq = 0;
        let dentry = tree.table().find_slow(guard, entry_hash(dir, hash), |entry| {
            seq = entry.seq.raw_begin();
            entry.is_entry_rcu(dir, Named::new(name, hash), guard)
        })?;
        let next = Step { mount: at.mount, dentry, seq, object: dentry.object() };
        (!at.changed()).then_some(next)
    }

    /// Returns the place at the top of the mounts on a directory.
    fn cross(&mut self, mut at: Step<'g>) -> Option<Step<'g>> {
        while at.object.is_mountpoint() {
            // Marked before the search for the mount: a thread that changes the mounts looks at the
            // mark.
            if !(self.passes)(&at, Pass::Look) {
                return None;
            }
            let Some(child) = at.mount.get().child_rcu(self.shortcut.guard, at.dentry) else { break };
            if !(self.passes)(&at, Pass::Cross) || at.changed() {
                return None;
            }
            at = Step::sample(child, child.get().root());
        }
        Some(at)
    }

    /// Returns the target of a link.
    fn follow(&mut self, at: Step<'g>) -> Option<Step<'g>> {
        let mount = at.mount.get();
        if self.links >= MAX_LINKS || mount.has(MountFlags::NOSYMFOLLOW) || !(self.passes)(&at, Pass::Follow) {
            return None;
        }
        self.links += 1;
        let body = inode_of(at.dentry, at.object)?.link_body.load(self.shortcut.guard)?;
        let dir = Place { mount: at.mount, dentry: at.dentry.parent()? };
        if at.changed() {
            return None;
        }
        let is_to_root = body.first() == Some(&b'/');
        if is_to_root && !(self.is_absolute && at.mount.ptr_eq(self.start.mount)) {
            return None;
        }
        let from = if is_to_root { self.start } else { dir };
        self.descend(Step::start(from), Text { bytes: body, is_body: true, follow: true })
    }

    /// Returns the directory above.
    fn up(&self, at: Step<'g>) -> Option<Step<'g>> {
        let mount = at.mount.get();
        let is_top = core::ptr::eq(at.dentry, self.start.dentry) || core::ptr::eq(at.dentry, mount.root());
        if is_top || !core::ptr::eq(mount.root(), mount.sb.root()) {
            return None;
        }
        let parent = at.dentry.parent()?;
        (!at.changed()).then(|| Step::sample(at.mount, parent))
    }
}
