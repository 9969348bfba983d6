//! Requests: read from the bytes of a message.
//!
//! # What it is
//! [`Request::parse`] checks each length against the bytes that are there, so that no message makes the server read beyond it
//! or panic. Names end within the message; names of directories' entries are not empty and hold no `/`.
//!
//! # What it is not
//! A judge of numbers: nodes, handles, flags, offsets and sizes are as the kernel sent them.
//!
//! # Where it comes from
//! `enum fuse_opcode` in `linux/fuse.h`; the `args` that `fs/fuse/dir.c` and `fs/fuse/file.c` in Linux set.

use super::abi::{
    AccessIn, BatchForgetIn, CopyFileRangeIn, CreateIn, FallocateIn, FlushIn, ForgetIn, ForgetOne, FsyncIn, GetxattrIn,
    InHeader, InitIn, InterruptIn, IoctlIn, LinkIn, LkIn, LseekIn, MkdirIn, MknodIn, OpenIn, ReadIn, ReleaseIn,
    Rename2In, RenameIn, SetattrIn, SetxattrIn, StatxIn, WriteIn, opcode,
};
use super::extension::Extensions;
use zerocopy::{FromBytes, IntoBytes};

/// A request of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'m> {
    /// The number, the node and the sender of the request.
    pub header: InHeader,
    /// The operation that the kernel requests.
    pub operation: Operation<'m>,
    /// The extensions that the kernel has appended.
    pub extensions: Extensions<'m>,
}

