//! Calls about the rights and limits of the process and of the calling thread.
//!
//! See [`crate::system`].

use super::{Call, call};
use rustix::fs::{Gid, Uid};
use rustix::io::Errno as HostErrno;
use rustix::process::Resource;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySets};

/// Returns the effective user: `geteuid(2)`, which cannot fail.
pub(crate) fn user() -> Uid {
    rustix::process::geteuid()
}

/// Returns the effective group: `getegid(2)`, which cannot fail.
pub(crate) fn group() -> Gid {
    rustix::process::getegid()
}

/// Returns the supplementary groups: `getgroups(2)`.
pub(crate) fn groups() -> Result<Vec<Gid>, HostErrno> {
    call(Call::Getgroups, rustix::process::getgroups)
}

/// Returns the most descriptors of the process; `None` without a limit: `getrlimit(2)`, which
/// cannot fail.
pub(crate) fn max_descriptors() -> Option<u64> {
    rustix::process::getrlimit(Resource::Nofile).current
}

/// Returns whether the kernel leaves a thread its capabilities when it changes its user
/// (`SECBIT_NO_SETUID_FIXUP`); not, if `prctl(2)` fails.
pub(crate) fn keeps_capabilities() -> bool {
    let bits = rustix::thread::capabilities_secure_bits();
    bits.is_ok_and(|bits| bits.contains(CapabilitiesSecureBits::NO_SETUID_FIXUP))
}

/// A part of the rights of a thread.
#[derive(Clone, Copy)]
pub(crate) enum Right<'a> {
    /// The supplementary groups.
    Groups(&'a [Gid]),
    /// The effective group.
    Group(Gid),
    /// The effective user.
    User(Uid),
    Capabilities(CapabilitySets),
}

impl Right<'_> {
    fn take(self, call_as: Call) -> Result<(), HostErrno> {
        call(call_as, || match self {
            Self::Groups(groups) => rustix::thread::set_thread_groups(groups),
            Self::Group(group) => rustix::thread::set_thread_res_gid(None, group, None),
            Self::User(user) => rustix::thread::set_thread_res_uid(None, user, None),
            Self::Capabilities(sets) => rustix::thread::set_capabilities(None, sets),
        })
    }
}

/// Gives the thread another right: `setgroups(2)`, `setresgid(2)`, `setresuid(2)`, `capset(2)`.
pub(crate) fn switch(to: Right<'_>) -> Result<(), HostErrno> {
    to.take(match to {
        Right::Groups(_) => Call::Setgroups,
        Right::Group(_) => Call::Setgid,
        Right::User(_) => Call::Setuid,
        Right::Capabilities(_) => Call::Capset,
    })
}

/// Gives the thread a right of the process again, by the same calls.
pub(crate) fn switch_back(to: Right<'_>) -> Result<(), HostErrno> {
    to.take(Call::SwitchBack)
}

/// Returns the capabilities of the thread: `capget(2)`.
pub(crate) fn capabilities() -> Result<CapabilitySets, HostErrno> {
    call(Call::Capget, || rustix::thread::capabilities(None))
}
