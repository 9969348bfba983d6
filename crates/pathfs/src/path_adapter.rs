//! File systems by whole paths: the simple way to write a file system.
//!
//! # What it is
//! [`PathFileSystem`] is a simple back end: attributes of a path, listing of a directory, reads and writes by
//! path. [`PathAdapter`] makes a [`FileSystem`] of it. It assigns nodes, keeps a table from node to parent
//! and name ([`NameTree`]), and builds paths when it needs them, so that a moved directory takes everything below it along.
//!
//! # What it is not
//! A file system with hard links, or with open files that outlive their names: after the removal of its path,
//! reading, writing and changing a file fails with `ESTALE`. Its cached attributes (`fstat(2)`) stay.
//!
//! # How it is locked
//! Users of a path hold `moves` shared; removals and renames hold it exclusively, so that no other file gets
//! a path in use. A lookup is optimistic instead: it holds no lock while the back end works, and is repeated
//! if a path was removed meanwhile; after some tries it holds `moves` shared. The table has a mutex, held for
//! no call. The VFS's locks are outside of both.
//!
//! # Where it comes from
//! libfuse's high-level interface (`struct fuse_operations`, `lib/fuse.c`: `get_path`, `try_get_path`).
//!
//! # Limitations
//! While a back end does not answer a read or a write, removals and renames block, and everything after them.
//! A file that was replaced behind the adapter by one of the same kind counts as the same. A file has one
//! name. Its inode number may change after eviction.

use crate::hash_order::HashOrder;
use crate::name_tree::{NameIn, NameTree};
use sync::{Mutex, RwSem, RwSemReadGuard};
use vfs::{
    Acl, AclKind, After, Allocate, Attr, DirEntry, Errno, FileSystem, FsTraits, Inode, Listed, NameStore, NewInode,
    NewNode, NextNames, Open, OwnNames, Position, Rename, RenameFlags, Request, S_IFDIR, S_IFLNK, SetAttr, SetXattr,
    StatFs, Valid, Want, Written,
};

/// Lookups that are tried without the lock.
const TRIES: u32 = 4;

/// One entry of a directory, as a [`PathFileSystem`] lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathEntry {
    /// The name of the entry.
    pub name: Box<[u8]>,
    /// The file type ([`S_IFMT`](vfs::S_IFMT) of the mode).
    pub kind: u32,
}

