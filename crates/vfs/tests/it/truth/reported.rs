//! Attributes that are the file system's ([`lightfoot_vfs::Attributes::FileSystem`]): a copy that was requested during a change
//! does not count the change twice, and no reply undoes a later change.

use crate::truth::store::{ROOT, Store, once};
use lightfoot_vfs::{Attr, Base, Context, OpenFlags, PathAt, PathRef, RenameFlags, SetAttr, Valid};
use testkit::{Call, StoreOptions};

/// `/d/f`, which is also `/g`; the directory `/d/e`; the file `/h`.
struct Case {
    store: Store,
    context: Context,
    file: PathRef,
    dir: PathRef,
}

impl Case {
    /// Where changes return attributes, and where they do not.
    fn both(valid: Valid) -> [Self; 2] {
        [false, true].map(|returns_attributes| Self::new(valid, returns_attributes))
    }

    fn new(valid: Valid, returns_attributes: bool) -> Self {
        Self::of(StoreOptions { reports_attributes: true, returns_attributes, valid, ..StoreOptions::default() })
    }

    fn of(options: StoreOptions) -> Self {
        let store = Store::new(options);
        let dir = store.make(ROOT, "d/");
        let node = store.make(dir, "f");
        store.make(dir, "e/");
        store.make(ROOT, "h");
        store.link(ROOT, "g", node);
        let context = store.tree().context();
        let [file, dir] = ["/d/f", "/d"].map(|path| context.hold(Base::CWD, path.as_bytes(), true).unwrap());
        Self { store, context, file, dir }
    }
}

fn mode(mode: u32) -> SetAttr {
    SetAttr { mode: Some(mode), ..SetAttr::default() }
}

/// What a request can show twice or not at all.
fn counts(attr: &Attr) -> (u32, u32, u64) {
    (attr.nlink, attr.mode & 0o7777, attr.size)
}

#[test]
fn a_request_during_a_change_does_not_make_the_change_count_twice() {
    type Change = fn(&Context);
    let changes: [(&str, Change); 7] = [
        ("unlink", |context| context.unlink(Base::CWD, b"/g").unwrap()),
        ("link", |context| context.link(PathAt::cwd(b"/g"), PathAt::cwd(b"/d/new"), false).unwrap()),
        ("rename over it", |context| {
            context.rename(PathAt::cwd(b"/h"), PathAt::cwd(b"/g"), RenameFlags::default()).unwrap();
        }),
        ("mkdir", |context| context.mkdir(Base::CWD, b"/d/new", 0o755).unwrap()),
        ("rmdir", |context| context.rmdir(Base::CWD, b"/d/e").unwrap()),
        ("chmod", |context| context.set_attr(Base::CWD, b"/d/f", true, &mode(0o640)).unwrap()),
        ("write", |context| {
            let file = context.open(Base::CWD, b"/d/f", OpenFlags::WRONLY, 0).unwrap();
            assert_eq!(file.write_at(0, b"12345"), Ok((5, 5)));
        }),
    ];
    let cases = || Case::both(Valid::UntilInvalidated);
    for ((what, change), case) in changes.into_iter().flat_map(|change| cases().map(|case| (change, case))) {
        let held = [case.file.clone(), case.dir.clone()];
        let is_change =
            |call: &Call<'_>| !matches!(call, Call::Lookup { .. } | Call::Attributes { .. } | Call::Open { .. });
        once(&case.store, is_change, move || held.iter().for_each(|held| assert!(held.attr_anew().is_ok())));
        change(&case.context);
        for held in [&case.file, &case.dir] {
            let seen = held.attr().unwrap();
            assert_eq!(counts(&seen), counts(&held.attr_anew().unwrap()), "{what}");
        }
    }
}

#[test]
fn of_two_changes_of_a_mode_the_later_one_is_seen() {
    Case::both(Valid::UntilInvalidated).iter().for_each(check_two_changes);
}

fn check_two_changes(case: &Case) {
    let (context, held) = (case.context.fork(), case.file.clone());
    once(
        &case.store,
        |call| matches!(call, Call::SetAttr { .. }),
        move || {
            // Another thread changes it in the file system later, and notes that earlier.
            context.set_attr(Base::CWD, b"/g", true, &mode(0o600)).unwrap();
            assert_eq!(held.attr_anew().unwrap().mode & 0o777, 0o600);
        },
    );
    case.context.set_attr(Base::CWD, b"/d/f", true, &mode(0o666)).unwrap();
    assert_eq!(case.context.attr(Base::CWD, b"/d/f", true).unwrap().mode & 0o777, 0o600);
}

