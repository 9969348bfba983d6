//! A file system in memory that keeps its own names, so that the cache has to ask for each: what a disk would be.
//!
//! # What it is not
//! Fast, or checked: the VFS has done the checks. Names are good until told otherwise, and nobody tells.
//!
//! # How it is locked
//! One mutex, held for each call.

use lightfoot::fs::{Attr, DirEntry, FileSystem, Inode, NewInode, RenameFlags, Request, S_IFDIR, Written};
use lightfoot::{Errno, Vfs};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The root's node.
const ROOT: u64 = 1;

/// All of it. Nodes are inode numbers.
#[derive(Debug, Default)]
struct Names {
    last: u64,
    nodes: BTreeMap<u64, (Attr, Vec<u8>)>,
    entries: BTreeMap<(u64, Vec<u8>), u64>,
}

/// A handle on the names. Each tree made from it has caches that know nothing yet.
#[derive(Clone, Debug)]
pub(crate) struct OwnNames(Arc<Mutex<Names>>);

impl OwnNames {
    pub(crate) fn new() -> Self {
        let mut names = Names { last: ROOT, ..Names::default() };
        let attr = Attr { ino: ROOT, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        names.nodes.insert(ROOT, (attr, Vec::new()));
        Self(Arc::new(Mutex::new(names)))
    }

    /// A tree with cold caches.
    pub(crate) fn tree(&self) -> Vfs {
        Vfs::new(self.clone())
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.0.lock().expect("nothing panics under the lock")
    }
}

impl Names {
    fn entries_of(&self, dir: u64) -> impl Iterator<Item = (&[u8], u64)> {
        let range = self.entries.range((dir, Vec::new())..(dir + 1, Vec::new()));
        range.map(|((_, name), node)| (&name[..], *node))
    }

    fn node(&mut self, inode: &Inode) -> Result<&mut (Attr, Vec<u8>), Errno> {
        self.nodes.get_mut(&inode.node()).ok_or(Errno::EIO)
    }
}

impl FileSystem for OwnNames {
    fn root(&self) -> NewInode {
        NewInode { node: ROOT, attr: self.names().nodes[&ROOT].0, ..NewInode::default() }
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        let names = self.names();
        let node = *names.entries.get(&(dir.node(), name.to_vec())).ok_or(Errno::ENOENT)?;
        let (attr, _) = names.nodes.get(&node).ok_or(Errno::EIO)?;
        Ok(NewInode { node, attr: *attr, ..NewInode::default() })
    }

    fn create(&self, _: &Request, dir: &Inode, name: &[u8], attr: &mut Attr, _: Option<&[u8]>) -> Result<u64, Errno> {
        let mut names = self.names();
        names.last += 1;
        let node = names.last;
        attr.ino = node;
        names.nodes.insert(node, (*attr, Vec::new()));
        names.entries.insert((dir.node(), name.to_vec()), node);
        Ok(node)
    }

    fn unlink(&self, _: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        let mut names = self.names();
        if names.entries_of(inode.node()).next().is_some() {
            return Err(Errno::ENOTEMPTY);
        }
        names.entries.remove(&(dir.node(), name.to_vec()));
        Ok(())
    }

    fn rename(
        &self,
        _: &Request,
        (from, old): (&Inode, &[u8]),
        (to, new): (&Inode, &[u8]),
        inode: &Inode,
        target: Option<&Inode>,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let mut names = self.names();
        let (old, new) = ((from.node(), old.to_vec()), (to.node(), new.to_vec()));
        match target {
            Some(target) if flags.has(RenameFlags::EXCHANGE) => {
                names.entries.insert(old, target.node());
            }
            Some(target) if names.entries_of(target.node()).next().is_some() => return Err(Errno::ENOTEMPTY),
            _ => {
                names.entries.remove(&old);
            }
        }
        names.entries.insert(new, inode.node());
        Ok(())
    }

    fn read_dir(&self, dir: &Inode, after: u64, emit: &mut dyn FnMut(DirEntry, u64) -> bool) -> Result<(), Errno> {
        let names = self.names();
        let mut entries: Vec<(u64, &[u8])> = names.entries_of(dir.node()).map(|(name, node)| (node, name)).collect();
        // By node, which is the cookie: it stays an entry's own when it is renamed.
        entries.sort_unstable();
        for (node, name) in entries.into_iter().filter(|(node, _)| *node > after) {
            let kind = names.nodes.get(&node).ok_or(Errno::EIO)?.0.kind();
            if !emit(DirEntry { name: name.into(), ino: node, kind }, node) {
                break;
            }
        }
        Ok(())
    }

    fn read_at(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let mut names = self.names();
        let contents = &names.node(inode)?.1;
        let rest = contents.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, _: &Request, inode: &Inode, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        let mut names = self.names();
        let (attr, contents) = names.node(inode)?;
        let end = offset as usize + data.len();
        contents.resize(contents.len().max(end), 0);
        contents[offset as usize..end].copy_from_slice(data);
        attr.size = contents.len() as u64;
        Ok(Written { len: data.len(), blocks: attr.size.div_ceil(512) })
    }

    fn set_len(&self, _: &Request, inode: &Inode, len: u64) -> Result<u64, Errno> {
        let mut names = self.names();
        let (attr, contents) = names.node(inode)?;
        contents.resize(len as usize, 0);
        attr.size = len;
        Ok(len.div_ceil(512))
    }

    fn evict(&self, inode: &Inode) {
        if inode.attr().nlink == 0 {
            self.names().nodes.remove(&inode.node());
        }
    }
}
