//! Extended attributes and ACLs of nodes: their records', or the base's.

use crate::record::{Node, Xattrs};
use crate::state::State;
use std::sync::Arc;
use vfs::{Acl, AclKind, Errno};

impl State {
    /// Returns the access and the default ACL of a node.
    pub(crate) fn acls(&self, node: u64, current: &Node) -> Result<[Option<Acl>; 2], Errno> {
        let (lower, is_of_base) = (&self.shared.lower, self.tree.lock().node(node).is_none());
        if is_of_base && lower.has_no_acl(node, current.attr.ctime) {
            return Ok([None, None]);
        }
        let acl = |kind: AclKind| match self.xattr(current, kind.xattr_name()) {
            Ok(value) => Acl::from_xattr(&value),
            Err(Errno::ENODATA | Errno::EOPNOTSUPP) => Ok(None),
            Err(errno) => Err(errno),
        };
        let default_acl = if current.attr.is_dir() { acl(AclKind::Default)? } else { None };
        let found = [acl(AclKind::Access)?, default_acl];
        if is_of_base && found.iter().all(Option::is_none) {
            lower.note_no_acl(node, current.attr.ctime);
        }
        Ok(found)
    }

    /// Returns the value of an extended attribute: `ENODATA`.
    pub(crate) fn xattr(&self, current: &Node, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        match (&current.xattrs, &current.base) {
            (Some(xattrs), _) => xattrs.get(name).cloned().ok_or(Errno::ENODATA),
            (None, Some(base)) => self.shared.lower.xattr(base, name),
            (None, None) => Err(Errno::ENODATA),
        }
    }

    /// Returns all extended attributes.
    pub(crate) fn xattrs(&self, current: &Node) -> Result<Arc<Xattrs>, Errno> {
        if let Some(xattrs) = &current.xattrs {
            return Ok(xattrs.clone());
        }
        let Some(base) = &current.base else { return Ok(Arc::default()) };
        self.shared.lower.xattrs(base).map(Arc::new)
    }
}
