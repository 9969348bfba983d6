//! Rights: ACLs, and set-id bits.

use crate::fixture::{Fixture, MAKE, write_all};
use crate::outcome::{Failure, OrFail, Outcome, needs, same};
use vfs::{Acl, AclEntry, AclKind, AclTag, Base, Context, Credentials, Errno, OpenFlags, SetAttr, SetXattr};

const OWNER: u32 = 1000;
const FRIEND: u32 = 2000;
const STRANGER: u32 = 3000;

/// Returns a context of another user in the same tree.
fn of_user(c: &Fixture, user: u32) -> Context {
    let context = c.of(Credentials::user(user, user, &[]));
    context.set_umask(0o077);
    context
}

/// Owner `rw-`, group and others nothing, and the friend `perm`.
fn with_friend(perm: u16) -> Result<Acl, Failure> {
    let entry = |tag, perm| AclEntry { tag, perm };
    let entries = [
        entry(AclTag::UserObj, 6),
        entry(AclTag::User(FRIEND), perm),
        entry(AclTag::GroupObj, 0),
        entry(AclTag::Mask, 7),
        entry(AclTag::Other, 0),
    ];
    Acl::new(&entries).or_fail("an ACL")
}

fn set_acl(c: &Fixture, path: &str, kind: AclKind, acl: &Acl) -> Outcome {
    let set = c.at().set_xattr(Base::CWD, path.as_bytes(), true, kind.xattr_name(), &acl.to_xattr(), SetXattr::Any);
    set.or_fail(format_args!("setting an ACL of {path}"))
}

fn acl(c: &Fixture, path: &str, kind: AclKind) -> Result<Option<Acl>, Errno> {
    match c.at().get_xattr(Base::CWD, path.as_bytes(), true, kind.xattr_name()) {
        Ok(value) => Acl::from_xattr(&value),
        Err(Errno::ENODATA) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn chmod(c: &Fixture, path: &str, mode: u32) -> Outcome {
    let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
    c.at().set_attr(Base::CWD, path.as_bytes(), true, &set).or_fail(format_args!("chmod {path}"))
}

fn chown(c: &Fixture, path: &str) -> Outcome {
    let set = SetAttr { uid: Some(OWNER), gid: Some(OWNER), ..SetAttr::default() };
    c.at().set_attr(Base::CWD, path.as_bytes(), true, &set).or_fail(format_args!("chown {path}"))
}

/// Checks which users may read, and which may write.
fn check_opens(c: &Fixture, path: &str, may: [(u32, bool, bool); 3]) -> Outcome {
    for (user, may_read, may_write) in may {
        for (flags, may) in [(OpenFlags::RDONLY, may_read), (OpenFlags::WRONLY, may_write)] {
            let opened = of_user(c, user).open(Base::CWD, path.as_bytes(), flags, 0).map(drop);
            let expected = if may { Ok(()) } else { Err(Errno::EACCES) };
            same(format_args!("open of {path} by {user} with {flags:?}"), opened, expected)?;
        }
    }
    Ok(())
}

pub(crate) fn an_acl_is_kept_and_obeyed(c: &Fixture) -> Outcome {
    needs!(c.features().acls);
    c.write("/file", b"text")?;
    chown(c, "/file")?;
    chmod(c, "/file", 0o600)?;
    c.twice(|| check_opens(c, "/file", [(OWNER, true, true), (FRIEND, false, false), (STRANGER, false, false)]))?;
    set_acl(c, "/file", AclKind::Access, &with_friend(4)?)?;
    c.twice(|| {
        same("the ACL", acl(c, "/file", AclKind::Access), Ok(Some(with_friend(4)?)))?;
        same("the mode has the mask", c.attr("/file").map(|attr| attr.mode & 0o777), Ok(0o670))?;
        check_opens(c, "/file", [(OWNER, true, true), (FRIEND, true, false), (STRANGER, false, false)])
    })?;
    chmod(c, "/file", 0o600)?;
    c.twice(|| check_opens(c, "/file", [(OWNER, true, true), (FRIEND, false, false), (STRANGER, false, false)]))?;
    let removed = c.at().remove_xattr(Base::CWD, b"/file", true, AclKind::Access.xattr_name());
    removed.or_fail("removing the ACL")?;
    chmod(c, "/file", 0o640)?;
    c.twice(|| {
        same("the removed ACL", acl(c, "/file", AclKind::Access), Ok(None))?;
        check_opens(c, "/file", [(OWNER, true, true), (FRIEND, false, false), (STRANGER, false, false)])
    })
}

pub(crate) fn a_default_acl_is_inherited(c: &Fixture) -> Outcome {
    needs!(c.features().acls);
    c.mkdir("/d").or_fail("mkdir /d")?;
    set_acl(c, "/d", AclKind::Default, &with_friend(6)?)?;
    chown(c, "/d")?;
    let owner = of_user(c, OWNER);
    owner.mkdir(Base::CWD, b"/d/sub", 0o777).or_fail("mkdir /d/sub")?;
    drop(owner.open(Base::CWD, b"/d/file", MAKE, 0o640).or_fail("making /d/file")?);
    c.twice(|| {
        same("the default ACL of the subdirectory", acl(c, "/d/sub", AclKind::Default), Ok(Some(with_friend(6)?)))?;
        same("the default ACL of the file", acl(c, "/d/file", AclKind::Default), Ok(None))?;
        // The requested mode limits the ACL. The umask does not.
        same("the mode of the file", c.attr("/d/file").map(|attr| attr.mode & 0o777), Ok(0o640))?;
        same("the mode of the subdirectory", c.attr("/d/sub").map(|attr| attr.mode & 0o777), Ok(0o670))?;
        check_opens(c, "/d/file", [(OWNER, true, true), (FRIEND, true, false), (STRANGER, false, false)])
    })
}

pub(crate) fn set_id_bits_go_with_a_change(c: &Fixture) -> Outcome {
    needs!(c.features().keeps_attributes && c.features().set_ids);
    let bits = |path: &str| c.attr(path).map(|attr| attr.mode & 0o7777);
    c.write("/file", b"text")?;
    chown(c, "/file")?;
    chmod(c, "/file", 0o6777)?;
    c.twice(|| same("the mode", bits("/file"), Ok(0o6777)))?;
    let file = of_user(c, STRANGER).open(Base::CWD, b"/file", OpenFlags::WRONLY, 0).or_fail("open")?;
    c.twice(|| same("the mode after an open", bits("/file"), Ok(0o6777)))?;
    write_all(&file, 0, b"other")?;
    c.twice(|| same("the mode after a write", bits("/file"), Ok(0o777)))?;
    chmod(c, "/file", 0o6777)?;
    file.set_len(1).or_fail("cut")?;
    c.twice(|| same("the mode after a cut", bits("/file"), Ok(0o777)))?;
    chmod(c, "/file", 0o6777)?;
    chown(c, "/file")?;
    c.twice(|| same("the mode after a chown", bits("/file"), Ok(0o777)))
}
