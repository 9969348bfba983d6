//! Proof that a cached lookup writes to no shared memory: the test starts itself again as another process, which builds a
//! tree, makes the memory of the dentry cache and of its hash table read-only, and then looks names up. A store to either
//! ends that process with SIGSEGV, as it must when a query does store.
//!
//! What stays writable is small: each thread's own line of the RCU domain, counters, the heap's small blocks. The cache's
//! memory is known by size and by the moment when it was mapped: in that process no large block is ever unmapped
//! ([`Blocks`]), so a mapping that is new does not lie where an old one was.

#![allow(unsafe_code, reason = "it makes the cache's memory read-only")]

use crate::rng::Rng;
use lightfoot::{Context, Credentials, Fallback, File, Permissions, R_OK, Vfs, W_OK};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Range;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Barrier;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use testkit::{Store, StoreOptions};

/// The variable that makes this the second process, and selects its work.
const ROLE: &str = "STORE_FREE_ROLE";

/// The role of lookups by the table of whole paths.
const BY_TABLE: &str = "look by the table";

/// The same, of names that do not exist.
const ABSENT: &str = "look by the table for what is not there";

/// A lookup of a path that the table does not have: it stores to the table, which must end the process.
const RECORD: &str = "record a path";

/// Bytes of that table: enough for its entries and its lists to be large.
const TABLE: usize = 2 << 20;

/// The second process's exit status when it has done all.
const DONE: i32 = 42;

/// Threads that look up at once, and lookups of each.
const THREADS: usize = 2;
const LOOKUPS: usize = 50_000;

/// Blocks of the cache are larger, what may stay writable is smaller.
const LARGE: usize = 256 << 10;

/// The allocator of this program. In the second process it takes large blocks from one mapping, and leaves freed ones unused.
struct Blocks {
    /// Null until [`Blocks::start`].
    first: AtomicPtr<u8>,
    used: AtomicUsize,
}

/// Blocks of this size and more come from [`Blocks`]' mapping, of [`Blocks::BYTES`].
const BLOCK: usize = 32 << 10;

#[global_allocator]
static BLOCKS: Blocks = Blocks { first: AtomicPtr::new(std::ptr::null_mut()), used: AtomicUsize::new(0) };

impl Blocks {
    const BYTES: usize = 8 << 30;

    fn start(&self) {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let first = unsafe {
            mmap_anonymous(std::ptr::null_mut(), Self::BYTES, ProtFlags::READ | ProtFlags::WRITE, flags).unwrap()
        };
        self.first.store(first.cast(), Relaxed);
    }

    /// The part of the mapping that blocks were taken from.
    fn used(&self) -> Range<usize> {
        let first = self.first.load(Relaxed).expose_provenance();
        first..first + self.used.load(Relaxed)
    }
}

// SAFETY: a block from the mapping is on pages that no other block has, is zeroed, and is never used again; the system's
// allocator has all others.
unsafe impl GlobalAlloc for Blocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let first = self.first.load(Relaxed);
        if first.is_null() || layout.size() < BLOCK || layout.align() > 4096 {
            // SAFETY: as of the caller.
            return unsafe { System.alloc(layout) };
        }
        let at = self.used.fetch_add(layout.size().next_multiple_of(4096), Relaxed);
        if at + layout.size() > Self::BYTES { std::ptr::null_mut() } else { first.wrapping_add(at) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let first = self.first.load(Relaxed).expose_provenance();
        if first == 0 || !(first..first + Self::BYTES).contains(&block.expose_provenance()) {
            // SAFETY: as of the caller; the block is not one of the mapping.
            unsafe { System.dealloc(block, layout) };
        }
    }
}

/// A query to a context.
type Control = fn(&Context);

