//! Types for a file system of your own.
//!
//! Implement [`PathFileSystem`] if your back end works with whole paths (an archive, a web
//! service): this needs less code. Implement [`FileSystem`] if it has numbers for its files, as a
//! disk or a database has: this trait has all operations. [`Layer`] changes some methods of a file
//! system that exists.
//!
//! # Where it comes from
//! The types are the core's; each has an example here.

mod arguments;
mod cancel;
mod opened;
mod traits;

pub use arguments::{After, Copying, Rename, Request, SeekFor, SetAttr, SetTime, Written};
pub use cancel::{Bounded, Cancel, CancelWatch};
pub use opened::{Open, OpenState, Opened, Position};
pub use traits::{Attributes, CachedNames, FsTraits, Modes, NameRules, NameStore, Opens, OwnNames, Valid};

#[doc(no_inline)]
pub use crate::flags::{Allocate, RenameFlags, SetXattr};
#[doc(no_inline)]
pub use crate::reports::StatFs;
pub use vfs::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK};

/// A file system that identifies files by numbers. One method is required. A file system that does
/// not change needs only lookups, listings and reads.
///
/// ```
/// use lightfoot::fs::{Attr, FileSystem, Inode, NewInode, NextNames, Open, Request, S_IFDIR, S_IFREG};
/// use lightfoot::{Errno, Vfs};
///
/// /// A directory with one file.
/// struct Greeting;
///
/// impl FileSystem for Greeting {
///     fn root(&self) -> NewInode {
///         let attr = Attr { ino: 1, mode: S_IFDIR | 0o555, nlink: 2, ..Attr::default() };
///         NewInode { node: 1, attr, ..NewInode::default() }
///     }
///
///     fn lookup(&self, _: &Request, _: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
///         if name != b"greeting" {
///             return Err(Errno::ENOENT);
///         }
///         let attr = Attr { ino: 2, mode: S_IFREG | 0o444, nlink: 1, size: 5, ..Attr::default() };
///         Ok(NewInode { node: 2, attr, ..NewInode::default() })
///     }
///
///     fn read(&self, _: &Request, _: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
///         let rest = b"hello".get(offset as usize..).unwrap_or_default();
///         let len = rest.len().min(buf.len());
///         buf[..len].copy_from_slice(&rest[..len]);
///         Ok(len)
///     }
/// }
///
/// assert_eq!(Vfs::new(Greeting).context().read_to_string("/greeting")?, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::FileSystem;

/// A file system that wraps another one and changes some methods of it.
///
/// ```
/// use lightfoot::fs::{Layer, Open, Position, Request, Written};
/// use lightfoot::{Errno, RamFs, Vfs};
///
/// /// Stores all text in capital letters.
/// struct Loud(RamFs);
///
/// impl Layer for Loud {
///     type Inner = RamFs;
///
///     fn inner(&self) -> &RamFs {
///         &self.0
///     }
///
///     fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
///         self.0.write(request, file, at, &data.to_ascii_uppercase())
///     }
/// }
/// # use lightfoot::FileSystem;
///
/// let ctx = Vfs::new(Loud(RamFs::new())).context();
/// ctx.write("/file", "hello")?;
/// assert_eq!(ctx.read_to_string("/file")?, "HELLO");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Layer;

/// A file system that identifies files by whole paths, which needs less code than numbers.
/// [`PathAdapter`] makes a [`FileSystem`] of it.
///
/// ```
/// use lightfoot::fs::{Attr, PathAdapter, PathFileSystem, S_IFDIR, S_IFREG};
/// use lightfoot::{Errno, Vfs};
///
/// /// Every number is a file with its square: `/12` contains `144`.
/// struct Squares;
///
/// fn square(path: &[u8]) -> Result<String, Errno> {
///     let number: u32 = std::str::from_utf8(path).ok().and_then(|path| path.parse().ok()).ok_or(Errno::ENOENT)?;
///     Ok((u64::from(number) * u64::from(number)).to_string())
/// }
///
/// impl PathFileSystem for Squares {
///     fn metadata(&self, path: &[u8]) -> Result<Attr, Errno> {
///         if path.is_empty() {
///             return Ok(Attr { mode: S_IFDIR | 0o555, ..Attr::default() });
///         }
///         Ok(Attr { mode: S_IFREG | 0o444, size: square(path)?.len() as u64, ..Attr::default() })
///     }
///
///     fn read_at(&self, path: &[u8], offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
///         let text = square(path)?;
///         let rest = text.as_bytes().get(offset as usize..).unwrap_or_default();
///         let len = rest.len().min(buf.len());
///         buf[..len].copy_from_slice(&rest[..len]);
///         Ok(len)
///     }
/// }
///
/// let ctx = Vfs::new(PathAdapter::new(Squares)).context();
/// assert_eq!(ctx.read_to_string("/12")?, "144");
/// assert!(!ctx.exists("/twelve"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use pathfs::PathFileSystem;

