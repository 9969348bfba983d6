//! Background threads: simulated threads in a simulation, the system's outside.

use crate::engine::current;

/// A thread that was started.
#[derive(Debug)]
pub struct JoinHandle<T> {
    thread: Started<T>,
}

#[derive(Debug)]
enum Started<T> {
    Simulated(u32, std::sync::Arc<std::sync::Mutex<Option<T>>>),
    Host(prim::thread::JoinHandle<T>),
}

impl<T> JoinHandle<T> {
    /// Waits until the thread has ended.
    ///
    /// # Errors
    /// With the payload of its panic; never in a simulation, which a panic ends.
    ///
    /// # Panics
    /// If a simulated thread is joined outside of its simulation.
    pub fn join(self) -> std::thread::Result<T> {
        match self.thread {
            Started::Simulated(thread, result) => {
                let engine = current().expect("a simulated thread is joined in its simulation");
                engine.join(thread);
                let result = result.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
                result.ok_or_else(|| Box::new("the simulated thread has not ended") as Box<dyn core::any::Any + Send>)
            }
            Started::Host(handle) => handle.join(),
        }
    }

    /// Returns whether the thread has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        match &self.thread {
            Started::Simulated(thread, _) => current().is_none_or(|engine| engine.is_done(*thread)),
            Started::Host(handle) => handle.is_finished(),
        }
    }
}

/// Starts a named background thread. `None`: the system has no room for one.
#[must_use]
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let thread = match current() {
        Some(engine) => {
            let result = std::sync::Arc::new(std::sync::Mutex::new(None));
            let slot = std::sync::Arc::clone(&result);
            let body = move || {
                body();
                *slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(());
            };
            Started::Simulated(engine.spawn(name, body)?, result)
        }
        None => Started::Host(prim::thread::spawn(name, body)?),
    };
    Some(JoinHandle { thread })
}

/// Offers the CPU to other threads.
pub fn yield_now() {
    match current() {
        Some(engine) => engine.yield_now(),
        None => prim::thread::yield_now(),
    }
}

pub use prim::thread::Carried;

/// Makes the calling thread carry `value`; returns the value that it carried before.
pub fn carry(value: Option<Carried>) -> Option<Carried> {
    match current() {
        Some(engine) => engine.task().carried.replace(value),
        None => prim::thread::carry(value),
    }
}

/// Returns a copy of the value that the calling thread carries, if it is a `T`.
#[must_use]
pub fn carried<T: Clone + 'static>() -> Option<T> {
    match current() {
        Some(engine) => engine.task().carried.borrow().as_deref()?.downcast_ref().cloned(),
        None => prim::thread::carried(),
    }
}
