//! Names come and go under threads that find out from a counter whether each must exist.
//!
//! `WHOLE_PATH_LOOKUPS=1000000000 cargo test --release -p lightfoot-vfs --test it attack_names -- --nocapture` runs
//! that many lookups.

use crate::whole_path::pace::Pace;
use lightfoot_vfs::{Base, Context, Errno, PathAt, RenameFlags, Vfs};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use testkit::Store;

/// Lookups of all readers, unless the variable has another number.
const LOOKUPS: u64 = 400_000;

const READERS: u64 = 2;

/// Lookups between two changes at most.
const MAX_BETWEEN: u64 = 400;

/// Names that come and go.
const NAMES: usize = 4;

/// Ways to make a name, and to remove what each made.
const WAYS: usize = 5;

/// A name that comes and goes.
struct Name {
    path: String,
    /// Odd while the name changes; half of it is the number of changes. The name does not exist at first.
    state: AtomicU64,
}

impl Name {
    fn change(&self, context: &Context, way: usize) {
        let path = self.path.as_bytes();
        let exists = self.state.load(Relaxed) / 2 % 2 == 1;
        self.state.fetch_add(1, SeqCst);
        let (at, spare) = (PathAt::cwd(path), PathAt::cwd(b"/p/spare"));
        let done = match (exists, way) {
            (false, 0) => context.mknod(Base::CWD, path, 0o644, 0),
            (false, 1) => context.mkdir(Base::CWD, path, 0o755),
            (false, 2) => context.link(spare, at, false),
            (false, 3) => context.rename(spare, at, RenameFlags::NOREPLACE),
            (false, _) => context.symlink(b"../../spare2", Base::CWD, path),
            (true, 1) => context.rmdir(Base::CWD, path),
            (true, 3) => context.rename(at, spare, RenameFlags::default()),
            (true, _) => context.unlink(Base::CWD, path),
        };
        done.unwrap();
        self.state.fetch_add(1, SeqCst);
    }
}

struct Attack {
    vfs: Vfs,
    names: Vec<Name>,
    pace: Pace,
}

/// What one reader saw while nothing changed.
#[derive(Default, Debug)]
struct Seen {
    /// Names that did not exist, and that did.
    certain: [u64; 2],
    wrong: u64,
}

impl Attack {
    fn run(&self) {
        let context = self.vfs.context();
        let mut ways = [0; NAMES];
        let readers = (0..READERS).map(|number| move || self.read(number));
        let seen = self.pace.run(readers, 200, |random| {
            if random.u8(0..8) == 0 {
                // A directory of another recorded path: all stamps become old.
                context.rename(PathAt::cwd(b"/p/x"), PathAt::cwd(b"/p/y"), RenameFlags::default()).unwrap();
                context.rename(PathAt::cwd(b"/p/y"), PathAt::cwd(b"/p/x"), RenameFlags::default()).unwrap();
                return;
            }
            let name = random.usize(0..NAMES);
            if self.names[name].state.load(Relaxed).is_multiple_of(4) {
                // Only one name can be the spare file.
                let is_spare_away = ways.iter().zip(&self.names).any(|(way, name)| *way == 3 && name.exists());
                ways[name] = random.usize(0..WAYS);
                if is_spare_away && matches!(ways[name], 2 | 3) {
                    ways[name] = 0;
                }
            }
            self.names[name].change(&context, ways[name]);
        });
        let lookups = self.pace.lookups();
        let sum = |get: fn(&Seen) -> u64| seen.iter().map(get).sum::<u64>();
        let (absent, there) = (sum(|seen| seen.certain[0]), sum(|seen| seen.certain[1]));
        let stats = self.vfs.whole_path_stats();
        println!("attack on names: {} lookups, {absent} absent, {there} there; {stats:?}", lookups);
        assert_eq!(sum(|seen| seen.wrong), 0, "{seen:?}");
        assert!(absent > lookups / 8 && there > lookups / 8, "{seen:?}");
        // More hits than lookups of names that are there: some are of names that are not.
        assert!(stats.misses + there < lookups && stats.misses > 1000, "{seen:?} {stats:?}");
    }

    fn read(&self, number: u64) -> Seen {
        let context = self.vfs.context();
        let (mut seen, mut random) = (Seen::default(), fastrand::Rng::with_seed(2 + number));
        for _ in 0..self.pace.lookups() / READERS {
            if random.u8(0..16) == 0 {
                let _ = context.attr(Base::CWD, b"/p/x/q", true);
            }
            let name = &self.names[random.usize(0..NAMES)];
            let look = || context.attr(Base::CWD, name.path.as_bytes(), false);
            let Some(([state], found)) = self.pace.look(|| [name.state.load(SeqCst)], look) else { continue };
            let exists = !(state / 2).is_multiple_of(2);
            seen.certain[usize::from(exists)] += 1;
            seen.wrong += u64::from(if exists { found.is_err() } else { found.err() != Some(Errno::ENOENT) });
        }
        seen
    }
}

impl Name {
    fn exists(&self) -> bool {
        self.state.load(Relaxed) / 2 % 2 == 1
    }
}

#[test]
fn a_name_that_was_made_is_never_absent_and_one_that_was_removed_never_there() {
    let store = Store::with_paths(&["p/", "p/spare", "p/spare2", "p/x/", "p/x/q/", "p/fixed/", "p/fixed/q/"]);
    let vfs = Vfs::builder().whole_paths(1 << 16).records_every_path(true).build(store);
    let name = |number| Name { path: format!("/p/fixed/q/n{number}"), state: AtomicU64::new(0) };
    let names = (0..NAMES).map(name).collect();
    Attack { vfs, names, pace: Pace::new(LOOKUPS, MAX_BETWEEN) }.run();
}
