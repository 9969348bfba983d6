//! Rules of access without a tree: [`credentials`], POSIX ACLs ([`acl`]), extended attributes ([`xattr`]).

pub(crate) mod acl;
pub(crate) mod credentials;
pub mod xattr;
