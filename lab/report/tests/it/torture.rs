//! A torture of the core on simulated CPUs, in orders drawn from a seed.
//!
//! Sixteen threads rename, exchange, replace, make, link, remove, list, mount, unmount, evict, invalidate, look up
//! and ask for paths, on two trees: one of a RAM file system, and one of a file system that keeps its own names,
//! whose cache has the least room there can be. In every other run, all directories of the RAM file system are split.
//! On simulated CPUs they meet at every access to memory, which two real cores hardly ever do. A deadlock ends the
//! run with what each thread waits for; so does a run that does not end.
//!
//! What is checked while they run: each thing that one thread changes has a [history](history), and a thread that
//! looks sees a state of the time in which it looked; along directories that move, each step of a walk that leaves rcu-walk
//! sees one. A thread finds its private names where it put them. At the end: each name is listed
//! once, links, held places and entries are counted, budgets hold, nothing is deferred. The simulated machine is
//! sequentially consistent: missing fences are for loom.
//!
//! A failure names the seed; `TORTURE_SEED=<seed> cargo test -p lightfoot-lab-report --test it torture` runs that seed alone, and
//! `TORTURE_SEEDS=<number>` so many.

mod history;
mod kept_roles;
mod roles;
mod verdict;

use history::History;
use ramfs_sim::RamFs;
use sim::{Config, Machine, Schedule};
use std::cell::{Cell, RefCell};
use std::panic::catch_unwind;
use std::rc::Rc;
use testkit_sim::Store;
use vfs_sim::{Budget, Context, PathRef, Vfs};

/// Rounds of the threads that change something.
const ROUNDS: u64 = 8;

/// Seeds of a run, unless the environment sets others.
const SEEDS: u64 = 100;

/// The roles of threads: first those that change something, then those that look as long as others change.
const CHANGERS: [fn(&Stage, u64); 10] = [
    roles::move_directory,
    roles::exchange,
    roles::replace,
    roles::link_and_unlink,
    roles::own_names,
    roles::own_names,
    roles::mount_and_unmount,
    roles::replace_directories,
    kept_roles::change_behind_the_cache,
    kept_roles::move_between_directories,
];
const OBSERVERS: [fn(&Stage, u64); 6] =
    [roles::observe, roles::climb, roles::create_below, roles::list_common, kept_roles::observe, kept_roles::scan];
const THREADS: usize = CHANGERS.len() + OBSERVERS.len();

/// What happened to the things that one thread each changes.
#[derive(Default)]
struct Histories {
    moved: History,
    exchanged: History,
    replaced: History,
    linked: History,
    mounted: History,
    kept_pushed: History,
    kept_moved: History,
}

/// What the simulated threads share. They are coroutines of one host thread, so cells do.
struct Stage {
    ram: Vfs,
    kept: Vfs,
    store: Store,
    /// The file in the directory that moves; taken by the last thread.
    moving: RefCell<Option<Rc<PathRef>>>,
    /// Inode numbers of `/ex/x/owner` and `/ey/y/owner`.
    exchanged: [u64; 2],
    /// Inode numbers of `/swap/t`, the latest last.
    replaced: RefCell<Vec<u64>>,
    histories: Histories,
    /// Threads that end by themselves, and all, that have not ended.
    changing: Cell<usize>,
    there: Cell<usize>,
}

impl Stage {
    fn new(is_sharded: bool) -> Self {
        let ram = Vfs::builder().shards_every_directory(is_sharded).build(RamFs::new());
        let store = kept_roles::store();
        let least = Budget { entries: 0, negatives: 0, listings: 0 };
        let kept = Vfs::builder().shards_every_directory(is_sharded).budget(least).build(store.clone());
        let context = ram.context();
        let exchanged = roles::set_up(&context);
        let replaced = RefCell::new(vec![roles::ino(&context, "/swap/t").expect("/swap/t")]);
        let moving = RefCell::new(Some(Rc::new(roles::hold(&context, roles::PLACES[0]))));
        kept_roles::fill(&kept);
        let (changing, there) = (Cell::new(CHANGERS.len()), Cell::new(THREADS));
        let histories = Histories::default();
        Self { ram, kept, store, moving, exchanged, replaced, histories, changing, there }
    }

    fn play(&self, index: usize) {
        let number = index as u64;
        match CHANGERS.get(index) {
            Some(change) => {
                change(self, number);
                self.changing.set(self.changing.get() - 1);
            }
            None => OBSERVERS[index - CHANGERS.len()](self, number),
        }
        self.there.set(self.there.get() - 1);
        if self.there.get() == 0 {
            self.moving.take();
            verdict::check(self);
        }
    }

    fn is_changing(&self) -> bool {
        self.changing.get() > 0
    }

    fn moving(&self) -> Rc<PathRef> {
        self.moving.borrow().clone().expect("taken by the last one")
    }

    fn context(&self) -> Context {
        self.ram.context()
    }
}

fn check(seed: u64) {
    let machine = Machine::preset("dl980").expect("a preset");
    // With fewer CPUs than threads, some lose their CPU where they stand.
    let cpus = 4 + seed as usize % (THREADS - 3);
    let config = Config { threads: THREADS, seed, schedule: Schedule::Shuffled, ..Config::new(machine, cpus, 20_000) };
    sim::run(config, move || Stage::new(!seed.is_multiple_of(2)), Stage::play);
}

#[test]
fn names_stay_where_they_must_in_whatever_order_accesses_come() {
    let number = |name| std::env::var(name).ok().map(|text: String| text.parse().expect("a number"));
    let seeds = match number("TORTURE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("TORTURE_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        catch_unwind(|| check(seed)).unwrap_or_else(|_| {
            panic!("TORTURE_SEED={seed} cargo test -p lightfoot-lab-report --test it torture; what went wrong is above")
        });
    }
}
