//! Access control lists: permissions for single users and groups, beyond owner, group and others.
//!
//! # What it is
//! POSIX ACLs as Linux has them: an immutable [`Acl`], its form in the extended attributes
//! `system.posix_acl_access` and `system.posix_acl_default` (version 2, little endian), the access
//! check, and the ACLs that a new file inherits.
//!
//! # What it is not
//! It stores no ACL and checks no capability: the caller does both. It has no NFSv4 ACLs.
//!
//! # How it is locked
//! No lock: an ACL never changes; a change creates another one.
//!
//! # Where it comes from
//! `acl(5)`; POSIX 1003.1e draft 17; Andreas Grünbacher, "POSIX Access Control Lists on Linux"
//! (2003). Linux 6.18 decides the rest; `crates/lightfoot/tests/it/acl.rs` compares.

use crate::base::access::credentials::{Credentials, MAY_EXEC, MAY_READ, MAY_WRITE};
use crate::base::errno::Errno;

/// The version at the head of the attribute.
const VERSION: u32 = 2;

/// The id of an entry that has none, in the attribute.
const NO_ID: u32 = u32::MAX;

/// Tags in the attribute.
const USER_OBJ: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

/// All permissions of an entry.
const RWX: u16 = (MAY_READ | MAY_WRITE | MAY_EXEC) as u16;

/// The subject of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AclTag {
    /// The file's owner.
    UserObj,
    /// The user with this id.
    User(u32),
    /// The file's group.
    GroupObj,
    /// The group with this id.
    Group(u32),
    /// The mask: the most that the entries for groups and for single users can allow.
    Mask,
    /// All others.
    Other,
}

/// One entry of an ACL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AclEntry {
    /// The users that the entry is for.
    pub tag: AclTag,
    /// The permissions that the entry grants, of `MAY_*`.
    pub perm: u16,
}

/// An access control list.
///
/// # Invariants
/// [`Acl::validate`] checks these rules, except while the crate parses an attribute: entries are in
/// the order of their tags, owner, group and others have exactly one each, and a mask exists if a
/// single user or group has an entry. (Ids are in the order of the attribute, and may occur twice:
/// the first counts. Linux does not sort them either.)
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acl {
    entries: Box<[AclEntry]>,
}

/// The kinds of ACLs of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AclKind {
    /// The ACL of the file itself.
    Access,
    /// A directory's initial ACL for new entries.
    Default,
}

impl AclKind {
    /// Returns the kind with the attribute `name`.
    #[must_use]
    pub fn of_xattr(name: &[u8]) -> Option<Self> {
        [Self::Access, Self::Default].into_iter().find(|kind| kind.xattr_name() == name)
    }

    /// Returns the name of the extended attribute.
    #[must_use]
    pub fn xattr_name(self) -> &'static [u8] {
        match self {
            Self::Access => b"system.posix_acl_access",
            Self::Default => b"system.posix_acl_default",
        }
    }
}

/// The ACLs of one inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acls {
    /// The access ACL.
    pub(crate) access: Option<Acl>,
    /// A directory's default ACL.
    pub(crate) default: Option<Acl>,
}

impl Acls {
    /// Returns both ACLs, if there is any.
    pub(crate) fn some(access: Option<Acl>, default: Option<Acl>) -> Option<Self> {
        (access.is_some() || default.is_some()).then_some(Self { access, default })
    }

    /// Heap memory, in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let bytes = |acl: &Option<Acl>| acl.as_ref().map_or(0, |acl| size_of_val(acl.entries()));
        bytes(&self.access) + bytes(&self.default)
    }
}

impl Acl {
    /// Returns an ACL of these entries.
    ///
    /// # Errors
    /// As for [`Acl::validate`].
    pub fn new(entries: &[AclEntry]) -> Result<Self, Errno> {
        let acl = Self { entries: entries.into() };
        acl.validate()?;
        Ok(acl)
    }

    /// Returns the ACL equal to the permission bits of `mode`.
    #[must_use]
    pub fn from_mode(mode: u32) -> Self {
        let entry = |tag, shift: u32| AclEntry { tag, perm: bits(mode, shift) };
        Self { entries: [entry(AclTag::UserObj, 6), entry(AclTag::GroupObj, 3), entry(AclTag::Other, 0)].into() }
    }

    /// Returns the ACL for a file with this mode whose own one cannot be read: the group's bits may
    /// be a mask, so the group class has no permission.
    #[must_use]
    pub fn unreadable(mode: u32) -> Self {
        Self::from_mode(mode & !0o070)
    }

