//! What is held and not looked up again: its owner and mode change behind the cache, and its users see that.

use crate::truth::store::{ROOT, Store};
use lightfoot_vfs::{
    Attr, Base, Context, Credentials, Errno, MountFlags, OpenFlags, PathRef, S_ISUID, SetAttr, Valid, Vfs,
};
use testkit::StoreOptions;

/// A tree with `/d/f` of user 5, in which user 5 works.
struct Case {
    store: Store,
    vfs: Vfs,
    context: Context,
    valid: Valid,
}

impl Case {
    fn new(valid: Valid) -> Self {
        let store = Store::new(StoreOptions { valid, ..StoreOptions::default() });
        let d = store.make(ROOT, "d/");
        let f = store.make(d, "f");
        for node in [d, f] {
            store.change(node, |attr| (attr.uid, attr.gid) = (5, 5));
        }
        let vfs = store.tree();
        let context = vfs.context();
        context.set_credentials(Credentials::user(5, 5, &[]));
        Self { store, vfs, context, valid }
    }

    /// Changes a file behind the cache; reports it where the cache asks for that.
    fn change(&self, node: u64, change: impl FnOnce(&mut Attr)) {
        self.store.change(node, change);
        if self.valid == Valid::UntilInvalidated {
            self.store.invalidator().inode(node);
        }
    }

    /// Takes the file, or a right to search, from user 5.
    fn take(&self, node: u64) {
        self.change(node, |attr| (attr.uid, attr.gid, attr.mode) = (0, 0, attr.kind() | 0o700));
    }

    fn look(&self, base: Base<'_>, path: &str) -> Result<u32, Errno> {
        self.context.attr(base, path.as_bytes(), true).map(|attr| attr.uid)
    }

    fn hold(&self, path: &str) -> PathRef {
        self.context.hold(Base::CWD, path.as_bytes(), true).unwrap()
    }
}

fn cases() -> [Case; 2] {
    [Valid::For(0), Valid::UntilInvalidated].map(Case::new)
}

#[test]
fn a_lost_right_to_search_the_root_is_seen() {
    for case in cases() {
        assert_eq!((case.look(Base::CWD, "/d/f"), case.look(Base::CWD, "/")), (Ok(5), Ok(0)));
        case.change(ROOT, |attr| (attr.uid, attr.mode) = (7, attr.kind() | 0o700));
        assert_eq!(case.look(Base::CWD, "/d/f"), Err(Errno::EACCES), "{:?}", case.valid);
        assert_eq!(case.look(Base::CWD, "/"), Ok(7), "{:?}", case.valid);
        case.change(ROOT, |attr| attr.mode = attr.kind() | 0o755);
        assert_eq!(case.look(Base::CWD, "/d/f"), Ok(5), "{:?}", case.valid);
    }
}

#[test]
fn a_lost_right_to_search_a_mounts_root_is_seen() {
    for case in cases() {
        let upper = Store::new(StoreOptions::default());
        upper.make(ROOT, "mnt/");
        let tree = upper.tree();
        let context = tree.context();
        context.mount((*case.store).clone(), Base::CWD, b"/mnt", MountFlags::default()).unwrap();
        context.set_credentials(Credentials::user(5, 5, &[]));
        for path in ["/mnt/d/f", "/mnt/d/../d/f"] {
            assert!(context.attr(Base::CWD, path.as_bytes(), true).is_ok());
        }
        if case.valid == Valid::UntilInvalidated {
            // The invalidator is that of the store's first tree.
            continue;
        }
        case.take(ROOT);
        for path in ["/mnt/d/f", "/mnt/d/../d/f"] {
            assert_eq!(context.attr(Base::CWD, path.as_bytes(), true), Err(Errno::EACCES), "{path}");
        }
    }
}

