//! The adapter for file systems by whole paths, over one in memory: all cases for file systems, and what is the
//! adapter's own.

use lightfoot_pathfs::{PathAdapter, PathEntry, PathFileSystem};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use testkit::{Features, Gate, Outside, Subject};
use vfs::{
    AclKind, Attr, Base, Context, Errno, FileSystem, Inode, Layer, NewInode, Open, OpenFlags, PathAt, Position,
    RenameFlags, Request, S_IFDIR, S_IFREG, SetAttr, SetTime, SetXattr, StatFs, Valid, Vfs, Written,
};

/// Bytes that all files may take together.
const ROOM: u64 = 16 << 20;

#[derive(Debug, Default)]
struct File {
    attr: Attr,
    data: Vec<u8>,
    xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Files by path; the handle is shared.
#[derive(Clone, Debug)]
struct Memory {
    files: Arc<Mutex<BTreeMap<Vec<u8>, File>>>,
    valid: Valid,
    /// Where lookups of names that begin with `wait` wait, if a test closed it.
    gate: Gate,
}

impl Memory {
    fn new() -> Self {
        let root = File { attr: Attr { mode: S_IFDIR | 0o755, ..Attr::default() }, ..File::default() };
        let files = Arc::new(Mutex::new(BTreeMap::from([(Vec::new(), root)])));
        Self { files, valid: Valid::UntilInvalidated, gate: Gate::default() }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, File>> {
        self.files.lock().unwrap()
    }

    fn with<R>(&self, path: &[u8], f: impl FnOnce(&mut File) -> R) -> Result<R, Errno> {
        self.files().get_mut(path).map(f).ok_or(Errno::ENOENT)
    }

    fn resize(&self, path: &[u8], len: usize) -> Result<(), Errno> {
        let mut files = self.files();
        let taken: u64 = files.iter().filter(|(at, _)| at.as_slice() != path).map(|(_, f)| f.data.len() as u64).sum();
        if taken + len as u64 > ROOM {
            return Err(Errno::ENOSPC);
        }
        let file = files.get_mut(path).ok_or(Errno::ENOENT)?;
        file.data.resize(len, 0);
        file.attr.size = len as u64;
        Ok(())
    }
}

/// Whether `path` is `dir` or below it; the rest of it.
fn below<'p>(path: &'p [u8], dir: &[u8]) -> Option<&'p [u8]> {
    path.strip_prefix(dir).filter(|rest| rest.is_empty() || rest[0] == b'/' || dir.is_empty())
}

impl PathFileSystem for Memory {
    fn valid(&self) -> Valid {
        self.valid
    }

    fn acls(&self) -> bool {
        true
    }

