//! The log of a directory: batches of events in a file, each with its length and checksum.
//!
//! # What it is
//! A batch is the CRC-32 of the events, their length, and the events, all by `postcard`.
//!
//! A log may end in a batch that a crash has cut. After a loss of power it may have anything behind the bytes that a later mark
//! covers. Everything else is damage.

use super::event::Event;
use super::{errno, open_file};
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use vfs::Errno;

/// Bytes for removals and marks, if the file system is full: some thousands of them.
const RESERVE: u64 = 1 << 20;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) file: Arc<File>,
    pub(crate) len: u64,
    /// Up to where the file has space.
    reserved: u64,
}

/// A batch that was read, with the offset behind it.
pub(crate) struct Batch {
    pub(crate) events: Vec<Event>,
    pub(crate) end: u64,
}

impl Log {
    /// Makes a new log.
    pub(crate) fn create(path: &Path) -> Result<Self, Errno> {
        Ok(Self { file: Arc::new(open_file(path, true)?), len: 0, reserved: 0 })
    }

    /// Makes sure that removals and marks have space, also if the file system is full.
    ///
    /// # Errors
    /// `ENOSPC`; the directory's.
    pub(crate) fn reserve(&mut self) -> Result<(), Errno> {
        if self.reserved < self.len + RESERVE {
            let more = self.len + 2 * RESERVE - self.reserved;
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.reserved, more) {
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => self.reserved += more,
                Err(error) => return Err(Errno::from_raw(error.raw_os_error())),
            }
        }
        Ok(())
    }

    /// Adds a batch. After an error the log is as before.
    ///
    /// # Errors
    /// `ENOSPC`; the directory's.
    pub(crate) fn append(&mut self, events: &[Event]) -> Result<(), Errno> {
        let events = postcard::to_allocvec(events).map_err(|_| Errno::EIO)?;
        let head = (crc32fast::hash(&events), events.len());
        let mut batch = postcard::to_allocvec(&head).map_err(|_| Errno::EIO)?;
        batch.extend_from_slice(&events);
        if let Err(error) = self.file.write_all_at(&batch, self.len) {
            // The next batch is written over the part of this one, whose checksum is wrong.
            let _ = self.file.set_len(self.len);
            self.reserved = self.len;
            return Err(errno(error));
        }
        self.len += batch.len() as u64;
        Ok(())
    }
}

/// The bytes of a log behind its last right batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rest {
    Nothing,
    /// A part of a batch.
    Cut,
    /// A wrong batch. `marked`: a later mark covers it.
    Wrong {
        marked: bool,
    },
}

/// The most bytes of a mark.
const MARK: usize = 32;

/// Returns the batches of a log, and the rest.
///
/// # Errors
/// The directory's.
pub(crate) fn read(path: &Path) -> Result<(Vec<Batch>, Rest), Errno> {
    let bytes = std::fs::read(path).map_err(errno)?;
    let (mut batches, mut at) = (Vec::new(), 0);
    while let Some((events, end)) = batch(&bytes, at) {
        batches.push(Batch { events, end: end as u64 });
        at = end;
    }
    let is_mark = |from| {
        let found = batch(&bytes[..bytes.len().min(from + MARK)], from);
        found.is_some_and(|(events, _)| matches!(events[..], [Event::Mark { upto }] if upto > at as u64))
    };
    let rest = match postcard::take_from_bytes::<(u32, &[u8])>(&bytes[at..]) {
        _ if at == bytes.len() => Rest::Nothing,
        Err(_) if !(at..bytes.len()).any(is_mark) => Rest::Cut,
        _ => Rest::Wrong { marked: (at..bytes.len()).any(is_mark) },
    };
    Ok((batches, rest))
}

/// Returns the events of the batch at an offset, and its end.
fn batch(bytes: &[u8], at: usize) -> Option<(Vec<Event>, usize)> {
    let ((crc, events), rest): ((u32, &[u8]), _) = postcard::take_from_bytes(bytes.get(at..)?).ok()?;
    let events = (crc32fast::hash(events) == crc).then(|| postcard::from_bytes(events).ok())??;
    Some((events, bytes.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_ends_where_it_was_cut_or_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = Log::create(&path).unwrap();
        let ends: Vec<u64> = (0..4)
            .map(|fork| {
                log.append(&[Event::End { fork }, Event::Mark { upto: fork }]).unwrap();
                log.len
            })
            .collect();
        let whole = std::fs::read(&path).unwrap();
        let found = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let (batches, rest) = read(&path).unwrap();
            assert!(batches.iter().all(|batch| batch.events.len() == 2));
            (batches.iter().map(|batch| batch.end).collect::<Vec<_>>(), rest)
        };
        assert_eq!(found(&whole), (ends.clone(), Rest::Nothing));
        for len in 0..whole.len() {
            let complete: Vec<u64> = ends.iter().copied().filter(|end| *end <= len as u64).collect();
            let is_cut = complete.last().copied().unwrap_or(0) < len as u64;
            let rest = if is_cut { Rest::Cut } else { Rest::Nothing };
            assert_eq!(found(&whole[..len]), (complete, rest), "cut at {len}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            let before: Vec<u64> = ends.iter().copied().filter(|end| *end <= at as u64).collect();
            let (found, rest) = found(&damaged);
            assert!(found == before && rest != Rest::Nothing, "damaged at {at}");
        }
    }
}
