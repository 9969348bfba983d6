//! A directory of the host that keeps the forks of a store: they survive the process, and a loss of power up to the last mark.
//!
//! # What it is
//! | file | |
//! |---|---|
//! | `format` | the version, the root of the base, and the boot at which the directory was opened |
//! | `lock` | locked by the process that has the directory open |
//! | `pages` | the changed pages of all files ([`slots`]) |
//! | `image-N` | all forks when the image was made ([`image`]) |
//! | `log-N` | the changes since ([`log`], [`event`]) |
//!
//! Each change is in the log before its call returns, so a crash of the process loses nothing. A *mark* makes the pages and then the
//! log durable: `fsync(2)` waits for one, and there is one every [`INTERVAL`]. After a loss of power the log is read up to its last
//! mark. [`replay`] reads image and logs at the start, and a new image follows at once.
//!
//! # How it is locked
//! `pause` is read by each change for its duration, before the gate of its fork; a new image holds it for some microseconds. Then
//! `marking`, for one mark or image at a time. The mutex of the log is the last of all locks, held for one batch.

pub(crate) mod event;
mod image;
mod log;
mod open;
mod replay;
pub(crate) mod slots;

use crate::background::Joined;
use crate::state::{Shared, State};
use crate::tree::Tree;
use core::time::Duration;
use event::{Event, Name};
use log::Log;
use parking_lot::{Mutex, RwLock};
use rustix::fs::OFlags;
use slots::Slots;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use vfs::Errno;

pub use open::UpperError;
pub(crate) use open::open;

/// The time between two marks, while there are changes.
const INTERVAL: Duration = Duration::from_secs(5);

/// A log of this length is replaced by an image.
const LONG: u64 = 128 << 20;