/// A query that stores to the cache. In a frozen process it must end the process.
const CONTROLS: [(&str, Control); 6] = [
    ("create", |context| context.mknod("/t/new", 0o644, 0).unwrap()),
    ("open", |context| drop(context.open("/t/d0/e0/f0").unwrap())),
    ("canonicalize", |context| drop(context.canonicalize("/t/d1/e1/f1").unwrap())),
    ("chmod", |context| context.set_permissions("/t/d2/e2/f2", Permissions::from_mode(0o600)).unwrap()),
    ("unlink", |context| context.remove_file("/t/d3/e3/f3").unwrap()),
    ("rename", |context| context.rename("/t/d4/e4/f4", "/t/d4/e4/g").unwrap()),
];

#[test]
fn a_cached_lookup_writes_to_no_shared_memory() {
    check("a_cached_lookup_writes_to_no_shared_memory", "look", |status| status.code() == Some(DONE));
}

#[test]
fn a_lookup_by_the_table_of_whole_paths_writes_to_no_shared_memory() {
    check("a_lookup_by_the_table_of_whole_paths_writes_to_no_shared_memory", BY_TABLE, |status| {
        status.code() == Some(DONE)
    });
}

#[test]
fn a_lookup_by_the_table_of_a_name_that_does_not_exist_writes_to_no_shared_memory() {
    let name = "a_lookup_by_the_table_of_a_name_that_does_not_exist_writes_to_no_shared_memory";
    check(name, ABSENT, |status| status.code() == Some(DONE));
}

#[test]
fn what_does_write_to_the_cache_is_caught() {
    for (control, _) in CONTROLS {
        let is_killed = |status: ExitStatus| status.signal() == Some(Signal::SEGV.as_raw());
        check("what_does_write_to_the_cache_is_caught", control, is_killed);
    }
}

#[test]
fn what_does_write_to_the_table_of_whole_paths_is_caught() {
    let is_killed = |status: ExitStatus| status.signal() == Some(Signal::SEGV.as_raw());
    check("what_does_write_to_the_table_of_whole_paths_is_caught", RECORD, is_killed);
}

