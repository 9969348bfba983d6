//! Room 7, `mount`: the mounts that connect file systems to one tree, and contexts.
//!
//! # What is in it
//! Here: [`Mount`]. [`attach`]: changes of the tree of mounts; [`mounted_on`]: the mounts on a mount; [`namespace`]: trees of mounts; [`place`]:
//! places, held and uncounted; [`context`]: the state of a context; [`reverse_path`]: from a place to its
//! path; [`statvfs`].
//!
//! Imports `base`, `notify`, `record_lock`, `slots`, `fs`, `cache`, `layers`.
//!
//! # What it is
//! A [`Mount`] shows a directory (or a file) of a superblock at a place of another mount. The tree of mounts
//! is owned from its root down: a [`Namespace`](namespace::Namespace) owns its root mount, a mount owns the
//! mounts on it. A walk crosses a mount point by the parent's map of children and returns by the child's
//! attachment. Both are replaced whole under RCU, so the walk takes no count. A held place keeps a reference
//! on its mount, in a per-CPU counter ([`sync::PerCpuArc`]).
//!
//! # What it is not
//! Shared mounts: there is no propagation between namespaces (`mount_namespaces(7)`); all mounts are private.
//!
//! # How it is locked
//! `Tree::mounts` orders changes of the tree of mounts; each change is a write section of `Tree::mount_seq`.
//! `Mount::ending` is the lock of an unmount: the count of the mount's users is closed and summed up under it, before the
//! other lock is taken. A walk that meets a mount whose count is closed waits for that lock.
//! The flag `MOUNTED` of a dentry is set under the lock of its parent directory, so that a name that is being
//! removed cannot become a mount point.
//!
//! # Where it comes from
//! Linux's `struct mount`, `fs/namespace.c`, `mount(8)`.

pub(crate) mod attach;
pub(crate) mod context;
mod mounted_on;
pub(crate) mod namespace;
pub(crate) mod place;
pub(crate) mod reverse_path;
pub(crate) mod statvfs;

use crate::base::errno::Errno;
use crate::base::flags::MountFlags;
use crate::base::rank::{Locked, Rank};
use crate::cache::superblock::SuperBlock;
use crate::mount::mounted_on::Children;
use crate::slots::dentry::Dentry;
use crate::slots::slot::DentryRef;
use crate::slots::whole_path::Kind;
use prim::PerCpu;
use prim::atomic::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::shared::{Arc, PlainArc};
use sync::rcu::{RcuOption, ReadGuard};
use sync::{Mutex, OnceBox, PerCpuArc, PerCpuOwner, PerCpuRef, PerCpuRwLock};

/// A mount, owned by its parent.
pub(crate) type Owned = Arc<PerCpuOwner<Mount>>;

/// A mount, borrowed by a walk.
pub(crate) type MountRef<'g> = PerCpuRef<'g, Mount>;

/// See the [module documentation](self).
pub(crate) struct Mount {
    pub(crate) sb: PlainArc<SuperBlock>,
    /// The superblock's `st_dev`, in the line that `stat(2)` reads.
    pub(crate) dev: u64,
    flags: AtomicU32,
    pub(crate) id: u64,
    /// A random number: a part of the signatures of paths that may cross mount points.
    pub(crate) secret: u128,
    /// Emptied by drop alone.
    root: Option<DentryRef>,
    attached: RcuOption<Attachment>,
    /// By the addresses of their mount points; none instead of an empty map.
    children: RcuOption<Children<Owned>>,
    /// The namespace of the mount; 0: none any more.
    namespace: AtomicU64,
    /// Locked while a thread tries to unmount it: from before the seal of its count to the detachment, or the end of the seal.
    ending: Mutex<()>,
    /// Files open for writing: only the sum is meaningful. Made with the first. Readers of the lock: threads that begin or end
    /// writing. The writer: a thread that makes the mount read-only.
    writers: OnceBox<PerCpuRwLock<PerCpu<Writers>>>,
}

/// Files opened for writing minus files closed, by the owner of one CPU index.
#[derive(Default)]
#[repr(align(128))]
struct Writers(AtomicI64);

impl Writers {
    fn count(&self, by: i64) {
        // Relaxed: a counter with one writer, read under the exclusive lock.
        self.0.store(self.0.load(Relaxed) + by, Relaxed);
    }
}

/// The place of a mount, with a count on the mount point.
pub(crate) struct Attachment {
    pub(crate) parent: PerCpuArc<Mount>,
    pub(crate) mountpoint: Option<DentryRef>,
}

impl Attachment {
    pub(crate) fn mountpoint(&self) -> &Dentry {
        self.mountpoint.as_ref().expect("emptied by drop alone").get(self.parent.sb.slots())
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if let Some(mountpoint) = self.mountpoint.take() {
            self.parent.sb.unpin(mountpoint);
        }
    }
}

/// Returns the address of a dentry as a key of tables.
fn address(dentry: &Dentry) -> usize {
    core::ptr::from_ref(dentry) as usize
}

impl Mount {
    /// Returns a mount of `sb` that shows `root` and below, not attached yet.
    pub(crate) fn new(sb: PlainArc<SuperBlock>, root: DentryRef, flags: MountFlags) -> Owned {
        let domain = &sb.domain;
        let (attached, children) = (RcuOption::none(domain), RcuOption::none(domain));
        let secret = u128::from(prim::seed::random_u64()) << 64 | u128::from(prim::seed::random_u64());
        sb.mounted.fetch_add(1, Relaxed);
        let mount = Self {
            dev: sb.slots().dev,
            flags: AtomicU32::new(flags.bits()),
            id: sb.next_number(),
            secret,
            root: Some(root),
            attached,
            children,
            namespace: AtomicU64::new(0),
            ending: Mutex::new(()),
            writers: OnceBox::none(),
            sb,
        };
        // The first file system of a tree has the number 1; of others there may be thousands.
        let is_small = mount.dev > 1;
        Arc::new(PerCpuOwner::new(mount, is_small))
    }

