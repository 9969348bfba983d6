//! **The outer sequence** (linux-kernel, 7 October 2009): the alternative to a sequence in each entry, which was discussed
//! beside the store-free walk and not built.
//!
//! The walk samples `rename_lock` once, before it begins, and checks after each step that nothing moved since. An entry
//! needs no sequence. A move first makes the length of the name zero, so that no search takes parts of two names for a name.
//! The removal of a name is not a move: it shows under the lock of the last component.
//!
//! All else is [`store_free_2009`](crate::store_free_2009)'s, so that the two differ in their sequences only.
//!
//! The cost: each move anywhere sends each walk under way back to the beginning, with locks.

use crate::store_free_2009::StoreFree2009;

/// See the [module documentation](self).
pub(crate) type OuterSequence = StoreFree2009<true>;
