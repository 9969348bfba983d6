//! The errors that each call can return, and the resulting errors of a caller of the tree.
//!
//! From the manual pages of the calls.

use super::runs::Answer;
use super::script::NO_REFLINKS;
use crate::system::Call;
use rustix::io::Errno as HostErrno;

/// Returns the errors of a call that are tried, from its manual page.
pub(super) fn errors(call: Call) -> &'static [HostErrno] {
    macro_rules! all {
        ($($name:ident)*) => { &[$(HostErrno::$name),*] };
    }
    match call {
        Call::AddWatch => all![NOSPC NOMEM NOENT ACCESS],
        Call::InotifyInit | Call::Eventfd => all![MFILE NFILE NOMEM],
        Call::Capget | Call::Capset | Call::Setgid | Call::Setgroups => all![PERM NOMEM],
        Call::Setuid => all![PERM AGAIN NOMEM],
        Call::Getgroups => all![NOMEM],
        Call::Chmod | Call::Chown | Call::Utimens => all![PERM ACCESS ROFS IO NOMEM INTR STALE DQUOT],
        Call::Clone => all![OPNOTSUPP NOTTY NOSYS NOSPC DQUOT INVAL XDEV TXTBSY PERM IO INTR],
        Call::Close => all![IO NOSPC DQUOT INTR STALE],
        Call::Copy => all![NOSPC DQUOT FBIG IO INTR NOMEM XDEV INVAL NOSYS OPNOTSUPP PERM],
        Call::Dup => all![MFILE NFILE NOMEM],
        Call::Fallocate => all![NOSPC DQUOT FBIG IO INTR OPNOTSUPP PERM TXTBSY],
        Call::Fdatasync | Call::Fsync => all![IO NOSPC DQUOT INTR ROFS INVAL],
        Call::Setfl => all![PERM],
        Call::Getflags => all![IO NOTTY OPNOTSUPP NOMEM INTR],
        Call::Setflags => all![PERM ROFS IO NOTTY OPNOTSUPP INTR],
        Call::Fstatfs => all![IO NOMEM INTR OVERFLOW NOSYS],
        Call::Ftruncate => all![PERM FBIG IO INTR TXTBSY NOSPC ROFS],
        Call::Getdents => all![NOENT IO INTR NOMEM STALE ACCESS],
        Call::Getxattr => all![IO ACCESS NOMEM INTR RANGE NODATA STALE TOOBIG],
        Call::Link => all![EXIST MLINK NOSPC DQUOT PERM ACCESS XDEV ROFS IO INTR],
        Call::Listxattr => all![IO NOMEM INTR RANGE OPNOTSUPP STALE],
        Call::Lseek => all![IO NXIO INVAL INTR OVERFLOW],
        Call::Make => all![EXIST NOSPC DQUOT ACCESS PERM ROFS MFILE NFILE NOMEM IO INTR AGAIN OPNOTSUPP],
        Call::Mkdir | Call::Mknod | Call::Symlink => all![EXIST NOSPC DQUOT MLINK ACCESS PERM ROFS NOMEM IO INTR],
        Call::Open => all![ACCESS PERM IO NOMEM NOENT NOTDIR LOOP XDEV MFILE NFILE NXIO NODEV TXTBSY ROFS OVERFLOW
            STALE INTR AGAIN BUSY],
        Call::ProbeOpenat2 => all![NOSYS PERM NOMEM MFILE],
        Call::ProbeHandles => all![OPNOTSUPP PERM NOSYS NOMEM INTR],
        Call::NameToHandle => all![OPNOTSUPP PERM NOMEM INTR STALE],
        Call::OpenByHandle => all![STALE PERM NOMEM IO MFILE NFILE INTR],
        Call::ProbeAcls => all![OPNOTSUPP NODATA IO INTR],
        Call::Pread => all![IO INTR NOMEM STALE INVAL OVERFLOW],
        Call::Pwrite => all![NOSPC DQUOT FBIG IO INTR PERM NOMEM STALE ROFS],
        Call::ReadUmask => all![NOENT MFILE NOMEM INTR],
        Call::Readlink => all![ACCESS INVAL IO NOENT NOMEM INTR STALE],
        Call::Realpath => all![ACCESS NOENT NOTDIR LOOP IO INTR],
        Call::Removexattr => all![NODATA PERM ACCESS ROFS NOSPC IO INTR],
        Call::Rename => all![ACCESS PERM BUSY EXIST INVAL NOSPC DQUOT MLINK NOENT NOTEMPTY ROFS XDEV IO INTR],
        Call::Setxattr => all![NOSPC DQUOT PERM ACCESS ROFS OPNOTSUPP RANGE IO INTR],
        // Its own test: the thread keeps the rights of another user.
        Call::SwitchBack => &[],
        Call::Statx => all![ACCESS NOENT NOTDIR NAMETOOLONG LOOP NOMEM IO STALE INTR OVERFLOW],
        Call::Unlink => all![ACCESS PERM BUSY NOENT NOTEMPTY ROFS IO NOMEM INTR],
    }
}

