//! Entries of the table of whole paths that outlive changes of other directories, and those that do not.

use crate::names::Names;
use lightfoot_vfs::{Base, Context, Errno, PathAt, RenameFlags, S_IFREG, SetAttr, Vfs};

struct Case {
    vfs: Vfs,
    context: Context,
}

impl Case {
    /// `/a/b/c/{f,g}` and `/x/y/h`, all recorded.
    fn new() -> Self {
        let vfs = Vfs::builder().whole_paths(1 << 16).records_every_path(true).build(Names);
        let case = Self { context: vfs.context(), vfs };
        ["/a", "/a/b", "/a/b/c", "/x", "/x/y"].iter().for_each(|dir| case.mkdir(dir));
        ["/a/b/c/f", "/a/b/c/g", "/x/y/h"].iter().for_each(|file| case.make(file));
        ["/a/b/c/f", "/a/b/c/g", "/x/y/h"].iter().for_each(|file| assert!(!case.is_hit(file)));
        case
    }

    fn mkdir(&self, path: &str) {
        self.context.mkdir(Base::CWD, path.as_bytes(), 0o755).unwrap();
    }

    fn make(&self, path: &str) {
        self.context.mknod(Base::CWD, path.as_bytes(), S_IFREG | 0o644, 0).unwrap();
    }

    fn rename(&self, from: &str, to: &str, flags: RenameFlags) {
        let (from, to) = (PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()));
        self.context.rename(from, to, flags).unwrap();
    }

    fn chmod(&self, path: &str, mode: u32) {
        let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
        self.context.set_attr(Base::CWD, path.as_bytes(), true, &set).unwrap();
    }

    fn ino(&self, path: &str) -> Result<u64, Errno> {
        self.context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino)
    }

    /// Whether `path`, which is there, is found by the table.
    fn is_hit(&self, path: &str) -> bool {
        let before = self.vfs.whole_path_stats().misses;
        self.ino(path).unwrap();
        self.vfs.whole_path_stats().misses == before
    }
}

#[test]
fn a_change_elsewhere_costs_an_entry_its_stamp_and_not_its_place() {
    let case = Case::new();
    let before = case.vfs.whole_path_stats();
    case.rename("/x/y", "/x/z", RenameFlags::default());
    let after = case.vfs.whole_path_stats();
    assert_eq!((after.changes, after.current), (before.changes + 1, 0), "{after:?}");
    assert!(case.is_hit("/a/b/c/f") && case.is_hit("/a/b/c/g"), "their directories did not move");
    let renewed = case.vfs.whole_path_stats();
    assert_eq!((renewed.renewed, renewed.recorded), (before.renewed + 2, before.recorded), "{renewed:?}");
    assert_eq!(case.ino("/x/y/h"), Err(Errno::ENOENT));
    assert!(!case.is_hit("/x/z/h") && case.is_hit("/x/z/h"));
}

#[test]
fn a_change_of_an_own_directory_ends_all_entries_below_it() {
    let case = Case::new();
    case.rename("/a/b", "/a/d", RenameFlags::default());
    assert_eq!(case.ino("/a/b/c/f"), Err(Errno::ENOENT));
    case.rename("/a/d", "/a/b", RenameFlags::default());
    // The names are as before, and the sequences are not.
    assert!(!case.is_hit("/a/b/c/f") && case.is_hit("/a/b/c/f"));
    // The list that was just made is not one of the entry that was recorded before the move.
    assert!(!case.is_hit("/a/b/c/g"));
}

#[test]
fn an_exchange_ends_the_entries_below_both() {
    let case = Case::new();
    case.make("/x/y/f");
    case.mkdir("/x/y/c");
    case.make("/x/y/c/f");
    let [before, other] = ["/a/b/c/f", "/x/y/c/f"].map(|path| case.ino(path).unwrap());
    assert_eq!(before, other, "the inode numbers of this file system are those of the names");
    case.rename("/a/b", "/x/y", RenameFlags::EXCHANGE);
    assert!(!case.is_hit("/a/b/c/f") && !case.is_hit("/x/y/c/f"));
    assert_eq!(case.ino("/a/b/c/g"), Err(Errno::ENOENT));
}

#[test]
fn a_directory_that_is_closed_and_opened_again_ends_every_entry() {
    let case = Case::new();
    case.chmod("/x/y", 0o700);
    case.chmod("/x/y", 0o755);
    for path in ["/a/b/c/f", "/x/y/h"] {
        assert!(!case.is_hit(path), "{path}: lists do not notice such a change");
        assert!(case.is_hit(path), "{path}");
    }
}

#[test]
fn deep_paths_are_recorded_although_their_list_has_no_room() {
    let case = Case::new();
    let mut path = String::from("/a/b/c");
    for level in 0..20 {
        path = format!("{path}/{level}");
        case.mkdir(&path);
    }
    case.make(&format!("{path}/f"));
    assert!(!case.is_hit(&format!("{path}/f")) && case.is_hit(&format!("{path}/f")));
    case.rename("/x/y", "/x/z", RenameFlags::default());
    assert!(!case.is_hit(&format!("{path}/f")), "it ends with every change");
}