    /// Returns another mount of the same root, not attached yet.
    pub(crate) fn copy(&self) -> Owned {
        Self::new(self.sb.clone(), self.sb.pin_again(self.root()), self.flags())
    }

    /// Of memory, roughly: its counters of each CPU.
    pub(crate) const BYTES: usize = 32 << 10;

    /// Returns the root dentry of the mount.
    pub(crate) fn root(&self) -> &Dentry {
        self.root.as_ref().expect("emptied by drop alone").get(self.sb.slots())
    }

    pub(crate) fn flags(&self) -> MountFlags {
        // Relaxed: a flag by itself; a thread that must exclude writers locks `writers`.
        MountFlags::from_bits_retain(self.flags.load(Relaxed))
    }

    pub(crate) fn has(&self, flag: MountFlags) -> bool {
        self.flags().contains(flag)
    }

    /// Returns the mount on `mountpoint` of this mount.
    pub(crate) fn child_rcu<'g>(&'g self, guard: &'g ReadGuard<'_>, mountpoint: &Dentry) -> Option<MountRef<'g>> {
        Some(self.child_owned(guard, mountpoint)?.borrow())
    }

    /// As `child`, but as this mount owns it.
    pub(crate) fn child_owned<'g>(&'g self, guard: &'g ReadGuard<'_>, mountpoint: &Dentry) -> Option<&'g Owned> {
        self.children.load(guard)?.get(address(mountpoint))
    }

    /// Returns the mount on the mount point with this address.
    pub(crate) fn child_at_rcu<'g>(&'g self, guard: &'g ReadGuard<'_>, mountpoint: usize) -> Option<MountRef<'g>> {
        Some(self.children.load(guard)?.get(mountpoint)?.borrow())
    }

    /// Returns this mount as its parent owns it. `None`: the mount is not attached or, without the
    /// mounts' lock, is being moved.
    pub(crate) fn owned(&self) -> Option<Owned> {
        let guard = self.sb.domain.read();
        let attachment = self.attachment(&guard)?;
        let own = attachment.parent.child_owned(&guard, attachment.mountpoint())?;
        core::ptr::eq(&raw const ***own, self).then(|| own.clone())
    }

    /// Takes the lock of the mount's end; waits for an unmount that is under way.
    pub(crate) fn lock_ending(&self) -> Locked<'_> {
        self.sb.tree().ranks.lock(Rank::Ending, &self.ending)
    }

    /// Returns the place of the mount.
    pub(crate) fn attachment<'g>(&'g self, guard: &'g ReadGuard<'_>) -> Option<&'g Attachment> {
        self.attached.load(guard)
    }

    pub(crate) fn namespace(&self) -> u64 {
        // ORDERING: Acquire, pairs with the Release of `set_namespace`.
        self.namespace.load(Acquire)
    }

    pub(crate) fn set_namespace(&self, id: u64) {
        // ORDERING: Release, pairs with the Acquire of `namespace`.
        let before = self.namespace.swap(id, Release);
        self.sb.count_shown(i32::from(id != 0) - i32::from(before != 0));
    }

    /// Checks that the mount is not read-only.
    ///
    /// # Errors
    /// `EROFS`.
    pub(crate) fn check_writable(&self) -> Result<(), Errno> {
        if self.has(MountFlags::RDONLY) { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// Counts a file that is opened for writing.
    ///
    /// # Errors
    /// `EROFS`.
    pub(crate) fn begin_writing(&self) -> Result<(), Errno> {
        let writers = self.writers().read();
        self.check_writable()?;
        writers.this().count(1);
        Ok(())
    }

    /// Ends the write that [`Mount::begin_writing`] began.
    pub(crate) fn end_writing(&self) {
        self.writers().read().this().count(-1);
    }

    fn writers(&self) -> &PerCpuRwLock<PerCpu<Writers>> {
        self.writers.get_or_make(|| PerCpuRwLock::new(PerCpu::sized(Writers::default, true)))
    }

    /// Replaces the flags.
    ///
    /// # Errors
    /// `EBUSY`: it would become read-only while files are open for writing.
    pub(crate) fn set_flags(&self, flags: MountFlags) -> Result<(), Errno> {
        let writers = self.writers().write();
        let writing: i64 = writers.iter().map(|own| own.0.load(Relaxed)).sum();
        if flags.contains(MountFlags::RDONLY) && writing != 0 {
            return Err(Errno::EBUSY);
        }
        // Lists do not notice that links are no longer followed.
        let _change = flags.contains(MountFlags::NOSYMFOLLOW).then(|| self.sb.paths.change(Kind::Hard));
        self.flags.store(flags.bits(), Relaxed);
        Ok(())
    }

    /// Returns the mounts on it, at this moment.
    pub(crate) fn children(&self, guard: &ReadGuard<'_>) -> Vec<Owned> {
        self.children.load(guard).map_or_else(Vec::new, Children::values)
    }

    pub(crate) fn has_children(&self, guard: &ReadGuard<'_>) -> bool {
        self.children.load(guard).is_some()
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
