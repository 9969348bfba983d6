//! The torture of `tests/it/torture.rs` on simulated CPUs, in orders drawn from a seed: here threads meet at every access to
//! memory, which two cores hardly ever do. A failure names the seed; `ERAS_SEED=<seed>` runs that seed alone.

#[path = "../it/torture/roles.rs"]
mod roles;

use eras_sim as under_test;
use eras_sim::{Era, EraEntry, Handle, Options, Process, catalogue};
use roles::{CHANGERS, PROCESSES, THREADS, play, prepare};
use sim::{Config, Machine, Schedule};
use std::cell::{Cell, RefCell};
use std::panic::catch_unwind;
use std::rc::Rc;

/// Rounds of the threads that change names.
const ROUNDS: usize = 12;

/// Seeds for each era.
const SEEDS: u64 = 6;

/// What the simulated threads share. They are coroutines of one host thread, so cells do.
struct Stage {
    /// Lives as long as the memory of the simulation.
    era: &'static dyn Era,
    cast: RefCell<Option<Cast>>,
    /// Threads that end by themselves, and all, that have not ended.
    changing: Cell<usize>,
    there: Cell<usize>,
}

struct Cast {
    processes: Rc<Vec<Box<dyn Process>>>,
    moving: Rc<Handle>,
}

impl Stage {
    fn new(entry: &EraEntry, is_pinned: bool) -> Self {
        let options = Options { capacity: 512, chains: 4, is_pinned, ..Options::default() };
        let era: &'static dyn Era = Box::leak((entry.make)(&options));
        let processes: Vec<Box<dyn Process>> = (0..PROCESSES).map(|_| era.process()).collect();
        let moving = prepare(&*processes[0]).unwrap_or_else(|wrong| panic!("{wrong}"));
        let cast = Cast { processes: Rc::new(processes), moving: Rc::new(moving) };
        let (changing, there) = (Cell::new(CHANGERS), Cell::new(THREADS));
        Self { era, cast: RefCell::new(Some(cast)), changing, there }
    }

    fn play(&self, index: usize) {
        let (processes, moving) = {
            let cast = self.cast.borrow();
            let cast = cast.as_ref().expect("taken by the last one");
            (cast.processes.clone(), cast.moving.clone())
        };
        let played = play(index, &processes, &moving, ROUNDS, &|| self.changing.get() > 0);
        played.unwrap_or_else(|wrong| panic!("{wrong}"));
        drop((processes, moving));
        if index < CHANGERS {
            self.changing.set(self.changing.get() - 1);
        }
        self.there.set(self.there.get() - 1);
        if self.there.get() == 0 {
            self.end();
        }
    }

    /// Closes all, and lets the era check itself.
    fn end(&self) {
        let cast = self.cast.take().expect("once");
        let moving = Rc::into_inner(cast.moving).expect("all others have ended");
        cast.processes[0].close(moving);
        drop(cast.processes);
        self.era.verify().unwrap_or_else(|wrong| panic!("at the end {wrong}"));
    }
}

fn check(entry: &'static EraEntry, seed: u64) {
    let machine = Machine::preset("dl980").expect("a preset");
    let config =
        Config { threads: THREADS, seed, schedule: Schedule::Shuffled, ..Config::new(machine, THREADS, 100_000) };
    sim::run(config, move || Stage::new(entry, seed.is_multiple_of(2)), |stage: &Stage, index| stage.play(index));
}

#[test]
fn names_stay_where_they_must_in_whatever_order_accesses_come() {
    let _alone = crate::alone();
    let chosen = std::env::var("ERAS_SEED").ok().map(|seed| seed.parse().expect("ERAS_SEED is a number"));
    let seeds = chosen.map_or(1..1 + SEEDS, |seed: u64| seed..seed + 1);
    for seed in seeds {
        for entry in catalogue() {
            let checked = catch_unwind(|| check(entry, seed));
            checked.unwrap_or_else(|_| panic!("{}: ERAS_SEED={seed}; what went wrong is above", entry.name));
        }
    }
}
