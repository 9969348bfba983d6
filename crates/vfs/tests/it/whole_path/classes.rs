//! Paths through directories that not everyone may search: which users find them by the table, and what ends their entries.
//!
//! Each operation runs in two trees over two stores of the same numbers, one without a table: that one has the right answers.

use lightfoot_vfs::{
    Acl, AclEntry, AclKind, AclTag, Base, Capabilities, Context, Credentials, Errno, MountFlags, PathAt, RenameFlags,
    SetAttr, SetXattr, UnmountFlags, Vfs,
};
use testkit::{Store, StoreOptions};

const PATHS: [&str; 9] = [
    "/home/ann",
    "/home/ann/f",
    "/home/ann/sub/g",
    "/home/team/f",
    "/home/team/sub/g",
    "/home/odd/f",
    "/home/listed/f",
    "/home/listed/sub/g",
    "/home/all/f",
];

const ANN: u32 = 7;
const TEAM: u32 = 70;
const WHO: [&str; 8] = ["root", "ann", "member", "primary", "other", "reader", "listed", "nobody"];

/// The users.
fn credentials(who: &str) -> Credentials {
    match who {
        "root" => Credentials::root(),
        "ann" => Credentials::user(ANN, 100, &[]),
        "member" => Credentials::user(8, 100, &[5, TEAM, 6]),
        "primary" => Credentials::user(9, TEAM, &[]),
        "other" => Credentials::user(10, 100, &[5, 6]),
        "reader" => capable(Credentials::user(12, 12, &[]), Capabilities::DAC_READ_SEARCH),
        "listed" => Credentials::user(11, 100, &[]),
        _ => Credentials::user(12, 12, &[]),
    }
}

fn capable(mut cred: Credentials, capabilities: Capabilities) -> Credentials {
    cred.capabilities = capabilities;
    cred
}

fn acl(user: u32, perm: u16) -> Acl {
    let entry = |tag, perm| AclEntry { tag, perm };
    let entries = [
        entry(AclTag::UserObj, 7),
        entry(AclTag::User(user), perm),
        entry(AclTag::GroupObj, 0),
        entry(AclTag::Mask, 7),
        entry(AclTag::Other, 0),
    ];
    Acl::new(&entries).unwrap()
}

struct World {
    store: Store,
    vfs: Vfs,
    root: Context,
    /// In the order of [`WHO`].
    users: Vec<Context>,
}

impl World {
    fn new(names_in_cache: bool, table: usize) -> Self {
        let store = Store::new(StoreOptions { names_in_cache, ..StoreOptions::default() });
        let vfs = Vfs::builder().whole_paths(table).records_every_path(true).build(store.clone());
        let root = vfs.context();
        let users = WHO.map(|who| {
            let context = root.fork();
            context.set_credentials(credentials(who));
            context
        });
        let world = Self { store, vfs, users: users.into(), root };
        world.mkdir("/home", 0o755);
        for (dir, mode, uid, gid) in [
            ("ann", 0o700, ANN, 100),
            ("team", 0o750, 0, TEAM),
            // The owner may not search it, others may.
            ("odd", 0o077, ANN, 100),
            ("listed", 0o700, 0, 0),
            ("all", 0o755, 0, 0),
        ] {
            let dir = format!("/home/{dir}");
            world.mkdir(&dir, 0o755);
            world.mkdir(&format!("{dir}/sub"), 0o755);
            [format!("{dir}/f"), format!("{dir}/sub/g")].iter().for_each(|file| world.make(file));
            world.set(&dir, SetAttr { mode: Some(mode), uid: Some(uid), gid: Some(gid), ..SetAttr::default() });
        }
        world.put_acl("/home/listed", Some(acl(11, 5)));
        world
    }

    fn mkdir(&self, path: &str, mode: u32) {
        self.root.mkdir(Base::CWD, path.as_bytes(), mode).unwrap();
    }

    fn make(&self, path: &str) {
        self.root.mknod(Base::CWD, path.as_bytes(), 0o644, 0).unwrap();
    }

    fn set(&self, path: &str, set: SetAttr) {
        self.root.set_attr(Base::CWD, path.as_bytes(), true, &set).unwrap();
    }

    fn chmod(&self, path: &str, mode: u32) {
        self.set(path, SetAttr { mode: Some(mode), ..SetAttr::default() });
    }

    fn chown(&self, path: &str, uid: u32) {
        self.set(path, SetAttr { uid: Some(uid), ..SetAttr::default() });
    }

