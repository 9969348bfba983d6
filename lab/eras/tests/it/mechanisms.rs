//! What shows of an era's mechanism only when threads meet. What one thread shows is in `footprints.rs`. Simulated, so exact.

use eras_sim::{Era, Options, Process, find};
use sim::footprint::{Footprint, record};
use sim::{Config, Kind, Machine, Report, count_op, running, uncharged};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

struct Set {
    era: &'static dyn Era,
    processes: Vec<Box<dyn Process>>,
}

fn set_up(name: &'static str, options: &Options, threads: usize) -> Set {
    let entry = find(name).unwrap_or_else(|| panic!("no era {name}"));
    // Lives as long as the memory of the simulation.
    let era: &'static dyn Era = Box::leak((entry.make)(options));
    let process = era.process();
    process.make_directory(b"/common").expect("room");
    for thread in 0..threads {
        let directory = format!("/own{thread}");
        process.make_directory(directory.as_bytes()).expect("room");
        for file in [format!("{directory}/f"), format!("/common/f{thread}")] {
            let handle = process.create(file.as_bytes()).expect("room");
            process.close(handle);
        }
    }
    Set { era, processes: (0..threads).map(|_| era.process()).collect() }
}

impl Set {
    fn counter(&self, name: &str) -> u64 {
        let found = Cell::new(0);
        uncharged(|| {
            self.era.visit_counters(&mut |counter, value| {
                if counter == name {
                    found.set(value);
                }
            });
        });
        found.get()
    }
}

/// Runs `body` on `threads` CPUs of two nodes for 200 microseconds.
fn run(name: &'static str, options: &Options, threads: usize, body: impl Fn(&Set, usize) + Clone + 'static) -> Report {
    run_on(Machine::preset("dl980").expect("a preset"), name, options, threads, body)
}

fn run_on(
    machine: Machine,
    name: &'static str,
    options: &Options,
    threads: usize,
    body: impl Fn(&Set, usize) + Clone + 'static,
) -> Report {
    let options = options.clone();
    let config = Config { warm_ns: 0, ..Config::new(machine, threads, 200) };
    sim::run(config, move || set_up(name, &options, threads), body)
}

fn small() -> Options {
    Options { capacity: 900, chains: 1024, ..Options::default() }
}

/// Words in `file` that are written in a footprint.
fn written(footprint: &Footprint, file: &str) -> usize {
    let touches = footprint.iter().flat_map(|(_, touches)| touches);
    let of_file = touches.filter(|touch| touch.kind != Kind::Load && touch.file.ends_with(file));
    of_file.map(|touch| touch.address).collect::<BTreeSet<_>>().len()
}

/// What one CPU stores to counts while it looks a path up again and again and another CPU renames elsewhere.
fn counts_beside_renames(name: &'static str) -> usize {
    let seen = Rc::new(Cell::new(0));
    let result = Rc::clone(&seen);
    run(name, &small(), 2, move |set, thread| {
        let process = &*set.processes[thread];
        if thread == 1 {
            while running() {
                process.rename(b"/own1/f", b"/own1/g").expect("there");
                process.rename(b"/own1/g", b"/own1/f").expect("there");
            }
            return;
        }
        let ((), footprint) = record(|| {
            while running() {
                assert!(process.stat(b"/own0/f").is_ok());
            }
        });
        result.set(written(&footprint, "count.rs"));
    });
    seen.get()
}

#[test]
fn a_rename_anywhere_disturbs_a_walk_by_the_outer_sequence_and_not_one_by_entries() {
    assert_eq!(counts_beside_renames("store-free-2009"), 1, "the last component's");
    assert_eq!(counts_beside_renames("rcu-walk"), 1, "the last component's");
    assert_eq!(counts_beside_renames("outer-sequence"), 3, "each component's, after a restart with locks");
}

/// Turns, and acquisitions of entries' locks, while 8 CPUs take and drop references on one directory. An owner gives a line
/// up sooner than in the presets: there a CPU whose first try failed has the line for the second, which never fails.
fn locks_of_a_common_parent(name: &'static str) -> (u64, u64) {
    let machine = Machine::preset("dl980").expect("a preset").with_queue(0.05, 1.0);
    let report = run_on(machine, name, &small(), 8, |set, thread| {
        let process = &*set.processes[thread];
        let handle = process.open(format!("/common/f{thread}").as_bytes()).expect("there");
        while running() {
            process.hold_parent(&handle, 100).expect("a parent");
            count_op(0);
        }
        uncharged(|| process.close(handle));
    });
    (report.operations[0], report.lock("d_lock").map_or(0, |lock| lock.acquisitions))
}

#[test]
fn the_merged_lockref_tries_on_where_the_first_form_took_its_lock() {
    let (turns, locks) = locks_of_a_common_parent("linux-3.12");
    assert!(turns > 500 && locks == 0, "{turns} turns, {locks} locks");
    let (turns, locks) = locks_of_a_common_parent("lockref-2013-word");
    assert!(locks > turns, "{turns} turns, {locks} locks");
}

#[test]
fn a_queue_before_the_mutex_wakes_few_of_those_that_wait() {
    let wakes = |name| {
        let report = run(name, &small(), 16, |set, thread| {
            let (process, path) = (&*set.processes[thread], format!("/common/new{thread}"));
            while running() {
                let handle = process.create(path.as_bytes()).expect("room");
                process.close(handle);
                process.unlink(path.as_bytes()).expect("there");
                count_op(0);
            }
        });
        report.counters.spinner_wakes as f64 / report.operations[0] as f64
    };
    assert!(wakes("rcu-walk") > 2.0 * wakes("linux-3.10"), "{} {}", wakes("rcu-walk"), wakes("linux-3.10"));
}

