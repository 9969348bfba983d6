//! A race: writers for a number of rounds, readers for as long as there are writers.

use crate::namespace::rng::Rng;
use std::fmt::Debug;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// The variable that replays a run's random choices.
const SEED: &str = "RACES_SEED";

type Reader<'a> = Box<dyn FnMut(&mut Rng) + Send + 'a>;
type Writer<'a> = Box<dyn FnMut(u64, &mut Rng) + Send + 'a>;

/// Threads that begin together.
#[derive(Default)]
pub(crate) struct Race<'a> {
    writers: Vec<(u64, Writer<'a>)>,
    readers: Vec<Reader<'a>>,
}

/// Takes one from the count of writers, also when its thread panics, so that readers end.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl<'a> Race<'a> {
    /// A thread that runs `round` for the numbers below `rounds`.
    pub(crate) fn writer(mut self, rounds: u64, round: impl FnMut(u64, &mut Rng) + Send + 'a) -> Self {
        self.writers.push((rounds, Box::new(round)));
        self
    }

    /// A thread that runs `round` until all writers have ended, once at least.
    pub(crate) fn reader(mut self, round: impl FnMut(&mut Rng) + Send + 'a) -> Self {
        self.readers.push(Box::new(round));
        self
    }

    /// Runs all threads to their ends.
    pub(crate) fn run(self) {
        let seed = seed();
        println!("{SEED}={seed} replays the random choices");
        let running = AtomicUsize::new(self.writers.len());
        let start = Barrier::new(self.writers.len() + self.readers.len());
        let (running, start) = (&running, &start);
        std::thread::scope(|scope| {
            for (number, (rounds, mut round)) in self.writers.into_iter().enumerate() {
                scope.spawn(move || {
                    let _running = Running(running);
                    let mut rng = Rng::new(seed ^ (number as u64 + 1));
                    start.wait();
                    (0..rounds).for_each(|number| round(number, &mut rng));
                });
            }
            for (number, mut round) in self.readers.into_iter().enumerate() {
                scope.spawn(move || {
                    let mut rng = Rng::new(seed ^ (number as u64 + 1) << 32);
                    start.wait();
                    round(&mut rng);
                    while running.load(SeqCst) != 0 {
                        round(&mut rng);
                    }
                });
            }
        });
    }
}

fn seed() -> u64 {
    match std::env::var(SEED) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{SEED}={text} is not a number")),
        Err(_) => fastrand::u64(..),
    }
}

/// The states that one writer takes something through: numbers from 0 on.
#[derive(Default)]
pub(crate) struct History {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl History {
    /// Goes to the next state by `change`, and stays there for a while, so that some looks fall between two steps and have
    /// one answer only. One thread at a time.
    pub(crate) fn step(&self, change: impl FnOnce()) {
        let state = self.begun.fetch_add(1, SeqCst);
        change();
        self.ended.fetch_add(1, SeqCst);
        (0..state * 37 % 128).for_each(|_| std::hint::spin_loop());
    }
}

/// One reader's way through a history.
pub(crate) struct Observer<'h> {
    history: &'h History,
    at: u64,
}

impl<'h> Observer<'h> {
    pub(crate) fn new(history: &'h History) -> Self {
        Self { history, at: 0 }
    }

    /// Checks that what `look` gives fits a state that the history was in meanwhile, and none before the one seen last.
    pub(crate) fn see<R: Debug>(&mut self, look: impl FnOnce() -> R, fits: impl Fn(u64, &R) -> bool) {
        let first = self.history.ended.load(SeqCst);
        let seen = look();
        let last = self.history.begun.load(SeqCst);
        self.at = fit(first.max(self.at), last, &seen, fits);
    }
}

/// The first of the states `first..=last` that `seen` fits.
fn fit<R: Debug>(first: u64, last: u64, seen: &R, fits: impl Fn(u64, &R) -> bool) -> u64 {
    let state = (first..=last).find(|&state| fits(state, seen));
    state.unwrap_or_else(|| panic!("{seen:?} fits none of the states {first}..={last}"))
}

/// What one reader saw, to be checked once all is known about the states.
pub(crate) struct Notes<'h, R> {
    history: &'h History,
    seen: Vec<(u64, u64, R)>,
    limit: usize,
}

impl<'h, R: Debug> Notes<'h, R> {
    /// At most `limit` looks are noted.
    pub(crate) fn new(history: &'h History, limit: usize) -> Self {
        Self { history, seen: Vec::new(), limit }
    }

    pub(crate) fn look(&mut self, look: impl FnOnce() -> R) {
        if self.seen.len() < self.limit {
            let first = self.history.ended.load(SeqCst);
            let seen = look();
            self.seen.push((first, self.history.begun.load(SeqCst), seen));
        }
    }

    /// As [`Observer::see`], of all looks.
    pub(crate) fn check(&self, fits: impl Fn(u64, &R) -> bool) {
        self.seen.iter().fold(0, |at, (first, last, seen)| fit(at.max(*first), *last, seen, &fits));
    }
}