    /// Returns whether an ACL that could not be read for this reason may be readable at the next
    /// attempt. Not if the host refuses it, or has something else than an ACL.
    #[must_use]
    pub fn is_transient(errno: Errno) -> bool {
        !matches!(errno, Errno::EACCES | Errno::EPERM | Errno::EINVAL | Errno::E2BIG)
    }

    /// Returns the ACL in the value of an extended attribute; `None` for one without entries, which
    /// removes the ACL.
    ///
    /// # Errors
    /// `EINVAL` if it is malformed or as for [`Acl::validate`], `EOPNOTSUPP` for another version.
    pub fn from_xattr(value: &[u8]) -> Result<Option<Self>, Errno> {
        let acl = Self::parse(value)?;
        acl.iter().try_for_each(Self::validate)?;
        Ok(acl)
    }

    /// As [`Acl::from_xattr`], without [`Acl::validate`].
    pub(crate) fn parse(value: &[u8]) -> Result<Option<Self>, Errno> {
        if value.is_empty() {
            return Ok(None);
        }
        let (version, rest) = value.split_first_chunk().ok_or(Errno::EINVAL)?;
        if u32::from_le_bytes(*version) != VERSION {
            return Err(Errno::EOPNOTSUPP);
        }
        let (entries, rest) = rest.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(Errno::EINVAL);
        }
        let entries: Box<[_]> = entries.iter().map(entry).collect::<Result<_, _>>()?;
        Ok((!entries.is_empty()).then_some(Self { entries }))
    }

    /// Returns the value of the extended attribute.
    #[must_use]
    pub fn to_xattr(&self) -> Vec<u8> {
        let mut value = VERSION.to_le_bytes().to_vec();
        for AclEntry { tag, perm } in &self.entries {
            let id = if let AclTag::User(id) | AclTag::Group(id) = *tag { id } else { NO_ID };
            value.extend_from_slice(&rank(*tag).to_le_bytes());
            value.extend_from_slice(&perm.to_le_bytes());
            value.extend_from_slice(&id.to_le_bytes());
        }
        value
    }

    /// Checks the order of the entries, that the required ones exist, and their permissions.
    ///
    /// # Errors
    /// `EINVAL`.
    pub fn validate(&self) -> Result<(), Errno> {
        let count = |is: &dyn Fn(AclTag) -> bool| self.entries.iter().filter(|entry| is(entry.tag)).count();
        let known = |entry: &AclEntry| {
            entry.perm & !RWX == 0 && !matches!(entry.tag, AclTag::User(NO_ID) | AclTag::Group(NO_ID))
        };
        let needed = [AclTag::UserObj, AclTag::GroupObj, AclTag::Other];
        let has_needed = needed.into_iter().all(|needed| count(&|tag| tag == needed) == 1);
        let named = count(&|tag| matches!(tag, AclTag::User(_) | AclTag::Group(_)));
        let masks = count(&|tag| tag == AclTag::Mask);
        let ordered = self.entries.is_sorted_by_key(|entry| rank(entry.tag));
        let valid = self.entries.iter().all(known) && has_needed && ordered && (masks == 1 || masks == 0 && named == 0);
        if valid { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// Returns the entries, in order.
    #[must_use]
    pub fn entries(&self) -> &[AclEntry] {
        &self.entries
    }

    /// Returns the permission bits of a file that has this ACL (0777): the group's are the mask's,
    /// if there is one.
    #[must_use]
    pub fn mode_bits(&self) -> u32 {
        let perm = |tag| self.perm(tag).unwrap_or(0);
        perm(AclTag::UserObj) << 6
            | self.perm(AclTag::Mask).unwrap_or(perm(AclTag::GroupObj)) << 3
            | perm(AclTag::Other)
    }

    /// Returns the permission bits (0777), if they are equal to the ACL: the file then needs no
    /// ACL.
    #[must_use]
    pub fn equiv_mode(&self) -> Option<u32> {
        let plain = |entry: &AclEntry| matches!(entry.tag, AclTag::UserObj | AclTag::GroupObj | AclTag::Other);
        self.entries.iter().all(plain).then(|| self.mode_bits())
    }

    /// Returns the ACL after `chmod(2)` to `mode`: the group's bits go to the mask, if there is
    /// one.
    #[must_use]
    pub fn chmod(&self, mode: u32) -> Self {
        let group = if self.perm(AclTag::Mask).is_some() { AclTag::Mask } else { AclTag::GroupObj };
        let changed = |entry: &AclEntry| match entry.tag {
            AclTag::UserObj => AclEntry { perm: bits(mode, 6), ..*entry },
            AclTag::Other => AclEntry { perm: bits(mode, 0), ..*entry },
            tag if tag == group => AclEntry { perm: bits(mode, 3), ..*entry },
            _ => *entry,
        };
        Self { entries: self.entries.iter().map(changed).collect() }
    }

    /// Returns the ACL of a new entry, created with `mode` in a directory with this default ACL;
    /// `None` if the entry's mode is equal to the ACL. Changes `mode` to the entry's mode. The
    /// umask does not apply. (A new directory also gets a copy of the default ACL; a symbolic link
    /// gets nothing.)
    #[must_use]
    pub fn create_from_default(default: &Self, mode: &mut u32) -> Option<Self> {
        let made = default.chmod(*mode & default.mode_bits());
        *mode = *mode & !0o777 | made.mode_bits();
        made.equiv_mode().is_none().then_some(made)
    }

    /// Checks `mask` (of `MAY_*`) for `cred` on a file that belongs to `uid` and `gid`. Ignores capabilities.
    ///
    /// As in Linux, an ACL whose mask (or group, if there is no mask) allows nothing does not count: a user
    /// other than the owner gets the mode's permissions for the group or for others, even if an entry for
    /// this user would refuse them.
    ///
    /// # Errors
    /// `EACCES`.
    pub fn may(&self, cred: &Credentials, uid: u32, gid: u32, mask: u32) -> Result<(), Errno> {
        let mask = mask & u32::from(RWX);
        let allowed = if cred.uid == uid {
            self.allows(AclTag::UserObj, mask)
        } else if self.mode_bits() & 0o070 == 0 {
            mask == 0 || !cred.in_group(gid) && self.allows(AclTag::Other, mask)
        } else {
            self.allows_others(cred, gid, mask)
        };
        if allowed { Ok(()) } else { Err(Errno::EACCES) }
    }

    /// [`Acl::may`] for a user other than the owner.
    fn allows_others(&self, cred: &Credentials, gid: u32, mask: u32) -> bool {
        let most = self.perm(AclTag::Mask).unwrap_or(u32::from(RWX));
        let mut in_a_group = false;
        for entry in &self.entries {
            let matches = match entry.tag {
                AclTag::User(id) if id == cred.uid => return u32::from(entry.perm) & most & mask == mask,
                AclTag::GroupObj => cred.in_group(gid),
                AclTag::Group(id) => cred.in_group(id),
                _ => false,
            };
            in_a_group |= matches;
            if matches && u32::from(entry.perm) & mask == mask {
                return most & mask == mask;
            }
        }
        !in_a_group && self.allows(AclTag::Other, mask)
    }

    fn allows(&self, tag: AclTag, mask: u32) -> bool {
        self.perm(tag).is_some_and(|perm| perm & mask == mask)
    }

    /// Returns the permissions of the entry of `tag`.
    fn perm(&self, tag: AclTag) -> Option<u32> {
        self.entries.iter().find(|entry| entry.tag == tag).map(|entry| u32::from(entry.perm))
    }
}

/// Three bits of a mode.
fn bits(mode: u32, shift: u32) -> u16 {
    (mode >> shift) as u16 & RWX
}

/// Returns the tag in the attribute, which is also its place in the order of entries.
fn rank(tag: AclTag) -> u16 {
    match tag {
        AclTag::UserObj => USER_OBJ,
        AclTag::User(_) => USER,
        AclTag::GroupObj => GROUP_OBJ,
        AclTag::Group(_) => GROUP,
        AclTag::Mask => MASK,
        AclTag::Other => OTHER,
    }
}

/// Reads one entry of the attribute: tag, permissions, id. Only single users and groups have ids.
fn entry(&[t0, t1, p0, p1, i0, i1, i2, i3]: &[u8; 8]) -> Result<AclEntry, Errno> {
    let id = u32::from_le_bytes([i0, i1, i2, i3]);
    let tag = match u16::from_le_bytes([t0, t1]) {
        USER_OBJ => AclTag::UserObj,
        USER if id != NO_ID => AclTag::User(id),
        GROUP_OBJ => AclTag::GroupObj,
        GROUP if id != NO_ID => AclTag::Group(id),
        MASK => AclTag::Mask,
        OTHER => AclTag::Other,
        _ => return Err(Errno::EINVAL),
    };
    Ok(AclEntry { tag, perm: u16::from_le_bytes([p0, p1]) })
}

#[cfg(test)]
mod tests;