    fn metadata(&self, path: &[u8]) -> Result<Attr, Errno> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if name.starts_with(b"wait") {
            self.gate.pass();
        }
        self.with(path, |file| file.attr)
    }

    fn read_dir(&self, path: &[u8]) -> Result<Vec<PathEntry>, Errno> {
        let files = self.files();
        let entries = files.iter().filter_map(|(at, file)| {
            let rest = below(at, path).filter(|rest| !rest.is_empty())?;
            let name = rest.strip_prefix(b"/").unwrap_or(rest);
            (!name.contains(&b'/')).then(|| PathEntry { name: name.into(), kind: file.attr.kind() })
        });
        Ok(entries.collect())
    }

    fn read_link(&self, path: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.with(path, |file| file.data.as_slice().into())
    }

    fn read_at(&self, path: &[u8], offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.with(path, |file| {
            let data = usize::try_from(offset).ok().and_then(|offset| file.data.get(offset..)).unwrap_or_default();
            let len = data.len().min(buf.len());
            buf[..len].copy_from_slice(&data[..len]);
            len
        })
    }

    fn write_at(&self, path: &[u8], offset: u64, data: &[u8]) -> Result<Written, Errno> {
        let start = usize::try_from(offset).map_err(|_| Errno::EFBIG)?;
        let end = start + data.len();
        let len = self.with(path, |file| file.data.len())?;
        self.resize(path, len.max(end))?;
        self.with(path, |file| file.data[start..end].copy_from_slice(data))?;
        Ok(Written::new(data.len(), (len.max(end) as u64).div_ceil(4096) * 8))
    }

    fn create(&self, path: &[u8], attr: &mut Attr, link_body: Option<&[u8]>) -> Result<(), Errno> {
        let data = link_body.unwrap_or_default().to_vec();
        let file = File { attr: Attr { nlink: 0, ..*attr }, data, ..File::default() };
        match self.files().insert(path.into(), file) {
            None => Ok(()),
            Some(_) => Err(Errno::EEXIST),
        }
    }

    fn remove(&self, path: &[u8], _is_dir: bool) -> Result<(), Errno> {
        let mut files = self.files();
        if files.keys().any(|at| below(at, path).is_some_and(|rest| !rest.is_empty())) {
            return Err(Errno::ENOTEMPTY);
        }
        files.remove(path).map(drop).ok_or(Errno::ENOENT)
    }

    fn rename(&self, from: &[u8], to: &[u8], flags: RenameFlags) -> Result<(), Errno> {
        let mut files = self.files();
        let exchange = flags.contains(RenameFlags::EXCHANGE);
        if !exchange && files.keys().any(|at| below(at, to).is_some_and(|rest| !rest.is_empty())) {
            return Err(Errno::ENOTEMPTY);
        }
        let moved = |at: &[u8]| match (below(at, from), below(at, to)) {
            (Some(rest), _) => Some([to, rest].concat()),
            (_, Some(rest)) if exchange => Some([from, rest].concat()),
            _ => None,
        };
        let old: Vec<_> = files.keys().filter_map(|at| Some((at.clone(), moved(at)?))).collect();
        let taken: Vec<_> = old.into_iter().filter_map(|(at, new)| Some((new, files.remove(&at)?))).collect();
        files.extend(taken);
        Ok(())
    }

    fn set_len(&self, path: &[u8], len: u64) -> Result<u64, Errno> {
        self.resize(path, usize::try_from(len).map_err(|_| Errno::EFBIG)?)?;
        Ok(len.div_ceil(4096) * 8)
    }

    fn set_attr(&self, path: &[u8], set: &SetAttr) -> Result<(), Errno> {
        let time = |set: Option<SetTime>, old| if let Some(SetTime::At(ns)) = set { ns } else { old };
        self.with(path, |file| {
            let attr = &mut file.attr;
            attr.mode = set.mode.map_or(attr.mode, |mode| attr.kind() | mode);
            (attr.uid, attr.gid) = (set.uid.unwrap_or(attr.uid), set.gid.unwrap_or(attr.gid));
            (attr.atime, attr.mtime) = (time(set.atime, attr.atime), time(set.mtime, attr.mtime));
        })
    }

    fn get_xattr(&self, path: &[u8], name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.with(path, |file| file.xattrs.get(name).map(|value| value.as_slice().into()))?.ok_or(Errno::ENODATA)
    }

    fn set_xattr(&self, path: &[u8], name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno> {
        self.with(path, |file| match (how, file.xattrs.contains_key(name)) {
            (SetXattr::Create, true) => Err(Errno::EEXIST),
            (SetXattr::Replace, false) => Err(Errno::ENODATA),
            _ => {
                file.xattrs.insert(name.into(), value.into());
                Ok(())
            }
        })?
    }

    fn remove_xattr(&self, path: &[u8], name: &[u8]) -> Result<(), Errno> {
        self.with(path, |file| file.xattrs.remove(name).map(drop))?.ok_or(Errno::ENODATA)
    }

    fn list_xattrs(&self, path: &[u8]) -> Result<Vec<Box<[u8]>>, Errno> {
        self.with(path, |file| file.xattrs.keys().map(|name| name.as_slice().into()).collect())
    }

    fn statfs(&self) -> Result<StatFs, Errno> {
        let blocks = ROOM / 4096;
        Ok(StatFs { block_size: 4096, blocks, blocks_free: blocks, name_max: 255, ..StatFs::default() })
    }
}

