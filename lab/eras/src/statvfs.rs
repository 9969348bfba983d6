//! **`statvfs(3)`** before and after 2010: the mount's flags out of the list of mounts, or from the mount itself.
//!
//! `statfs(2)` did not return a mount's flags, and `statvfs(3)` must; so the C library read `/proc/mounts` until it
//! found the mount. The kernel formats that list line by line, each with a reverse path, under the semaphore of the
//! mount namespace. In dbench, which calls it all the time, that was most of the profile (October 2009). Nick Piggin
//! left it out of the benchmark first, then made `statfs(2)` return the flags (Linux 2.6.36).
//!
//! This is vfs-scale with the change; [`vfs_scale`](crate::vfs_scale) is without.

use crate::vfs_scale::VfsScale;

/// By the mount. See the [module documentation](self).
pub(crate) type ByMount = VfsScale<false>;
