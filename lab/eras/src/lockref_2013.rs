//! **The lockless count** (Waiman Long, 2013; in another form Linux 3.12): the count is moved by compare-exchange.
//!
//! After the store-free walk one line remained that every thread wrote: the line of the last
//! component or, if the opened files are in one directory, of that directory (`dget_parent` and
//! `dput` in the short workload of AIM7: 80 % of the time in spinlocks on 80 CPUs). It is still
//! written, but no thread waits in a queue for it any more.
//!
//! * [`LocklessCount`]: the count beside the lock is changed whether the lock is held or not. The
//!   published figures are for this form.
//! * [`Lockref2013`]: count and lock are one word, and the count does not change while the lock is
//!   held; the first form of lockref.
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
