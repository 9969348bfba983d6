//! Names of a batch that are not in the cache: one request for all of them.
//!
//! # What it is
//! Before the paths that the interleaved walk left are walked one by one, the names at their ends
//! are requested together, if the cache has none of them
//! ([`FileSystem::lookup_many`](crate::FileSystem::lookup_many)). Each answer enters the cache
//! under the same conditions as the answer to a lookup. The walks then resolve each path as usual.
//! The common request only saves calls: the walks request a name again if it got no answer, or if
//! its answer was not used.
//!
//! # What it is not
//! A single-flight lookup: another thread may request one of the names at the same time. Nor is it
//! for names that expired, for callers that may leave, or for file systems whose answers are valid
//! for no time at all.
//!
//! # How it is locked
//! The directories are held. No lock is held during the request; an answer is used under the lock
//! of its name.

use crate::base::access::credentials::MAY_EXEC;
use crate::base::errno::Errno;
use crate::base::name::is_name;
use crate::fs::{NewInode, Request};
use crate::mount::context::Context;
use crate::mount::place::{Base, PathRef};
use crate::slots::inode::Inode;
use crate::slots::versions::Moment;
use crate::walk::batch::directory_len;
use crate::walk::permission::may_block;
use crate::walk::{lookup, prime};

/// A name that the cache does not have.
struct Missing<'p> {
    /// The place of its directory in the list of them.
    dir: usize,
    name: &'p [u8],
    /// Since when it is missing.
    since: Moment,
}

impl Context {
    /// Requests the last names of `paths` together, where the cache does not have them.
    #[cold]
    pub(super) fn request_missing<'p>(&self, base: Base<'_>, paths: impl Iterator<Item = &'p [u8]>) {
        let request = self.request();
        // A lookup of a caller that may leave runs on another thread, unless the file system itself lets its callers leave.
        let may_leave = request.deadline.is_some() || request.cancel().is_some() && !self.tree().is_cancellable();
        if may_leave || !self.tree().may_wait() {
            return;
        }
        let mut dirs: Vec<PathRef> = Vec::new();
        let mut missing = Vec::new();
        // Neighbours often lie in one directory.
        let mut latest: Option<(&[u8], bool)> = None;
        for path in paths {
            let Some((parent, name)) = split(path) else { continue };
            if latest.is_none_or(|(other, _)| other != parent) {
                let held = self.hold_asked(base, parent);
                latest = Some((parent, held.is_some()));
                dirs.extend(held);
            }
            let Some(dir) = dirs.last().filter(|_| latest.is_some_and(|(_, is_held)| is_held)) else { continue };
            if let Some(since) = lookup::missing_since(dir.sb(), dir.dentry(), dir.sb().named(name)) {
                missing.push(Missing { dir: dirs.len() - 1, name, since });
            }
        }
        while let Some(first) = missing.first() {
            let sb = dirs[first.dir].sb();
            let (of_one, others): (Vec<_>, Vec<_>) =
                missing.into_iter().partition(|name| core::ptr::eq(dirs[name.dir].sb(), sb));
            request_of_one(&request, &dirs, &of_one);
            missing = others;
        }
    }

    /// Returns the directory of the names to request, if the caller may search it.
    fn hold_asked(&self, base: Base<'_>, path: &[u8]) -> Option<PathRef> {
        let held = self.hold(base, path, true).ok()?;
        let (sb, inode) = (held.sb(), held.inode().ok()?);
        let is_asked = sb.keeps_answers() && held.dentry().object().is_dir();
        let may = is_asked && may_block(sb, inode, inode.rights(), &self.credentials(), MAY_EXEC).is_ok();
        may.then_some(held)
    }
}

/// Returns the directory of a path, and the name there, if it is one that a file system can have.
fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let (parent, name) = path.split_at(directory_len(path)?);
    let parent = if parent.is_empty() { b"." } else { parent };
    is_name(name).then_some((parent, name))
}

/// Requests names of one file system, and puts the answers into the cache.
fn request_of_one(request: &Request, dirs: &[PathRef], missing: &[Missing<'_>]) {
    let asked: Vec<(&Inode, &[u8])> =
        missing.iter().filter_map(|name| Some((dirs[name.dir].inode().ok()?, name.name))).collect();
    // A walk requests one name as well, and other threads wait for it.
    if asked.len() < 2 || asked.len() < missing.len() {
        return;
    }
    let sb = dirs[missing[0].dir].sb();
    let invalidations = sb.invalidations();
    let mut answers: Vec<Option<Result<NewInode, Errno>>> = missing.iter().map(|_| None).collect();
    sb.fs().lookup_many(request, &asked, &mut |at, answer| {
        if let Some(place) = answers.get_mut(at) {
            *place = Some(answer);
        }
    });
    for (missing, answer) in missing.iter().zip(answers) {
        sb.fallbacks.this().count_asked();
        let answer = match answer {
            Some(Ok(new)) => Some(new),
            Some(Err(Errno::ENOENT)) => None,
            // The walk requests it once more, and returns the error.
            _ => continue,
        };
        prime::learn_missing(
            sb,
            dirs[missing.dir].dentry(),
            missing.since,
            invalidations,
            missing.name,
            answer.as_ref(),
        );
    }
}
