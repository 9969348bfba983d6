//! Open files.
//!
//! # What it is
//! An open file of the core and a position: together an open file description of `open(2)`.
//! Submodules: `opening`, `position` (reading and writing at the position), `at` (at an offset),
//! `status` (attributes, `fsync(2)`), `storage` (allocation, extended attributes), `locks`,
//! `options`.
//!
//! # How it is locked
//! The position has a mutex, held across a read or a write, as Linux holds `f_pos_lock`: operations at the position run
//! one after another. A lock of the core protects the contents.
//!
//! # Where it comes from
//! `std::fs::File`, method by method (`docs/std-fs.md`).

// rustdoc shows the groups of methods in the order of these modules. The blank lines keep rustfmt from sorting them.
mod opening;

mod at;

mod status;

mod position;

mod locks;

mod storage;

mod options;

pub use options::OpenOptions;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vfs::OpenFile;

/// An open file. It stays valid when its name is removed or renamed.
///
/// ```
/// use std::io::{BufRead, BufReader, Write};
///
/// let ctx = lightfoot::Vfs::ram().context();
/// let mut file = ctx.create("/log")?;
/// writeln!(file, "one")?; // All of `std::io::Read`, `Write` and `Seek` works.
/// writeln!(file, "two")?;
/// let lines: Vec<_> = BufReader::new(ctx.open("/log")?).lines().collect::<Result<_, _>>()?;
/// assert_eq!(lines, ["one", "two"]);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Reads and writes start at the position of the file. `&File` implements `Read` and `Write`, so
/// threads can share a file. The open checks permissions, and operations use the credentials at the
/// open. A drop loses errors of the last writes, as in `std`: [`File::close`] and
/// [`File::sync_all`] return these errors.
pub struct File {
    shared: Arc<Shared>,
}

/// The state that clones of a file share.
struct Shared {
    inner: OpenFile,
    position: Mutex<u64>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        f.debug_struct("File").field("place", inner.held()).field("flags", &inner.flags()).finish_non_exhaustive()
    }
}

impl File {
    #[inline]
    pub(crate) fn new(inner: OpenFile) -> Self {
        Self { shared: Arc::new(Shared { inner, position: Mutex::new(0) }) }
    }

    pub(crate) fn inner(&self) -> &OpenFile {
        &self.shared.inner
    }

    fn position(&self) -> MutexGuard<'_, u64> {
        // The position is a number, so it is valid even if a thread panicked while it held the
        // mutex.
        self.shared.position.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
