//! Requests on files: open, read, write, allocate, end; and those that are not served.

use super::convert::{self, caller, offset};
use super::reply::Channel;
use super::trace::{Replied, created, escaped, line};
use super::{Transport, passthrough};
use crate::metrics::Timer;
use crate::session::{Entry, NewMode, Opened, Session};
use fusedev::wire::abi::{
    CopyFileRangeIn, CopyFileRangeOut, CreateOut, FSYNC_DATA, RELEASE_FLOCK_UNLOCK, WriteOut, write,
};
use fusedev::wire::{Body, Operation, Request};
use std::sync::Arc;
use vfs::Errno;

/// The longest read, in bytes: the protocol's longest, and a page. A request for more gets at most
/// that much memory of a thread.
const MAX_READ: u32 = fusedev::wire::init::MAX_WRITE + 4096;

/// Returns the longest body of a reply to a read or listing of `size` bytes.
pub(super) fn longest(size: u32) -> usize {
    size.min(MAX_READ) as usize
}

impl Transport {
    pub(super) fn answer_open(
        &self,
        channel: &Arc<dyn Channel>,
        request: &Request<'_>,
        body: &mut Body,
        timer: &Timer<'_>,
    ) -> Result<(), Errno> {
        let (session, caller, node) = (&self.session, caller(request), request.header.nodeid);
        match request.operation {
            Operation::Open(_) if session.options().no_open => Err(Errno::ENOSYS),
            Operation::Open(open) => {
                let opened = session.open(&caller, node, open.flags);
                let handle = opened.as_ref().map(|opened| opened.handle).map_err(|errno| *errno);
                line!("OPEN\t{node}\t{}\t->\t{}", open.flags, Replied(handle));
                body.put_struct(&passthrough::opened(&self.backings, session, channel, node, &opened?));
                Ok(())
            }
            Operation::Create(new, name) => {
                let labels: Vec<_> = request.extensions.labels.iter().collect();
                let mode = NewMode::new(new.mode, new.umask).labelled(&labels);
                let made = session.create(&caller, node, name, mode, new.flags);
                line!("CREATE\t{node}\t{}\t{}\t->\t{}", escaped(name), new.flags, created(&made));
                self.put_created(channel, made?, body);
                Ok(())
            }
            Operation::Tmpfile(new) => {
                let labels: Vec<_> = request.extensions.labels.iter().collect();
                let mode = NewMode::new(new.mode, new.umask).labelled(&labels);
                let made = session.tmpfile(&caller, node, mode, new.flags);
                line!("TMPFILE\t{node}\t{}\t->\t{}", new.flags, created(&made));
                self.put_created(channel, made?, body);
                Ok(())
            }
            _ => self.answer_contents(request, body, timer),
        }
    }

    fn put_created(&self, channel: &Arc<dyn Channel>, (entry, opened): (Entry, Opened), body: &mut Body) {
        let open = passthrough::opened(&self.backings, &self.session, channel, entry.node, &opened);
        body.put_struct(&CreateOut { entry: convert::entry(&entry), open });
    }

    fn answer_contents(&self, request: &Request<'_>, body: &mut Body, timer: &Timer<'_>) -> Result<(), Errno> {
        let (session, caller, node) = (&self.session, caller(request), request.header.nodeid);
        match request.operation {
            Operation::Read(read) => {
                let at = offset(read.offset)?;
                body.fill(longest(read.size), |buffer| {
                    let read = session.read(node, read.fh, at, buffer)?;
                    timer.moved(read as u64);
                    Ok(read)
                })
            }
            Operation::Write(write, data) => {
                let at = offset(write.offset)?;
                // The callers of cached writes are unknown.
                let clears = write.write_flags & (write::KILL_SUIDGID | write::CACHE) != 0;
                let write_at = if clears { Session::write_clearing } else { Session::write };
                let written = write_at(session, node, write.fh, at, data)?;
                timer.moved(written as u64);
                body.put_struct(&WriteOut { size: written as u32, padding: 0 });
                Ok(())
            }
            Operation::Flush(flush) => session.flush(node, flush.fh, flush.lock_owner),
            Operation::Release(release) => {
                line!("RELEASE\t{node}\t{}", release.fh);
                let ends_flocks = release.release_flags & RELEASE_FLOCK_UNLOCK != 0;
                session.release_locks(node, release.fh, ends_flocks.then_some(release.lock_owner));
                session.release(release.fh);
                self.backings.release(node, release.fh);
                Ok(())
            }
            Operation::Fsync(fsync) => session.fsync(node, fsync.fh, fsync.fsync_flags & FSYNC_DATA != 0),
            Operation::Fallocate(range) => {
                let (at, len) = (offset(range.offset)?, offset(range.length)?);
                session.fallocate(&caller, node, range.fh, range.mode, (at, len))
            }
            Operation::CopyFileRange(copy) => {
                let copied = self.copy(request, &copy, timer)?;
                body.put_struct(&WriteOut { size: u32::try_from(copied).unwrap_or(u32::MAX), padding: 0 });
                Ok(())
            }
            Operation::CopyFileRange64(copy) => {
                body.put_struct(&CopyFileRangeOut { bytes_copied: self.copy(request, &copy, timer)? });
                Ok(())
            }
            Operation::Ioctl(call, argument) => self.answer_ioctl(request, &call, argument, body),
            _ => self.answer_entry(request, body),
        }
    }

    fn copy(&self, request: &Request<'_>, copy: &CopyFileRangeIn, timer: &Timer<'_>) -> Result<u64, Errno> {
        let (from, to) = ((copy.fh_in, offset(copy.off_in)?), (copy.fh_out, offset(copy.off_out)?));
        let copied = self.session.copy_file_range(&caller(request), from, to, copy.len, copy.flags)?;
        timer.moved(copied);
        Ok(copied)
    }
}
