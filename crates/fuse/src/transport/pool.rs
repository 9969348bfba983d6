//! Starts more threads when calls of the tree hang: if all threads of a pool, or all but one, have
//! been inside calls for a millisecond, another thread starts.
//!
//! # What it is
//! A pool is the threads that serve one queue of io_uring, or all threads that read `/dev/fuse`.
//! Each enters ([`Member::enter`]) before a call into the tree, and leaves after it. A thread that
//! enters, and finds that too few other threads are outside of calls, wakes the supervisor, a
//! thread that only waits for this ([`Pools::lead`]). If no thread has entered or left for
//! [`PATIENCE`], the supervisor starts another thread, up to a limit of the pool.
//!
//! # What it is not
//! A pool that follows the load: threads that work and do not hang are enough, however many requests wait.
//!
//! # How it is locked
//! A pool is one word. Its changes have one order, so the last thread that enters sees that all
//! threads are inside. A mutex protects the wake-up of the supervisor.
//!
//! # Where it comes from
//! `fuse_do_work` in libfuse's `fuse_loop_mt.c`, which starts a thread as soon as none waits.

use parking_lot::{Condvar, Mutex};
use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// How long all threads must be inside calls before another one starts.
const PATIENCE: Duration = Duration::from_millis(1);

/// The pause until the supervisor looks again, if they were not.
const PAUSE: Duration = Duration::from_millis(4);

/// The pause after a thread could not be started.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// One call that has begun or ended, in the word of a pool.
const CHANGE: u64 = 1 << 32;
/// One thread.
const THREAD: u64 = 1 << 16;

/// The pools of a connection.
#[derive(Debug)]
pub(super) struct Pools {
    list: Vec<Pool>,
    /// The number of threads of each pool that should be outside of calls.
    spare: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_called: bool,
    is_over: bool,
}

#[derive(Debug)]
struct Pool {
    /// From the lowest bit: 16 bits for threads inside calls, 16 for all threads, 32 for calls that have begun or ended.
    word: AtomicU64,
    /// Threads that the pool began with.
    first: u64,
    /// The most threads that the pool may have.
    most: u64,
    /// Whether the pool did not need its other threads for some time.
    is_calm: AtomicBool,
}

/// The supervisor's actions on a pool, given by its place.
pub(super) struct Actions<'a> {
    /// Starts another thread.
    pub(super) spawn_at: &'a (dyn Fn(usize) -> io::Result<()> + Sync),
    /// The time after which the other threads of a pool leave, if the pool did not need them.
    /// `None`: they stay.
    pub(super) idle: Option<Duration>,
    /// Gives each thread of the pool something to do, so that a thread notices that it may end.
    pub(super) wake: &'a (dyn Fn(usize) + Sync),
}

/// Why the supervisor wakes.
#[derive(PartialEq, Eq)]
enum Reason {
    Called,
    Idle,
    Over,
}

fn inside(word: u64) -> u64 {
    word % THREAD
}

fn threads(word: u64) -> u64 {
    word % CHANGE / THREAD
}

impl Pool {
    /// Returns whether too few threads are outside of calls, and the pool may have another thread.
    fn is_short(&self, word: u64, spare: u64) -> bool {
        inside(word) + spare >= threads(word) && threads(word) < self.most
    }
}

