//! Every generation, by name.

use crate::big_lock::BigLock;
use crate::dcache_lock::PerComponent;
use crate::dcache_rcu::DcacheRcu;
use crate::era::Era;
use crate::fastwalk::Fastwalk;
use crate::lightfoot::Lightfoot;
use crate::linux_2_6_32::Linux2632;
use crate::linux_3_12::Linux312;
use crate::lockref_2013::{InOneWord, Lockless};
use crate::options::Options;
use crate::outer_sequence::OuterSequence;
use crate::patches_2013::{Patch1, Patch3, Patch4};
use crate::rcu_walk::{Linux310, Linux2638};
use crate::rwsem::Semaphores;
use crate::statvfs::ByMount;
use crate::store_free_2009::StoreFree2009;
use crate::tree::fine_locks::FineLocks;
use crate::tree::grace::{Classic, Hierarchical, Ours};
use crate::tree::one_lock::OneLock;
use crate::tree::operations::make;
use crate::vfs_scale::VfsScale;
use locks::{McsLock, QueuedLock};
use sync::{AlwaysQueue, EarlyExit};

/// A generation that can be selected by name.
pub struct EraEntry {
    /// The generation's name on the command line.
    pub name: &'static str,
    /// The year of the publication.
    pub year: u32,
    /// The generation's effect on shared memory, in a line.
    pub summary: &'static str,
    /// Makes an era with its own tree, which is empty but for the root.
    pub make: fn(&Options) -> Box<dyn Era>,
}

/// Returns every generation, in the order of time. Variants follow their original.
#[must_use]
pub fn catalogue() -> &'static [EraEntry] {
    CATALOGUE
}

/// Returns the generation of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static EraEntry> {
    CATALOGUE.iter().find(|entry| entry.name == name)
}

const CATALOGUE: &[EraEntry] = &[
    era("big-lock", 1996, "one lock around every operation", make::<BigLock>),
    era("dcache-lock", 2001, "dcache_lock for each component (Linux 2.4)", make::<OneLock<PerComponent>>),
    era("fastwalk", 2002, "dcache_lock once, held across the walk", make::<OneLock<Fastwalk>>),
    era(
        "dcache-rcu",
        2002,
        "chains searched without a lock; lock and count of each component",
        make::<OneLock<DcacheRcu>>,
    ),
    era(
        "linux-2.6.32",
        2009,
        "the same with ticket locks and a mount lock; dcache_lock for changes and last puts",
        make::<OneLock<Linux2632>>,
    ),
    era("vfs-scale", 2009, "fine-grained locks; lock and count of each component", make::<FineLocks<VfsScale>>),
    era("statvfs-mount", 2010, "vfs-scale; statvfs reads the mount", make::<FineLocks<ByMount>>),
    era(
        "store-free-2009",
        2009,
        "store-free walk as posted in October 2009: `..`, create and unlink walk with locks",
        make::<FineLocks<StoreFree2009>>,
    ),
    era(
        "outer-sequence",
        2009,
        "the same with one sample of rename_lock around the walk, and no sequence in the entry",
        make::<FineLocks<OuterSequence>>,
    ),
    era(
        "rcu-walk",
        2011,
        "store-free walk that goes on with counts on trouble (Linux 2.6.38)",
        make::<FineLocks<Linux2638>>,
    ),
    era(
        "rcu-walk-mcs",
        2011,
        "rcu-walk with MCS locks: count under the lock, fair queue",
        make::<FineLocks<Linux2638<McsLock>>>,
    ),
    era("rcu-walk-queued", 2011, "rcu-walk with queued spinlocks", make::<FineLocks<Linux2638<QueuedLock>>>),
    era(
        "patch-2013-1",
        2013,
        "rcu-walk with counts that move by compare-exchange (January 2013, patches 1 and 2)",
        make::<FineLocks<Patch1>>,
    ),
    era("patch-2013-3", 2013, "the same, and reverse paths share rename_lock (patch 3)", make::<FineLocks<Patch3>>),
    era("patch-2013-4", 2013, "the same, and reverse paths take no entry's lock (patch 4)", make::<FineLocks<Patch4>>),
    era("linux-3.10", 2013, "rcu-walk, and a queue in front of the directory's mutex", make::<FineLocks<Linux310>>),
    era(
        "lockref-2013",
        2013,
        "linux-3.10 with a count that is moved by compare-exchange, two tries, then the lock",
        make::<FineLocks<Lockless>>,
    ),
    era(
        "lockref-2013-word",
        2013,
        "the same with count and lock in one word: no try while the lock is held",
        make::<FineLocks<InOneWord>>,
    ),
    era(
        "linux-3.12",
        2013,
        "lockref that tries while its lock is free; reverse paths without a lock",
        make::<FineLocks<Linux312>>,
    ),
    era(
        "rcu-classic",
        2002,
        "linux-3.12 with files freed by RCU: one queue of callbacks, one lock",
        make::<FineLocks<Linux312<Classic>>>,
    ),
    era("rcu-tree", 2008, "the same, with a tree of locks (Linux 2.6.29)", make::<FineLocks<Linux312<Hierarchical>>>),
    era("rcu-ours", 2026, "the same, with Lightfoot's RCU", make::<FineLocks<Linux312<Ours>>>),
    era(
        "rwsem-2017",
        2017,
        "a file's semaphore whose readers always queue on the slow path",
        make::<FineLocks<Semaphores<AlwaysQueue>>>,
    ),
    era("rwsem-2018", 2018, "the same with the readers' early exit", make::<FineLocks<Semaphores<EarlyExit>>>),
    era("lightfoot", 2026, "Lightfoot: vfs and ramfs", Lightfoot::make),
];

const fn era(name: &'static str, year: u32, summary: &'static str, make: fn(&Options) -> Box<dyn Era>) -> EraEntry {
    EraEntry { name, year, summary, make }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_found_and_there_once() {
        for entry in catalogue() {
            assert_eq!(catalogue().iter().filter(|other| other.name == entry.name).count(), 1, "{}", entry.name);
            assert!(find(entry.name).is_some_and(|found| found.summary == entry.summary));
        }
        assert!(find("2.6").is_none());
    }
}