/// Counters of the semaphore while CPUs read a file and, one time in twenty, write it.
fn semaphore(name: &'static str, cpus: usize, held_ns: u64, pause_ns: u64) -> [u64; 4] {
    const COUNTERS: [&str; 4] = ["slow_readers", "early_exits", "queued_readers", "lost_writers"];
    let seen = Rc::new(RefCell::new([0; 4]));
    let result = Rc::clone(&seen);
    run(name, &small(), cpus, move |set, thread| {
        let process = &*set.processes[thread];
        let handle = process.open(b"/own0/f").expect("there");
        let mut turn = thread;
        while running() {
            turn += 1;
            match turn % 20 {
                0 => process.write(&handle, held_ns).expect("a file"),
                _ => process.read(&handle, held_ns).expect("a file"),
            }
            sim::cost(pause_ns);
        }
        uncharged(|| process.close(handle));
        *result.borrow_mut() = COUNTERS.map(|counter| set.counter(counter));
    });
    seen.take()
}

#[test]
fn readers_queue_behind_a_writer_and_a_woken_writer_competes() {
    let [slow, exits, queued, lost] = semaphore("rwsem-2017", 16, 300, 2_000);
    assert!(slow > 0 && exits == 0 && queued > 0 && lost > 0, "{:?}", [slow, exits, queued, lost]);
}

#[test]
fn readers_of_2018_that_come_in_vain_leave_at_once_and_those_of_2017_queue() {
    // Sections as short as the way to the wait lock: the writer has often left when a reader has that.
    let [slow, exits, queued, _] = semaphore("rwsem-2018", 3, 50, 200);
    assert!(exits > 10 && queued > 0 && exits + queued == slow, "{:?}", [slow, exits, queued]);
    let [slow, exits, queued, _] = semaphore("rwsem-2017", 3, 50, 200);
    assert!(exits == 0 && queued > 10 && queued == slow, "{:?}", [slow, exits, queued]);
}

#[test]
fn a_remount_that_clears_the_flag_makes_all_walks_write_one_word() {
    let conflicts = |is_remounted| {
        let footprints = Rc::new(RefCell::new([Footprint::default(), Footprint::default()]));
        let seen = Rc::clone(&footprints);
        run("vfs-scale", &Options { is_remounted, ..small() }, 2, move |set, thread| {
            let path = format!("/own{thread}/f");
            let (found, footprint) = record(|| set.processes[thread].stat(path.as_bytes()));
            assert!(found.is_ok());
            seen.borrow_mut()[thread] = footprint;
        });
        let footprints = footprints.take();
        let conflicts = footprints[0].conflicts(&footprints[1]);
        conflicts.iter().any(|conflict| conflict.ours.iter().any(|touch| touch.file.ends_with("mount.rs")))
    };
    assert!(conflicts(true) && !conflicts(false));
}

#[test]
fn what_lazy_removal_left_on_the_list_is_removed_when_entries_are_searched_for_to_free() {
    let deferred = |name| {
        let seen = Rc::new(Cell::new(0));
        let result = Rc::clone(&seen);
        run(name, &small(), 1, move |set, _| {
            let process = &*set.processes[0];
            let reopen = || process.open(b"/own0/f").expect("there");
            // Unused once, and so on the list; then in use again.
            process.close(reopen());
            let held = reopen();
            uncharged(|| {
                for file in 0..200 {
                    let path = format!("/common/many{file}");
                    process.close(process.create(path.as_bytes()).expect("room"));
                }
            });
            process.close(held);
            result.set(set.counter("deferred_removals"));
        });
        seen.get()
    };
    assert!(deferred("dcache-rcu") > 0);
    assert_eq!(deferred("dcache-lock"), 0, "nothing is deferred");
}

#[test]
fn files_wait_for_grace_periods_and_each_kind_of_rcu_takes_its_locks() {
    let measure = |name| {
        let seen = Rc::new(RefCell::new([0; 3]));
        let result = Rc::clone(&seen);
        let report = run(name, &small(), 32, move |set, thread| {
            let (process, path) = (&*set.processes[thread], format!("/own{thread}/f"));
            while running() {
                let handle = process.open(path.as_bytes()).expect("there");
                process.close(handle);
                count_op(0);
            }
            if thread == 0 {
                *result.borrow_mut() = ["grace_periods", "freed_files", "backlog"].map(|counter| set.counter(counter));
            }
        });
        let [periods, freed, backlog] = seen.take();
        (report.operations[0], periods, freed, backlog)
    };
    let (classic, periods, freed, _) = measure("rcu-classic");
    assert!(periods > 0 && freed > 0, "{periods} grace periods, {freed} files");
    let (tree, periods, freed, _) = measure("rcu-tree");
    assert!(periods > 0 && freed > 0, "{periods} grace periods, {freed} files");
    assert!(tree > 2 * classic, "{tree} turns with a tree, {classic} with one lock");
    let (ours, _, freed, backlog) = measure("rcu-ours");
    assert!(ours > tree && freed + backlog > ours / 2, "{ours} turns, {freed} files freed, {backlog} wait");
    let (_, _, freed, backlog) = measure("linux-3.12");
    assert_eq!((freed, backlog), (0, 0), "files are freed at once");
}

#[test]
fn each_era_has_a_row_in_the_table_of_mutants() {
    let table = include_str!("../../../docs/mutants.md");
    let named = |name: &str| table.lines().any(|line| line.starts_with('|') && line.contains(&format!("`{name}`")));
    let missing: Vec<_> =
        eras_sim::catalogue().iter().filter(|era| era.name != "lightfoot" && !named(era.name)).collect();
    assert!(missing.is_empty(), "{:?}", missing.iter().map(|era| era.name).collect::<Vec<_>>());
}
