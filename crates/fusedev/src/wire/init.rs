//! INIT: the first request of a connection, which negotiates the capabilities of both sides.
//!
//! # Where it comes from
//! `process_init_reply` in Linux's `fs/fuse/inode.c`.

use super::abi::{InitIn, InitOut, MAJOR, MINOR};
use core::cmp;

/// The oldest minor version of a kernel that is served: Linux 3.15, whose INIT has a reply of today's length.
pub const OLDEST_MINOR: u32 = 23;

/// The longest write, in bytes: the most that fits into the number of pages that Linux allows at
/// most.
pub const MAX_WRITE: u32 = 16 << 20;

bitflags::bitflags! {
    /// Capabilities of kernel and server: flags of INIT, without those that nobody here requests.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct InitFlags: u64 {
        /// Several reads of a file at once.
        const ASYNC_READ = 1;
        /// Locks of `fcntl(2)` are requests.
        const POSIX_LOCKS = 1 << 1;
        /// File handles: names `.` and `..` are looked up, the former by a number that the kernel has forgotten.
        const EXPORT_SUPPORT = 1 << 4;
        /// Writes of more than a page.
        const BIG_WRITES = 1 << 5;
        /// The umask comes with the request.
        const DONT_MASK = 1 << 6;
        /// Locks of `flock(2)` are requests.
        const FLOCK_LOCKS = 1 << 10;
        /// The kernel drops pages when it finds another size or time.
        const AUTO_INVAL_DATA = 1 << 12;
        /// Listings with attributes.
        const DO_READDIRPLUS = 1 << 13;
        /// Listings have attributes only where a program uses the attributes.
        const READDIRPLUS_AUTO = 1 << 14;
        /// The kernel collects writes.
        const WRITEBACK_CACHE = 1 << 16;
        /// OPEN may be refused for good: ENOSYS.
        const NO_OPEN_SUPPORT = 1 << 17;
        /// Several lookups and listings of a directory at once.
        const PARALLEL_DIROPS = 1 << 18;
        /// The kernel obeys ACLs.
        const POSIX_ACL = 1 << 20;
        /// `max_pages` of the reply counts.
        const MAX_PAGES = 1 << 22;
        /// Bodies of symbolic links are cached.
        const CACHE_SYMLINKS = 1 << 23;
        /// OPENDIR may be refused for good: ENOSYS.
        const NO_OPENDIR_SUPPORT = 1 << 24;
        /// The server clears set-id bits.
        const HANDLE_KILLPRIV_V2 = 1 << 28;
        /// The upper half of the flags counts.
        const INIT_EXT = 1 << 30;
        /// A request that makes a file has the labels of security modules.
        const SECURITY_CTX = 1 << 32;
        /// A request that makes a file names the directory's group, if that is a supplementary one of the caller.
        const CREATE_SUPP_GROUP = 1 << 34;
        /// A notice may only expire a name.
        const HAS_EXPIRE_ONLY = 1 << 35;
        /// The kernel reads and writes backing files.
        const PASSTHROUGH = 1 << 37;
        /// No file handles.
        const NO_EXPORT_SUPPORT = 1 << 38;
        /// Mounts may have mappings of users and groups. Only requests that create a file then name a user.
        const ALLOW_IDMAP = 1 << 40;
        /// Requests may come through io_uring.
        const OVER_IO_URING = 1 << 41;
        /// The kernel ends the connection when a request has no reply for long.
        const REQUEST_TIMEOUT = 1 << 42;
    }
}

/// The limits that the server sets.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest write, in bytes; cut to [`MAX_WRITE`].
    pub max_write: u32,
    /// Requests under way that no program waits for (readahead, writeback).
    pub max_background: u16,
    /// File systems that may be below a backing file, 1 or 2. Only with [`InitFlags::PASSTHROUGH`].
    pub max_stack_depth: u32,
    /// For how many seconds a request may have no reply. Only with [`InitFlags::REQUEST_TIMEOUT`].
    pub request_timeout: u16,
}

