//! Why walks leave rcu-walk: never when warm, once for each name that is not cached, and hardly ever back to the start.
//!
//! `benches/fallbacks.rs` runs the same workloads, larger, and prints their figures.

mod workload;

use lightfoot::{Context, Fallback, Vfs};
use testkit::{Store, StoreOptions};
use workload::{Copy, Counts};

/// A tree that `grow` has grown: in memory, and on a file system that keeps its own names, of which nothing is cached
/// yet.
fn trees(grow: impl Fn(&Context)) -> [(&'static str, Vfs); 2] {
    let ram = Vfs::ram();
    grow(&ram.context());
    let names = Store::new(StoreOptions::default());
    grow(&Vfs::new(names.clone()).context());
    [("ramfs", ram), ("own names", Vfs::new(names.clone()))]
}

/// Of misses as many as said, and none for any other reason.
fn only_misses(misses: usize) -> [u64; Fallback::ALL.len()] {
    Fallback::ALL.map(|reason| if reason == Fallback::Miss { misses as u64 } else { 0 })
}

#[test]
fn a_warm_storm_of_lstats_and_of_names_that_are_not_there_never_leaves_rcu_walk() {
    let copy = Copy::new(2_000, 140);
    for (fs, vfs) in trees(|context| copy.grow(context)) {
        copy.status(&vfs);
        for _ in 0..2 {
            let warm = Counts::of(&vfs, |vfs| copy.status(vfs));
            assert_eq!(warm, Counts { walks: 2_140, reasons: only_misses(0) }, "{fs}");
        }
    }
}

#[test]
fn each_name_that_is_not_cached_is_one_miss_and_the_walk_goes_on_from_there() {
    let copy = Copy::new(2_000, 140);
    for (fs, vfs) in trees(|context| copy.grow(context)) {
        // On ramfs every name is cached, and so is the absence of any other name.
        let uncached = if fs == "ramfs" { 0 } else { 2_000 + 140 + 140 };
        let cold = Counts::of(&vfs, |vfs| copy.status(vfs));
        assert_eq!(cold, Counts { walks: 2_140, reasons: only_misses(uncached) }, "{fs}");
    }
}

#[test]
fn a_deep_path_that_is_not_cached_is_one_miss_a_component() {
    let names = Store::new(StoreOptions::default());
    workload::grow_lanes(&Vfs::new(names.clone()).context(), 2);
    let vfs = Vfs::new(names.clone());
    let context = vfs.context();
    let look = |path: &str| context.symlink_metadata(path).is_ok();
    // Components of the path that are cached already are not looked up again.
    for (path, found, misses) in [
        ("/lane-0/one/two", true, 3),
        ("/lane-0/one/two/three/four/five/six/file", true, 5),
        ("/lane-0/one/two/three/four/five/six/none", false, 1),
        ("/lane-1/none/below/below", false, 2),
        ("/lane-1/none/below/below", false, 0),
    ] {
        let counts = Counts::of(&vfs, |_| {
            assert_eq!(look(path), found, "{path}");
            1
        });
        assert_eq!(counts.reasons, only_misses(misses), "{path}");
    }
}

#[test]
fn a_build_on_ramfs_never_leaves_rcu_walk_for_a_miss() {
    for (fs, vfs) in trees(|context| workload::grow_sources(context, 60)) {
        let counts = Counts::of(&vfs, |vfs| workload::build(vfs, 60));
        assert_eq!(counts.get(Fallback::Miss) == 0, fs == "ramfs", "{fs}: {counts:?}");
        assert!(counts.restarted_percent() <= 0.5, "{fs}: {counts:?}");
    }
}

#[test]
fn clients_in_directories_of_their_own_hardly_ever_begin_a_walk_again() {
    for (fs, vfs) in trees(workload::grow_clients) {
        let counts = Counts::of(&vfs, |vfs| workload::serve(vfs, 1_000));
        assert_eq!(counts.get(Fallback::Miss) == 0, fs == "ramfs", "{fs}: {counts:?}");
        assert!(counts.restarted_percent() <= 0.5, "{fs}: {counts:?}");
    }
}

#[test]
fn a_storm_of_renames_makes_few_walks_begin_again() {
    for (fs, vfs) in trees(|context| workload::grow_lanes(context, 4)) {
        let mut renames = 0;
        let counts = Counts::of(&vfs, |vfs| {
            let walked = workload::storm(vfs, 4, 1_000_000);
            renames = walked.1;
            walked.0 + walked.1
        });
        assert!(renames > 0 && counts.walks >= 1_000_000, "{fs}: {counts:?}");
        // 0.0015 at most in twelve runs on two quiet CPUs, and 0.05 beside a compiler, which stops threads in the middle of renames.
        assert!(counts.restarted_percent() <= 0.5, "{fs}: {counts:?}");
        // A walk begins again when its place has changed, and hardly ever (if the place changes just then) for a miss.
        let changed = counts.get(Fallback::DirectoryChanged) + counts.get(Fallback::EntryChanged);
        let missed = counts.get(Fallback::Miss) + counts.get(Fallback::RenameInProgress);
        assert!(counts.get(Fallback::Restart) <= changed + missed / 10 + 10, "{fs}: {counts:?}");
    }
}

#[test]
fn a_name_takes_272_bytes_at_most() {
    let bytes = workload::bytes_per_name(200_000);
    assert!(bytes <= 272.0, "{bytes} bytes a name");
}