#[test]
fn a_lost_right_to_search_a_working_directory_or_a_handle_is_seen() {
    for case in cases() {
        let d = case.store.node("d");
        let handle = case.hold("/d");
        case.context.set_current_dir(b"/d").unwrap();
        for base in [Base::CWD, Base::at(&handle)] {
            assert_eq!((case.look(base, "f"), case.look(base, ".")), (Ok(5), Ok(5)));
        }
        case.take(d);
        for base in [Base::CWD, Base::at(&handle)] {
            for path in ["f", ".", "../d/f"] {
                assert_eq!(case.look(base, path), Err(Errno::EACCES), "{path} {:?}", case.valid);
            }
            assert_eq!(case.context.mkdir(base, b"x", 0o755), Err(Errno::EACCES), "{:?}", case.valid);
        }
        assert_eq!(handle.attr().map(|attr| attr.uid), Ok(0));
    }
}

#[test]
fn a_lost_right_to_search_is_seen_although_the_directory_changes_during_each_request() {
    let hour = Valid::For(3_600_000_000_000);
    let case = Case::new(hour);
    let d = case.store.node("d");
    let handle = case.hold("/d");
    assert_eq!((case.look(Base::at(&handle), "f"), case.look(Base::CWD, "/d/f")), (Ok(5), Ok(5)));
    case.take(d);
    case.store.invalidator().inode(d);
    // As by a thread that creates a name in it.
    case.store.once_during(|inode| inode.update(|attr| attr.mtime += 1));
    assert_eq!(case.look(Base::at(&handle), "f"), Err(Errno::EACCES));
    assert_eq!(case.look(Base::CWD, "/d/f"), Err(Errno::EACCES));
    // The owner changes meanwhile, by this tree: the answer does not undo that, and is requested again.
    case.change(d, |attr| (attr.uid, attr.mode) = (5, attr.kind() | 0o700));
    case.store.invalidator().inode(d);
    case.store.once_during(|inode| inode.update(|attr| attr.gid = 9));
    assert_eq!(case.look(Base::at(&handle), "f"), Err(Errno::EACCES));
    assert_eq!(case.look(Base::at(&handle), "f"), Ok(5));
}

#[test]
fn a_lost_right_to_search_a_directory_that_was_marked_stale_is_seen_after_its_time() {
    let case = Case::new(Valid::For(0));
    let d = case.store.node("d");
    case.store.make(d, "back -> ../d/f");
    let handle = case.hold("/d");
    let looks = [(Base::CWD, "/d/f"), (Base::CWD, "/d/back"), (Base::CWD, "/d/../d/f"), (Base::at(&handle), "f")];
    looks.iter().for_each(|&(base, path)| assert_eq!(case.look(base, path), Ok(5), "{path}"));
    handle.mark_stale();
    case.take(d);
    looks.iter().for_each(|&(base, path)| assert_eq!(case.look(base, path), Err(Errno::EACCES), "{path}"));
    handle.mark_stale();
    assert_eq!(case.context.mkdir(Base::at(&handle), b"x", 0o755), Err(Errno::EACCES));
}

#[test]
fn a_former_owner_cannot_change_the_file_that_is_open() {
    for case in cases() {
        let f = case.store.node("d/f");
        let file = case.context.open(Base::CWD, b"/d/f", OpenFlags::RDWR, 0).unwrap();
        case.take(f);
        let chmod = SetAttr { mode: Some(0o4755), ..SetAttr::default() };
        assert_eq!(file.set_attr(&chmod), Err(Errno::EPERM), "{:?}", case.valid);
        assert_eq!(case.context.set_attr_held(file.held(), &chmod), Err(Errno::EPERM), "{:?}", case.valid);
        assert_eq!(case.context.open_held(file.held(), OpenFlags::RDONLY).err(), Some(Errno::EACCES));
        assert_eq!(file.attr().map(|attr| attr.mode & 0o7777), Ok(0o700));
    }
}

#[test]
fn a_write_clears_a_set_user_id_bit_that_was_set_behind_the_cache() {
    for case in cases() {
        let f = case.store.node("d/f");
        let file = case.context.open(Base::CWD, b"/d/f", OpenFlags::RDWR, 0).unwrap();
        file.write_at(0, b"before").unwrap();
        case.change(f, |attr| attr.mode |= S_ISUID | 0o111);
        file.write_at(0, b"after").unwrap();
        assert_eq!(case.context.attr(Base::CWD, b"/d/f", true).unwrap().mode & S_ISUID, 0, "{:?}", case.valid);
        assert_eq!(case.vfs.callback_panics(), 0);
    }
}