/// Makes a [`FileSystem`] of a [`PathFileSystem`].
///
/// ```
/// use lightfoot::fs::{Attr, PathAdapter, PathFileSystem, S_IFDIR};
/// use lightfoot::{Errno, MountFlags, Vfs};
///
/// struct Empty;
///
/// impl PathFileSystem for Empty {
///     fn metadata(&self, path: &[u8]) -> Result<Attr, Errno> {
///         let root = Attr { mode: S_IFDIR | 0o555, nlink: 2, ..Attr::default() };
///         if path.is_empty() { Ok(root) } else { Err(Errno::ENOENT) }
///     }
/// }
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/empty")?;
/// ctx.mount(PathAdapter::new(Empty), "/empty", MountFlags::default())?;
/// assert!(!ctx.exists("/empty/file"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use pathfs::PathAdapter;

/// One entry of a listing by [`PathFileSystem::read_dir`].
///
/// ```
/// use lightfoot::fs::{PathEntry, S_IFREG};
///
/// let names = ["a.txt", "b.txt"];
/// let listing: Vec<_> = names.map(|name| PathEntry { name: name.as_bytes().into(), kind: S_IFREG }).into();
/// assert_eq!(&*listing[1].name, b"b.txt");
/// ```
pub use pathfs::PathEntry;

/// The attributes of a file, as a file system returns them.
///
/// ```
/// use lightfoot::fs::{Attr, S_IFLNK};
///
/// let link = Attr { ino: 7, mode: S_IFLNK | 0o777, nlink: 1, size: 6, ..Attr::default() };
/// assert_eq!(link.kind(), S_IFLNK);
/// assert!(!link.is_dir());
/// ```
pub use vfs::Attr;

/// The result of [`FileSystem::lookup`]: a file, its attributes, and how long the answer is valid.
///
/// ```
/// use lightfoot::fs::{Attr, NewInode, S_IFLNK, Valid};
///
/// let attr = Attr { ino: 7, mode: S_IFLNK | 0o777, nlink: 1, size: 6, ..Attr::default() };
/// let link = NewInode {
///     node: 7,
///     attr,
///     link_body: Some(b"target".as_slice().into()),
///     valid: Valid::For(5_000_000_000), // After five seconds the VFS calls `revalidate`.
///     ..NewInode::default()
/// };
/// assert_eq!(link.link_body.as_deref(), Some(b"target".as_slice()));
/// ```
pub use vfs::NewInode;

/// The file that [`FileSystem::create`] makes: its attributes, a link's body, the ACLs that it
/// inherits, and its labels.
///
/// ```
/// use lightfoot::Errno;
/// use lightfoot::fs::{FileSystem, Inode, NewNode, Request};
/// # use lightfoot::fs::{Attr, NewInode, S_IFDIR};
///
/// struct Journal;
///
/// impl Journal {
///     /// Writes one record, so that after a crash the file has its ACLs, or is not there.
///     fn record(&self, dir: u64, name: &[u8], new: &NewNode<'_>) -> Result<u64, Errno> {
///         let size = name.len() + new.xattrs().iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
///         if size > 4096 { Err(Errno::ENOSPC) } else { Ok(dir + 1) }
///     }
/// }
///
/// impl FileSystem for Journal {
///     # fn root(&self) -> NewInode {
///     #     let attr = Attr { ino: 1, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
///     #     NewInode { node: 1, attr, ..NewInode::default() }
///     # }
///     fn create(&self, _: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
///         let name = name.ok_or(Errno::EOPNOTSUPP)?; // O_TMPFILE
///         new.attr.ino = self.record(dir.node(), name, new)?;
///         new.xattrs_stored(); // So the VFS does not store them by `set_xattr`.
///         Ok(new.attr.ino)
///     }
///     // `lookup`, `get_xattr`...
/// }
/// ```
pub use vfs::NewNode;

