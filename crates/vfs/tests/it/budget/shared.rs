//! A budget of many file systems: the limit of all together, and whose entries are evicted.

use super::{Numbers, Shared, look};
use lightfoot_vfs::{Base, Budget, CacheStats, Context, Errno, MountFlags, OpenFlags, PathRef, SharedBudget, Vfs};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use testkit::{Store, StoreOptions};

/// 8,192 entries, 4,096 negative ones.
const BUDGET: Budget = Budget { entries: 2 << 20, negatives: 1 << 20, listings: 64 << 10 };

/// A tree with file systems at `/0`, `/1` and so on, that have one budget.
struct Mounted {
    vfs: Vfs,
    context: Context,
    budget: SharedBudget,
    numbers: Vec<Arc<Numbers>>,
}

impl Mounted {
    fn new(count: usize) -> Self {
        let vfs = Vfs::new(Store::new(StoreOptions { names_in_cache: true, ..StoreOptions::default() }));
        let (context, budget) = (vfs.context(), SharedBudget::new(BUDGET));
        let mut mounted = Self { vfs, context, budget, numbers: Vec::new() };
        (0..count).for_each(|_| mounted.mount());
        mounted
    }

    fn mount(&mut self) {
        let (at, numbers) = (format!("/{}", self.numbers.len()), Arc::new(Numbers::default()));
        self.context.mkdir(Base::CWD, at.as_bytes(), 0o755).unwrap();
        let fs = Shared(numbers.clone());
        self.context.mount_with(fs, Base::CWD, at.as_bytes(), MountFlags::default(), &self.budget).unwrap();
        self.numbers.push(numbers);
    }

    fn unmount(&self, of: usize) {
        self.context.unmount(Base::CWD, format!("/{of}").as_bytes(), Default::default()).unwrap();
    }

    fn stats(&self, of: usize) -> CacheStats {
        let at = format!("/{of}");
        let dev = self.context.mounts().iter().find(|mount| mount.mountpoint == *at).unwrap().dev;
        self.vfs.stats_of(dev).unwrap()
    }

    /// The use of all, which the budget limits.
    fn used(&self) -> Budget {
        let mut sum = Budget { entries: 0, negatives: 0, listings: 0 };
        for mount in self.context.mounts() {
            let stats = self.vfs.stats_of(mount.dev).unwrap();
            sum.entries += stats.entry_bytes;
            sum.negatives += stats.negative_bytes;
            sum.listings += stats.listing_bytes;
        }
        let (entries, negatives) = (sum.entries <= BUDGET.entries, sum.negatives <= BUDGET.negatives);
        assert!(entries && negatives && sum.listings <= BUDGET.listings, "{sum:?}");
        sum
    }

    fn look(&self, of: usize, name: &str) -> Result<u64, Errno> {
        look(&self.context, &format!("/{of}/{name}"))
    }

    fn look_at(&self, of: usize, names: core::ops::Range<u64>) {
        names.for_each(|name| assert!(self.look(of, &format!("f{name}")).is_ok(), "{of}: {name}"));
    }

    fn hold(&self, of: usize, name: u64) -> Result<PathRef, Errno> {
        self.context.hold(Base::CWD, format!("/{of}/f{name}").as_bytes(), true)
    }

    /// Returns how many of the names are not cached, and caches them.
    fn missing(&self, of: usize, names: core::ops::Range<u64>) -> u64 {
        let before = self.numbers[of].lookups.load(Relaxed);
        self.look_at(of, names);
        self.numbers[of].lookups.load(Relaxed) - before
    }
}

#[test]
fn all_together_keep_to_the_budget() {
    let mounted = Mounted::new(40);
    for round in 0..3 {
        for of in 0..40 {
            mounted.look_at(of, 0..1_000);
            (0..500).for_each(|name| assert_eq!(mounted.look(of, &format!("none{name}")), Err(Errno::ENOENT)));
            mounted.look(of, &format!("f{}", "-".repeat(200) + &round.to_string())).unwrap();
            mounted.used();
        }
    }
    // Nothing was evicted without need.
    let used = mounted.used();
    assert!(used.entries > BUDGET.entries / 10 * 9 && used.negatives > BUDGET.negatives / 10 * 9, "{used:?}");
    // A miss looks at a bounded number of slots.
    assert!((0..40).all(|of| mounted.stats(of).longest_look <= 2 * 64), "{:?}", mounted.stats(0));
}

