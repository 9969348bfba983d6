//! Background threads of an instance (the RCU reclaimer). A simulated machine runs them as simulated threads. Also one value that a
//! thread carries for code further down its stack, through functions that do not pass it on.

use core::any::Any;
use core::cell::RefCell;

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

/// The value that a thread carries. The code that sets it chooses the type.
pub type Carried = Box<dyn Any + Send>;

#[cfg(not(loom))]
std::thread_local! {
    static CARRIED: RefCell<Option<Carried>> = const { RefCell::new(None) };
}
#[cfg(loom)]
loom::thread_local! {
    static CARRIED: RefCell<Option<Carried>> = RefCell::new(None);
}

/// Makes the calling thread carry `value`; returns the value that it carried before. A thread that
/// ends carries nothing.
pub fn carry(value: Option<Carried>) -> Option<Carried> {
    CARRIED.try_with(|carried| carried.replace(value)).ok().flatten()
}

/// Returns a copy of the value that the calling thread carries, if it is a `T`.
#[must_use]
pub fn carried<T: Clone + 'static>() -> Option<T> {
    CARRIED.try_with(|carried| carried.borrow().as_deref()?.downcast_ref().cloned()).ok().flatten()
}
