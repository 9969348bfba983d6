//! Background threads of an instance (the RCU reclaimer). A simulated machine runs them as simulated threads. And the one value
//! that a thread carries through calls that do not pass it on.

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

/// What a thread carries: of a type that is its owner's matter.
pub type Carried = Box<dyn Any + Send>;

#[cfg(not(loom))]
std::thread_local! {
    static CARRIED: RefCell<Option<Carried>> = const { RefCell::new(None) };
}
#[cfg(loom)]
loom::thread_local! {
    static CARRIED: RefCell<Option<Carried>> = RefCell::new(None);
}

/// Has the calling thread carry `value`; returns what it carried before. A thread that ends carries nothing.
pub fn carry(value: Option<Carried>) -> Option<Carried> {
    CARRIED.try_with(|carried| carried.replace(value)).ok().flatten()
}

/// Calls `look` with what the calling thread carries.
pub fn carried<R>(look: impl FnOnce(Option<&(dyn Any + Send)>) -> R) -> R {
    let mut look = Some(look);
    let mut call = |value: Option<&(dyn Any + Send)>| look.take().map(|look| look(value));
    let found = CARRIED.try_with(|carried| call(carried.borrow().as_deref()));
    let found = found.ok().flatten();
    found.or_else(|| call(None)).expect("called once")
}
