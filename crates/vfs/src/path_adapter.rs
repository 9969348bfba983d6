//! File systems by whole paths: the short way to a file system of one's own.
//!
//! # What it is
//! [`PathFileSystem`] is what a simple back end can say: what is at this path, what is in this directory, read there,
//! write there. [`PathAdapter`] makes a [`FileSystem`] of it: it gives nodes, keeps a table from node to parent and
//! name, and builds paths when they are needed, so that a directory that moves takes along all that is below it. The
//! tables are in `nodes`.
//!
//! # What it is not
//! A file system with hard links, or one whose open files outlive their names: with its path a file is out of reach,
//! and reading, writing and changing it is `ESTALE`. What is in the cache of it (`fstat(2)`) stays.
//!
//! # How it is locked
//! `moves` is held shared by what uses a path, and alone by what takes paths away (removing, renaming), so that nothing
//! is read from or written to another file that has the path by then. Looking a name up is optimistic instead: it
//! holds no lock while the back end works, and is done again if a path went meanwhile; after some tries it holds
//! `moves` shared. The table has a mutex, held for no call. The VFS's locks are outside of both.
//!
//! # Where it comes from
//! libfuse's high-level interface (`struct fuse_operations`, `lib/fuse.c`: `get_path`, `try_get_path`); own code.
//!
//! # Limitations
//! A back end that never answers a read or a write lets removals and renames wait, and what comes after them. A file
//! that was replaced behind the adapter by one of the same kind is taken for the same. A file has one name. The
//! number of a file may be another after it was evicted.

mod nodes;

use crate::attr::{Attr, S_IFDIR, SetAttr};
use crate::errno::Errno;
use crate::file::DirEntry;
use crate::fs::{Allocate, FileSystem, NewInode, RenameFlags, Request, SeekFor, SetXattr, StatFs, Valid, Written};
use crate::inode::Inode;
use nodes::{Nodes, ROOT};
use sync::{Mutex, RwSem, RwSemReadGuard};

/// Lookups that are tried without the lock.
const TRIES: u32 = 4;

/// One entry of a directory, as a [`PathFileSystem`] lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathEntry {
    /// Its name.
    pub name: Box<[u8]>,
    /// File type ([`S_IFMT`](crate::S_IFMT) of its mode).
    pub kind: u32,
}

