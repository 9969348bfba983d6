//! The contents of a [`Store`](super::Store): files by number, and the names that lead to them.
//!
//! # What it is not
//! Checked: the VFS has checked permissions, types and limits. This module checks that the cache
//! and the store agree.
//!
//! # How it is locked
//! By the caller.

use core::ops::Bound;
use std::collections::BTreeMap;
use vfs::{
    Acl, AclKind, Attr, DirEntry, Errno, NewInode, NewNode, S_IFDIR, S_IFLNK, S_IFREG, SetAttr, SetTime, SetXattr,
    Valid,
};

/// Bytes that a file's storage grows by.
const PAGE: usize = 4096;

/// Bytes that can be written to a file at most. Unwritten bytes take no memory.
const MAX_LEN: usize = 1 << 30;

/// Returns the storage of contents of this length, in bytes.
pub(super) fn storage_of(len: usize) -> u64 {
    (len.div_ceil(PAGE) * PAGE) as u64
}

/// One file or directory.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) attr: Attr,
    /// Entries that lead here.
    names: u32,
    /// A symbolic link's body; a file's contents, followed by zeros up to its length.
    contents: Vec<u8>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug)]
struct Entry {
    node: u64,
    /// The entry's place in listings.
    cookie: u64,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Nodes {
    nodes: BTreeMap<u64, Node>,
    entries: BTreeMap<(u64, Vec<u8>), Entry>,
    last_node: u64,
    last_cookie: u64,
}

impl Node {
    /// Returns the storage of its contents, in bytes.
    pub(super) fn storage(&self) -> u64 {
        storage_of(self.contents.len())
    }

    /// [`storage`](Self::storage) in units of 512 bytes.
    fn blocks(&self) -> u64 {
        self.storage() / 512
    }

    fn touch(&mut self, now: i64) {
        (self.attr.mtime, self.attr.ctime) = (now, now);
    }
}

impl Nodes {
    /// Returns an empty root directory with the number `root`.
    pub(super) fn new(root: u64) -> Self {
        let attr = Attr { ino: root, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        let node = Node { attr, names: 1, ..Node::default() };
        Self { nodes: BTreeMap::from([(root, node)]), entries: BTreeMap::new(), last_node: root, last_cookie: 0 }
    }

    /// Returns the file of this number: `ESTALE`.
    pub(super) fn get(&self, node: u64) -> Result<&Node, Errno> {
        self.nodes.get(&node).ok_or(Errno::ESTALE)
    }

    /// Returns the file of this number: `ESTALE`.
    pub(super) fn get_mut(&mut self, node: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&node).ok_or(Errno::ESTALE)
    }

