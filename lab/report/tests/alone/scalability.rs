//! Scalability as an invariant: which cache lines operations share, on the simulated machine.
//!
//! Two operations that touch no common written line scale, whatever the machine ("the scalable commutativity rule",
//! Clements et al., SOSP 2013). So: no cached lookup writes to a line that another one touches; and pairs of operations
//! that commute are listed in `conflicts.txt` with the lines on which they conflict, by the source files of the
//! accesses. That list may only shrink.

use ramfs_sim::RamFs;
use sim::atomic::{AtomicUsize, Ordering};
use sim::footprint::{Conflict, Footprint, record};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use vfs_sim::{
    Acl, AclEntry, AclKind, AclTag, Attr, Base, Context, Credentials, Errno, FileSystem, Inode, MountFlags, NewInode,
    NextNames, OpenFlags, PathAt, PathRef, RenameFlags, Request, Resolve, S_IFDIR, S_IFREG, SetAttr, SetXattr, Vfs,
};

/// What a simulated thread leaves lies in memory that the next simulation clears: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an operation is done by: a thread's own context, and its number, 0 or 1.
struct Actor {
    context: Context,
    /// The same, of a user without capabilities.
    user: Context,
    /// `/d`, where scoped lookups begin.
    scope: PathRef,
    number: usize,
    /// Names that it has looked up in the file system that keeps its own names.
    misses: Cell<u64>,
}

impl Actor {
    fn new(vfs: &Vfs, number: usize) -> Self {
        let (context, user) = (vfs.context(), vfs.context());
        user.set_credentials(Credentials::user(USER, USER, &[]));
        let scope = context.hold(Base::CWD, b"/d", true).expect("/d");
        Self { context, user, scope, number, misses: Cell::new(0) }
    }
}

/// Whom the mode of `/guarded` refuses and its ACL lets in.
const USER: u32 = 1000;

type Action = fn(&Actor);

/// An operation, with what must be there before and what is put right after.
#[derive(Clone, Copy)]
struct Operation {
    name: &'static str,
    before: Action,
    act: Action,
    after: Action,
}

const fn plain(name: &'static str, act: Action) -> Operation {
    Operation { name, before: |_| {}, act, after: |_| {} }
}

fn stat(actor: &Actor, path: &str) {
    actor.context.attr(Base::CWD, path.as_bytes(), true).expect(path);
}

/// As the user without capabilities, whose permissions are looked at.
fn stat_as_user(actor: &Actor, path: &str) {
    actor.user.attr(Base::CWD, path.as_bytes(), true).expect(path);
}

/// Below `/d`, and no further than `resolve` allows.
fn stat_within(actor: &Actor, path: &str, resolve: Resolve) {
    actor.context.attr(Base::at(&actor.scope).within(resolve), path.as_bytes(), true).expect(path);
}

fn open(actor: &Actor, path: &str) {
    drop(actor.context.open(Base::CWD, path.as_bytes(), OpenFlags::RDWR, 0).expect(path));
}

fn create(actor: &Actor, path: &str) {
    let flags = OpenFlags::RDWR.union(OpenFlags::CREAT).union(OpenFlags::EXCL);
    drop(actor.context.open(Base::CWD, path.as_bytes(), flags, 0o644).expect(path));
}

fn unlink(actor: &Actor, path: &str) {
    actor.context.unlink(Base::CWD, path.as_bytes()).expect(path);
}

fn rename(actor: &Actor, from: &str, to: &str) {
    let (old, new) = (PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()));
    actor.context.rename(old, new, RenameFlags::default()).expect(from);
}

fn chmod(actor: &Actor, path: &str) {
    let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    actor.context.set_attr(Base::CWD, path.as_bytes(), true, &set).expect(path);
}

fn read(actor: &Actor, path: &str) {
    let file = actor.context.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY, 0).expect(path);
    file.read_at(0, &mut [0; 8]).expect(path);
}

fn write(actor: &Actor, path: &str) {
    let file = actor.context.open(Base::CWD, path.as_bytes(), OpenFlags::RDWR, 0).expect(path);
    file.write_at(0, b"x").expect(path);
}

fn list(actor: &Actor, path: &str) {
    let flags = OpenFlags::RDONLY.union(OpenFlags::DIRECTORY);
    let dir = actor.context.open(Base::CWD, path.as_bytes(), flags, 0).expect(path);
    assert!(!dir.next_entries().expect(path).is_empty());
}

