//! The file system: the methods of the trait.

use crate::blocks::Blocks;
use crate::bucket::{Bucket, BucketError};
use crate::buffer::Allowance;
use crate::calls::Calls;
use crate::deadline::Deadline;
use crate::failures::Failures;
use crate::kept::{Kept, kept_bits};
use crate::key::Key;
use crate::meta::Kind;
use crate::node::{Facts, Node, left};
use crate::nodes::{Nodes, ROOT};
use crate::options::ObjectOptions;
use crate::store::{Ending, Store};
use core::fmt;
use core::time::Duration;
use opendal::Operator;
use opendal::layers::TimeoutLayer;
use parking_lot::{Mutex, RwLock};
use pathfs::HashOrder;
use std::sync::{Arc, OnceLock};
use vfs::{
    After, Attr, Errno, FileSystem, FsTraits, Inode, Invalidator, Listed, NAME_MAX, NameStore, NewInode, NewNode,
    NextNames, Open, OpenFlags, Opened, Opens, OwnNames, Position, Rename, Request, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG,
    SetAttr, StatFs, Valid, Want, Written,
};

/// The free bytes that `statfs` reports: a store has no limit, but programs look for one.
const ROOM: u64 = 1 << 50;

/// An object store as a file system; see the [crate's documentation](crate).
pub struct ObjectFs {
    pub(crate) store: Store,
    pub(crate) options: ObjectOptions,
    /// How long this file system uses an answer. The VFS then uses the answer for as long again at
    /// most.
    pub(crate) ttl: Duration,
    /// Held shared by threads that write objects, and exclusively while a directory is renamed.
    pub(crate) moves: RwLock<()>,
    pub(crate) nodes: Mutex<Nodes>,
    pub(crate) blocks: Blocks,
    /// The bytes for requests ahead of readers.
    pub(crate) windows: Allowance,
    pub(crate) failures: Mutex<Failures>,
    pub(crate) order: HashOrder,
    /// The time of all directories.
    began: i64,
    pub(crate) invalidator: OnceLock<Invalidator>,
}

