//! A file system in memory that keeps its own names, for tests.
//!
//! # What it is
//! The cache has to look up each name here, as on a disk or a server. A [`Store`] counts its
//! lookups, runs a hook before and after each request (to count, delay or fail it, or to change
//! something at that moment), and can be changed behind its trees. A symbolic link comes with its
//! body, and every number is also the inode number.
//!
//! # What it is not
//! Fast, or limited, except by [`StoreOptions::quota`]: contents are vectors, there are no holes and no `statfs(2)`.
//!
//! # How it is locked
//! One mutex around names and files, held for one request and never while a hook runs or an inode is read; one around the
//! counts.
//!
//! # Where it comes from
//! Own code; it replaces five file systems of the workspace's tests.
//!
//! ```
//! use lightfoot_testkit::{Call, Store};
//! use vfs::{Base, Errno};
//!
//! let store = Store::with_paths(&["dir/", "dir/file", "link -> dir/file"]);
//! let context = store.tree().context();
//! assert_eq!(context.attr(Base::CWD, b"/link", true)?.ino, store.node("dir/file"));
//! assert_eq!(store.lookups(), 3);
//! store.before(|call| match call {
//!     Call::Create { .. } => Err(Errno::ENOSPC),
//!     _ => Ok(()),
//! });
//! assert_eq!(context.mkdir(Base::CWD, b"/new", 0o755), Err(Errno::ENOSPC));
//! # Ok::<(), Errno>(())
//! ```

mod call;
mod nodes;
mod quota;
mod requests;

pub use call::Call;
pub use quota::StoreQuota;

use crate::subject::Outside;
use nodes::Nodes;
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use vfs::{Attr, Errno, Invalidator, NewNode, S_IFDIR, S_IFLNK, S_IFREG, Valid, Vfs};

/// The number of the root directory.
const ROOT: u64 = 1;

/// The properties that a [`Store`] reports when it is mounted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Whether its names live in the cache: [`vfs::NameStore::Cache`]. Then it ignores the next three, and `remote`.
    pub names_in_cache: bool,
    /// As [`vfs::OwnNames::keeps_listings`].
    pub keeps_listings: bool,
    /// Whether it keeps the attributes: [`vfs::Attributes::FileSystem`].
    pub reports_attributes: bool,
    /// Whether its changes return attributes.
    pub returns_attributes: bool,
    /// Whether its listings have attributes, for callers that want them.
    pub lists_attributes: bool,
    /// Whether a lookup also returns the walk's next names.
    pub answers_ahead: bool,
    /// As [`vfs::OwnNames::remote`].
    pub remote: bool,
    /// How long its answers are valid.
    pub valid: Valid,
    /// The quota of each user; `None`: no limit.
    pub quota: Option<StoreQuota>,
}

