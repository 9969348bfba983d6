//! A file system whose calls end at their deadlines.
//!
//! # What it is
//! A layer that runs each call on a pool of threads. The caller waits until a deadline, or until
//! the call is [cancelled](Cancel). So the caller returns in time, with `ETIMEDOUT` or `EINTR`,
//! even if the file system inside hangs.
//!
//! The *late* answer of a call that its caller has left is not lost. Whatever it may have changed
//! is marked stale, so that the cache requests it again. A file that it opened is released. An
//! answer that only informs is dropped.
//!
//! Where the names live in the cache alone, the cache cannot request them again. There calls that
//! change something run on the thread of their caller, without a deadline.
//!
//! # How it is locked
//! A call has one [`Monitor`] around its state: the thread that works, and the caller that leaves,
//! exclude each other. The thread counts or copies the caller's arguments that it uses ([`held`],
//! and [`calls`] for each method), so that it may stay longer than the caller. The locks that a
//! caller has during a call end with its return: a late call overlaps others of the same file.
//!
//! # Where it comes from
//! The `soft` mounts of NFS.
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
use held::{InodeHandle, OpenHandle};
use prim::shared::{PlainArc as Arc, Weak};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use sync::Mutex;

/// A file system whose calls end at their deadlines: a layer around one that may hang.
///
/// Each call runs on one of a few threads. The caller waits for the answer for a limited time, or
/// until its own deadline ([`Context::set_timeout_ns`](crate::Context::set_timeout_ns)) if that is
/// earlier, and then returns with `ETIMEDOUT`. A caller that is cancelled ([`Cancel::scope`])
/// returns with `EINTR`. Callers return in this way whatever the file system inside does.
///
/// The time does not limit `sync`, `flush` and `copy_range`, since they take longer the more data there are. They end at the caller's own
/// deadline, or when it is cancelled.
///
/// The effect of an abandoned call is not lost: the cache requests again whatever the call may have
/// changed, and a file that the call opened is released. After `ETIMEDOUT` or `EINTR`, as after a
/// timeout of NFS, a change has happened, or happens later, or never happens. The file system
/// inside must allow an abandoned call to overlap other calls for the same file or directory.
/// Changes of names come as with [`OwnNames::remote`](crate::OwnNames::remote), so a stuck change
/// delays only changes of the same name. Open files have no
/// [`Opened::backing`](crate::Opened::backing).
///
/// With [`NameStore::Cache`](crate::NameStore::Cache) the cache cannot request anything again, so
/// calls that change something run on the thread of their caller, without a limit. `evict` always
/// runs so.
pub struct Bounded<F: FileSystem + ?Sized> {
    inner: Arc<F>,
    workers: Workers,
    timeout_ns: u64,
    mounted: Mutex<Option<Invalidator>>,
    /// Whether a late change can be requested again.
    is_asked_again: bool,
}

impl<F: FileSystem + ?Sized> Bounded<F> {
    /// Bounds the calls of `inner`, which run on at most 32 threads: a caller waits at most for `timeout`.
    #[must_use]
    pub fn of(inner: Box<F>, timeout: Duration) -> Self {
        let is_asked_again = !matches!(inner.traits().names, NameStore::Cache(_));
        Self {
            inner: inner.into(),
            workers: Workers::new("lightfoot-bounded", THREADS),
            timeout_ns: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX),
            mounted: Mutex::new(None),
            is_asked_again,
        }
    }

    /// Sets how many threads run calls. At least one. While all of them hang, further calls wait
    /// for a thread until their own deadlines.
    #[must_use]
    pub fn threads(mut self, most: usize) -> Self {
        self.workers = Workers::new("lightfoot-bounded", most);
        self
    }

    /// Prepares a call that changes nothing.
    fn asking(&self, request: &Request) -> Result<Call<'_, F>, Errno> {
        self.begin(request, Some(self.timeout_ns), false)
    }

    /// Prepares a call that may change something.
    fn changing(&self, request: &Request) -> Result<Call<'_, F>, Errno> {
        self.begin(request, Some(self.timeout_ns), true)
    }

    /// Prepares a call that may take `limit_ns`; `None`: as long as its caller waits.
    ///
    /// # Errors
    /// `EIO`: the file system is not mounted.
    fn begin(&self, request: &Request, limit_ns: Option<u64>, is_change: bool) -> Result<Call<'_, F>, Errno> {
        let invalidator = self.mounted.lock().clone().ok_or(Errno::EIO)?;
        let sb = invalidator.way::<Weak<SuperBlock>>().and_then(Weak::upgrade).ok_or(Errno::EIO)?;
        let (cancel, mut request) = (request.cancel(), request.to_owned());
        request.deadline = [request.deadline, limit_ns.map(moment_in)].into_iter().flatten().min();
        let is_direct = is_change && !self.is_asked_again;
        Ok(Call { bounded: self, sb, invalidator, request, cancel, must_run: false, is_direct })
    }
}