/// Runs the test `name` of this module again in a separate process with a role.
fn check(name: &str, role: &str, is_right: impl Fn(ExitStatus) -> bool) {
    if let Ok(role) = std::env::var(ROLE) {
        be(&role);
    }
    if std::fs::metadata("/proc/self/maps").is_err() {
        return println!("SKIPPED: there is no /proc/self/maps");
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output =
        command.args(["--exact", &format!("store_free::{name}"), "--nocapture"]).env(ROLE, role).output().unwrap();
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(is_right(output.status), "{role}: {}\n{said}", output.status);
}

/// What the second process does.
fn be(role: &str) -> ! {
    // Not to wait for threads that wait for this one.
    std::panic::set_hook(Box::new(|info| {
        println!("{info}");
        std::process::exit(DONE + 1);
    }));
    BLOCKS.start();
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
    let (barrier, work) = (&Barrier::new(THREADS + 1), &std::sync::OnceLock::new());
    std::thread::scope(|scope| {
        // Before anything is measured, so that their stacks and heaps are not taken for the cache's memory.
        for number in 0..THREADS {
            scope.spawn(move || {
                barrier.wait();
                let work: &Frozen = work.get().unwrap();
                work.look_up(number as u64);
                barrier.wait();
            });
        }
        let frozen = work.get_or_init(|| match role {
            ABSENT => Frozen::absent(),
            BY_TABLE | RECORD => Frozen::new(TABLE),
            _ => Frozen::new(0),
        });
        let misses = frozen.vfs.whole_path_stats().misses;
        let fallbacks = Fallback::ALL.map(|reason| frozen.vfs.fallbacks(reason));
        if let Some((_, control)) = CONTROLS.iter().find(|(name, _)| *name == role) {
            control(&frozen.contexts[0]);
            println!("{role} went through");
            std::process::exit(DONE + 1);
        }
        if role == RECORD {
            assert!(frozen.contexts[0].exists("//t/d0/e0/f0"));
            println!("it went through");
            std::process::exit(DONE + 1);
        }
        barrier.wait();
        barrier.wait();
        for (reason, before) in Fallback::ALL.into_iter().zip(fallbacks) {
            // (The first lookup of an absent name is a request.)
            let is_allowed = role == ABSENT || before == 0;
            assert!(is_allowed && frozen.vfs.fallbacks(reason) == before, "{}", reason.name());
        }
        assert_eq!(frozen.vfs.whole_path_stats().misses, misses);
        std::process::exit(DONE);
    })
}

/// A question, to one of the contexts.
struct Query {
    who: usize,
    kind: Kind,
    path: String,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Metadata,
    SymlinkMetadata,
    Exists,
    Access(u32),
    ReadLink,
}

/// A tree whose cache's memory is read-only, and questions with their answers.
struct Frozen {
    vfs: Vfs,
    contexts: [Context; 3],
    queries: Vec<(Query, Result<u64, i32>)>,
}

impl Frozen {
    /// With a table of so many bytes, only the queries that it answers.
    fn new(table: usize) -> Self {
        let options = Vfs::builder().whole_paths(table).records_every_path(true);
        Self::of(options, lightfoot::RamFs::new(), grow, |context| {
            let mut queries = queries(context);
            if table != 0 {
                queries.retain(|query| {
                    let has_entry =
                        ["/t/d", "/t/up/e", "/t/abs/f", "/t/chain/f"].iter().any(|dir| query.path.starts_with(dir));
                    has_entry
                        && !query.path.contains("..")
                        && context.symlink_metadata(&query.path).is_ok_and(|metadata| metadata.is_file())
                });
                let of_links = queries.iter().filter(|query| !query.path.starts_with("/t/d")).count();
                assert!(queries.len() > 3000 && of_links > 1000, "{} {of_links}", queries.len());
            }
            queries
        })
    }

    /// A tree of a file system that keeps its own names, with a cache of names that do not exist, and queries for these.
    fn absent() -> Self {
        let options = Vfs::builder().whole_paths(TABLE).records_every_path(true);
        let store = Store::new(StoreOptions::default());
        (0..40).for_each(|dir| {
            store.make(Store::ROOT, &format!("d{dir}/"));
        });
        Self::of(options, store, look_for_nothing, |_| {
            let mut rng = Rng::new(5);
            let mut path = || format!("/d{}/none{}", rng.below(40), rng.below(2000));
            let paths: Vec<String> = (0..300).map(|_| path()).flat_map(|path| [format!("{path}/"), path]).collect();
            each_question(&paths)
        })
    }

    fn of(
        options: lightfoot::Builder,
        fs: impl lightfoot::fs::FileSystem,
        grow: impl FnOnce(&Vfs) -> [Context; 3],
        queries: impl FnOnce(&Context) -> Vec<Query>,
    ) -> Self {
        let (nothing, used) = (large_mappings(), BLOCKS.used().end);
        let vfs = options.build(fs);
        let first = added(&nothing, &large_mappings());
        // Starts the reclaimer, whose stack is not the cache's.
        vfs.barrier();
        let before = large_mappings();
        let contexts = grow(&vfs);
        vfs.barrier();
        let queries = queries(&contexts[0]).into_iter().map(|query| (ask(&contexts, &query), query));
        let mut queries: Vec<_> = queries.map(|(answer, query)| (query, answer)).collect();
        keep_recorded(&vfs, &contexts, &mut queries);
        let blocks = used..BLOCKS.used().end;
        let ranges = [first, added(&before, &large_mappings()), vec![blocks]].concat();
        let bytes: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        let stats = vfs.cache_stats();
        assert!(stats.table_bytes >= 2 * LARGE, "{stats:?}");
        let least = stats.slot_bytes + stats.table_bytes + vfs.whole_path_stats().bytes;
        assert!(bytes >= least, "{bytes} of {least}: {stats:?}");
        ranges.iter().for_each(freeze);
        Self { vfs, contexts, queries }
    }

    fn look_up(&self, seed: u64) {
        let mut rng = Rng::new(seed);
        for _ in 0..LOOKUPS {
            let (query, answer) = &self.queries[rng.below(self.queries.len())];
            assert_eq!(ask(&self.contexts, query), *answer, "{:?} {}", query.kind, query.path);
        }
    }
}

/// Drops the queries whose paths are not in the table of whole paths at the same time as all the others: two paths can have one
/// place there, by their addresses, which differ from run to run.
fn keep_recorded(vfs: &Vfs, contexts: &[Context; 3], queries: &mut Vec<(Query, Result<u64, i32>)>) {
    let all = queries.len();
    let misses = || vfs.whole_path_stats().misses;
    let count = |query: &Query| {
        let before = misses();
        let _ = ask(contexts, query);
        misses() - before
    };
    let has_misses = |queries: &[(Query, Result<u64, i32>)]| {
        let before = misses();
        queries.iter().for_each(|(query, _)| _ = ask(contexts, query));
        misses() != before
    };
    while has_misses(queries) {
        queries.retain(|(query, _)| count(query) == 0);
    }
    assert!(queries.len() * 100 >= all * 95, "{} of {all} have places in the table", queries.len());
}

/// The writable, private, anonymous mappings of this process.
fn large_mappings() -> Vec<Range<usize>> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let ranges = maps.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (start, end) = words[0].split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let is_heap = words.get(5).is_some_and(|name| !name.starts_with("[anon"));
        // glibc's heaps of threads: they grow in place, and what is small lies in them.
        let is_arena = address(start)?.is_multiple_of(64 << 20);
        let range = address(start)?..address(end)?;
        let is_large = words[1] == "rw-p" && words[4] == "0" && !is_heap && !is_arena;
        (is_large && !range.contains(&BLOCKS.used().start)).then_some(range)
    });
    ranges.collect()
}