type Act = dyn Fn(&Call<'_>) -> Result<(), Errno> + Send + Sync;

/// The action at each request.
#[derive(Default)]
struct Hook(Mutex<Option<Arc<Act>>>);

impl Hook {
    fn set(&self, act: impl Fn(&Call<'_>) -> Result<(), Errno> + Send + Sync + 'static) {
        *self.0.lock() = Some(Arc::new(act));
    }

    fn run(&self, call: &Call<'_>) -> Result<(), Errno> {
        let act = self.0.lock().clone();
        act.map_or(Ok(()), |act| act(call))
    }
}

struct Inner {
    options: StoreOptions,
    nodes: Mutex<Nodes>,
    /// Lookups by directory and name.
    lookups: Mutex<BTreeMap<(u64, Vec<u8>), u32>>,
    before: Hook,
    after: Hook,
    invalidator: OnceLock<Invalidator>,
}

/// A file system in memory that keeps its own names, with hooks before and after each request. Clones are the same store;
/// each tree that is made from it begins with an empty cache.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

impl Store {
    /// The number of the root directory.
    pub const ROOT: u64 = ROOT;

    /// Returns an empty store.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        Self(Arc::new(Inner {
            options,
            nodes: Mutex::new(Nodes::new(ROOT)),
            lookups: Mutex::default(),
            before: Hook::default(),
            after: Hook::default(),
            invalidator: OnceLock::new(),
        }))
    }

    /// Returns a store that has these paths; parents come first. See [`Store::make`] for their
    /// form.
    #[must_use]
    pub fn with_paths(paths: &[&str]) -> Self {
        Self::with_options(StoreOptions::default(), paths)
    }

    /// Returns a store with these options and these files.
    #[must_use]
    pub fn with_options(options: StoreOptions, paths: &[&str]) -> Self {
        let store = Self::new(options);
        for path in paths {
            let (place, body) = path.split_once(" -> ").map_or((*path, ""), |(place, _)| (place, &path[place.len()..]));
            let cut = place.trim_end_matches('/').rfind('/');
            let (parent, name) = cut.map_or(("", place), |cut| (&place[..cut], &place[cut + 1..]));
            store.make(store.node(parent), &format!("{name}{body}"));
        }
        store
    }

    /// Returns a tree over this store, with an empty cache.
    #[must_use]
    pub fn tree(&self) -> Vfs {
        Vfs::new(self.clone())
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.0.nodes.lock()
    }

    /// Has `act` run before each request, in place of what [`Store::before`] set earlier. An error is the reply, and nothing else
    /// happens then.
    pub fn before(&self, act: impl Fn(&Call<'_>) -> Result<(), Errno> + Send + Sync + 'static) {
        self.0.before.set(act);
    }

    /// Has `act` run after each request, when the answer is determined but not returned yet; in place of what [`Store::after`]
    /// set earlier. An error is the reply, whatever the answer was.
    pub fn after(&self, act: impl Fn(&Call<'_>) -> Result<(), Errno> + Send + Sync + 'static) {
        self.0.after.set(act);
    }

    /// Returns the invalidator of the first tree.
    ///
    /// # Panics
    /// If no tree was made yet.
    #[must_use]
    pub fn invalidator(&self) -> &Invalidator {
        self.0.invalidator.get().expect("a tree over the store")
    }

    fn count_lookup(&self, dir: u64, name: &[u8]) {
        *self.0.lookups.lock().entry((dir, name.to_vec())).or_default() += 1;
    }

    /// Lookups of any name so far.
    #[must_use]
    pub fn lookups(&self) -> u32 {
        self.0.lookups.lock().values().sum()
    }

    /// Lookups of `name` in the directory `dir` so far.
    #[must_use]
    pub fn lookups_of(&self, dir: u64, name: &str) -> u32 {
        self.0.lookups.lock().get(&(dir, name.into())).copied().unwrap_or(0)
    }
}

/// Changes behind the trees, without a word to their caches.
impl Store {
    /// Returns the number of the file at `path`, of which no component is a symbolic link.
    ///
    /// # Panics
    /// If the path does not exist.
    #[must_use]
    pub fn node(&self, path: &str) -> u64 {
        let nodes = self.nodes();
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.fold(ROOT, |dir, name| {
            nodes.find(dir, name.as_bytes()).unwrap_or_else(|_| panic!("{path}: no such path in the store"))
        })
    }

    /// Makes an empty file; with a slash at the end of `name` a directory; as `name -> body` a symbolic link. Returns its number.
    pub fn make(&self, dir: u64, name: &str) -> u64 {
        let (name, mode, body) = match (name.split_once(" -> "), name.strip_suffix('/')) {
            (Some((name, body)), _) => (name, S_IFLNK | 0o777, Some(body)),
            (None, Some(name)) => (name, S_IFDIR | 0o755, None),
            (None, None) => (name, S_IFREG | 0o644, None),
        };
        let attr = Attr { mode, size: body.map_or(0, str::len) as u64, ..Attr::default() };
        let mut nodes = self.nodes();
        let mut new = NewNode::new(attr);
        new.link_body = body.map(str::as_bytes);
        let node = nodes.create(&new);
        nodes.enter(dir, name.as_bytes(), node);
        node
    }

    /// Gives `node` the further name `name` in `dir`.
    pub fn link(&self, dir: u64, name: &str, node: u64) {
        self.nodes().enter(dir, name.as_bytes(), node);
    }

    /// Removes a name.
    pub fn remove(&self, dir: u64, name: &str) {
        self.nodes().remove(dir, name.as_bytes());
    }

    /// Returns the file that `name` in the directory `dir` leads to.
    #[must_use]
    pub fn find(&self, dir: u64, name: &[u8]) -> Option<u64> {
        self.nodes().find(dir, name).ok()
    }

    /// Returns the names in the directory `dir`, in the order in which they were entered.
    #[must_use]
    pub fn names(&self, dir: u64) -> Vec<String> {
        let listed = self.nodes().list(dir, 0).into_iter();
        listed.map(|(entry, _)| String::from_utf8_lossy(&entry.name).into_owned()).collect()
    }

    /// Changes the attributes of `node`.
    ///
    /// # Panics
    /// If the file does not exist.
    pub fn change(&self, node: u64, change: impl FnOnce(&mut Attr)) {
        change(&mut self.nodes().get_mut(node).expect("a file of the store").attr);
    }

    /// Replaces the contents of `node`.
    ///
    /// # Panics
    /// If the file does not exist.
    pub fn write(&self, node: u64, contents: &[u8]) {
        let mut nodes = self.nodes();
        let node = nodes.get_mut(node).expect("a file of the store");
        node.set_len(0, 0);
        node.write(0, contents, 0).expect("contents of a test");
    }
}

/// Returns the directory and the name of a path, which has no slash before it.
fn split(path: &[u8]) -> (&str, &str) {
    let path = core::str::from_utf8(path).expect("a path in UTF-8");
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Outside for Store {
    fn write(&self, path: &[u8], contents: &[u8]) {
        let (dir, name) = split(path);
        let dir = self.node(dir);
        let node = self.find(dir, name.as_bytes()).unwrap_or_else(|| self.make(dir, name));
        self.write(node, contents);
        self.invalidator().entry(dir, name.as_bytes());
        self.invalidator().inode(node);
    }

    fn remove(&self, path: &[u8]) {
        let (dir, name) = split(path);
        let dir = self.node(dir);
        self.remove(dir, name);
        self.invalidator().entry(dir, name.as_bytes());
        self.invalidator().inode(dir);
    }
}

impl core::fmt::Debug for Store {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Store").field("options", &self.0.options).field("nodes", &*self.nodes()).finish_non_exhaustive()
    }
}
