//! Publishing: the changes of a fork of the trunk become changes of the base.
//!
//! # What it is
//! 1. Each name and each file that the fork has changed is checked: if another program has changed it in the base since the fork's
//!    first change of it, that is a conflict, and nothing happens.
//! 2. New files, directories and contents are prepared in a directory of the base, on the same file system ([`staging`]).
//! 3. The steps are written to a journal, and taken: removed and moved objects leave their places, deepest first; then new and moved
//!    objects take theirs, shallowest first; then attributes change ([`journal`]). A failure undoes all steps.
//!
//! A file whose contents changed is exchanged for a new file, so each program reads the old or the new one; a file with several names
//! is overwritten. All paths are taken from the root of the base without following links.
//!
//! Other forks see the new files where they have changed nothing, as they see changes of other programs.

mod dirs;
mod journal;
mod resolve;
mod settle;
mod staging;

pub use journal::Recovered;
pub(crate) use journal::STAGING;

use crate::commit::{Commit, CommitOptions, Conflict, ConflictKind, Conflicts};
use crate::diff::{changes, path_of};
use crate::record::{Covered, Key, Node, Part, Record, Stamp, now_ns};
use crate::rollback::Stale;
use crate::state::State;
use crate::tree::Tree;
use crate::undo::At;
use dirs::{DirSteps, Spread};
use journal::{Attributes, Found, Path, Step, Target, found, join};
use prim::atomic::Ordering::Relaxed;
use resolve::resolve;
use settle::log_moves;
use staging::{Staging, attributes};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vfs::{Attr, Errno, S_IFBLK, S_IFCHR};

/// A name of the base that changes.
struct Name {
    /// The path after the commit, and the path before.
    path: Path,
    from: Path,
    new: Option<u64>,
    /// The file that has the name in the base.
    old: Option<Attr>,
}

/// A file of the base that changes in its place.
struct Changed {
    number: u64,
    node: Arc<Node>,
    path: Path,
}

/// A file with a record, as the base has it after the commit.
struct File {
    number: u64,
    dir: u64,
    name: Key,
    path: Path,
}

struct Plan<'p> {
    state: &'p State,
    tree: &'p Tree,
    origin: Tree,
    target: Target<'p>,
    options: CommitOptions,
    names: Vec<Name>,
    changed: Vec<Changed>,
    files: Vec<File>,
    /// Names that the fork has changed.
    entries: Vec<File>,
    stale: Stale,
    conflicts: Conflicts,
    /// Directories that the base cannot rename, and their files.
    spread: Vec<Spread>,
}

/// Commits a fork of the trunk to the base.
///
/// # Errors
/// `EBUSY`: another commit runs, or was cut off; the base's.
pub(crate) fn publish(state: &State, options: CommitOptions) -> Result<Commit, Errno> {
    match publish_once(state, options) {
        // Nothing has changed. Relaxed: a hint.
        Err(Errno::EXDEV) if !state.shared.lower.keeps_dirs.swap(true, Relaxed) => publish_once(state, options),
        done => done,
    }
}

fn publish_once(state: &State, options: CommitOptions) -> Result<Commit, Errno> {
    let checked = resolve(state, options)?;
    let remade;
    let mut replaced = Vec::new();
    let (stale, done) = 'closed: {
        let _closed = state.close();
        let tree = checked.unwrap_or_else(|| state.tree.lock().clone());
        let done = changes(state, &tree, &state.origin())?;
        let mut plan = Plan::of(state, &tree, options)?;
        let target = plan.target;
        if !plan.conflicts.is_empty() {
            return Ok(Commit::Conflicts(plan.conflicts.into_keys().collect()));
        }
        if options.check_only || (plan.names.is_empty() && plan.changed.is_empty()) {
            return Ok(Commit::Done(done));
        }
        target.begin()?;
        let progress = &target.0.progress;
        progress.begin(plan.files.len() + plan.names.len() + plan.changed.len());
        let failed = |errno| (Path::new(), errno);
        let taken = plan.steps().map_err(failed).and_then(|steps| {
            log_moves(state, &steps, false).map_err(failed)?;
            // An error of the log: the next start does not find these files.
            target.run(&steps).inspect_err(|_| log_moves(state, &steps, true).unwrap_or_default())
        });
        progress.begin(0);
        // A later commit, or a recovery, removes files that stay.
        let _ended = target.end_if_settled();
        state.settled.store(now_ns(), Relaxed);
        remade = plan.remade(taken.is_ok())?;
        if let Err((path, errno)) = taken {
            let is_conflict = matches!(errno, Errno::ESTALE | Errno::EEXIST | Errno::ENOENT) && !path.is_empty();
            let conflict = || Commit::Conflicts(vec![Conflict { path, kind: ConflictKind::Name }]);
            let failed = if is_conflict { Ok(conflict()) } else { Err(errno) };
            let stamped = state.anchor(&remade).and_then(|()| plan.stamp());
            break 'closed (Stale::default(), stamped.map_err(|_| Errno::EIO).and(failed));
        }
        let stale = core::mem::take(&mut plan.stale);
        plan.settle(&remade)?;
        state.hold_remade(&remade);
        state.renew_reads()?;
        let files = plan.changed.iter().map(|changed| changed.number);
        replaced.extend(files.filter(|number| tree.node(*number).is_some_and(|node| !node.attr.is_dir())));
        (stale, Ok(Commit::Done(done)))
    };
    for other in state.shared.all().into_iter().filter(|other| other.id != state.id) {
        other.follow(&remade, &replaced);
        stale.mark(&other);
    }
    done
}

