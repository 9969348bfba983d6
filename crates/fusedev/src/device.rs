//! `/dev/fuse`: carries requests to the server, and replies and notices to the kernel.
//!
//! # What it is
//! One message for each `read(2)` and `write(2)`. Any number of threads may read. A [clone](Device::try_clone) reads
//! requests of the same connection, and takes replies only to those.
//!
//! # Invariants
//! - argument: each `ioctl(2)` here reads its argument, of the type that its number states, and stores nothing in it.
//!
//! # Where it comes from
//! `fuse(4)`; `fuse_dev_read`, `fuse_dev_write` and `fuse_dev_ioctl` in Linux's `fs/fuse/dev.c`.

#![allow(unsafe_code, reason = "the ioctls of the device")]

use crate::waker::Waker;
use crate::wire::abi::{BackingMap, OutHeader};
use core::ffi::c_void;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, opcode};
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use zerocopy::IntoBytes;

/// Group of the device's ioctls.
const MAGIC: u8 = 229;
const CLONE: Opcode = opcode::read::<u32>(MAGIC, 0);
const BACKING_OPEN: Opcode = opcode::write::<BackingMap>(MAGIC, 1);
const BACKING_CLOSE: Opcode = opcode::write::<u32>(MAGIC, 2);

/// An open `/dev/fuse`.
#[derive(Debug)]
pub struct Device(OwnedFd);

impl Device {
    /// Opens the device: a connection as soon as `mount(2)` gets it.
    ///
    /// # Errors
    /// As for `open(2)`.
    pub fn open() -> io::Result<Self> {
        Ok(Self(File::options().read(true).write(true).open("/dev/fuse")?.into()))
    }

    /// Another descriptor of the connection, with a separate queue of the requests that it has
    /// read.
    ///
    /// # Errors
    /// As for `open(2)`; `EINVAL` before the device is mounted.
    pub fn try_clone(&self) -> io::Result<Self> {
        let clone = Self::open()?;
        let of = self.0.as_raw_fd();
        // SAFETY: argument: `CLONE` reads the number of a descriptor.
        unsafe { rustix::ioctl::ioctl(&clone.0, Call { opcode: CLONE, argument: of }) }?;
        Ok(clone)
    }

    /// Reads the next request into `buffer`, which must be longer than the longest write by at least 4 KiB. Waits for one.
    /// `None`: the connection is over.
    ///
    /// # Errors
    /// `ECONNABORTED`: it was aborted. Others are a defect of this program.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.0, &mut *buffer) {
                // A device never ends like this; a socket in place of one does.
                Ok(0) | Err(Errno::NODEV) => return Ok(None),
                Ok(len) => return Ok(Some(len)),
                // The request was interrupted before it could be read.
                Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Waits until there is something to [`read`](Self::read), or `waker` was called.
    ///
    /// # Errors
    /// As for `poll(2)`.
    pub fn wait(&self, waker: &Waker) -> io::Result<()> {
        let mut both = [PollFd::new(&self.0, PollFlags::IN), PollFd::new(waker, PollFlags::IN)];
        loop {
            match rustix::event::poll(&mut both, None) {
                Err(Errno::INTR) => {}
                done => return Ok(done.map(drop)?),
            }
        }
    }

    /// Replies to the request `unique`: with `body`, or with the errno `error` and no body.
    ///
    /// # Errors
    /// `ENOENT`: the request does not exist any more. `EINVAL`: the kernel does not accept the
    /// body.
    pub fn reply(&self, unique: u64, error: i32, body: &[u8]) -> io::Result<()> {
        self.write(OutHeader { len: 0, error: -error, unique }, if error == 0 { body } else { &[] })
    }

    /// Sends a notice; [`wire::notice`](crate::wire::notice) has the codes and makes bodies.
    ///
    /// # Errors
    /// `ENOENT`: the kernel does not have the name or node. `EINVAL`: it does not support the
    /// notice.
    pub fn notify(&self, code: i32, body: &[u8]) -> io::Result<()> {
        self.write(OutHeader { len: 0, error: code, unique: 0 }, body)
    }

