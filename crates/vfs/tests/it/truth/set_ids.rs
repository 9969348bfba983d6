//! Set-id bits that a change of the contents clears, in the file system too.

use crate::truth::store::{ROOT, Store};
use lightfoot_vfs::{
    Acl, AclEntry, AclKind, AclTag, Allocate, Base, Context, Credentials, Errno, EventKind, OpenFlags, Scope, SetAttr,
    SetXattr,
};
use testkit::{Call, StoreOptions};

/// Changes the contents of `/f`.
type Change = fn(&Context);

fn cut(len: u64) -> SetAttr {
    SetAttr { size: Some(len), ..SetAttr::default() }
}

const CHANGES: [(&str, Change); 8] = [
    ("write", |context| {
        let file = context.open(Base::CWD, b"/f", OpenFlags::WRONLY, 0).unwrap();
        assert_eq!(file.write_at(0, b"x"), Ok((1, 1)));
    }),
    ("append", |context| {
        let file = context.open(Base::CWD, b"/f", OpenFlags::WRONLY.union(OpenFlags::APPEND), 0).unwrap();
        assert_eq!(file.write_at(0, b"x"), Ok((1, 4)));
    }),
    ("allocate", |context| {
        let file = context.open(Base::CWD, b"/f", OpenFlags::RDWR, 0).unwrap();
        file.allocate(Allocate::Reserve, false, 0, 10).unwrap();
    }),
    ("cut", |context| context.set_attr(Base::CWD, b"/f", true, &cut(1)).unwrap()),
    ("cut to what it is", |context| context.set_attr(Base::CWD, b"/f", true, &cut(3)).unwrap()),
    ("cut held", |context| {
        let held = context.hold(Base::CWD, b"/f", true).unwrap();
        assert_eq!(context.set_attr_held(&held, &cut(2)).unwrap().size, 2);
    }),
    ("cut open", |context| {
        context.open(Base::CWD, b"/f", OpenFlags::WRONLY, 0).unwrap().set_len(1).unwrap();
    }),
    ("open to cut", |context| {
        context.open(Base::CWD, b"/f", OpenFlags::RDONLY.union(OpenFlags::TRUNC), 0).unwrap();
    }),
];

#[test]
fn set_id_bits_that_a_change_takes_away_are_reported_once() {
    // Mode before; after a change by root, by the owner, and by one of the group.
    let modes = [
        (0o6777, [0o6777, 0o777, 0o777]),
        (0o4777, [0o4777, 0o777, 0o777]),
        // Without the group's right to execute, the group's bit means something else, and stays for who is in the group.
        (0o2767, [0o2767, 0o767, 0o2767]),
        (0o777, [0o777, 0o777, 0o777]),
    ];
    for (what, change) in CHANGES {
        for (mode, afters) in modes {
            for (after, (uid, gid)) in afters.into_iter().zip([(0, 0), (5, 5), (6, 7)]) {
                let store = Store::new(StoreOptions::default());
                let node = store.make(ROOT, "f");
                store.change(node, |attr| {
                    (attr.mode, attr.uid, attr.gid, attr.size) = (attr.mode & !0o7777 | mode, 5, 7, 3);
                });
                let context = store.tree().context();
                context.set_credentials(Credentials::user(uid, gid, &[]));
                change(&context);
                let label = format!("{what} of {mode:o} by {uid}");
                assert_eq!(context.attr(Base::CWD, b"/f", true).unwrap().mode & 0o7777, after, "{label}");
                let modes = store.log().modes.clone();
                let expected = if after == mode { vec![] } else { vec![(node, after)] };
                assert_eq!(modes, expected, "{label}");
                // Nor again by the next.
                change_again(&context);
                assert_eq!(store.log().modes, expected, "{label}");
            }
        }
    }
}

fn change_again(context: &Context) {
    let file = context.open(Base::CWD, b"/f", OpenFlags::WRONLY, 0).unwrap();
    assert_eq!(file.write_at(0, b"y"), Ok((1, 1)));
}

#[test]
fn a_cut_to_what_it_is_does_the_rest_that_was_asked() {
    let store = Store::new(StoreOptions::default());
    let node = store.make(ROOT, "f");
    let context = store.tree().context();
    let set = SetAttr { size: Some(0), mode: Some(0o600), uid: Some(9), ..SetAttr::default() };
    context.set_attr(Base::CWD, b"/f", true, &set).unwrap();
    let attr = context.attr(Base::CWD, b"/f", true).unwrap();
    assert_eq!((attr.mode & 0o7777, attr.uid, store.log().modes.clone()), (0o600, 9, vec![(node, 0o600)]));
}

#[test]
fn a_length_that_fails_leaves_the_mode_that_was_stored_with_its_acl() {
    let store = Store::new(StoreOptions::default());
    store.make(ROOT, "f");
    let name = AclKind::Access.xattr_name();
    let context = store.tree().context();
    let entries =
        [(AclTag::UserObj, 7), (AclTag::User(7), 7), (AclTag::GroupObj, 7), (AclTag::Mask, 7), (AclTag::Other, 7)];
    let acl = Acl::new(&entries.map(|(tag, perm)| AclEntry { tag, perm })).unwrap();
    context.set_xattr(Base::CWD, b"/f", true, name, &acl.to_xattr(), SetXattr::Any).unwrap();
    let watch = context.watch(Base::CWD, b"/f", Scope::Directory, 8).unwrap();
    store.before(|call| if let Call::SetLen { .. } = call { Err(Errno::ENOSPC) } else { Ok(()) });
    let set = SetAttr { size: Some(9), mode: Some(0o640), ..SetAttr::default() };
    assert_eq!(context.set_attr(Base::CWD, b"/f", true, &set), Err(Errno::ENOSPC));
    let attr = context.attr(Base::CWD, b"/f", true).unwrap();
    assert_eq!((attr.size, attr.mode & 0o7777), (0, 0o640));
    // In the cache, and as the file system stored it.
    for context in [&context, &store.tree().context()] {
        let stored = Acl::from_xattr(&context.get_xattr(Base::CWD, b"/f", true, name).unwrap()).unwrap().unwrap();
        assert_eq!(stored.mode_bits(), 0o640);
    }
    assert_eq!(
        core::iter::from_fn(|| watch.try_next()).map(|event| event.kind).collect::<Vec<_>>(),
        [EventKind::Attributes]
    );
}