/// Returns the error of a file as the error of a call.
fn errno(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// Opens a file of the directory, which only its owner may read: it has contents of files.
fn open_file(path: &Path, is_new: bool) -> Result<File, Errno> {
    let no_links = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(is_new).mode(0o600).custom_flags(no_links);
    options.open(path).map_err(errno)
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Upper {
    dir: PathBuf,
    pub(crate) slots: Arc<Slots>,
    pub(crate) pause: RwLock<()>,
    marking: Mutex<()>,
    log: Mutex<Writing>,
    /// Numbers that the log lacks.
    numbers: Mutex<Vec<(u64, u64)>>,
    /// Locked for as long as it is open.
    _lock: File,
}

/// The log that is written.
#[derive(Debug)]
struct Writing {
    log: Log,
    /// The number of the log.
    number: u64,
    /// The bytes of all logs before it.
    before: u64,
    /// Up to where a mark covers all logs.
    marked: u64,
    /// Logs before it that no mark covers.
    unmarked: Vec<Arc<File>>,
}

impl Upper {
    /// Adds a batch to the log. `is_removal`: it may take the space that is reserved for removals.
    ///
    /// # Errors
    /// `ENOSPC`; `EFBIG`: the next start would refuse the log; the directory's. The log is as before.
    pub(crate) fn append(&self, events: Vec<Event>, is_removal: bool) -> Result<(), Errno> {
        if !events.iter().all(|event| event.is_sound(u64::MAX)) {
            return Err(Errno::EFBIG);
        }
        let mut writing = self.log.lock();
        if !is_removal {
            writing.log.reserve()?;
        }
        let mut numbers = self.numbers.lock();
        let mut batch: Vec<Event> =
            numbers.iter().map(|(ino, node)| Event::Number { ino: *ino, node: *node }).collect();
        batch.extend(events);
        writing.log.append(&batch)?;
        numbers.clear();
        Ok(())
    }

    /// Notes the number of a file of the base, for the next batch. Returns the number.
    pub(crate) fn number(&self, ino: u64, node: u64) -> u64 {
        self.numbers.lock().push((ino, node));
        node
    }

    /// Makes all changes so far durable. `frees`: also if only slots wait for it.
    ///
    /// # Errors
    /// The directory's.
    pub(crate) fn mark(&self, frees: bool) -> Result<(), Errno> {
        let wanted = if frees && self.slots.has_waiting() { u64::MAX } else { self.log.lock().end() };
        let _one = self.marking.lock();
        self.mark_up_to(wanted)
    }

    /// As [`mark`](Self::mark); the caller has locked `marking`.
    fn mark_up_to(&self, wanted: u64) -> Result<(), Errno> {
        let (upto, end, unmarked, freed) = {
            let mut writing = self.log.lock();
            if writing.marked >= wanted {
                return Ok(());
            }
            let unmarked = core::mem::take(&mut writing.unmarked);
            (writing.log.len, writing.end(), unmarked, self.slots.begin_mark())
        };
        let done = self.make_durable(upto, &unmarked);
        self.slots.end_mark(freed, done.is_ok());
        let mut writing = self.log.lock();
        match &done {
            // Without other changes the mark itself needs no mark.
            Ok(mark) => writing.marked = if writing.end() == end + mark { end + mark } else { end },
            Err(_) => writing.unmarked.extend(unmarked),
        }
        done.map(drop)
    }

    /// Makes the pages durable, and then the logs with a mark at their end. Returns the length of the mark.
    fn make_durable(&self, upto: u64, unmarked: &[Arc<File>]) -> Result<u64, Errno> {
        self.slots.sync()?;
        unmarked.iter().try_for_each(|log| log.sync_data().map_err(errno))?;
        let (file, mark) = {
            let log = &mut self.log.lock().log;
            let before = log.len;
            log.append(&[Event::Mark { upto }])?;
            (log.file.clone(), log.len - before)
        };
        file.sync_data().map(|()| mark).map_err(errno)
    }
}

impl Writing {
    /// Returns the length of all logs.
    fn end(&self) -> u64 {
        self.before + self.log.len
    }
}

impl State {
    /// Adds the events to the log, if there is one. `is_removal`: also if the directory is full.
    ///
    /// # Errors
    /// `ENOSPC`; the directory's.
    pub(crate) fn log(&self, is_removal: bool, events: impl FnOnce() -> Vec<Event>) -> Result<(), Errno> {
        self.shared.upper.as_ref().map_or(Ok(()), |upper| upper.append(events(), is_removal))
    }

    /// Returns the change from one tree to another as an event.
    pub(crate) fn changed(&self, old: &Tree, new: &Tree) -> Option<Event> {
        Event::tree(&self.shared.lower, (self.id, false), old, new)
    }

    /// Keeps the fork under a name.
    ///
    /// # Errors
    /// As for [`log`](Self::log).
    pub(crate) fn keep(&self, name: Name) -> Result<(), Errno> {
        let _inside = self.enter();
        self.log(false, || vec![Event::Name { fork: self.id, name: name.clone() }])?;
        *self.name.lock() = Some(name);
        Ok(())
    }

    /// Returns whether files of the base that the fork needs are missing.
    pub(crate) fn is_lost(&self) -> bool {
        self.name.lock().as_ref().is_some_and(|name| name.is_lost)
    }

    /// Returns whether nothing changes the fork.
    pub(crate) fn is_read_only(&self) -> bool {
        self.name.lock().as_ref().is_some_and(|name| name.is_read_only)
    }

    /// Keeps the fork no more. If the directory is full, the next image does not have the fork.
    pub(crate) fn forget(&self) {
        let _inside = self.enter();
        *self.name.lock() = None;
        let _ = self.log(true, || vec![Event::End { fork: self.id }]);
    }

    /// Makes all changes so far durable, if there is a log.
    ///
    /// # Errors
    /// The directory's.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        self.shared.upper.as_ref().map_or(Ok(()), |upper| upper.mark(false))
    }
}

/// The thread that makes changes durable in the background, and the last ones when it is dropped.
#[derive(Debug)]
pub(crate) struct Marks(#[expect(dead_code, reason = "its drop ends the thread")] (Sender<()>, Joined));

impl Marks {
    /// Starts the thread.
    ///
    /// # Errors
    /// `EAGAIN`: the system has no thread.
    pub(crate) fn start(shared: Arc<Shared>) -> Result<Self, Errno> {
        let (stop, stopped) = channel();
        let run = move || {
            let Some(upper) = shared.upper.as_ref() else { return };
            loop {
                let is_last = stopped.recv_timeout(INTERVAL) != Err(RecvTimeoutError::Timeout);
                // An error: the next mark tries again, and fsync(2) reports it.
                let _ = upper.mark(true);
                if is_last {
                    return;
                }
                if upper.log.lock().log.len > LONG {
                    let _ = upper.image(&shared);
                }
            }
        };
        Ok(Self((stop, Joined::spawn("lightfoot-marks", run).ok_or(Errno::EAGAIN)?)))
    }
}

#[cfg(test)]
mod tests {
    use crate::{BASE, ForkLimits, Workspaces};
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use vfs::{Base, Context, OpenFlags, Vfs};

    const THREADS: u64 = 3;
    const FILES: u64 = 40;

    fn open(base: &std::path::Path, dir: &std::path::Path) -> Workspaces {
        let base = Vfs::new(hostfs::HostFs::new(base, &hostfs::HostOptions::default()).unwrap());
        Workspaces::durable(base.context(), true, dir).unwrap()
    }

    fn write(context: &Context, path: &str, at: u64, byte: u8) {
        let flags = OpenFlags::WRONLY.union(OpenFlags::CREAT);
        let file = context.open(Base::CWD, path.as_bytes(), flags, 0o644).unwrap();
        file.write_at(at, &[byte; 5000]).unwrap();
        if at.is_multiple_of(7) {
            file.sync(false).unwrap();
        }
    }

    fn read(context: &Context, path: &str) -> Vec<u8> {
        let file = context.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY, 0).unwrap();
        let mut bytes = vec![0; file.attr().unwrap().size as usize];
        let mut done = 0;
        while done < bytes.len() {
            done += file.read_at(done as u64, &mut bytes[done..]).unwrap();
        }
        bytes
    }

    fn all(spaces: &Workspaces) -> Vec<Vec<u8>> {
        let context = spaces.tree().context();
        let paths = (0..THREADS).flat_map(|fork| (0..FILES).map(move |file| format!("/w/{fork}/{file}")));
        paths.map(|path| read(&context, &path)).collect()
    }

    #[test]
    fn images_beside_writers_have_each_call() {
        let (base, dir, copy) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spaces = open(base.path(), dir.path());
        for fork in 0..THREADS {
            spaces.fork(BASE, &fork.to_string(), ForkLimits::default()).unwrap();
        }
        let shared = spaces.tree_of("0").unwrap().0.shared.clone();
        let is_over = AtomicBool::new(false);
        let images = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..THREADS)
                .map(|fork| {
                    let context = spaces.tree().context();
                    scope.spawn(move || {
                        for step in 0..600 {
                            write(&context, &format!("/w/{fork}/{}", step % FILES), step * 37 % 9000, step as u8);
                        }
                    })
                })
                .collect();
            let images = scope.spawn(|| {
                let mut images = 0;
                while !is_over.load(Relaxed) {
                    shared.upper.as_ref().unwrap().image(&shared).unwrap();
                    images += 1;
                }
                images
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_over.store(true, Relaxed);
            images.join().unwrap()
        });
        for entry in fs::read_dir(dir.path()).unwrap().flatten() {
            fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
        }
        assert!(all(&open(base.path(), copy.path())) == all(&spaces), "after {images} images");
    }
}
