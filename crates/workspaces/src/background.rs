//! A thread that frees ended forks.
//!
//! # What it is
//! A queue of values, which one thread drops in order. The thread starts with the first value and ends with the queue, which waits
//! for it. A value that cannot be sent, because the system has no thread, is dropped by the caller.
//!
//! # How it is locked
//! By the channel.

use core::convert::Infallible;
use prim::thread::{JoinHandle, spawn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A value that the thread drops.
type Ended = Box<dyn Send>;

/// See the [module documentation](self).
#[derive(Default)]
pub(crate) struct Background(OnceLock<Option<(Sender<Ended>, Joined)>>);

/// A thread. The drop waits for its end, which follows the drop of its channel, the field before.
#[derive(Debug)]
pub(crate) struct Joined(Option<JoinHandle<()>>);

impl Background {
    /// Drops a value, without waiting for it.
    pub(crate) fn free(&self, ended: impl Send + 'static) {
        match self.0.get_or_init(start) {
            // A send that fails drops the value.
            Some((queue, _)) => drop(queue.send(Box::new(ended))),
            None => drop_contained(Box::new(ended)),
        }
    }

    /// Waits until the values so far are dropped.
    pub(crate) fn wait(&self) {
        let (token, dropped) = channel::<Infallible>();
        self.free(token);
        // An error: the token is dropped.
        let _ = dropped.recv();
    }
}

impl Joined {
    /// Starts the thread. `None`: the system has none.
    pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Option<Self> {
        spawn(name, body).map(|thread| Self(Some(thread)))
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // The thread itself drops the last reference if a value owns the queue.
        if let Some(other) = self.0.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            let _ = other.join();
        }
    }
}

fn start() -> Option<(Sender<Ended>, Joined)> {
    let (queue, ended): (_, Receiver<Ended>) = channel();
    let free = move || ended.into_iter().for_each(drop_contained);
    Joined::spawn("lightfoot-free", free).map(|freeing| (queue, freeing))
}

/// Drops a value. A panic, which the panic hook has reported, ends neither the thread nor the caller: files of the base are code of
/// its file system.
fn drop_contained(ended: Ended) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(ended)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::Arc;

    /// Counts its drop, and then panics.
    struct Counted(Arc<AtomicUsize>);

    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
            panic!("on purpose");
        }
    }

    #[test]
    fn each_value_is_dropped_once_though_drops_panic() {
        let (background, drops) = (Background::default(), Arc::new(AtomicUsize::new(0)));
        for number in 1..=3 {
            background.free(Counted(drops.clone()));
            background.wait();
            assert_eq!(drops.load(SeqCst), number);
        }
        (0..100).for_each(|_| background.free(Counted(drops.clone())));
        // The end drops what is queued.
        drop(background);
        assert_eq!(drops.load(SeqCst), 103);
    }

    #[test]
    fn free_returns_before_the_drop() {
        /// Its drop waits for a message.
        struct Blocked(Receiver<()>);
        impl Drop for Blocked {
            fn drop(&mut self) {
                self.0.recv().unwrap();
            }
        }
        let (background, (go, gate)) = (Background::default(), channel());
        background.free(Blocked(gate));
        go.send(()).unwrap();
        background.wait();
    }

    #[test]
    fn a_value_may_own_the_queue() {
        struct Owner(#[expect(dead_code)] Arc<Background>, #[expect(dead_code)] Sender<Infallible>);
        let background = Arc::new(Background::default());
        let (token, dropped) = channel();
        background.free(Owner(background.clone(), token));
        drop(background);
        assert!(dropped.recv().is_err());
    }
}
