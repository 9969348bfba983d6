//! A file system that keeps its own names and counts how often it is asked for them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use vfs::{Attr, Errno, FileSystem, Inode, NewInode, RenameFlags, Request, S_IFDIR, S_IFLNK, S_IFREG};

/// The root's inode number.
const ROOT: u64 = 1;

/// All of it. Nodes are inode numbers.
#[derive(Debug, Default)]
pub(crate) struct Names {
    attrs: BTreeMap<u64, Attr>,
    bodies: BTreeMap<u64, Vec<u8>>,
    entries: BTreeMap<(u64, Vec<u8>), u64>,
    asked: BTreeMap<(u64, Vec<u8>), u32>,
    /// What `lookup` answers for a name instead.
    pub(crate) broken: BTreeMap<Vec<u8>, Errno>,
    /// What happens elsewhere while `lookup` is asked for a name.
    pub(crate) meanwhile: Option<(Vec<u8>, Meanwhile)>,
}

/// Something that another thread does.
pub(crate) struct Meanwhile(pub(crate) Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meanwhile")
    }
}

/// A handle on the names, from which any number of trees can be made, each with caches that know nothing yet.
#[derive(Clone, Debug)]
pub(crate) struct Store(Arc<Mutex<Names>>);

impl Store {
    /// A store of these paths, given without a slash before them and parents first. One that ends with a slash is a directory,
    /// `a -> b` a symbolic link, any other a file.
    pub(crate) fn new(paths: &[&str]) -> Self {
        let store = Self(Arc::new(Mutex::new(Names::default())));
        let mut names = store.names();
        names.attrs.insert(ROOT, Attr { ino: ROOT, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() });
        for path in paths {
            let (path, body) = path.split_once(" -> ").map_or((*path, None), |(path, body)| (path, Some(body)));
            let (parent, name) =
                path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path.trim_end_matches('/')));
            let parent = names.node(parent);
            let mode = match body {
                Some(_) => S_IFLNK | 0o777,
                None if path.ends_with('/') => S_IFDIR | 0o755,
                None => S_IFREG | 0o644,
            };
            let size = body.map_or(0, str::len) as u64;
            names.add(
                parent,
                name.as_bytes(),
                Attr { mode, size, nlink: 1, ..Attr::default() },
                body.map(str::as_bytes),
            );
        }
        drop(names);
        store
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap()
    }

    /// Sets owner, group and permission bits of what is at `path`, behind the back of all trees.
    pub(crate) fn own(&self, path: &str, owner: u32, mode: u32) {
        let mut names = self.names();
        let node = names.node(path);
        let attr = names.attrs.get_mut(&node).unwrap();
        (attr.uid, attr.gid, attr.mode) = (owner, owner, attr.kind() | mode);
    }

    /// A tree with cold caches.
    pub(crate) fn tree(&self) -> vfs::Vfs {
        vfs::Vfs::new(self.clone())
    }

    /// How often the file system was asked for the last name of `path` in its directory, which must exist.
    pub(crate) fn asked(&self, path: &str) -> u32 {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let names = self.names();
        names.asked.get(&(names.node(parent), name.into())).copied().unwrap_or(0)
    }

    /// How often it was asked at all.
    pub(crate) fn asked_in_all(&self) -> u32 {
        self.names().asked.values().sum()
    }
}

impl Names {
    fn node(&self, path: &str) -> u64 {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.fold(ROOT, |dir, name| self.entries[&(dir, name.into())])
    }

    fn add(&mut self, dir: u64, name: &[u8], attr: Attr, body: Option<&[u8]>) -> u64 {
        let ino = ROOT + self.attrs.len() as u64;
        self.attrs.insert(ino, Attr { ino, ..attr });
        self.bodies.extend(body.map(|body| (ino, body.to_vec())));
        self.entries.insert((dir, name.into()), ino);
        ino
    }

    fn is_empty(&self, dir: u64) -> bool {
        !self.entries.keys().any(|(parent, _)| *parent == dir)
    }
}

impl FileSystem for Store {
    fn root(&self) -> NewInode {
        NewInode { node: ROOT, attr: self.names().attrs[&ROOT], ..Default::default() }
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        let meanwhile = self.names().meanwhile.take_if(|(wanted, _)| wanted == name);
        if let Some((_, Meanwhile(act))) = meanwhile {
            std::thread::spawn(act).join().unwrap();
        }
        let mut names = self.names();
        let key = (dir.node(), name.to_vec());
        *names.asked.entry(key.clone()).or_default() += 1;
        if let Some(errno) = names.broken.get(name) {
            return Err(*errno);
        }
        let node = *names.entries.get(&key).ok_or(Errno::ENOENT)?;
        let link_body = names.bodies.get(&node).map(|body| body.as_slice().into());
        Ok(NewInode { node, attr: names.attrs[&node], link_body, ..Default::default() })
    }

    fn create(
        &self,
        _: &Request,
        dir: &Inode,
        name: &[u8],
        attr: &mut Attr,
        body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        let ino = self.names().add(dir.node(), name, *attr, body);
        attr.ino = ino;
        Ok(ino)
    }

    fn link(&self, _: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        self.names().entries.insert((dir.node(), name.into()), inode.node());
        Ok(())
    }

    fn unlink(&self, _: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        let mut names = self.names();
        if !names.is_empty(inode.node()) {
            return Err(Errno::ENOTEMPTY);
        }
        assert_eq!(names.entries.remove(&(dir.node(), name.into())), Some(inode.node()));
        Ok(())
    }

    fn rename(
        &self,
        _: &Request,
        (from, old): (&Inode, &[u8]),
        (to, new): (&Inode, &[u8]),
        inode: &Inode,
        target: Option<&Inode>,
        _flags: RenameFlags,
    ) -> Result<(), Errno> {
        let mut names = self.names();
        if target.is_some_and(|target| !names.is_empty(target.node())) {
            return Err(Errno::ENOTEMPTY);
        }
        assert_eq!(names.entries.remove(&(from.node(), old.into())), Some(inode.node()));
        let replaced = names.entries.insert((to.node(), new.into()), inode.node());
        assert_eq!(replaced, target.map(Inode::node), "what the cache takes for the target is there");
        Ok(())
    }
}
