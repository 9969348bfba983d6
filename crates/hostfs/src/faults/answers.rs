//! The errors that each call can return, and what a caller of the tree gets for them.
//!
//! From the manual pages of the calls.

use super::runs::Answer;
use super::script::NO_REFLINKS;
use crate::system::Call;
use rustix::io::Errno as HostErrno;

/// The errors of a call that are tried, from its manual page.
#[allow(clippy::too_many_lines, reason = "a table")]
pub(super) fn errors(call: Call) -> &'static [HostErrno] {
    type E = HostErrno;
    match call {
        Call::AddWatch => &[E::NOSPC, E::NOMEM, E::NOENT, E::ACCESS],
        Call::InotifyInit | Call::Eventfd => &[E::MFILE, E::NFILE, E::NOMEM],
        Call::Capget | Call::Capset | Call::Setgid | Call::Setgroups => &[E::PERM, E::NOMEM],
        Call::Setuid => &[E::PERM, E::AGAIN, E::NOMEM],
        Call::Getgroups => &[E::NOMEM],
        Call::Chmod | Call::Chown | Call::Utimens => {
            &[E::PERM, E::ACCESS, E::ROFS, E::IO, E::NOMEM, E::INTR, E::STALE, E::DQUOT]
        }
        Call::Clone => &[
            E::OPNOTSUPP,
            E::NOTTY,
            E::NOSYS,
            E::NOSPC,
            E::DQUOT,
            E::INVAL,
            E::XDEV,
            E::TXTBSY,
            E::PERM,
            E::IO,
            E::INTR,
        ],
        Call::Close => &[E::IO, E::NOSPC, E::DQUOT, E::INTR, E::STALE],
        Call::Copy => {
            &[E::NOSPC, E::DQUOT, E::FBIG, E::IO, E::INTR, E::NOMEM, E::XDEV, E::INVAL, E::NOSYS, E::OPNOTSUPP, E::PERM]
        }
        Call::Dup => &[E::MFILE, E::NFILE, E::NOMEM],
        Call::Fallocate => &[E::NOSPC, E::DQUOT, E::FBIG, E::IO, E::INTR, E::OPNOTSUPP, E::PERM, E::TXTBSY],
        Call::Fdatasync | Call::Fsync => &[E::IO, E::NOSPC, E::DQUOT, E::INTR, E::ROFS, E::INVAL],
        Call::Setfl => &[E::PERM],
        Call::Getflags => &[E::IO, E::NOTTY, E::OPNOTSUPP, E::NOMEM, E::INTR],
        Call::Setflags => &[E::PERM, E::ROFS, E::IO, E::NOTTY, E::OPNOTSUPP, E::INTR],
        Call::Fstatfs => &[E::IO, E::NOMEM, E::INTR, E::OVERFLOW, E::NOSYS],
        Call::Ftruncate => &[E::PERM, E::FBIG, E::IO, E::INTR, E::TXTBSY, E::NOSPC, E::ROFS],
        Call::Getdents => &[E::NOENT, E::IO, E::INTR, E::NOMEM, E::STALE, E::ACCESS],
        Call::Getxattr => &[E::IO, E::ACCESS, E::NOMEM, E::INTR, E::RANGE, E::NODATA, E::STALE, E::TOOBIG],
        Call::Link => &[E::EXIST, E::MLINK, E::NOSPC, E::DQUOT, E::PERM, E::ACCESS, E::XDEV, E::ROFS, E::IO, E::INTR],
        Call::Listxattr => &[E::IO, E::NOMEM, E::INTR, E::RANGE, E::OPNOTSUPP, E::STALE],
        Call::Lseek => &[E::IO, E::NXIO, E::INVAL, E::INTR, E::OVERFLOW],
        Call::Make => &[
            E::EXIST,
            E::NOSPC,
            E::DQUOT,
            E::ACCESS,
            E::PERM,
            E::ROFS,
            E::MFILE,
            E::NFILE,
            E::NOMEM,
            E::IO,
            E::INTR,
            E::AGAIN,
            E::OPNOTSUPP,
        ],
        Call::Mkdir | Call::Mknod | Call::Symlink => {
            &[E::EXIST, E::NOSPC, E::DQUOT, E::MLINK, E::ACCESS, E::PERM, E::ROFS, E::NOMEM, E::IO, E::INTR]
        }
        Call::Open => &[
            E::ACCESS,
            E::PERM,
            E::IO,
            E::NOMEM,
            E::NOENT,
            E::NOTDIR,
            E::LOOP,
            E::XDEV,
            E::MFILE,
            E::NFILE,
            E::NXIO,
            E::NODEV,
            E::TXTBSY,
            E::ROFS,
            E::OVERFLOW,
            E::STALE,
            E::INTR,
            E::AGAIN,
            E::BUSY,
        ],
        Call::ProbeOpenat2 => &[E::NOSYS, E::PERM, E::NOMEM, E::MFILE],
        Call::ProbeHandles => &[E::OPNOTSUPP, E::PERM, E::NOSYS, E::NOMEM, E::INTR],
        Call::NameToHandle => &[E::OPNOTSUPP, E::PERM, E::NOMEM, E::INTR, E::STALE],
        Call::OpenByHandle => &[E::STALE, E::PERM, E::NOMEM, E::IO, E::MFILE, E::NFILE, E::INTR],
        Call::ProbeAcls => &[E::OPNOTSUPP, E::NODATA, E::IO, E::INTR],
        Call::Pread => &[E::IO, E::INTR, E::NOMEM, E::STALE, E::INVAL, E::OVERFLOW],
        Call::Pwrite => &[E::NOSPC, E::DQUOT, E::FBIG, E::IO, E::INTR, E::PERM, E::NOMEM, E::STALE, E::ROFS],
        Call::ReadUmask => &[E::NOENT, E::MFILE, E::NOMEM, E::INTR],
        Call::Readlink => &[E::ACCESS, E::INVAL, E::IO, E::NOENT, E::NOMEM, E::INTR, E::STALE],
        Call::Realpath => &[E::ACCESS, E::NOENT, E::NOTDIR, E::LOOP, E::IO, E::INTR],
        Call::Removexattr => &[E::NODATA, E::PERM, E::ACCESS, E::ROFS, E::NOSPC, E::IO, E::INTR],
        Call::Rename => &[
            E::ACCESS,
            E::PERM,
            E::BUSY,
            E::EXIST,
            E::INVAL,
            E::NOSPC,
            E::DQUOT,
            E::MLINK,
            E::NOENT,
            E::NOTEMPTY,
            E::ROFS,
            E::XDEV,
            E::IO,
            E::INTR,
        ],
        Call::Setxattr => &[E::NOSPC, E::DQUOT, E::PERM, E::ACCESS, E::ROFS, E::OPNOTSUPP, E::RANGE, E::IO, E::INTR],
        // Its own test: the thread keeps the rights of another user.
        Call::SwitchBack => &[],
        Call::Statx => {
            &[E::ACCESS, E::NOENT, E::NOTDIR, E::NAMETOOLONG, E::LOOP, E::NOMEM, E::IO, E::STALE, E::INTR, E::OVERFLOW]
        }
        Call::Unlink => &[E::ACCESS, E::PERM, E::BUSY, E::NOENT, E::NOTEMPTY, E::ROFS, E::IO, E::NOMEM, E::INTR],
    }
}

/// Whether an operation may answer so if a call fails; otherwise it answers `as_ever`. `reads_acls`: a lookup reads ACLs.
/// `goes_on`: see [`super::script::GOES_ON`].
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
