//! A file system that wraps another one and keeps a ledger of its opens.
//!
//! # What it is
//! A [`Ledger`] is a layer that gives each open its own state around the inner one's, and checks
//! the calls: each call about an open file has the state of an open of that file, with its flags,
//! that was not released; each open is released once. It can refuse opens, and report an error of
//! writing as the host does: to each open of the file once.
//!
//! # How it is locked
//! One mutex around the entries, never held during a call.
//!
//! # Where it comes from
//! `errseq_t` of Linux, for the errors.

use crate::outcome::{Failure, Outcome};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use vfs::{
    Allocate, Copying, Errno, FileSystem, FsTraits, Inode, Layer, Listed, Open, OpenFlags, OpenState, Opened, Position,
    Request, SeekFor, Want, Written,
};

/// A file system that checks the state of each open, and forwards.
pub struct Ledger {
    opens: Arc<Opens>,
    calls: vfs::Opens,
    inner: Box<dyn FileSystem>,
}

/// The opens of a [`Ledger`].
#[derive(Debug, Default)]
pub struct Opens(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    opened: u64,
    released: u64,
    /// Opens that were not released, by number.
    open: BTreeMap<u64, Entry>,
    /// The error with which opens are refused.
    refusal: Option<Errno>,
    /// The first call that should not have come.
    wrong: Option<String>,
}

#[derive(Debug)]
struct Entry {
    node: u64,
    flags: OpenFlags,
    /// An error of writing that this open has not reported yet.
    error: Option<Errno>,
}

/// The state of one open.
struct Numbered {
    number: u64,
    inner: OpenState,
}

impl Opens {
    /// Returns the numbers of opens and releases so far.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let entries = self.0.lock();
        (entries.opened, entries.released)
    }

    /// Makes all later opens fail with `refusal`.
    pub(crate) fn refuse(&self, refusal: Option<Errno>) {
        self.0.lock().refusal = refusal;
    }

    /// Sets an error of writing to the file that was opened last. Each open of the file reports the
    /// error once, when the open is synced or closed.
    pub fn fail_writing(&self, errno: Errno) {
        let mut entries = self.0.lock();
        let last = entries.open.values().next_back().map(|entry| entry.node);
        for entry in entries.open.values_mut().filter(|entry| Some(entry.node) == last) {
            entry.error = Some(errno);
        }
    }

    /// Returns the number of an open that succeeded.
    fn add(&self, node: u64, flags: OpenFlags) -> u64 {
        let mut entries = self.0.lock();
        entries.opened += 1;
        let number = entries.opened;
        entries.open.insert(number, Entry { node, flags, error: None });
        number
    }

    /// Checks the state of a call about `file`, and returns the inner one with the open's error, which is reported now.
    fn check<'o>(&self, what: &str, file: &Open<'o>, takes_error: bool) -> (&'o OpenState, Option<Errno>) {
        let node = file.inode.node();
        let mut entries = self.0.lock();
        let numbered = file.state.get::<Numbered>();
        let entry = numbered.and_then(|numbered| entries.open.get_mut(&numbered.number));
        let found = entry.as_ref().map(|entry| (entry.node, entry.flags));
        let error = entry.and_then(|entry| if takes_error { entry.error.take() } else { None });
        if found != Some((node, file.flags)) {
            let number = numbered.map(|numbered| numbered.number);
            let message = format!(
                "{what}: expected an open of the node {node} with {:?}, got {found:?}, number {number:?}",
                file.flags
            );
            entries.wrong.get_or_insert(message);
        }
        (numbered.map_or(&OpenState::None, |numbered| &numbered.inner), error)
    }

    /// Checks the end of an open.
    fn remove<'o>(&self, file: &Open<'o>) -> &'o OpenState {
        let (inner, _) = self.check("release", file, false);
        if let Some(numbered) = file.state.get::<Numbered>() {
            let mut entries = self.0.lock();
            entries.open.remove(&numbered.number);
            entries.released += 1;
        }
        inner
    }

    /// Checks, after the end of the tree, that each open was released once.
    ///
    /// # Errors
    /// The first error.
    pub fn check_the_end(&self) -> Outcome {
        let entries = self.0.lock();
        if let Some(wrong) = &entries.wrong {
            return Err(Failure::new(wrong.as_str()));
        }
        match (entries.open.values().next(), entries.released == entries.opened) {
            (None, true) => Ok(()),
            (left, _) => Err(Failure::new(format!(
                "expected one release of each of {} opens, got {}; left: {left:?}",
                entries.opened, entries.released
            ))),
        }
    }
}

