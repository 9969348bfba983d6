//! IOCTL: the flags of an inode, as `lsattr(1)` and `chattr(1)` use them. All other commands fail with `ENOTTY`.
//!
//! # What it is
//! The kernel sends these for `FS_IOC_GETFLAGS` and `FS_IOC_FSGETXATTR` and their counterparts. Since Linux 5.13 it first checks
//! that the caller owns the file, and may change those two flags that only `CAP_LINUX_IMMUTABLE` may change; see
//! `session/inode_flags.rs`. `FS_IOC_FSGETXATTR` reports the same flags by other numbers.
//!
//! # Limitations
//! `FS_IOC_GETVERSION` fails with `ENOTTY`, as on tmpfs. Project numbers and extent sizes are shown as 0, and cannot be set.
//!
//! # Where it comes from
//! `ioctl_iflags(2)`; `fs/fuse/ioctl.c` and `fileattr_fill_flags` in Linux.

use super::Transport;
use super::convert::caller;
use fusedev::wire::abi::{Fsxattr, IoctlIn, IoctlOut, ioctl};
use fusedev::wire::{Body, Request};
use vfs::{Errno, InodeFlags};
use zerocopy::{FromBytes, IntoBytes};

/// `FS_*_FL` with the `FS_XFLAG_*` of the same meaning.
const BOTH: [(InodeFlags, u32); 7] = [
    (InodeFlags::SYNC, 0x20),
    (InodeFlags::IMMUTABLE, 0x8),
    (InodeFlags::APPEND, 0x10),
    (InodeFlags::NODUMP, 0x80),
    (InodeFlags::NOATIME, 0x40),
    (InodeFlags::DAX, 0x8000),
    (InodeFlags::PROJINHERIT, 0x200),
];

impl Transport {
    pub(super) fn answer_ioctl(
        &self,
        request: &Request<'_>,
        call: &IoctlIn,
        argument: &[u8],
        body: &mut Body,
    ) -> Result<(), Errno> {
        let (session, caller, node) = (&self.session, caller(request), request.header.nodeid);
        match call.cmd {
            ioctl::GETFLAGS => put(body, call, session.inode_flags(&caller, node)?.bits().as_bytes()),
            ioctl::FSGETXATTR => {
                let xflags = extended(session.inode_flags(&caller, node)?);
                put(body, call, Fsxattr { xflags, ..Fsxattr::default() }.as_bytes())
            }
            ioctl::SETFLAGS => {
                let (flags, _) = u32::read_from_prefix(argument).map_err(|_| Errno::EINVAL)?;
                session.set_inode_flags(&caller, node, InodeFlags::from_bits_retain(flags))?;
                put(body, call, &[])
            }
            ioctl::FSSETXATTR => {
                let (set, _) = Fsxattr::read_from_prefix(argument).map_err(|_| Errno::EINVAL)?;
                let flags = changed(session.inode_flags(&caller, node)?, &set)?;
                session.set_inode_flags(&caller, node, flags)?;
                put(body, call, &[])
            }
            _ => Err(Errno::ENOTTY),
        }
    }
}

/// Writes the reply with `result` to `body`.
///
/// # Errors
/// `EINVAL`: the kernel has no room for all of `result`.
fn put(body: &mut Body, call: &IoctlIn, result: &[u8]) -> Result<(), Errno> {
    if result.len() > call.out_size as usize {
        return Err(Errno::EINVAL);
    }
    body.put_struct(&IoctlOut::default());
    body.put(result);
    Ok(())
}

fn extended(flags: InodeFlags) -> u32 {
    BOTH.iter().filter(|(ours, _)| flags.contains(*ours)).fold(0, |all, (_, theirs)| all | theirs)
}

/// Returns `flags` with each bit that has a number in `set` changed to the value that `set` gives.
/// The other bits stay.
///
/// # Errors
/// `EOPNOTSUPP` for a bit that is not a flag here.
fn changed(flags: InodeFlags, set: &Fsxattr) -> Result<InodeFlags, Errno> {
    /// Says that the file has extended attributes; programs pass it back.
    const HAS_ATTR: u32 = 0x8000_0000;
    let known = BOTH.iter().fold(HAS_ATTR, |all, (_, theirs)| all | theirs);
    if set.xflags & !known != 0 || set.extsize != 0 || set.projid != 0 || set.cowextsize != 0 {
        return Err(Errno::EOPNOTSUPP);
    }
    let pick = |all: InodeFlags, &(ours, theirs): &(InodeFlags, u32)| {
        if set.xflags & theirs != 0 { all.union(ours) } else { all.difference(ours) }
    };
    Ok(BOTH.iter().fold(flags, pick))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_two_numbers_each() {
        let flags = InodeFlags::from_bits_retain(0x4000_0000) | InodeFlags::NODUMP | InodeFlags::APPEND;
        assert_eq!(extended(flags), 0x90);
        let set = Fsxattr { xflags: 0x8000_0008, ..Fsxattr::default() };
        assert_eq!(changed(flags, &set).map(|flags| flags.bits()), Ok(0x4000_0010), "others stay");
        for refused in [
            Fsxattr { xflags: 1 << 20, ..set },
            Fsxattr { projid: 1, ..set },
            Fsxattr { extsize: 1, ..set },
            Fsxattr { cowextsize: 1, ..set },
        ] {
            assert_eq!(changed(flags, &refused), Err(Errno::EOPNOTSUPP));
        }
    }
}