/// Looks up a name that the cache does not have yet, of a file system that keeps its own names: in `dir`, and a file if
/// `prefix` is `f`.
fn miss(actor: &Actor, dir: &str, prefix: char) {
    let number = actor.misses.replace(actor.misses.get() + 1);
    let path = format!("/kept/{dir}/{prefix}{}{number}", actor.number);
    assert_eq!(actor.context.attr(Base::CWD, path.as_bytes(), true).is_ok(), prefix == 'f', "{path}");
}

fn miss_own(actor: &Actor, prefix: char) {
    miss(actor, &format!("d{}", actor.number + 1), prefix);
}

/// The thread's own directory.
fn own(actor: &Actor, name: &str) -> String {
    format!("/own{}/{name}", actor.number)
}

/// A name of the thread's own in the common directory.
fn common(actor: &Actor, name: &str) -> String {
    format!("/common/{name}{}", actor.number)
}

const LOOKUPS: &[Operation] = &[
    plain("stat /x", |a| stat(a, "/x")),
    plain("stat /d/d/d/x", |a| stat(a, "/d/d/d/x")),
    plain("stat /d/d/d/d/d/d/d/x", |a| stat(a, "/d/d/d/d/d/d/d/x")),
    plain("stat a long name", |a| stat(a, "/a-name-that-does-not-fit-into-the-first-line-of-its-entry")),
    plain("stat by a symbolic link", |a| stat(a, "/link/x")),
    plain("stat by ..", |a| stat(a, "/d/../d/../x")),
    plain("stat by . and //", |a| stat(a, "/./d//d/./x")),
    plain("stat a directory", |a| stat(a, "/d/d")),
    plain("stat relative", |a| stat(a, "x")),
    plain("access", |a| a.context.access(Base::CWD, b"/d/x", true, 4).expect("access")),
    plain("readlink", |a| assert_eq!(a.context.read_link(Base::CWD, b"/link").expect("readlink"), b"/d/d")),
    plain("a name that is not there", |a| assert!(a.context.attr(Base::CWD, b"/d/no", true).is_err())),
    plain("stat what is mounted", |a| stat(a, "/mounted/sub/x")),
    plain("stat by .. out of what is mounted", |a| stat(a, "/mounted/sub/../../x")),
    plain("stat a mount point", |a| stat(a, "/mounted")),
    plain("stat what is bound", |a| stat(a, "/bound/d/x")),
    plain("a name that is not there in what is mounted", |a| {
        assert!(a.context.attr(Base::CWD, b"/mounted/sub/no", true).is_err());
    }),
    plain("stat as a user", |a| stat_as_user(a, "/d/d/x")),
    plain("stat as a user whom an ACL lets in", |a| stat_as_user(a, "/guarded/x")),
    plain("stat beneath a directory", |a| stat_within(a, "d/d/x", Resolve::BENEATH)),
    plain("stat by .. beneath a directory", |a| stat_within(a, "d/../d/x", Resolve::BENEATH)),
    plain("stat with a directory for the root", |a| stat_within(a, "/../d/x", Resolve::IN_ROOT)),
];

const STAT: Operation = plain("stat a file", |a| stat(a, "/common/x"));
const STAT_OWN: Operation = plain("stat a private file in a common directory", |a| stat(a, &common(a, "file")));
const OPEN: Operation = plain("open and close a file", |a| open(a, "/common/x"));
const OPEN_OWN: Operation =
    plain("open and close a private file in a common directory", |a| open(a, &common(a, "file")));
