//! What the attacks share: threads that look, beside one that changes, neither far ahead of the other.

use fastrand::Rng;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use std::thread;

/// The lookups and the changes of an attack so far.
pub(crate) struct Pace {
    lookups: u64,
    /// Lookups between two changes at most.
    most_between: u64,
    done: AtomicU64,
    changes: AtomicU64,
    /// A thread panicked: the others do not wait for it.
    has_failed: AtomicBool,
}

/// Notes a panic of its thread.
struct Watch<'a>(&'a AtomicBool);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, SeqCst);
        }
    }
}

impl Pace {
    /// For so many lookups of all readers, unless `WHOLE_PATH_LOOKUPS` has another number.
    pub(crate) fn new(lookups: u64, most_between: u64) -> Self {
        let lookups = std::env::var("WHOLE_PATH_LOOKUPS").ok().map_or(lookups, |number| number.parse().unwrap());
        let (done, changes, has_failed) = Default::default();
        Self { lookups, most_between, done, changes, has_failed }
    }

    pub(crate) fn lookups(&self) -> u64 {
        self.lookups
    }

    /// Runs each of `readers` on a thread, and here `change` again and again until all lookups are done, with up to
    /// `pause` lookups in between: enough for most lookups to be by the table, and few enough for many changes. Returns what
    /// the readers return.
    pub(crate) fn run<T: Send>(
        &self,
        readers: impl IntoIterator<Item = impl FnOnce() -> T + Send>,
        pause: u64,
        mut change: impl FnMut(&mut Rng),
    ) -> Vec<T> {
        thread::scope(|scope| {
            let spawn = |read: _| scope.spawn(|| self.watched(read));
            let readers: Vec<_> = readers.into_iter().map(spawn).collect();
            let mut random = Rng::with_seed(1);
            while self.must_go_on() {
                let next = self.done.load(Relaxed) + random.u64(0..pause);
                self.watched(|| change(&mut random));
                self.changes.fetch_add(1, Relaxed);
                while self.must_go_on() && self.done.load(Relaxed) < next && !self.is_late() {
                    thread::yield_now();
                }
            }
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        })
    }

    fn watched<T>(&self, run: impl FnOnce() -> T) -> T {
        let _watch = Watch(&self.has_failed);
        run()
    }

    fn must_go_on(&self) -> bool {
        self.done.load(Relaxed) < self.lookups && !self.has_failed.load(Relaxed)
    }

    /// Whether there were too few changes for so many lookups: the readers then wait.
    fn is_late(&self) -> bool {
        self.must_go_on() && self.changes.load(Relaxed) < self.done.load(Relaxed) / self.most_between
    }

    /// What `look` returns, and `states` during it. `None`: one of them changed meanwhile. Each is odd while its change is under
    /// way.
    pub(crate) fn look<const N: usize, R>(
        &self,
        states: impl Fn() -> [u64; N],
        look: impl FnOnce() -> R,
    ) -> Option<([u64; N], R)> {
        let before = states();
        fence(SeqCst);
        let found = look();
        fence(SeqCst);
        self.done.fetch_add(1, Relaxed);
        while self.is_late() {
            thread::yield_now();
        }
        let is_certain = before == states() && before.iter().all(|state| state % 2 == 0);
        is_certain.then_some((before, found))
    }
}
