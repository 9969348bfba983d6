//! Extended attributes: rules for names, lengths and access.
//!
//! # What it is
//! The rules of `xattr(7)` that hold in every file system, as functions of the credentials and of
//! the file's attributes.
//!
//! # What it is not
//! It stores nothing, and does not check whether a mount is read-only.
//!
//! # Where it comes from
//! `xattr(7)`, `setxattr(2)`, `getxattr(2)`, `listxattr(2)`, `capabilities(7)` (file capabilities).
//! The order of errors is as in Linux 6.18 on tmpfs; `crates/lightfoot/tests/it/acl.rs` compares.
//!
//! # Limitations
//! Linux lets everyone set an empty `security.capability`, which takes the capabilities from a
//! file; here it needs `CAP_SETFCAP`, as every other value of it does. User namespaces: a
//! capability attribute with a root user is stored as it comes.

use crate::base::access::acl::{Acl, AclKind};
use crate::base::access::credentials::{Capabilities, Credentials, MAY_READ, MAY_WRITE};
use crate::base::attr::{Attr, S_IFDIR, S_IFLNK, S_IFREG, S_ISVTX};
use crate::base::errno::Errno;

/// Longest name, with its prefix, in bytes.
const XATTR_NAME_MAX: usize = 255;

/// Longest value in bytes.
const XATTR_SIZE_MAX: usize = 65_536;

/// A program's capabilities: `capabilities(7)`.
const CAPABILITY: &[u8] = b"security.capability";

/// An operation on an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum XattrUse<'v> {
    /// Read its value.
    Get,
    /// Set this value.
    Set(&'v [u8]),
    /// Remove it.
    Remove,
}

/// The kinds of attributes, by the prefix of the name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum XattrNamespace {
    User,
    Trusted,
    Security,
    System,
}

/// Checks the lengths of `name` and of the value.
///
/// # Errors
/// `ERANGE` for a name that is empty, too long, or has a NUL byte (which no system call can pass); `E2BIG`
/// for the value.
pub(crate) fn check_lengths(name: &[u8], usage: XattrUse<'_>) -> Result<(), Errno> {
    if name.is_empty() || name.len() > XATTR_NAME_MAX || name.contains(&0) {
        return Err(Errno::ERANGE);
    }
    match usage {
        XattrUse::Set(value) if value.len() > XATTR_SIZE_MAX => Err(Errno::E2BIG),
        _ => Ok(()),
    }
}

/// Returns whether `cred` may use the attribute `name` of the file with `attr`. For ACLs see
/// [`acl_to_set`] and [`may_get_acl`]. `may` is the permission check of the file, with a mask of
/// `MAY_*`; it is called if the kind of name needs it.
///
/// # Errors
/// `ERANGE`, `E2BIG`: the lengths of name and value. `EOPNOTSUPP`: an unknown kind of name.
/// `EINVAL`: a prefix and nothing after it; a malformed `security.capability`. `EPERM`: a change
/// without the capability; `user.` on anything but regular files and directories, or in a sticky
/// directory by another user than its owner. `ENODATA`: such a name, to get it. The errors of
/// `may`.
pub fn may_use(
    cred: &Credentials,
    attr: &Attr,
    name: &[u8],
    usage: XattrUse<'_>,
    may: impl FnOnce(u32) -> Result<(), Errno>,
) -> Result<(), Errno> {
    check_lengths(name, usage)?;
    let is_get = usage == XattrUse::Get;
    let refusal = if is_get { Errno::ENODATA } else { Errno::EPERM };
    let mask = if is_get { MAY_READ } else { MAY_WRITE };
    let has = |capability| cred.capabilities.contains(capability);
    let Some((namespace, rest)) = namespace_of(name) else {
        // The permission is checked before the kind of name.
        may(mask)?;
        return Err(Errno::EOPNOTSUPP);
    };
    match namespace {
        XattrNamespace::User => {
            if !matches!(attr.kind(), S_IFREG | S_IFDIR) {
                return Err(refusal);
            }
            if !is_get && attr.kind() == S_IFDIR && attr.mode & S_ISVTX != 0 && !cred.owns(attr) {
                return Err(Errno::EPERM);
            }
            may(mask)?;
        }
        XattrNamespace::Trusted if !has(Capabilities::SYS_ADMIN) => return Err(refusal),
        XattrNamespace::Security if name == CAPABILITY => may_use_capability(cred, usage)?,
        XattrNamespace::Security if !is_get && !has(Capabilities::SYS_ADMIN) => return Err(Errno::EPERM),
        XattrNamespace::System => return Err(Errno::EOPNOTSUPP),
        XattrNamespace::Trusted | XattrNamespace::Security => {}
    }
    if rest.is_empty() { Err(Errno::EINVAL) } else { Ok(()) }
}