    fn put_acl(&self, path: &str, acl: Option<Acl>) {
        let name = AclKind::Access.xattr_name();
        match acl {
            Some(acl) => {
                self.root.set_xattr(Base::CWD, path.as_bytes(), true, name, &acl.to_xattr(), SetXattr::Any).unwrap();
            }
            None => self.root.remove_xattr(Base::CWD, path.as_bytes(), true, name).unwrap(),
        }
    }

    fn rename(&self, old: &str, new: &str, flags: RenameFlags) {
        self.root.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), flags).unwrap();
    }

    /// Changes a directory behind the cache, and tells the cache.
    fn chmod_behind(&self, path: &str, mode: u32) {
        let node = self.store.node(path);
        self.store.change(node, |attr| attr.mode = attr.kind() | mode);
        self.store.invalidator().inode(node);
    }

    fn answer(&self, who: usize, path: &str) -> Result<u64, Errno> {
        self.users[who].attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino)
    }

    fn is_hit(&self, who: usize, path: &str) -> bool {
        let before = self.vfs.whole_path_stats().misses;
        let _ = self.answer(who, path);
        self.vfs.whole_path_stats().misses == before
    }
}

fn each() -> impl Iterator<Item = (usize, &'static str)> {
    (0..WHO.len()).flat_map(|who| PATHS.map(|path| (who, path)))
}

/// Brings each path into the cache for all users that may go there.
fn record(world: &World) {
    for _ in 0..3 {
        for (who, path) in each() {
            let _ = world.answer(who, path);
        }
    }
}

type Change = fn(&World);

/// Operations; whether they may leave entries of other directories; and the paths that nobody may find by the table at once.
const CASES: &[(&str, Change, &[&str])] = &[
    ("nothing", |_| {}, &[]),
    ("chmod that opens to the group", |w| w.chmod("/home/ann", 0o750), &["/home/ann/f", "/home/ann/sub/g"]),
    ("chmod that takes the owner's right", |w| w.chmod("/home/ann", 0o600), &["/home/ann/f", "/home/ann/sub/g"]),
    ("chmod that opens to all", |w| w.chmod("/home/ann", 0o711), &["/home/ann/f"]),
    ("chmod that takes the group's right", |w| w.chmod("/home/team", 0o740), &["/home/team/f", "/home/team/sub/g"]),
    ("chmod to all and back", |w| [0o755, 0o700].iter().for_each(|mode| w.chmod("/home/ann", *mode)), &["/home/ann/f"]),
    ("chmod that closes an open one", |w| w.chmod("/home/all", 0o700), &["/home/all/f"]),
    ("chmod that closes it to the owner", |w| w.chmod("/home/all", 0o055), &["/home/all/f"]),
    ("chmod of the directory above", |w| w.chmod("/home", 0o750), &PATHS),
    ("chown to another user", |w| w.chown("/home/ann", 10), &["/home/ann/f", "/home/ann/sub/g"]),
    ("chown to the odd owner", |w| w.chown("/home/odd", 10), &["/home/odd/f"]),
    ("chown there and back", |w| [10, ANN].iter().for_each(|uid| w.chown("/home/ann", *uid)), &["/home/ann/f"]),
    (
        "another group",
        |w| w.set("/home/team", SetAttr { gid: Some(5), ..SetAttr::default() }),
        &["/home/team/f", "/home/team/sub/g"],
    ),
    ("an ACL", |w| w.put_acl("/home/ann", Some(acl(10, 1))), &["/home/ann/f"]),
    ("an ACL on an open directory", |w| w.put_acl("/home/all", Some(acl(10, 1))), &["/home/all/f"]),
    ("another ACL", |w| w.put_acl("/home/listed", Some(acl(10, 5))), &["/home/listed/f", "/home/listed/sub/g"]),
    ("an ACL that takes the right", |w| w.put_acl("/home/listed", Some(acl(11, 4))), &["/home/listed/f"]),
    ("the end of an ACL", |w| w.put_acl("/home/listed", None), &["/home/listed/f"]),
    ("chmod of a directory with an ACL: its mask", |w| w.chmod("/home/listed", 0o700), &["/home/listed/f"]),
    ("chown of a directory with an ACL", |w| w.chown("/home/listed", 10), &["/home/listed/f"]),
    ("rename", |w| w.rename("/home/ann", "/home/bob", RenameFlags::default()), &["/home/ann/f", "/home/ann"]),
    ("exchange", |w| w.rename("/home/ann", "/home/team", RenameFlags::EXCHANGE), &["/home/ann/f", "/home/team/f"]),
    (
        "a mount",
        |w| {
            let fs = Store::with_paths(&["f", "sub/", "sub/g"]);
            w.root.mount(fs, Base::CWD, b"/home/ann", MountFlags::default()).unwrap();
        },
        &["/home/ann/f", "/home/ann/sub/g"],
    ),
    (
        "a mount and its end",
        |w| {
            w.root.mount(Store::with_paths(&["f"]), Base::CWD, b"/home/ann", MountFlags::default()).unwrap();
            w.root.unmount(Base::CWD, b"/home/ann", UnmountFlags::default()).unwrap();
        },
        &["/home/ann/f"],
    ),
    ("unlink", |w| w.root.unlink(Base::CWD, b"/home/ann/f").unwrap(), &["/home/ann/f"]),
];

