//! What is held and what is freed: counts after storms, and drops in every order.

use crate::namespace::rng::Rng;
use crate::races::race::Race;
use lightfoot::{Context, Credentials, File, Vfs};
use ramfs::RamFs;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use vfs::{After, Errno, FileSystem, Inode, Layer, NewNode, Open, Position, Request, SetAttr, Written};

/// What happened to inodes and their data.
#[derive(Debug, Default)]
struct Counts {
    created: AtomicU64,
    evicted: AtomicU64,
    unmounted: AtomicU64,
    made: AtomicU64,
    dropped: AtomicU64,
}

/// The data of one inode.
struct Data {
    counts: Arc<Counts>,
    ino: u64,
}

impl Drop for Data {
    fn drop(&mut self) {
        self.counts.dropped.fetch_add(1, SeqCst);
    }
}

/// A [`RamFs`] without contents, that counts. An inode gets its [`Data`] when its mode is changed, so the file system inside,
/// which keeps its charge for further names there, does not learn of those.
struct Counting {
    inner: RamFs,
    counts: Arc<Counts>,
    /// Hears when the file system is dropped.
    gone: mpsc::Sender<()>,
}

impl Drop for Counting {
    fn drop(&mut self) {
        let _ = self.gone.send(());
    }
}

impl Counting {
    fn tree() -> (Vfs, Arc<Counts>, mpsc::Receiver<()>) {
        let (gone, is_gone) = mpsc::channel();
        let counts = Arc::new(Counts::default());
        (Vfs::new(Self { inner: RamFs::new(), counts: counts.clone(), gone }), counts, is_gone)
    }
}

impl Layer for Counting {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.inner
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        self.counts.created.fetch_add(1, SeqCst);
        self.inner.create(request, dir, name, new)
    }

    fn link(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<After, Errno> {
        Ok(After::NONE)
    }

    fn set_attr(&self, _: &Request, inode: &Inode, _: &SetAttr) -> Result<After, Errno> {
        let make = || {
            self.counts.made.fetch_add(1, SeqCst);
            Data { counts: self.counts.clone(), ino: inode.attr().ino }
        };
        let data = inode.data_or(make).ok_or(Errno::EIO)?;
        assert_eq!(data.ino, inode.attr().ino, "the data of another inode");
        Ok(After::NONE)
    }

    /// Answers the inode number that the data was made for, if there is data.
    fn read(&self, _: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let data = file.inode.data::<Data>().ok_or(Errno::EIO)?;
        assert_eq!((offset, buf.len()), (0, 8));
        buf.copy_from_slice(&data.ino.to_le_bytes());
        Ok(8)
    }

    fn write(&self, _: &Request, _: &Open<'_>, _: Position, data: &[u8]) -> Result<Written, Errno> {
        Ok(Written::new(data.len(), 0))
    }

    fn evict(&self, inode: &Inode) {
        // What has names goes only with the whole tree.
        let counter = if inode.attr().nlink == 0 { &self.counts.evicted } else { &self.counts.unmounted };
        counter.fetch_add(1, SeqCst);
    }
}

/// Reads what [`Counting`] reports of an open file.
fn data_of(file: &File) -> u64 {
    let mut bytes = [0; 8];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 8);
    u64::from_le_bytes(bytes)
}

fn chmod(context: &Context, path: &str) {
    context.set_permissions(path, lightfoot::Permissions::from_mode(0o700)).unwrap();
}

fn storm_step(context: &Context, rng: &mut Rng) {
    let mut pick = || format!("/{}/{}", rng.below(3), ["short", "a-name-of-more-than-thirty-two-bytes"][rng.below(2)]);
    let (path, other) = (pick(), pick());
    let _ = match rng.below(10) {
        0 | 1 => context.mknod(&path, 0o644, 0),
        2 => context.create_dir(&path),
        3 => context.remove_file(&path),
        4 => context.remove_dir(&path),
        5 => context.rename(&path, &other),
        6 => context.hard_link(&path, &other),
        7 => context.symlink("a/body/of/some/length", &path),
        8 => context.set_permissions(&path, lightfoot::Permissions::from_mode(0o755)),
        _ => context.open(&path).map(|file| {
            let ino = file.metadata().unwrap().ino();
            let _ = context.remove_file(&path);
            let mut bytes = [0; 8];
            if file.read_at(&mut bytes, 0).is_ok() {
                assert_eq!(u64::from_le_bytes(bytes), ino);
            }
        }),
    };
}

