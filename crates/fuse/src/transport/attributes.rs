//! Requests on attributes: `stat(2)`, extended attributes, the body of a link, free room,
//! permissions.

use super::Transport;
use super::convert::{self, attr, caller, set_attr};
use crate::session::{AttrReply, Session};
use fusedev::wire::abi::{AttrOut, GetxattrOut, StatfsOut, fattr, statx};
use fusedev::wire::{Body, Operation, Request};
use vfs::{Errno, StatVfs};

impl Transport {
    pub(super) fn answer_attributes(&self, request: &Request<'_>, body: &mut Body) -> Result<(), Errno> {
        let (session, caller, node) = (&self.session, caller(request), request.header.nodeid);
        match request.operation {
            Operation::Getattr => put_attr(body, &session.getattr(node)?),
            Operation::Setattr(set) => {
                let handle = (set.valid & fattr::FH != 0).then_some(set.fh);
                let clears = set.valid & fattr::KILL_SUIDGID != 0;
                let setattr = if clears { Session::setattr_clearing } else { Session::setattr };
                put_attr(body, &setattr(session, &caller, node, &set_attr(&set), handle)?);
            }
            Operation::Statx(asked) => {
                let wants_birth = asked.sx_mask & statx::BTIME != 0;
                body.put_struct(&convert::statx(&session.statx(node, wants_birth)?));
            }
            Operation::Readlink => body.put(&session.readlink(node)?),
            Operation::Statfs => body.put_struct(&statfs(&session.statfs(node)?)),
            Operation::Access(access) => session.access(&caller, node, access.mask)?,
            Operation::Setxattr(set, name, value) => {
                session.setxattr(&caller, node, name, value, set.flags as i32)?;
            }
            Operation::Getxattr(get, name) => put_xattr(body, &session.getxattr(&caller, node, name)?, get.size)?,
            Operation::Listxattr(list) => put_xattr(body, &session.listxattr(&caller, node)?, list.size)?,
            Operation::Removexattr(name) => session.removexattr(&caller, node, name)?,
            _ => return self.answer_directory(request, body),
        }
        Ok(())
    }
}

fn put_attr(body: &mut Body, (found, ttl): &AttrReply) {
    body.put_struct(&AttrOut {
        attr_valid: ttl.as_secs(),
        attr_valid_nsec: ttl.subsec_nanos(),
        dummy: 0,
        attr: attr(found, found.ino),
    });
}

/// With `size` 0 the size alone is requested, as in `getxattr(2)`.
///
/// # Errors
/// `ERANGE` if the value does not fit into `size` bytes.
fn put_xattr(body: &mut Body, value: &[u8], size: u32) -> Result<(), Errno> {
    if size == 0 {
        body.put_struct(&GetxattrOut { size: u32::try_from(value.len()).unwrap_or(u32::MAX), padding: 0 });
    } else if value.len() > size as usize {
        return Err(Errno::ERANGE);
    } else {
        body.put(value);
    }
    Ok(())
}

fn statfs(stat: &StatVfs) -> StatfsOut {
    let fs = stat.fs;
    StatfsOut {
        blocks: fs.blocks,
        bfree: fs.blocks_free,
        bavail: fs.blocks_available,
        files: fs.files,
        ffree: fs.files_free,
        bsize: fs.block_size,
        namelen: fs.name_max,
        // The fragment size is the block size.
        frsize: fs.block_size,
        ..StatfsOut::default()
    }
}
