//! A file system that hangs in each of its methods, behind `Bounded`: every caller returns, nothing is lost, and the cache agrees
//! with the back end afterwards.

use lightfoot_vfs::{
    Allocate, Base, Bounded, Cancel, Context, Errno, FileHandle, FileSystem, FsTraits, Inode, InodeFlags, Layer,
    NewInode, NextNames, OpenFile, OpenFlags, OpenState, Opened, PathAt, PathRef, RenameFlags, Request, SeekFor,
    SetAttr, SetXattr, Vfs,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use testkit::{Counting, Counts, Fault, Faults, Ledger, Opens, Plan, Store};

const PATHS: &[&str] =
    &["dir/", "dir/seen", "dir/unseen", "dir/victim", "dir/old", "deep/", "deep/sub/", "file", "other", "link -> file"];

/// The store with links that come without their bodies: so that every method is called.
struct Full<F>(F);

impl<F: FileSystem> Layer for Full<F> {
    type Inner = F;

    fn inner(&self) -> &F {
        &self.0
    }

    fn traits(&self) -> FsTraits {
        FsTraits { opens: lightfoot_vfs::Opens::Yes { flush: true }, reflinks: 1, ..self.0.traits() }
    }

    fn lookup(&self, request: &Request, dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        Ok(NewInode { link_body: None, ..self.0.lookup(request, dir, name, next)? })
    }

    fn inode_flags(&self, request: &Request, inode: &Inode) -> Result<InodeFlags, Errno> {
        match self.0.inode_flags(request, inode) {
            Err(Errno::ENOTTY) => Ok(InodeFlags::default()),
            answer => answer,
        }
    }
}

/// A tree over a bounded store, with files that are open already.
struct World {
    store: Store,
    plan: Arc<Plan>,
    opens: Arc<Opens>,
    counts: Arc<Counts>,
    vfs: Vfs,
    context: Context,
    root: PathRef,
    place: PathRef,
    file: OpenFile,
    other: OpenFile,
    dir: OpenFile,
}

fn open(context: &Context, path: &[u8], flags: OpenFlags) -> Result<OpenFile, Errno> {
    context.open(Base::CWD, path, flags, 0o644)
}

fn at(path: &[u8]) -> PathAt<'_> {
    PathAt::new(Base::CWD, path)
}

/// No call takes so long.
const LONG: Duration = Duration::from_secs(3600);

impl World {
    /// A tree whose calls end after `timeout`, and those of its context after `own_timeout`. `ETIMEDOUT` if one took longer by itself.
    fn new(timeout: Duration, own_timeout: Option<Duration>) -> Result<Self, Errno> {
        let store = Store::with_paths(PATHS);
        store.write(store.node("file"), b"contents");
        let (faults, plan) = Faults::of(Box::new(store.clone()));
        let (ledger, opens) = Ledger::of(Box::new(Full(faults)));
        let (counting, counts) = Counting::of(Box::new(ledger));
        let vfs = Vfs::new(Bounded::of(Box::new(counting), timeout));
        let context = vfs.context();
        context.set_timeout_ns(own_timeout.map(|timeout| timeout.as_nanos() as u64));
        let root = context.hold(Base::CWD, b"/", true)?;
        let place = context.hold(Base::CWD, b"/dir/seen", true)?;
        for seen in [b"/dir/victim".as_slice(), b"/dir/old", b"/link"] {
            context.attr(Base::CWD, seen, false)?;
        }
        let file = open(&context, b"/file", OpenFlags::RDWR)?;
        let other = open(&context, b"/other", OpenFlags::RDWR)?;
        let dir = open(&context, b"/dir", OpenFlags::RDONLY)?;
        Ok(Self { store, plan, opens, counts, vfs, context, root, place, file, other, dir })
    }

    /// The tree agrees with another one over the same store, whose cache is empty.
    fn agrees(&self) -> bool {
        contents(&self.context).is_ok_and(|here| Ok(here) == contents(&self.store.tree().context()))
    }

    /// Ends the tree: everything was released and evicted.
    fn end(self) {
        let Self { opens, counts, plan, .. } = &self;
        let (opens, counts, plan) = (opens.clone(), counts.clone(), plan.clone());
        assert_eq!(self.vfs.callback_panics(), 0);
        drop(self);
        assert!(counts.ends_within(Duration::from_secs(60)), "the file system stays");
        assert_eq!(plan.hanging(), 0);
        opens.check_the_end().unwrap();
        assert!(counts.evicted_twice().is_empty());
    }
}

