//! Workloads whose ways out of rcu-walk are counted: what `git status`, a build, a file server and a storm of renames
//! do to names.
//!
//! Each walks a tree that was grown before, counts the walks that it starts (a rename is two), and fails if an answer
//! is not what it must be.

use lightfoot::{Context, Errno, Fallback, RenameFlags, Vfs};
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Clients of [`serve`].
const CLIENTS: usize = 4;
/// Directories that headers are looked for in.
const INCLUDE_DIRS: usize = 5;
/// Headers in all, and those that each source includes.
const HEADERS: usize = 200;
const INCLUDED: usize = 20;

/// Walks, and why they left rcu-walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) walks: u64,
    /// In the order of [`Fallback::ALL`].
    pub(crate) reasons: [u64; Fallback::ALL.len()],
}

impl Counts {
    /// What `work`, which gives its number of walks, adds to the counters of `vfs`.
    pub(crate) fn of(vfs: &Vfs, work: impl FnOnce(&Vfs) -> u64) -> Self {
        let before = Fallback::ALL.map(|reason| vfs.fallbacks(reason));
        let walks = work(vfs);
        let mut reasons = Fallback::ALL.map(|reason| vfs.fallbacks(reason));
        reasons.iter_mut().zip(before).for_each(|(after, before)| *after -= before);
        Self { walks, reasons }
    }

    pub(crate) fn get(&self, reason: Fallback) -> u64 {
        let at = Fallback::ALL.iter().position(|one| *one == reason);
        at.map_or(0, |at| self.reasons[at])
    }

    /// Walks that began again, of a hundred.
    pub(crate) fn restarted_percent(&self) -> f64 {
        100.0 * self.get(Fallback::Restart) as f64 / self.walks as f64
    }
}

/// A context that counts the walks that it starts.
struct Client {
    context: Context,
    walks: Cell<u64>,
}

impl Client {
    fn new(vfs: &Vfs) -> Self {
        Self { context: vfs.context(), walks: Cell::new(0) }
    }

    /// The context, for an operation of so many walks.
    fn walk(&self, walks: u64) -> &Context {
        self.walks.set(self.walks.get() + walks);
        &self.context
    }

    /// Whether the path leads to something.
    fn has(&self, path: &str) -> bool {
        is_there(self.walk(1).symlink_metadata(path))
    }
}

/// Whether something was found; no other error than `ENOENT` may come.
fn is_there<T>(found: io::Result<T>) -> bool {
    match found {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(Errno::ENOENT.raw()));
            false
        }
    }
}

/// Runs `work` for each number below `threads`, each on a separate thread. Returns the walks of all threads.
fn on_threads(vfs: &Vfs, threads: usize, work: impl Fn(usize, &Client) + Sync) -> u64 {
    let work = &work;
    std::thread::scope(|scope| {
        let run = move |number| {
            let client = Client::new(vfs);
            work(number, &client);
            client.walks.get()
        };
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || run(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("its answers were right")).sum()
    })
}

// ---- lstat storm

/// A working copy: `files` in `dirs` directories, one in 35 of which is at the top, the others below those.
pub(crate) struct Copy {
    dirs: Vec<String>,
    files: Vec<String>,
}

impl Copy {
    pub(crate) fn new(files: usize, dirs: usize) -> Self {
        let top = dirs.div_ceil(35);
        let dir = |number: usize| match number.checked_sub(top) {
            None => format!("/module-{number}"),
            Some(below) => format!("/module-{}/part-{below}", below % top),
        };
        let dirs: Vec<String> = (0..dirs).map(dir).collect();
        let mut files: Vec<String> =
            (0..files).map(|number| format!("{}/source-file-{number}.c", dirs[number % dirs.len()])).collect();
        files.sort();
        Self { dirs, files }
    }

    pub(crate) fn grow(&self, context: &Context) {
        self.dirs.iter().for_each(|dir| context.create_dir(dir).expect("a new directory"));
        self.files.iter().for_each(|file| context.mknod(file, 0o644, 0).expect("a new file"));
    }

    /// `git status`: the attributes of each file in order, and a `.gitignore` in each directory, which is not there.
    pub(crate) fn status(&self, vfs: &Vfs) -> u64 {
        let client = Client::new(vfs);
        assert!(self.files.iter().all(|file| client.has(file)), "a file is missing");
        assert!(!self.dirs.iter().any(|dir| client.has(&format!("{dir}/.gitignore"))), "a file too many");
        client.walks.get()
    }
}

// ---- build

/// Sources and headers, to be built by [`build`].
pub(crate) fn grow_sources(context: &Context, sources: usize) {
    context.create_dir_all("/build/src").expect("a new directory");
    context.create_dir("/build/out").expect("a new directory");
    for dir in 0..INCLUDE_DIRS {
        context.create_dir(format!("/build/include-{dir}")).expect("a new directory");
    }
    for header in 0..HEADERS {
        context
            .write(format!("/build/include-{}/h{header}.h", header % INCLUDE_DIRS), "#pragma once")
            .expect("a header");
    }
    for source in 0..sources {
        context.write(format!("/build/src/s{source}.c"), "int x;").expect("a source");
    }
}

/// Two threads compile: each source's headers are looked for along the include directories, the source is read, the
/// object is written beside its place and renamed to it.
pub(crate) fn build(vfs: &Vfs, sources: usize) -> u64 {
    on_threads(vfs, 2, |thread, client| {
        (thread..sources).step_by(2).for_each(|source| compile(client, source));
    })
}

