//! The measured cases: each operation as one loop over paths, for Lightfoot and for the kernel.
//!
//! The kernel gets each path as a prepared C string, relative to a descriptor of the copy's root
//! that no other thread uses; so kernel and Lightfoot walk equally many components. Lightfoot gets
//! the same path absolute, in one context that all threads share.

use crate::bench::copy::{KernelCopy, RamCopy};
use crate::bench::paths::Paths;
use crate::error::Error;
use lightfoot::{Context, OpenOptions};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::ffi::{CStr, OsStr};
use std::hint::black_box;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Operations between two looks at the clock.
const BATCH: u64 = 100;

/// Names that each thread makes and removes in turn.
const NEW_NAMES: usize = 64;

/// The operations, in the order of the report.
pub(crate) const OPERATIONS: [&str; 4] = ["stat", "stat_same", "open_close", "creat_unlink"];

/// The sides, in the order of the report.
pub(crate) const SIDES: [&str; 2] = ["lightfoot", "kernel"];

/// One contender: an operation on one side at one depth.
pub(crate) struct Case<'a> {
    /// Side and operation: "lightfoot.stat".
    pub(crate) name: String,
    /// Components of the paths.
    pub(crate) depth: usize,
    /// Operations that visit every path once.
    pub(crate) lap: u64,
    /// Does a batch of operations as the given thread from the given path on; gives their number.
    pub(crate) batch: Batch<'a>,
    /// Waits for the work that a slice has deferred, so that it does not run into the next one.
    pub(crate) settle: Option<Box<dyn Fn() + Sync + 'a>>,
}

pub(crate) type Batch<'a> = Box<dyn Fn(usize, &mut usize) -> Result<u64, OperationFailure> + Sync + 'a>;

/// An operation that failed.
pub(crate) struct OperationFailure {
    path: PathBuf,
    error: io::Error,
}

impl OperationFailure {
    pub(crate) fn of(self, case: &Case<'_>) -> Error {
        Error::Operation { case: case.name.clone(), path: self.path, reason: self.error.into() }
    }
}

/// The files of the cases of one depth.
pub(crate) struct Site {
    depth: usize,
    /// Files to look up.
    files: Paths,
    /// Names to make: for each thread, in its own directory.
    new_names: Vec<Paths>,
    /// Where [`Site::new_names`] are looked up from, for each thread: at depth 1 the own directory is the root.
    new_contexts: Vec<Context>,
    new_roots: Vec<OwnedFd>,
    /// The kernel's root, for each thread.
    roots: Vec<OwnedFd>,
}

impl Site {
    /// Prepares for `threads` threads; makes the directories for new files below some of `parents`, of depth `depth` - 2.
    pub(crate) fn new(
        depth: usize,
        files: Paths,
        parents: &[&[u8]],
        threads: usize,
        ram: &RamCopy,
        kernel: Option<&KernelCopy>,
    ) -> Result<Self, Error> {
        let mut site = Self {
            depth,
            files,
            new_names: Vec::new(),
            new_contexts: Vec::new(),
            new_roots: Vec::new(),
            roots: Vec::new(),
        };
        for thread in 0..threads {
            let own_dir = own_dir(depth, thread, parents, ram, kernel)?;
            let (root, dir) = if depth == 1 { (&own_dir[..], &b""[..]) } else { (&b"/"[..], &own_dir[..]) };
            let names: Vec<Vec<u8>> =
                (0..NEW_NAMES).map(|number| [dir, format!("/new-{number:04}").as_bytes()].concat()).collect();
            site.new_names.push(Paths::pack(names.iter().map(Vec::as_slice)));
            let context = ram.context().fork();
            context.chroot(root).map_err(|error| failed_to_prepare(root, error))?;
            site.new_contexts.push(context);
            if let Some(kernel) = kernel {
                let open = |path: &[u8]| kernel.open_dir(path).map_err(|error| failed_to_prepare(path, error));
                site.new_roots.push(open(root)?);
                site.roots.push(open(b"/")?);
            }
        }
        Ok(site)
    }