/// A tree after a storm of three threads, one of which goes from directory to directory, and its context.
fn stormed(vfs: &Vfs) -> Context {
    let context = vfs.context();
    (0..3).for_each(|dir| context.create_dir(format!("/{dir}")).unwrap());
    let wanderer = context.fork();
    let (context_ref, wanderer) = (&context, &wanderer);
    let step = move |_: u64, rng: &mut Rng| storm_step(context_ref, rng);
    Race::default()
        .writer(15_000, step)
        .writer(15_000, step)
        .writer(5_000, move |_, rng| {
            let _ = wanderer.set_current_dir(format!("/{}/short", rng.below(3)));
            wanderer.set_credentials(Credentials::root());
            let _ = wanderer.exists("..");
        })
        .run();
    context
}

/// Names below `dir`.
fn names_below(context: &Context, dir: &str) -> usize {
    let entries: Vec<_> = context.read_dir(dir).unwrap().map(Result::unwrap).collect();
    let below = entries.iter().filter(|entry| entry.file_type().unwrap().is_dir());
    entries.len() + below.map(|entry| names_below(context, entry.path().to_str().unwrap())).sum::<usize>()
}

/// Frees all that was deferred, and what that defers in turn.
fn settle(vfs: &Vfs) {
    vfs.barrier();
    vfs.barrier();
    assert_eq!((vfs.rcu_stats().deferred_bytes, vfs.rcu_stats().deferred_callbacks), (0, 0));
}

#[test]
fn after_a_storm_contexts_hold_their_root_and_working_directory_and_nobody_else_holds_anything() {
    let (vfs, ..) = Counting::tree();
    let context = stormed(&vfs);
    settle(&vfs);
    let stats = vfs.cache_stats();
    assert_eq!((stats.held, stats.live_dentries), (2, names_below(&context, "/") + 1));
    let other = context.fork();
    other.set_current_dir("/1").unwrap();
    settle(&vfs);
    assert_eq!(vfs.cache_stats().held, 4);
    let file = File::create(&context, "/file").unwrap();
    assert_eq!(vfs.cache_stats().held, 5);
    drop((file, other, context));
    assert_eq!(vfs.cache_stats().held, 0);
}

#[test]
fn when_all_names_have_gone_the_root_is_left_and_every_inode_was_evicted_once() {
    let (vfs, counts, _) = Counting::tree();
    let context = stormed(&vfs);
    context.read_dir("/").unwrap().for_each(|entry| context.remove_dir_all(entry.unwrap().path()).unwrap());
    settle(&vfs);
    let stats = vfs.cache_stats();
    assert_eq!((stats.held, stats.live_dentries), (2, 1));
    let of = |count: &AtomicU64| count.load(SeqCst);
    assert!(of(&counts.made) > 100, "{counts:?}");
    assert_eq!((of(&counts.created), of(&counts.made)), (of(&counts.evicted), of(&counts.dropped)), "{counts:?}");
    let root = context.metadata("/").unwrap();
    assert_eq!((root.nlink(), root.size()), (2, 40));
}

#[test]
fn a_tree_that_is_dropped_with_names_in_it_drops_the_data_of_each_inode_once() {
    let (vfs, counts, gone) = Counting::tree();
    let context = stormed(&vfs);
    drop((context, vfs));
    gone.recv_timeout(PATIENCE).expect("the tree was never dropped");
    assert!(counts.made.load(SeqCst) > 100, "{counts:?}");
    assert_eq!(counts.made.load(SeqCst), counts.dropped.load(SeqCst), "{counts:?}");
}

