//! Which callers may use which name: a table of the answers of Linux 6.18 on tmpfs.

use super::*;
use crate::base::attr::{S_IFIFO, S_IFMT};

const FILE: u32 = S_IFREG | 0o644;
const OPEN: u32 = S_IFDIR | 0o777;
const STICKY: u32 = S_IFDIR | 0o1777;
const FIFO: u32 = S_IFIFO | 0o666;
const LINK: u32 = S_IFLNK | 0o777;

/// A file of uid 0.
fn attr(mode: u32) -> Attr {
    Attr { mode, ..Attr::default() }
}

/// The results of get, set and remove for one caller.
fn answers(cred: &Credentials, mode: u32, name: &[u8]) -> [Result<(), Errno>; 3] {
    let attr = attr(mode);
    [XattrUse::Get, XattrUse::Set(b"1"), XattrUse::Remove]
        .map(|usage| may_use(cred, &attr, name, usage, |mask| cred.may(&attr, mask)))
}

const NO_DATA: Result<(), Errno> = Err(Errno::ENODATA);
const NOT_PERMITTED: Result<(), Errno> = Err(Errno::EPERM);
const UNSUPPORTED: Result<(), Errno> = Err(Errno::EOPNOTSUPP);
const INVALID: Result<(), Errno> = Err(Errno::EINVAL);
const DENIED: Result<(), Errno> = Err(Errno::EACCES);
const LONG: Result<(), Errno> = Err(Errno::ERANGE);
const YES: Result<(), Errno> = Ok(());

#[test]
fn root_may_use_every_name_that_there_is() {
    let longest = [b"user.", &[b'a'; 250][..]].concat();
    let too_long = [b"user.", &[b'a'; 251][..]].concat();
    for (mode, name, answer) in [
        (FILE, &b"user.x"[..], [YES; 3]),
        (FILE, &longest, [YES; 3]),
        (FILE, &too_long, [LONG; 3]),
        (FILE, b"", [LONG; 3]),
        (FILE, b"user.a\0b", [LONG; 3]),
        (FILE, b"user.", [INVALID; 3]),
        (FILE, b"trusted.", [INVALID; 3]),
        (FILE, b"security.", [INVALID; 3]),
        (FILE, b"user", [UNSUPPORTED; 3]),
        (FILE, b"foo.x", [UNSUPPORTED; 3]),
        (FILE, b"system.", [UNSUPPORTED; 3]),
        (FILE, b"system.x", [UNSUPPORTED; 3]),
        (FILE, b"system.posix_acl_accessx", [UNSUPPORTED; 3]),
        (FILE, b"security.capability", [YES, INVALID, YES]),
        (FIFO, b"user.x", [NO_DATA, NOT_PERMITTED, NOT_PERMITTED]),
        (LINK, b"user.x", [NO_DATA, NOT_PERMITTED, NOT_PERMITTED]),
        (FIFO, b"trusted.x", [YES; 3]),
        (LINK, b"security.x", [YES; 3]),
    ] {
        assert_eq!(answers(&Credentials::root(), mode, name), answer, "{mode:o} {}", name.escape_ascii());
    }
}

#[test]
fn others_may_use_what_the_file_and_the_kind_of_name_let_them() {
    let hidden = S_IFREG | 0o600;
    for (mode, name, answer) in [
        (FILE, &b"user.x"[..], [YES, DENIED, DENIED]),
        (hidden, b"user.x", [DENIED; 3]),
        (OPEN, b"user.x", [YES; 3]),
        (STICKY, b"user.x", [YES, NOT_PERMITTED, NOT_PERMITTED]),
        (FIFO, b"user.x", [NO_DATA, NOT_PERMITTED, NOT_PERMITTED]),
        (OPEN, b"trusted.x", [NO_DATA, NOT_PERMITTED, NOT_PERMITTED]),
        (OPEN, b"trusted.", [NO_DATA, NOT_PERMITTED, NOT_PERMITTED]),
        (hidden, b"security.x", [YES, NOT_PERMITTED, NOT_PERMITTED]),
        (OPEN, b"security.", [INVALID, NOT_PERMITTED, NOT_PERMITTED]),
        (OPEN, b"security.capability", [YES, INVALID, NOT_PERMITTED]),
        (hidden, b"foo.x", [DENIED; 3]),
        (OPEN, b"foo.x", [UNSUPPORTED; 3]),
        (hidden, b"system.x", [UNSUPPORTED; 3]),
    ] {
        assert_eq!(answers(&Credentials::user(7, 7, &[]), mode, name), answer, "{mode:o} {}", name.escape_ascii());
    }
}