fn compile(client: &Client, source: usize) {
    for nth in 0..INCLUDED {
        let header = (source * 7 + nth * 11) % HEADERS;
        let found = (0..INCLUDE_DIRS).find(|dir| client.has(&format!("/build/include-{dir}/h{header}.h")));
        assert_eq!(found, Some(header % INCLUDE_DIRS), "where a header was found");
    }
    let text = client.walk(1).read(format!("/build/src/s{source}.c")).expect("the source");
    let object = format!("/build/out/s{source}.o");
    let partial = format!("{object}.tmp");
    client.walk(1).write(&partial, text.repeat(10)).expect("a new object");
    client.walk(2).rename(&partial, &object).expect("its place");
    assert!(client.has(&object) && !client.has(&partial) && !client.has(&format!("/build/out/s{source}.d")));
}

// ---- dbench

pub(crate) fn grow_clients(context: &Context) {
    (0..CLIENTS).for_each(|client| context.create_dir_all(format!("/clients/{client}/new")).expect("a new directory"));
}

/// Clients of a file server, each in a private directory. A client creates, writes, stats, renames, reads and removes
/// files; now and then it lists the directory, or creates and removes a subdirectory.
pub(crate) fn serve(vfs: &Vfs, rounds: usize) -> u64 {
    on_threads(vfs, CLIENTS, |number, client| {
        let home = format!("/clients/{number}");
        for round in 0..rounds {
            // Every twentieth name comes again.
            let name = format!("{home}/file-{}", round % 20);
            let other = format!("{home}/new/file-{round}");
            assert!(!client.has(&name), "it went");
            client.walk(1).write(&name, "some contents").expect("a new file");
            assert!(client.has(&name));
            client.walk(2).rename(&name, &other).expect("another name");
            assert_eq!(client.walk(1).read(&other).expect("it is there"), b"some contents");
            if round % 10 == 0 {
                assert_eq!(client.walk(1).read_dir(format!("{home}/new")).expect("a directory").count(), 1);
                let dir = format!("{home}/dir-{round}");
                client.walk(1).create_dir(&dir).expect("a new directory");
                client.walk(1).mknod(format!("{dir}/file"), 0o644, 0).expect("a new file");
                client.walk(1).remove_file(format!("{dir}/file")).expect("a file");
                client.walk(1).remove_dir(&dir).expect("an empty directory");
            }
            client.walk(1).remove_file(&other).expect("it is there");
        }
    })
}

// ---- rename storm

/// Directories and files that renames move, on `lanes` paths of eight names.
pub(crate) fn grow_lanes(context: &Context, lanes: usize) {
    for lane in 0..lanes {
        context.create_dir_all(format!("/lane-{lane}/one/two/three/four/five/six")).expect("new directories");
        context.mknod(format!("/lane-{lane}/one/two/three/four/five/six/file"), 0o644, 0).expect("a new file");
    }
}

/// Two threads rename, each on half of the `lanes` (four at least), for as long as two others walk all of them; gives
/// the walks of either kind.
pub(crate) fn storm(vfs: &Vfs, lanes: usize, walks: usize) -> (u64, u64) {
    let walking = &AtomicUsize::new(2);
    let renames = &AtomicUsize::new(0);
    let all = on_threads(vfs, 4, |number, client| match number {
        0 | 1 => {
            let mut rounds = 0;
            // As long as a thread walks, and always back to where it was.
            while walking.load(SeqCst) != 0 {
                let (lane, kind) = (rounds % (lanes / 2), rounds / (lanes / 2));
                disturb(client, number + 2 * lane, lanes, kind);
                rounds += 1;
            }
            renames.fetch_add(client.walks.get() as usize, SeqCst);
        }
        _ => {
            let _walking = Ends(walking);
            let paths: Vec<String> =
                (0..lanes).map(|lane| format!("/lane-{lane}/one/two/three/four/five/six/file")).collect();
            let found = (0..walks / 2).filter(|walk| client.has(&paths[walk * 5 % lanes])).count();
            assert!(found > 0, "no walk found anything");
        }
    });
    let renames = renames.load(SeqCst) as u64;
    (all - renames, renames)
}

/// Takes one from a count, also when its thread panics.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Renames something of a lane and back: within a directory, to another one, of a file, or in exchange with the same
/// renamer's next lane.
fn disturb(client: &Client, lane: usize, lanes: usize, kind: usize) {
    let top = format!("/lane-{lane}/one");
    let next = format!("/lane-{}/one", (lane + 2) % lanes);
    let (a, b, flags) = match kind % 4 {
        0 => (format!("{top}/two"), format!("{top}/moved"), RenameFlags::default()),
        1 => (format!("{top}/two/three/four"), format!("{top}/moved"), RenameFlags::default()),
        2 => {
            let six = format!("{top}/two/three/four/five/six");
            (format!("{six}/file"), format!("{six}/a-file-that-has-another-name-for-now"), RenameFlags::default())
        }
        _ => (format!("{top}/two/three"), format!("{next}/two/three"), RenameFlags::EXCHANGE),
    };
    for (from, to) in [(&a, &b), (&b, &a)] {
        client.walk(2).rename_with(from, to, flags).expect("nobody else renames here");
    }
}

// ---- bytes per name

/// Grows a tree of `names` names, 40 files to a directory; gives what the cache takes for each: dentries, inodes and
/// the hash table.
pub(crate) fn bytes_per_name(names: usize) -> f64 {
    let vfs = Vfs::ram();
    let context = vfs.context();
    let mut dir = String::new();
    for number in 0..names {
        if number % 41 == 0 {
            dir = format!("/directory-{number}");
            context.create_dir(&dir).expect("a new directory");
        } else {
            context.mknod(format!("{dir}/file-{number}"), 0o644, 0).expect("a new file");
        }
    }
    let stats = vfs.cache_stats();
    assert_eq!(stats.live_dentries, names + 1);
    (stats.slot_bytes + stats.table_bytes) as f64 / names as f64
}
