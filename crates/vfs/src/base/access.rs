//! Rules of access without a tree: credentials, POSIX ACLs, extended attributes.

pub(crate) mod acl;
pub(crate) mod credentials;
pub mod xattr;
