//! Contexts for callers: the credentials with which a request acts on the tree.
//!
//! If the kernel checks permissions, a context has the caller's user and group, so that new files belong to the caller, and
//! all capabilities but those that keep set-id bits and exceed quotas. If Lightfoot checks, a context has the caller's groups
//! and, unless the caller is root, no capabilities.
//!
//! A request of a mount that may map users ([`SessionOptions::idmap`]) names no user unless it
//! creates a file. The kernel has checked the request, so its context is root's, but without the
//! right to keep set-id bits, and to exceed quotas. If neither has checked it, the context is
//! nobody's: neither an owner, nor in a group. The groups in `/proc` are of another mapping, so
//! contexts have no groups.
//!
//! A session of a context's part of the tree ([`Part::below`](super::Part::below)) has the context's credentials for everybody.

use super::{Caller, Who};
use crate::options::{Checks, SessionOptions};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use vfs::{Capabilities, Context, Credentials, PathRef, SetAttr};

/// Number of cached contexts. When the cache is full, all are dropped.
const MOST: usize = 4096;

/// The properties of a context.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ContextKey {
    who: Who,
    umask: u32,
    groups: Box<[u32]>,
    /// The request was checked before: the context has capabilities.
    is_checked: bool,
}

/// See the [module documentation](self).
pub(super) struct Callers {
    everyone: Arc<Context>,
    unknown: Context,
    checks: Checks,
    /// See [`SessionOptions::idmap`].
    is_mapped: bool,
    /// The credentials with which everybody acts; `None`: callers act with their own.
    acts_as: Option<Credentials>,
    known: RwLock<HashMap<ContextKey, Arc<Context>>>,
}

impl Callers {
    pub(super) fn new(everyone: Context, options: &SessionOptions, acts_as: Option<Credentials>) -> Self {
        everyone.set_umask(0);
        let unknown = everyone.fork();
        let mut cred = acts_as.clone().unwrap_or_else(Credentials::root);
        everyone.set_credentials(cred.clone());
        cred.capabilities = cred.capabilities.without(Capabilities::FSETID);
        unknown.set_credentials(cred);
        let (checks, is_mapped) = (options.checks, options.idmap);
        Self { everyone: Arc::new(everyone), unknown, checks, is_mapped, acts_as, known: RwLock::default() }
    }

    /// Returns whether everybody may find files by their numbers in the tree, of which `root` is
    /// shown. They may not if the tree has several mounts: the kernel gives handles of all files of
    /// a mount, or of none, and a handle of a file of another mount would end early.
    pub(super) fn finds_numbers(&self, root: &PathRef) -> bool {
        self.acts_as.is_none() && self.everyone.finds_numbers(root) && self.everyone.mounts().len() == 1
    }

    /// Returns whether everybody acts with the same credentials.
    pub(super) fn act_as_one(&self) -> bool {
        self.acts_as.is_some()
    }

    /// Returns whether everybody acts with credentials that may set labels.
    pub(super) fn may_label(&self) -> bool {
        self.acts_as.as_ref().is_none_or(|cred| cred.capabilities.contains(Capabilities::SYS_ADMIN))
    }

    /// Returns a context for operations that need no permission, or whose permission was checked
    /// already.
    pub(super) fn everyone(&self) -> &Context {
        &self.everyone
    }

    /// Returns a context for operations that were checked already and whose caller is unknown: they
    /// clear set-id bits.
    pub(super) fn unknown(&self) -> &Context {
        &self.unknown
    }

    /// Calls `f` with a context for reading: `everyone` if the kernel checks.
    pub(super) fn looking<R>(&self, caller: &Caller, f: impl FnOnce(&Context) -> R) -> R {
        match self.checks {
            Checks::Kernel => f(&self.everyone),
            Checks::Own => f(&self.with_groups(caller)),
        }
    }

    /// Returns a context that creates and removes names; `umask` applies to the modes of new files.
    pub(super) fn making(&self, caller: &Caller, umask: u32) -> Arc<Context> {
        let groups = match self.checks {
            Checks::Kernel => Box::default(),
            Checks::Own => self.groups_of(caller),
        };
        self.context(caller, umask, groups, self.checks == Checks::Kernel)
    }