/// A file system by whole paths. Paths are relative to its root, without a slash at either end: `dir/file`; the root
/// is empty. Calls come from many threads at once, and must not call back into the VFS.
pub trait PathFileSystem: Send + Sync + 'static {
    /// The name of its type in a list of mounts.
    fn type_name(&self) -> &str {
        "path"
    }

    /// For how long what it says of a name is good, and that there is none. Asked once for names that are not there.
    fn valid(&self) -> Valid {
        Valid::UntilTold
    }

    /// As [`FileSystem::caches_listings`].
    fn caches_listings(&self) -> bool {
        false
    }

    /// What is at `path`. `ino` is not looked at: the adapter gives numbers. `nlink` 0 means: one name; for a
    /// directory, the adapter counts its sub-directories by listing it.
    ///
    /// # Errors
    /// `ENOENT`, or whatever the storage answers.
    fn metadata(&self, path: &[u8]) -> Result<Attr, Errno>;

    /// All entries of the directory at `path`, in any order, without `.` and `..`.
    ///
    /// # Errors
    /// `EIO`...
    fn read_dir(&self, _path: &[u8]) -> Result<Vec<PathEntry>, Errno> {
        Err(Errno::ENOSYS)
    }

    /// The body of a symbolic link.
    ///
    /// # Errors
    /// `EIO`...
    fn read_link(&self, _path: &[u8]) -> Result<Box<[u8]>, Errno> {
        Err(Errno::ENOSYS)
    }

    /// Reads into `buf` from `offset` on; 0 at and after the end.
    ///
    /// # Errors
    /// `EIO`...
    fn read_at(&self, _path: &[u8], _offset: u64, _buf: &mut [u8]) -> Result<usize, Errno> {
        Err(Errno::EINVAL)
    }

    /// As [`FileSystem::write_at`].
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EFBIG`, `EIO`...
    fn write_at(&self, _path: &[u8], _offset: u64, _data: &[u8]) -> Result<Written, Errno> {
        Err(Errno::EINVAL)
    }

    /// Makes what `attr` says at `path`, where nothing is; a symbolic link with `link_body`. May change what it stores
    /// differently.
    ///
    /// # Errors
    /// `ENOSPC`, `EDQUOT`, `EROFS`, `EIO`...; `EPERM` if it makes no such thing.
    fn create(&self, _path: &[u8], _attr: &mut Attr, _link_body: Option<&[u8]>) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Takes the file, or the directory, at `path` away.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `EROFS`...
    fn remove(&self, _path: &[u8], _is_dir: bool) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// Moves what is at `from` to `to`, with all below it, over what is there; with `EXCHANGE` they change places.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `EROFS`, `EXDEV`...; `EINVAL` for flags that it cannot do.
    fn rename(&self, _from: &[u8], _to: &[u8], _flags: RenameFlags) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// As [`FileSystem::set_len`].
    ///
    /// # Errors
    /// `EFBIG`, `ENOSPC`, `EIO`...
    fn set_len(&self, _path: &[u8], _len: u64) -> Result<u64, Errno> {
        Err(Errno::EINVAL)
    }

    /// Changes attributes but for the length. Not called for nothing.
    ///
    /// # Errors
    /// `EPERM` if it keeps none; `EROFS`, `EIO`...
    fn set_attr(&self, _path: &[u8], _set: &SetAttr) -> Result<(), Errno> {
        Err(Errno::EPERM)
    }

    /// As [`FileSystem::allocate`].
    ///
    /// # Errors
    /// `EOPNOTSUPP` for what it cannot do; `ENOSPC`, `EDQUOT`...
    fn allocate(&self, _path: &[u8], _how: Allocate, _keep_size: bool, _offset: u64, _len: u64) -> Result<u64, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// As [`FileSystem::sync`].
    ///
    /// # Errors
    /// `EIO`...
    fn sync(&self, _path: &[u8], _data_only: bool) -> Result<(), Errno> {
        Ok(())
    }

    /// As [`FileSystem::sync_all`].
    ///
    /// # Errors
    /// `EIO`...
    fn sync_all(&self) -> Result<(), Errno> {
        Ok(())
    }

    /// As [`FileSystem::get_xattr`].
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`.
    fn get_xattr(&self, _path: &[u8], _name: &[u8]) -> Result<Box<[u8]>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// As [`FileSystem::set_xattr`].
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` as `how` says; `ENOSPC`, `EOPNOTSUPP`.
    fn set_xattr(&self, _path: &[u8], _name: &[u8], _value: &[u8], _how: SetXattr) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// As [`FileSystem::remove_xattr`].
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`.
    fn remove_xattr(&self, _path: &[u8], _name: &[u8]) -> Result<(), Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// As [`FileSystem::list_xattrs`].
    ///
    /// # Errors
    /// `EOPNOTSUPP` if it has none at all.
    fn list_xattrs(&self, _path: &[u8]) -> Result<Vec<Box<[u8]>>, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    /// As [`FileSystem::statfs`].
    ///
    /// # Errors
    /// `ENOSYS` if it cannot say.
    fn statfs(&self) -> Result<StatFs, Errno> {
        Err(Errno::ENOSYS)
    }
}

/// A [`FileSystem`] over a [`PathFileSystem`]; see the module's description at its head: no hard links, and a file
/// without a name is `ESTALE`.
pub struct PathAdapter<P> {
    back: P,
    /// Shared: a path is in use. Alone: paths go.
    moves: RwSem<()>,
    nodes: Mutex<Nodes>,
    /// Of the hash by which listings are ordered.
    key: u64,
}