const READ: Operation = plain("read a file", |a| read(a, "/common/x"));
const READ_OWN: Operation = plain("read a private file", |a| read(a, &own(a, "file")));
const WRITE_OWN: Operation = plain("write a private file", |a| write(a, &own(a, "file")));
const CHMOD_OWN: Operation = plain("chmod a private file in a common directory", |a| chmod(a, &common(a, "file")));
const LIST: Operation = plain("list a directory", |a| list(a, "/common"));
const LIST_OWN: Operation = plain("list a private directory", |a| list(a, &own(a, "")));
const CREATE_COMMON: Operation = Operation {
    name: "create in a common directory",
    before: |_| {},
    act: |a| create(a, &common(a, "new")),
    after: |a| unlink(a, &common(a, "new")),
};
const CREATE_OWN: Operation = Operation {
    name: "create in a private directory",
    before: |_| {},
    act: |a| create(a, &own(a, "new")),
    after: |a| unlink(a, &own(a, "new")),
};
const UNLINK_COMMON: Operation = Operation {
    name: "unlink in a common directory",
    before: |a| create(a, &common(a, "old")),
    act: |a| unlink(a, &common(a, "old")),
    after: |_| {},
};
const UNLINK_OWN: Operation = Operation {
    name: "unlink in a private directory",
    before: |a| create(a, &own(a, "old")),
    act: |a| unlink(a, &own(a, "old")),
    after: |_| {},
};
const RENAME_OWN: Operation = Operation {
    name: "rename in a private directory",
    before: |_| {},
    act: |a| rename(a, &own(a, "file"), &own(a, "moved")),
    after: |a| rename(a, &own(a, "moved"), &own(a, "file")),
};
const RENAME_COMMON: Operation = Operation {
    name: "rename in a common directory",
    // By the actor: neighbouring entries are on one shelf of a sharded directory.
    before: |a| create(a, &common(a, "old")),
    act: |a| rename(a, &common(a, "old"), &common(a, "moved")),
    after: |a| unlink(a, &common(a, "moved")),
};
const MOVE_TO_COMMON: Operation = Operation {
    name: "move from a private directory to a common one",
    before: |a| create(a, &own(a, "old")),
    act: |a| rename(a, &own(a, "old"), &common(a, "moved")),
    after: |a| unlink(a, &common(a, "moved")),
};
const REPLACE_COMMON: Operation = Operation {
    name: "rename over a private file in a common directory",
    before: |a| ["old", "new"].iter().for_each(|name| create(a, &common(a, name))),
    act: |a| rename(a, &common(a, "new"), &common(a, "old")),
    after: |a| unlink(a, &common(a, "old")),
};

const MISS_OWN: Operation = plain("miss a name in a private directory", |a| miss_own(a, 'f'));
const MISS_COMMON: Operation = plain("miss a name in a common directory", |a| miss(a, "d0", 'f'));
const MISS_ABSENT: Operation = plain("miss an absent name in a private directory", |a| miss_own(a, 'n'));

/// Pairs that commute: neither can tell which came first. The first is done by one thread, the second by another.
const PAIRS: &[(Operation, Operation)] = &[
    (STAT, STAT),
    (STAT, OPEN),
    (OPEN, OPEN),
    (OPEN_OWN, OPEN_OWN),
    (READ, READ),
    (READ_OWN, READ_OWN),
    (WRITE_OWN, WRITE_OWN),
    (CHMOD_OWN, CHMOD_OWN),
    (LIST, LIST),
    (LIST_OWN, LIST_OWN),
    (STAT, LIST),
    (STAT_OWN, CREATE_COMMON),
    (STAT_OWN, UNLINK_COMMON),
    (STAT_OWN, RENAME_COMMON),
    (STAT_OWN, CHMOD_OWN),
    (OPEN_OWN, CREATE_COMMON),
    (CREATE_COMMON, CREATE_COMMON),
    (CREATE_COMMON, UNLINK_COMMON),
    (UNLINK_COMMON, UNLINK_COMMON),
    (RENAME_COMMON, RENAME_COMMON),
    (CREATE_OWN, CREATE_OWN),
    (CREATE_OWN, UNLINK_OWN),
    (UNLINK_OWN, UNLINK_OWN),
    (RENAME_OWN, RENAME_OWN),
    (CREATE_OWN, RENAME_OWN),
    (STAT_OWN, RENAME_OWN),
    (MISS_OWN, MISS_OWN),
    (MISS_OWN, MISS_ABSENT),
    (MISS_ABSENT, MISS_ABSENT),
    (MISS_COMMON, MISS_COMMON),
];

/// Pairs in a directory that is split, as one is where threads often wait for it.
const SPLIT_PAIRS: &[(Operation, Operation)] = &[
    (CREATE_COMMON, CREATE_COMMON),
    (CREATE_COMMON, UNLINK_COMMON),
    (UNLINK_COMMON, UNLINK_COMMON),
    (STAT_OWN, CREATE_COMMON),
    (OPEN_OWN, UNLINK_COMMON),
    (RENAME_COMMON, RENAME_COMMON),
    (CREATE_COMMON, RENAME_COMMON),
    (UNLINK_COMMON, RENAME_COMMON),
    (STAT_OWN, RENAME_COMMON),
    (REPLACE_COMMON, REPLACE_COMMON),
    (REPLACE_COMMON, RENAME_COMMON),
    (MOVE_TO_COMMON, MOVE_TO_COMMON),
    (MOVE_TO_COMMON, REPLACE_COMMON),
    (MISS_COMMON, MISS_COMMON),
];

