//! Numbers of uses, by user or by name.

use core::hash::Hash;
use std::collections::HashMap;

/// Takes one from the number of `key`, and forgets the key at zero. Returns whether the key had a number.
pub(crate) fn count_down<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: K) -> bool {
    let Some(count) = counts.get_mut(&key) else { return false };
    *count -= 1;
    if *count == 0 {
        counts.remove(&key);
    }
    true
}