/// A file system by whole paths. Paths are relative to its root, without a slash at either end: `dir/file`;
/// the root is empty. Calls come from many threads at once, and must not call back into the VFS.
pub trait PathFileSystem: Send + Sync + 'static {
    /// Returns the name of the file system's type in a list of mounts.
    fn type_name(&self) -> &str {
        "path"
    }

    /// Returns how long an answer about a name is valid, positive or negative. The adapter calls
    /// this function once for names that do not exist.
    fn valid(&self) -> Valid {
        Valid::UntilInvalidated
    }

    /// Returns whether the file system keeps listings: see [`OwnNames::keeps_listings`].
    fn keeps_listings(&self) -> bool {
        false
    }

    /// Returns whether the extended attributes of a file have its ACLs: see [`FsTraits::acls`]. The
    /// adapter then reads the ACLs with each answer about the file.
    fn acls(&self) -> bool {
        false
    }

    /// Returns the attributes of the file at `path`. The adapter ignores `ino`, as it assigns
    /// numbers. `nlink` 0 means one name; for a directory, the adapter then counts the
    /// subdirectories by a listing.
    ///
    /// # Errors
    /// `ENOENT`, or errors of the storage.
    fn metadata(&self, path: &[u8]) -> Result<Attr, Errno>;

    /// Returns all entries of the directory at `path`, in any order, without `.` and `..`.
    ///
    /// # Errors
    /// `EIO`...
    fn read_dir(&self, _path: &[u8]) -> Result<Vec<PathEntry>, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Returns the body of a symbolic link.
    ///
    /// # Errors
    /// `EIO`...
    fn read_link(&self, _path: &[u8]) -> Result<Box<[u8]>, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Reads into `buf` from `offset` on. Returns 0 at and after the end.
    ///
    /// # Errors
    /// `EIO`...
    fn read_at(&self, _path: &[u8], _offset: u64, _buf: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// Writes as [`FileSystem::write`] does. Data that are appended are written at the end that the
    /// cache has.
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EFBIG`, `EIO`...
    fn write_at(&self, _path: &[u8], _offset: u64, _data: &[u8]) -> Result<Written, Errno> {
        Err(Errno::EINVAL)
    }

    /// Creates a file with `attr` at `path`, which does not exist; a symbolic link has a
    /// `link_body`. The file system may change attributes in `attr` that it stores differently.
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EROFS`, `EIO`...; `EPERM` or `EOPNOTSUPP` if it does not support the type.
    fn create(&self, _path: &[u8], _attr: &mut Attr, _link_body: Option<&[u8]>) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Removes the file, or the directory, at `path`.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `EROFS`...
    fn remove(&self, _path: &[u8], _is_dir: bool) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Moves `from` to `to`, with everything below `from`, over an existing `to`. With `EXCHANGE`,
    /// exchanges the two.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `EROFS`, `EXDEV`...; `EINVAL` for flags that it does not support.
    fn rename(&self, _from: &[u8], _to: &[u8], _flags: RenameFlags) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Changes the length, as [`FileSystem::set_len`] does.
    ///
    /// # Errors
    /// `EFBIG`, `ENOSPC`, `EDQUOT`, `EIO`...
    fn set_len(&self, _path: &[u8], _len: u64) -> Result<u64, Errno> {
        Err(Errno::EINVAL)
    }

    /// Changes attributes except for the length. At least one is set.
    ///
    /// # Errors
    /// `EPERM` if it stores none; `EROFS`, `EIO`...
    fn set_attr(&self, _path: &[u8], _set: &SetAttr) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Changes the storage of a file, as [`FileSystem::allocate`] does.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a mode that it does not support; `ENOSPC`, `EDQUOT`...
    fn allocate(&self, _path: &[u8], _how: Allocate, _keep_size: bool, _offset: u64, _len: u64) -> Result<u64, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Makes a file durable, as [`FileSystem::sync`] does.
    ///
    /// # Errors
    /// `EIO`...
    fn sync(&self, _path: &[u8], _data_only: bool) -> Result<(), Errno> {
        Ok(())
    }

    /// Returns an extended attribute, as [`FileSystem::get_xattr`] does.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`.
    fn get_xattr(&self, _path: &[u8], _name: &[u8]) -> Result<Box<[u8]>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Sets an extended attribute, as [`FileSystem::set_xattr`] does.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` by `how`; `ENOSPC`, `EDQUOT`, `EOPNOTSUPP`.
    fn set_xattr(&self, _path: &[u8], _name: &[u8], _value: &[u8], _how: SetXattr) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Removes an extended attribute, as [`FileSystem::remove_xattr`] does.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`.
    fn remove_xattr(&self, _path: &[u8], _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the names of the extended attributes, as [`FileSystem::list_xattrs`] does.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if it has no extended attributes.
    fn list_xattrs(&self, _path: &[u8]) -> Result<Vec<Box<[u8]>>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// Returns the figures of the file system, as [`FileSystem::statfs`] does.
    ///
    /// # Errors
    /// `ENOSYS` if it does not have the figures.
    fn statfs(&self) -> Result<StatFs, Errno> {
        Err(Errno::ENOSYS)
    }
}

/// A [`FileSystem`] over a [`PathFileSystem`]; see the module documentation: no hard links, and a file
/// without a name is `ESTALE`.
pub struct PathAdapter<P> {
    back: P,
    /// Held shared while a path is in use, exclusively while paths are removed.
    moves: RwSem<()>,
    nodes: Mutex<Nodes>,
    order: HashOrder,
}

/// The root's node.
const ROOT: u64 = Tree::ROOT;

/// The value of a node is the type of its file.
type Tree = NameTree<[u8], u32>;

/// The nodes, and counters of changes of their names.
struct Nodes {
    tree: Tree,
    changes: Changes,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Changes {
    /// Names that were created.
    made: u64,
    /// Paths that were removed or moved.
    moved: u64,
}

impl Nodes {
    /// Returns the path of `node`, or `None` if the node was removed.
    fn path(&self, node: u64) -> Option<Vec<u8>> {
        Some(self.tree.names_to(node)?.join(&b'/'))
    }

    /// Returns the path of a name.
    ///
    /// # Errors
    /// `ESTALE` if the directory of the name was removed.
    fn child(&self, (dir, name): NameIn<'_, [u8]>) -> Result<Vec<u8>, Errno> {
        let mut names = self.tree.names_to(dir).ok_or(Errno::ESTALE)?;
        names.push(name);
        Ok(names.join(&b'/'))
    }

    /// Returns the node of a name that the back end has. Creates a new node if the name had none,
    /// or a node of another type. `is_cold`: whether the node gets no inode now.
    fn known(&mut self, at: NameIn<'_, [u8]>, kind: u32, is_cold: bool) -> u64 {
        match self.tree.child(at) {
            Some((node, known)) if *known == kind => {
                if !is_cold {
                    self.tree.revive(node);
                }
                node
            }
            _ => self.tree.add(at, is_cold, |_| kind),
        }
    }
}

/// A path that cannot be removed while this value lives.
struct Path<'a> {
    path: Vec<u8>,
    _stays: RwSemReadGuard<'a, ()>,
}

impl<P: PathFileSystem> PathAdapter<P> {
    /// Creates a file system over `back`.
    #[must_use]
    pub fn new(back: P) -> Self {
        let nodes = Nodes { tree: Tree::new(S_IFDIR, |_| ()), changes: Changes::default() };
        Self { back, moves: RwSem::new(()), nodes: Mutex::new(nodes), order: HashOrder::default() }
    }

    /// Returns the path of an inode.
    ///
    /// # Errors
    /// `ESTALE` if the file was removed.
    fn path(&self, inode: &Inode) -> Result<Path<'_>, Errno> {
        let stays = self.moves.read();
        let path = self.nodes.lock().path(inode.node()).ok_or(Errno::ESTALE)?;
        Ok(Path { path, _stays: stays })
    }

    /// Returns the attributes and ACLs of the back end's file at `path`, without a number.
    fn describe(&self, path: &[u8]) -> Result<NewInode, Errno> {
        let attr = self.attributes_of(path)?;
        let mut new = NewInode { attr, valid: self.back.valid(), ..NewInode::default() };
        if self.back.acls() && attr.kind() != S_IFLNK {
            new.access_acl = self.acl(path, AclKind::Access, attr.mode);
            new.default_acl = self.acl(path, AclKind::Default, attr.mode).filter(|_| attr.is_dir());
        }
        Ok(new)
    }

    /// Reads an ACL of the file at `path`. An ACL that cannot be read gives the group class no
    /// permission.
    fn acl(&self, path: &[u8], kind: AclKind, mode: u32) -> Option<Acl> {
        match self.back.get_xattr(path, kind.xattr_name()) {
            Err(Errno::ENODATA | Errno::EOPNOTSUPP) => None,
            Ok(value) => Acl::from_xattr(&value).unwrap_or_else(|_| Some(Acl::unreadable(mode))),
            Err(_) => Some(Acl::unreadable(mode)),
        }
    }

    /// Returns the back end's attributes of `path`. Counts the links if the back end has not.
    fn attributes_of(&self, path: &[u8]) -> Result<Attr, Errno> {
        let mut attr = self.back.metadata(path)?;
        if attr.nlink == 0 {
            attr.nlink = 1;
            if attr.is_dir() {
                // If it cannot be listed: no subdirectories.
                let entries = self.back.read_dir(path).unwrap_or_default();
                let below = entries.iter().filter(|entry| entry.kind == S_IFDIR).count();
                attr.nlink = 2 + u32::try_from(below).unwrap_or(u32::MAX - 2);
            }
        }
        Ok(attr)
    }
}