/// Rounds before the one that is recorded: what is made at first use is there then.
const ROUNDS: usize = 3;

/// The footprints of each pair's two operations, done by two simulated threads, one after the other.
fn footprints(pairs: Vec<(Operation, Operation)>, is_sharded: bool) -> Vec<[Footprint; 2]> {
    let machine = sim::Machine::preset("epyc192").expect("a preset");
    let config = sim::Config::new(machine, 2, 1_000_000_000);
    let prints: Rc<RefCell<Vec<Vec<Footprint>>>> = Rc::new(RefCell::new(vec![Vec::new(), Vec::new()]));
    let kept = prints.clone();
    let body = move |(vfs, turn): &(Vfs, AtomicUsize), number: usize| {
        let actor = Actor::new(vfs, number);
        let mut step = 0;
        for pair in &pairs {
            let operation = if number == 0 { pair.0 } else { pair.1 };
            for round in 0..=ROUNDS {
                let mut in_turn = |action: &mut dyn FnMut()| {
                    sim::hint::spin_until(|| turn.load(Ordering::Acquire) == 2 * step + number);
                    action();
                    turn.store(2 * step + number + 1, Ordering::Release);
                    step += 1;
                };
                in_turn(&mut || (operation.before)(&actor));
                in_turn(&mut || {
                    let ((), print) = record(|| (operation.act)(&actor));
                    if round == ROUNDS {
                        kept.borrow_mut()[number].push(print);
                    }
                });
                in_turn(&mut || (operation.after)(&actor));
            }
        }
    };
    let of_bodies = Rc::new(body);
    let _report = sim::run(
        config,
        move || (tree(is_sharded), AtomicUsize::new(0)),
        move |state, number| of_bodies(state, number),
    );
    let [first, second]: [Vec<Footprint>; 2] = prints.take().try_into().expect("two threads");
    first.into_iter().zip(second).map(|(first, second)| [first, second]).collect()
}

/// The tree that the operations are done on. If `is_sharded`, all its directories are.
fn tree(is_sharded: bool) -> Vfs {
    let vfs = Vfs::builder().shards_every_directory(is_sharded).build(RamFs::new());
    let context = vfs.context();
    let mkdir = |path: &str| context.mkdir(Base::CWD, path.as_bytes(), 0o755).expect(path);
    mkdir("/d");
    let actors = [Actor::new(&vfs, 0), Actor::new(&vfs, 1)];
    let actor = &actors[0];
    create(actor, "/x");
    create(actor, "/a-name-that-does-not-fit-into-the-first-line-of-its-entry");
    create(actor, "/d/x");
    let mut deep = "/d".to_owned();
    for _ in 1..7 {
        deep += "/d";
        mkdir(&deep);
        create(actor, &format!("{deep}/x"));
    }
    context.symlink(b"/d/d", Base::CWD, b"/link").expect("symlink");
    mkdir("/common");
    create(actor, "/common/x");
    for actor in &actors {
        mkdir(&format!("/own{}", actor.number));
        write_new(actor, &own(actor, "file"));
        write_new(actor, &common(actor, "file"));
    }
    write(actor, "/common/x");
    mount_and_guard(actor);
    mkdir("/kept");
    context.mount(Numbers, Base::CWD, b"/kept", MountFlags::default()).expect("mount");
    (0..3).for_each(|dir| stat(actor, &format!("/kept/d{dir}")));
    vfs
}

/// A file system that keeps its own names: `d` and a number is a directory, `f` and a number a file.
struct Numbers;

impl FileSystem for Numbers {
    fn root(&self) -> NewInode {
        NewInode { node: 1, attr: Attr { mode: S_IFDIR | 0o755, ..Attr::default() }, ..NewInode::default() }
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        let mode = match name[0] {
            b'd' => S_IFDIR | 0o755,
            b'f' => S_IFREG | 0o644,
            _ => return Err(Errno::ENOENT),
        };
        let number = name[1..].iter().fold(1, |number, digit| number * 10 + u64::from(*digit));
        let node = dir.node() << 32 | number;
        Ok(NewInode { node, attr: Attr { ino: node, mode, ..Attr::default() }, ..NewInode::default() })
    }
}

