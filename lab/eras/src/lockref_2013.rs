//! **The lockless count** (Waiman Long, 2013; in another form Linux 3.12): the count is moved by compare-exchange.
//!
//! After the store-free walk one line was left that everybody wrote: the last component's, or, where what is opened lies in
//! one directory, that directory's (`dget_parent` and `dput` in the short workload of AIM7: 80 % of the time in
//! spinlocks on 80 CPUs). It is still written, but no thread waits in a queue for it any more.
//!
//! * [`LocklessCount`]: the count beside the lock is moved whether the lock is held or not. The published figures are
//!   those of this form.
//! * [`Lockref2013`]: count and lock are one word, and the count stands still while the lock is held; the first form of
//!   what became lockref.
//!
//! The figures are of Linux 3.10, whose mutexes have a queue; before is [`Linux310`](crate::rcu_walk::Linux310).

use crate::rcu_walk::GoOn;
use crate::tree::lockless::LocklessCount;
use crate::tree::lockref::Lockref2013;
use crate::tree::mutex::QueuedSpinning;
use crate::tree::renames::SeqSpin;
use locks::TicketLock;

/// The walk of 2.6.38 with one of the counts. See the [module documentation](self).
pub(crate) type Lockless<C = LocklessCount<TicketLock>> = GoOn<C, SeqSpin<TicketLock>, QueuedSpinning>;

/// With the count in the lock's word.
pub(crate) type InOneWord = Lockless<Lockref2013>;
