//! Batches of paths: the names that the cache does not have are one request.

use lightfoot_vfs::{
    Base, Cancel, Context, Credentials, Errno, FileSystem as _, Inode, Layer, NewInode, NextNames, Request, SetAttr,
    Valid, Vfs,
};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use testkit::{Store, StoreOptions};

type Act = Box<dyn FnOnce() + Send>;

/// A store that looks up many names by one call, and counts its calls.
#[derive(Clone)]
struct Far {
    store: Store,
    lookups: Arc<AtomicU32>,
    many: Arc<AtomicU32>,
    names: Arc<Mutex<Vec<String>>>,
    /// Runs once, after the store has answered and before the VFS gets the answers.
    meanwhile: Arc<Mutex<Option<Act>>>,
}

impl Layer for Far {
    type Inner = Store;

    fn inner(&self) -> &Store {
        &self.store
    }

    fn lookup(&self, request: &Request, dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.lookups.fetch_add(1, SeqCst);
        match name {
            b"broken" => Err(Errno::EIO),
            _ => self.store.lookup(request, dir, name, next),
        }
    }

    fn lookup_many(
        &self,
        request: &Request,
        wanted: &[(&Inode, &[u8])],
        found: &mut dyn FnMut(usize, Result<NewInode, Errno>),
    ) {
        self.many.fetch_add(1, SeqCst);
        self.names.lock().unwrap().extend(wanted.iter().map(|(_, name)| String::from_utf8_lossy(name).into_owned()));
        let mut answers = Vec::new();
        for (place, (dir, name)) in wanted.iter().enumerate() {
            let answer = match *name {
                b"broken" => Err(Errno::EIO),
                b"skipped" => continue,
                name => self.store.lookup(request, dir, name, &mut NextNames::none()),
            };
            answers.push((place, answer));
        }
        let act = self.meanwhile.lock().unwrap().take();
        if let Some(act) = act {
            act();
        }
        // In any order; and one that is nobody's.
        answers.into_iter().rev().for_each(|(place, answer)| found(place, answer));
        found(wanted.len(), Err(Errno::EIO));
    }
}

impl Far {
    fn new(options: StoreOptions, paths: &[&str]) -> (Self, Vfs) {
        let far = Self {
            store: Store::with_options(options, paths),
            lookups: Arc::default(),
            many: Arc::default(),
            names: Arc::default(),
            meanwhile: Arc::default(),
        };
        let vfs = Vfs::new(far.clone());
        (far, vfs)
    }

    /// Calls of `lookup` and of `lookup_many` since the last call of this.
    fn calls(&self) -> (u32, u32) {
        (self.lookups.swap(0, SeqCst), self.many.swap(0, SeqCst))
    }
}

/// The inode numbers of `paths`, in their order.
fn numbers(context: &Context, paths: &[&str]) -> Vec<Result<u64, Errno>> {
    let bytes: Vec<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
    let mut all = vec![Err(Errno::EIO); paths.len()];
    context.attr_many(Base::CWD, &bytes, true, |at, found| all[at] = found.map(|(attr, _)| attr.unpack().ino));
    all
}

#[test]
fn a_batch_of_names_that_are_not_cached_is_one_call() {
    let dirs: Vec<String> = (0..10).map(|dir| format!("d{dir}/")).collect();
    let files: Vec<String> = (0..500).map(|file| format!("d{}/f{file}", file / 50)).collect();
    let all: Vec<&str> = dirs.iter().chain(&files).map(String::as_str).collect();
    let (far, vfs) = Far::new(StoreOptions::default(), &all);
    let context = vfs.context();
    let absent = ["/d3/none", "/d7/none"].map(String::from);
    let paths: Vec<String> = files.iter().map(|file| format!("/{file}")).chain(absent).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let expected: Vec<_> = files.iter().map(|file| Ok(far.store.node(file))).chain([Err(Errno::ENOENT); 2]).collect();
    assert_eq!(numbers(&context, &paths), expected);
    assert_eq!(far.calls(), (10, 1), "a lookup of each directory, and one call for the rest");
    assert_eq!(numbers(&context, &paths), expected);
    assert_eq!(far.calls(), (0, 0), "all of them are in the cache, those that do not exist too");
}

