//! Options that are common to all eras and set from outside: sizes, and how long the work between
//! two accesses to shared memory takes.
//!
//! The eras' own instructions cost nothing on a simulated machine, which charges accesses to memory only. So each era
//! charges by [`prim::cost`] how long the instructions of the period took, and these are the figures it uses. They are
//! estimates for a machine of about 2.5 GHz, round numbers, the same for every era: an era differs by its locks, not by
//! them. On real hardware they do nothing.

/// Sizes, and nanoseconds of private work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Entries that the tree can hold, the root among them. Where freed entries wait for a grace period there is room for
    /// 32768 more (in a table for fewer than 1024: for as many again). (Lightfoot has no limit.)
    pub capacity: usize,
    /// Whether each name holds a count on its entry, as on ramfs and tmpfs. Without that count, an
    /// unused entry has the count zero and is put on the list of unused entries, as on file systems
    /// with a disk behind them.
    pub is_pinned: bool,
    /// Chains that names are hashed to, rounded up to a power of two. 0: 65536, and one for each entry at least. Few make
    /// names meet that have nothing to do with one another: for tests.
    pub chains: usize,
    /// Lines of the list of mounts.
    pub mounts: usize,
    /// Whether a remount has cleared the flag that gives the mount a count of references for each
    /// CPU. Then the count is one word.
    pub is_remounted: bool,
    /// The size of Lightfoot's table of whole paths, in front of its walk, in KiB; 0: no table. The
    /// other eras do not have such a table.
    pub table_kib: usize,
    /// Finding the end of a component, and its hash: before any lock is taken.
    pub component_ns: u64,
    /// Searching the chain and comparing the name: under the lock that the era searches chains under, if any.
    pub search_ns: u64,
    /// The permission check on the directory of a component.
    pub permission_ns: u64,
    /// The work of `stat` after the walk.
    pub stat_ns: u64,
    /// The work of `open` after the walk, and of `close`: file, descriptor.
    pub open_ns: u64,
    /// Making an inode and an entry, under the directory's lock.
    pub create_ns: u64,
    /// Taking an entry out, under the directory's lock.
    pub unlink_ns: u64,
    /// Copying one component of a reverse path.
    pub path_ns: u64,
    /// Formatting and parsing one line of the list of mounts.
    pub mount_ns: u64,
    /// Mounting or unmounting, under the semaphore of the namespace.
    pub attach_ns: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            capacity: 32_768,
            is_pinned: false,
            chains: 0,
            mounts: 12,
            is_remounted: false,
            table_kib: 0,
            component_ns: 25,
            search_ns: 15,
            permission_ns: 15,
            stat_ns: 150,
            open_ns: 400,
            create_ns: 1_500,
            unlink_ns: 1_200,
            path_ns: 25,
            mount_ns: 400,
            attach_ns: 2_000,
        }
    }
}