/// Operations behind the cache.
const BEHIND: &[(&str, Change, &[&str])] = &[
    ("closed behind the cache", |w| w.chmod_behind("home/ann", 0), &["/home/ann/f", "/home/ann/sub/g"]),
    ("opened behind the cache", |w| w.chmod_behind("home/ann", 0o755), &["/home/ann/f", "/home/ann/sub/g"]),
    (
        "closed behind the cache, and the attributes requested before the path",
        |w| {
            w.chmod_behind("home/team", 0o700);
            let _ = w.root.attr(Base::CWD, b"/home/team", true);
        },
        &["/home/team/f", "/home/team/sub/g"],
    ),
    (
        "closed behind the cache, and marked stale by a holder",
        |w| {
            let held = w.root.hold(Base::CWD, b"/home/team", true).unwrap();
            w.store.change(w.store.node("home/team"), |attr| attr.mode = attr.kind() | 0o700);
            held.mark_stale();
            let _ = held.attr();
        },
        &["/home/team/f", "/home/team/sub/g"],
    ),
];

fn check((name, change, dead): &(&str, Change, &[&str]), names_in_cache: bool) {
    let (world, plain) = (World::new(names_in_cache, 1 << 16), World::new(names_in_cache, 0));
    record(&world);
    record(&plain);
    for (who, path) in each() {
        let answer = plain.answer(who, path);
        assert_eq!(world.answer(who, path), answer, "{name}: {} {path}", WHO[who]);
        assert_eq!(world.is_hit(who, path), answer.is_ok(), "{name}: {} {path}", WHO[who]);
    }
    change(&world);
    change(&plain);
    // Nobody's lookup may record what is the next one's: one class after the other.
    for (who, path) in each() {
        let before = world.vfs.whole_path_stats().misses;
        let answer = world.answer(who, path);
        let was_hit = world.vfs.whole_path_stats().misses == before;
        assert_eq!(answer, plain.answer(who, path), "{name}: {} {path}", WHO[who]);
        assert!(!was_hit || answer != Err(Errno::EACCES), "{name}: {} {path}", WHO[who]);
        assert!(!was_hit || who > 0 || !dead.contains(&path), "{name}: {} finds {path} by the table", WHO[who]);
    }
    for round in 0..3 {
        for (who, path) in each() {
            assert_eq!(world.answer(who, path), plain.answer(who, path), "{name}: {} {path} {round}", WHO[who]);
        }
    }
}

#[test]
fn each_change_of_rights_ends_the_entries_of_every_class() {
    for case in CASES {
        for names_in_cache in [true, false] {
            check(case, names_in_cache);
        }
    }
    BEHIND.iter().for_each(|case| check(case, false));
}

#[test]
fn who_changes_credentials_finds_what_the_new_ones_may_reach() {
    let world = World::new(true, 1 << 16);
    record(&world);
    let context = world.root.fork();
    let ino = |path: &str| context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino);
    let changes = world.vfs.whole_path_stats().changes;
    for _ in 0..3 {
        for (who, name) in WHO.iter().enumerate() {
            context.set_credentials(credentials(name));
            for path in PATHS {
                assert_eq!(ino(path), world.answer(who, path), "{name} {path}");
            }
        }
        // A group and a capability are lost.
        let lost: [(Credentials, Credentials, &str); 3] = [
            (credentials("member"), Credentials::user(8, 100, &[5, 6]), "/home/team/f"),
            (credentials("reader"), Credentials::user(12, 12, &[]), "/home/ann/f"),
            (Credentials::root(), capable(Credentials::root(), Capabilities::none()), "/home/ann/f"),
        ];
        for (before, after, path) in lost {
            context.set_credentials(before);
            assert!(ino(path).is_ok(), "{path}");
            context.set_credentials(after);
            assert_eq!(ino(path), Err(Errno::EACCES), "{path}");
        }
    }
    assert_eq!(world.vfs.whole_path_stats().changes, changes, "that makes no entry useless");
    // Two contexts of equal credentials share entries.
    context.set_credentials(credentials("ann"));
    let misses = world.vfs.whole_path_stats().misses;
    assert!(ino("/home/ann/sub/g").is_ok());
    assert_eq!(world.vfs.whole_path_stats().misses, misses);
}

