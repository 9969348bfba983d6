//! Background threads of an instance (the RCU reclaimer). A simulated machine runs them as simulated threads.

#[cfg(loom)]
pub use loom::thread::JoinHandle;
#[cfg(not(loom))]
pub use std::thread::JoinHandle;

/// Starts a named background thread; `None` if the system cannot start one.
#[must_use]
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    #[cfg(not(loom))]
    return std::thread::Builder::new().name(name.into()).spawn(body).ok();
    #[cfg(loom)]
    {
        let _ = name;
        Some(loom::thread::spawn(body))
    }
}

/// Yields the CPU to other threads.
pub fn yield_now() {
    #[cfg(not(loom))]
    std::thread::yield_now();
    #[cfg(loom)]
    loom::thread::yield_now();
}
