//! Protocol capabilities: which ones are requested from the kernel.

use crate::options::{Checks, MountOptions};
use fusedev::wire::init::{InitFlags, Limits};
use std::time::Duration;

/// The most threads that serve requests: each has a descriptor and a buffer for the longest write.
const MAX_THREADS: usize = 256;

/// With a time to live of attributes from here on, the tree is changed only by this mount, or [`SessionOptions::reports_changes`]
/// is set.
///
/// [`SessionOptions::reports_changes`]: crate::SessionOptions::reports_changes
const REPORTED: Duration = Duration::from_secs(3600);

/// Returns the number of threads that serve requests.
pub(crate) fn threads(options: &MountOptions) -> usize {
    let cpus = std::thread::available_parallelism().map_or(2, usize::from);
    options.threads.unwrap_or(cpus.clamp(2, 8)).clamp(1, MAX_THREADS)
}

/// Returns the capabilities that are requested if the kernel has them, with the reason. No others
/// are requested. `exports`: the session finds files by numbers that the kernel has forgotten.
pub(super) fn wanted(options: &MountOptions, exports: bool) -> InitFlags {
    let session = &options.session;
    // With locks in the tree, a wait for a lock is a request, which may take longer than any
    // timeout.
    let has_locks = session.locks && options.request_timeout.is_none();
    let all = [
        // Parallel reads of one file.
        (true, InitFlags::ASYNC_READ),
        // FUSE_ASYNC_DIO is not requested: with it, a direct write by io_submit(2) completes without dropping the pages that the
        // kernel has read meanwhile, so later reads return old bytes (generic/451 of xfstests).
        // Writes of more than one page.
        (true, InitFlags::BIG_WRITES),
        (true, InitFlags::MAX_PAGES),
        // The umask comes with the request, since a default ACL replaces it.
        (true, InitFlags::DONT_MASK),
        // Parallel lookups and listings of one directory.
        (true, InitFlags::PARALLEL_DIROPS),
        (true, InitFlags::DO_READDIRPLUS),
        (true, InitFlags::READDIRPLUS_AUTO),
        // Bodies of symbolic links never change.
        (true, InitFlags::CACHE_SYMLINKS),
        // The session clears set-id bits on writes, so the kernel does not read `security.capability` before each write.
        (true, InitFlags::HANDLE_KILLPRIV_V2),
        // FUSE_ATOMIC_O_TRUNC is not requested: with it, the kernel sends `O_TRUNC` with OPEN before it checks whether the file is
        // being executed, so an open that fails with ETXTBSY has emptied the running program.
        (session.no_open, InitFlags::NO_OPEN_SUPPORT),
        // The kernel then caches every listing until the directory changes.
        (session.no_open && !session.ttls.entry.is_zero(), InitFlags::NO_OPENDIR_SUPPORT),
        // File handles, where a number leads to its file after FORGET. Elsewhere a handle of name_to_handle_at(2) would fail with
        // ESTALE once the kernel has dropped the file from its cache, so the kernel gives none: EOPNOTSUPP.
        (exports, InitFlags::EXPORT_SUPPORT),
        (!exports, InitFlags::NO_EXPORT_SUPPORT),
        // The kernel drops cached pages when times or size change. If only this mount changes files, that would drop the pages
        // that the kernel has just written.
        (
            session.reports_changes || (session.ttls.attr < REPORTED && !session.kernel_cache),
            InitFlags::AUTO_INVAL_DATA,
        ),
        // The directory's group comes with requests that make files, so that a caller's groups need not be looked for in `/proc`.
        (session.checks == Checks::Kernel, InitFlags::CREATE_SUPP_GROUP),
        // Labels of security modules come with requests that make files, and are stored with them.
        (session.labels, InitFlags::SECURITY_CTX),
        // Notices of names then only expire them.
        (true, InitFlags::HAS_EXPIRE_ONLY),
        (session.acl && session.checks == Checks::Kernel, InitFlags::POSIX_ACL),
        (session.writeback, InitFlags::WRITEBACK_CACHE),
        (has_locks, InitFlags::POSIX_LOCKS),
        // Without opens the kernel does not report the end of the open file that has such a lock.
        (has_locks && !session.no_open, InitFlags::FLOCK_LOCKS),
        (options.request_timeout.is_some(), InitFlags::REQUEST_TIMEOUT),
        (session.idmap, InitFlags::ALLOW_IDMAP),
        (session.passthrough, InitFlags::PASSTHROUGH),
    ];
    all.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, flag)| flag).collect()
}

/// Returns the limits of the protocol.
pub(super) fn limits(options: &MountOptions) -> Limits {
    let MountOptions { max_write, max_background, .. } = *options;
    Limits { max_write, max_background, max_stack_depth: 1, request_timeout: options.request_timeout.unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_threads_has_bounds() {
        for (given, used) in [(0, 1), (1, 1), (7, 7), (256, 256), (257, 256), (usize::MAX, 256)] {
            assert_eq!(threads(&MountOptions { threads: Some(given), ..MountOptions::default() }), used, "{given}");
        }
    }
}
