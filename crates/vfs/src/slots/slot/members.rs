//! Values that take part in something for their lifetime, and can be visited meanwhile.
//!
//! The invariants are in [slots](super).

use core::ptr::NonNull;
use std::collections::BTreeMap;
use sync::Mutex;

/// References to values in the order of their keys. A visit and a removal exclude each other.
pub(crate) struct Members<T: ?Sized>(Mutex<BTreeMap<u64, Member<T>>>);

struct Member<T: ?Sized>(NonNull<T>);

// SAFETY: it is used as a `&T`.
unsafe impl<T: ?Sized + Sync> Send for Member<T> {}

impl<T: ?Sized + Sync> Members<T> {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Adds a value, which removes itself in its drop.
    pub(crate) fn add(&self, key: u64, value: &T) {
        self.0.lock().insert(key, Member(NonNull::from(value)));
    }

    /// Removes a value, if it was added, and waits for the visit in progress.
    pub(crate) fn remove(&self, key: u64) {
        self.0.lock().remove(&key);
    }

    /// Calls `f` with each value, the first with a key of at least `from` first, until `f` returns something. `f` must not add or
    /// remove one.
    pub(crate) fn visit<R>(&self, from: u64, mut f: impl FnMut(u64, &T) -> Option<R>) -> Option<R> {
        let members = self.0.lock();
        // SAFETY: invariant 6: its drop waits for the lock before anything of the value ends.
        let mut call = |(key, member): (&u64, &Member<T>)| f(*key, unsafe { member.0.as_ref() });
        members.range(from..).find_map(&mut call).or_else(|| members.range(..from).find_map(call))
    }
}