/// What is mounted at `/mounted`, bound at `/bound`, and let into by its ACL alone at `/guarded`.
fn mount_and_guard(actor: &Actor) {
    let context = &actor.context;
    let mkdir = |path: &str, mode| context.mkdir(Base::CWD, path.as_bytes(), mode).expect(path);
    mkdir("/mounted", 0o755);
    context.mount(RamFs::new(), Base::CWD, b"/mounted", MountFlags::default()).expect("mount");
    mkdir("/mounted/sub", 0o755);
    create(actor, "/mounted/sub/x");
    mkdir("/bound", 0o755);
    context.bind(PathAt::cwd(b"/d"), PathAt::cwd(b"/bound"), MountFlags::default(), false).expect("bind");
    mkdir("/guarded", 0o700);
    create(actor, "/guarded/x");
    let entries =
        [(AclTag::UserObj, 7), (AclTag::User(USER), 5), (AclTag::GroupObj, 0), (AclTag::Mask, 5), (AclTag::Other, 0)];
    let acl = Acl::new(&entries.map(|(tag, perm)| AclEntry { tag, perm })).expect("an ACL");
    let name = AclKind::Access.xattr_name();
    context.set_xattr(Base::CWD, b"/guarded", true, name, &acl.to_xattr(), SetXattr::Any).expect("set the ACL");
}

fn write_new(actor: &Actor, path: &str) {
    create(actor, path);
    write(actor, path);
}

/// The source files of the accesses to one line, each once: what the line is, for people and for the table.
fn files(conflict: &Conflict) -> String {
    let touches = conflict.ours.iter().chain(&conflict.theirs);
    let names: BTreeSet<&str> = touches.map(|touch| touch.file.rsplit('/').next().unwrap_or_default()).collect();
    names.into_iter().collect::<Vec<&str>>().join("+")
}

#[test]
fn a_cached_lookup_writes_to_no_line_that_another_one_touches() {
    let _alone = alone();
    let pairs: Vec<(Operation, Operation)> =
        LOOKUPS.iter().flat_map(|one| LOOKUPS.iter().map(move |other| (*one, *other))).collect();
    for (pair, [one, other]) in pairs.iter().zip(footprints(pairs.clone(), false)) {
        assert!(one.lines() > 2, "{}: nothing was recorded", pair.0.name);
        let conflicts = one.conflicts(&other);
        assert!(conflicts.is_empty(), "{} and {}: {conflicts:#?}", pair.0.name, pair.1.name);
    }
}

#[test]
fn a_lookup_beside_a_change_of_what_it_looks_at_is_seen_to_conflict() {
    let _alone = alone();
    let pairs = vec![(STAT_OWN, plain("chmod /common/file0", |a| chmod(a, "/common/file0")))];
    let [one, other] = footprints(pairs, false).remove(0);
    assert!(!one.conflicts(&other).is_empty(), "the test is blind");
}

#[test]
fn pairs_that_commute_conflict_on_the_listed_lines_and_on_no_others() {
    let _alone = alone();
    let mut table = String::new();
    let whole = PAIRS.iter().zip(footprints(PAIRS.to_vec(), false)).map(|of| (of, ""));
    let split = SPLIT_PAIRS.iter().zip(footprints(SPLIT_PAIRS.to_vec(), true)).map(|of| (of, ", split"));
    for ((pair, [one, other]), how) in whole.chain(split) {
        let mut lines: Vec<String> = one.conflicts(&other).iter().map(files).collect();
        lines.sort();
        let lines =
            if lines.is_empty() { "none".to_owned() } else { format!("{} lines: {}", lines.len(), lines.join(", ")) };
        table += &format!("{}{how} | {}{how} | {lines}\n", pair.0.name, pair.1.name);
    }
    let listed: String = include_str!("../conflicts.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(
        table == listed,
        "the conflicts are not those of lab/report/tests/conflicts.txt. If there are fewer, list these, and be glad; \
         if there are more, operations that scaled do not any more:\n{table}"
    );
}

#[test]
fn contexts_that_many_cpus_make_at_once_wait_for_no_lock() {
    let _alone = alone();
    let machine = sim::Machine::preset("epyc192").expect("a preset");
    let mut config = sim::Config::new(machine, 192, 100);
    config.warm_ns = 0;
    let report = sim::run(
        config,
        || Vfs::new(RamFs::new()),
        |vfs, _| {
            vfs.context().attr(Base::CWD, b"/", true).expect("the root");
        },
    );
    assert_eq!(report.counters.parks, 0, "{:?}", report.counters);
}