impl<'p> Plan<'p> {
    /// Returns the changes of a tree of the fork, and the conflicts.
    fn of(state: &'p State, tree: &'p Tree, options: CommitOptions) -> Result<Self, Errno> {
        let (names, changed, files, entries, stale, conflicts, spread) = Default::default();
        let (origin, target) = (state.origin(), Target(&state.shared.lower));
        let mut plan =
            Self { state, tree, origin, target, options, names, changed, files, entries, stale, conflicts, spread };
        plan.make()?;
        Ok(plan)
    }

    fn make(&mut self) -> Result<(), Errno> {
        let (tree, origin) = (self.tree, self.origin.clone());
        for (key, new, old) in tree.map.diff(&origin.map, Record::is_same) {
            match (Part::of(key), new) {
                (Some(Part::Name(dir, name)), Some(record)) => self.name((dir, name), record)?,
                (Some(Part::Node(number)), Some(Record::Node(node))) if node.attr.nlink > 0 => {
                    self.node(number, node, old.and_then(Record::node))?;
                }
                _ => {}
            }
        }
        if let Some(reads) = self.state.reads().filter(|_| self.options.reads) {
            for path in self.state.stale_reads(&reads)? {
                self.conflict(&path, ConflictKind::Read, None);
            }
        }
        Ok(())
    }

    fn conflict(&mut self, path: &[u8], kind: ConflictKind, at: Option<At>) {
        self.conflicts.insert(Conflict { path: path.to_vec(), kind }, at);
    }

    /// Plans a name that the fork has changed, if its directory is in the base.
    fn name(&mut self, (dir, name): (u64, &[u8]), record: &Record) -> Result<(), Errno> {
        let Some(path) = path_of(self.state, self.tree, (dir, name)) else { return Ok(()) };
        if !self.state.is_reached(self.tree, dir)? {
            return Ok(());
        }
        if let Record::Entry(entry) = record {
            let (number, name) = (entry.node, name.into());
            self.entries.push(File { number, dir, name, path: path.clone() });
        }
        let Some(base) = self.state.base_in(self.tree, dir)? else { return Ok(()) };
        let (new, expected) = match record {
            Record::Entry(entry) => (Some(entry.node), entry.covered),
            Record::Whiteout(covered) => (None, Some(*covered)),
            _ => return Ok(()),
        };
        if path.split(|byte| *byte == b'/').next() == Some(STAGING) {
            self.conflict(&path, ConflictKind::Reserved, None);
            return Ok(());
        }
        if base.attr_anew()?.nlink == 0 {
            self.conflict(&path, ConflictKind::Removed, None);
            return Ok(());
        }
        let found = self.state.shared.lower.find_anew(&base, name)?;
        let old = found.map(|found| found.attr_anew()).transpose()?;
        if old.is_some_and(|attr| attr.nlink == 0) {
            // Another program has removed or replaced it lately.
            self.conflict(&path, ConflictKind::Name, Some(At::Name((dir, name.into()))));
            return Ok(());
        }
        let (actual, seen) = (old.map(|attr| self.state.number(attr.ino)), expected.map(|covered| covered.node));
        if actual != seen && (actual.is_some() || new.is_some()) {
            let kind = match actual {
                None => ConflictKind::Removed,
                // The fork has the file still, and another file replaced it in the base.
                Some(_) if new == seen => ConflictKind::Contents,
                Some(_) => ConflictKind::Name,
            };
            self.conflict(&path, kind, Some(At::Name((dir, name.into()))));
        } else if new != actual {
            let from = join(&self.state.shared.lower.path(&base), name);
            if let (Some(attr), Some(covered)) = (old, expected)
                && self.tree.node(covered.node).is_none_or(|node| node.attr.nlink == 0)
                && self.has_changed_since(&from, &attr, covered)?
            {
                self.conflict(&path, ConflictKind::Removed, Some(At::Name((dir, name.into()))));
                return Ok(());
            }
            self.stale.names.push((dir, name.into()));
            self.names.push(Name { path, from, new, old });
        }
        Ok(())
    }