/// The large parts of `after` that are not in `before`.
fn added(before: &[Range<usize>], after: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut parts = after.to_vec();
    for old in before {
        let cut = |part: Range<usize>| {
            [part.start..part.end.min(old.start.max(part.start)), part.start.max(old.end.min(part.end))..part.end]
        };
        parts = parts.into_iter().flat_map(cut).filter(|part| !part.is_empty()).collect();
    }
    parts.retain(|part| part.len() >= LARGE);
    parts
}

fn freeze(range: &Range<usize>) {
    let start = std::ptr::with_exposed_provenance_mut(range.start);
    // SAFETY: takes rights away from memory that this process has mapped; a store to it then ends the process.
    unsafe { mprotect(start, range.len(), MprotectFlags::READ) }.unwrap();
}

/// Fills the tree with some 80 000 entries; contexts of root, of uid 1 and of uid 2.
fn grow(vfs: &Vfs) -> [Context; 3] {
    let context = vfs.context();
    for (dir, sub) in (0..40).flat_map(|dir| (0..20).map(move |sub| (dir, sub))) {
        let path = format!("/t/d{dir}/e{sub}");
        context.create_dir_all(&path).unwrap();
        (0..100).for_each(|file| context.mknod(format!("{path}/f{file}"), 0o644, 0).unwrap());
    }
    for len in [16, 17, 32, 33, 255] {
        drop(File::create(&context, format!("/t/{}", "n".repeat(len))).unwrap());
    }
    for (path, body) in [
        ("/t/up", "../t/d1"),
        ("/t/abs", "/t/d2/e2"),
        ("/t/chain", "up/e3"),
        ("/t/loop", "loop"),
        ("/t/none", "nothing"),
    ] {
        context.symlink(body, path).unwrap();
    }
    context.create_dir_all("/own/below").unwrap();
    context.mknod("/own/below/file", 0o640, 0).unwrap();
    for path in ["/own", "/own/below", "/own/below/file"] {
        context.chown(path, Some(1), Some(1)).unwrap();
    }
    context.set_permissions("/own", Permissions::from_mode(0o700)).unwrap();
    let [first, second] = [1, 2].map(|uid| context.with_credentials(Credentials::user(uid, uid, &[uid + 10])));
    first.set_current_dir("/own/below").unwrap();
    second.set_current_dir("/t/d5/e5").unwrap();
    [context, first, second]
}

