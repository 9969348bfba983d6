//! Mounts: which file system is seen where.
//!
//! # What it is
//! A [`Mount`] shows a directory (or a file) of a superblock at a place of another mount. The tree of mounts is owned from its
//! root down: a [`Namespace`] owns its root mount, a mount those that are mounted on it. A walk crosses a mount point by the
//! parent's table of children and goes back by the child's attachment; both are replaced whole under RCU, so it takes no
//! count. What is held counts on its mount, by a counter for each CPU index ([`sync::PerCpuArc`]).
//!
//! # What it is not
//! Shared: there is no propagation between namespaces (`mount_namespaces(7)`); all mounts are private.
//!
//! # How it is locked
//! `Tree::mounts` orders changes; who changes what is mounted where is in a write section of `Tree::mount_seq`. The flag
//! `MOUNTED` of a dentry is set under the lock of its parent directory, so that a name that is about to go is not mounted on.
//!
//! # Where it comes from
//! Linux's `struct mount`, `fs/namespace.c`, `mount(8)`.

mod attach;
mod change;
mod list;
mod namespace;
mod pivot;

pub use list::{Holder, MountInfo, StatVfs};
pub(crate) use namespace::Namespace;

use crate::dentry::Dentry;
use crate::flag_set::flag_set;
use crate::slot::Pinned;
use crate::superblock::SuperBlock;
use prim::PerCpu;
use prim::atomic::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::shared::Arc;
use std::collections::BTreeMap;
use sync::rcu::{RcuOption, ReadGuard};
use sync::{PerCpuArc, PerCpuOwner, PerCpuRef, PerCpuRwLock};

/// Flags of a mount, by the numbers of `mount(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MountFlags(u32);

flag_set!(MountFlags);

impl MountFlags {
    /// Nothing is changed through this mount: `EROFS`.
    pub const RDONLY: Self = Self(1);
    /// Set-id bits mean nothing. (Programs are run by who embeds the tree: it is told, not enforced.)
    pub const NOSUID: Self = Self(2);
    /// Devices are not opened: `EACCES`.
    pub const NODEV: Self = Self(4);
    /// Nothing is executed: `access` for `X_OK` of a file is `EACCES`.
    pub const NOEXEC: Self = Self(8);
    /// Symbolic links are not followed: `ELOOP`.
    pub const NOSYMFOLLOW: Self = Self(256);
    /// Accesses are not recorded.
    pub const NOATIME: Self = Self(1024);
    /// Listings of directories are not recorded.
    pub const NODIRATIME: Self = Self(2048);
    /// Every access is recorded, not by relatime.
    pub const STRICTATIME: Self = Self(1 << 24);

    /// All that there are.
    const ALL: u32 = 1 | 2 | 4 | 8 | 256 | 1024 | 2048 | 1 << 24;

    /// Flags out of Linux's numbers; `None` for others than these.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits & !Self::ALL == 0 { Some(Self(bits)) } else { None }
    }
}

/// How something is unmounted, by the numbers of `umount2(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnmountFlags(u32);

flag_set!(UnmountFlags);

impl UnmountFlags {
    /// Take it away now, with what is mounted on it; what is open stays usable: `MNT_DETACH`.
    pub const DETACH: Self = Self(2);
    /// Do not follow a symbolic link: `UMOUNT_NOFOLLOW`.
    pub const NOFOLLOW: Self = Self(8);
}

/// A mount as its parent owns it.
pub(crate) type Owned = Arc<PerCpuOwner<Mount>>;

/// A mount as a walk sees it.
pub(crate) type MountRef<'g> = PerCpuRef<'g, Mount>;

/// See the [module documentation](self).
pub(crate) struct Mount {
    pub(crate) sb: Arc<SuperBlock>,
    /// The superblock's number, where `stat(2)` looks for it.
    pub(crate) dev: u64,
    flags: AtomicU32,
    id: u64,
    /// Emptied by drop alone.
    root: Option<Pinned>,
    attached: RcuOption<Attachment>,
    children: RcuOption<Children>,
    /// The namespace that it is seen in; 0: none any more.
    namespace: AtomicU64,
    /// Readers: who begins or ends writing. The writer: who makes it read-only.
    write_gate: PerCpuRwLock<()>,
    /// Files open for writing: only the sum means something.
    writers: PerCpu<Writers>,
}

/// Files opened less files closed for writing, by the owner of one CPU index.
#[derive(Default)]
#[repr(align(128))]
struct Writers(AtomicI64);

/// Where a mount is mounted. The count on the mount point is given back with this.
pub(crate) struct Attachment {
    pub(crate) parent: PerCpuArc<Mount>,
    pub(crate) mountpoint: Option<Pinned>,
}

impl Attachment {
    pub(crate) fn mountpoint(&self) -> &Dentry {
        self.mountpoint.as_ref().expect("emptied by drop alone").get()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if let Some(mountpoint) = self.mountpoint.take() {
            self.parent.sb.unpin(mountpoint);
        }
    }
}