impl Outside for Memory {
    fn write(&self, path: &[u8], contents: &[u8]) {
        let attr = Attr { mode: S_IFREG | 0o644, size: contents.len() as u64, ..Attr::default() };
        let mut files = self.files();
        let file = files.entry(path.into()).or_insert_with(|| File { attr, ..File::default() });
        (file.data, file.attr.size) = (contents.into(), attr.size);
    }

    fn remove(&self, path: &[u8]) {
        self.files().remove(path);
    }
}

const FEATURES: Features = Features {
    hard_links: false,
    unnamed: false,
    open_unlinked: false,
    allocate: false,
    holes: false,
    reflinks: false,
    ids: false,
    room: Some(ROOM),
    ..Features::all()
};

fn quiet() -> PathAdapter<Memory> {
    PathAdapter::new(Memory::new())
}

fn changed_outside() -> Subject {
    let memory = Memory { valid: Valid::For(0), ..Memory::new() };
    Subject::with_outside(PathAdapter::new(memory.clone()), memory)
}

testkit::suite!(quiet, FEATURES);

#[test]
fn a_back_end_that_others_change_passes_all_cases() {
    let report = testkit::run(changed_outside, FEATURES);
    assert!(report.is_ok(), "{report}");
}

/// A back end that can say what is there, and nothing else.
struct Bare;

impl PathFileSystem for Bare {
    fn metadata(&self, path: &[u8]) -> Result<Attr, Errno> {
        match path {
            b"" => Ok(Attr { mode: S_IFDIR | 0o755, ..Attr::default() }),
            b"file" => Ok(Attr { mode: S_IFREG | 0o644, size: 4, ..Attr::default() }),
            _ => Err(Errno::ENOENT),
        }
    }
}

#[test]
fn what_a_back_end_does_not_do_is_refused() {
    let context = Vfs::new(PathAdapter::new(Bare)).context();
    let file = context.open(Base::CWD, b"/file", OpenFlags::RDWR, 0).unwrap();
    let attr = context.attr(Base::CWD, b"/file", true).unwrap();
    assert_eq!((attr.size, attr.nlink, file.attr().unwrap().ino), (4, 1, attr.ino));
    assert_eq!(file.read_at(0, &mut [0; 4]), Err(Errno::EINVAL));
    assert_eq!(file.write_at(0, b"data"), Err(Errno::EINVAL));
    assert_eq!(file.set_len(0), Err(Errno::EINVAL));
    let chmod = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    assert_eq!(context.set_attr(Base::CWD, b"/file", true, &chmod), Err(Errno::EPERM));
    assert_eq!(context.mkdir(Base::CWD, b"/dir", 0o755), Err(Errno::EPERM));
    assert_eq!(context.unlink(Base::CWD, b"/file"), Err(Errno::EPERM));
    assert_eq!(
        context.rename(PathAt::cwd(b"/file"), PathAt::cwd(b"/other"), RenameFlags::default()),
        Err(Errno::EPERM)
    );
    assert_eq!(context.get_xattr(Base::CWD, b"/file", true, b"user.a"), Err(Errno::EOPNOTSUPP));
    let acl = AclKind::Access.xattr_name();
    assert_eq!(context.get_xattr(Base::CWD, b"/file", true, acl), Err(Errno::EOPNOTSUPP));
    assert_eq!(context.set_xattr(Base::CWD, b"/file", true, acl, &[], SetXattr::Any), Err(Errno::EOPNOTSUPP));
    assert_eq!(context.statvfs(Base::CWD, b"/").err(), Some(Errno::ENOSYS));
    assert_eq!(context.open(Base::CWD, b"/", OpenFlags::RDONLY, 0).unwrap().next_entries(), Err(Errno::ENOSYS));
}

fn look(context: &Context, path: &str) -> Result<u64, Errno> {
    context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino)
}

