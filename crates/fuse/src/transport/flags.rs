//! What is asked of the kernel: mount options, and the capabilities of the protocol that are used, one by one.

use crate::options::{Checks, MountOptions};
use fuser::{Config, InitFlags, KernelConfig, MountOption, SessionACL};
use std::time::Duration;

/// Requests that the kernel sends ahead of need at most.
const MAX_BACKGROUND: u16 = 64;

/// Attributes that are good for as long as this are of a tree that nobody changes behind the kernel, or that tells of changes.
const TOLD: Duration = Duration::from_secs(3600);

/// How `fuser` is to mount by the helper, and to serve.
pub(crate) fn mount_config(options: &MountOptions) -> Config {
    let mut config = Config::default();
    // By `MountOption::Subtype` it would be for `fusermount3` alone, and a mount of root's would have no type of its own.
    let subtype = MountOption::CUSTOM("subtype=lightfoot".into());
    let mut mount = vec![MountOption::FSName(options.name.clone()), subtype];
    let switches = [
        (options.read_only, MountOption::RO),
        (options.nosuid, MountOption::NoSuid),
        (options.nodev, MountOption::NoDev),
        (options.noexec, MountOption::NoExec),
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

/// Threads that answer.
pub(crate) fn threads(options: &MountOptions) -> usize {
    let cpus = std::thread::available_parallelism().map_or(2, usize::from);
    options.threads.unwrap_or(cpus.clamp(2, 8)).max(1)
}

/// Capabilities that are used where the kernel has them, with the reason. No other is ever asked for.
fn wanted(options: &MountOptions) -> Vec<InitFlags> {
    let session = &options.session;
    let all = [
        // Reads of one file side by side.
        (true, InitFlags::FUSE_ASYNC_READ),
        (true, InitFlags::FUSE_ASYNC_DIO),
        // Writes of more than a page.
        (true, InitFlags::FUSE_BIG_WRITES),
        (true, InitFlags::FUSE_MAX_PAGES),
        // The umask comes with the request: a default ACL takes its place.
        (true, InitFlags::FUSE_DONT_MASK),
        // Lookups and listings of one directory side by side.
        (true, InitFlags::FUSE_PARALLEL_DIROPS),
        (true, InitFlags::FUSE_DO_READDIRPLUS),
        (true, InitFlags::FUSE_READDIRPLUS_AUTO),
        // Bodies of symbolic links do not change.
        (true, InitFlags::FUSE_CACHE_SYMLINKS),
        // We drop set-id bits on writes ourselves, so the kernel need not look at `security.capability` before each.
        (true, InitFlags::FUSE_HANDLE_KILLPRIV_V2),
        // `O_TRUNC` comes with the open; not if opens do not come.
        (!session.no_open, InitFlags::FUSE_ATOMIC_O_TRUNC),
        (session.no_open, InitFlags::FUSE_NO_OPEN_SUPPORT),
        // Contents are dropped when times or size changed behind the kernel. Where nothing changes, or the kernel is told, that would
        // drop what it has just written itself.
        (session.ttls.attr < TOLD, InitFlags::FUSE_AUTO_INVAL_DATA),
        (options.acl && session.checks == Checks::Kernel, InitFlags::FUSE_POSIX_ACL),
        (session.writeback, InitFlags::FUSE_WRITEBACK_CACHE),
        (session.locks, InitFlags::FUSE_POSIX_LOCKS),
        (session.locks, InitFlags::FUSE_FLOCK_LOCKS),
        (session.passthrough, InitFlags::FUSE_PASSTHROUGH),
    ];
    all.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, flag)| flag).collect()
}

/// Tells the kernel what is used.
pub(super) fn configure(config: &mut KernelConfig, options: &MountOptions) {
    for flag in wanted(options) {
        if let Err(missing) = config.add_capabilities(flag) {
            tracing::debug!(?missing, "the kernel has no such capability");
        }
    }
    // Refused values come back as the nearest that is possible.
    if let Err(possible) = config.set_max_write(options.max_write) {
        let _ = config.set_max_write(possible);
    }
    let _ = config.set_max_background(MAX_BACKGROUND);
    if options.session.passthrough {
        let _ = config.set_max_stack_depth(1);
    }
}
