//! A file system in memory that counts what was made and what was released, and one whose root is a file.

use lightfoot::fs::{Attr, FileSystem, NewInode, Open, Request};
use lightfoot::{Errno, RamFs};
use std::sync::Arc;
use testkit::{Counting, Counts};

/// A file system in memory, of the type "counted". Its counts are shared with it for as long as it lives.
pub(crate) fn counted() -> (Counting<RamFs>, Arc<Counts>) {
    let (fs, counts) = Counting::of(Box::new(RamFs::new()));
    (fs.named("counted"), counts)
}

/// A file system whose root is a file.
pub(crate) struct FileFs;

impl FileSystem for FileFs {
    fn root(&self) -> NewInode {
        let attr = Attr { ino: 1, mode: lightfoot::fs::S_IFREG | 0o644, nlink: 1, size: 5, ..Attr::default() };
        NewInode { node: 0, attr, ..NewInode::default() }
    }

    fn read(&self, _: &Request, _: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let rest = b"alone".get(usize::try_from(offset).unwrap_or(5)..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
}