impl<P: PathFileSystem> FileSystem for PathAdapter<P> {
    fn root(&self) -> NewInode {
        // No error can be returned here: a root without attributes becomes an empty directory.
        let empty = Attr { mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        let valid = self.back.valid();
        let found = self.describe(b"").unwrap_or_else(|_| NewInode { attr: empty, valid, ..NewInode::default() });
        NewInode { node: ROOT, attr: Attr { ino: ROOT, ..found.attr }, ..found }
    }

    fn traits(&self) -> FsTraits {
        FsTraits {
            type_name: self.back.type_name().to_owned().into(),
            names: NameStore::FileSystem(OwnNames {
                keeps_listings: self.back.keeps_listings(),
                valid: self.back.valid(),
                ..OwnNames::default()
            }),
            acls: self.back.acls(),
            ..FsTraits::default()
        }
    }

    fn lookup(&self, _request: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        let at = (dir.node(), name);
        for tried in 0.. {
            let _stays = (tried >= TRIES).then(|| self.moves.read());
            let (path, before) = {
                let nodes = self.nodes.lock();
                (nodes.child(at)?, nodes.changes)
            };
            let found = self.describe(&path);
            let mut nodes = self.nodes.lock();
            if nodes.changes.moved != before.moved {
                continue;
            }
            return match found {
                Ok(new) => {
                    let node = nodes.known(at, new.attr.kind(), false);
                    Ok(NewInode { node, attr: Attr { ino: node, ..new.attr }, ..new })
                }
                Err(errno) => {
                    if errno == Errno::ENOENT && nodes.changes == before {
                        nodes.tree.remove(at);
                    }
                    Err(errno)
                }
            };
        }
        Err(Errno::ESTALE)
    }

    fn attributes(&self, _request: &Request, inode: &Inode) -> Result<Attr, Errno> {
        // Only the cache has the attributes of a file without a name.
        let Ok(at) = self.path(inode) else { return Ok(inode.attr()) };
        let gone = |errno| if errno == Errno::ENOENT { Errno::ESTALE } else { errno };
        Ok(Attr { ino: inode.node(), ..self.attributes_of(&at.path).map_err(gone)? })
    }

    fn read_link(&self, _request: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        self.back.read_link(&self.path(inode)?.path)
    }

    /// Lists a directory in the order of [`HashOrder`].
    fn read_dir(
        &self,
        _: &Request,
        dir: &Open<'_>,
        after: u64,
        _: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        let path = self.path(dir.inode)?;
        let entries = self.back.read_dir(&path.path)?.into_iter().map(|entry| (self.order.cookie(&entry.name), entry));
        let mut entries: Vec<_> = entries.filter(|(cookie, _)| *cookie > after).collect();
        entries.sort_unstable_by(|(a, x), (b, y)| (a, &x.name).cmp(&(b, &y.name)));
        for (cookie, PathEntry { name, kind }) in entries {
            let ino = self.nodes.lock().known((dir.inode.node(), &name), kind, true);
            if !emit(Listed::new(DirEntry { name, ino, kind }, cookie)) {
                break;
            }
        }
        Ok(())
    }

    fn create(
        &self,
        _request: &Request,
        dir: &Inode,
        name: Option<&[u8]>,
        new: &mut NewNode<'_>,
    ) -> Result<u64, Errno> {
        let (name, attr) = (name.ok_or(Errno::EOPNOTSUPP)?, &mut new.attr);
        let at = (dir.node(), name);
        let _stays = self.moves.read();
        let path = self.nodes.lock().child(at)?;
        self.back.create(&path, attr, new.link_body)?;
        let mut nodes = self.nodes.lock();
        nodes.changes.made += 1;
        attr.ino = nodes.tree.add(at, false, |_| attr.kind());
        Ok(attr.ino)
    }

    fn unlink(&self, _request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let _alone = self.moves.write();
        let at = (dir.node(), name);
        let path = self.nodes.lock().child(at)?;
        self.back.remove(&path, inode.attr().is_dir())?;
        let mut nodes = self.nodes.lock();
        nodes.changes.moved += 1;
        nodes.tree.remove(at);
        Ok(After::NONE)
    }

    fn rename(&self, _request: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
        let _alone = self.moves.write();
        let from = (rename.old_dir.node(), rename.old_name);
        let to = (rename.new_dir.node(), rename.new_name);
        let old = self.nodes.lock().child(from)?;
        let new = self.nodes.lock().child(to)?;
        self.back.rename(&old, &new, rename.flags)?;
        let mut nodes = self.nodes.lock();
        nodes.changes.moved += 1;
        nodes.tree.rename(from, to, rename.flags.contains(RenameFlags::EXCHANGE));
        Ok(After::NONE)
    }

    fn set_attr(&self, _request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
        let set = SetAttr { size: None, ..*set };
        if set != SetAttr::default() {
            self.back.set_attr(&self.path(inode)?.path, &set)?;
        }
        Ok(After::NONE)
    }

    fn read(&self, _: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.back.read_at(&self.path(file.inode)?.path, offset, buf)
    }

    fn write(&self, _: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        self.back.write_at(&self.path(file.inode)?.path, at.offset(), data)
    }

    fn set_len(&self, _request: &Request, inode: &Inode, len: u64) -> Result<(u64, After), Errno> {
        self.back.set_len(&self.path(inode)?.path, len).map(|blocks| (blocks, After::NONE))
    }

    fn allocate(
        &self,
        _request: &Request,
        file: &Open<'_>,
        how: Allocate,
        keep_size: bool,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        self.back.allocate(&self.path(file.inode)?.path, how, keep_size, offset, len)
    }

    fn sync(&self, _: &Request, file: &Open<'_>, data_only: bool) -> Result<(), Errno> {
        self.back.sync(&self.path(file.inode)?.path, data_only)
    }

    fn get_xattr(&self, _: &Request, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.back.get_xattr(&self.path(inode)?.path, name)
    }

    fn set_xattr(
        &self,
        _request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        self.back.set_xattr(&self.path(inode)?.path, name, value, how)
    }

    fn remove_xattr(&self, _request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        self.back.remove_xattr(&self.path(inode)?.path, name)
    }

    fn list_xattrs(&self, _: &Request, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        self.back.list_xattrs(&self.path(inode)?.path)
    }

    fn statfs(&self, _: &Request, _: &Inode) -> Result<StatFs, Errno> {
        self.back.statfs()
    }

    fn evict(&self, inode: &Inode) {
        self.nodes.lock().tree.evicted(inode.node());
    }
}

impl<P> core::fmt::Debug for PathAdapter<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PathAdapter").field("nodes", &self.nodes.lock().tree.len()).finish_non_exhaustive()
    }
}