impl Pools {
    /// Creates a pool for each of `sizes`: the number of its threads, and the most that it may
    /// have. `spare` threads of a pool should not be inside calls.
    pub(super) fn new(spare: u64, sizes: impl IntoIterator<Item = (usize, usize)>) -> Arc<Self> {
        let pool = |(first, most): (usize, usize)| {
            let (first, most) = (first as u64, most.min(u16::MAX.into()) as u64);
            Pool { word: AtomicU64::new(first * THREAD), first, most, is_calm: AtomicBool::new(false) }
        };
        let list = sizes.into_iter().map(pool).collect();
        Arc::new(Self { list, spare, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Runs the supervisor until [`end`](Self::end) is called.
    pub(super) fn lead(&self, actions: &Actions<'_>) {
        loop {
            match self.wait(actions.idle.filter(|_| self.has_others())) {
                Reason::Over => return,
                Reason::Called => self.relieve(actions),
                Reason::Idle => self.idle(actions),
            }
        }
    }

    /// Ends the supervisor.
    pub(super) fn end(&self) {
        self.state.lock().is_over = true;
        self.changed.notify_all();
    }

    fn has_others(&self) -> bool {
        // Relaxed, here and below: a pool is one word, and the stores that the supervisor must see
        // come before the call.
        self.list.iter().any(|pool| threads(pool.word.load(Relaxed)) > pool.first)
    }

    fn call(&self) {
        let mut state = self.state.lock();
        if !state.is_called {
            state.is_called = true;
            self.changed.notify_all();
        }
    }

    /// Waits for a call.
    fn wait(&self, idle: Option<Duration>) -> Reason {
        let until = idle.map(|time| Instant::now() + time);
        let mut state = self.state.lock();
        loop {
            if state.is_over {
                return Reason::Over;
            }
            if state.is_called {
                return Reason::Called;
            }
            match until {
                None => self.changed.wait(&mut state),
                Some(until) if self.changed.wait_until(&mut state, until).timed_out() => return Reason::Idle,
                Some(_) => {}
            }
        }
    }

    /// Waits; returns whether the supervisor must end.
    fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = self.state.lock();
        while !state.is_over && !self.changed.wait_until(&mut state, until).timed_out() {}
        state.is_over
    }

    /// Starts threads until no pool is short of them.
    fn relieve(&self, actions: &Actions<'_>) {
        let mut pause = PATIENCE;
        loop {
            // Taken back before the pools are looked at: a thread that enters after that calls again.
            self.state.lock().is_called = false;
            let before: Vec<_> = self.list.iter().map(|pool| pool.word.load(Relaxed)).collect();
            if !self.list.iter().zip(&before).any(|(pool, word)| pool.is_short(*word, self.spare)) || self.pause(pause)
            {
                return;
            }
            pause = PAUSE;
            for (at, (pool, word)) in self.list.iter().zip(before).enumerate() {
                if !pool.is_short(word, self.spare) || pool.word.load(Relaxed) != word {
                    continue;
                }
                pool.word.fetch_add(THREAD, Relaxed);
                pool.is_calm.store(false, Relaxed);
                pause = PATIENCE;
                if let Err(error) = (actions.spawn_at)(at) {
                    pool.word.fetch_sub(THREAD, Relaxed);
                    tracing::warn!(%error, threads = threads(word), "all threads are inside calls that hang, and another one cannot start");
                    pause = LONG_PAUSE;
                } else {
                    tracing::debug!(threads = threads(word) + 1, "all threads were inside calls: one more");
                }
            }
        }
    }

    /// Lets the threads leave that a pool did not need.
    fn idle(&self, actions: &Actions<'_>) {
        for (at, pool) in self.list.iter().enumerate() {
            if threads(pool.word.load(Relaxed)) > pool.first {
                pool.is_calm.store(true, Relaxed);
                (actions.wake)(at);
            }
        }
    }
}

/// A thread's place in a pool.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pools: Arc<Pools>,
    at: usize,
}

/// While it exists, the thread is inside a call.
#[derive(Debug)]
pub(super) struct Inside<'m>(&'m Pool);

impl Member {
    pub(super) fn new(pools: &Arc<Pools>, at: usize) -> Self {
        Self { pools: pools.clone(), at }
    }

    fn pool(&self) -> &Pool {
        &self.pools.list[self.at]
    }

    /// Notes that the thread is inside a call until the result is dropped. Wakes the supervisor if
    /// too few other threads of the pool are outside of calls.
    pub(super) fn enter(&self) -> Inside<'_> {
        let pool = self.pool();
        // Relaxed: see `has_others`.
        let word = pool.word.fetch_add(CHANGE + 1, Relaxed).wrapping_add(CHANGE + 1);
        if pool.is_short(word, self.pools.spare) {
            self.pools.call();
        }
        Inside(pool)
    }

    /// Returns a value that ends the supervisor when it is dropped.
    pub(super) fn end_of_all(&self) -> EndOfAll {
        EndOfAll { pools: self.pools.clone(), is_mine_alone: Cell::new(false) }
    }

    /// Takes this thread, which is not inside a call, out of the pool, if the pool has threads that it does not need.
    pub(super) fn leave(&self) -> bool {
        let pool = self.pool();
        let without = |word| (threads(word) > pool.first && inside(word) < pool.first).then(|| word - THREAD);
        pool.is_calm.load(Relaxed) && pool.word.fetch_update(Relaxed, Relaxed, without).is_ok()
    }
}