    /// Returns whether a file, or anything in a directory, has changed since the fork removed it.
    fn has_changed_since(&self, path: &[u8], attr: &Attr, covered: Covered) -> Result<bool, Errno> {
        // Relaxed: the closed gate orders it.
        if covered.is_before(attr, self.state.settled.load(Relaxed)) {
            return Ok(true);
        }
        if attr.is_dir() {
            for name in self.target.names(path)? {
                let below = join(path, &name);
                if self.has_changed_since(&below, &self.target.attr(&below)?, covered)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Plans the contents and attributes of a node that the fork has changed.
    fn node(&mut self, number: u64, node: &Arc<Node>, old: Option<&Arc<Node>>) -> Result<(), Errno> {
        let staging = Staging::new(self.state, self.tree, self.target);
        let path = if number == self.state.root {
            Vec::new()
        } else {
            let Some((dir, name)) = self.state.name_of(self.tree, number)? else {
                // A name that the base alone has, and no program has looked up.
                if let Some(base) = node.base.as_ref().filter(|_| staging.has_changed_contents(number, node)) {
                    let path = self.state.shared.lower.path(base);
                    self.conflict(&path, ConflictKind::Removed, Some(At::Contents(number)));
                }
                return Ok(());
            };
            let Some(path) = path_of(self.state, self.tree, (dir, &name)) else { return Ok(()) };
            self.files.push(File { number, dir, name, path: path.clone() });
            path
        };
        let (Some(base), Some(stamp)) = (&node.base, &node.stamp) else {
            self.check_rights(&path, node);
            return Ok(());
        };
        let contents = staging.has_changed_contents(number, node);
        let (mode, uid, gid) = stamp.rights;
        let of_base = || Attributes { mode, owner: (uid, gid), mtime: stamp.times.0, xattrs: None };
        let (then, mut now) = (old.map_or_else(of_base, |old| attributes(old)), attributes(node));
        if node.attr.is_dir() {
            now.mtime = then.mtime;
        }
        if !contents && now == then {
            return Ok(());
        }
        let attr = base.attr_anew()?;
        if attr.nlink == 0 {
            self.conflict(&path, ConflictKind::Removed, Some(At::Contents(number)));
        } else if Stamp::of(&attr) != *stamp {
            let kind = if contents { ConflictKind::Contents } else { ConflictKind::Attributes };
            self.conflict(&path, kind, Some(At::file(number, kind)));
        }
        self.check_rights(&path, node);
        self.stale.nodes.push(number);
        self.stale.names.extend(self.tree.place(number));
        self.changed.push(Changed { number, node: node.clone(), path });
        Ok(())
    }

    /// Checks that a file needs no privilege.
    fn check_rights(&mut self, path: &[u8], node: &Node) {
        let kind = node.attr.kind();
        let is_same = node.stamp.is_some_and(|stamp| stamp.rights == (node.attr.mode, node.attr.uid, node.attr.gid));
        let root = self.state.shared.lower.root.attr().unwrap_or_default();
        let is_owned = [root.uid, self.state.shared.lower.context.credentials().uid].contains(&node.attr.uid);
        let is_system = |name: &[u8]| name.starts_with(b"security.") || name.starts_with(b"trusted.");
        let has_system = node.xattrs.iter().any(|xattrs| xattrs.keys().any(|name| is_system(name)));
        let needs =
            !is_owned || node.attr.mode & 0o6000 != 0 && !node.attr.is_dir() || matches!(kind, S_IFBLK | S_IFCHR);
        if !self.options.privileged && ((needs && !is_same) || has_system) {
            self.conflict(path, ConflictKind::Privilege, None);
        }
    }

    /// Prepares all files, and returns the steps.
    fn steps(&mut self) -> Result<Vec<Step>, Errno> {
        let mut staging = Staging::new(self.state, self.tree, self.target);
        let (mut places, mut leaving) = (Vec::new(), HashMap::<Path, Found>::new());
        for name in &self.names {
            let leaves = name.old.map(|attr| (name.from.clone(), found(&attr)));
            let number = match name.new {
                Some(number) if !staging.is_base_dir(number) => number,
                of_base => {
                    staging.moved.extend(of_base.map(|number| (number, name.path.clone())));
                    leaving.extend(leaves);
                    continue;
                }
            };
            let at = staging.path();
            staging.node(number, &at, &name.path)?;
            let made = found(&self.target.attr(&at)?);
            let is_made_dir = self.tree.node(number).is_some_and(|node| node.attr.is_dir());
            let step = match name.old.filter(|attr| !attr.is_dir() && !is_made_dir) {
                Some(attr) => Step::Swap { staged: at, at: name.path.clone(), ino: made.0, found: found(&attr) },
                None => {
                    leaving.extend(leaves);
                    Step::Move { from: at, to: name.path.clone(), found: made }
                }
            };
            places.push((name.path.clone(), step));
        }
        self.move_dirs(&mut leaving, &mut places, &mut staging)?;
        let mut dirs = DirSteps::default();
        if self.target.0.keeps_dirs.load(Relaxed) {
            dirs = self.spread(&mut leaving, &mut places, &mut staging)?;
        }
        let mut steps = core::mem::take(&mut dirs.empty);
        steps.extend(self.leave(leaving, &mut places, &mut staging));
        if dirs.is_in_the_way(&places) {
            steps.append(&mut dirs.remove);
        }
        places.sort_by_key(|(path, _)| depth(path));
        steps.extend(places.into_iter().map(|(_, step)| step).chain(dirs.change));
        let named: HashSet<u64> = self.names.iter().filter_map(|name| name.new).collect();
        for Changed { number, node, path } in &self.changed {
            let contents = staging.has_changed_contents(*number, node);
            if contents && staging.is_replaced(*number, node) {
                if named.contains(number) || !self.is_in_place(*number)? {
                    continue;
                }
                let staged = staging.path();
                staging.node(*number, &staged, path)?;
                let old = node.base.as_ref().ok_or(Errno::ESTALE)?.attr_anew()?;
                let ino = self.target.attr(&staged)?.ino;
                steps.push(Step::Swap { staged, at: path.clone(), ino, found: found(&old) });
                continue;
            }
            if contents {
                steps.push(staging.overwrite(node, path.clone())?);
            }
            steps.push(staging.change(node, path.clone())?);
        }
        steps.extend(dirs.remove);
        Ok(steps)
    }

    /// Returns whether a file whose contents changed is not in a directory that is prepared anyway.
    fn is_in_place(&self, number: u64) -> Result<bool, Errno> {
        let Some((dir, _)) = self.state.name_of(self.tree, number)? else { return Ok(false) };
        Ok(self.state.base_in(self.tree, dir)?.is_some())
    }

    /// Returns the steps that move objects out of the way, and corrects the steps that move them to their places.
    fn leave(
        &self,
        leaving: HashMap<Path, Found>,
        places: &mut [(Path, Step)],
        staging: &mut Staging<'_>,
    ) -> Vec<Step> {
        let mut leaving: Vec<(Path, Found)> = leaving.into_iter().collect();
        leaving.sort_by_key(|(path, _)| (core::cmp::Reverse(depth(path)), path.clone()));
        let aside: HashMap<Path, Path> = leaving.iter().map(|(from, _)| (from.clone(), staging.path())).collect();
        for (_, place) in places {
            if let Step::Move { from, .. } = place {
                *from = aside.get(from).unwrap_or(from).clone();
            }
        }
        leaving.into_iter().map(|(from, found)| Step::Move { to: aside[&from].clone(), from, found }).collect()
    }
}

fn depth(path: &[u8]) -> usize {
    path.iter().filter(|byte| **byte == b'/').count()
}