#[test]
fn an_open_file_keeps_its_inode_when_its_names_have_gone() {
    let (vfs, counts, _) = Counting::tree();
    let context = vfs.context();
    let file = File::create_new(&context, "/file").unwrap();
    chmod(&context, "/file");
    let ino = file.metadata().unwrap().ino();
    context.hard_link("/file", "/other").unwrap();
    context.remove_file("/file").unwrap();
    context.remove_file("/other").unwrap();
    // The memory of the names is used again, that of the inode is not.
    (0..200).for_each(|number| context.mknod(format!("/{number}"), 0o600, 0).unwrap());
    assert_eq!((data_of(&file), counts.evicted.load(SeqCst)), (ino, 0));
    drop(file);
    assert_eq!((counts.evicted.load(SeqCst), counts.dropped.load(SeqCst)), (1, 1));
}

#[test]
fn a_file_without_a_name_holds_the_directories_above_it_without_names() {
    let (vfs, counts, _) = Counting::tree();
    let context = vfs.context();
    context.create_dir_all("/a/b").unwrap();
    let file = File::create_new(&context, "/a/b/file").unwrap();
    context.remove_file("/a/b/file").unwrap();
    context.remove_dir("/a/b").unwrap();
    context.remove_dir("/a").unwrap();
    assert_eq!((vfs.cache_stats().live_dentries, counts.evicted.load(SeqCst)), (4, 0));
    drop(file);
    assert_eq!((vfs.cache_stats().live_dentries, counts.evicted.load(SeqCst)), (1, 3));
}

#[test]
fn a_long_name_is_freed_when_it_goes_or_becomes_short() {
    let vfs = Vfs::ram();
    let context = vfs.context();
    let long = |letter: &str| format!("/{}", letter.repeat(200));
    let mut freed = 0;
    let mut check = |what: &str, change: &dyn Fn(), least: u64| {
        change();
        settle(&vfs);
        let now = vfs.rcu_stats().freed_bytes;
        assert!(now >= freed + least, "{what} freed {} bytes, and should have freed {least}", now - freed);
        freed = now;
    };
    check("making", &|| context.mknod(long("a"), 0o644, 0).unwrap(), 0);
    check("another long name", &|| context.rename(long("a"), long("b")).unwrap(), 200);
    check("a short name", &|| context.rename(long("b"), "/b").unwrap(), 200);
    check("a long name again", &|| context.rename("/b", long("c")).unwrap(), 0);
    check("removing", &|| context.remove_file(long("c")).unwrap(), 200);
}

/// How long a test waits for an event that must come, before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Drops the handles that keep a tree alive in the order of `order`, each on a separate thread if `elsewhere`. The file
/// stays readable until its handle is dropped. The last drop frees the tree.
fn check_drop_order(order: [usize; 5], elsewhere: bool, replaced: bool) {
    let (vfs, counts, gone) = Counting::tree();
    let context = vfs.context();
    context.create_dir("/d").unwrap();
    let file = Arc::new(File::create_new(&context, "/d/file").unwrap());
    chmod(&context, "/d/file");
    let ino = file.metadata().unwrap().ino();
    let fork = context.fork();
    if replaced {
        fork.set_current_dir("/d").unwrap();
        fork.set_credentials(Credentials::user(1, 1, &[]));
    }
    let listing = context.read_dir("/d").unwrap();
    let reader = Arc::downgrade(&file);
    let mut things: [Option<Box<dyn Any + Send>>; 5] = [
        Some(Box::new(vfs)),
        Some(Box::new(context)),
        Some(Box::new(fork)),
        Some(Box::new(listing)),
        Some(Box::new(file)),
    ];
    for number in order {
        assert!(gone.try_recv().is_err(), "the tree went too early");
        let thing = things[number].take();
        match elsewhere {
            true => std::thread::spawn(move || drop(thing)).join().unwrap(),
            false => drop(thing),
        }
        if let Some(file) = reader.upgrade() {
            assert_eq!(data_of(&file), ino);
        }
    }
    let case = format!("{order:?}, elsewhere {elsewhere}, state replaced {replaced}");
    gone.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the tree was never dropped: {case}"));
    assert_eq!((counts.made.load(SeqCst), counts.dropped.load(SeqCst)), (1, 1), "{case}");
}

#[test]
fn a_tree_goes_with_the_last_of_its_handles_contexts_and_files_in_whatever_order() {
    let mut order = [0, 1, 2, 3, 4];
    let mut rng = Rng::new(7);
    for round in 0..120 {
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last + 1));
        }
        check_drop_order(order, round % 2 == 0, round % 4 < 2);
    }
}