/// Returns whether `cred` may use a file's capabilities in this way.
fn may_use_capability(cred: &Credentials, usage: XattrUse<'_>) -> Result<(), Errno> {
    match usage {
        XattrUse::Get => return Ok(()),
        XattrUse::Set(value) if !value.is_empty() && !is_capability(value) => return Err(Errno::EINVAL),
        XattrUse::Set(_) | XattrUse::Remove => {}
    }
    if cred.capabilities.contains(Capabilities::SETFCAP) { Ok(()) } else { Err(Errno::EPERM) }
}

/// Returns whether `value` has the length of its revision (the highest byte of the first word).
fn is_capability(value: &[u8]) -> bool {
    matches!((value.len(), value.get(3)), (20, Some(2)) | (24, Some(3)))
}

/// Returns whether a list for `cred` contains `name`.
#[must_use]
pub(crate) fn is_listed(cred: &Credentials, name: &[u8]) -> bool {
    let trusted = matches!(namespace_of(name), Some((XattrNamespace::Trusted, _)));
    !trusted || cred.capabilities.contains(Capabilities::SYS_ADMIN)
}

/// Checks that the file with `attr` can have an ACL at all; everyone may get it.
///
/// # Errors
/// `EOPNOTSUPP` for a symbolic link. `ENODATA` for the default ACL of anything but a directory.
pub fn may_get_acl(attr: &Attr, kind: AclKind) -> Result<(), Errno> {
    match (attr.kind(), kind) {
        (S_IFLNK, _) => Err(Errno::EOPNOTSUPP),
        (S_IFDIR, _) | (_, AclKind::Access) => Ok(()),
        (_, AclKind::Default) => Err(Errno::ENODATA),
    }
}

/// Returns the ACL that `cred` sets on the file with `attr` by this value of the attribute, or by
/// its removal (an empty value); `None`: the file then has no ACL.
///
/// An access ACL also changes the mode ([`Acl::mode_bits`]). An ACL equal to the mode is not kept
/// ([`Acl::equiv_mode`]). Set-group-id is cleared unless the caller is in the file's group or has
/// `CAP_FSETID`.
///
/// # Errors
/// The errors of [`Acl::from_xattr`]; `EOPNOTSUPP` for a symbolic link, `EACCES` for a default ACL
/// on anything but a directory, `EPERM` for a user other than the owner.
pub fn acl_to_set(cred: &Credentials, attr: &Attr, kind: AclKind, value: &[u8]) -> Result<Option<Acl>, Errno> {
    let acl = Acl::parse(value)?;
    if attr.kind() == S_IFLNK {
        return Err(Errno::EOPNOTSUPP);
    }
    if kind == AclKind::Default && attr.kind() != S_IFDIR {
        // Without an ACL, and on a file that cannot have one: nothing changes.
        return if acl.is_some() { Err(Errno::EACCES) } else { Ok(None) };
    }
    if !cred.owns(attr) {
        return Err(Errno::EPERM);
    }
    acl.iter().try_for_each(Acl::validate)?;
    Ok(acl)
}

/// Returns the kind of `name`, and the part after the prefix.
fn namespace_of(name: &[u8]) -> Option<(XattrNamespace, &[u8])> {
    let prefixes = [
        (&b"user."[..], XattrNamespace::User),
        (b"trusted.", XattrNamespace::Trusted),
        (b"security.", XattrNamespace::Security),
        (b"system.", XattrNamespace::System),
    ];
    prefixes.into_iter().find_map(|(prefix, namespace)| Some((namespace, name.strip_prefix(prefix)?)))
}

#[cfg(test)]
mod tests;