impl ObjectFs {
    /// Returns a file system over the objects of `operator`, to which it adds layers for timeouts
    /// and retries. Starts two threads. The file system must be used, and dropped, by threads that
    /// do not run tasks of tokio.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub fn new(operator: Operator, options: ObjectOptions) -> std::io::Result<Self> {
        let timeout = TimeoutLayer::new().with_timeout(options.timeout).with_io_timeout(options.timeout);
        let calls = Calls::default();
        let store = Store::new(operator.layer(timeout), &options, calls)?;
        Ok(Self::over(store, options))
    }

    /// Returns a file system over a bucket, as [`ObjectFs::new`] over an operator. Makes no request.
    ///
    /// # Errors
    /// [`BucketError`], if the endpoint is not a URL, or the threads cannot be started.
    pub fn in_bucket(bucket: &Bucket, options: ObjectOptions) -> Result<Self, BucketError> {
        let calls = Calls::default();
        let (operator, transport) = bucket.operator(&options, &calls)?;
        let mut store = Store::new(operator, &options, calls).map_err(BucketError::Threads)?;
        (store.transport, store.keeps) = (Some(transport), options.keeps_attributes);
        Ok(Self::over(store, options))
    }

    fn over(store: Store, options: ObjectOptions) -> Self {
        Self {
            store,
            ttl: options.ttl / 2,
            moves: RwLock::new(()),
            nodes: Mutex::new(Nodes::new()),
            blocks: Blocks::new(options.cache_bytes / 4 * 3),
            windows: Allowance::new(options.cache_bytes / 4),
            failures: Mutex::default(),
            order: HashOrder::default(),
            began: prim::clock::now_ns(),
            invalidator: OnceLock::new(),
            options,
        }
    }

    /// Makes one request, to find out whether the store can be used. Takes at most
    /// [`ObjectOptions::timeout`], with all tries.
    ///
    /// # Errors
    /// The store's error.
    pub fn check(&self) -> opendal::Result<()> {
        self.store.check()
    }

    /// Aborts the uploads in parts below this tree's prefix in which nothing has happened for a day, in
    /// the background: programs left them that ended before their uploads. They cost storage. To be
    /// called after [`ObjectFs::check`]. Does nothing in a store without such uploads.
    pub fn abort_old_uploads(&self) {
        self.store.abort_old();
    }

    /// Returns the numbers of requests to the store. The numbers go on counting.
    #[must_use]
    pub fn calls(&self) -> Calls {
        self.store.calls.clone()
    }

    /// Returns the handle that bounds all requests when the process is about to end.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.store.ending()
    }

    /// Returns the node of an inode.
    ///
    /// # Errors
    /// `ESTALE` if the node was removed and forgotten.
    pub(crate) fn node(&self, inode: &Inode) -> Result<Arc<Node>, Errno> {
        self.nodes.lock().get(inode.node()).cloned().ok_or(Errno::ESTALE)
    }

    /// Returns the key of a node.
    ///
    /// # Errors
    /// `ESTALE` if the node was removed.
    pub(crate) fn key_of(&self, node: u64) -> Result<Key, Errno> {
        self.nodes.lock().key(node).ok_or(Errno::ESTALE)
    }

    /// Returns the attributes of a directory.
    fn dir_attr(&self, node: u64, kept: &Kept) -> Attr {
        // One link, as in other file systems that do not count subdirectories.
        let attr = Attr { ino: node, mode: S_IFDIR | 0o755, nlink: 1, ..Attr::default() };
        self.with_kept(attr, kept, self.began)
    }

    /// Returns the attributes of a node, as far as the node has them.
    pub(crate) fn attr(&self, node: &Node, facts: &Facts) -> Attr {
        let kept = facts.local.map_or(facts.kept, |local| local.kept);
        if node.is_dir {
            return self.dir_attr(node.id, &kept);
        }
        let stored = facts.meta.as_ref().map(|meta| (meta.size, meta.modified));
        let size = facts.local.map(|local| local.size).or(stored.map(|stored| stored.0)).unwrap_or(0);
        let (nlink, blocks) = (u32::from(!facts.is_nameless), size.div_ceil(512));
        let (mode, kept) = match node.kind {
            Kind::Link => (S_IFLNK | 0o777, Kept { mode: None, ..kept }),
            _ => (S_IFREG | 0o644, kept),
        };
        let attr = Attr { ino: node.id, mode, nlink, size, blocks, ..Attr::default() };
        self.with_kept(attr, &kept, stored.map_or(self.began, |stored| stored.1))
    }

    /// Puts the attributes of an object's metadata over the ones that an object without them has.
    fn with_kept(&self, attr: Attr, kept: &Kept, modified: i64) -> Attr {
        let mtime = kept.mtime.unwrap_or(modified);
        let (atime, ctime) = (kept.atime.unwrap_or(mtime), kept.ctime.unwrap_or(modified));
        let mode = kept.mode.map_or(attr.mode, |mode| attr.mode & S_IFMT | mode & kept_bits(attr.is_dir()));
        let (uid, gid) = self.options.owner;
        let owner = self.keeps_owners().then(|| (kept.uid.unwrap_or(uid), kept.gid.unwrap_or(gid)));
        let (uid, gid) = owner.unwrap_or((uid, gid));
        Attr { mode, uid, gid, atime, mtime, ctime, ..attr }
    }

    /// Returns whether objects keep their owners: if root owns the tree.
    pub(crate) fn keeps_owners(&self) -> bool {
        self.store.keeps && self.options.owner.0 == 0
    }

    /// Returns whether the facts about a name are valid, its attributes included.
    pub(crate) fn is_known(&self, facts: &Facts) -> bool {
        facts.local.is_some() || !self.left(facts).is_zero()
    }

    /// Returns for how long the facts about a name are valid, its attributes included.
    fn left(&self, facts: &Facts) -> Duration {
        if facts.local.is_some() {
            return self.ttl;
        }
        let kept = if self.store.keeps { left(facts.kept_at, self.ttl) } else { Duration::MAX };
        left(facts.fetched, self.ttl).min(kept)
    }

    /// Returns a node as an answer about its name.
    pub(crate) fn new_inode(&self, node: &Node, facts: &Facts) -> NewInode {
        let left = self.left(facts);
        let valid = Valid::For(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX));
        NewInode { node: node.id, attr: self.attr(node, facts), valid, ..NewInode::default() }
    }

    fn valid(&self) -> Valid {
        Valid::For(u64::try_from(self.ttl.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl FileSystem for ObjectFs {
    fn mounted(&self, invalidator: Invalidator) {
        let _ = self.invalidator.set(invalidator);
    }

    fn root(&self) -> NewInode {
        NewInode {
            node: ROOT,
            attr: self.dir_attr(ROOT, &Kept::default()),
            valid: Valid::UntilInvalidated,
            ..NewInode::default()
        }
    }

    fn traits(&self) -> FsTraits {
        FsTraits {
            type_name: "objects".into(),
            names: NameStore::FileSystem(OwnNames { valid: self.valid(), remote: true, ..OwnNames::default() }),
            opens: Opens::Yes { flush: true },
            is_cancellable: true,
            ..FsTraits::default()
        }
    }

    fn lookup(&self, request: &Request, dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.look_up(Deadline::of(request), dir.node(), name, next)
    }

    fn read_dir(
        &self,
        request: &Request,
        dir: &Open<'_>,
        after: u64,
        want: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        self.list(Deadline::of(request), dir, after, want, emit)
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        let name = name.ok_or(Errno::EOPNOTSUPP)?;
        self.make(Deadline::of(request), dir.node(), name, new)
    }

    fn read_link(&self, request: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        self.link_body(Deadline::of(request), &*self.node(inode)?)
    }

    fn link(&self, _: &Request, _: &Inode, _: &[u8], _: &Inode) -> Result<After, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        self.remove(Deadline::of(request), dir.node(), name, &*self.node(inode)?).map(|()| After::NONE)
    }

    fn rename(&self, request: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
        self.move_name(Deadline::of(request), rename).map(|()| After::NONE)
    }

    fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
        self.set_attributes(request, inode, set).map(|()| After::NONE)
    }

    fn attributes(&self, request: &Request, inode: &Inode) -> Result<Attr, Errno> {
        self.current_attr(Deadline::of(request), &*self.node(inode)?)
    }

    fn open(&self, request: &Request, inode: &Inode, flags: OpenFlags) -> Result<Opened, Errno> {
        self.begin_open(Deadline::of(request), &*self.node(inode)?, flags)
    }

    fn release(&self, file: Open<'_>) {
        self.end_open(&file);
    }

    fn read(&self, request: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.read_at(Deadline::of(request), file, offset, buf)
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        self.write_at(request, file.inode, at, data)
    }

    fn set_len(&self, request: &Request, inode: &Inode, len: u64) -> Result<(u64, After), Errno> {
        self.resize(request, inode, len).map(|blocks| (blocks, After::NONE))
    }

    fn sync(&self, request: &Request, file: &Open<'_>, _: bool) -> Result<(), Errno> {
        self.save(Deadline::of(request), file.inode)
    }

    fn flush(&self, request: &Request, file: &Open<'_>) -> Result<(), Errno> {
        self.save(Deadline::of(request), file.inode)
    }

    fn statfs(&self, _: &Request, _: &Inode) -> Result<StatFs, Errno> {
        let blocks = ROOM / 4096;
        Ok(StatFs {
            kind: 0,
            block_size: 4096,
            blocks,
            blocks_free: blocks,
            blocks_available: blocks,
            files: blocks,
            files_free: blocks,
            name_max: NAME_MAX as u32,
        })
    }

    fn evict(&self, inode: &Inode) {
        self.nodes.lock().evicted(inode.node());
    }
}

impl fmt::Debug for ObjectFs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectFs")
            .field("store", &self.store)
            .field("nodes", &self.nodes.lock().len())
            .field("cached_bytes", &self.blocks.weight())
            .finish_non_exhaustive()
    }
}
