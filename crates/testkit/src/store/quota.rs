//! Quotas of users in a [`Store`](super::Store).
//!
//! # What it is
//! The use of a user is added up at each change. So nothing can be counted twice, nor forgotten.
//!
//! # How it is locked
//! By the caller.
//!
//! # Where it comes from
//! The rules of Linux (`fs/quota/dquot.c`): a file counts for its owner, also when another user writes it; a change of owner moves
//! the charge or fails; a privileged caller is not limited.

use super::nodes::{Node, Nodes, storage_of};
use vfs::{Errno, NewNode};

/// The quota of each user in a [`Store`](super::Store). Changes by callers with `CAP_SYS_RESOURCE`,
/// and changes behind the trees, count but are not refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreQuota {
    /// Bytes of storage, in pages of 4096 bytes. A write takes as much as there is room for.
    pub bytes: u64,
    /// Files of any type, those that are open without a name included; `None`: no limit.
    pub files: Option<u64>,
}

/// An amount of storage.
#[derive(Clone, Copy, Default)]
struct Amount {
    bytes: u64,
    files: u64,
}

impl Amount {
    fn of(node: &Node) -> Self {
        Self { bytes: node.storage(), files: 1 }
    }

    fn and(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, files: self.files + other.files }
    }
}

/// The quota that limits one request: none for a privileged caller.
#[derive(Clone, Copy)]
pub(super) struct Limit(pub(super) Option<StoreQuota>);

impl Limit {
    /// Checks that the owner of the new file has room for it: `EDQUOT`.
    pub(super) fn check_new(self, nodes: &Nodes, new: &NewNode<'_>) -> Result<(), Errno> {
        let bytes = storage_of(new.link_body.unwrap_or_default().len());
        self.check(nodes, new.attr.uid, Amount { bytes, files: 1 })
    }

    /// Checks that `user` has room for the file of this number, or owns it already: `EDQUOT`, `ESTALE`.
    pub(super) fn check_owner(self, nodes: &Nodes, node: u64, user: u32) -> Result<(), Errno> {
        let node = nodes.get(node)?;
        if node.attr.uid == user { Ok(()) } else { self.check(nodes, user, Amount::of(node)) }
    }

    /// Returns where the contents of the file of this number must end, so that its owner stays
    /// within the quota: `ESTALE`.
    pub(super) fn most(self, nodes: &Nodes, node: u64) -> Result<u64, Errno> {
        let node = nodes.get(node)?;
        let Some(quota) = self.0 else { return Ok(u64::MAX) };
        let left = quota.bytes.saturating_sub(owned(nodes, node.attr.uid).bytes);
        Ok(node.storage() + left / storage_of(1) * storage_of(1))
    }

    fn check(self, nodes: &Nodes, user: u32, more: Amount) -> Result<(), Errno> {
        let Some(quota) = self.0 else { return Ok(()) };
        let after = owned(nodes, user).and(more);
        // A user above one limit may still take the other kind.
        let over = |more: u64, after: u64, limit: u64| more > 0 && after > limit;
        let refused = over(more.bytes, after.bytes, quota.bytes)
            || over(more.files, after.files, quota.files.unwrap_or(u64::MAX));
        if refused { Err(Errno::EDQUOT) } else { Ok(()) }
    }
}

/// Returns the use of `user`.
fn owned(nodes: &Nodes, user: u32) -> Amount {
    nodes.all().filter(|node| node.attr.uid == user).map(Amount::of).fold(Amount::default(), Amount::and)
}