impl Ledger {
    /// Wraps `inner`.
    pub fn of(inner: Box<dyn FileSystem>) -> (Self, Arc<Opens>) {
        let opens = Arc::new(Opens::default());
        let calls = inner.traits().opens;
        (Self { opens: opens.clone(), calls, inner }, opens)
    }

    /// Forwards a call about an open file.
    fn pass<R>(&self, what: &str, file: &Open<'_>, call: impl FnOnce(&dyn FileSystem, &Open<'_>) -> R) -> R {
        let (state, _) = self.opens.check(what, file, false);
        call(&*self.inner, &Open { state, ..*file })
    }

    /// Forwards a call that reports errors of writing.
    fn report(
        &self,
        what: &str,
        file: &Open<'_>,
        call: impl FnOnce(&dyn FileSystem, &Open<'_>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let (state, error) = self.opens.check(what, file, true);
        call(&*self.inner, &Open { state, ..*file }).and(error.map_or(Ok(()), Err))
    }
}

/// Declares the methods about an open file: each has the name of its way to forward.
macro_rules! passed {
    ($($how:ident fn $name:ident($($arg:ident: $of:ty),*) -> $result:ty;)*) => {
        $(
            fn $name(&self, request: &Request, file: &Open<'_>, $($arg: $of),*) -> Result<$result, Errno> {
                self.$how(stringify!($name), file, |inner, file| inner.$name(request, file, $($arg),*))
            }
        )*
    };
}

impl Layer for Ledger {
    type Inner = dyn FileSystem;

    fn inner(&self) -> &dyn FileSystem {
        &*self.inner
    }

    fn traits(&self) -> FsTraits {
        FsTraits { opens: vfs::Opens::Yes { flush: true }, ..self.inner.traits() }
    }

    fn open(&self, request: &Request, inode: &Inode, flags: OpenFlags) -> Result<Opened, Errno> {
        let refusal = self.opens.0.lock().refusal;
        if let Some(errno) = refusal {
            return Err(errno);
        }
        let opened =
            if self.calls != vfs::Opens::No { self.inner.open(request, inode, flags)? } else { Opened::default() };
        let numbered = Numbered { number: self.opens.add(inode.node(), flags), inner: opened.state };
        Ok(Opened { state: OpenState::Shared(Arc::new(numbered)), ..opened })
    }

    fn release(&self, file: Open<'_>) {
        let state = self.opens.remove(&file);
        if self.calls != vfs::Opens::No {
            self.inner.release(Open { state, ..file });
        }
    }

    passed! {
        pass fn read_dir(after: u64, want: Want, emit: &mut dyn FnMut(Listed) -> bool) -> ();
        pass fn read(offset: u64, buf: &mut [u8]) -> usize;
        pass fn write(at: Position, data: &[u8]) -> Written;
        pass fn allocate(how: Allocate, keep_size: bool, offset: u64, len: u64) -> u64;
        pass fn seek(offset: u64, what: SeekFor) -> u64;
        report fn sync(data_only: bool) -> ();
    }

    fn copy_range(
        &self,
        request: &Request,
        (from, offset): (&Open<'_>, u64),
        (to, at): (&Open<'_>, u64),
        len: u64,
        how: Copying,
    ) -> Result<Written, Errno> {
        self.pass("copy_range", from, |_, from| {
            self.pass("copy_range", to, |inner, to| inner.copy_range(request, (from, offset), (to, at), len, how))
        })
    }

    fn flush(&self, request: &Request, file: &Open<'_>) -> Result<(), Errno> {
        let flushes = self.calls == vfs::Opens::Yes { flush: true };
        self.report("flush", file, |inner, file| if flushes { inner.flush(request, file) } else { Ok(()) })
    }
}

impl core::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Ledger").field("opens", &self.opens).finish_non_exhaustive()
    }
}