type File = (u64, u32, u32, Vec<u8>);

/// All files by path: number, mode, links, contents.
fn contents(context: &Context) -> Result<BTreeMap<Vec<u8>, File>, Errno> {
    let (mut found, mut dirs) = (BTreeMap::new(), vec![b"/".to_vec()]);
    while let Some(dir) = dirs.pop() {
        let listing = open(context, &dir, OpenFlags::RDONLY)?;
        loop {
            let entries = listing.next_entries()?;
            if entries.is_empty() {
                break;
            }
            for entry in entries {
                let path = [&dir[..], &*entry.name].concat();
                let attr = context.attr(Base::CWD, &path, false)?;
                let data = match attr.mode & 0o170_000 {
                    0o040_000 => {
                        dirs.push([&path[..], b"/"].concat());
                        Vec::new()
                    }
                    0o120_000 => context.read_link(Base::CWD, &path)?,
                    _ => {
                        let mut data = vec![0; attr.size as usize];
                        let len = open(context, &path, OpenFlags::RDONLY)?.read_at(0, &mut data)?;
                        data.truncate(len);
                        data
                    }
                };
                found.insert(path, (attr.ino, attr.mode, attr.nlink, data));
            }
        }
    }
    Ok(found)
}

/// An operation that calls one method.
type Act = fn(&World) -> Result<(), Errno>;

/// Every method that has a caller, and an operation that calls it; those of a closing file return nothing.
const METHODS: &[(&str, Act)] = &[
    ("lookup", |world| world.context.attr(Base::CWD, b"/dir/unseen", true).map(drop)),
    ("lookup_many", |world| {
        world.context.attr_many(Base::CWD, &[b"/dir/unseen", b"/dir/none"], true, |_, _| {});
        Ok(())
    }),
    ("revalidate", |world| {
        world.store.invalidator().entry(world.store.node("dir"), b"seen");
        world.context.attr(Base::CWD, b"/dir/seen", true).map(drop)
    }),
    ("by_id", |world| {
        let handle = world.context.handle_of(&world.place)?;
        world.context.hold_handle(&world.root, &handle).map(drop)
    }),
    ("parent", |world| {
        // Of a directory that the cache does not have.
        let id = world.store.node("deep/sub").to_le_bytes();
        let handle = FileHandle::from_bytes(&[&[1, 0, 0, 0, 0], &id[..]].concat())?;
        world.context.hold_handle(&world.root, &handle).map(drop)
    }),
    ("read_link", |world| world.context.read_link(Base::CWD, b"/link").map(drop)),
    ("read_dir", |world| world.dir.next_entries().map(drop)),
    ("create", |world| world.context.mkdir(Base::CWD, b"/dir/new", 0o755)),
    ("create", |world| open(&world.context, b"/dir", OpenFlags::TMPFILE.union(OpenFlags::RDWR)).map(drop)),
    ("link", |world| world.context.link(at(b"/file"), at(b"/dir/further"), false)),
    ("unlink", |world| world.context.unlink(Base::CWD, b"/dir/victim")),
    ("rename", |world| world.context.rename(at(b"/dir/old"), at(b"/dir/victim"), RenameFlags::default())),
    ("set_attr", |world| world.file.set_attr(&SetAttr { mode: Some(0o600), ..SetAttr::default() })),
    ("attributes", |world| world.place.attr_anew().map(drop)),
    ("birth", |world| world.place.birth().map(drop)),
    ("open", |world| open(&world.context, b"/dir/seen", OpenFlags::RDWR).map(drop)),
    ("release", |world| {
        let _ = open(&world.context, b"/dir/seen", OpenFlags::RDWR)?;
        Ok(())
    }),
    ("read", |world| world.file.read_at(0, &mut [0; 8]).map(drop)),
    ("write", |world| world.file.write_at(4, b"more contents").map(drop)),
    ("copy_range", |world| world.file.copy_to(0, &world.other, 0, 4).map(drop)),
    ("set_len", |world| world.file.set_len(3)),
    ("allocate", |world| world.file.allocate(Allocate::Reserve, false, 0, 100)),
    ("seek", |world| world.file.seek_for(SeekFor::Data, 0).map(drop)),
    ("sync", |world| world.file.sync(false)),
    ("flush", |world| world.file.flush()),
    ("get_xattr", |world| world.file.get_xattr(b"user.x").map(drop)),
    ("set_xattr", |world| world.file.set_xattr(b"user.x", b"value", SetXattr::Any)),
    ("remove_xattr", |world| world.file.remove_xattr(b"user.x")),
    ("list_xattrs", |world| world.file.list_xattrs().map(drop)),
    ("statfs", |world| world.root.statvfs().map(drop)),
    ("inode_flags", |world| world.context.inode_flags_held(&world.place).map(drop)),
    ("set_inode_flags", |world| world.context.set_inode_flags_held(&world.place, InodeFlags::NOATIME)),
];

