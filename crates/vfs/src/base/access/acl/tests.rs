//! ACLs as data: forms, validity, modes, inheritance, access. Linux's answers are from tmpfs
//! (6.18).

use super::AclTag::{Group, GroupObj, Mask, Other, User, UserObj};
use super::*;

/// An ACL out of tags and permissions, valid or not.
fn unchecked(entries: &[(AclTag, u16)]) -> Acl {
    Acl { entries: entries.iter().map(|&(tag, perm)| AclEntry { tag, perm }).collect() }
}

/// An attribute's value out of raw entries.
fn value(version: u32, entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut value = version.to_le_bytes().to_vec();
    for (tag, perm, id) in entries {
        value.extend(tag.to_le_bytes().into_iter().chain(perm.to_le_bytes()).chain(id.to_le_bytes()));
    }
    value
}

const NONE: u32 = NO_ID;

#[test]
fn values_are_taken_and_refused_as_linux_does() {
    let check = |value: &[u8], answer: Result<Option<&[(AclTag, u16)]>, Errno>| {
        let answer = answer.map(|entries| entries.map(unchecked));
        assert_eq!(Acl::from_xattr(value), answer, "{value:?}");
    };
    check(b"", Ok(None));
    check(&value(2, &[]), Ok(None));
    check(b"\x02\0\0", Err(Errno::EINVAL));
    check(b"\x01\0\0", Err(Errno::EINVAL));
    check(&value(1, &[]), Err(Errno::EOPNOTSUPP));
    check(&value(3, &[(1, 9, 9)]), Err(Errno::EOPNOTSUPP));
    let minimal = [(1, 6, NONE), (4, 4, NONE), (0x20, 4, NONE)];
    let plain: &[_] = &[(UserObj, 6), (GroupObj, 4), (Other, 4)];
    check(&value(2, &minimal), Ok(Some(plain)));
    check(&[&value(2, &minimal)[..], b"x"].concat(), Err(Errno::EINVAL));
    check(&value(2, &[minimal[0], (4, 4, 77), minimal[2]]), Ok(Some(plain)));
    check(&value(2, &[minimal[2], minimal[0], minimal[1]]), Err(Errno::EINVAL));
    check(&value(2, &[minimal[0], (4, 8, NONE), minimal[2]]), Err(Errno::EINVAL));
    check(&value(2, &[minimal[0], (4, 0x104, NONE), minimal[2]]), Err(Errno::EINVAL));
    check(&value(2, &[minimal[0], (2, 7, 5), minimal[1], minimal[2]]), Err(Errno::EINVAL));
    let (mask, masked): (_, &[_]) = ((0x10, 5, NONE), &[(UserObj, 6), (GroupObj, 4), (Mask, 5), (Other, 4)]);
    check(&value(2, &[minimal[0], minimal[1], mask, minimal[2]]), Ok(Some(masked)));
    check(&value(2, &[minimal[0], minimal[1], mask, mask, minimal[2]]), Err(Errno::EINVAL));
    check(&value(2, &[minimal[0], minimal[0], minimal[1], minimal[2]]), Err(Errno::EINVAL));
    check(&value(2, &[minimal[0], (3, 7, NONE), minimal[1], minimal[2]]), Err(Errno::EINVAL));
    check(&value(2, &[minimal[0], (2, 7, NONE), minimal[1], mask, minimal[2]]), Err(Errno::EINVAL));
    check(&value(2, &[minimal[0], (8, 7, 3), minimal[1], mask, minimal[2]]), Err(Errno::EINVAL));
    check(&value(2, &[minimal[0], minimal[1], mask]), Err(Errno::EINVAL));
    let twice: &[_] = &[(UserObj, 6), (User(9), 7), (User(5), 1), (User(5), 2), (GroupObj, 4), (Mask, 5), (Other, 4)];
    let users = [(2, 7, 9), (2, 1, 5), (2, 2, 5)];
    check(&value(2, &[&minimal[..1], &users, &[minimal[1], mask, minimal[2]]].concat()), Ok(Some(twice)));
}

