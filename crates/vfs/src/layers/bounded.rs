//! A file system whose calls end at their deadlines.
//!
//! # What it is
//! A layer. It runs a call that has a deadline, or that can be [cancelled](Cancel), on a pool of threads. So the caller returns in time, with
//! `ETIMEDOUT` or `EINTR`, even if the file system inside hangs. Other calls go straight through.
//!
//! The *late* answer of a call that its caller has left is not lost: what it may have changed is marked stale, so that the
//! cache requests it again; a file that it opened is released; an answer that only informs is dropped.
//!
//! Where the names live in the cache alone, the cache cannot request them again. There only calls that change nothing are bounded.
//!
//! # How it is locked
//! A call has one [`Monitor`] around its state: the thread that works, and the caller that leaves, exclude each other. What the thread uses
//! of the caller's is counted or copied ([`held`], and [`calls`] for each method), so that it may stay longer than the caller. The locks that a caller has during a call end
//! with its return: a late call overlaps others of the same file.
//!
//! # Where it comes from
//! The `soft` mounts of NFS; own code.
//!
//! # Limitations
//! `evict` has no caller that could leave, and no inode after it: it must not hang.

mod calls;
mod held;

use crate::base::cancel::Cancel;
use crate::base::deadline::{Deadline, moment_in};
use crate::base::errno::Errno;
use crate::base::monitor::Monitor;
use crate::base::workers::{THREADS, Workers};
use crate::cache::superblock::SuperBlock;
use crate::fs::invalidator::Invalidator;
use crate::fs::{FileSystem, NameStore, Open, Request};
use crate::slots::inode::Inode;
use core::time::Duration;
use held::{KeptInode, KeptOpen};
use prim::shared::{PlainArc as Arc, Weak};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use sync::Mutex;

/// A file system whose calls end at their deadlines: a layer around one that may hang.
///
/// A call that has a deadline ([`Context::set_timeout_ns`](crate::Context::set_timeout_ns), [`Bounded::timeout`]), or that can be
/// cancelled ([`Cancel::scope`]), runs on one of a few threads. So its caller returns in time, with `ETIMEDOUT` or `EINTR`, whatever the
/// file system inside does. Other calls go straight through.
///
/// What such a call does afterwards is not lost: the cache requests again what it may have changed, and a file that it opened is
/// released. After `ETIMEDOUT` or `EINTR`, as after a timeout of NFS, a change has happened, or happens later, or never happens. The file
/// system inside must bear that such a call overlaps others of the same file or directory.
///
/// With [`NameStore::Cache`](crate::NameStore::Cache) the cache cannot request anything again, so calls that change something
/// go straight through. `evict` always does.
pub struct Bounded<F: FileSystem + ?Sized> {
    inner: Arc<F>,
    workers: Workers,
    timeout_ns: Option<u64>,
    mounted: Mutex<Option<Invalidator>>,
    /// Whether a late change can be requested again.
    is_asked_again: bool,
}

impl<F: FileSystem + ?Sized> Bounded<F> {
    /// Bounds the calls of `inner`, by at most 32 threads.
    #[must_use]
    pub fn of(inner: Box<F>) -> Self {
        let is_asked_again = !matches!(inner.traits().names, NameStore::Cache(_));
        Self {
            inner: inner.into(),
            workers: Workers::new("lightfoot-bounded", THREADS),
            timeout_ns: None,
            mounted: Mutex::new(None),
            is_asked_again,
        }
    }

    /// Sets how many threads run calls. While all of them hang, further calls wait for one until their own deadlines. One at least.
    #[must_use]
    pub fn threads(mut self, most: usize) -> Self {
        self.workers = Workers::new("lightfoot-bounded", most);
        self
    }

    /// Sets the most that every call takes, also one that has no deadline.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ns = Some(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        self
    }

    /// How a call that changes nothing runs. `None`: straight through.
    fn asking(&self, request: &Request) -> Option<Call<'_, F>> {
        let cancel = request.cancel();
        let own = self.timeout_ns.map(moment_in);
        let deadline = [request.deadline, own].into_iter().flatten().min();
        if deadline.is_none() && cancel.is_none() {
            return None;
        }
        let invalidator = self.mounted.lock().clone()?;
        let sb = invalidator.way::<Weak<SuperBlock>>()?.upgrade()?;
        let mut request = request.to_owned();
        request.deadline = deadline;
        Some(Call { bounded: self, sb, invalidator, request, cancel, must_run: false })
    }

    /// The same for a call that may change something.
    fn changing(&self, request: &Request) -> Option<Call<'_, F>> {
        if self.is_asked_again { self.asking(request) } else { None }
    }
}

/// A call that its caller may leave.
struct Call<'b, F: FileSystem + ?Sized> {
    bounded: &'b Bounded<F>,
    sb: Arc<SuperBlock>,
    invalidator: Invalidator,
    request: Request<'static>,
    cancel: Option<Cancel>,
    /// Whether it runs also if its caller leaves before it began.
    must_run: bool,
}

/// The state of a call, between its caller and its thread.
enum State<A, R> {
    /// The caller waits.
    Awaited,
    /// The answer, and the arguments, which the caller drops: it still has the file itself.
    Done(std::thread::Result<Result<R, Errno>>, A),
    /// The caller leaves with this, or has left.
    Left(Errno),
}