    /// Returns the number of components of the paths.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the case of the side that is named `side`. The case calls `look_up` for each file,
    /// and `look_up` returns whether the file was found.
    pub(crate) fn paths_case<'a>(
        &'a self,
        side: &str,
        operation: &str,
        look_up: impl Fn(&str) -> bool + Sync + 'a,
    ) -> Case<'a> {
        let files = self.files.text();
        let batch = over(vec![files], move |_, path: &str| match look_up(path) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        });
        self.case(side, operation, batch, None)
    }

    pub(crate) fn lightfoot<'a>(&'a self, operation: &str, ram: &'a RamCopy) -> Case<'a> {
        let context = ram.context();
        let stat = move |_, path: &[u8]| {
            black_box(context.metadata(path)?);
            Ok(())
        };
        let files = self.files.absolute();
        let mut reading = OpenOptions::new();
        reading.read(true);
        let mut making = OpenOptions::new();
        making.write(true).create_new(true).mode(0o600);
        let batch = match operation {
            "stat" => over(vec![files], stat),
            "stat_same" => over(vec![files[..1].to_vec()], stat),
            "open_close" => over(self.dealt(&files), move |_, path: &[u8]| {
                black_box(reading.open(context, path)?);
                Ok(())
            }),
            _ => {
                let names = self.new_names.iter().map(Paths::absolute).collect();
                over(names, move |thread, path: &[u8]| {
                    let context = &self.new_contexts[thread];
                    black_box(making.open(context, path)?);
                    context.remove_file(path)
                })
            }
        };
        let settle: Box<dyn Fn() + Sync> = Box::new(|| ram.vfs().barrier());
        self.case("lightfoot", operation, batch, (operation == "creat_unlink").then_some(settle))
    }

    pub(crate) fn kernel(&self, operation: &str) -> Case<'_> {
        let stat = |thread: usize, path: &CStr| {
            black_box(rustix::fs::statat(&self.roots[thread], path, AtFlags::empty())?);
            Ok(())
        };
        let reading = OFlags::RDONLY | OFlags::CLOEXEC;
        let making = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let files = self.files.relative();
        let batch = match operation {
            "stat" => over(vec![files], stat),
            "stat_same" => over(vec![files[..1].to_vec()], stat),
            "open_close" => over(self.dealt(&files), move |thread, path: &CStr| {
                black_box(rustix::fs::openat(&self.roots[thread], path, reading, Mode::empty())?);
                Ok(())
            }),
            _ => {
                let names = self.new_names.iter().map(Paths::relative).collect();
                over(names, move |thread, path: &CStr| {
                    let root = &self.new_roots[thread];
                    drop(black_box(rustix::fs::openat(root, path, making, Mode::RUSR | Mode::WUSR)?));
                    Ok(rustix::fs::unlinkat(root, path, AtFlags::empty())?)
                })
            }
        };
        self.case("kernel", operation, batch, None)
    }

    /// `paths` dealt out to the threads: a thread that opens a file writes to its reference counts, which must be measured without
    /// a second writer. With fewer paths than threads, some share one.
    fn dealt<P: Copy>(&self, paths: &[P]) -> Vec<Vec<P>> {
        let threads = self.new_names.len();
        let own = |thread| paths.iter().copied().skip(thread % paths.len()).step_by(threads).collect();
        (0..threads).map(own).collect()
    }

    fn case<'a>(
        &self,
        side: &str,
        operation: &str,
        (batch, lap): (Batch<'a>, u64),
        settle: Option<Box<dyn Fn() + Sync + 'a>>,
    ) -> Case<'a> {
        Case { name: format!("{side}.{operation}"), depth: self.depth, lap, batch, settle }
    }
}

/// A value that can be shown as the path of a failure.
trait Shown: Copy + Send + Sync {
    fn bytes(&self) -> &[u8];
}

impl Shown for &[u8] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Shown for &str {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Shown for &CStr {
    fn bytes(&self) -> &[u8] {
        self.to_bytes()
    }
}

/// Returns a batch and the number of paths in a list. Each call of the batch runs `operate` on the
/// next [`BATCH`] paths of the thread's list; after the last path the list begins again. If `lists`
/// has one list, all threads share it.
fn over<'a, P: Shown + 'a>(
    lists: Vec<Vec<P>>,
    operate: impl Fn(usize, P) -> io::Result<()> + Sync + 'a,
) -> (Batch<'a>, u64) {
    let lap = lists[0].len() as u64;
    let batch = move |thread: usize, next: &mut usize| {
        let paths = if lists.len() == 1 { &lists[0] } else { &lists[thread] };
        for _ in 0..BATCH {
            // The first visit may begin anywhere.
            if *next >= paths.len() {
                *next = 0;
            }
            let path = paths[*next];
            operate(thread, path)
                .map_err(|error| OperationFailure { path: OsStr::from_bytes(path.bytes()).into(), error })?;
            *next += 1;
        }
        Ok(BATCH)
    };
    (Box::new(batch), lap)
}

/// Makes a directory of depth `depth` - 1 (1 at least) for one thread, on both sides, below the first of `parents` that
/// lets itself be written to.
fn own_dir(
    depth: usize,
    thread: usize,
    parents: &[&[u8]],
    ram: &RamCopy,
    kernel: Option<&KernelCopy>,
) -> Result<Vec<u8>, Error> {
    let name = format!("/.lightfoot-{depth}-{thread}");
    let mut last = None;
    let turned = parents.iter().cycle().skip(thread).take(parents.len());
    for parent in turned {
        let path = [parent, name.as_bytes()].concat();
        let made = kernel.map_or(Ok(()), |kernel| kernel.mkdir(&path)).and_then(|()| ram.mkdir(&path));
        match made {
            Ok(()) => return Ok(path),
            Err(error) => last = Some((path, error)),
        }
    }
    let (path, error) = last.unwrap_or_else(|| (name.into_bytes(), io::ErrorKind::NotFound.into()));
    Err(failed_to_prepare(&path, error))
}

/// Returns the error of a preparation that failed before anything was measured.
pub(crate) fn failed_to_prepare(path: &[u8], error: io::Error) -> Error {
    Error::Operation { case: "preparation".into(), path: OsStr::from_bytes(path).into(), reason: error.into() }
}
