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
use crate::rcu_walk::{GoOn, Linux310};
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
    /// Its name on the command line.
    pub name: &'static str,
    /// The year of the publication.
    pub year: u32,
    /// What it does to shared memory, in a line.
    pub summary: &'static str,
    /// Makes one with its own tree, which is empty but for the root.
    pub make: fn(&Options) -> Box<dyn Era>,
}

/// Every generation there is, in the order in which they came; variants behind what they vary.
#[must_use]
pub fn catalogue() -> &'static [EraEntry] {
    CATALOGUE
}

/// The generation of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static EraEntry> {
    CATALOGUE.iter().find(|entry| entry.name == name)
}

const CATALOGUE: &[EraEntry] = &[
    EraEntry { name: "big-lock", year: 1996, summary: "one lock around every operation", make: make::<BigLock> },
    EraEntry {
        name: "dcache-lock",
        year: 2001,
        summary: "dcache_lock for each component (Linux 2.4)",
        make: make::<OneLock<PerComponent>>,
    },
    EraEntry {
        name: "fastwalk",
        year: 2002,
        summary: "dcache_lock once, held across the walk",
        make: make::<OneLock<Fastwalk>>,
    },
    EraEntry {
        name: "dcache-rcu",
        year: 2002,
        summary: "chains searched without a lock; lock and count of each component",
        make: make::<OneLock<DcacheRcu>>,
    },
    EraEntry {
        name: "linux-2.6.32",
        year: 2009,
        summary: "the same with ticket locks and a mount lock; dcache_lock for changes and last puts",
        make: make::<OneLock<Linux2632>>,
    },
    EraEntry {
        name: "vfs-scale",
        year: 2009,
        summary: "fine-grained locks; lock and count of each component",
        make: make::<FineLocks<VfsScale>>,
    },
    EraEntry {
        name: "statvfs-mount",
        year: 2010,
        summary: "vfs-scale; statvfs reads the mount",
        make: make::<FineLocks<ByMount>>,
    },
    EraEntry {
        name: "store-free-2009",
        year: 2009,
        summary: "store-free walk as posted in October 2009: `..`, create and unlink walk with locks",
        make: make::<FineLocks<StoreFree2009>>,
    },
    EraEntry {
        name: "outer-sequence",
        year: 2009,
        summary: "the same with one sample of rename_lock around the walk, and no sequence in the entry",
        make: make::<FineLocks<OuterSequence>>,
    },
    EraEntry {
        name: "rcu-walk",
        year: 2011,
        summary: "store-free walk that goes on with counts on trouble (Linux 2.6.38)",
        make: make::<FineLocks<GoOn>>,
    },
    EraEntry {
        name: "rcu-walk-mcs",
        year: 2011,
        summary: "rcu-walk with MCS locks: count under the lock, fair queue",
        make: make::<FineLocks<GoOn<McsLock>>>,
    },
    EraEntry {
        name: "rcu-walk-queued",
        year: 2011,
        summary: "rcu-walk with queued spinlocks",
        make: make::<FineLocks<GoOn<QueuedLock>>>,
    },
    EraEntry {
        name: "patch-2013-1",
        year: 2013,
        summary: "rcu-walk with counts that move by compare-exchange (January 2013, patches 1 and 2)",
        make: make::<FineLocks<Patch1>>,
    },
    EraEntry {
        name: "patch-2013-3",
        year: 2013,
        summary: "the same, and reverse paths share rename_lock (patch 3)",
        make: make::<FineLocks<Patch3>>,
    },
    EraEntry {
        name: "patch-2013-4",
        year: 2013,
        summary: "the same, and reverse paths take no entry's lock (patch 4)",
        make: make::<FineLocks<Patch4>>,
    },
    EraEntry {
        name: "linux-3.10",
        year: 2013,
        summary: "rcu-walk, and a queue in front of the directory's mutex",
        make: make::<FineLocks<Linux310>>,
    },
    EraEntry {
        name: "lockref-2013",
        year: 2013,
        summary: "linux-3.10 with a count that is moved by compare-exchange, two tries, then the lock",
        make: make::<FineLocks<Lockless>>,
    },
    EraEntry {
        name: "lockref-2013-word",
        year: 2013,
        summary: "the same with count and lock in one word: no try while the lock is held",
        make: make::<FineLocks<InOneWord>>,
    },
    EraEntry {
        name: "linux-3.12",
        year: 2013,
        summary: "lockref that tries while its lock is free; reverse paths without a lock",
        make: make::<FineLocks<Linux312>>,
    },
    EraEntry {
        name: "rcu-classic",
        year: 2002,
        summary: "linux-3.12 with files freed by RCU: one queue of callbacks, one lock",
        make: make::<FineLocks<Linux312<Classic>>>,
    },
    EraEntry {
        name: "rcu-tree",
        year: 2008,
        summary: "the same, with a tree of locks (Linux 2.6.29)",
        make: make::<FineLocks<Linux312<Hierarchical>>>,
    },
    EraEntry {
        name: "rcu-ours",
        year: 2026,
        summary: "the same, with Lightfoot's RCU",
        make: make::<FineLocks<Linux312<Ours>>>,
    },
    EraEntry {
        name: "rwsem-2017",
        year: 2017,
        summary: "a file's semaphore whose readers always queue on the slow path",
        make: make::<FineLocks<Semaphores<AlwaysQueue>>>,
    },
    EraEntry {
        name: "rwsem-2018",
        year: 2018,
        summary: "the same with the readers' early exit",
        make: make::<FineLocks<Semaphores<EarlyExit>>>,
    },
    EraEntry { name: "lightfoot", year: 2026, summary: "Lightfoot: vfs and ramfs", make: Lightfoot::make },
];

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
