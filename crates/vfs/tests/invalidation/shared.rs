//! A file system that others change, too: directly, behind the back of its trees.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use vfs::{
    Attr, Errno, FileSystem, Inode, Invalidator, NewInode, RenameFlags, Request, S_IFDIR, S_IFREG, SetAttr, Valid, Vfs,
    Written,
};

/// The root's node.
pub(crate) const ROOT: u64 = 1;

#[derive(Debug, Default)]
pub(crate) struct State {
    attrs: BTreeMap<u64, Attr>,
    entries: BTreeMap<(u64, Vec<u8>), u64>,
    next: u64,
    /// Calls of `lookup` (the default of `revalidate` among them).
    asked: BTreeMap<(u64, Vec<u8>), u32>,
    /// Whether lookups, after they have their answer, wait; and how many do.
    is_held: bool,
    waiting: u32,
}

/// What is done inside of each call that changes something.
type Inside = Box<dyn Fn(&Invalidator) + Send + Sync>;

pub(crate) struct Inner {
    state: Mutex<State>,
    changed: Condvar,
    valid: Valid,
    invalidator: OnceLock<Invalidator>,
    inside: OnceLock<Inside>,
}

/// A handle.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Inner>);

impl Shared {
    pub(crate) fn new(valid: Valid) -> Self {
        let attr = Attr { ino: ROOT, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        let state = State { attrs: BTreeMap::from([(ROOT, attr)]), next: ROOT + 1, ..State::default() };
        Self(Arc::new(Inner {
            state: Mutex::new(state),
            changed: Condvar::new(),
            valid,
            invalidator: OnceLock::new(),
            inside: OnceLock::new(),
        }))
    }

    pub(crate) fn tree(&self) -> Vfs {
        Vfs::new(self.clone())
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    pub(crate) fn tell(&self) -> &Invalidator {
        self.0.invalidator.get().unwrap()
    }

    /// Lets `inside` run in each call that changes something, and in lookups.
    pub(crate) fn set_inside(&self, inside: impl Fn(&Invalidator) + Send + Sync + 'static) {
        assert!(self.0.inside.set(Box::new(inside)).is_ok());
    }

    fn inside(&self) {
        if let (Some(inside), Some(invalidator)) = (self.0.inside.get(), self.0.invalidator.get()) {
            inside(invalidator);
        }
    }

    /// Makes a file, or with a slash at the end a directory, and gives its node.
    pub(crate) fn make(&self, dir: u64, name: &str) -> u64 {
        let (mode, nlink) = if name.ends_with('/') { (S_IFDIR | 0o755, 2) } else { (S_IFREG | 0o644, 1) };
        self.state().add(dir, name.trim_end_matches('/').as_bytes(), Attr { mode, nlink, ..Attr::default() })
    }

    pub(crate) fn link(&self, dir: u64, name: &str, node: u64) {
        self.state().entries.insert((dir, name.into()), node);
        self.change(node, |attr| attr.nlink += 1);
    }

    pub(crate) fn remove(&self, dir: u64, name: &str) {
        self.state().entries.remove(&(dir, name.into())).unwrap();
    }

    pub(crate) fn change(&self, node: u64, change: impl FnOnce(&mut Attr)) {
        change(self.state().attrs.get_mut(&node).unwrap());
    }

    pub(crate) fn asked(&self, dir: u64, name: &str) -> u32 {
        self.state().asked.get(&(dir, name.into())).copied().unwrap_or(0)
    }

    pub(crate) fn asked_in_all(&self) -> u32 {
        self.state().asked.values().sum()
    }

    /// Lets lookups wait before they give their answer, or go on.
    pub(crate) fn hold(&self, is_held: bool) {
        self.state().is_held = is_held;
        self.0.changed.notify_all();
    }

    /// Waits until so many lookups wait.
    pub(crate) fn wait_for_held(&self, count: u32) {
        drop(self.0.changed.wait_while(self.state(), |state| state.waiting < count).unwrap());
    }
}

impl State {
    fn add(&mut self, dir: u64, name: &[u8], attr: Attr) -> u64 {
        let node = self.next;
        self.next += 1;
        self.attrs.insert(node, Attr { ino: node, ..attr });
        self.entries.insert((dir, name.into()), node);
        node
    }
}

impl FileSystem for Shared {
    fn root(&self) -> NewInode {
        NewInode { node: ROOT, attr: self.state().attrs[&ROOT], ..NewInode::default() }
    }

    fn mounted(&self, invalidator: Invalidator) {
        assert!(self.0.invalidator.set(invalidator).is_ok(), "told once");
    }

    fn default_valid(&self) -> Valid {
        self.0.valid
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        let mut state = self.state();
        let key = (dir.node(), name.to_vec());
        *state.asked.entry(key.clone()).or_default() += 1;
        let told = state.entries.get(&key).map(|node| (*node, state.attrs[node]));
        state.waiting += 1;
        self.0.changed.notify_all();
        let mut state = self.0.changed.wait_while(state, |state| state.is_held).unwrap();
        state.waiting -= 1;
        drop(state);
        self.inside();
        let (node, attr) = told.ok_or(Errno::ENOENT)?;
        Ok(NewInode { node, attr, valid: self.0.valid, ..NewInode::default() })
    }

    fn create(&self, _: &Request, dir: &Inode, name: &[u8], attr: &mut Attr, _: Option<&[u8]>) -> Result<u64, Errno> {
        attr.ino = self.state().add(dir.node(), name, *attr);
        self.inside();
        Ok(attr.ino)
    }

    fn link(&self, _: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.state().entries.insert((dir.node(), name.into()), inode.node());
        self.change(inode.node(), |attr| attr.nlink += 1);
        self.inside();
        Ok(())
    }

    fn unlink(&self, _: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.state().entries.remove(&(dir.node(), name.into())).ok_or(Errno::ENOENT)?;
        self.change(inode.node(), |attr| attr.nlink = attr.nlink.saturating_sub(1));
        self.inside();
        Ok(())
    }

    fn rename(
        &self,
        _: &Request,
        (from, old): (&Inode, &[u8]),
        (to, new): (&Inode, &[u8]),
        inode: &Inode,
        _: Option<&Inode>,
        _: RenameFlags,
    ) -> Result<(), Errno> {
        let mut state = self.state();
        state.entries.remove(&(from.node(), old.into())).ok_or(Errno::ENOENT)?;
        state.entries.insert((to.node(), new.into()), inode.node());
        drop(state);
        self.inside();
        Ok(())
    }

    fn set_attr(&self, _: &Request, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        self.change(inode.node(), |attr| attr.mode = set.mode.map_or(attr.mode, |mode| attr.kind() | mode));
        self.inside();
        Ok(())
    }

    fn read_at(&self, inode: &Inode, _: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        buf.fill(inode.node() as u8);
        Ok(buf.len())
    }

    fn write_at(&self, _: &Request, inode: &Inode, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        let end = offset + data.len() as u64;
        self.change(inode.node(), |attr| attr.size = attr.size.max(end));
        self.inside();
        Ok(Written { len: data.len(), blocks: 8 })
    }
}