/// Methods without a request: nobody waits for their answer, or they must not block.
const WITHOUT_CALLER: &[&str] = &["root", "traits", "mounted", "id", "evict"];

#[test]
fn the_table_has_every_method_of_the_trait() {
    let text = include_str!("../../src/fs.rs");
    let methods = text.lines().filter_map(|line| line.strip_prefix("    fn ")?.split('(').next());
    let mut methods: Vec<_> = methods.collect();
    let mut table: Vec<_> = METHODS.iter().map(|(method, _)| *method).chain(WITHOUT_CALLER.iter().copied()).collect();
    methods.sort_unstable();
    table.sort_unstable();
    table.dedup();
    assert_eq!(table, methods);
}

/// What a caller that leaves gets. That of a close gets nothing, and that of a batch what the lookups after it return.
fn refusal(method: &str, errno: Errno) -> Result<(), Errno> {
    if matches!(method, "release" | "lookup_many") { Ok(()) } else { Err(errno) }
}

/// Waits until `is_so`. What takes longer than a minute is stuck.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > Duration::from_secs(60) {
            panic!("{what}: stuck");
        }
        thread::yield_now();
    }
}

/// Lets the call go on, and waits until the cache agrees with the back end.
fn check_the_rest(method: &str, world: World) {
    world.plan.release();
    wait_until(method, || world.plan.hanging() == 0 && world.agrees());
    // Everything works, in the same places too.
    let context = &world.context;
    context.mknod(Base::CWD, b"/dir/last", 0o644, 0).unwrap_or_else(|errno| panic!("{method}: {errno}"));
    context.unlink(Base::CWD, b"/dir/last").unwrap();
    assert_eq!(world.file.write_at(0, b"0123").unwrap(), (4, 4), "{method}");
    assert!(world.agrees(), "{method}");
    world.end();
}

#[test]
fn every_caller_returns_at_its_deadline() {
    for &(method, act) in METHODS {
        // On a busy machine a call may take longer than the timeout by itself.
        let is_done = (0..8).any(|attempt| {
            let timeout = Duration::from_millis(20 << attempt);
            // What takes longer the more data there are has only the deadline of its caller.
            let is_evictable = !matches!(method, "copy_range" | "sync" | "flush");
            let world = if is_evictable { World::new(timeout, None) } else { World::new(LONG, Some(timeout)) };
            let Ok(world) = world else { return false };
            world.plan.set(move |call| (call.method == method).then_some(Fault::Hang));
            let answer = act(&world);
            if world.plan.calls(method) == 0 {
                return false;
            }
            assert_eq!(answer, refusal(method, Errno::ETIMEDOUT), "{method}");
            world.plan.wait_for(1);
            world.plan.release();
            true
        });
        assert!(is_done, "{method}: not called");
    }
}

#[test]
fn every_caller_returns_when_it_is_cancelled() {
    for &(method, act) in METHODS {
        let world = World::new(LONG, None).unwrap();
        world.plan.set(move |call| (call.method == method).then_some(Fault::Hang));
        let cancel = Cancel::new();
        let answer = thread::scope(|scope| {
            let caller = scope.spawn(|| cancel.scope(|| act(&world)));
            while world.plan.hanging() == 0 {
                assert!(!caller.is_finished(), "{method}: not called");
                thread::yield_now();
            }
            assert!(!caller.is_finished(), "{method}");
            cancel.cancel();
            caller.join().unwrap()
        });
        assert_eq!(answer, refusal(method, Errno::EINTR), "{method}");
        check_the_rest(method, world);
    }
}