/// A path that nothing takes away while this lives.
struct Path<'a> {
    path: Vec<u8>,
    _stays: RwSemReadGuard<'a, ()>,
}

impl<P: PathFileSystem> PathAdapter<P> {
    /// A file system over `back`.
    #[must_use]
    pub fn new(back: P) -> Self {
        let nodes = Mutex::new(Nodes::new());
        Self { back, moves: RwSem::new(()), nodes, key: prim::seed::random_u64() }
    }

    /// The path of an inode.
    ///
    /// # Errors
    /// `ESTALE` if it has none any more.
    fn path(&self, inode: &Inode) -> Result<Path<'_>, Errno> {
        let stays = self.moves.read();
        let path = self.nodes.lock().path(inode.node()).ok_or(Errno::ESTALE)?;
        Ok(Path { path, _stays: stays })
    }

    /// What the back end says of `path`, with the links counted.
    fn describe(&self, path: &[u8]) -> Result<Attr, Errno> {
        let mut attr = self.back.metadata(path)?;
        if attr.nlink == 0 {
            attr.nlink = 1;
            if attr.is_dir() {
                // Who cannot list it cannot say either: no sub-directories, then.
                let entries = self.back.read_dir(path).unwrap_or_default();
                let below = entries.iter().filter(|entry| entry.kind == S_IFDIR).count();
                attr.nlink = 2 + u32::try_from(below).unwrap_or(u32::MAX - 2);
            }
        }
        Ok(attr)
    }

    /// The place of an entry in a listing: a hash of its name, above 0. It is keyed, so that nobody makes two names
    /// meet.
    fn cookie(&self, name: &[u8]) -> u64 {
        let mut hash = self.key;
        for byte in name {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hash ^= hash >> 29;
        }
        (hash ^ self.key.rotate_left(32)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 1 | 1
    }
}

impl<P: PathFileSystem> FileSystem for PathAdapter<P> {
    fn root(&self) -> NewInode {
        // There is nobody to tell of an error here: a root that cannot be described is an empty directory.
        let told = self.describe(b"").unwrap_or(Attr { mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() });
        NewInode { node: ROOT, attr: Attr { ino: ROOT, ..told }, valid: self.back.valid(), ..NewInode::default() }
    }

    fn type_name(&self) -> &str {
        self.back.type_name()
    }

    fn caches_listings(&self) -> bool {
        self.back.caches_listings()
    }

    fn default_valid(&self) -> Valid {
        self.back.valid()
    }

    fn lookup(&self, _request: &Request, dir: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        for tried in 0.. {
            let _stays = (tried >= TRIES).then(|| self.moves.read());
            let (path, state) = self.nodes.lock().child(dir.node(), name).ok_or(Errno::ESTALE)?;
            let told = self.describe(&path);
            let mut nodes = self.nodes.lock();
            if nodes.has_moved(&state) {
                continue;
            }
            return match told {
                Ok(attr) => {
                    let node = nodes.known(dir.node(), name, attr.kind());
                    let attr = Attr { ino: node, ..attr };
                    Ok(NewInode { node, attr, valid: self.back.valid(), ..NewInode::default() })
                }
                Err(errno) => {
                    if errno == Errno::ENOENT {
                        nodes.vanished(dir.node(), name, &state);
                    }
                    Err(errno)
                }
            };
        }
        Err(Errno::ESTALE)
    }

    fn read_link(&self, _request: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        self.back.read_link(&self.path(inode)?.path)
    }