/// An operation with its arguments. The node is in the header: the file, or the directory of the first name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'m> {
    /// Looks a name up.
    Lookup(&'m [u8]),
    /// Takes lookups off the count of a node. Has no reply.
    Forget(ForgetIn),
    /// As `Forget`, for several nodes. Has no reply.
    BatchForget(Forgets<'m>),
    /// Attributes of a node.
    Getattr,
    /// Changes attributes.
    Setattr(SetattrIn),
    /// The body of a symbolic link.
    Readlink,
    /// Makes a symbolic link: name, body.
    Symlink(&'m [u8], &'m [u8]),
    /// Makes a file.
    Mknod(MknodIn, &'m [u8]),
    /// Makes a directory.
    Mkdir(MkdirIn, &'m [u8]),
    /// Removes the name of a file.
    Unlink(&'m [u8]),
    /// Removes a directory.
    Rmdir(&'m [u8]),
    /// Renames the first name to the second: RENAME, and RENAME2, which has flags.
    Rename(Rename2In, &'m [u8], &'m [u8]),
    /// Makes another name, in the directory of the header.
    Link(LinkIn, &'m [u8]),
    /// Opens a file.
    Open(OpenIn),
    /// Reads data.
    Read(ReadIn),
    /// Writes these data.
    Write(WriteIn, &'m [u8]),
    /// Free room of the file system.
    Statfs,
    /// Ends an open file.
    Release(ReleaseIn),
    /// Makes data durable.
    Fsync(FsyncIn),
    /// Sets an extended attribute: name, value.
    Setxattr(SetxattrIn, &'m [u8], &'m [u8]),
    /// Reads an extended attribute.
    Getxattr(GetxattrIn, &'m [u8]),
    /// The names of the extended attributes.
    Listxattr(GetxattrIn),
    /// Removes an extended attribute.
    Removexattr(&'m [u8]),
    /// A descriptor of an open file was closed.
    Flush(FlushIn),
    /// The first request.
    Init(InitIn),
    /// Opens a directory.
    Opendir(OpenIn),
    /// Lists a directory.
    Readdir(ReadIn),
    /// Lists a directory and looks its names up.
    Readdirplus(ReadIn),
    /// Ends an open directory.
    Releasedir(ReleaseIn),
    /// Makes a directory durable.
    Fsyncdir(FsyncIn),
    /// Finds a lock.
    Getlk(LkIn),
    /// Takes a lock, or fails.
    Setlk(LkIn),
    /// Takes a lock, and waits for it.
    Setlkw(LkIn),
    /// Checks permissions.
    Access(AccessIn),
    /// Makes a file and opens it.
    Create(CreateIn, &'m [u8]),
    /// Makes a file without a name and opens it.
    Tmpfile(CreateIn),
    /// The program that waits for a request has a signal.
    Interrupt(InterruptIn),
    /// A block of a file.
    Bmap,
    /// The last request of a connection; not each has it.
    Destroy,
    /// A call of `ioctl(2)`, with the bytes of its argument.
    Ioctl(IoctlIn, &'m [u8]),
    /// A call of `poll(2)`.
    Poll,
    /// The reply to a notice.
    NotifyReply,
    /// Allocates room, or frees it.
    Fallocate(FallocateIn),
    /// Finds data or a hole.
    Lseek(LseekIn),
    /// Attributes of a node, with the time when it was made.
    Statx(StatxIn),
    /// Copies between files, from the one of the header.
    CopyFileRange(CopyFileRangeIn),
    /// As `CopyFileRange`, with a longer number in the reply.
    CopyFileRange64(CopyFileRangeIn),
    /// An operation that this code does not support.
    Unknown,
}

/// The defect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The message is shorter than a header, so that nobody can reply.
    NoHeader,
    /// The rest of the message does not fit the header. The value is the number of the request.
    Request(u64),
}

/// The nodes of [`Operation::BatchForget`], with numbers of lookups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgets<'m>(&'m [u8]);

impl<'m> Forgets<'m> {
    /// Returns the nodes, one after the other.
    pub fn iter(self) -> impl Iterator<Item = ForgetOne> + 'm {
        self.0.chunks_exact(size_of::<ForgetOne>()).filter_map(|bytes| ForgetOne::read_from_bytes(bytes).ok())
    }
}

impl<'m> Request<'m> {
    /// Reads a message.
    ///
    /// # Errors
    /// The message does not fit its header, or its operation.
    pub fn parse(message: &'m [u8]) -> Result<Self, Malformed> {
        let (header, rest) = InHeader::read_from_prefix(message).map_err(|_| Malformed::NoHeader)?;
        let malformed = Malformed::Request(header.unique);
        let len = header.len as usize;
        let body = len.checked_sub(size_of::<InHeader>()).and_then(|len| rest.get(..len)).ok_or(malformed)?;
        let arguments = body.len().checked_sub(usize::from(header.total_extlen) * 8);
        let (arguments, extensions) = arguments.and_then(|len| body.split_at_checked(len)).ok_or(malformed)?;
        let operation = Arguments(arguments).operation(header.opcode).ok_or(malformed)?;
        let extensions = Extensions::parse(extensions).ok_or(malformed)?;
        Ok(Self { header, operation, extensions })
    }
}

/// The bytes after the header; each read takes its bytes off the start.
struct Arguments<'m>(&'m [u8]);

impl<'m> Arguments<'m> {
    fn operation(mut self, code: u32) -> Option<Operation<'m>> {
        Some(match code {
            opcode::LOOKUP => Operation::Lookup(self.name()?),
            opcode::SYMLINK => Operation::Symlink(self.name()?, self.text()?),
            opcode::MKNOD => Operation::Mknod(self.take()?, self.name()?),
            opcode::MKDIR => Operation::Mkdir(self.take()?, self.name()?),
            opcode::UNLINK => Operation::Unlink(self.name()?),
            opcode::RMDIR => Operation::Rmdir(self.name()?),
            opcode::RENAME => {
                let RenameIn { newdir } = self.take()?;
                Operation::Rename(Rename2In { newdir, ..Rename2In::default() }, self.name()?, self.name()?)
            }
            opcode::RENAME2 => Operation::Rename(self.take()?, self.name()?, self.name()?),
            opcode::LINK => Operation::Link(self.take()?, self.name()?),
            opcode::CREATE => Operation::Create(self.take()?, self.name()?),
            opcode::TMPFILE => {
                let create = self.take()?;
                // It has the place of a name: `/`.
                self.text()?;
                Operation::Tmpfile(create)
            }
            opcode::SETXATTR => {
                let set: SetxattrIn = self.take()?;
                Operation::Setxattr(set, self.text()?, self.bytes(set.size)?)
            }
            opcode::GETXATTR => Operation::Getxattr(self.take()?, self.text()?),
            opcode::LISTXATTR => Operation::Listxattr(self.take()?),
            opcode::REMOVEXATTR => Operation::Removexattr(self.text()?),
            opcode::WRITE => {
                let write: WriteIn = self.take()?;
                Operation::Write(write, self.bytes(write.size)?)
            }
            opcode::IOCTL => {
                let call: IoctlIn = self.take()?;
                Operation::Ioctl(call, self.bytes(call.in_size)?)
            }
            opcode::INIT => Operation::Init(self.init()?),
            opcode::BATCH_FORGET => {
                let BatchForgetIn { count, .. } = self.take()?;
                let len = (count as usize).checked_mul(size_of::<ForgetOne>())?;
                Operation::BatchForget(Forgets(self.0.get(..len)?))
            }
            _ => return self.of_numbers(code),
        })
    }

    /// Reads an operation without names and data.
    fn of_numbers(mut self, code: u32) -> Option<Operation<'m>> {
        Some(match code {
            opcode::FORGET => Operation::Forget(self.take()?),
            opcode::GETATTR => Operation::Getattr,
            opcode::SETATTR => Operation::Setattr(self.take()?),
            opcode::READLINK => Operation::Readlink,
            opcode::OPEN => Operation::Open(self.take()?),
            opcode::READ => Operation::Read(self.take()?),
            opcode::STATFS => Operation::Statfs,
            opcode::RELEASE => Operation::Release(self.take()?),
            opcode::FSYNC => Operation::Fsync(self.take()?),
            opcode::FLUSH => Operation::Flush(self.take()?),
            opcode::OPENDIR => Operation::Opendir(self.take()?),
            opcode::READDIR => Operation::Readdir(self.take()?),
            opcode::READDIRPLUS => Operation::Readdirplus(self.take()?),
            opcode::RELEASEDIR => Operation::Releasedir(self.take()?),
            opcode::FSYNCDIR => Operation::Fsyncdir(self.take()?),
            opcode::GETLK => Operation::Getlk(self.take()?),
            opcode::SETLK => Operation::Setlk(self.take()?),
            opcode::SETLKW => Operation::Setlkw(self.take()?),
            opcode::ACCESS => Operation::Access(self.take()?),
            opcode::INTERRUPT => Operation::Interrupt(self.take()?),
            opcode::BMAP => Operation::Bmap,
            opcode::DESTROY => Operation::Destroy,
            opcode::POLL => Operation::Poll,
            opcode::NOTIFY_REPLY => Operation::NotifyReply,
            opcode::FALLOCATE => Operation::Fallocate(self.take()?),
            opcode::LSEEK => Operation::Lseek(self.take()?),
            opcode::STATX => Operation::Statx(self.take()?),
            opcode::COPY_FILE_RANGE => Operation::CopyFileRange(self.take()?),
            opcode::COPY_FILE_RANGE_64 => Operation::CopyFileRange64(self.take()?),
            _ => Operation::Unknown,
        })
    }

    fn take<T: FromBytes>(&mut self) -> Option<T> {
        let (value, rest) = T::read_from_prefix(self.0).ok()?;
        self.0 = rest;
        Some(value)
    }

    /// Reads the bytes up to the next zero; there must be at least one.
    fn text(&mut self) -> Option<&'m [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0).filter(|end| *end != 0)?;
        let (text, rest) = self.0.split_at_checked(end)?;
        self.0 = rest.get(1..)?;
        Some(text)
    }

    /// Reads a name in a directory.
    fn name(&mut self) -> Option<&'m [u8]> {
        self.text().filter(|name| !name.contains(&b'/'))
    }

    fn bytes(&self, len: u32) -> Option<&'m [u8]> {
        self.0.get(..len as usize)
    }

    /// Reads INIT, which is shorter from an old kernel.
    fn init(&self) -> Option<InitIn> {
        const SHORT: usize = 16;
        let mut init = InitIn::default();
        let len = self.0.len().min(size_of::<InitIn>());
        if len < SHORT {
            return None;
        }
        init.as_mut_bytes()[..len].copy_from_slice(&self.0[..len]);
        Some(init)
    }
}

#[cfg(test)]
#[path = "request/tests.rs"]
mod tests;
