//! Directories and files exchange names under threads that find out from a counter what the answer must be.
//!
//! `WHOLE_PATH_LOOKUPS=1000000000 cargo test --release -p lightfoot-vfs --test it attack -- --nocapture` runs that
//! many lookups and prints the figures; on two CPUs some minutes.

use crate::whole_path::pace::Pace;
use lightfoot_vfs::{Base, Context, PathAt, RenameFlags, Vfs};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use testkit::Store;

/// Lookups of all readers, unless the variable has another number.
const LOOKUPS: u64 = 400_000;

const READERS: u64 = 2;

/// Lookups between two exchanges at most.
const MAX_BETWEEN: u64 = 400;

/// Files in each of the two directories.
const FILES: usize = 16;

/// Two names that are exchanged again and again. Odd while that is under way; half of it is the number of exchanges.
struct Exchange {
    state: AtomicU64,
    names: [&'static str; 2],
}

impl Exchange {
    fn new(names: [&'static str; 2]) -> Self {
        Self { state: AtomicU64::new(0), names }
    }

    /// Exchanges the names in the directory that `base` is.
    fn run(&self, context: &Context, base: Base<'_>) {
        let [a, b] = self.names.map(|name| PathAt::new(base, name.as_bytes()));
        self.state.fetch_add(1, SeqCst);
        context.rename(a, b, RenameFlags::EXCHANGE).unwrap();
        self.state.fetch_add(1, SeqCst);
    }
}

/// What one reader saw.
#[derive(Default, Debug)]
struct Seen {
    /// Answers before any exchange, and after an odd and an even number of them, while none was under way.
    certain: [u64; 2],
    /// Those of a lookup during which something changed.
    during: u64,
    wrong: u64,
}

/// Files `/p/x/q/s/f3`, or by links `/p/lx/q/s/e3`, and `/p/y/q/s/f3`: `x` and `y` change their names, and `f0` and `f1` of the directory that was in `x`.
struct Attack {
    vfs: Vfs,
    dirs: Exchange,
    files: Exchange,
    pace: Pace,
}

impl Attack {
    fn run(self, paths: &[(String, usize, usize)], inos: &[Vec<u64>; 2]) {
        let attack = &self;
        let readers = (0..READERS).map(|number| move || attack.read(number, paths, inos));
        let context = self.vfs.context();
        let first = context.hold(Base::CWD, b"/p/x/q/s", true).unwrap();
        let seen = self.pace.run(readers, 200, |random| match random.u8(0..4) {
            0 => self.files.run(&context, Base::at(&first)),
            _ => self.dirs.run(&context, Base::CWD),
        });
        let sum = |get: fn(&Seen) -> u64| seen.iter().map(get).sum::<u64>();
        let (certain, wrong) = (sum(|seen| seen.certain[0]) + sum(|seen| seen.certain[1]), sum(|seen| seen.wrong));
        let stats = self.vfs.whole_path_stats();
        let lookups = self.pace.lookups();
        let hits = lookups - stats.misses.min(lookups);
        println!("attack: {lookups} lookups, {hits} by the table, {certain} certain, {wrong} wrong; {stats:?}");
        assert_eq!(wrong, 0, "{seen:?}");
        assert!(certain > lookups / 4 && hits > lookups / 4, "{seen:?} {stats:?}");
        // Both answers, entries that became useless, and lookups beside a change.
        let each = [sum(|seen| seen.certain[0]), sum(|seen| seen.certain[1])];
        assert!(each.iter().all(|&number| number > certain / 20), "{each:?}");
        assert!(stats.changes > 200 && stats.misses > u64::from(stats.changes), "{stats:?}");
    }

    fn read(&self, number: u64, paths: &[(String, usize, usize)], inos: &[Vec<u64>; 2]) -> Seen {
        let context = self.vfs.context();
        let (mut seen, mut random) = (Seen::default(), fastrand::Rng::with_seed(2 + number));
        for _ in 0..self.pace.lookups() / READERS {
            let (path, dir, file) = &paths[random.usize(0..paths.len())];
            let state = || [self.dirs.state.load(SeqCst), self.files.state.load(SeqCst)];
            let look = || context.attr(Base::CWD, path.as_bytes(), true).unwrap().ino;
            let Some((state, ino)) = self.pace.look(state, look) else {
                seen.during += 1;
                continue;
            };
            let [dirs, files] = state.map(|state| (state / 2 % 2) as usize);
            // The files 0 and 1 of the first directory change their names, wherever that directory is.
            let dir = dir ^ dirs;
            let file = if dir == 0 && *file < 2 { file ^ files } else { *file };
            seen.certain[dirs] += 1;
            seen.wrong += u64::from(ino != inos[dir][file]);
        }
        seen
    }
}

#[test]
fn attack() {
    begin(["x", "y"], "f");
}

/// The links to the directories change their names, and the ends are links too.
#[test]
fn attack_by_links() {
    begin(["lx", "ly"], "e");
}

/// `dirs` in `/p` change their names. The readers find files by names that begin with `prefix`.
fn begin(dirs: [&'static str; 2], prefix: &str) {
    let store = Store::with_paths(&["p/", "p/x/", "p/x/q/", "p/x/q/s/", "p/y/", "p/y/q/", "p/y/q/s/"]);
    ["lx -> x", "ly -> y"].iter().for_each(|link| assert_ne!(store.make(store.node("p"), link), 0));
    let inos: [Vec<u64>; 2] = ["p/x/q/s", "p/y/q/s"].map(|dir| {
        let make = |name: String| store.make(store.node(dir), &name);
        (0..FILES).for_each(|file| assert_ne!(make(format!("e{file} -> ../s/f{file}")), 0));
        (0..FILES).map(|file| make(format!("f{file}"))).collect()
    });
    let vfs = Vfs::builder().whole_paths(1 << 16).records_every_path(true).build(store);
    let paths: Vec<_> =
        (0..FILES).flat_map(|file| [0, 1].map(|n| (format!("/p/{}/q/s/{prefix}{file}", dirs[n]), n, file))).collect();
    let names = if dirs[0] == "x" { ["/p/x", "/p/y"] } else { ["/p/lx", "/p/ly"] };
    let attack = Attack {
        vfs,
        dirs: Exchange::new(names),
        files: Exchange::new(["f0", "f1"]),
        pace: Pace::new(LOOKUPS, MAX_BETWEEN),
    };
    attack.run(&paths, &inos);
}