/// Returns the capabilities of the kernel that sent `asked`.
#[must_use]
pub fn offered(asked: &InitIn) -> InitFlags {
    let low = InitFlags::from_bits_retain(asked.flags.into());
    let high = if low.contains(InitFlags::INIT_EXT) { u64::from(asked.flags2) << 32 } else { 0 };
    InitFlags::from_bits_retain(low.bits() | high)
}

/// Returns the capabilities that both sides use after the reply `out`.
#[must_use]
pub fn taken(out: &InitOut) -> InitFlags {
    InitFlags::from_bits_retain(u64::from(out.flags) | u64::from(out.flags2) << 32)
}

/// Returns the reply with those capabilities of `wanted` that the kernel supports.
#[must_use]
pub fn reply(asked: &InitIn, wanted: InitFlags, limits: Limits) -> InitOut {
    let flags = (wanted | InitFlags::INIT_EXT) & offered(asked);
    let max_write = limits.max_write.clamp(1, MAX_WRITE);
    let page = u32::try_from(rustix::param::page_size()).unwrap_or(4096);
    let pages = cmp::max(max_write, asked.max_readahead).div_ceil(page);
    let request_timeout = if flags.contains(InitFlags::REQUEST_TIMEOUT) { limits.request_timeout } else { 0 };
    let depth = if flags.contains(InitFlags::PASSTHROUGH) { limits.max_stack_depth } else { 0 };
    InitOut {
        max_readahead: asked.max_readahead,
        flags: flags.bits() as u32,
        flags2: (flags.bits() >> 32) as u32,
        max_background: limits.max_background,
        // From so many on, the kernel counts the file system as busy: three quarters, its own default.
        congestion_threshold: limits.max_background / 4 * 3,
        max_write,
        // Times are exact to the nanosecond.
        time_gran: 1,
        max_pages: u16::try_from(pages).unwrap_or(u16::MAX),
        max_stack_depth: depth,
        request_timeout,
        ..version()
    }
}

/// Returns the reply to a kernel of another major version. The reply has our version, after which
/// the kernel sends INIT again.
#[must_use]
pub fn version() -> InitOut {
    InitOut { major: MAJOR, minor: MINOR, ..InitOut::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { max_write: 1 << 20, max_background: 64, max_stack_depth: 1, request_timeout: 30 };

    #[test]
    fn only_what_the_kernel_offers_is_taken() {
        let both = InitFlags::PASSTHROUGH | InitFlags::REQUEST_TIMEOUT;
        let wanted = InitFlags::BIG_WRITES | InitFlags::HAS_EXPIRE_ONLY | both;
        let flags2 = (both.bits() >> 32) as u32;
        let old = InitIn { flags: InitFlags::BIG_WRITES.bits() as u32, flags2, ..InitIn::default() };
        let out = reply(&old, wanted, LIMITS);
        assert_eq!((out.flags, out.flags2, out.max_stack_depth, out.request_timeout), (old.flags, 0, 0, 0));
        let new = InitIn { flags: old.flags | InitFlags::INIT_EXT.bits() as u32, ..old };
        let out = reply(&new, wanted, LIMITS);
        assert_eq!((out.flags, out.flags2, out.max_stack_depth, out.request_timeout), (new.flags, flags2, 1, 30));
    }

    #[test]
    fn the_limits_of_writes_are_those_of_the_protocol() {
        let page = u32::try_from(rustix::param::page_size()).unwrap();
        for (max_write, readahead, got, pages) in [
            (0, 0, 1, 1),
            (page, 0, page, 1),
            (page + 1, 0, page + 1, 2),
            (1, 8 * page, 1, 8),
            (u32::MAX, 0, MAX_WRITE, MAX_WRITE / page),
            (1, u32::MAX, 1, u32::from(u16::MAX)),
        ] {
            let asked = InitIn { max_readahead: readahead, ..InitIn::default() };
            let out = reply(&asked, InitFlags::empty(), Limits { max_write, ..LIMITS });
            assert_eq!((out.max_write, u32::from(out.max_pages)), (got, pages), "{max_write}, {readahead}");
        }
    }
}
