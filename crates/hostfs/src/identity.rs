//! Which file it is: nodes, inode numbers and attributes from `statx(2)`.
//!
//! # What it is
//! The node by which the VFS identifies a file is a keyed hash of its device, inode number, type and time of birth. So a
//! number that the host reuses for another file gives another node, and the record of a file that was dropped gets the
//! same node when the file is found again.
//!
//! # What it is not
//! Proof, where the host keeps no time of birth. On such a host a number that is reused for a file
//! of the same type during the life of a record passes for the same file, unless a descriptor holds
//! the first file.
//!
//! # Where it comes from
//! `statx(2)`: `STATX_BTIME`. NFS servers' file handles have a generation for the same reason.

use rustix::fs::{Statx, StatxFlags, StatxTimestamp};
use vfs::{Attr, S_IFDIR, S_IFMT};

/// The number of successive nodes that files with the same hash may have.
const NEIGHBOURS: u64 = 4;

/// The fields that are requested from `statx(2)`.
pub(crate) const STATX_MASK: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// How nodes are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identities {
    key: u64,
    /// The source's device.
    pub(crate) dev: u64,
    /// Whether a file keeps its time of birth. (overlayfs changes it when it copies a file up.)
    pub(crate) has_btime: bool,
}

impl Identities {
    pub(crate) fn new(key: u64, root: &Statx, has_btime: bool) -> Self {
        Self { key, dev: dev_of(root), has_btime }
    }

    /// Returns the node of a file, if no other file has it already.
    pub(crate) fn node(&self, stat: &Statx) -> u64 {
        let born = birth(stat).filter(|_| self.has_btime).unwrap_or(0);
        let kind = u64::from(stat.stx_mode) & u64::from(S_IFMT);
        let mut hash = fold(self.key ^ stat.stx_ino, 0x9E37_79B9_7F4A_7C15);
        hash = fold(hash ^ born as u64, 0xBF58_476D_1CE4_E5B9);
        hash = fold(hash ^ dev_of(stat) << 16 ^ kind, self.key | 1);
        hash.max(1)
    }

    /// Returns whether `stat` belongs to the file with this node and inode number.
    pub(crate) fn is(&self, stat: &Statx, node: u64, ino: u64) -> bool {
        stat.stx_ino == ino && node.wrapping_sub(self.node(stat)) < NEIGHBOURS
    }

    /// Returns an inode number that no file of another device has.
    pub(crate) fn shown_ino(&self, dev: u64, ino: u64) -> u64 {
        if dev == self.dev {
            return ino;
        }
        // Only the upper half changes: the numbers of one device stay distinct, and most file systems' are small.
        ino ^ fold(dev ^ self.dev, 0x94D0_49BB_1331_11EB) << 32
    }

    /// Returns the attributes in `stat`.
    pub(crate) fn attr(&self, stat: &Statx) -> Attr {
        Attr {
            ino: self.shown_ino(dev_of(stat), stat.stx_ino),
            mode: stat.stx_mode.into(),
            nlink: stat.stx_nlink,
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            // Linux has 12 bits of major and 20 bits of minor number.
            rdev: rustix::fs::makedev(stat.stx_rdev_major, stat.stx_rdev_minor) as u32,
            size: stat.stx_size,
            blocks: stat.stx_blocks,
            atime: ns(&stat.stx_atime),
            mtime: ns(&stat.stx_mtime),
            ctime: time_of_change(stat),
        }
    }
}

/// Returns the time of birth of a file, if the host keeps it.
pub(crate) fn birth(stat: &Statx) -> Option<i64> {
    (stat.stx_mask & StatxFlags::BTIME.bits() != 0).then(|| ns(&stat.stx_btime))
}

/// Returns the time of the last change of a file, of its contents or attributes.
pub(crate) fn time_of_change(stat: &Statx) -> i64 {
    ns(&stat.stx_ctime)
}

/// Returns whether the attributes are of a directory.
pub(crate) fn is_dir(stat: &Statx) -> bool {
    u32::from(stat.stx_mode) & S_IFMT == S_IFDIR
}

/// Returns the device of a file.
pub(crate) fn dev_of(stat: &Statx) -> u64 {
    rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor)
}

fn ns(time: &StatxTimestamp) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec.into())
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}