    fn write(&self, header: OutHeader, body: &[u8]) -> io::Result<()> {
        let len = u32::try_from(size_of::<OutHeader>() + body.len()).map_err(|_| Errno::INVAL)?;
        let header = OutHeader { len, ..header };
        let parts = [IoSlice::new(header.as_bytes()), IoSlice::new(body)];
        // One message: the kernel takes all of it or nothing.
        rustix::io::writev(&self.0, if body.is_empty() { &parts[..1] } else { &parts })?;
        Ok(())
    }

    /// Registers a file that the kernel then reads and writes by itself (Linux 6.9). Returns its number, for the reply to an
    /// open and for [`close_backing`](Self::close_backing).
    ///
    /// # Errors
    /// `EPERM` without the right, or the flag of INIT, for it; `ELOOP`: the file's system is stacked too deep.
    pub fn open_backing(&self, file: BorrowedFd<'_>) -> io::Result<i32> {
        let argument = BackingMap { fd: file.as_raw_fd(), ..BackingMap::default() };
        // SAFETY: argument: `BACKING_OPEN` reads this struct.
        Ok(unsafe { rustix::ioctl::ioctl(&self.0, Call { opcode: BACKING_OPEN, argument }) }?)
    }

    /// Takes a registration back. Files that are open keep theirs.
    ///
    /// # Errors
    /// `ENOENT`: the kernel does not have the number.
    pub fn close_backing(&self, id: i32) -> io::Result<()> {
        // SAFETY: argument: `BACKING_CLOSE` reads a number of 32 bits.
        unsafe { rustix::ioctl::ioctl(&self.0, Call { opcode: BACKING_CLOSE, argument: id }) }?;
        Ok(())
    }
}

impl From<OwnedFd> for Device {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// An `ioctl(2)` that reads its argument, and whose result is the number that it returns.
struct Call<T> {
    opcode: Opcode,
    argument: T,
}

// SAFETY: argument: the pointer leads to the argument, which lives as long as the call; nothing is
// stored there, and the output is the returned number alone.
unsafe impl<T> Ioctl for Call<T> {
    type Output = i32;

    const IS_MUTATING: bool = false;

    fn opcode(&self) -> Opcode {
        self.opcode
    }

    fn as_ptr(&mut self) -> *mut c_void {
        (&raw mut self.argument).cast()
    }

    unsafe fn output_from_ptr(returned: IoctlOutput, _: *mut c_void) -> rustix::io::Result<i32> {
        Ok(returned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_reply_is_one_message_with_its_length() {
        let (server, mut kernel) = UnixStream::pair().expect("a pair");
        let device = Device::from(OwnedFd::from(server));
        device.reply(7, 0, b"body").expect("sent");
        device.reply(8, 5, b"not sent").expect("sent");
        device.notify(3, b"x").expect("sent");
        drop(device);
        let mut sent = Vec::new();
        kernel.read_to_end(&mut sent).expect("read");
        let header = |len, error, unique| OutHeader { len, error, unique }.as_bytes().to_vec();
        assert_eq!(
            sent,
            [header(20, 0, 7), b"body".to_vec(), header(16, -5, 8), header(17, 3, 0), b"x".to_vec()].concat()
        );
    }

    #[test]
    fn a_connection_without_its_other_side_is_over() {
        let (server, mut kernel) = UnixStream::pair().expect("a pair");
        let device = Device::from(OwnedFd::from(server));
        kernel.write_all(b"request").expect("sent");
        drop(kernel);
        let mut buffer = [0; 100];
        assert_eq!(device.read(&mut buffer).expect("read"), Some(7));
        assert_eq!(device.read(&mut buffer).expect("read"), None);
    }
}
