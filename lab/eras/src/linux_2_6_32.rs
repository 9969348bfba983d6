//! **Linux 2.6.32** (2009): the start of the vfs-scale patches.
//!
//! The lookup is as in [`dcache_rcu`](crate::dcache_rcu), seven years later: lock and count of each
//! component, `dcache_lock` for each change and each last `dput`, `inode_lock` and `files_lock` for
//! lists that hold everything. Two things are new. Spinlocks are ticket locks (2.6.25): fair, and
//! worse when many threads wait. And mounts have a lock, `vfsmount_lock`: each path that crosses a
//! mount point takes it, and so does each reverse path.
//!
//! `statvfs(3)` finds the mount's flags by reading `/proc/mounts`: one reverse path for each line. In October 2009 that
//! was half of dbench, so the patches were measured with `statfs(2)` in its place; see
//! [`statvfs`](crate::statvfs) for the change that came of it.

use crate::dcache_rcu::LockFreeSearch;
use crate::tree::mount::OneMountLock;
use crate::tree::mutex::Spinning;
use locks::TicketLock;

/// See the [module documentation](self).
pub(crate) type Linux2632 = LockFreeSearch<TicketLock, OneMountLock<TicketLock>, Spinning>;