/// A handle is a start without the directories above it, and no more than that.
#[test]
fn a_handle_in_a_closed_directory_leads_each_class_as_far_as_it_may_go() {
    let world = World::new(true, 1 << 16);
    world.mkdir("/home/ann/sub/private", 0o700);
    world.make("/home/ann/sub/private/h");
    world.chown("/home/ann/sub/private", ANN);
    let [home, sub] =
        [b"/home/ann".as_slice(), b"/home/ann/sub"].map(|path| world.root.hold(Base::CWD, path, true).unwrap());
    for _ in 0..4 {
        for (who, name) in WHO.iter().enumerate() {
            let look = |base, path: &str| world.users[who].attr(base, path.as_bytes(), true).map(|attr| attr.ino);
            let may = ["root", "ann", "reader"].contains(name);
            let expected = |path: &str| if may { Ok(world.store.node(path)) } else { Err(Errno::EACCES) };
            assert_eq!(look(Base::at(&home), "f"), expected("home/ann/f"), "{name}");
            assert_eq!(look(Base::at(&sub), "g"), Ok(world.store.node("home/ann/sub/g")), "{name}");
            assert_eq!(look(Base::at(&sub), "private/h"), expected("home/ann/sub/private/h"), "{name}");
        }
    }
    let misses = world.vfs.whole_path_stats().misses;
    let look = |who: usize, path: &[u8]| world.users[who].attr(Base::at(&sub), path, true).unwrap();
    look(0, b"private/h");
    look(1, b"private/h");
    look(4, b"g");
    assert_eq!(world.vfs.whole_path_stats().misses, misses);
}

/// Random changes and lookups by random credentials.
#[test]
fn in_any_order_of_changes_every_user_sees_what_a_walk_shows() {
    const DIRS: [&str; 6] = ["/home", "/home/ann", "/home/team", "/home/listed", "/home/ann/sub", "/home/all"];
    for seed in 1..=if cfg!(debug_assertions) { 6 } else { 60 } {
        let mut random = fastrand::Rng::with_seed(seed);
        let worlds = [World::new(seed % 2 == 0, 1 << 16), World::new(seed % 2 == 0, 0)];
        let mut hits = 0;
        for step in 0..4000 {
            let dir = DIRS[random.usize(0..DIRS.len())];
            let (user, mode) = (random.u32(7..13), random.u32(0..8) << 6 | random.u32(0..8) << 3 | random.u32(0..8));
            let mode = if random.bool() { mode } else { 0o755 };
            let kind = random.u32(0..100);
            for world in &worlds {
                match kind {
                    0 | 1 => world.chmod(dir, mode),
                    2 => world.chown(dir, user),
                    3 => world.set(dir, SetAttr { gid: Some([100, TEAM, 5][user as usize % 3]), ..SetAttr::default() }),
                    4 => world.put_acl(dir, Some(acl(user, (mode & 7) as u16))),
                    5 => world.put_acl(dir, None),
                    6 => world.rename("/home/ann", "/home/team", RenameFlags::EXCHANGE),
                    7 => world.users[3].set_credentials(credentials(WHO[user as usize % WHO.len()])),
                    _ => {}
                }
            }
            let (who, path) = (random.usize(0..WHO.len()), PATHS[random.usize(0..PATHS.len())]);
            let before = worlds[0].vfs.whole_path_stats().misses;
            let seen = worlds[0].answer(who, path);
            hits += u32::from(worlds[0].vfs.whole_path_stats().misses == before);
            assert_eq!(seen, worlds[1].answer(who, path), "seed {seed}, step {step}: {} {path}", WHO[who]);
        }
        assert!(hits > 400, "seed {seed}: {hits} hits");
    }
}