/// Looks for some 80 000 names in vain; contexts as of [`grow`].
fn look_for_nothing(vfs: &Vfs) -> [Context; 3] {
    let context = vfs.context();
    for (dir, name) in (0..40).flat_map(|dir| (0..2000).map(move |name| (dir, name))) {
        assert!(!context.exists(format!("/d{dir}/none{name}")));
    }
    let [first, second] = [1, 2].map(|uid| context.with_credentials(Credentials::user(uid, uid, &[uid + 10])));
    [context, first, second]
}

/// Questions at all depths; the answer to many is an error.
fn queries(context: &Context) -> Vec<Query> {
    let mut paths: Vec<String> = [
        "/",
        ".",
        "..",
        "file",
        "f7",
        "../../d6/e6/f6",
        "../below/./file",
        "/t/up/e1/f1",
        "/t/abs/../e3//f3",
        "/t/chain/f9",
        "/t/chain/",
        "/t/loop",
        "/t/none",
        "/t/none/x",
        "/t/d1/e1/f1/",
        "/t/d1/e1/f1/x",
        "/own/below/file",
        "/own",
        "/own/none",
        "/t/up",
        "/t/abs",
        "/none",
        "/t/d0/none/x",
        "/t/none-of-more-than-thirty-two-bytes-at-all",
        "",
        "/t/\0",
    ]
    .map(String::from)
    .to_vec();
    paths.extend([16, 17, 32, 33, 255, 256].map(|len| format!("/t/{}", "n".repeat(len))));
    let mut rng = Rng::new(3);
    for _ in 0..500 {
        let number = |rng: &mut Rng, below| rng.below(below);
        let (dir, sub, file) = (number(&mut rng, 40), number(&mut rng, 20), number(&mut rng, 110));
        paths.push(format!("/t/d{dir}/e{sub}/f{file}"));
        paths.push(format!("/t/d{dir}/../d{dir}/./e{sub}"));
    }
    for _ in 0..60 {
        let (sub, file) = (rng.below(20), rng.below(110));
        paths.extend([format!("/t/up/e{sub}/f{file}"), format!("/t/abs/f{file}"), format!("/t/chain/f{file}")]);
    }
    assert!(context.exists("/t/d39/e19/f99"));
    each_question(&paths)
}

/// Every kind of query of every context for each of `paths`.
fn each_question(paths: &[String]) -> Vec<Query> {
    let kinds =
        [Kind::Metadata, Kind::SymlinkMetadata, Kind::Exists, Kind::Access(R_OK), Kind::Access(W_OK), Kind::ReadLink];
    let each = |who: usize, kind: Kind| paths.iter().map(move |path| Query { who, kind, path: path.clone() });
    (0..3).flat_map(|who| kinds.iter().flat_map(move |kind| each(who, *kind))).collect()
}

fn ask(contexts: &[Context; 3], query: &Query) -> Result<u64, i32> {
    let Query { who, kind, path } = query;
    let context = &contexts[*who];
    let answer = match kind {
        Kind::Metadata => context.metadata(path).map(|metadata| metadata.ino()),
        Kind::SymlinkMetadata => context.symlink_metadata(path).map(|metadata| metadata.ino()),
        Kind::Exists => Ok(context.exists(path).into()),
        Kind::Access(bits) => context.access(path, *bits).map(|()| 0),
        Kind::ReadLink => context.read_link(path).map(|body| body.as_os_str().len() as u64),
    };
    answer.map_err(|error| error.raw_os_error().unwrap_or(0))
}