/// The mounts on one mount: address of the mount point, and what is mounted there; in the order of addresses.
#[derive(Clone, Default)]
struct Children(Vec<(usize, Owned)>);

/// How many mounts there are on each dentry that has any.
#[derive(Default)]
pub(crate) struct Mountpoints {
    on: BTreeMap<usize, u32>,
}

/// The address by which tables know a dentry.
fn address(dentry: &Dentry) -> usize {
    core::ptr::from_ref(dentry) as usize
}

impl Mount {
    /// A mount of `sb` that shows `root` and below, and is nowhere yet.
    pub(crate) fn new(sb: Arc<SuperBlock>, root: Pinned, flags: MountFlags) -> Owned {
        let domain = &sb.domain;
        let (attached, children) = (RcuOption::none(domain), RcuOption::none(domain));
        let (dev, id) = (sb.dev, sb.next_number());
        sb.mounted.fetch_add(1, Relaxed);
        Arc::new(PerCpuOwner::new(Self {
            sb,
            dev,
            flags: AtomicU32::new(flags.0),
            id,
            root: Some(root),
            attached,
            children,
            namespace: AtomicU64::new(0),
            write_gate: PerCpuRwLock::new(()),
            writers: PerCpu::new(Writers::default),
        }))
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The place that it shows first.
    pub(crate) fn root(&self) -> &Dentry {
        self.root.as_ref().expect("emptied by drop alone").get()
    }

    pub(crate) fn flags(&self) -> MountFlags {
        // Relaxed: a flag by itself; who needs to know that no writer is left takes `write_gate`.
        MountFlags(self.flags.load(Relaxed))
    }

    pub(crate) fn has(&self, flag: MountFlags) -> bool {
        self.flags().has(flag)
    }

    /// The mount on `mountpoint` of this mount.
    pub(crate) fn child_rcu<'g>(&'g self, guard: &'g ReadGuard<'_>, mountpoint: &Dentry) -> Option<MountRef<'g>> {
        let children = &self.children.load(guard)?.0;
        let at = children.binary_search_by_key(&address(mountpoint), |child| child.0).ok()?;
        Some(children[at].1.borrow())
    }

    /// Where it is mounted.
    pub(crate) fn attachment<'g>(&'g self, guard: &'g ReadGuard<'_>) -> Option<&'g Attachment> {
        self.attached.load(guard)
    }

    /// The namespace that it is seen in.
    pub(crate) fn namespace(&self) -> u64 {
        // ORDERING: Acquire, pairs with the Release of `set_namespace`.
        self.namespace.load(Acquire)
    }

    fn set_namespace(&self, id: u64) {
        // ORDERING: Release, pairs with the Acquire of `namespace`.
        self.namespace.store(id, Release);
    }

    /// Refuses what would change something through a read-only mount.
    ///
    /// # Errors
    /// `EROFS`.
    pub(crate) fn check_writable(&self) -> Result<(), crate::Errno> {
        if self.has(MountFlags::RDONLY) { Err(crate::Errno::EROFS) } else { Ok(()) }
    }

    /// Counts a file that is opened for writing.
    ///
    /// # Errors
    /// `EROFS`.
    pub(crate) fn begin_writing(&self) -> Result<(), crate::Errno> {
        let _gate = self.write_gate.read();
        self.check_writable()?;
        self.count_writer(1);
        Ok(())
    }

    /// Counts the end of what [`Mount::begin_writing`] counted.
    pub(crate) fn end_writing(&self) {
        let _gate = self.write_gate.read();
        self.count_writer(-1);
    }

    fn count_writer(&self, by: i64) {
        let own = &self.writers.this().0;
        // Relaxed: a counter with one writer, read by who has `write_gate` for itself.
        own.store(own.load(Relaxed) + by, Relaxed);
    }

    /// Replaces the flags.
    ///
    /// # Errors
    /// `EBUSY`: it would be read-only and files are open for writing.
    fn set_flags(&self, flags: MountFlags) -> Result<(), crate::Errno> {
        let _gate = self.write_gate.write();
        let writers: i64 = self.writers.iter().map(|own| own.0.load(Relaxed)).sum();
        if flags.has(MountFlags::RDONLY) && writers != 0 {
            return Err(crate::Errno::EBUSY);
        }
        self.flags.store(flags.0, Relaxed);
        Ok(())
    }

    /// What is mounted on it, at this moment.
    fn children(&self, guard: &ReadGuard<'_>) -> Vec<Owned> {
        let children = self.children.load(guard);
        children.map_or_else(Vec::new, |children| children.0.iter().map(|child| child.1.clone()).collect())
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(root) = self.root.take() {
            self.sb.unpin(root);
            self.sb.mounted.fetch_sub(1, Relaxed);
        }
    }
}

impl core::fmt::Debug for Mount {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Mount").field("id", &self.id).finish_non_exhaustive()
    }
}