    /// Returns all files, those without a name included.
    pub(super) fn all(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// Returns the number that `name` in `dir` leads to: `ENOENT`.
    pub(super) fn find(&self, dir: u64, name: &[u8]) -> Result<u64, Errno> {
        self.entries.get(&(dir, name.to_vec())).map(|entry| entry.node).ok_or(Errno::ENOENT)
    }

    /// Returns the file of this number, if it has a name: `ESTALE`.
    pub(super) fn by_id(&self, node: u64, valid: Valid) -> Result<NewInode, Errno> {
        if self.get(node)?.names == 0 { Err(Errno::ESTALE) } else { self.new_inode(node, valid) }
    }

    /// Returns a name of the file of this number, and its directory: `ESTALE`.
    pub(super) fn name_of(&self, node: u64) -> Result<(u64, &[u8]), Errno> {
        let mut entries = self.entries.iter().filter(|(_, entry)| entry.node == node);
        entries.next().map(|((dir, name), _)| (*dir, &**name)).ok_or(Errno::ESTALE)
    }

    /// Returns the file as a lookup returns it.
    pub(super) fn new_inode(&self, node: u64, valid: Valid) -> Result<NewInode, Errno> {
        let Node { attr, contents, xattrs, .. } = self.get(node)?;
        let link_body = (attr.kind() == S_IFLNK).then(|| contents.as_slice().into());
        let acl = |kind: AclKind| xattrs.get(kind.xattr_name()).and_then(|value| Acl::from_xattr(value).ok()?);
        let (access_acl, default_acl) = (acl(AclKind::Access), acl(AclKind::Default));
        Ok(NewInode { node, attr: *attr, valid, link_body, access_acl, default_acl })
    }

    /// Makes a file without a name, with its extended attributes; returns its number.
    pub(super) fn create(&mut self, new: &NewNode<'_>) -> u64 {
        self.last_node += 1;
        let ino = self.last_node;
        let contents = new.link_body.unwrap_or_default().to_vec();
        let xattrs = new.xattrs().into_iter().map(|(name, value)| (name.to_vec(), value.into_owned())).collect();
        let node = Node { attr: Attr { ino, nlink: 0, ..new.attr }, names: 0, contents, xattrs };
        self.nodes.insert(ino, node);
        ino
    }

    /// Enters `node` into `dir`, over a node that has the name already.
    pub(super) fn enter(&mut self, dir: u64, name: &[u8], node: u64) {
        if self.find(dir, name).is_ok() {
            self.remove(dir, name);
        }
        self.last_cookie += 1;
        self.entries.insert((dir, name.to_vec()), Entry { node, cookie: self.last_cookie });
        let subdirectories = self.subdirectories(node);
        let Some(entered) = self.nodes.get_mut(&node) else { return };
        entered.names += 1;
        if !entered.attr.is_dir() {
            entered.attr.nlink += 1;
            return;
        }
        if entered.names == 1 {
            entered.attr.nlink = 2 + subdirectories;
        }
        self.count_link(dir, 1);
    }

    fn subdirectories(&self, dir: u64) -> u32 {
        let nodes = self.entries_of(dir).filter_map(|(_, entry)| self.nodes.get(&entry.node));
        nodes.filter(|node| node.attr.is_dir()).count() as u32
    }

    pub(super) fn remove(&mut self, dir: u64, name: &[u8]) {
        let Some(Entry { node, .. }) = self.entries.remove(&(dir, name.to_vec())) else { return };
        let Some(removed) = self.nodes.get_mut(&node) else { return };
        removed.names -= 1;
        if !removed.attr.is_dir() {
            removed.attr.nlink = removed.attr.nlink.saturating_sub(1);
            return;
        }
        if removed.names == 0 {
            removed.attr.nlink = 0;
        }
        self.count_link(dir, -1);
    }

    fn count_link(&mut self, dir: u64, difference: i32) {
        if let Some(dir) = self.nodes.get_mut(&dir) {
            dir.attr.nlink = dir.attr.nlink.saturating_add_signed(difference);
        }
    }

    /// Sets the times of a directory that changed.
    pub(super) fn touch(&mut self, node: u64, now: i64) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.touch(now);
        }
    }

    /// Checks that `name` in `dir` leads to `node`, as the cache assumes: `ENOENT`, `ESTALE`.
    pub(super) fn check(&self, dir: u64, name: &[u8], node: u64) -> Result<(), Errno> {
        if self.find(dir, name)? == node { Ok(()) } else { Err(Errno::ESTALE) }
    }

    /// Checks that `node` has no entries: `ENOTEMPTY`.
    pub(super) fn check_empty(&self, node: u64) -> Result<(), Errno> {
        if self.entries_of(node).next().is_none() { Ok(()) } else { Err(Errno::ENOTEMPTY) }
    }

    fn entries_of(&self, dir: u64) -> impl Iterator<Item = (&[u8], Entry)> {
        let range = (Bound::Included((dir, Vec::new())), Bound::Excluded((dir + 1, Vec::new())));
        self.entries.range(range).map(|((_, name), entry)| (name.as_slice(), *entry))
    }

    /// Returns the entries of `dir` whose cookies are above `after`, with their cookies, in the
    /// order of these.
    pub(super) fn list(&self, dir: u64, after: u64) -> Vec<(DirEntry, u64)> {
        let later = self.entries_of(dir).filter(|(_, entry)| entry.cookie > after);
        let entry = |(name, Entry { node, cookie }): (&[u8], Entry)| {
            let kind = self.nodes.get(&node).map_or(S_IFREG, |node| node.attr.kind());
            (DirEntry { name: name.into(), ino: node, kind }, cookie)
        };
        let mut listed: Vec<_> = later.map(entry).collect();
        listed.sort_unstable_by_key(|(_, cookie)| *cookie);
        listed
    }