#[test]
fn each_answer_and_each_error_is_its_names() {
    let (far, vfs) = Far::new(StoreOptions::default(), &["d/", "d/a", "d/b", "d/skipped", "d/link -> a"]);
    let context = vfs.context();
    let paths =
        ["/d/b", "d/a", "/d/broken", "/d/skipped", "/d/link", "/d/none", "/none/x", "/d/./a", "/d/a/", "/d/\0", "d/."];
    let of = |path: &str| Ok(far.store.node(path));
    let expected = [
        of("d/b"),
        of("d/a"),
        Err(Errno::EIO),
        of("d/skipped"),
        of("d/a"),
        Err(Errno::ENOENT),
        Err(Errno::ENOENT),
        of("d/a"),
        Err(Errno::ENOTDIR),
        Err(Errno::EINVAL),
        of("d"),
    ];
    assert_eq!(numbers(&context, &paths), expected);
    assert_eq!(far.many.load(SeqCst), 1);
    assert_eq!(numbers(&context, &paths), expected);
}

#[test]
fn an_answer_that_a_change_overtook_is_not_used() {
    let (far, vfs) = Far::new(StoreOptions::default(), &["d/", "d/a", "d/b", "d/c"]);
    let other = vfs.context();
    *far.meanwhile.lock().unwrap() = Some(Box::new(move || {
        // No lock of the directory is held.
        std::thread::spawn(move || {
            other.unlink(Base::CWD, b"/d/a").unwrap();
            other.mkdir(Base::CWD, b"/d/none", 0o755).unwrap();
        })
        .join()
        .unwrap();
    }));
    let context = vfs.context();
    let paths = ["/d/a", "/d/b", "/d/none"];
    let found = numbers(&context, &paths);
    assert_eq!(found, [Err(Errno::ENOENT), Ok(far.store.node("d/b")), Ok(far.store.node("d/none"))]);
    assert_eq!(far.many.load(SeqCst), 1);
    assert_eq!(numbers(&context, &paths), found);
}

#[test]
fn an_answer_that_an_invalidation_overtook_is_requested_again() {
    let (far, vfs) = Far::new(StoreOptions::default(), &["d/", "d/a", "d/b"]);
    let context = vfs.context();
    assert!(context.attr(Base::CWD, b"/d", true).is_ok());
    let store = far.store.clone();
    *far.meanwhile.lock().unwrap() = Some(Box::new(move || {
        store.remove(store.node("d"), "a");
        store.invalidator().all();
    }));
    assert_eq!(numbers(&context, &["/d/a", "/d/b"]), [Err(Errno::ENOENT), Ok(far.store.node("d/b"))]);
    assert_eq!(far.many.load(SeqCst), 1);
}

#[test]
fn names_are_requested_together_only_where_that_saves_calls_and_shows_nothing() {
    let paths = ["d/", "d/a", "d/b", "closed/", "closed/a", "closed/b"];
    let asked = ["/d/a", "/d/b"];
    // Answers that are valid for no time are not kept.
    let (far, vfs) = Far::new(StoreOptions { valid: Valid::For(0), ..StoreOptions::default() }, &paths);
    assert!(numbers(&vfs.context(), &asked).iter().all(Result::is_ok));
    assert_eq!(far.calls().1, 0);
    // A caller with a deadline does not wait for other names.
    let (far, vfs) = Far::new(StoreOptions::default(), &paths);
    let context = vfs.context();
    context.set_timeout_ns(Some(u64::MAX));
    assert!(numbers(&context, &asked).iter().all(Result::is_ok));
    assert_eq!(far.calls().1, 0);
    // Nor one that can be cancelled.
    let (far, vfs) = Far::new(StoreOptions::default(), &paths);
    assert!(Cancel::new().scope(|| numbers(&vfs.context(), &asked)).iter().all(Result::is_ok));
    assert_eq!(far.calls().1, 0);
    // One name is a lookup, for which other threads wait.
    let (far, vfs) = Far::new(StoreOptions::default(), &paths);
    assert!(numbers(&vfs.context(), &["/d/a", "/"]).iter().all(Result::is_ok));
    assert_eq!(far.calls(), (2, 0));
    // In a directory that the caller may not search, no name is requested.
    let root = vfs.context();
    let set = SetAttr { mode: Some(0o700), ..SetAttr::default() };
    root.set_attr(Base::CWD, b"/closed", true, &set).unwrap();
    far.names.lock().unwrap().clear();
    let user = vfs.context();
    user.set_credentials(Credentials::user(5, 5, &[]));
    let found = numbers(&user, &["/closed/a", "/closed/b", "/d/b", "/d/c"]);
    assert_eq!(found, [Err(Errno::EACCES), Err(Errno::EACCES), Ok(far.store.node("d/b")), Err(Errno::ENOENT)]);
    assert_eq!(*far.names.lock().unwrap(), ["b", "c"]);
}
