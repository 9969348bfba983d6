//! A file system whose truth changes behind the cache, and which writes down what it is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use vfs::{
    Allocate, Attr, DirEntry, Errno, FileSystem, Inode, Invalidator, NewInode, OpenFlags, RenameFlags, Request,
    S_IFDIR, S_IFLNK, S_IFREG, SetAttr, SetXattr, Vfs, Written,
};

/// The root's node.
pub(crate) const ROOT: u64 = 1;

/// What the file system leaves to the VFS, and what it wants of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Kind {
    pub(crate) names_in_cache: bool,
    pub(crate) keeps_listings: bool,
}

/// What it was told of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Opened(u64, OpenFlags),
    Released(u64, OpenFlags),
}

#[derive(Default)]
pub(crate) struct State {
    attrs: BTreeMap<u64, Attr>,
    /// By directory and name: node and cookie.
    entries: BTreeMap<(u64, Vec<u8>), (u64, u64)>,
    xattrs: BTreeMap<(u64, Vec<u8>), Vec<u8>>,
    next_cookie: u64,
    /// Questions for attributes.
    pub(crate) asked: u32,
    /// Questions for listings.
    pub(crate) listed: u32,
    /// What `attributes` answers instead.
    pub(crate) refusal: Option<Errno>,
    /// What `open` answers instead.
    pub(crate) open_refusal: Option<Errno>,
    /// What `set_len` answers instead.
    pub(crate) cut_refusal: Option<Errno>,
    pub(crate) told: Vec<Told>,
    /// Modes that `set_attr` was told, with the node.
    pub(crate) modes: Vec<(u64, u32)>,
}

/// What is done inside of a question for attributes, after the answer was looked up.
type During = Box<dyn FnMut(&Inode) + Send>;

pub(crate) struct Inner {
    kind: Kind,
    state: Mutex<State>,
    during: Mutex<Option<During>>,
    invalidator: OnceLock<Invalidator>,
}

/// A handle.
#[derive(Clone)]
pub(crate) struct Store(Arc<Inner>);

