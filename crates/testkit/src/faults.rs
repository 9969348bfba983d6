//! A file system that wraps another one and injects faults.
//!
//! # What it is
//! A [`Faults`] is a layer. At each call the test's plan returns the fault for it, by the method and the number of the call: an error, a
//! short transfer, a delay, or a hang. [`Plan`] is the test's side of it: it sets the plan, releases what hangs, and counts.
//!
//! # What it is not
//! A model of a disk that loses data: `hostfs` has its own faults of system calls.
//!
//! # How it is locked
//! One mutex around the plan and the counts, never held during a call or a wait.
//!
//! # Where it comes from
//! `fault-injection` of Linux, and dm-flakey.
//!
//! ```
//! use lightfoot_testkit::{Fault, Faults, Store};
//! use vfs::{Base, Errno, OpenFlags, Vfs};
//!
//! let (fs, plan) = Faults::of(Box::new(Store::with_paths(&["file"])));
//! plan.set(|call| (call.method == "write" && call.number == 0).then_some(Fault::Short(3)));
//! let file = Vfs::new(fs).context().open(Base::CWD, b"/file", OpenFlags::WRONLY, 0)?;
//! assert_eq!(file.write_at(0, b"hello")?, (3, 3));
//! assert_eq!(plan.injected(), 1);
//! # Ok::<(), Errno>(())
//! ```

use core::fmt;
use core::time::Duration;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use vfs::{
    After, Allocate, Attr, Copying, Errno, FileId, FileSystem, Inode, InodeFlags, Layer, Listed, NewInode, NewNode,
    NextNames, Open, OpenFlags, Opened, Position, Rename, Request, SeekFor, SetAttr, SetXattr, StatFs, Want, Written,
};

/// How often a call that hangs looks at its deadline.
const LOOKS: Duration = Duration::from_millis(5);

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with this, and does nothing. Without effect on `release` and `evict`, which cannot fail.
    Fail(Errno),
    /// `read`, `write` and `copy_range` transfer at most so many bytes. (The end of a file is 0 bytes read.) Without effect on others.
    Short(usize),
    /// It takes so much longer.
    Delay(Duration),
    /// It waits until [`Plan::release`], whatever its caller does, and then continues: a server
    /// that is dead for a while.
    Hang,
    /// It waits until its caller's deadline or cancellation, and fails with that; or until
    /// [`Plan::release`], and continues.
    HangWhileAwaited,
}

/// A call, as a plan sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultyCall {
    /// The name of the method of [`FileSystem`].
    pub method: &'static str,
    /// The number of the call, of this method, since the plan was set; from 0 on.
    pub number: u64,
}

type Decide = dyn Fn(FaultyCall) -> Option<Fault> + Send + Sync;

/// A file system that injects faults: see [`Faults::of`].
pub struct Faults<F: FileSystem + ?Sized> {
    plan: Arc<Plan>,
    inner: Box<F>,
}

/// The faults that a [`Faults`] injects, and has injected.
#[derive(Default)]
pub struct Plan {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    decide: Option<Arc<Decide>>,
    calls: BTreeMap<&'static str, u64>,
    injected: u64,
    hanging: u32,
    /// Counts the releases.
    releases: u64,
}

impl Plan {
    /// Makes `decide` return the fault of each later call, in place of the function before. The
    /// calls are counted from 0 again. It runs without a lock, also for several calls at once.
    pub fn set(&self, decide: impl Fn(FaultyCall) -> Option<Fault> + Send + Sync + 'static) {
        let mut state = self.state.lock();
        state.decide = Some(Arc::new(decide));
        state.calls.clear();
    }

    /// Injects nothing more, and lets all that hangs go on.
    pub fn release(&self) {
        let mut state = self.state.lock();
        state.decide = None;
        state.releases += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Faults injected so far.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.state.lock().injected
    }

    /// Calls of `method` since the plan was set.
    #[must_use]
    pub fn calls(&self, method: &str) -> u64 {
        self.state.lock().calls.get(method).copied().unwrap_or(0)
    }

    /// Calls that hang now.
    #[must_use]
    pub fn hanging(&self) -> u32 {
        self.state.lock().hanging
    }

    /// Waits until `count` calls hang.
    pub fn wait_for(&self, count: u32) {
        self.changed.wait_while(&mut self.state.lock(), |state| state.hanging < count);
    }

    /// Injects the fault of a call; returns the most that it may transfer.
    fn inject(&self, method: &'static str, request: Option<&Request>) -> Result<usize, Errno> {
        let (number, decide) = {
            let mut state = self.state.lock();
            let count = state.calls.entry(method).or_default();
            *count += 1;
            (*count - 1, state.decide.clone())
        };
        let fault = decide.and_then(|decide| decide(FaultyCall { method, number }));
        self.state.lock().injected += u64::from(fault.is_some());
        match fault {
            None => {}
            Some(Fault::Fail(errno)) => return Err(errno),
            Some(Fault::Short(most)) => return Ok(most),
            Some(Fault::Delay(delay)) => std::thread::sleep(delay),
            Some(Fault::Hang) => self.hang(None)?,
            Some(Fault::HangWhileAwaited) => self.hang(request)?,
        }
        Ok(usize::MAX)
    }