#[test]
fn a_value_survives_the_way_there_and_back() {
    let acl = unchecked(&[(UserObj, 7), (User(5), 6), (GroupObj, 4), (Group(70_000), 1), (Mask, 7), (Other, 0)]);
    assert_eq!(Acl::from_xattr(&acl.to_xattr()), Ok(Some(acl.clone())));
    assert_eq!(acl.to_xattr().len(), 4 + 6 * 8);
    assert_eq!(Acl::new(acl.entries()), Ok(acl));
    assert_eq!(Acl::new(&[]), Err(Errno::EINVAL));
    for kind in [AclKind::Access, AclKind::Default] {
        assert_eq!(AclKind::of_xattr(kind.xattr_name()), Some(kind));
    }
    assert_eq!(AclKind::of_xattr(b"system.posix_acl"), None);
}

#[test]
fn an_acl_of_a_mode_says_the_mode() {
    for mode in 0..0o1000 {
        let acl = Acl::from_mode(0o100_000 | mode);
        assert_eq!(acl.validate(), Ok(()));
        assert_eq!(acl.equiv_mode(), Some(mode));
        assert_eq!(Acl::from_mode(0o741).chmod(mode), acl);
    }
}

#[test]
fn the_mask_stands_for_the_group_in_a_mode() {
    let acl = unchecked(&[(UserObj, 6), (User(5), 7), (GroupObj, 4), (Mask, 5), (Other, 1)]);
    assert_eq!((acl.mode_bits(), acl.equiv_mode()), (0o651, None));
    let changed = [(UserObj, 7), (User(5), 7), (GroupObj, 4), (Mask, 2), (Other, 0)];
    assert_eq!(acl.chmod(0o4720), unchecked(&changed));
    // A mask is reason enough to keep the ACL.
    assert_eq!(unchecked(&[(UserObj, 6), (GroupObj, 4), (Mask, 4), (Other, 4)]).equiv_mode(), None);
}

#[test]
fn what_is_made_gets_no_more_than_its_mode_and_the_default() {
    let default = unchecked(&[(UserObj, 7), (User(5), 6), (GroupObj, 5), (Mask, 6), (Other, 4)]);
    let mut mode = 0o100_656;
    let made = Acl::create_from_default(&default, &mut mode);
    let inherited = [(UserObj, 6), (User(5), 6), (GroupObj, 5), (Mask, 4), (Other, 4)];
    assert_eq!((made, mode), (Some(unchecked(&inherited)), 0o100_644));
    let mut mode = 0o102_777;
    assert_eq!((Acl::create_from_default(&Acl::from_mode(0o751), &mut mode), mode), (None, 0o102_751));
}

#[test]
fn access_follows_the_first_entry_that_speaks_of_the_caller() {
    const R: u32 = MAY_READ;
    const W: u32 = MAY_WRITE;
    let acl = &[(UserObj, 0), (User(5), 6), (User(6), 0), (GroupObj, 4), (Group(8), 2), (Mask, 7), (Other, 7)][..];
    let masked = &[(UserObj, 7), (User(5), 7), (GroupObj, 7), (Mask, 4), (Other, 7)][..];
    let shut = &[(UserObj, 7), (User(5), 7), (GroupObj, 7), (Mask, 0), (Other, 4)][..];
    let check = |acl: &[(AclTag, u16)], uid, gid, groups: &[u32], mask, allowed: bool| {
        let answer = unchecked(acl).may(&Credentials::user(uid, gid, groups), 1, 10, mask);
        assert_eq!(answer.is_ok(), allowed, "{uid} {gid} {groups:?} {mask} {acl:?}: {answer:?}");
    };
    for (uid, gid, groups, mask, allowed) in [
        (1, 10, &[][..], R, false),
        (5, 99, &[], R | W, true),
        (5, 99, &[], MAY_EXEC, false),
        (6, 10, &[8], R, false),
        (7, 10, &[], R, true),
        (7, 10, &[], W, false),
        (7, 99, &[8], W, true),
        // One group allows reading, another writing; none allows both.
        (7, 10, &[8], R, true),
        (7, 10, &[8], W, true),
        (7, 10, &[8], R | W, false),
        (7, 99, &[98], R | W, true),
    ] {
        check(acl, uid, gid, groups, mask, allowed);
    }
    for (uid, gid, mask, allowed) in [(1, 99, R | W, true), (5, 99, W, false), (7, 10, W, false), (7, 99, W, true)] {
        check(masked, uid, gid, &[], mask, allowed);
    }
    // Where the mask allows nothing, Linux looks at the mode alone.
    for (uid, gid, mask, allowed) in [(1, 99, R | W, true), (5, 99, R, true), (5, 99, W, false), (5, 10, R, false)] {
        check(shut, uid, gid, &[], mask, allowed);
    }
}
