//! Contexts for callers: whose eyes the tree is seen through.
//!
//! With the kernel's checks, what it lets through is done: such contexts have all capabilities, but the caller's user and group, so
//! that what is made belongs to the caller; and no right to keep set-id bits for others than root. With our own checks a
//! context has the caller's groups and, unless the caller is root, no capabilities.

use super::Caller;
use crate::options::Checks;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use vfs::{Capabilities, Context, Credentials, SetAttr};

/// Contexts that are kept; beyond, all are dropped and made again as they are needed.
const MOST: usize = 4096;

/// What a context is made of.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Of {
    uid: u32,
    gid: u32,
    umask: u32,
    groups: Box<[u32]>,
    /// What is done was checked before: with capabilities, as where the kernel checks.
    is_checked: bool,
}

/// See the [module documentation](self).
pub(super) struct Callers {
    everyone: Context,
    nobody: Context,
    checks: Checks,
    known: RwLock<HashMap<Of, Arc<Context>>>,
}

impl Callers {
    pub(super) fn new(everyone: Context, checks: Checks) -> Self {
        everyone.set_umask(0);
        let nobody = everyone.fork();
        let mut cred = Credentials::root();
        cred.capabilities = cred.capabilities.without(Capabilities::FSETID);
        nobody.set_credentials(cred);
        Self { everyone, nobody, checks, known: RwLock::default() }
    }

    /// For what needs no right, or one that was checked already.
    pub(super) fn everyone(&self) -> &Context {
        &self.everyone
    }

    /// For what was checked already, of a caller who is not known: it keeps no set-id bits.
    pub(super) fn nobody_in_particular(&self) -> &Context {
        &self.nobody
    }

    /// For looking at names: `everyone` where the kernel checks.
    pub(super) fn looking<R>(&self, caller: &Caller, f: impl FnOnce(&Context) -> R) -> R {
        match self.checks {
            Checks::Kernel => f(&self.everyone),
            Checks::Own => f(&self.with_groups(caller)),
        }
    }

    /// For making and removing names; `umask` masks the modes of what is made.
    pub(super) fn making(&self, caller: &Caller, umask: u32) -> Arc<Context> {
        let groups = match self.checks {
            Checks::Kernel => Box::default(),
            Checks::Own => groups_of(caller.pid),
        };
        self.context(Of { uid: caller.uid, gid: caller.gid, umask, groups, is_checked: self.checks == Checks::Kernel })
    }

    /// For what was checked already, whoever checks.
    pub(super) fn checked(&self, caller: &Caller) -> Arc<Context> {
        let groups = Box::default();
        self.context(Of { uid: caller.uid, gid: caller.gid, umask: 0, groups, is_checked: true })
    }

    /// For changing attributes: with groups, if they decide which set-id bits stay.
    pub(super) fn changing(&self, caller: &Caller, set: &SetAttr) -> Arc<Context> {
        if set.mode.is_some_and(|mode| mode & 0o2000 != 0) && caller.uid != 0 {
            return self.with_groups(caller);
        }
        self.making(caller, 0)
    }

    /// With the caller's groups.
    pub(super) fn with_groups(&self, caller: &Caller) -> Arc<Context> {
        let (groups, is_checked) = (groups_of(caller.pid), self.checks == Checks::Kernel);
        self.context(Of { uid: caller.uid, gid: caller.gid, umask: 0, groups, is_checked })
    }

    fn context(&self, of: Of) -> Arc<Context> {
        if let Some(known) = self.known.read().get(&of) {
            return known.clone();
        }
        let context = self.everyone.fork();
        context.set_umask(of.umask);
        context.set_credentials(credentials(&of));
        let context = Arc::new(context);
        let mut known = self.known.write();
        if known.len() >= MOST {
            known.clear();
        }
        known.entry(of).or_insert(context).clone()
    }
}

fn credentials(of: &Of) -> Credentials {
    let mut cred = Credentials::user(of.uid, of.gid, &of.groups);
    if of.uid != 0 && of.is_checked {
        cred.capabilities = Capabilities::all().without(Capabilities::FSETID.union(Capabilities::SYS_RESOURCE));
    }
    cred
}

/// The supplementary groups of a thread; none if it has gone.
fn groups_of(pid: u32) -> Box<[u32]> {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return Box::default() };
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:"));
    groups.unwrap_or_default().split_ascii_whitespace().filter_map(|group| group.parse().ok()).collect()
}