    /// Returns a context that creates and removes names in `dirs`: with the caller's groups, if the
    /// right to do so may come from a group. A host directory checks once more. `mode` is the mode
    /// of a new file.
    pub(super) fn making_in(&self, caller: &Caller, umask: u32, mode: u32, dirs: &[&PathRef]) -> Arc<Context> {
        let by_group = |dir: &&PathRef| {
            dir.attr().is_ok_and(|dir| {
                let is_open = dir.mode & 0o022 == 0o022 && mode & 0o2000 == 0;
                !caller.who.is(dir.uid) && dir.mode & 0o020 != 0 && !is_open
            })
        };
        if self.checks == Checks::Own || caller.who.is_root() || !dirs.iter().any(by_group) {
            return self.making(caller, umask);
        }
        let groups = self.groups_of(caller);
        self.context(caller, umask, groups, true)
    }

    /// Returns a context that makes a file, if the kernel checks: with the group that the request
    /// names, if any.
    pub(super) fn making_with_group(&self, caller: &Caller, umask: u32) -> Arc<Context> {
        let groups = caller.group.into_iter().filter(|_| self.acts_as.is_none()).collect();
        self.context(caller, umask, groups, true)
    }

    /// Returns a context for operations that the kernel or the session has checked already.
    pub(super) fn checked(&self, caller: &Caller) -> Arc<Context> {
        self.context(caller, 0, Box::default(), true)
    }

    /// Returns a context that changes attributes of a file of `owner`: with the caller's groups, if
    /// the groups decide whether the caller may do so, or whether set-id bits stay. If the caller is
    /// unknown and the contents stay, the kernel has decided, and has removed the bits that the caller
    /// may not give.
    pub(super) fn changing(&self, caller: &Caller, owner: u32, set: &SetAttr) -> Arc<Context> {
        if caller.who == Who::Unknown && self.checks == Checks::Kernel && set.size.is_none() {
            return self.everyone.clone();
        }
        let is_owner = caller.who.is(owner);
        let by_group = set.gid.is_some() || set.mode.is_some_and(|mode| mode & 0o2000 != 0) || !is_owner;
        if by_group && !caller.who.is_root() {
            return self.with_groups(caller);
        }
        self.making(caller, 0)
    }

    /// Returns a context with the caller's groups.
    pub(super) fn with_groups(&self, caller: &Caller) -> Arc<Context> {
        let (groups, is_checked) = (self.groups_of(caller), self.checks == Checks::Kernel);
        self.context(caller, 0, groups, is_checked)
    }

    /// Returns whether the caller is root, or in a group.
    pub(super) fn is_in_group(&self, caller: &Caller, gid: u32) -> bool {
        let has = |user: super::User| user.gid == gid || self.groups_of(caller).contains(&gid);
        caller.who.is_root() || matches!(caller.who, Who::Known(user) if has(user))
    }

    /// Returns a context with the caller's groups and, unless the caller is root, no capabilities.
    pub(super) fn unprivileged(&self, caller: &Caller) -> Arc<Context> {
        let groups = self.groups_of(caller);
        self.context(caller, 0, groups, false)
    }

    /// Returns the supplementary groups of a caller, where they matter.
    fn groups_of(&self, caller: &Caller) -> Box<[u32]> {
        if self.acts_as.is_some() || self.is_mapped { Box::default() } else { groups_of(caller) }
    }

    fn context(&self, caller: &Caller, umask: u32, groups: Box<[u32]>, is_checked: bool) -> Arc<Context> {
        let key = ContextKey { who: caller.who, umask, groups, is_checked };
        if let Some(known) = self.known.read().get(&key) {
            return known.clone();
        }
        let context = self.everyone.fork();
        context.set_umask(key.umask);
        context.set_credentials(self.acts_as.clone().unwrap_or_else(|| credentials(&key)));
        let context = Arc::new(context);
        let mut known = self.known.write();
        if known.len() >= MOST {
            known.clear();
        }
        known.entry(key).or_insert(context).clone()
    }
}

fn credentials(key: &ContextKey) -> Credentials {
    let mut cred = match key.who {
        Who::Known(user) => Credentials::user(user.uid, user.gid, &key.groups),
        Who::Unknown if key.is_checked => Credentials::root(),
        Who::Unknown => Credentials::user(u32::MAX, u32::MAX, &[]),
    };
    if key.is_checked && !key.who.is_root() {
        cred.capabilities = Capabilities::all().without(Capabilities::FSETID.union(Capabilities::SYS_RESOURCE));
    }
    cred
}

/// Reads the supplementary groups of a caller. Returns none if the thread of the caller has exited,
/// or if the caller is root: the groups of root decide nothing.
fn groups_of(&Caller { who, pid, .. }: &Caller) -> Box<[u32]> {
    if who.is_root() {
        return Box::default();
    }
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return Box::default() };
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    groups.unwrap_or_default().split_ascii_whitespace().filter_map(|group| group.parse().ok()).collect()
}