/// A file that the VFS has, as it passes it to methods of [`FileSystem`]. `node` is the number that you gave it.
///
/// ```
/// use lightfoot::fs::{FileSystem, Layer, Open, Request, S_IFREG};
/// use lightfoot::{Errno, RamFs, Vfs};
///
/// /// Reports each read.
/// struct Traced(RamFs);
///
/// impl Layer for Traced {
///     type Inner = RamFs;
///
///     fn inner(&self) -> &RamFs {
///         &self.0
///     }
///
///     fn read(&self, request: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
///         let inode = file.inode;
///         println!("read from {offset} of file {}, which has {} bytes", inode.node(), inode.size());
///         # assert_eq!(inode.attr().kind(), S_IFREG);
///         self.0.read(request, file, offset, buf)
///     }
/// }
/// # let ctx = Vfs::new(Traced(RamFs::new())).context();
/// # ctx.write("/file", "hello")?;
/// # assert_eq!(ctx.read("/file")?, b"hello");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Inode;

/// One entry of a directory: its name, inode number and type.
///
/// ```
/// use lightfoot::fs::{DirEntry, S_IFREG};
///
/// let entry = DirEntry { name: b"colour".as_slice().into(), ino: 2, kind: S_IFREG };
/// assert_eq!(&*entry.name, b"colour");
/// ```
pub use vfs::DirEntry;

/// One entry of a listing by [`FileSystem::read_dir`].
///
/// ```
/// use lightfoot::fs::{DirEntry, Listed, S_IFREG};
///
/// /// The loop of a `read_dir` over a list of names: the cookie of each is its place, from 1 on.
/// fn list(names: &[&str], after: u64, emit: &mut dyn FnMut(Listed) -> bool) {
///     for (place, name) in (1..).zip(names).skip(after as usize) {
///         let entry = DirEntry { name: name.as_bytes().into(), ino: place + 1, kind: S_IFREG };
///         if !emit(Listed::new(entry, place)) {
///             break;
///         }
///     }
/// }
///
/// let mut cookies = Vec::new();
/// list(&["a", "b", "c"], 1, &mut |listed| { cookies.push(listed.cookie); true });
/// assert_eq!(cookies, [2, 3]);
/// ```
pub use vfs::Listed;

/// The names that a walk needs after the one that it looks up, and the answers about them.
///
/// ```
/// use lightfoot::fs::{Attr, NewInode, NextNames, S_IFDIR};
///
/// /// Directories all the way down: a lookup of one name answers those behind it in the same call.
/// fn lookup(next: &mut NextNames<'_>) {
///     for (node, _name) in (2..).zip(next.names()) {
///         let attr = Attr { ino: node, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
///         next.found(NewInode { node, attr, ..NewInode::default() });
///     }
/// }
///
/// let mut next = NextNames::of(b"usr/lib/x");
/// lookup(&mut next);
/// assert_eq!(next.answers().len(), 3);
/// ```
pub use vfs::NextNames;

/// The parts of an entry that the caller of [`FileSystem::read_dir`] uses.
///
/// ```
/// use lightfoot::fs::{Listed, NewInode, Want};
///
/// /// An entry as a database returns it, whose attributes cost a second query.
/// fn entry(name: &[u8], cookie: u64, want: Want, query: impl Fn() -> NewInode) -> Listed {
///     let listed = Listed::with_inode(name, cookie, query());
///     Listed { inode: listed.inode.filter(|_| want.attributes), ..listed }
/// }
///
/// assert!(entry(b"a", 1, Want::ATTRIBUTES, NewInode::default).inode.is_some());
/// assert!(entry(b"a", 1, Want::NAMES, NewInode::default).inode.is_none());
/// ```
pub use vfs::Want;