/// Returns whether an operation may answer so if a call fails; otherwise it answers `as_ever`.
/// `reads_acls`: a lookup reads ACLs. `goes_on`: see [`super::script::GOES_ON`].
pub(super) fn is_expected(
    call: Call,
    error: HostErrno,
    (answer, as_ever): (&Answer, &Answer),
    (reads_acls, goes_on): (bool, bool),
) -> bool {
    type E = HostErrno;
    let is = |error: HostErrno| *answer == Err(error.raw_os_error());
    let is_none = answer == as_ever;
    match (call, error) {
        // Where the host refuses the rights of the caller, the change is refused.
        (Call::Setuid | Call::Setgid | Call::Setgroups | Call::Capget | Call::Capset, _) => is(E::PERM),
        // Interrupted changes of names are not repeated; see `system.rs`.
        (
            Call::Make
            | Call::Mkdir
            | Call::Mknod
            | Call::Symlink
            | Call::Link
            | Call::Unlink
            | Call::Rename
            | Call::Setxattr
            | Call::Removexattr,
            E::INTR,
        ) => is(E::INTR),
        (_, E::INTR) => is_none,
        // Data are written without another descriptor.
        (Call::Dup, E::MFILE | E::NFILE) => is_none,
        // Descriptors are closed, and the open is repeated; so it is after a rename at the same moment.
        (Call::Open | Call::Make, E::MFILE | E::NFILE) => is_none,
        (Call::Open | Call::Make, E::AGAIN) => is_none || is(error),
        // The file is not where it was. A walk that did not end yet finds it again.
        (Call::Open, E::NOENT | E::NOTDIR | E::LOOP | E::XDEV) => is(error) || is(E::STALE) || is_none,
        (Call::Statx, E::NOENT) => is(error) || is(E::STALE) || is_none,
        // An operation on a path looks it up again. If the operation had made a name before, the name exists then.
        (Call::Open | Call::Statx | Call::Chmod, E::STALE) => is(E::STALE) || is_none || is(E::EXIST),
        (Call::Chown | Call::Utimens | Call::Listxattr | Call::Readlink, E::STALE) => is(E::STALE) || is_none,
        // Not a symbolic link any more.
        (Call::Readlink, E::INVAL) => is(E::STALE) || is_none,
        // Another program was faster: the name is looked up, and opened.
        (Call::Make, E::EXIST) => is(E::EXIST) || is_none,
        // Written through a descriptor that cannot read.
        (Call::Open | Call::Statx, E::ACCESS) => is(E::ACCESS) || is_none,
        // A larger buffer is tried.
        (Call::Getxattr | Call::Listxattr, E::RANGE) => is_none,
        // Where an access ACL cannot be read, the group has no permission; a default ACL counts as none.
        (Call::Getxattr, _) => is(error) || is_none || reads_acls && is(E::ACCESS),
        (Call::Open | Call::Statx, _) if reads_acls => is(error) || is_none,
        (Call::Open | Call::Statx, _) if goes_on => is(error) || is_none,
        // Read and written.
        (Call::Copy, E::XDEV | E::INVAL | E::NOSYS | E::OPNOTSUPP) => is_none,
        (Call::Clone, E::NOTTY | E::NOSYS | E::OPNOTSUPP) => answer.as_deref() == Ok(NO_REFLINKS),
        // A hole and its storage.
        (Call::Fallocate, E::OPNOTSUPP) => is(error) || is_none,
        // The caches are refreshed at intervals instead.
        (Call::AddWatch, _) => is_none,
        // The umask counts as 0: the bits that it removed are not restored.
        (Call::ReadUmask, _) => is_none,
        _ => is(error),
    }
}
