//! A small file system that keeps its own names, and changes them behind the caches.
//!
//! Directories: the root (1), `d1` (2), `d2` (3) and `many` (4), in which every name `n<number>` is a file. Files come
//! and go in `d1` and `d2`. Contents: none. Each call takes some virtual time after what it read or changed, so that
//! others come between.
//!
//! Its lock is the standard library's, which the simulator does not see: it is never held across a simulated access.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use vfs_sim::{Attr, Errno, FileSystem, Inode, Invalidator, NewInode, RenameFlags, Request, S_IFDIR, S_IFREG};

pub(crate) const ROOT: u64 = 1;
pub(crate) const D1: u64 = 2;
pub(crate) const D2: u64 = 3;
const MANY: u64 = 4;

/// The node of `many/n0`.
const FIRST_OF_MANY: u64 = 1 << 32;

type Result<T> = core::result::Result<T, Errno>;

#[derive(Default)]
struct Names {
    files: BTreeMap<(u64, Vec<u8>), u64>,
    last_node: u64,
    invalidator: Option<Invalidator>,
}

/// A handle on the names.
#[derive(Clone)]
pub(crate) struct KeptNames(Arc<Mutex<Names>>);

fn new_inode(node: u64) -> NewInode {
    let (mode, nlink) = if node <= MANY { (S_IFDIR | 0o755, 2) } else { (S_IFREG | 0o644, 1) };
    NewInode { node, attr: Attr { ino: node, mode, nlink, ..Attr::default() }, ..NewInode::default() }
}

impl KeptNames {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Names { last_node: 100, ..Names::default() })))
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().expect("no panic while it is held")
    }

    /// Makes a file behind the caches.
    pub(crate) fn put(&self, dir: u64, name: &[u8]) -> u64 {
        let mut names = self.names();
        names.last_node += 1;
        let node = names.last_node;
        names.files.insert((dir, name.into()), node);
        node
    }

    /// Removes a file behind the caches.
    pub(crate) fn take(&self, dir: u64, name: &[u8]) {
        self.names().files.remove(&(dir, name.into()));
    }

    /// All files of `d1` and `d2`: directory, name.
    pub(crate) fn all(&self) -> Vec<(u64, String)> {
        self.names().files.keys().map(|(dir, name)| (*dir, String::from_utf8_lossy(name).into_owned())).collect()
    }

    pub(crate) fn invalidator(&self) -> Invalidator {
        self.names().invalidator.clone().expect("mounted")
    }
}

impl FileSystem for KeptNames {
    fn root(&self) -> NewInode {
        new_inode(ROOT)
    }

    fn mounted(&self, invalidator: Invalidator) {
        self.names().invalidator = Some(invalidator);
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8]) -> Result<NewInode> {
        let dir = dir.node();
        let text = core::str::from_utf8(name).map_err(|_| Errno::ENOENT)?;
        let node = match (dir, text) {
            (ROOT, "d1") => Some(D1),
            (ROOT, "d2") => Some(D2),
            (ROOT, "many") => Some(MANY),
            (MANY, text) => {
                text.strip_prefix('n').and_then(|number| number.parse().ok()).map(|n: u64| FIRST_OF_MANY + n)
            }
            _ => self.names().files.get(&(dir, name.into())).copied(),
        };
        // The answer is on its way.
        sim::cost(1500);
        node.map(new_inode).ok_or(Errno::ENOENT)
    }

    fn create(&self, _: &Request, dir: &Inode, name: &[u8], attr: &mut Attr, _: Option<&[u8]>) -> Result<u64> {
        let dir = dir.node();
        attr.ino = self.put(dir, name);
        sim::cost(300);
        Ok(attr.ino)
    }

    fn unlink(&self, _: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<()> {
        let (dir, node) = (dir.node(), inode.node());
        let removed = self.names().files.remove(&(dir, name.into()));
        assert_eq!(removed, Some(node), "what the cache removes is there");
        sim::cost(300);
        Ok(())
    }

    fn rename(
        &self,
        _: &Request,
        (from, old): (&Inode, &[u8]),
        (to, new): (&Inode, &[u8]),
        inode: &Inode,
        target: Option<&Inode>,
        _: RenameFlags,
    ) -> Result<()> {
        let (from, to, node, target) = (from.node(), to.node(), inode.node(), target.map(Inode::node));
        let mut names = self.names();
        let moved = names.files.remove(&(from, old.into()));
        let replaced = names.files.insert((to, new.into()), node);
        drop(names);
        assert_eq!((moved, replaced), (Some(node), target), "what the cache moves and replaces is there");
        sim::cost(300);
        Ok(())
    }
}
