//! Copies a tree to both sides: into a Lightfoot instance and, for the kernel, into a temporary directory. Each side gets
//! the same calls with the same data, so the two are alike even if the source changes meanwhile.

mod kernel;
mod ram;
#[cfg(test)]
mod tests;

pub(crate) use kernel::KernelCopy;
pub(crate) use ram::RamCopy;

use crate::bench::tree::{Entry, Kind, Tree, source_place};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use rustix::fs::OFlags;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

/// The longest file whose contents are copied, in bytes; a longer one becomes a hole.
const CONTENTS_AT_MOST: u64 = 64 << 10;

/// The least memory of a file with contents, in bytes.
const PAGE: u64 = 4096;

/// The contents of a regular file.
#[derive(Clone, Copy)]
enum Contents<'a> {
    Bytes(&'a [u8]),
    Hole(u64),
}

/// A side that a tree is copied to: the kernel or Lightfoot. Paths begin with a slash, at the root
/// of the copy.
trait Side {
    /// Its name in errors.
    const NAME: &'static str;

    fn mkdir(&self, path: &[u8]) -> io::Result<()>;
    fn make_file(&self, path: &[u8], mode: u32, contents: Contents<'_>) -> io::Result<()>;
    fn symlink(&self, path: &[u8], body: &[u8]) -> io::Result<()>;
    fn mknod(&self, path: &[u8], file_type: u32, mode: u32, rdev: u64) -> io::Result<()>;
    fn chmod(&self, path: &[u8], mode: u32) -> io::Result<()>;

    fn make(&self, entry: &Entry, contents: Contents<'_>) -> io::Result<()> {
        match &entry.kind {
            // Open to the owner until all of its contents are there.
            Kind::Directory => self.mkdir(&entry.path),
            Kind::File { .. } => self.make_file(&entry.path, entry.mode, contents),
            Kind::Symlink(body) => self.symlink(&entry.path, body),
            &Kind::Special { file_type, rdev } => self.mknod(&entry.path, file_type, entry.mode, rdev),
        }
    }
}

/// Copies `tree` to `ram` and, if it is there, to `kernel`, with contents of up to
/// `contents_at_most` bytes, but no more than half of the free memory. A file that cannot be copied
/// whole is counted in `tree.omitted`, and an entry that was not copied at all is removed from
/// `tree.entries`.
pub(crate) fn copy(
    tree: &mut Tree,
    ram: &RamCopy,
    kernel: Option<&KernelCopy>,
    contents_at_most: u64,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let progress = Progress::of("copying", tree.entries.len());
    let room = kernel.map_or(contents_at_most, |kernel| contents_at_most.min(kernel.scratch().free_bytes() / 2));
    let mut buffer = Vec::new();
    let mut copied = 0;
    let entries = std::mem::take(&mut tree.entries);
    let count = entries.len();
    for (done, entry) in entries.into_iter().enumerate() {
        interrupt.check()?;
        let contents = contents(tree, &entry, room - copied, &mut buffer);
        if let Contents::Bytes(bytes) = contents {
            copied += taken(bytes.len() as u64);
        }
        let made = match kernel {
            Some(kernel) => on(kernel, &entry, contents).map_err(|failure| kernel.full(failure, done, count, copied)),
            None => Ok(true),
        };
        if made? && on(ram, &entry, contents)? {
            tree.entries.push(entry);
        } else {
            tree.omitted.special += 1;
        }
        progress.step(1);
    }
    close(tree, ram)?;
    kernel.map_or(Ok(()), |kernel| close(tree, kernel))
}

/// Makes `entry` on one side. `false`: that may not be done, for a special file.
fn on<S: Side>(side: &S, entry: &Entry, contents: Contents<'_>) -> Result<bool, Error> {
    match side.make(entry, contents) {
        Ok(()) => Ok(true),
        Err(_) if matches!(entry.kind, Kind::Special { .. }) => Ok(false),
        Err(error) => Err(failed::<S>(&entry.path, error)),
    }
}

/// Gives the directories their modes, the deepest first, and the root at the end.
fn close<S: Side>(tree: &Tree, side: &S) -> Result<(), Error> {
    let dirs = tree.entries.iter().rev().filter(|entry| entry.is_dir()).map(|entry| (&*entry.path, entry.mode));
    for (path, mode) in dirs.chain([(&b"/"[..], tree.root_mode)]) {
        side.chmod(path, mode).map_err(|error| failed::<S>(path, error))?;
    }
    Ok(())
}

fn failed<S: Side>(path: &[u8], error: io::Error) -> Error {
    Error::Copy { path: OsStr::from_bytes(path).into(), side: S::NAME, error }
}

/// Returns the contents of the copies of `entry`, if contents of `room` bytes may still be copied.
fn contents<'a>(tree: &mut Tree, entry: &Entry, room: u64, buffer: &'a mut Vec<u8>) -> Contents<'a> {
    let Kind::File { len } = entry.kind else { return Contents::Bytes(&[]) };
    let Some(origin) = &tree.origin else { return Contents::Hole(len) };
    if len == 0 {
        return Contents::Bytes(&[]);
    }
    if len > CONTENTS_AT_MOST || taken(len) > room {
        tree.omitted.as_holes += 1;
        return Contents::Hole(len);
    }
    buffer.clear();
    // The file may have been replaced since it was listed: do not follow a link, and do not wait
    // for a FIFO.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(source_place(origin, &entry.path));
    if file.and_then(|file| file.take(len).read_to_end(buffer)).is_err() {
        buffer.clear();
        tree.omitted.unreadable += 1;
    }
    Contents::Bytes(buffer)
}

/// Returns the memory for contents of `len` bytes.
fn taken(len: u64) -> u64 {
    len.next_multiple_of(PAGE)
}
