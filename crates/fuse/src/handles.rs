//! Handles: the open files and directories of the kernel, by number.
//!
//! # What it is
//! The reply to an open has a number, which later reads, writes and the release use. The lower half of the number is a slot
//! and a shard, the upper half a generation, which is another one for each number of a shard. So a number that was released
//! never leads to a file that was opened later.
//!
//! # What it is not
//! A count of users: after [`Handles::remove`] the value lives on while requests use it.
//!
//! # How it is locked
//! Sixteen shards with a [`Mutex`] each. A handle is in the shard of the thread that opened it. Values are dropped without a
//! lock.
//!
//! # Limitations
//! The generations of a shard begin again after 2^32 numbers. A shard has at most 2^28 handles at once.

use parking_lot::Mutex;
use prim::cpu;
use prim::shared::Arc;
use slab::Slab;

const SHARD_BITS: u32 = 4;
const SHARDS: usize = 1 << SHARD_BITS;

/// Open handles; see the module's description.
pub(crate) struct Handles<T> {
    shards: Box<[HandleShard<T>]>,
}

/// Two cache lines, since the prefetcher fetches pairs.
#[repr(align(128))]
struct HandleShard<T>(Mutex<Slots<T>>);

struct Slots<T> {
    /// Values, each with the generation of its number.
    slots: Slab<(u32, Arc<T>)>,
    /// The generation of the last number; 0 before the first.
    generation: u32,
}

impl<T> Handles<T> {
    /// Returns an empty table.
    pub(crate) fn new() -> Self {
        let shard = |_| HandleShard(Mutex::new(Slots { slots: Slab::new(), generation: 0 }));
        Self { shards: (0..SHARDS).map(shard).collect() }
    }

    /// Adds `value` and returns its number, which is never 0.
    pub(crate) fn insert(&self, value: T) -> u64 {
        let value = Arc::new(value);
        let at = cpu::id() % SHARDS;
        let mut held = self.shards[at].0.lock();
        held.generation = held.generation.checked_add(1).unwrap_or(1);
        let generation = held.generation;
        let index = held.slots.insert((generation, value)) as u32;
        u64::from(generation) << 32 | u64::from(index << SHARD_BITS) | at as u64
    }

    /// Returns the value of `handle`. `None` if the handle is not open: `EBADF`.
    #[inline]
    pub(crate) fn get(&self, handle: u64) -> Option<Arc<T>> {
        self.shards[shard_of(handle)].0.lock().get(handle).cloned()
    }

    /// Removes `handle` and returns its value. `None` as for [`get`](Self::get).
    pub(crate) fn remove(&self, handle: u64) -> Option<Arc<T>> {
        let mut held = self.shards[shard_of(handle)].0.lock();
        held.get(handle)?;
        held.slots.try_remove(index_of(handle)).map(|(_, value)| value)
    }

    /// Removes all handles and returns their values: at the unmount, for those that the kernel did not release.
    pub(crate) fn drain(&self) -> Vec<Arc<T>> {
        let taken = self.shards.iter().flat_map(|shard| core::mem::take(&mut shard.0.lock().slots));
        taken.map(|(_, (_, value))| value).collect()
    }

    /// Returns whether a handle has a value that `is_so`, which is called under a lock.
    pub(crate) fn any(&self, is_so: impl Fn(&T) -> bool) -> bool {
        self.shards.iter().any(|shard| shard.0.lock().slots.iter().any(|(_, (_, value))| is_so(value)))
    }

    /// Returns the number of handles, shard by shard.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.0.lock().slots.len()).sum()
    }
}

impl<T> Slots<T> {
    /// Returns the value of `handle`, if the generations agree.
    fn get(&self, handle: u64) -> Option<&Arc<T>> {
        let (generation, value) = self.slots.get(index_of(handle))?;
        (u64::from(*generation) == handle >> 32).then_some(value)
    }
}

fn shard_of(handle: u64) -> usize {
    handle as usize & (SHARDS - 1)
}

fn index_of(handle: u64) -> usize {
    (handle as u32 >> SHARD_BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_handle_leads_to_its_value_until_it_is_removed() {
        let handles = Handles::new();
        let (a, b) = (handles.insert('a'), handles.insert('b'));
        assert_eq!((handles.get(a).as_deref(), handles.get(b).as_deref(), handles.len()), (Some(&'a'), Some(&'b'), 2));
        let user = handles.get(a);
        assert_eq!(handles.remove(a).as_deref(), Some(&'a'));
        assert_eq!((handles.get(a), handles.remove(a), handles.len()), (None, None, 1));
        assert_eq!((user.as_deref(), handles.get(b).as_deref()), (Some(&'a'), Some(&'b')));
    }

    #[test]
    fn a_stale_handle_does_not_lead_to_what_was_opened_since() {
        let handles = Handles::new();
        let mut stale = BTreeSet::new();
        for round in 0..1000 {
            let handle = handles.insert(round);
            assert!(handle != 0 && stale.insert(handle), "{handle:#x} was given out before");
            if round < 999 {
                handles.remove(handle);
            }
        }
        assert_eq!(stale.iter().filter_map(|&handle| handles.get(handle)).collect::<Vec<_>>(), [Arc::new(999)]);
        // One slot was used for all.
        assert_eq!(stale.iter().map(|handle| *handle as u32).collect::<BTreeSet<u32>>().len(), 1);
    }

    #[test]
    fn an_unknown_number_has_no_value() {
        let handles = Handles::new();
        let real = handles.insert(());
        for handle in [0, 1, real + (1 << SHARD_BITS), real + (1 << 32), real & 0xFFFF_FFFF, u64::MAX] {
            assert_eq!((handles.get(handle), handles.remove(handle)), (None, None), "{handle:#x}");
        }
        assert_eq!(handles.len(), 1);
    }

    #[test]
    fn draining_ends_every_handle() {
        let handles = Handles::new();
        let open: Vec<u64> = (0..50).map(|value| handles.insert(value)).collect();
        handles.remove(open[7]);
        let left: BTreeSet<i32> = handles.drain().iter().map(|value| **value).collect();
        assert_eq!(left, (0..50).filter(|&value| value != 7).collect());
        assert!(open.iter().all(|&handle| handles.get(handle).is_none()));
        assert_eq!(handles.len(), 0);
        assert!(!open.contains(&handles.insert(0)));
    }

    #[test]
    fn a_value_is_dropped_with_no_lock_held() {
        struct LocksOnDrop(Arc<Handles<LocksOnDrop>>);
        impl Drop for LocksOnDrop {
            fn drop(&mut self) {
                self.0.len();
            }
        }
        let handles = Arc::new(Handles::new());
        let handle = handles.insert(LocksOnDrop(handles.clone()));
        drop(handles.remove(handle));
        handles.insert(LocksOnDrop(handles.clone()));
        drop(handles.drain());
        assert_eq!(handles.len(), 0);
    }

    #[test]
    fn threads_open_and_release_at_once() {
        let handles = Handles::new();
        std::thread::scope(|s| {
            for thread in 0..4 {
                let handles = &handles;
                s.spawn(move || {
                    for _ in 0..10_000 {
                        let handle = handles.insert(thread);
                        assert_eq!(handles.get(handle).as_deref(), Some(&thread));
                        assert_eq!(handles.remove(handle).as_deref(), Some(&thread));
                    }
                });
            }
        });
        assert_eq!(handles.len(), 0);
    }
}