#[test]
fn a_lookup_below_a_directory_that_moves_meanwhile_is_right() {
    let memory = Memory::new();
    for path in ["a", "a/d", "b"] {
        let attr = Attr { mode: S_IFDIR | 0o755, ..Attr::default() };
        memory.files().insert(path.into(), File { attr, ..File::default() });
    }
    Outside::write(&memory, b"a/d/wait", b"text");
    let (gate, vfs) = (memory.gate.clone(), Vfs::new(PathAdapter::new(memory)));
    gate.close();
    let context = vfs.context();
    assert!(look(&context, "/a/d").is_ok() && look(&context, "/b").is_ok());
    std::thread::scope(|scope| {
        let asker = scope.spawn(|| {
            let held = vfs.context();
            held.set_current_dir(b"/a/d").unwrap();
            held.attr(Base::CWD, b"wait", true).map(|attr| attr.size)
        });
        // While the back end says nothing, names move and go.
        gate.wait_for(1);
        context.mkdir(Base::CWD, b"/other", 0o755).unwrap();
        context.rmdir(Base::CWD, b"/other").unwrap();
        context.rename(PathAt::cwd(b"/a/d"), PathAt::cwd(b"/b/d"), RenameFlags::default()).unwrap();
        gate.open();
        assert_eq!(asker.join().unwrap(), Ok(4));
    });
    assert_eq!(look(&context, "/a/d"), Err(Errno::ENOENT));
    assert!(look(&context, "/b/d/wait").is_ok());
}

#[test]
fn lookups_of_one_directory_are_in_the_back_end_at_once() {
    const THREADS: u32 = 4;
    let memory = Memory::new();
    (0..THREADS).for_each(|number| Outside::write(&memory, format!("wait{number}").as_bytes(), b"x"));
    let (gate, vfs) = (memory.gate.clone(), Vfs::new(PathAdapter::new(memory)));
    gate.close();
    let found = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            let (vfs, found) = (&vfs, &found);
            scope.spawn(move || {
                look(&vfs.context(), &format!("/wait{number}")).unwrap();
                found.fetch_add(1, SeqCst);
            });
        }
        gate.wait_for(THREADS);
        assert_eq!(found.load(SeqCst), 0);
        gate.open();
    });
    assert_eq!(found.load(SeqCst), THREADS);
}

/// During each write a thread learns the length that the file had before the records.
struct LateAnswer {
    inner: PathAdapter<Memory>,
    vfs: Arc<Mutex<Option<Vfs>>>,
    is_late: AtomicBool,
}

impl Layer for LateAnswer {
    type Inner = PathAdapter<Memory>;

    fn inner(&self) -> &Self::Inner {
        &self.inner
    }

    fn revalidate(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<NewInode, Errno> {
        let mut found = self.inner.revalidate(request, dir, name, inode)?;
        if self.is_late.load(SeqCst) {
            found.attr.size = 0;
        }
        Ok(found)
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        let stat = || self.vfs.lock().unwrap().as_ref().unwrap().context().attr(Base::CWD, b"/log", true);
        self.is_late.store(true, SeqCst);
        std::thread::scope(|scope| scope.spawn(stat).join()).unwrap()?;
        self.is_late.store(false, SeqCst);
        assert_eq!(file.inode.size(), 0);
        self.inner.write(request, file, at, data)
    }
}

#[test]
fn a_late_answer_during_an_append_loses_no_record() {
    let memory = Memory { valid: Valid::For(0), ..Memory::new() };
    let inner = PathAdapter::new(memory.clone());
    let own = Arc::new(Mutex::new(None));
    let vfs = Vfs::new(LateAnswer { inner, vfs: own.clone(), is_late: AtomicBool::new(false) });
    *own.lock().unwrap() = Some(vfs.clone());
    let append = OpenFlags::CREAT.union(OpenFlags::WRONLY).union(OpenFlags::APPEND);
    let log = vfs.context().open(Base::CWD, b"/log", append, 0o644).unwrap();
    assert_eq!(log.write_at(0, b"one."), Ok((4, 4)));
    assert_eq!(log.write_at(0, b"two."), Ok((4, 8)));
    assert_eq!(memory.with(b"log", |file| file.data.clone()), Ok(b"one.two.".to_vec()));
    own.lock().unwrap().take();
}
