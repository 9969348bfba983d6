//! Mount options and protocol capabilities: which ones are requested from the kernel.

use crate::options::{Checks, MountOptions};
use fuser::{Config, InitFlags, KernelConfig, MountOption, SessionACL};
use std::time::Duration;

/// Maximal number of background requests (readahead, writeback) that the kernel has under way.
const MAX_BACKGROUND: u16 = 64;

/// The most threads that serve requests: each has a descriptor and a buffer of 16 MiB of addresses.
const MAX_THREADS: usize = 256;

/// With a time to live of attributes from here on, the tree is changed only by this mount, or [`SessionOptions::reports_changes`]
/// is set.
///
/// [`SessionOptions::reports_changes`]: crate::SessionOptions::reports_changes
const REPORTED: Duration = Duration::from_secs(3600);

/// The options for `fuser`: to mount by the helper, and to serve.
pub(crate) fn mount_config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    // `MountOption::Subtype` would reach only `fusermount3`, and a mount by root would not have the subtype.
    let subtype = MountOption::CUSTOM("subtype=lightfoot".into());
    let mut mount = vec![MountOption::FSName(options.name.clone()), subtype];
    let switches = [
        (options.read_only, MountOption::RO),
        (options.nosuid, MountOption::NoSuid),
        (options.nodev, MountOption::NoDev),
        (options.noexec, MountOption::NoExec),
        (options.nosymfollow, MountOption::CUSTOM("nosymfollow".into())),
        (options.noatime, MountOption::NoAtime),
        (options.session.checks == Checks::Kernel, MountOption::DefaultPermissions),
    ];
    mount.extend(switches.into_iter().filter(|(is_on, _)| *is_on).map(|(_, option)| option));
    config.mount_options = mount;
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(threads(options));
    config.clone_fd = options.clone_fd;
    config
}

/// The number of threads that serve requests.
pub(crate) fn threads(options: &MountOptions) -> usize {
    let cpus = std::thread::available_parallelism().map_or(2, usize::from);
    options.threads.unwrap_or(cpus.clamp(2, 8)).clamp(1, MAX_THREADS)
}

/// The capabilities that are requested if the kernel has them, with the reason. No others are requested.
fn wanted(options: &MountOptions) -> Vec<InitFlags> {
    let session = &options.session;
    let all = [
        // Parallel reads of one file.
        (true, InitFlags::FUSE_ASYNC_READ),
        (true, InitFlags::FUSE_ASYNC_DIO),
        // Writes of more than one page.
        (true, InitFlags::FUSE_BIG_WRITES),
        (true, InitFlags::FUSE_MAX_PAGES),
        // The umask comes with the request, since a default ACL replaces it.
        (true, InitFlags::FUSE_DONT_MASK),
        // Parallel lookups and listings of one directory.
        (true, InitFlags::FUSE_PARALLEL_DIROPS),
        (true, InitFlags::FUSE_DO_READDIRPLUS),
        (true, InitFlags::FUSE_READDIRPLUS_AUTO),
        // Bodies of symbolic links never change.
        (true, InitFlags::FUSE_CACHE_SYMLINKS),
        // The session clears set-id bits on writes, so the kernel does not read `security.capability` before each write.
        (true, InitFlags::FUSE_HANDLE_KILLPRIV_V2),
        // FUSE_ATOMIC_O_TRUNC is not requested: with it, the kernel sends `O_TRUNC` with OPEN before it checks whether the file is
        // being executed, so an open that fails with ETXTBSY has emptied the running program.
        (session.no_open, InitFlags::FUSE_NO_OPEN_SUPPORT),
        // Node numbers end with FORGET, so a handle of name_to_handle_at(2) would fail with ESTALE once the kernel has dropped the
        // file from its cache. With this, the kernel gives no handles: EOPNOTSUPP.
        (true, InitFlags::FUSE_NO_EXPORT_SUPPORT),
        // The kernel drops cached pages when times or size change. If only this mount changes files, that would drop the pages
        // that the kernel has just written.
        (session.ttls.attr < REPORTED || session.reports_changes, InitFlags::FUSE_AUTO_INVAL_DATA),
        // Notices of names then only expire them.
        (true, InitFlags::FUSE_HAS_EXPIRE_ONLY),
        (session.acl && session.checks == Checks::Kernel, InitFlags::FUSE_POSIX_ACL),
        (session.writeback, InitFlags::FUSE_WRITEBACK_CACHE),
        // FUSE_FLOCK_LOCKS is not requested: locks of `flock(2)` and `fcntl(2)` are of different families, but arrive alike.
        (session.locks, InitFlags::FUSE_POSIX_LOCKS),
        (session.passthrough, InitFlags::FUSE_PASSTHROUGH),
    ];
    all.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, flag)| flag).collect()
}

/// Requests the capabilities and sets the limits.
pub(super) fn configure(config: &mut KernelConfig, options: &MountOptions) {
    for flag in wanted(options) {
        if let Err(missing) = config.add_capabilities(flag) {
            tracing::debug!(?missing, "the kernel does not have a capability");
        }
    }
    // An error has the nearest possible value.
    if let Err(possible) = config.set_max_write(options.max_write) {
        let _ = config.set_max_write(possible);
    }
    let _ = config.set_max_background(MAX_BACKGROUND);
    if options.session.passthrough {
        let _ = config.set_max_stack_depth(1);
    }
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
