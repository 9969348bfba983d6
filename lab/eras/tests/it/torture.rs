//! Threads that make, move, replace, remove, list and climb at once, in every generation, on this machine. At the end the
//! era checks itself. `tests/alone/simulated.rs` does the same on more CPUs than there are here.

mod roles;

use lightfoot_eras as under_test;
use lightfoot_eras::{Era, EraEntry, Options, catalogue};
use roles::{CHANGERS, Checked, PROCESSES, THREADS, play, prepare};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Rounds of the threads that change names.
const ROUNDS: usize = 100;

/// Counts out of what runs, also when unwinding.
struct Out<'a>(Option<&'a AtomicUsize>);

impl Drop for Out<'_> {
    fn drop(&mut self) {
        if let Some(running) = self.0 {
            running.fetch_sub(1, Relaxed);
        }
    }
}

fn torture(era: &dyn Era) -> Checked {
    let processes: Vec<_> = (0..PROCESSES).map(|_| era.process()).collect();
    let moving = prepare(&*processes[0])?;
    let running = AtomicUsize::new(CHANGERS);
    let results: Vec<Checked> = std::thread::scope(|s| {
        let (running, processes, moving) = (&running, &processes, &moving);
        let start = |index: usize| {
            s.spawn(move || {
                let _out = Out((index < CHANGERS).then_some(running));
                play(index, processes, moving, ROUNDS, &|| running.load(Relaxed) > 0)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into()))).collect()
    });
    processes[0].close(moving);
    results.into_iter().collect()
}

fn check(entry: &EraEntry) {
    let options = Options { capacity: 4_096, is_pinned: entry.year.is_multiple_of(2), ..Options::default() };
    let era = (entry.make)(&options);
    torture(&*era).unwrap_or_else(|wrong| panic!("{}: {wrong}", entry.name));
    era.verify().unwrap_or_else(|wrong| panic!("{}: at the end {wrong}", entry.name));
}

#[test]
fn names_stay_where_they_must_whatever_others_do() {
    catalogue().iter().for_each(check);
}