/// A call that its caller may leave.
struct Call<'b, F: FileSystem + ?Sized> {
    bounded: &'b Bounded<F>,
    sb: Arc<SuperBlock>,
    invalidator: Invalidator,
    request: Request<'static>,
    cancel: Option<Cancel>,
    /// Whether the call runs even if its caller leaves before it began.
    must_run: bool,
    /// Whether it runs on the thread of its caller, which waits.
    is_direct: bool,
}

/// The state of a call, between its caller and its thread.
enum State<A, R> {
    /// The caller waits.
    Awaited,
    /// The answer, and the arguments, which the caller drops: it still has the file itself.
    Done(std::thread::Result<Result<R, Errno>>, A),
    /// The caller has left.
    Left,
}

/// The context in which a late answer is applied.
struct Late<'l, F: FileSystem + ?Sized> {
    fs: &'l F,
    invalidator: &'l Invalidator,
    sb: &'l SuperBlock,
}

impl<F: FileSystem + ?Sized> Late<'_, F> {
    /// Marks the file stale in the cache.
    fn inode(&self, inode: &Inode) {
        self.invalidator.inode(inode.node());
    }

    /// Marks the name and its directory stale in the cache.
    fn entry(&self, dir: &Inode, name: &[u8]) {
        self.invalidator.entry(dir.node(), name);
        self.inode(dir);
    }
}

impl<F: FileSystem + ?Sized> Call<'_, F> {
    fn keep(&self, inode: &Inode) -> InodeHandle {
        InodeHandle::new(&self.sb, inode)
    }

    fn keep_open(&self, file: &Open<'_>) -> OpenHandle<F> {
        OpenHandle::new(&self.sb, &self.bounded.inner, file)
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
    /// `ETIMEDOUT`, `EINTR`; `EAGAIN`: the system cannot start a thread; the errors of `work`.
    fn run<A: Send + 'static, R: Send + 'static>(
        &self,
        args: A,
        work: fn(&F, &Request, &A) -> Result<R, Errno>,
        late: fn(&Late<'_, F>, &A, Result<R, Errno>),
    ) -> Result<R, Errno> {
        let Call { bounded, sb, invalidator, request, cancel, must_run, is_direct } = self;
        if *is_direct {
            return work(&bounded.inner, request, &args);
        }
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
                State::Left => Some((answer, args)),
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

/// Waits for the end of a call. `Err`: the error with which its caller leaves it.
fn wait<A: Send + 'static, R: Send + 'static>(
    state: &Arc<Monitor<State<A, R>>>,
    deadline: Option<i64>,
    cancel: Option<&Cancel>,
) -> Result<Result<R, Errno>, Errno> {
    let _watch = cancel.map(|cancel| {
        let state = state.clone();
        cancel.watch(move || state.change(|_| {}))
    });
    loop {
        // A cancellation that comes meanwhile ends the wait, at once or soon.
        let effect = cancel.and_then(Cancel::effect_ns);
        let until = [deadline, effect].into_iter().flatten().min();
        let is_cancelled = state.wait(Deadline::at(until), |state| {
            let is_cancelled = cancel.and_then(Cancel::effect_ns) != effect;
            (is_cancelled || !matches!(state, State::Awaited)).then_some(is_cancelled)
        });
        if is_cancelled != Some(true) {
            break;
        }
    }
    // The call may have ended meanwhile.
    match state.change_silently(|state| core::mem::replace(state, State::Left)) {
        State::Done(Ok(answer), _args) => Ok(answer),
        State::Done(Err(payload), _args) => resume_unwind(payload),
        State::Awaited | State::Left => {
            Err(if cancel.is_some_and(Cancel::is_cancelled) { Errno::EINTR } else { Errno::ETIMEDOUT })
        }
    }
}

impl<F: FileSystem + ?Sized> core::fmt::Debug for Bounded<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Bounded").field("timeout_ns", &self.timeout_ns).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    /// Calls without a caller that could leave.
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
