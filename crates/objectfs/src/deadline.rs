//! How long a caller waits for the store: until a deadline, or until another thread cancels the call.

use core::pin::pin;
use core::time::Duration;
use futures::future::{Either, select};
use std::sync::Arc;
use tokio::sync::Notify;
use vfs::{Cancel, Errno, Request};

/// How often a caller that waits for a lock looks whether it is cancelled.
const STEP: Duration = Duration::from_millis(50);

/// The end of the caller's wait for a request, in nanoseconds of `prim::clock::monotonic_ns`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<i64>);

impl Deadline {
    /// No deadline: the timeouts and retries end each request.
    pub(crate) const NONE: Self = Self(None);

    pub(crate) fn within(time: Duration) -> Self {
        let time = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        Self(Some(prim::clock::monotonic_ns().saturating_add(time)))
    }

    pub(crate) fn of(request: &Request<'_>) -> Self {
        Self(request.deadline)
    }

    /// Returns the time until the deadline.
    pub(crate) fn left(self) -> Option<Duration> {
        let left = |at: i64| u64::try_from(at.saturating_sub(prim::clock::monotonic_ns())).unwrap_or(0);
        self.0.map(|at| Duration::from_nanos(left(at)))
    }

    /// Takes a lock by `lock`, or by `try_for` if the caller may leave.
    ///
    /// # Errors
    /// `ETIMEDOUT` at the deadline; `EINTR`: the caller is cancelled.
    pub(crate) fn lock<G>(self, lock: impl FnOnce() -> G, try_for: impl Fn(Duration) -> Option<G>) -> Result<G, Errno> {
        let cancel = Cancel::current();
        if self.0.is_none() && cancel.is_none() {
            return Ok(lock());
        }
        loop {
            let left = self.left();
            if let Some(guard) = try_for(left.unwrap_or(STEP).min(STEP)) {
                return Ok(guard);
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Err(Errno::ETIMEDOUT);
            }
            if cancel.as_ref().is_some_and(Cancel::is_cancelled) {
                return Err(Errno::EINTR);
            }
        }
    }

    /// Returns when the caller leaves, and why: `ETIMEDOUT` at the deadline, `EINTR` if the caller is
    /// cancelled.
    pub(crate) async fn leave(self) -> Errno {
        let passed = async {
            match self.left() {
                Some(left) => tokio::time::sleep(left).await,
                None => core::future::pending().await,
            }
        };
        match select(pin!(passed), pin!(cancelled())).await {
            Either::Left(..) => Errno::ETIMEDOUT,
            Either::Right(..) => Errno::EINTR,
        }
    }
}

/// Returns when the calls of this thread are cancelled and the cancellation has its effect.
async fn cancelled() {
    let Some(cancel) = Cancel::current() else { return core::future::pending().await };
    let bell = Arc::new(Notify::new());
    let ring = bell.clone();
    let _watch = cancel.watch(move || ring.notify_one());
    bell.notified().await;
    while !cancel.is_cancelled() {
        tokio::time::sleep(STEP).await;
    }
}
