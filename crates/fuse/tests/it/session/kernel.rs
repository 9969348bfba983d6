//! A kernel in miniature: a session over a tree in memory, and a check that nothing is left at the end.

use lightfoot_fuse::{Caller, Entry, Gauge, NewMode, ROOT_NODE, Session, SessionOptions};
use ramfs::RamFs;
use std::ops::Deref;
use std::sync::Arc;
use vfs::{Base, Errno, FileSystem, Vfs};

/// Root, without supplementary groups.
pub(crate) const SUPER: Caller = Caller::of(0, 0);

/// A user.
pub(crate) const USER: Caller = Caller::of(5, 5);

/// Modes for files and directories.
pub(crate) const PLAIN: NewMode<'_> = NewMode::new(0o644, 0);
pub(crate) const DIR: NewMode<'_> = NewMode::new(0o755, 0);

/// `open(2)`.
pub(crate) const RDONLY: u32 = 0;
pub(crate) const WRONLY: u32 = 1;
pub(crate) const RDWR: u32 = 2;

/// A session and its tree.
pub(crate) struct Kernel {
    pub(crate) session: Arc<Session>,
    pub(crate) vfs: Vfs,
}

impl Kernel {
    pub(crate) fn new() -> Self {
        Self::with(SessionOptions::default())
    }

    pub(crate) fn with(options: SessionOptions) -> Self {
        Self::over(RamFs::new(), options)
    }

    pub(crate) fn over(fs: impl FileSystem, options: SessionOptions) -> Self {
        let vfs = Vfs::new(fs);
        let session = Session::new(&vfs, options).unwrap();
        Self { session, vfs }
    }

    /// LOOKUP by root in the root.
    pub(crate) fn look(&self, name: &str) -> Result<Entry, Errno> {
        self.session.lookup(&SUPER, ROOT_NODE, name.as_bytes())
    }

    /// Creates a file in the root.
    pub(crate) fn file(&self, name: &str) -> Entry {
        self.session.mknod(&SUPER, ROOT_NODE, name.as_bytes(), PLAIN, 0).unwrap()
    }

    /// Creates a directory in the root.
    pub(crate) fn dir(&self, name: &str) -> Entry {
        self.session.mkdir(&SUPER, ROOT_NODE, name.as_bytes(), DIR).unwrap()
    }

    /// The current value of a gauge.
    pub(crate) fn gauge(&self, gauge: Gauge) -> u64 {
        self.session.measure();
        self.session.metrics().get(gauge)
    }

    /// Held places. (Every context holds the root, which is left out.)
    pub(crate) fn held(&self) -> Vec<String> {
        let holders = self.vfs.context().holders(Base::CWD, b"/").unwrap();
        let paths = holders.into_iter().map(|holder| holder.path.into_os_string().into_string().unwrap());
        paths.filter(|path| path != "/").collect()
    }

    /// Checks that no node, handle or place is left.
    pub(crate) fn check_nothing_left(&self, label: &str) {
        let known = (self.session.known_nodes(), self.gauge(Gauge::Lookups), self.session.open_handles());
        assert_eq!(known, (1, 0, 0), "{label}: nodes, lookups, handles");
        assert_eq!(self.gauge(Gauge::ExcessForgets), 0, "{label}: forgets in excess");
        assert_eq!(self.held(), [""; 0], "{label}: places that are held");
    }
}

impl Deref for Kernel {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}