#[test]
fn a_reply_to_a_lookup_does_not_undo_a_later_change() {
    let hour = Valid::For(3_600_000_000_000);
    // A name that is not cached yet, and one that must be revalidated.
    let cases = [("/g", "g", Valid::UntilInvalidated, true), ("/g", "g", hour, false), ("/d/f", "f", hour, true)];
    for (path, name, valid, reports_attributes) in cases {
        let case = Case::of(StoreOptions { reports_attributes, valid, ..StoreOptions::default() });
        if name == "f" {
            case.store.invalidator().entry(case.store.node("d"), b"f");
        }
        let (context, held) = (case.context.fork(), case.file.clone());
        once(
            &case.store,
            move |call| matches!(call, Call::Lookup { name: looked_up, .. } if *looked_up == name.as_bytes()),
            move || {
                context.set_attr_held(&held, &mode(0o600)).unwrap();
                assert_eq!(held.attr_anew().unwrap().mode & 0o777, 0o600);
            },
        );
        assert!(case.context.attr(Base::CWD, path.as_bytes(), true).is_ok());
        assert_eq!(case.context.attr(Base::CWD, path.as_bytes(), true).unwrap().mode & 0o777, 0o600, "{path}");
        assert_eq!(case.file.attr().unwrap().mode & 0o777, 0o600, "{path}");
    }
}

#[test]
fn a_reply_to_a_lookup_does_not_undo_a_later_write() {
    let hour = Valid::For(3_600_000_000_000);
    // A name that is not cached yet, and one that must be revalidated.
    for (path, name, reports_attributes) in
        [("/g", "g", true), ("/g", "g", false), ("/d/f", "f", true), ("/d/f", "f", false)]
    {
        let case = Case::of(StoreOptions { reports_attributes, valid: hour, ..StoreOptions::default() });
        case.store.invalidator().entry(case.store.node("d"), b"f");
        let context = case.context.fork();
        let file = context.open_held(&case.file, OpenFlags::WRONLY | OpenFlags::APPEND).unwrap();
        once(
            &case.store,
            move |call| matches!(call, Call::Lookup { name: looked_up, .. } if *looked_up == name.as_bytes()),
            move || assert_eq!(file.write_at(0, b"12345"), Ok((5, 5))),
        );
        for _ in 0..2 {
            let seen = case.context.attr(Base::CWD, path.as_bytes(), true);
            assert_eq!(seen.map(|attr| attr.size), Ok(5), "{path}, {reports_attributes}");
        }
        assert_eq!(case.file.attr().map(|attr| attr.size), Ok(5), "{path}, {reports_attributes}");
    }
}

#[test]
fn a_reader_during_a_request_requests_the_attributes_too() {
    let case = Case::new(Valid::UntilInvalidated, true);
    let node = case.store.node("d/f");
    type Look = fn(&Context, &PathRef) -> Attr;
    let looks: [Look; 2] =
        [|_, held| held.attr().unwrap(), |context, _| context.attr(Base::CWD, b"/d/f", true).unwrap()];
    for (look, size) in looks.into_iter().zip(7..) {
        case.store.change(node, |attr| attr.size = size);
        case.file.mark_stale();
        let (context, held) = (case.context.fork(), case.file.clone());
        once(
            &case.store,
            |call| matches!(call, Call::Attributes { .. }),
            move || assert_eq!(look(&context, &held).size, size, "during the request of another"),
        );
        assert_eq!(look(&case.context, &case.file).size, size);
    }
}

#[test]
fn of_two_answers_the_older_one_does_not_stay() {
    let case = Case::new(Valid::UntilInvalidated, true);
    let (store, node, held) = (case.store.clone(), case.store.node("d/f"), case.file.clone());
    let before = held.attr().unwrap().mode;
    store.change(node, |attr| attr.mode = attr.kind() | 0o600);
    once(
        &case.store,
        |call| matches!(call, Call::Attributes { .. }),
        move || {
            // The attributes are again as they were before both requests.
            store.change(node, |attr| attr.mode = before);
            assert_eq!(held.attr_anew().unwrap().mode, before);
        },
    );
    assert_eq!(case.file.attr_anew().unwrap().mode & 0o777, 0o600);
    assert_eq!(case.file.attr().unwrap().mode, before);
}