#[test]
fn a_busy_file_system_gets_what_idle_ones_have_above_their_share() {
    let mounted = Mounted::new(4);
    mounted.look_at(0, 0..300);
    // The first one alone may have all.
    mounted.look_at(1, 0..7_000);
    assert!(mounted.stats(1).live_dentries > 6_900, "{:?}", mounted.stats(1));
    mounted.look_at(2, 0..1_500);
    mounted.look_at(3, 0..1_900);
    mounted.used();
    let [idle, other, busy] = [1, 2, 3].map(|of| mounted.stats(of).live_dentries);
    assert!((2_048..6_000).contains(&idle) && other == 1_501 && busy == 1_901, "{idle} {other} {busy}");
    assert_eq!(mounted.missing(0, 0..300), 0, "of a file system below its share");
    // In the end each has its share, but for those that need less.
    for _ in 0..2 {
        mounted.look_at(2, 0..4_000);
        mounted.look_at(3, 0..4_000);
    }
    assert_eq!(mounted.missing(0, 0..300), 0);
    let live = [1, 2, 3].map(|of| mounted.stats(of).live_dentries);
    assert!(live.iter().all(|&live| live >= 2_048 - 8), "{live:?}");
}

#[test]
fn entries_in_use_stay_and_a_new_file_system_finds_room_beside_them() {
    let mut mounted = Mounted::new(3);
    let held: Vec<PathRef> = (0..7_400).map(|name| mounted.hold(0, name).unwrap()).collect();
    mounted.look_at(1, 0..300);
    // The one above its share cannot give an entry: the one with more than the third must.
    mounted.look_at(2, 0..300);
    let live = [1, 2].map(|of| mounted.stats(of).live_dentries);
    assert!(live[0] + live[1] > 180 && live[0].abs_diff(live[1]) < 20, "{live:?}");
    let more: Vec<PathRef> = (8_000..9_000).map_while(|name| mounted.hold(0, name).ok()).collect();
    assert_eq!(mounted.look(2, "f77777"), Err(Errno::ENOMEM));
    drop(more);
    mounted.look_at(2, 0..300);
    mounted.mount();
    mounted.look_at(3, 0..50);
    drop(held);
    mounted.look_at(3, 0..7_000);
    assert!(mounted.stats(3).live_dentries > 3_500, "{:?}", mounted.stats(3));
}

#[test]
fn an_unmount_returns_the_bytes() {
    let mut mounted = Mounted::new(0);
    for of in 0..20 {
        mounted.mount();
        mounted.look_at(of, 0..7_500);
        mounted.look(of, &format!("f{}1", "-".repeat(200))).unwrap();
        let stats = mounted.stats(of);
        assert!(stats.live_dentries > 7_400, "{of}: {stats:?}");
        mounted.unmount(of);
        mounted.vfs.barrier();
    }
}

#[test]
fn listings_share_a_limit_and_no_directory_gets_the_listing_of_another_file_system() {
    let mut mounted = Mounted::new(0);
    for of in 0..30 {
        mounted.mount();
        *mounted.numbers[of].listed.lock().unwrap() = (0..100).map(|name| format!("f{}", of * 1_000 + name)).collect();
        for _ in 0..2 {
            let path = format!("/{of}");
            let dir = mounted.context.open(Base::CWD, path.as_bytes(), OpenFlags::DIRECTORY, 0).unwrap();
            let next = || Some(dir.next_entries().unwrap()).filter(|some| !some.is_empty());
            let first = std::iter::from_fn(next).flatten().find(|entry| entry.name.starts_with(b"f")).unwrap();
            assert_eq!(*first.name, *format!("f{}", of * 1_000).as_bytes());
        }
        mounted.used();
        // The memory of some comes back.
        if of % 3 == 0 {
            mounted.unmount(of);
        }
    }
    assert!(mounted.used().listings > BUDGET.listings / 2);
}

#[test]
fn file_systems_come_and_end_while_others_fill_the_budget() {
    const THREADS: usize = 4;
    let mounted = Mounted::new(THREADS);
    let ended: Mutex<Vec<Arc<Numbers>>> = Mutex::default();
    std::thread::scope(|scope| {
        for of in 0..THREADS {
            let mounted = &mounted;
            scope.spawn(move || {
                for name in 0..20_000 {
                    mounted.look(of, &format!("d{}/f{name}", name % 7)).unwrap();
                }
            });
        }
        for thread in 0..2 {
            let (mounted, ended) = (&mounted, &ended);
            scope.spawn(move || {
                for _ in 0..100 {
                    let (at, numbers) = (format!("/more{thread}"), Arc::new(Numbers::default()));
                    let _ = mounted.context.mkdir(Base::CWD, at.as_bytes(), 0o755);
                    let (fs, flags) = (Shared(numbers.clone()), MountFlags::default());
                    mounted.context.mount_with(fs, Base::CWD, at.as_bytes(), flags, &mounted.budget).unwrap();
                    for name in 0..200 {
                        look(&mounted.context, &format!("{at}/f{name}")).unwrap();
                    }
                    mounted.context.unmount(Base::CWD, at.as_bytes(), Default::default()).unwrap();
                    ended.lock().unwrap().push(numbers);
                }
            });
        }
    });
    mounted.vfs.barrier();
    let ended = ended.into_inner().unwrap();
    assert_eq!(ended.len(), 200);
    for numbers in ended {
        // Each inode was evicted once, the root too: by the clock of another file system, or at the end.
        assert_eq!(numbers.evicted.load(Relaxed), numbers.lookups.load(Relaxed) + 1);
    }
    mounted.used();
}