/// What a late answer is applied with.
struct Late<'l, F: FileSystem + ?Sized> {
    fs: &'l F,
    invalidator: &'l Invalidator,
    sb: &'l SuperBlock,
}

impl<F: FileSystem + ?Sized> Late<'_, F> {
    /// Marks what the cache has of the file as stale.
    fn inode(&self, inode: &Inode) {
        self.invalidator.inode(inode.node());
    }

    /// Marks what the cache has of the name, and of its directory, as stale.
    fn entry(&self, dir: &Inode, name: &[u8]) {
        self.invalidator.entry(dir.node(), name);
        self.inode(dir);
    }
}

impl<F: FileSystem + ?Sized> Call<'_, F> {
    fn keep(&self, inode: &Inode) -> KeptInode {
        KeptInode::new(&self.sb, inode)
    }

    fn keep_open(&self, file: &Open<'_>) -> KeptOpen<F> {
        KeptOpen::new(&self.sb, &self.bounded.inner, file)
    }

    /// Runs `work` with `args`, which changes nothing.
    fn ask<A: Send + 'static, R: Send + 'static>(
        &self,
        args: A,
        work: fn(&F, &Request, &A) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        self.run(args, work, |_, _, _| {})
    }

    /// Runs `work` with `args` on a thread of the pool. If its caller has left, calls `late` with its answer.
    ///
    /// # Errors
    /// `ETIMEDOUT`, `EINTR`; `EAGAIN`: the system cannot start a thread; what `work` returns.
    fn run<A: Send + 'static, R: Send + 'static>(
        &self,
        args: A,
        work: fn(&F, &Request, &A) -> Result<R, Errno>,
        late: fn(&Late<'_, F>, &A, Result<R, Errno>),
    ) -> Result<R, Errno> {
        let Call { bounded, sb, invalidator, request, cancel, must_run } = self;
        if !must_run {
            // Nothing begins for a caller that has left before.
            request.check()?;
        }
        let (sb, invalidator, request) = (sb.clone(), invalidator.clone(), request.clone());
        let state = Arc::new(Monitor::new(State::Awaited));
        // The file system inside may stop once its caller has left, for whatever reason.
        let (own, deadline) = (Cancel::new(), request.deadline);
        let (state_there, own_there, fs) = (state.clone(), own.clone(), bounded.inner.clone());
        let there = move || {
            let answer = own_there.scope(|| catch_unwind(AssertUnwindSafe(|| work(&fs, &request, &args))));
            let left = state_there.change(|state| match state {
                State::Left(_) => Some((answer, args)),
                _ => {
                    *state = State::Done(answer, args);
                    None
                }
            });
            if let Some((answer, args)) = left {
                // After a panic anything may have changed, as after an error.
                let answer = answer.unwrap_or(Err(Errno::EIO));
                sb.contain(|| late(&Late { fs: &*fs, invalidator: &invalidator, sb: &sb }, &args, answer));
            }
        };
        let Ok(ticket) = bounded.workers.run(Box::new(there)) else { return Err(Errno::EAGAIN) };
        wait(&state, deadline, cancel.as_ref()).unwrap_or_else(|errno| {
            if !must_run {
                bounded.workers.withdraw(ticket);
            }
            own.cancel();
            Err(errno)
        })
    }
}

/// Waits for the end of a call. `Err`: with what its caller leaves it.
fn wait<A: Send + 'static, R: Send + 'static>(
    state: &Arc<Monitor<State<A, R>>>,
    deadline: Option<i64>,
    cancel: Option<&Cancel>,
) -> Result<Result<R, Errno>, Errno> {
    let leave = |state: &mut State<A, R>, errno| {
        if let State::Awaited = state {
            *state = State::Left(errno);
        }
    };
    let _watch = cancel.map(|cancel| {
        let state = state.clone();
        cancel.watch(move || state.change(|state| leave(state, Errno::EINTR)))
    });
    let ended = state.wait(Deadline::at(deadline), |state| match state {
        State::Awaited => None,
        _ => Some(core::mem::replace(state, State::Left(Errno::EINTR))),
    });
    // The last look: it may have ended meanwhile.
    let ended = ended.unwrap_or_else(|| {
        state.change(|state| {
            leave(state, Errno::ETIMEDOUT);
            core::mem::replace(state, State::Left(Errno::ETIMEDOUT))
        })
    });
    match ended {
        State::Done(Ok(answer), _args) => Ok(answer),
        State::Done(Err(payload), _args) => resume_unwind(payload),
        State::Left(errno) => Err(errno),
        State::Awaited => Err(Errno::EIO),
    }
}

impl<F: FileSystem + ?Sized> core::fmt::Debug for Bounded<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bounded").field("timeout_ns", &self.timeout_ns).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    /// Those without a caller that could leave.
    const UNBOUNDED: &[&str] = &["root", "id", "evict"];

    fn methods(text: &str) -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix("    fn ")?.split('(').next()).collect()
    }

    #[test]
    fn every_method_with_a_caller_is_bounded() {
        let bounded = methods(include_str!("bounded/calls.rs"));
        let forgotten = methods(include_str!("../fs.rs")).into_iter();
        let forgotten: Vec<_> = forgotten.filter(|name| !bounded.contains(name) && !UNBOUNDED.contains(name)).collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
    }
}
