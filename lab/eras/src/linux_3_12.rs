//! **Linux 3.12** (November 2013): the changes of that year that were merged, each in another form
//! than it was posted.
//!
//! * The count changes by compare-exchange in the lock's word, again and again for as long as the
//!   lock is free (Linus Torvalds's lockref), and from any count except the count of an entry that
//!   has ended.
//! * A reverse path climbs without a lock and checks the sequence of moves. Only if something moved it takes
//!   `rename_lock`, alone, but leaves the sequence as it is, so that walks go on (Waiman Long's locking reader). It samples
//!   the root, which it does not count.
//! * The directory's mutex has a queue (since 3.10).
//!
//! # Scalable RCU
//! With another rule than [`AtOnce`] it is the same kernel whose open files are freed after a grace period, by three kinds
//! of RCU. Since 2.6.14 a closed file is freed by RCU, so that descriptors are looked up without a lock; a loop of open and
//! close makes a callback a turn. With one queue and one lock for callbacks and for reports (2002 to 2.6.28) each CPU comes
//! back to that lock in each grace period; with a tree of locks (2.6.29) few do; Lightfoot's has no lock. See
//! `tree/grace.rs`. Counters: grace periods, files freed, and the backlog.

use crate::rcu_walk::GoOn;
use crate::tree::grace::AtOnce;
use crate::tree::lockref::Lockref312;
use crate::tree::mutex::QueuedSpinning;
use crate::tree::renames::SeqExclusive;
use locks::TicketLock;

/// See the [module documentation](self).
pub(crate) type Linux312<G = AtOnce> = GoOn<Lockref312, SeqExclusive<TicketLock>, QueuedSpinning, TicketLock, G, false>;