/// Notifies the caches of a change that did not come through the VFS.
///
/// ```
/// use lightfoot::fs::{Attr, FileSystem, Inode, Invalidator, NewInode, NextNames, Request, S_IFDIR, S_IFREG};
/// use lightfoot::{Errno, Vfs};
/// use std::sync::{Arc, Mutex, atomic::{AtomicBool, Ordering::Relaxed}};
///
/// /// A directory with a file `ready`, or without it. The program decides that.
/// #[derive(Clone, Default)]
/// struct Flag {
///     is_set: Arc<AtomicBool>,
///     caches: Arc<Mutex<Option<Invalidator>>>,
/// }
///
/// impl Flag {
///     fn set(&self) {
///         self.is_set.store(true, Relaxed);
///         if let Some(caches) = &*self.caches.lock().unwrap() {
///             caches.entry(1, b"ready"); // The name in the directory whose number is 1.
///         }
///     }
/// }
///
/// impl FileSystem for Flag {
///     fn mounted(&self, invalidator: Invalidator) {
///         *self.caches.lock().unwrap() = Some(invalidator);
///     }
///     # fn root(&self) -> NewInode {
///     #     let attr = Attr { ino: 1, mode: S_IFDIR | 0o555, nlink: 2, ..Attr::default() };
///     #     NewInode { node: 1, attr, ..NewInode::default() }
///     # }
///     # fn lookup(&self, _: &Request, _: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
///     #     if name != b"ready" || !self.is_set.load(Relaxed) {
///     #         return Err(Errno::ENOENT);
///     #     }
///     #     let attr = Attr { ino: 2, mode: S_IFREG | 0o444, nlink: 1, ..Attr::default() };
///     #     Ok(NewInode { node: 2, attr, ..NewInode::default() })
///     # }
///     // ... and `root` and `lookup`.
/// }
///
/// let flag = Flag::default();
/// let ctx = Vfs::new(flag.clone()).context();
/// assert!(!ctx.exists("/ready")); // The cache keeps this answer until
/// flag.set();
/// assert!(ctx.exists("/ready"));
/// ```
pub use vfs::Invalidator;

/// An access control list, for a file system that stores some: [`NewInode::access_acl`].
///
/// ```
/// use lightfoot::fs::Acl;
///
/// // The list that means the same as a mode: owner, group, others.
/// let acl = Acl::from_mode(0o640);
/// assert_eq!(acl.equiv_mode(), Some(0o640));
/// assert_eq!(Acl::from_xattr(&acl.to_xattr())?, Some(acl));
/// # Ok::<(), lightfoot::Errno>(())
/// ```
pub use vfs::Acl;

/// One line of an access control list: the users to whom the line applies, and the rights that it
/// gives (read 4, write 2, execute 1).
///
/// ```
/// use lightfoot::fs::{Acl, AclEntry, AclTag};
///
/// let entry = |tag, perm| AclEntry { tag, perm };
/// let acl = Acl::new(&[entry(AclTag::UserObj, 6), entry(AclTag::GroupObj, 4), entry(AclTag::Other, 0)])?;
/// assert_eq!(acl, Acl::from_mode(0o640));
/// # Ok::<(), lightfoot::Errno>(())
/// ```
pub use vfs::AclEntry;

/// To whom a line of an access control list applies.
///
/// ```
/// use lightfoot::fs::{Acl, AclTag};
///
/// let tags: Vec<_> = Acl::from_mode(0o640).entries().iter().map(|entry| entry.tag).collect();
/// assert_eq!(tags, [AclTag::UserObj, AclTag::GroupObj, AclTag::Other]);
/// ```
pub use vfs::AclTag;

/// How a file is opened: an argument of [`FileSystem::open`].
///
/// ```
/// use lightfoot::fs::OpenFlags;
///
/// let flags = OpenFlags::RDWR | OpenFlags::APPEND;
/// assert!(flags.can_read());
/// assert!(!OpenFlags::WRONLY.can_read());
/// ```
pub use vfs::OpenFlags;

/// ```
/// use lightfoot::fs::InodeFlags;
///
/// let flags = InodeFlags::from_bits_retain(0x8_0000) | InodeFlags::NODUMP;
/// assert_eq!(flags.bits(), 0x8_0040);
/// ```
pub use vfs::InodeFlags;