    /// Waits for a release, or until the caller of `request` has left.
    fn hang(&self, request: Option<&Request>) -> Result<(), Errno> {
        let mut state = self.state.lock();
        let releases = state.releases;
        state.hanging += 1;
        self.changed.notify_all();
        let mut left = Ok(());
        while state.releases == releases && left.is_ok() {
            self.changed.wait_for(&mut state, LOOKS);
            left = request.map_or(Ok(()), Request::check);
        }
        state.hanging -= 1;
        if state.releases == releases { left } else { Ok(()) }
    }
}

impl<F: FileSystem + ?Sized> Faults<F> {
    /// Wraps `inner`, without faults at first.
    pub fn of(inner: Box<F>) -> (Self, Arc<Plan>) {
        let plan = Arc::new(Plan::default());
        (Self { plan: plan.clone(), inner }, plan)
    }
}

/// Declares the methods that can fail, and that transfer nothing.
macro_rules! faulty {
    ($(fn $name:ident($($arg:ident: $of:ty),*) -> $result:ty;)*) => {
        $(
            fn $name(&self, request: &Request, $($arg: $of),*) -> Result<$result, Errno> {
                self.plan.inject(stringify!($name), Some(request))?;
                self.inner.$name(request, $($arg),*)
            }
        )*
    };
}

impl<F: FileSystem + ?Sized> Layer for Faults<F> {
    type Inner = F;

    fn inner(&self) -> &F {
        &self.inner
    }

    faulty! {
        fn lookup(dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> NewInode;
        fn revalidate(dir: &Inode, name: &[u8], inode: &Inode) -> NewInode;
        fn by_id(id: &FileId) -> NewInode;
        fn parent(id: &FileId) -> (FileId, Box<[u8]>);
        fn read_link(inode: &Inode) -> Box<[u8]>;
        fn read_dir(dir: &Open<'_>, after: u64, want: Want, emit: &mut dyn FnMut(Listed) -> bool) -> ();
        fn create(dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> u64;
        fn link(dir: &Inode, name: &[u8], inode: &Inode) -> After;
        fn unlink(dir: &Inode, name: &[u8], inode: &Inode) -> After;
        fn rename(rename: &Rename<'_>) -> After;
        fn set_attr(inode: &Inode, set: &SetAttr) -> After;
        fn attributes(inode: &Inode) -> Attr;
        fn birth(inode: &Inode) -> Option<i64>;
        fn open(inode: &Inode, flags: OpenFlags) -> Opened;
        fn set_len(inode: &Inode, len: u64) -> (u64, After);
        fn allocate(file: &Open<'_>, how: Allocate, keep_size: bool, offset: u64, len: u64) -> u64;
        fn seek(file: &Open<'_>, offset: u64, what: SeekFor) -> u64;
        fn sync(file: &Open<'_>, data_only: bool) -> ();
        fn flush(file: &Open<'_>) -> ();
        fn get_xattr(inode: &Inode, name: &[u8]) -> Box<[u8]>;
        fn set_xattr(inode: &Inode, name: &[u8], value: &[u8], how: SetXattr) -> ();
        fn remove_xattr(inode: &Inode, name: &[u8]) -> ();
        fn list_xattrs(inode: &Inode) -> Vec<Box<[u8]>>;
        fn statfs(inode: &Inode) -> StatFs;
        fn inode_flags(inode: &Inode) -> InodeFlags;
        fn set_inode_flags(inode: &Inode, flags: InodeFlags) -> ();
    }

    fn lookup_many(
        &self,
        request: &Request,
        wanted: &[(&Inode, &[u8])],
        found: &mut dyn FnMut(usize, Result<NewInode, Errno>),
    ) {
        match self.plan.inject("lookup_many", Some(request)) {
            Ok(_) => self.inner.lookup_many(request, wanted, found),
            Err(errno) => (0..wanted.len()).for_each(|place| found(place, Err(errno))),
        }
    }

    fn release(&self, file: Open<'_>) {
        let _ = self.plan.inject("release", None);
        self.inner.release(file);
    }

    fn read(&self, request: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let len = self.plan.inject("read", Some(request))?.min(buf.len());
        self.inner.read(request, file, offset, &mut buf[..len])
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        let len = self.plan.inject("write", Some(request))?.min(data.len());
        self.inner.write(request, file, at, &data[..len])
    }

    fn copy_range(
        &self,
        request: &Request,
        from: (&Open<'_>, u64),
        to: (&Open<'_>, u64),
        len: u64,
        how: Copying,
    ) -> Result<Written, Errno> {
        let most = self.plan.inject("copy_range", Some(request))?;
        self.inner.copy_range(request, from, to, len.min(most as u64), how)
    }

    fn evict(&self, inode: &Inode) {
        let _ = self.plan.inject("evict", None);
        self.inner.evict(inode);
    }
}

impl<F: FileSystem + ?Sized> fmt::Debug for Faults<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Plan")
            .field("injected", &state.injected)
            .field("hanging", &state.hanging)
            .finish_non_exhaustive()
    }
}
