//! A mount moves between two directories, and these exchange their names, under readers who find out from two counters where
//! it must be.
//!
//! `WHOLE_PATH_LOOKUPS=1000000000 cargo test --release -p lightfoot-vfs --test it attack_mounts -- --nocapture` runs that
//! many lookups.

use crate::whole_path::pace::Pace;
use lightfoot_vfs::{Base, Context, MountFlags, PathAt, RenameFlags, Vfs};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use testkit::Store;

/// Lookups of all readers, unless the variable has another number.
const LOOKUPS: u64 = 200_000;

const READERS: u64 = 2;

/// Lookups between two changes at most.
const MAX_BETWEEN: u64 = 300;

/// Odd while a change is under way; half of it is the number of changes.
#[derive(Default)]
struct State {
    mount: AtomicU64,
    names: AtomicU64,
}

impl State {
    fn now(&self) -> [u64; 2] {
        [self.mount.load(SeqCst), self.names.load(SeqCst)]
    }

    /// Whether the mount is below the first name.
    fn is_first([mount, names]: [u64; 2]) -> bool {
        (mount / 2 + names / 2).is_multiple_of(2)
    }

    fn change(&self, context: &Context, is_mount: bool) {
        let (first, second) = (PathAt::cwd(b"/p"), PathAt::cwd(b"/q"));
        if is_mount {
            let places = [b"/p/m".as_slice(), b"/q/m"].map(PathAt::cwd);
            let [from, to] = if Self::is_first(self.now()) { places } else { [places[1], places[0]] };
            self.mount.fetch_add(1, SeqCst);
            context.move_mount(from, to).unwrap();
            self.mount.fetch_add(1, SeqCst);
        } else {
            self.names.fetch_add(1, SeqCst);
            context.rename(first, second, RenameFlags::EXCHANGE).unwrap();
            self.names.fetch_add(1, SeqCst);
        }
    }

    /// The certain answers: below the mount, beside it; and the wrong ones.
    fn look(&self, pace: &Pace, context: &Context, number: u64, mounted: u64) -> [u64; 3] {
        let (mut seen, mut random) = ([0; 3], fastrand::Rng::with_seed(5 + number));
        for _ in 0..pace.lookups() / READERS {
            let is_first = random.bool();
            let path: &[u8] = if is_first { b"/p/m/d/f" } else { b"/q/m/d/f" };
            let look = || context.attr(Base::CWD, path, true).unwrap().ino;
            let Some((state, ino)) = pace.look(|| self.now(), look) else { continue };
            let is_mounted = Self::is_first(state) == is_first;
            seen[usize::from(is_mounted)] += 1;
            seen[2] += u64::from((ino == mounted) != is_mounted);
        }
        seen
    }
}

#[test]
fn attack_mounts() {
    let pace = Pace::new(LOOKUPS, MAX_BETWEEN);
    let lookups = pace.lookups();
    let covered = ["p/", "p/m/", "p/m/d/", "p/m/d/f", "q/", "q/m/", "q/m/d/", "q/m/d/f"];
    let vfs = Vfs::builder().whole_paths(1 << 16).records_every_path(true).build(Store::with_paths(&covered));
    let root = vfs.context();
    let others: Vec<String> = (0..20).map(|n| format!("other{n}")).collect();
    let inside: Vec<&str> = others.iter().map(String::as_str).chain(["d/", "d/f"]).collect();
    let store = Store::with_paths(&inside);
    let mounted = store.node("d/f");
    root.mount(store, Base::CWD, b"/p/m", MountFlags::default()).unwrap();
    let state = State::default();
    let readers = (0..READERS).map(|number| {
        let (context, state, pace) = (root.fork(), &state, &pace);
        move || state.look(pace, &context, number, mounted)
    });
    let seen = pace.run(readers, 200, |random| state.change(&root, random.bool()));
    let [beside, below, wrong] = [0, 1, 2].map(|at| seen.iter().map(|seen| seen[at]).sum::<u64>());
    let stats = vfs.whole_path_stats();
    println!("attack of mounts: {lookups} lookups, {below} below, {beside} beside, {wrong} wrong; {stats:?}");
    assert_eq!(wrong, 0, "{seen:?}");
    assert!(beside > lookups / 20 && below > lookups / 20, "{seen:?} {stats:?}");
    let hits = lookups - stats.misses.min(lookups);
    assert!(stats.changes > 100 && hits > lookups / 8, "{hits} {stats:?}");
}