impl Store {
    pub(crate) fn new(kind: Kind) -> Self {
        let attr = Attr { ino: ROOT, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        let state = State { attrs: BTreeMap::from([(ROOT, attr)]), next_cookie: 1, ..State::default() };
        let inner =
            Inner { kind, state: Mutex::new(state), during: Mutex::default(), invalidator: OnceLock::default() };
        Self(Arc::new(inner))
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

    /// Makes a file, with a slash at the end a directory, with `@` a symbolic link; gives its node.
    pub(crate) fn make(&self, dir: u64, name: &str) -> u64 {
        let mode = match name.as_bytes().last() {
            Some(b'/') => S_IFDIR | 0o755,
            Some(b'@') => S_IFLNK | 0o777,
            _ => S_IFREG | 0o644,
        };
        self.state().add(dir, name.trim_end_matches(['/', '@']).as_bytes(), Attr { mode, nlink: 1, ..Attr::default() })
    }

    /// Gives `node` a further name.
    pub(crate) fn link(&self, dir: u64, name: &str, node: u64) {
        self.state().enter(dir, name.as_bytes(), node);
    }

    /// Changes the truth.
    pub(crate) fn change(&self, node: u64, change: impl FnOnce(&mut Attr)) {
        change(self.state().attrs.get_mut(&node).unwrap());
    }

    /// Has `during` done inside of the next question for attributes, after its answer was looked up.
    pub(crate) fn once_during(&self, during: impl FnOnce(&Inode) + Send + 'static) {
        let mut during = Some(during);
        let act = move |inode: &Inode| {
            if let Some(during) = during.take() {
                during(inode);
            }
        };
        *self.0.during.lock().unwrap() = Some(Box::new(act));
    }

    /// What it was told of open files since it was last asked.
    pub(crate) fn take_told(&self) -> Vec<Told> {
        core::mem::take(&mut self.state().told)
    }
}

impl State {
    fn add(&mut self, dir: u64, name: &[u8], attr: Attr) -> u64 {
        let node = ROOT + self.attrs.len() as u64;
        self.attrs.insert(node, Attr { ino: node, ..attr });
        self.enter(dir, name, node);
        node
    }

    fn enter(&mut self, dir: u64, name: &[u8], node: u64) {
        self.entries.insert((dir, name.into()), (node, self.next_cookie));
        self.next_cookie += 1;
    }
}

impl FileSystem for Store {
    fn root(&self) -> NewInode {
        NewInode { node: ROOT, attr: self.state().attrs[&ROOT], ..NewInode::default() }
    }

    fn mounted(&self, invalidator: Invalidator) {
        assert!(self.0.invalidator.set(invalidator).is_ok());
    }

    fn names_in_cache(&self) -> bool {
        self.0.kind.names_in_cache
    }

    fn caches_listings(&self) -> bool {
        self.0.kind.keeps_listings
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        let state = self.state();
        let (node, _) = *state.entries.get(&(dir.node(), name.to_vec())).ok_or(Errno::ENOENT)?;
        let attr = state.attrs[&node];
        let link_body = (attr.kind() == S_IFLNK).then(|| b"body"[..].into());
        Ok(NewInode { node, attr, link_body, ..NewInode::default() })
    }

    fn create(&self, _: &Request, dir: &Inode, name: &[u8], attr: &mut Attr, _: Option<&[u8]>) -> Result<u64, Errno> {
        attr.ino = self.state().add(dir.node(), name, *attr);
        Ok(attr.ino)
    }

    fn create_unnamed(&self, _: &Request, _: &Inode, attr: &mut Attr) -> Result<u64, Errno> {
        let mut state = self.state();
        attr.ino = ROOT + state.attrs.len() as u64;
        state.attrs.insert(attr.ino, *attr);
        Ok(attr.ino)
    }

    fn link(&self, _: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.state().enter(dir.node(), name, inode.node());
        Ok(())
    }

    fn unlink(&self, _: &Request, dir: &Inode, name: &[u8], _: &Inode) -> Result<(), Errno> {
        self.state().entries.remove(&(dir.node(), name.into())).map(drop).ok_or(Errno::ENOENT)
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
        state.enter(to.node(), new, inode.node());
        Ok(())
    }

    fn set_attr(&self, _: &Request, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        let mut state = self.state();
        if let Some(mode) = set.mode {
            state.modes.push((inode.node(), mode));
            let attr = state.attrs.get_mut(&inode.node()).ok_or(Errno::ESTALE)?;
            attr.mode = attr.kind() | mode;
        }
        Ok(())
    }

    fn attributes(&self, _: &Request, inode: &Inode) -> Result<Attr, Errno> {
        let mut state = self.state();
        state.asked += 1;
        let answer = match state.refusal {
            Some(errno) => Err(errno),
            None => state.attrs.get(&inode.node()).copied().ok_or(Errno::ESTALE),
        };
        drop(state);
        let during = self.0.during.lock().unwrap().take();
        if let Some(mut during) = during {
            during(inode);
        }
        answer
    }

    fn wants_opens(&self) -> bool {
        true
    }

    fn open(&self, _: &Request, inode: &Inode, flags: OpenFlags) -> Result<(), Errno> {
        let mut state = self.state();
        match state.open_refusal {
            Some(errno) => Err(errno),
            None => {
                state.told.push(Told::Opened(inode.node(), flags));
                Ok(())
            }
        }
    }

    fn release(&self, inode: &Inode, flags: OpenFlags) {
        self.state().told.push(Told::Released(inode.node(), flags));
    }

    fn read_dir(&self, dir: &Inode, after: u64, emit: &mut dyn FnMut(DirEntry, u64) -> bool) -> Result<(), Errno> {
        let mut state = self.state();
        state.listed += 1;
        let of_dir = state.entries.range((dir.node(), Vec::new())..(dir.node() + 1, Vec::new()));
        let mut next: Vec<_> = of_dir.filter(|(_, (_, cookie))| *cookie > after).collect();
        next.sort_by_key(|(_, (_, cookie))| *cookie);
        for ((_, name), (node, cookie)) in next {
            let entry = DirEntry { name: name.as_slice().into(), ino: *node, kind: state.attrs[node].kind() };
            if !emit(entry, *cookie) {
                break;
            }
        }
        Ok(())
    }

    /// A look at the contents puts the attributes in doubt.
    fn sync(&self, inode: &Inode, _: bool) -> Result<(), Errno> {
        inode.doubt();
        Ok(())
    }

    fn read_at(&self, _: &Inode, _: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        buf.fill(b'x');
        Ok(buf.len())
    }

    fn write_at(&self, _: &Request, inode: &Inode, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        let end = offset + data.len() as u64;
        self.change(inode.node(), |attr| attr.size = attr.size.max(end));
        Ok(Written { len: data.len(), blocks: 8 })
    }

    fn set_len(&self, _: &Request, inode: &Inode, len: u64) -> Result<u64, Errno> {
        if let Some(errno) = self.state().cut_refusal {
            return Err(errno);
        }
        self.change(inode.node(), |attr| attr.size = len);
        Ok(len.div_ceil(4096) * 8)
    }

    fn allocate(&self, _: &Request, _: &Inode, _: Allocate, _: bool, _: u64, _: u64) -> Result<u64, Errno> {
        Ok(8)
    }

    fn get_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        let state = self.state();
        let value = state.xattrs.get(&(inode.node(), name.into())).ok_or(Errno::ENODATA)?;
        Ok(value.as_slice().into())
    }

    fn set_xattr(&self, _: &Request, inode: &Inode, name: &[u8], value: &[u8], _: SetXattr) -> Result<(), Errno> {
        self.state().xattrs.insert((inode.node(), name.into()), value.into());
        Ok(())
    }

    fn remove_xattr(&self, _: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        self.state().xattrs.remove(&(inode.node(), name.into())).map(drop).ok_or(Errno::ENODATA)
    }

    fn list_xattrs(&self, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        let state = self.state();
        let all = state.xattrs.keys().filter(|(node, _)| *node == inode.node());
        Ok(all.map(|(_, name)| name.as_slice().into()).collect())
    }
}
