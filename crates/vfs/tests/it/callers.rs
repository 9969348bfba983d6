//! Requests name the caller: the opener of the file, or the user of the context.

use lightfoot_vfs::{
    Base, Capabilities, Credentials, Errno, FileSystem, FsTraits, Inode, InodeFlags, Layer, Listed, Open, OpenFlags,
    Opens, Request, SeekFor, StatFs, Vfs, Want,
};
use std::sync::{Arc, Mutex};
use testkit::Store;

const USER: u32 = 7;
const GROUPS: [u32; 2] = [8, 9];

/// The name of a method, and user and groups of its request.
type Seen = (&'static str, u32, Vec<u32>);

/// A file system that notes the callers of requests without a change.
struct Noted {
    store: Store,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Noted {
    fn note(&self, method: &'static str, request: &Request) {
        self.seen.lock().unwrap().push((method, request.uid, request.groups().to_vec()));
    }
}

impl Layer for Noted {
    type Inner = Store;

    fn inner(&self) -> &Store {
        &self.store
    }

    fn traits(&self) -> FsTraits {
        FsTraits { opens: Opens::Yes { flush: true }, ..FileSystem::traits(&self.store) }
    }

    fn read_dir(
        &self,
        request: &Request,
        dir: &Open<'_>,
        after: u64,
        want: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        self.note("read_dir", request);
        self.store.read_dir(request, dir, after, want, emit)
    }

    fn read(&self, request: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.note("read", request);
        self.store.read(request, file, offset, buf)
    }

    fn seek(&self, request: &Request, _: &Open<'_>, offset: u64, _: SeekFor) -> Result<u64, Errno> {
        self.note("seek", request);
        Ok(offset)
    }

    fn sync(&self, request: &Request, _: &Open<'_>, _: bool) -> Result<(), Errno> {
        self.note("sync", request);
        Ok(())
    }

    fn flush(&self, request: &Request, _: &Open<'_>) -> Result<(), Errno> {
        self.note("flush", request);
        Ok(())
    }

    fn get_xattr(&self, request: &Request, _: &Inode, _: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.note("get_xattr", request);
        Ok(Box::default())
    }

    fn list_xattrs(&self, request: &Request, _: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        self.note("list_xattrs", request);
        Ok(Vec::new())
    }

    fn statfs(&self, request: &Request, _: &Inode) -> Result<StatFs, Errno> {
        self.note("statfs", request);
        Ok(StatFs::default())
    }
}

#[test]
fn each_request_has_the_user_and_the_groups_of_its_caller() {
    let store = Store::with_paths(&["file", "dir/"]);
    store.write(store.node("file"), b"contents");
    store.change(store.node("file"), |attr| attr.uid = USER);
    let seen = Arc::<Mutex<Vec<Seen>>>::default();
    let vfs = Vfs::new(Noted { store, seen: seen.clone() });
    let context = vfs.context();
    let user = |uid, groups| {
        let mut cred = Credentials::user(uid, uid, groups);
        cred.capabilities = Capabilities::DAC_OVERRIDE;
        cred
    };
    context.set_credentials(user(USER, &GROUPS));
    let open = |path: &[u8], flags| context.open(Base::CWD, path, flags, 0).unwrap();
    let file = open(b"/file", OpenFlags::RDWR);
    let dir = open(b"/dir", OpenFlags::DIRECTORY);
    // From now on the context belongs to somebody else; the files do not.
    context.set_credentials(user(USER + 1, &[]));
    // Each calls the method that has its name.
    let by_file: [(&str, &dyn Fn()); 7] = [
        ("read", &|| assert_eq!(file.read_at(0, &mut [0; 4]), Ok(4))),
        ("seek", &|| assert_eq!(file.seek_for(SeekFor::Data, 0), Ok(0))),
        ("sync", &|| file.sync(false).unwrap()),
        ("flush", &|| file.flush().unwrap()),
        ("get_xattr", &|| drop(file.get_xattr(b"user.a").unwrap())),
        ("list_xattrs", &|| drop(file.list_xattrs().unwrap())),
        ("read_dir", &|| dir.entries_after(0, Want::NAMES, &mut |_, _| true).unwrap()),
    ];
    let by_context: [(&str, &dyn Fn()); 3] = [
        ("get_xattr", &|| drop(context.get_xattr(Base::CWD, b"/file", true, b"user.a").unwrap())),
        ("list_xattrs", &|| drop(context.list_xattrs(Base::CWD, b"/file", true).unwrap())),
        ("statfs", &|| assert!(context.statvfs(Base::CWD, b"/file").is_ok())),
    ];
    let check = |calls: &[(&'static str, &dyn Fn())], user: u32, groups: &[u32]| {
        for (method, call) in calls {
            seen.lock().unwrap().clear();
            call();
            let calls: Vec<_> = seen.lock().unwrap().drain(..).filter(|(name, ..)| name == method).collect();
            assert!(!calls.is_empty(), "{method} was not called");
            calls.iter().for_each(|seen| assert_eq!(*seen, (*method, user, groups.to_vec())));
        }
    };
    check(&by_file, USER, &GROUPS);
    check(&by_context, USER + 1, &[]);
}

/// A file system whose files have flags, all the same ones.
struct Flagged(Store, Arc<Mutex<InodeFlags>>);

impl Layer for Flagged {
    type Inner = Store;

    fn inner(&self) -> &Store {
        &self.0
    }

    fn inode_flags(&self, _: &Request, _: &Inode) -> Result<InodeFlags, Errno> {
        Ok(*self.1.lock().unwrap())
    }

    fn set_inode_flags(&self, _: &Request, _: &Inode, flags: InodeFlags) -> Result<(), Errno> {
        *self.1.lock().unwrap() = flags;
        Ok(())
    }
}

#[test]
fn flags_of_inodes_are_their_owners_and_some_need_a_capability() {
    let flags = Arc::<Mutex<InodeFlags>>::default();
    let vfs = Vfs::new(Flagged(Store::with_paths(&["file"]), flags.clone()));
    let context = vfs.context();
    let held = context.hold(Base::CWD, b"/file", false).unwrap();
    let with = |mut cred: Credentials, capabilities| {
        cred.capabilities = capabilities;
        cred
    };
    let capable = |capabilities| with(Credentials::user(USER, USER, &[]), capabilities);
    let (owner, none) = (Credentials::root(), Capabilities::none());
    let (i, a, d) = (InodeFlags::IMMUTABLE, InodeFlags::APPEND, InodeFlags::NODUMP);
    let immutable = Capabilities::LINUX_IMMUTABLE;
    let uncapable = with(owner.clone(), none);
    let cases = [
        (&owner, d, i, Ok(())),
        (&owner, i, d, Ok(())),
        (&uncapable, i, i | d, Ok(())),
        (&uncapable, i, d, Err(Errno::EPERM)),
        (&uncapable, d, d | a, Err(Errno::EPERM)),
        (&capable(none), d, d, Err(Errno::EPERM)),
        (&capable(immutable), d, i, Err(Errno::EPERM)),
        (&capable(Capabilities::FOWNER), a, a | d, Ok(())),
        (&capable(Capabilities::FOWNER), a, d, Err(Errno::EPERM)),
        (&capable(Capabilities::FOWNER.union(immutable)), a, d, Ok(())),
    ];
    for (number, (cred, before, after, expected)) in cases.into_iter().enumerate() {
        *flags.lock().unwrap() = before;
        context.set_credentials(cred.clone());
        assert_eq!(context.set_inode_flags_held(&held, after), expected, "{number}");
        let now = if expected.is_ok() { after } else { before };
        assert_eq!(context.inode_flags_held(&held), Ok(now), "{number}");
    }
    context.set_credentials(owner);
    let other = Vfs::new(Store::with_paths(&["file"])).context();
    let without = other.hold(Base::CWD, b"/file", false).unwrap();
    assert_eq!(other.inode_flags_held(&without), Err(Errno::ENOTTY));
    assert_eq!(other.set_inode_flags_held(&without, d), Err(Errno::ENOTTY));
}
