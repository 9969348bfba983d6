//! The file system in a tree: the storage that operations on paths take and return.

use super::*;
use std::sync::{Arc, Mutex};
use vfs::{
    Acl, AclEntry, AclKind, AclTag, After, Base, Context, Credentials, Layer, OpenFile, OpenFlags, OpenState, PathAt,
    Vfs,
};

const PAGE: usize = PAGE_BYTES as usize;

/// A test's work with an inode.
type Visit = Box<dyn FnOnce(&RamFs, &Request, &Inode) + Send>;

/// A file system to which the test has access, too. Only the VFS has inodes, so a test gets one in `set_attr`.
#[derive(Clone)]
struct InHand {
    ram: Arc<RamFs>,
    visit: Arc<Mutex<Option<Visit>>>,
}

impl Layer for InHand {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.ram
    }

    fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
        if let Some(visit) = self.visit.lock().unwrap().take() {
            visit(&self.ram, request, inode);
        }
        self.ram.set_attr(request, inode, set)
    }
}

/// A tree over an [`InHand`], and a context in it.
struct World {
    fs: InHand,
    vfs: Vfs,
    root: Context,
}

impl World {
    fn new(limits: RamLimits) -> Self {
        let ram = Arc::new(RamFs::with_options(&RamOptions { mode: 0o777, limits, ..RamOptions::default() }));
        let fs = InHand { ram, visit: Arc::default() };
        let vfs = Vfs::new(fs.clone());
        let root = vfs.context();
        Self { fs, vfs, root }
    }

    /// Returns a context of an ordinary user.
    fn user(&self, uid: u32) -> Context {
        let context = self.vfs.context();
        context.set_credentials(Credentials::user(uid, uid, &[]));
        context
    }

    fn stat(&self) -> StatFs {
        self.root.statvfs(Base::CWD, b"/").unwrap().fs
    }

    /// Returns the free blocks and inodes.
    fn free(&self) -> (u64, u64) {
        self.vfs.barrier();
        let stat = self.stat();
        (stat.blocks_free, stat.files_free)
    }

    /// Calls `visit` with the inode at `path`.
    fn visit(&self, path: &str, visit: impl FnOnce(&RamFs, &Request, &Inode) + Send + 'static) {
        *self.fs.visit.lock().unwrap() = Some(Box::new(visit));
        self.root.set_attr(Base::CWD, path.as_bytes(), false, &SetAttr::default()).unwrap();
        assert!(self.fs.visit.lock().unwrap().is_none(), "the visit took place");
    }
}

fn limits(pages: u64, inodes: u64) -> RamLimits {
    RamLimits { bytes: Some(pages * PAGE_BYTES), inodes: Some(inodes), per_user: None }
}

fn create(context: &Context, path: &str) -> Result<OpenFile, Errno> {
    context.open(Base::CWD, path.as_bytes(), OpenFlags::RDWR.union(OpenFlags::CREAT), 0o666)
}

#[test]
fn a_write_takes_the_room_there_is_and_a_cut_gives_it_back() {
    let world = World::new(limits(10, 100));
    let file = create(&world.root, "/f").unwrap();
    assert_eq!(file.write_at(100, &vec![1; 20 * PAGE]), Ok((10 * PAGE - 100, 10 * PAGE_BYTES)));
    assert_eq!(file.write_at(10 * PAGE_BYTES, b"x"), Err(Errno::ENOSPC));
    assert_eq!((file.attr().unwrap().size, file.attr().unwrap().blocks), (10 * PAGE_BYTES, 80));
    assert_eq!(file.write_at(0, b"x"), Ok((1, 1)));
    file.set_len(PAGE_BYTES).unwrap();
    assert_eq!(world.free(), (9, 98));
    // A hole takes nothing.
    file.set_len(1 << 40).unwrap();
    assert_eq!(world.free(), (9, 98));
    assert_eq!(file.attr().unwrap().blocks, 8);
}

#[test]
fn a_file_without_names_takes_room_until_it_is_closed() {
    let world = World::new(limits(10, 3));
    let file = create(&world.root, "/f").unwrap();
    file.write_at(0, &vec![1; 3 * PAGE]).unwrap();
    world.root.link(PathAt::cwd(b"/f"), PathAt::cwd(b"/g"), false).unwrap();
    world.root.unlink(Base::CWD, b"/f").unwrap();
    world.root.unlink(Base::CWD, b"/g").unwrap();
    assert_eq!(world.free(), (7, 1));
    drop(file);
    assert_eq!(world.free(), (10, 2));
}