/// The end of a thread, and with it of the connection.
#[derive(Debug)]
pub(super) struct EndOfAll {
    pools: Arc<Pools>,
    is_mine_alone: Cell<bool>,
}

impl EndOfAll {
    /// Notes that only this thread ends, and that the connection continues.
    pub(super) fn is_mine_alone(&self) {
        self.is_mine_alone.set(true);
    }
}

impl Drop for EndOfAll {
    fn drop(&mut self) {
        if !self.is_mine_alone.get() {
            self.pools.end();
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.word.fetch_add(CHANGE - 1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_crew_that_hangs_gets_threads_up_to_its_limit() {
        let pools = Pools::new(0, [(2, 4), (1, 1), (2, 4)]);
        let (hired, hires) = channel();
        let spawn_at = |at| {
            hired.send(at).unwrap();
            Ok(())
        };
        let member = |at| Member::new(&pools, at);
        let members = [member(0), member(1), member(2)];
        std::thread::scope(|scope| {
            scope.spawn(|| pools.lead(&Actions { spawn_at: &spawn_at, idle: None, wake: &|_| {} }));
            let _one_of_two = members[2].enter();
            let _at_its_limit = members[1].enter();
            let _hangs = (members[0].enter(), members[0].enter());
            assert_eq!(hires.recv(), Ok(0));
            let _the_third = members[0].enter();
            assert_eq!(hires.recv(), Ok(0));
            let _the_fourth = members[0].enter();
            // That it is looked at again, and gets none, shows when the other one gets one.
            let _the_other = members[2].enter();
            assert_eq!(hires.recv(), Ok(2));
            pools.end();
        });
        assert!(hires.try_recv().is_err());
        assert_eq!(threads(pools.list[0].word.load(Relaxed)), 4);
    }

    #[test]
    fn a_crew_that_needs_a_spare_thread_gets_it_before_all_hang() {
        let pools = Pools::new(1, [(3, 4)]);
        let (hired, hires) = channel();
        let spawn_at = |at| {
            hired.send(at).unwrap();
            Ok(())
        };
        let member = Member::new(&pools, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| pools.lead(&Actions { spawn_at: &spawn_at, idle: None, wake: &|_| {} }));
            let _hang = (member.enter(), member.enter());
            assert_eq!(hires.recv(), Ok(0));
            pools.end();
        });
    }

    #[test]
    fn a_thread_that_cannot_start_is_tried_again() {
        let pools = Pools::new(0, [(1, 3)]);
        let (tried, tries) = channel();
        let spawn_at = |_| {
            tried.send(()).unwrap();
            Err(io::Error::other("on purpose"))
        };
        let member = Member::new(&pools, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| pools.lead(&Actions { spawn_at: &spawn_at, idle: None, wake: &|_| {} }));
            let _hangs = member.enter();
            assert!(tries.recv().is_ok() && tries.recv().is_ok());
            pools.end();
        });
        assert_eq!(threads(pools.list[0].word.load(Relaxed)), 1);
    }

    #[test]
    fn threads_leave_a_crew_that_is_calm_but_for_its_first_ones() {
        let pools = Pools::new(0, [(1, 3)]);
        let (woken, rouses) = channel();
        let member = Member::new(&pools, 0);
        let others = [member.enter(), member.enter()];
        pools.list[0].word.fetch_add(2 * THREAD, Relaxed);
        assert!(!member.leave(), "they may be needed again");
        let wake = |at| woken.send(at).unwrap();
        let idle = Some(Duration::from_millis(1));
        std::thread::scope(|scope| {
            scope.spawn(|| pools.lead(&Actions { spawn_at: &|_| Ok(()), idle, wake: &wake }));
            assert_eq!(rouses.recv(), Ok(0));
            assert!(!member.leave(), "two are inside");
            drop(others);
            assert!(member.leave() && member.leave() && !member.leave());
            pools.end();
        });
    }
}