    /// In the order of a hash of the names, which is also the cookie: what comes and goes changes nobody's place.
    fn read_dir(&self, dir: &Inode, after: u64, emit: &mut dyn FnMut(DirEntry, u64) -> bool) -> Result<(), Errno> {
        let path = self.path(dir)?;
        let entries = self.back.read_dir(&path.path)?.into_iter().map(|entry| (self.cookie(&entry.name), entry));
        let mut entries: Vec<_> = entries.filter(|(cookie, _)| *cookie > after).collect();
        entries.sort_unstable_by(|(a, x), (b, y)| (a, &x.name).cmp(&(b, &y.name)));
        for (cookie, PathEntry { name, kind }) in entries {
            let ino = self.nodes.lock().listed(dir.node(), &name, kind);
            if !emit(DirEntry { name, ino, kind }, cookie) {
                break;
            }
        }
        Ok(())
    }

    fn create(
        &self,
        _request: &Request,
        dir: &Inode,
        name: &[u8],
        attr: &mut Attr,
        link_body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        let _stays = self.moves.read();
        let (path, _) = self.nodes.lock().child(dir.node(), name).ok_or(Errno::ESTALE)?;
        self.back.create(&path, attr, link_body)?;
        let node = self.nodes.lock().made(dir.node(), name, attr.kind());
        attr.ino = node;
        Ok(node)
    }

    fn unlink(&self, _request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<(), Errno> {
        let _alone = self.moves.write();
        let (path, _) = self.nodes.lock().child(dir.node(), name).ok_or(Errno::ESTALE)?;
        self.back.remove(&path, inode.attr().is_dir())?;
        self.nodes.lock().removed(dir.node(), name);
        Ok(())
    }

    fn rename(
        &self,
        _request: &Request,
        from: (&Inode, &[u8]),
        to: (&Inode, &[u8]),
        _inode: &Inode,
        _target: Option<&Inode>,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        let _alone = self.moves.write();
        let (from, to) = ((from.0.node(), from.1), (to.0.node(), to.1));
        let (old, _) = self.nodes.lock().child(from.0, from.1).ok_or(Errno::ESTALE)?;
        let (new, _) = self.nodes.lock().child(to.0, to.1).ok_or(Errno::ESTALE)?;
        self.back.rename(&old, &new, flags)?;
        self.nodes.lock().moved(from, to, flags.has(RenameFlags::EXCHANGE));
        Ok(())
    }

    fn set_attr(&self, _request: &Request, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        let set = SetAttr { size: None, ..*set };
        if set == SetAttr::default() { Ok(()) } else { self.back.set_attr(&self.path(inode)?.path, &set) }
    }

    fn read_at(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.back.read_at(&self.path(inode)?.path, offset, buf)
    }

    fn write_at(&self, _request: &Request, inode: &Inode, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        self.back.write_at(&self.path(inode)?.path, offset, data)
    }

    fn set_len(&self, _request: &Request, inode: &Inode, len: u64) -> Result<u64, Errno> {
        self.back.set_len(&self.path(inode)?.path, len)
    }

    fn allocate(
        &self,
        _request: &Request,
        inode: &Inode,
        how: Allocate,
        keep_size: bool,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        self.back.allocate(&self.path(inode)?.path, how, keep_size, offset, len)
    }

    /// No holes are known: all below the end is data.
    fn seek(&self, inode: &Inode, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        match what {
            SeekFor::Data => Ok(offset),
            SeekFor::Hole => Ok(inode.size()),
        }
    }

    fn sync(&self, inode: &Inode, data_only: bool) -> Result<(), Errno> {
        self.back.sync(&self.path(inode)?.path, data_only)
    }

    fn sync_all(&self) -> Result<(), Errno> {
        self.back.sync_all()
    }

    fn get_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
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

    fn list_xattrs(&self, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        self.back.list_xattrs(&self.path(inode)?.path)
    }

    fn statfs(&self) -> Result<StatFs, Errno> {
        self.back.statfs()
    }

    fn evict(&self, inode: &Inode) {
        self.nodes.lock().evicted(inode.node());
    }
}

impl<P> core::fmt::Debug for PathAdapter<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PathAdapter").field("nodes", &self.nodes.lock().len()).finish_non_exhaustive()
    }
}