#[test]
fn a_deadline_of_a_context_holds_for_the_files_that_it_opened() {
    let world = World::new(LONG, None).unwrap();
    world.context.set_timeout_ns(Some(u64::MAX));
    let patient = open(&world.context, b"/file", OpenFlags::RDWR).unwrap();
    world.context.set_timeout_ns(Some(20_000_000));
    let answers = (0..).map(|_| open(&world.context, b"/file", OpenFlags::RDWR));
    let impatient = answers.flatten().next().unwrap();
    world.plan.set(|call| (call.method == "read").then_some(Fault::Hang));
    assert_eq!(impatient.read_at(0, &mut [0; 8]), Err(Errno::ETIMEDOUT));
    thread::scope(|scope| {
        let reader = scope.spawn(|| patient.read_at(0, &mut [0; 8]));
        world.plan.wait_for(2);
        assert!(!reader.is_finished());
        world.plan.release();
        assert_eq!(reader.join().unwrap(), Ok(8));
    });
    world.context.set_timeout_ns(None);
    drop((patient, impatient));
    check_the_rest("read", world);
}

#[test]
fn a_reflink_ends_at_the_deadline_of_its_target() {
    let world = World::new(LONG, None).unwrap();
    world.context.set_timeout_ns(Some(20_000_000));
    let target = (0..).find_map(|_| open(&world.context, b"/other", OpenFlags::RDWR).ok()).unwrap();
    world.plan.set(|call| (call.method == "copy_range").then_some(Fault::Hang));
    assert_eq!(world.file.clone_to(0, &target, 0, 0), Err(Errno::ETIMEDOUT));
    world.context.set_timeout_ns(None);
    drop(target);
    check_the_rest("copy_range", world);
}

#[test]
fn an_answer_in_time_is_the_file_systems_own() {
    let world = World::new(LONG, None).unwrap();
    for &(method, act) in METHODS {
        world.plan.set(move |call| (call.method == method).then_some(Fault::Fail(Errno::EDQUOT)));
        assert_eq!(act(&world), refusal(method, Errno::EDQUOT), "{method}");
    }
    world.plan.release();
    assert!(world.agrees());
    world.end();
}

#[test]
fn a_file_system_that_hears_of_its_callers_end_stops() {
    for (timeout, errno) in [(Duration::from_millis(100), Errno::ETIMEDOUT), (LONG, Errno::EINTR)] {
        let world = (0..).find_map(|_| World::new(timeout, None).ok()).unwrap();
        world.plan.set(|call| (call.method == "write").then_some(Fault::HangWhileAwaited));
        let cancel = Cancel::new();
        let answer = thread::scope(|scope| {
            let writer = scope.spawn(|| cancel.scope(|| world.file.write_at(0, b"lost")));
            world.plan.wait_for(u32::from(timeout == LONG));
            if timeout == LONG {
                cancel.cancel();
            }
            writer.join().unwrap()
        });
        assert_eq!(answer, Err(errno));
        wait_until("the call stops", || world.plan.hanging() == 0);
        world.plan.release();
        world.end();
    }
}

#[test]
fn when_all_threads_hang_calls_wait_for_one_until_their_deadlines() {
    let (faults, plan) = Faults::of(Box::new(Store::with_paths(&["a", "b", "c", "d"])));
    let vfs = Vfs::new(Bounded::of(Box::new(faults), LONG).threads(2));
    let (patient, impatient) = (vfs.context(), vfs.context());
    impatient.set_timeout_ns(Some(20_000_000));
    let places = [b"/a", b"/b", b"/c"].map(|path| patient.hold(Base::CWD, path, true).unwrap());
    plan.set(|call| (call.method == "get_xattr").then_some(Fault::Hang));
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let hung = places.each_ref().map(|place| {
            let (context, cancel) = (&patient, &cancel);
            scope.spawn(move || cancel.scope(|| context.get_xattr_held(place, b"user.x")))
        });
        plan.wait_for(2);
        assert_eq!(impatient.get_xattr_held(&places[0], b"user.x"), Err(Errno::ETIMEDOUT));
        // Also for one that would not hang.
        assert_eq!(impatient.attr(Base::CWD, b"/d", true).map(drop), Err(Errno::ETIMEDOUT));
        assert_eq!(plan.hanging(), 2);
        plan.release();
        for hung in hung {
            assert_eq!(hung.join().unwrap(), Err(Errno::ENODATA), "the third one got a thread");
        }
    });
}