    /// Drops a file without links, which nothing uses any more.
    pub(super) fn evict(&mut self, node: u64) {
        if self.nodes.get(&node).is_some_and(|node| node.attr.nlink == 0) {
            self.nodes.remove(&node);
        }
    }
}

// Contents and attributes of one file.
impl Node {
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        let left = usize::try_from(self.attr.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = left.min(buf.len());
        let stored = self.contents.get(offset as usize..).unwrap_or_default();
        let copied = stored.len().min(len);
        buf[..copied].copy_from_slice(&stored[..copied]);
        buf[copied..len].fill(0);
        len
    }

    /// Writes `data` and returns the storage that the file takes then: `EFBIG`.
    pub(super) fn write(&mut self, offset: u64, data: &[u8], now: i64) -> Result<u64, Errno> {
        let (start, end) = (offset as usize, offset as usize + data.len());
        if end > MAX_LEN {
            return Err(Errno::EFBIG);
        }
        if !data.is_empty() {
            self.contents.resize(self.contents.len().max(end), 0);
            self.contents[start..end].copy_from_slice(data);
            self.attr.size = self.attr.size.max(end as u64);
        }
        self.touch(now);
        self.attr.blocks = self.blocks();
        Ok(self.attr.blocks)
    }

    /// Reserves the storage up to `end`: `EFBIG`.
    pub(super) fn reserve(&mut self, end: u64) -> Result<(), Errno> {
        let end = usize::try_from(end).ok().filter(|end| *end <= MAX_LEN).ok_or(Errno::EFBIG)?;
        self.contents.resize(self.contents.len().max(end), 0);
        self.attr.blocks = self.blocks();
        Ok(())
    }

    /// Sets the length and returns the storage that the file takes then.
    pub(super) fn set_len(&mut self, len: u64, now: i64) -> u64 {
        self.contents.truncate(len as usize);
        self.attr.size = len;
        self.touch(now);
        self.attr.blocks = self.blocks();
        self.attr.blocks
    }

    /// Makes a range read as zeros.
    pub(super) fn zero(&mut self, offset: u64, len: u64) {
        let end = (offset + len).min(self.contents.len() as u64) as usize;
        if let Some(range) = self.contents.get_mut(offset as usize..end) {
            range.fill(0);
        }
    }

    pub(super) fn set_attr(&mut self, set: &SetAttr, now: i64) {
        let attr = &mut self.attr;
        let time = |time: Option<SetTime>, old| match time {
            None => old,
            Some(SetTime::Now) => now,
            Some(SetTime::At(ns)) => ns,
        };
        attr.mode = set.mode.map_or(attr.mode, |mode| attr.kind() | mode);
        (attr.uid, attr.gid) = (set.uid.unwrap_or(attr.uid), set.gid.unwrap_or(attr.gid));
        (attr.atime, attr.mtime, attr.ctime) = (time(set.atime, attr.atime), time(set.mtime, attr.mtime), now);
    }

    pub(super) fn xattr(&self, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.xattrs.get(name).map(|value| value.as_slice().into()).ok_or(Errno::ENODATA)
    }

    pub(super) fn set_xattr(&mut self, name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno> {
        match (how, self.xattrs.contains_key(name)) {
            (SetXattr::Create, true) => return Err(Errno::EEXIST),
            (SetXattr::Replace, false) => return Err(Errno::ENODATA),
            _ => self.xattrs.insert(name.into(), value.into()),
        };
        Ok(())
    }

    pub(super) fn remove_xattr(&mut self, name: &[u8]) -> Result<(), Errno> {
        self.xattrs.remove(name).map(drop).ok_or(Errno::ENODATA)
    }

    pub(super) fn xattr_names(&self) -> Vec<Box<[u8]>> {
        self.xattrs.keys().map(|name| name.as_slice().into()).collect()
    }
}