#[test]
fn a_value_has_a_longest_length_and_its_name_is_looked_at_first() {
    let value = vec![0; XATTR_SIZE_MAX + 1];
    assert_eq!(check_lengths(b"user.x", XattrUse::Set(&value[1..])), YES);
    assert_eq!(check_lengths(b"foo.x", XattrUse::Set(&value)), Err(Errno::E2BIG));
    assert_eq!(check_lengths(b"", XattrUse::Set(&value)), LONG);
}

#[test]
fn capabilities_of_a_file_need_their_form_and_a_capability() {
    let (root, user) = (Credentials::root(), Credentials::user(7, 7, &[]));
    for (len, revision, answer) in [(20, 2, YES), (24, 3, YES), (20, 3, INVALID), (24, 2, INVALID), (12, 1, INVALID)] {
        let mut value = vec![0; len];
        value[3] = revision;
        let set = |cred| may_use(cred, &attr(FILE), CAPABILITY, XattrUse::Set(&value), |_| YES);
        assert_eq!(set(&root), answer);
        assert_eq!(set(&user), answer.and(NOT_PERMITTED));
    }
}

#[test]
fn only_those_who_may_see_trusted_names_are_shown_them() {
    let (root, user) = (Credentials::root(), Credentials::user(7, 7, &[]));
    for (name, seen) in [(&b"user.x"[..], true), (b"security.x", true), (b"trusted.x", false)] {
        assert!(is_listed(&root, name));
        assert_eq!(is_listed(&user, name), seen);
    }
}

#[test]
fn an_acl_is_set_by_the_owner_where_it_can_be() {
    let minimal = Acl::from_mode(0o640).to_xattr();
    let mut wrong = minimal.clone();
    wrong[6] = 8;
    let (root, user) = (Credentials::root(), Credentials::user(7, 7, &[]));
    let set = |cred, mode, kind, value: &[u8]| acl_to_set(cred, &attr(mode), kind, value);
    let (access, default) = (AclKind::Access, AclKind::Default);
    assert_eq!(set(&root, FILE, access, &minimal), Ok(Some(Acl::from_mode(0o640))));
    assert_eq!(set(&root, FILE, access, b""), Ok(None));
    assert_eq!(set(&root, OPEN, default, &minimal), Ok(Some(Acl::from_mode(0o640))));
    for (cred, mode, kind, value, errno) in [
        (&root, LINK, access, &minimal, Errno::EOPNOTSUPP),
        (&root, FILE, default, &minimal, Errno::EACCES),
        (&root, FILE, access, &wrong, Errno::EINVAL),
        (&user, FILE, access, &wrong, Errno::EPERM),
        (&user, FILE, default, &wrong, Errno::EACCES),
        (&user, LINK, access, &vec![1], Errno::EINVAL),
        (&user, FILE, access, &minimal, Errno::EPERM),
        (&user, FILE, access, &Vec::new(), Errno::EPERM),
    ] {
        assert_eq!(set(cred, mode, kind, value), Err(errno), "{:o} {kind:?} {value:?}", mode & S_IFMT);
    }
    assert_eq!(set(&user, FILE, default, b""), Ok(None));
    for (mode, kind, answer) in
        [(FILE, access, YES), (FILE, default, NO_DATA), (OPEN, default, YES), (LINK, default, UNSUPPORTED)]
    {
        assert_eq!(may_get_acl(&attr(mode), kind), answer);
    }
}