#[test]
fn an_error_of_a_late_sync_is_reported_by_the_next_one() {
    let world = World::new(LONG, None).unwrap();
    world.plan.set(|call| match (call.method, call.number) {
        ("sync", 0) => Some(Fault::Hang),
        _ => None,
    });
    world.opens.fail_writing(Errno::EIO);
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let syncing = scope.spawn(|| cancel.scope(|| world.dir.sync(false)));
        world.plan.wait_for(1);
        cancel.cancel();
        assert_eq!(syncing.join().unwrap(), Err(Errno::EINTR));
    });
    world.plan.release();
    wait_until("the late error", || world.dir.sync(false) == Err(Errno::EIO));
    assert_eq!(world.dir.sync(false), Ok(()));
    world.end();
}

#[test]
fn names_in_the_cache_alone_are_changed_in_the_callers_thread() {
    let options = testkit::StoreOptions { names_in_cache: true, ..testkit::StoreOptions::default() };
    let (faults, plan) = Faults::of(Box::new(Store::new(options)));
    let context = Vfs::new(Bounded::of(Box::new(faults), Duration::from_millis(1))).context();
    plan.set(|call| (call.method == "create").then_some(Fault::Hang));
    thread::scope(|scope| {
        let maker = scope.spawn(|| context.mkdir(Base::CWD, b"/dir", 0o755));
        plan.wait_for(1);
        plan.release();
        assert_eq!(maker.join().unwrap(), Ok(()));
    });
    assert!(context.attr(Base::CWD, b"/dir", true).is_ok());
}

#[test]
fn a_stuck_call_delays_only_a_second_change_of_its_name() {
    let world = World::new(LONG, None).unwrap();
    world.plan.set(|call| (call.method == "create").then_some(Fault::Hang));
    let cancel = Cancel::new();
    thread::scope(|scope| {
        let stuck = scope.spawn(|| cancel.scope(|| world.context.mkdir(Base::CWD, b"/dir/new", 0o755)));
        world.plan.wait_for(1);
        world.plan.set(|_| None);
        let context = world.vfs.context();
        context.unlink(Base::CWD, b"/dir/victim").unwrap();
        context.rename(at(b"/dir/old"), at(b"/dir/older"), RenameFlags::default()).unwrap();
        assert!(world.context.attr(Base::CWD, b"/dir/unseen", true).is_ok());
        assert!(!world.dir.next_entries().unwrap().is_empty());
        assert!(!stuck.is_finished());
        context.set_timeout_ns(Some(20_000_000));
        assert_eq!(context.mkdir(Base::CWD, b"/dir/new", 0o755), Err(Errno::ETIMEDOUT), "its name is locked");
        cancel.cancel();
        assert_eq!(stuck.join().unwrap(), Err(Errno::EINTR));
    });
    check_the_rest("create", world);
}

/// Keeps for each open a value that sends the thread on which it is dropped.
struct Dropping(Store, Sender<ThreadId>);

struct Dropped(Sender<ThreadId>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send(thread::current().id()).unwrap();
    }
}

impl Layer for Dropping {
    type Inner = Store;

    fn inner(&self) -> &Store {
        &self.0
    }

    fn open(&self, _: &Request, _: &Inode, _: OpenFlags) -> Result<Opened, Errno> {
        Ok(Opened { state: OpenState::Shared(Arc::new(Dropped(self.1.clone()))), ..Opened::default() })
    }
}

#[test]
fn what_an_open_keeps_is_dropped_by_a_thread_of_the_pool() {
    let (sender, threads) = channel();
    let vfs = Vfs::new(Bounded::of(Box::new(Dropping(Store::with_paths(&["file"]), sender)), LONG));
    drop(open(&vfs.context(), b"/file", OpenFlags::RDONLY).unwrap());
    assert_ne!(threads.recv().unwrap(), thread::current().id());
}

#[test]
fn a_cancellation_ends_no_call_before_it_has_its_effect() {
    let world = World::new(LONG, None).unwrap();
    for (patience, errno) in [(Duration::MAX, None), (Duration::from_millis(20), Some(Errno::EINTR))] {
        world.plan.set(|call| (call.method == "list_xattrs").then_some(Fault::Hang));
        let cancel = Cancel::after(patience);
        let answer = thread::scope(|scope| {
            let caller = scope.spawn(|| cancel.scope(|| world.file.list_xattrs()));
            world.plan.wait_for(1);
            cancel.cancel();
            errno.is_none().then(|| world.plan.release());
            caller.join().unwrap()
        });
        assert_eq!(answer.err(), errno);
        world.plan.release();
    }
    world.end();
}