#[test]
fn each_thing_that_is_made_takes_an_inode() {
    let world = World::new(limits(10, 5));
    let root = &world.root;
    let long = [b'a'; 128];
    create(root, "/f").unwrap();
    root.mkdir(Base::CWD, b"/d", 0o755).unwrap();
    root.symlink(&long[1..], Base::CWD, b"/d/short").unwrap();
    root.symlink(&long, Base::CWD, b"/d/long").unwrap();
    assert_eq!(world.free(), (9, 0));
    assert_eq!(root.attr(Base::CWD, b"/d/long", false).unwrap().blocks, 8);
    assert_eq!(create(root, "/g").err(), Some(Errno::ENOSPC));
    assert_eq!(root.mkdir(Base::CWD, b"/e", 0o755), Err(Errno::ENOSPC));
    assert_eq!(root.symlink(b"x", Base::CWD, b"/l"), Err(Errno::ENOSPC));
    for path in ["/d/short", "/d/long"] {
        root.unlink(Base::CWD, path.as_bytes()).unwrap();
    }
    root.rmdir(Base::CWD, b"/d").unwrap();
    assert_eq!(world.free(), (10, 3));
    assert!(create(root, "/g").is_ok());
}

#[test]
fn a_user_has_as_much_as_the_quota_says() {
    let per_user = UserLimits { bytes: Some(4 * PAGE_BYTES), inodes: Some(2) };
    let world = World::new(RamLimits { per_user: Some(per_user), ..limits(100, 100) });
    let (one, two) = (world.user(1), world.user(2));
    let file = create(&one, "/1a").unwrap();
    assert_eq!(file.write_at(0, &vec![1; 9 * PAGE]), Ok((4 * PAGE, 4 * PAGE_BYTES)));
    assert_eq!(file.write_at(4 * PAGE_BYTES, b"x"), Err(Errno::EDQUOT));
    create(&one, "/1b").unwrap();
    assert_eq!(create(&one, "/1c").err(), Some(Errno::EDQUOT));
    create(&two, "/2").unwrap().write_at(0, b"x").unwrap();
    // The file's owner is charged, whichever user writes. Root may give the file to a user without room for it.
    world.root.set_attr(Base::CWD, b"/1a", true, &SetAttr { uid: Some(2), ..SetAttr::default() }).unwrap();
    assert_eq!(create(&two, "/2b").err(), Some(Errno::EDQUOT));
    assert!(create(&one, "/1c").is_ok());
    assert_eq!(file.write_at(4 * PAGE_BYTES, b"x"), Err(Errno::EDQUOT));
    world.root.unlink(Base::CWD, b"/1a").unwrap();
    drop(file);
    assert!(create(&two, "/2b").is_ok());
    for path in ["/1b", "/1c", "/2", "/2b"] {
        world.root.unlink(Base::CWD, path.as_bytes()).unwrap();
    }
    assert_eq!(world.free(), (100, 99));
}

#[test]
fn a_file_that_grows_keeps_what_was_reserved_past_its_end() {
    let world = World::new(limits(100, 100));
    let file = create(&world.root, "/f").unwrap();
    file.write_at(0, b"x").unwrap();
    world.visit("/f", |ram, request, inode| {
        assert_eq!(
            ram.allocate(
                request,
                &Open { inode, flags: OpenFlags::RDWR, state: &OpenState::None },
                Allocate::Reserve,
                false,
                0,
                5 * PAGE_BYTES
            ),
            Ok(40)
        );
        assert_eq!(ram.set_len(request, inode, 2 * PAGE_BYTES), Ok((40, After::NONE)));
        assert_eq!(ram.set_len(request, inode, 1), Ok((8, After::NONE)));
    });
    assert_eq!(world.free(), (99, 98));
}

#[test]
fn data_and_holes_are_found_up_to_the_end() {
    let world = World::new(limits(100, 100));
    let file = create(&world.root, "/f").unwrap();
    let check = |expected: [(u64, SeekFor, Result<u64, Errno>); 3]| {
        world.visit("/f", move |ram, request, inode| {
            for (offset, what, answer) in expected {
                assert_eq!(
                    ram.seek(request, &Open { inode, flags: OpenFlags::RDONLY, state: &OpenState::None }, offset, what),
                    answer,
                    "{offset} {what:?}"
                );
            }
        });
    };
    file.set_len(100).unwrap();
    check([(0, SeekFor::Data, Err(Errno::ENXIO)), (0, SeekFor::Hole, Ok(0)), (99, SeekFor::Hole, Ok(99))]);
    file.write_at(2 * PAGE_BYTES, b"x").unwrap();
    check([
        (7, SeekFor::Data, Ok(2 * PAGE_BYTES)),
        (7, SeekFor::Hole, Ok(7)),
        (2 * PAGE_BYTES, SeekFor::Hole, Ok(2 * PAGE_BYTES + 1)),
    ]);
}

#[test]
fn attributes_go_with_their_file() {
    let world = World::new(limits(4, 100));
    world.root.mkdir(Base::CWD, b"/d", 0o755).unwrap();
    world.visit("/d", |ram, request, inode| {
        let set = |name: &[u8], len| ram.set_xattr(request, inode, name, &vec![1; len], SetXattr::Any);
        assert_eq!(ram.get_xattr(request, inode, b"user.x"), Err(Errno::ENODATA));
        assert_eq!(ram.list_xattrs(request, inode), Ok(Vec::new()));
        assert_eq!(ram.remove_xattr(request, inode, b"user.x"), Err(Errno::ENODATA));
        assert_eq!(set(b"user.x", 2 * PAGE), Ok(()));
        assert_eq!(set(b"system.posix_acl_default", 28), Ok(()));
        assert_eq!(set(b"user.y", 2 * PAGE), Err(Errno::ENOSPC));
        assert_eq!(ram.get_xattr(request, inode, b"user.x").unwrap().len(), 2 * PAGE);
        assert_eq!(ram.list_xattrs(request, inode).unwrap().len(), 2);
        assert_eq!(ram.remove_xattr(request, inode, b"system.posix_acl_default"), Ok(()));
    });
    assert_eq!(world.free(), (1, 98));
    world.root.rmdir(Base::CWD, b"/d").unwrap();
    assert_eq!(world.free(), (4, 99));
}

