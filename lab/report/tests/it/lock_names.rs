//! The names that Lightfoot's locks have in the statistics: one for each rank of its table.

use ramfs_sim::RamFs;
use sim::{Config, Machine};
use std::collections::BTreeSet;
use vfs_sim::{
    Acl, AclEntry, AclKind, AclTag, Base, Context, MountFlags, OpenFlags, PathAt, RenameFlags, SetXattr, UnmountFlags,
    Vfs,
};

/// Each rank of `crates/vfs/src/base/rank.rs` but the reserved names, which are not locks.
const RANKS: [&str; 9] = [
    "a handle's lock",
    "the end of a mount",
    "the mounts",
    "the rename lock",
    "a directory's lock",
    "a data lock",
    "moves of directories",
    "the inodes",
    "renames",
];

/// The names in the statistics of `act`, done once by one thread.
fn locks_of(act: fn(&Context)) -> BTreeSet<String> {
    let config = Config { warm_ns: 0, ..Config::new(Machine::preset("dl980").expect("a preset"), 1, 1_000_000) };
    let report = sim::run(
        config,
        || {
            let context = Vfs::new(RamFs::new()).context();
            for dir in ["/a", "/a/moved", "/b", "/mounted"] {
                context.mkdir(Base::CWD, dir.as_bytes(), 0o755).expect(dir);
            }
            context
        },
        move |context: &Context, _| act(context),
    );
    report.locks.iter().filter(|lock| lock.acquisitions > 0).map(|lock| lock.class.to_string()).collect()
}

#[test]
fn each_rank_has_its_name_in_the_statistics() {
    let seen = locks_of(|context| {
        let create = OpenFlags::RDWR.union(OpenFlags::CREAT);
        let file = context.open(Base::CWD, b"/a/file", create, 0o644).expect("room");
        file.write_at(0, b"x").expect("a file");
        let dir = context.open(Base::CWD, b"/a", OpenFlags::RDONLY.union(OpenFlags::DIRECTORY), 0).expect("there");
        assert!(!dir.next_entries().expect("a directory").is_empty());
        context.rename(PathAt::cwd(b"/a/moved"), PathAt::cwd(b"/b/moved"), RenameFlags::default()).expect("there");
        // An ACL is loaded once, under the lock of the inodes.
        let tags =
            [(AclTag::UserObj, 7), (AclTag::User(7), 5), (AclTag::GroupObj, 0), (AclTag::Mask, 5), (AclTag::Other, 0)];
        let acl = Acl::new(&tags.map(|(tag, perm)| AclEntry { tag, perm })).expect("an ACL");
        let name = AclKind::Access.xattr_name();
        context.set_xattr(Base::CWD, b"/a", true, name, &acl.to_xattr(), SetXattr::Any).expect("an ACL");
        let mounted = PathAt::cwd(b"/mounted");
        context.bind(mounted, mounted, MountFlags::default(), false).expect("a directory");
        context.unmount(Base::CWD, b"/mounted", UnmountFlags::default()).expect("a mount");
    });
    let missing: Vec<_> = RANKS.iter().filter(|rank| !seen.contains(**rank)).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {seen:?}");
}

#[test]
fn a_rename_within_a_directory_takes_fewer_locks_than_one_that_moves_a_directory() {
    let within = locks_of(|context| {
        let (from, to) = (PathAt::cwd(b"/a/moved"), PathAt::cwd(b"/a/other"));
        context.rename(from, to, RenameFlags::default()).expect("there");
    });
    assert!(within.contains("renames") && within.contains("a directory's lock"), "{within:?}");
    assert!(!within.contains("the rename lock"), "{within:?}");
}