#[test]
fn options_say_what_the_root_is_and_how_names_are_compared() {
    let fs = RamFs::with_options(&RamOptions { mode: 0o41_777, uid: 3, gid: 4, ..RamOptions::default() });
    let attr = fs.root().attr;
    assert_eq!((attr.mode, attr.uid, attr.gid), (S_IFDIR | 0o1777, 3, 4));
    assert!(fs.traits().name_rules.is_none());
    let folding = RamFs::with_options(&RamOptions { case_insensitive: true, ..RamOptions::default() });
    assert!(folding.traits().name_rules.is_some_and(|rules| rules.equal(b"A", b"a")));
    // The root is there, whatever the limits.
    let stat = World::new(limits(0, 0)).stat();
    assert_eq!((stat.files, stat.files_free), (1, 0));
}

#[test]
fn a_further_name_takes_an_inode_until_it_goes() {
    let world = World::new(limits(16, 6));
    let root = &world.root;
    let link = |name: &str| root.link(PathAt::cwd(b"/f"), PathAt::cwd(name.as_bytes()), false);
    drop(create(root, "/f").unwrap());
    drop(create(root, "/g").unwrap());
    assert_eq!(world.free().1, 3);
    for name in ["/a", "/b", "/c"] {
        assert_eq!(link(name), Ok(()));
    }
    assert_eq!((link("/d"), world.free().1), (Err(Errno::ENOSPC), 0));
    assert_eq!(root.attr(Base::CWD, b"/f", false).unwrap().nlink, 4, "the refused name is not counted");
    // Names that are removed, and one that is replaced; in any order, the file takes one inode
    // until its last name is removed.
    root.unlink(Base::CWD, b"/f").unwrap();
    assert_eq!(world.free().1, 1);
    root.rename(PathAt::cwd(b"/g"), PathAt::cwd(b"/a"), RenameFlags::default()).unwrap();
    assert_eq!(world.free().1, 2);
    for (name, free) in [("/b", 3), ("/c", 4), ("/a", 5)] {
        root.unlink(Base::CWD, name.as_bytes()).unwrap();
        assert_eq!(world.free().1, free, "{name}");
    }
}

#[test]
fn the_first_name_of_a_file_that_was_made_without_one_takes_no_further_inode() {
    let world = World::new(limits(16, 3));
    let root = &world.root;
    let file = root.open(Base::CWD, b"/", OpenFlags::RDWR.union(OpenFlags::TMPFILE), 0o600).unwrap();
    assert_eq!(world.free().1, 1);
    for (name, free) in [("/a", 1), ("/b", 0)] {
        root.link(PathAt::new(Base::at(file.held()), b""), PathAt::cwd(name.as_bytes()), false).unwrap();
        assert_eq!(world.free().1, free, "{name}");
    }
    drop(file);
    for (name, free) in [("/a", 1), ("/b", 2)] {
        root.unlink(Base::CWD, name.as_bytes()).unwrap();
        assert_eq!(world.free().1, free, "{name}");
    }
}

#[test]
fn a_file_without_room_for_its_acl_is_not_made() {
    let acl = |users: u32| {
        let user = |uid| AclEntry { tag: AclTag::User(uid), perm: 5 };
        let other = [AclTag::GroupObj, AclTag::Mask, AclTag::Other].map(|tag| AclEntry { tag, perm: 5 });
        let mut entries = vec![AclEntry { tag: AclTag::UserObj, perm: 7 }];
        entries.extend((0..users).map(user));
        entries.extend(other);
        Acl::new(&entries).unwrap().to_xattr()
    };
    let world = World::new(limits(4, 100));
    let (root, name) = (&world.root, AclKind::Default.xattr_name());
    root.mkdir(Base::CWD, b"/d", 0o755).unwrap();
    root.set_xattr(Base::CWD, b"/d", false, name, &acl(420), SetXattr::Any).unwrap();
    let free = world.free();
    // Each new directory has two ACLs of this size. There is room for three, and for a part of the fourth.
    assert_eq!(root.mkdir(Base::CWD, b"/d/e", 0o755), Ok(()));
    let full = world.free();
    assert_eq!(root.mkdir(Base::CWD, b"/d/f", 0o755), Err(Errno::ENOSPC));
    assert_eq!((world.free(), root.attr(Base::CWD, b"/d/f", false).map(drop)), (full, Err(Errno::ENOENT)));
    root.rmdir(Base::CWD, b"/d/e").unwrap();
    assert_eq!(world.free(), free);
}
