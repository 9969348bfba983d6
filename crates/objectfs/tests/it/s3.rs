//! The file system over a real server for S3: what it requests, what others see of it, and what it does when the server fails.

mod answers;
mod attributes;
mod hostile;
pub(crate) mod server;
mod stranger;
mod writes;

use hyper::Method;
use lightfoot_objectfs::{Bucket, Calls, Counted, Keys, ObjectFs, ObjectOptions};
use server::{Act, BUCKET, KEYS, SLOW, Server};
use std::sync::Barrier;
use std::time::Duration;
use vfs::{
    Base, Context, Errno, OpenFile, OpenFlags, PathAt, S_IFBLK, S_IFCHR, S_IFIFO, S_IFSOCK, SetAttr, SetTime, Vfs,
};

const LONG: Duration = Duration::from_secs(3600);
const MAKE: OpenFlags = OpenFlags::RDWR.union(OpenFlags::CREAT);

/// A mount of the server's bucket, or of a prefix in it.
struct Mounted {
    at: Context,
    calls: Calls,
    _vfs: Vfs,
}

fn mount_with(server: &Server, prefix: &str, options: ObjectOptions) -> Mounted {
    let mut bucket = Bucket::parse(&format!("s3://{BUCKET}/{prefix}")).expect("a URL");
    bucket.endpoint = Some(server.endpoint.clone());
    bucket.keys = Some(Keys { access_key: KEYS.0.into(), secret_key: KEYS.1.into() });
    let fs = ObjectFs::in_bucket(&bucket, options).expect("an operator");
    fs.check().expect("a bucket");
    let calls = fs.calls();
    let vfs = Vfs::new(fs);
    let at = vfs.context();
    at.set_umask(0o022);
    server.requests();
    Mounted { at, calls, _vfs: vfs }
}

fn mount(server: &Server, ttl: Duration) -> Mounted {
    mount_with(server, "", ObjectOptions { ttl, ..ObjectOptions::default() })
}

/// A mount for which listings are enough.
fn mount_plain(server: &Server) -> Mounted {
    mount_with(server, "", ObjectOptions { ttl: LONG, keeps_attributes: false, ..ObjectOptions::default() })
}

fn read_all(file: &OpenFile, step: usize) -> Result<Vec<u8>, Errno> {
    let (mut all, mut buf) = (Vec::new(), vec![0; step]);
    loop {
        match file.read_at(all.len() as u64, &mut buf)? {
            0 => return Ok(all),
            read => all.extend_from_slice(&buf[..read]),
        }
    }
}

impl Mounted {
    fn open(&self, path: &str, flags: OpenFlags) -> Result<OpenFile, Errno> {
        self.at.open(Base::CWD, path.as_bytes(), flags, 0o644)
    }

    fn write(&self, path: &str, contents: &[u8]) -> Result<(), Errno> {
        let file = self.open(path, MAKE | OpenFlags::TRUNC)?;
        let mut done = 0;
        while done < contents.len() {
            done += file.write_at(done as u64, &contents[done..])?.0;
        }
        file.flush()
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        read_all(&self.open(path, OpenFlags::RDONLY)?, 128 << 10)
    }

    fn size(&self, path: &str) -> Result<u64, Errno> {
        self.at.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.size)
    }

    fn names(&self, path: &str) -> Result<Vec<String>, Errno> {
        let dir = self.open(path, OpenFlags::DIRECTORY)?;
        let mut names = Vec::new();
        loop {
            let some = dir.next_entries()?;
            if some.is_empty() {
                names.sort_unstable();
                return Ok(names);
            }
            names.extend(some.into_iter().map(|entry| String::from_utf8(entry.name.into_vec()).expect("text")));
        }
    }

    fn rename(&self, old: &str, new: &str) -> Result<(), Errno> {
        self.at.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), vfs::RenameFlags::default())
    }

    /// The requests to the store that `act` makes.
    fn count<T>(&self, act: impl FnOnce() -> T) -> (u64, T) {
        let before = self.calls.all();
        let done = act();
        (self.calls.all() - before, done)
    }
}

/// Bytes that differ from block to block.
fn pattern(len: usize) -> Vec<u8> {
    pattern_at(0, len)
}

/// A part of the bytes.
fn pattern_at(start: usize, len: usize) -> Vec<u8> {
    (start..start + len).map(|at| (at / 1000 * 7 + at) as u8).collect()
}

#[test]
fn files_are_objects_and_directories_are_prefixes() {
    let server = Server::start();
    let mounted = mount_with(&server, "some/prefix", ObjectOptions::default());
    mounted.at.mkdir(Base::CWD, b"/dir", 0o755).unwrap();
    mounted.write("/dir/file", b"text").unwrap();
    assert_eq!(std::fs::read(server.object("some/prefix/dir/file")).unwrap(), b"text");
    assert_eq!((mounted.read("/dir/file"), mounted.names("/")), (Ok(b"text".to_vec()), Ok(vec!["dir".into()])));
    let large = pattern(20 << 20);
    mounted.write("/dir/large", &large).unwrap();
    assert!(std::fs::read(server.object("some/prefix/dir/large")).unwrap() == large);
    let other = mount(&server, LONG);
    assert!(other.read("/some/prefix/dir/large").unwrap() == large);
    mounted.rename("/dir/large", "/moved").unwrap();
    assert_eq!((mounted.size("/moved"), mounted.size("/dir/large")), (Ok(20 << 20), Err(Errno::ENOENT)));
    assert_eq!(mounted.at.rmdir(Base::CWD, b"/dir"), Err(Errno::ENOTEMPTY));
    mounted.at.unlink(Base::CWD, b"/dir/file").unwrap();
    mounted.at.rmdir(Base::CWD, b"/dir").unwrap();
    assert_eq!(mounted.names("/"), Ok(vec!["moved".into()]));
}

#[test]
fn what_objects_cannot_do_is_refused() {
    let server = Server::start();
    let mounted = mount_plain(&server);
    mounted.at.mkdir(Base::CWD, b"/dir", 0o755).unwrap();
    mounted.write("/file", b"text").unwrap();
    let set = |set: SetAttr| mounted.at.set_attr(Base::CWD, b"/file", true, &set);
    let attr = mounted.at.attr(Base::CWD, b"/file", true).unwrap();
    assert_eq!(mounted.rename("/dir", "/other"), Err(Errno::EXDEV), "`mv` copies");
    assert_eq!(mounted.at.link(PathAt::cwd(b"/file"), PathAt::cwd(b"/link"), false), Err(Errno::EOPNOTSUPP));
    assert_eq!(mounted.at.symlink(b"file", Base::CWD, b"/link"), Err(Errno::EOPNOTSUPP));
    for kind in [S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK] {
        assert_eq!(mounted.at.mknod(Base::CWD, b"/node", kind | 0o600, 0), Err(Errno::EOPNOTSUPP), "{kind:o}");
    }
    assert_eq!([mounted.size("/link"), mounted.size("/node")], [Err(Errno::ENOENT); 2]);
    assert_eq!(set(SetAttr { mode: Some(0o755), ..SetAttr::default() }), Err(Errno::EPERM));
    assert_eq!(set(SetAttr { mtime: Some(SetTime::At(1)), ..SetAttr::default() }), Err(Errno::EPERM));
    assert_eq!(set(SetAttr { mode: Some(0o644), uid: Some(attr.uid), ..SetAttr::default() }), Ok(()));
    let (requests, touched) = mounted.count(|| set(SetAttr { mtime: Some(SetTime::Now), ..SetAttr::default() }));
    assert_eq!((requests, touched), (2, Ok(())), "the object is read and written");
    assert_eq!(mounted.write("/file\u{a0}", b""), Err(Errno::EINVAL));
    assert_eq!(mounted.at.mkdir(Base::CWD, b"/\xff", 0o755), Err(Errno::EINVAL));
    assert_eq!(mounted.read("/file"), Ok(b"text".to_vec()));
}

#[test]
fn a_cold_path_of_eight_names_is_one_request() {
    let server = Server::start();
    mount(&server, LONG).write_tree("/a/b/c/d/e/f/g", "file");
    let mounted = mount_plain(&server);
    let (requests, size) = mounted.count(|| mounted.size("/a/b/c/d/e/f/g/file"));
    assert_eq!((requests, size), (1, Ok(4)));
    let (requests, found) = mounted.count(|| mounted.read("/a/b/c/d/e/f/g/file"));
    assert_eq!((requests, found), (1, Ok(b"text".to_vec())), "only the contents");
    let cold = mount_plain(&server);
    let (requests, attr) = cold.count(|| cold.at.attr(Base::CWD, b"/a/b/c/d/e/f/g", true));
    assert!(requests <= 2 && attr.unwrap().is_dir(), "{requests}");
    let keeping = mount(&server, LONG);
    let (requests, size) = keeping.count(|| keeping.size("/a/b/c/d/e/f/g/file"));
    assert_eq!((requests, size), (8, Ok(4)), "and the markers, at a time");
}

impl Mounted {
    /// Makes directories, and a file in the last one.
    fn write_tree(&self, dirs: &str, file: &str) {
        for (end, _) in dirs.match_indices('/').skip(1).chain([(dirs.len(), "")]) {
            self.at.mkdir(Base::CWD, &dirs.as_bytes()[..end], 0o755).unwrap();
        }
        self.write(&format!("{dirs}/{file}"), b"text").unwrap();
    }
}

/// The paths of 10,000 objects in 100 directories.
fn many() -> impl Iterator<Item = (usize, usize)> {
    (0..100).flat_map(|dir| (0..100).map(move |file| (dir, file)))
}

#[test]
fn ten_thousand_objects_cost_one_listing_for_each_directory() {
    let server = Server::start();
    for dir in 0..100 {
        std::fs::create_dir_all(server.object(&format!("tree/d{dir}"))).unwrap();
    }
    for (dir, file) in many() {
        std::fs::write(server.object(&format!("tree/d{dir}/f{file}")), b"contents").unwrap();
    }
    // As `find -size`: each directory is listed, and attributes of each name are used.
    let mounted = mount_plain(&server);
    let (requests, found) = mounted.count(|| {
        let mut found = 0;
        for dir in mounted.names("/tree").unwrap() {
            let names = mounted.names(&format!("/tree/{dir}")).unwrap();
            found += names.iter().filter(|name| mounted.size(&format!("/tree/{dir}/{name}")) == Ok(8)).count();
        }
        found
    });
    assert_eq!(found, 10_000);
    // The directories are 101, and `tree` is looked up.
    assert!(requests <= 103, "{requests} requests");
    let listings = server.requests().iter().filter(|request| request.contains("list-type")).count();
    assert!(listings <= 103, "{listings} listings");
    // As `git status`: attributes of each name by its path, without a listing before.
    let storm = |mounted: &Mounted| {
        many().filter(|(dir, file)| mounted.size(&format!("/tree/d{dir}/f{file}")) == Ok(8)).count()
    };
    let cold = mount_plain(&server);
    let (requests, found) = cold.count(|| storm(&cold));
    assert_eq!(found, 10_000);
    // Four names of each directory are requested before it is listed.
    assert!(requests <= 100 * 6, "{requests} requests");
    let (requests, found) = cold.count(|| storm(&cold));
    assert_eq!((requests, found), (0, 10_000), "a warm storm");
    let (requests, found) = mounted.count(|| storm(&mounted));
    assert_eq!((requests, found), (0, 10_000), "a warm storm after listings");
}

#[test]
fn a_directory_of_ten_thousand_objects_is_listed_whole() {
    let server = Server::start();
    std::fs::create_dir_all(server.object("wide")).unwrap();
    for number in 0..10_000 {
        std::fs::write(server.object(&format!("wide/{number}")), b"").unwrap();
    }
    let mounted = mount(&server, LONG);
    assert_eq!(mounted.names("/wide").map(|names| names.len()), Ok(10_000));
    assert_eq!(mounted.calls.of(Counted::List), 3, "a check, a lookup, and one listing");
    let pages = server.requests().iter().filter(|request| request.contains("delimiter")).count();
    assert!(pages <= 12, "{pages} pages");
    let (requests, names) = mounted.count(|| mounted.names("/wide").map(|names| names.len()));
    assert_eq!((requests, names), (0, Ok(10_000)), "a warm listing");
}

#[test]
fn sequential_reads_make_few_requests_and_random_ones_read_little() {
    const LEN: usize = 24 << 20;
    let server = Server::start();
    std::fs::write(server.object("large"), pattern(LEN)).unwrap();
    let mounted = mount(&server, LONG);
    let file = mounted.open("/large", OpenFlags::RDONLY).unwrap();
    let (requests, read) = mounted.count(|| read_all(&file, 128 << 10).unwrap());
    assert!(read == pattern(LEN));
    // Windows of 128 KiB, 256 KiB, ... 8 MiB, and then of 8 MiB.
    assert!((3..=12).contains(&requests), "{requests} requests");
    let (requests, _) = mounted.count(|| mounted.read("/large").unwrap());
    assert_eq!(requests, 0, "from the cache");
    let small = mount_with(&server, "", ObjectOptions { ttl: LONG, cache_bytes: 2 << 20, ..ObjectOptions::default() });
    let file = small.open("/large", OpenFlags::RDONLY).unwrap();
    server.requests();
    for at in [20 << 20, 3 << 20, 12 << 20, 5] {
        let mut buf = [0; 100];
        assert_eq!(file.read_at(at, &mut buf), Ok(100));
        assert!(buf[..] == pattern(LEN)[at as usize..][..100]);
    }
    assert_eq!(server.requests().len(), 4, "one range for each");
    assert!(small.read("/large").unwrap() == pattern(LEN), "more than the cache holds");
}

/// The cache is smaller than the object, and than the windows of the readers together.
#[test]
fn sequential_readers_get_each_byte_once() {
    const LEN: usize = 48 << 20;
    let server = Server::start();
    std::fs::write(server.object("large"), pattern(LEN)).unwrap();
    for readers in [1, 3] {
        let options = ObjectOptions { ttl: LONG, cache_bytes: 32 << 20, ..ObjectOptions::default() };
        let mounted = mount_with(&server, "", options);
        let before = mounted.calls.of(Counted::Received);
        let files: Vec<_> = (0..readers).map(|_| mounted.open("/large", OpenFlags::RDONLY).unwrap()).collect();
        let mut buf = vec![0; 128 << 10];
        // The readers follow each other closely.
        for at in (0..LEN).step_by(buf.len()) {
            for file in &files {
                assert_eq!(file.read_at(at as u64, &mut buf), Ok(buf.len()));
                assert!(buf[..] == pattern_at(at, buf.len()), "at {at}");
            }
        }
        let received = mounted.calls.of(Counted::Received) - before;
        assert!(received <= LEN as u64 / 100 * 102, "{readers} readers: {received}");
        assert!(mounted.calls.of(Counted::Read) <= 24, "{:?}", mounted.calls);
    }
}

/// The threads read a block in small pieces, so that some reads begin while the answer is moved to the cache.
#[test]
fn a_block_that_several_threads_read_is_requested_once() {
    const BLOCK: usize = 128 << 10;
    const BLOCKS: usize = 40;
    const PIECE: usize = 1 << 10;
    const THREADS: usize = 4;
    let server = Server::start();
    std::fs::write(server.object("large"), pattern(BLOCK * BLOCKS)).unwrap();
    let mounted = mount(&server, LONG);
    let before = mounted.calls.of(Counted::Read);
    let together = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (file, together) = (mounted.open("/large", OpenFlags::RDONLY).unwrap(), &together);
            scope.spawn(move || {
                // Backwards: no read is sequential.
                for block in (0..BLOCKS).rev() {
                    together.wait();
                    for piece in (thread..BLOCK / PIECE).step_by(THREADS) {
                        let (at, mut buf) = (block * BLOCK + piece * PIECE, [0; PIECE]);
                        assert_eq!(file.read_at(at as u64, &mut buf), Ok(PIECE));
                        assert!(buf[..] == pattern_at(at, PIECE), "at {at}");
                    }
                }
            });
        }
    });
    assert_eq!(mounted.calls.of(Counted::Read) - before, BLOCKS as u64);
}

#[test]
fn two_mounts_see_each_others_changes_after_the_ttl() {
    let server = Server::start();
    let [one, two] = [(); 2].map(|()| mount(&server, Duration::from_millis(200)));
    let slow = mount(&server, LONG);
    assert_eq!((two.read("/x"), slow.read("/x")), (Err(Errno::ENOENT), Err(Errno::ENOENT)));
    one.write("/x", b"first").unwrap();
    soon("a new file is seen", &|| two.read("/x") == Ok(b"first".to_vec()));
    assert_eq!(slow.read("/x"), Err(Errno::ENOENT), "the time of validity is not over");
    two.write("/x", b"the second text").unwrap();
    soon("new contents are seen", &|| one.read("/x") == Ok(b"the second text".to_vec()));
    one.at.unlink(Base::CWD, b"/x").unwrap();
    soon("a removal is seen", &|| two.read("/x") == Err(Errno::ENOENT));
    one.write_tree("/d", "file");
    soon("a directory is listed", &|| two.names("/d") == Ok(vec!["file".into()]));
    // Where the store checks it, only one of two makes a file.
    let made = [&one, &two].map(|mounted| mounted.open("/lock", MAKE | OpenFlags::EXCL).map(drop));
    assert_eq!(made, [Ok(()), Err(Errno::EEXIST)]);
}

#[test]
fn a_fault_that_passes_is_not_seen_and_one_that_stays_has_its_errno() {
    let server = Server::start();
    let options = ObjectOptions { ttl: Duration::ZERO, timeout: Duration::from_secs(5), ..ObjectOptions::default() };
    let mounted = mount_with(&server, "", options);
    let data = pattern(300_000);
    mounted.write("/file", &data).unwrap();
    for act in [Act::Status(500), Act::Status(503), Act::Cut, Act::CutBody] {
        let fresh = mount(&server, LONG);
        server.fail(Method::GET, "/file", 2, act);
        assert!(fresh.read("/file") == Ok(data.clone()), "{act:?}");
        server.mend();
    }
    for act in [Act::Status(500), Act::Cut] {
        server.fail(Method::PUT, "/file", 2, act);
        mounted.write("/file", &data).unwrap_or_else(|errno| panic!("{act:?}: {errno}"));
        server.mend();
    }
    let errors = [(500, Errno::EIO), (503, Errno::EIO), (403, Errno::EACCES)]
        .map(|(status, errno)| (Act::Status(status), errno));
    for (act, errno) in errors.into_iter().chain([(Act::Cut, Errno::EIO)]) {
        server.fail(Method::PUT, "/file", usize::MAX, act);
        let file = mounted.open("/file", OpenFlags::WRONLY).unwrap();
        file.write_at(0, b"lost").unwrap();
        assert_eq!(file.flush(), Err(errno), "close, {act:?}");
        assert_eq!(file.sync(false), Err(errno), "fsync, {act:?}");
        drop(file);
        server.mend();
        assert!(mounted.read("/file") == Ok(data.clone()), "the store has the old contents");
    }
    server.fail(Method::GET, "list-type", usize::MAX, Act::Status(500));
    assert_eq!(mounted.names("/"), Err(Errno::EIO));
    server.mend();
    assert_eq!(mounted.names("/"), Ok(vec!["file".into()]));
}

#[test]
fn an_object_that_is_gone_after_its_listing_is_an_error_of_its_own() {
    let server = Server::start();
    let mounted = mount_plain(&server);
    for name in ["a", "b", "c", "d"] {
        std::fs::write(server.object(name), b"text").unwrap();
    }
    assert_eq!(mounted.names("/").map(|names| names.len()), Ok(4));
    std::fs::remove_file(server.object("b")).unwrap();
    let read = ["/a", "/b", "/c"].map(|path| mounted.read(path));
    assert_eq!(read, [Ok(b"text".to_vec()), Err(Errno::ESTALE), Ok(b"text".to_vec())]);
    assert_eq!(
        mounted.open("/b", OpenFlags::WRONLY).and_then(|file| file.write_at(0, b"x").map(drop)),
        Err(Errno::ESTALE)
    );
    // An open file that has not read its object yet notices that another program replaced it: this server reports no ETag in a
    // listing, but the range is not there.
    let file = mounted.open("/d", OpenFlags::RDONLY).unwrap();
    let other = mount(&server, LONG);
    other.write("/d", b"new").unwrap();
    let mut text = [0; 32];
    assert_eq!(file.read_at(0, &mut text), Ok(3));
    assert_eq!(&text[..3], b"new");
}

#[test]
fn a_slow_store_is_waited_for_until_the_deadline() {
    let server = Server::start();
    let mounted = mount(&server, Duration::ZERO);
    mounted.write("/file", b"text").unwrap();
    for method in [Method::GET, Method::HEAD, Method::PUT, Method::DELETE] {
        server.fail(method, "", usize::MAX, Act::Slow);
    }
    let limited = mounted.at.fork();
    limited.set_timeout_ns(Some(u64::try_from(SLOW.as_nanos() / 3).unwrap()));
    assert_eq!(limited.attr(Base::CWD, b"/unseen", true).err(), Some(Errno::ETIMEDOUT));
    assert_eq!(limited.mknod(Base::CWD, b"/late", 0o644, 0), Err(Errno::ETIMEDOUT));
    // Without a deadline all is as ever.
    assert_eq!(mounted.names("/").map(|names| names.contains(&"file".into())), Ok(true));
    assert_eq!(mounted.read("/file"), Ok(b"text".to_vec()));
    assert_eq!(mounted.write("/file", b"other"), Ok(()));
    assert_eq!(mounted.read("/file"), Ok(b"other".to_vec()));
    assert_eq!(mounted.at.unlink(Base::CWD, b"/file"), Ok(()));
    assert_eq!(mounted.read("/file"), Err(Errno::ENOENT));
}

/// OpenDAL would request `name` in place of `name `, which is another object.
#[test]
fn an_object_whose_key_ends_in_white_space_stands_for_no_other() {
    let server = Server::start();
    let put = |key: &str, contents: &str| {
        let path = server.object(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    };
    for key in ["name", "dir/f", "dir/g"] {
        put(key, "right");
    }
    for key in ["name ", " name", "dir /f", "dir/g "] {
        put(key, "other");
    }
    let mounted = mount(&server, LONG);
    assert_eq!(mounted.names("/").unwrap(), ["dir", "dir ", "name"]);
    assert_eq!(mounted.names("/dir").unwrap(), ["f", "g"]);
    assert_eq!(mounted.calls.of(Counted::Hidden), 3);
    for path in ["/name ", "/ name", "/dir/g "] {
        assert_eq!(mounted.read(path), Err(Errno::ENOENT), "{path:?}");
        assert_eq!(mounted.at.unlink(Base::CWD, path.as_bytes()), Err(Errno::ENOENT), "{path:?}");
        assert_eq!(mounted.write(path, b"new"), Err(Errno::EINVAL), "{path:?}");
        assert_eq!(mounted.rename("/dir/f", path), Err(Errno::EINVAL), "{path:?}");
    }
    assert_eq!(mounted.read("/dir /f"), Ok(b"other".to_vec()), "inside of a key, white space stays");
    assert_eq!(mounted.at.unlink(Base::CWD, b"/dir /f"), Ok(()));
    assert_eq!(mounted.at.rmdir(Base::CWD, b"/dir "), Ok(()));
    // A directory moves with all its objects, or not at all.
    let copying = mount_with(&server, "", ObjectOptions { copies_directories: true, ..ObjectOptions::default() });
    assert_eq!(copying.rename("/dir", "/moved"), Err(Errno::EINVAL));
    assert_eq!(copying.at.rmdir(Base::CWD, b"/dir"), Err(Errno::ENOTEMPTY));
    assert_eq!(copying.names("/").unwrap(), ["dir", "name"]);
    for key in ["name", "dir/f", "dir/g"] {
        assert_eq!(std::fs::read(server.object(key)).unwrap(), b"right", "{key}");
    }
}

/// Waits until it is so.
fn soon(what: &str, is_so: &dyn Fn() -> bool) {
    let limit = std::time::Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(std::time::Instant::now() < limit, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// Between the copy and the removal of a rename, the store has both names.
#[test]
fn a_listing_during_a_rename_is_not_kept() {
    let server = Server::start();
    let mounted = mount(&server, LONG);
    mounted.write("/old", b"text").unwrap();
    server.requests();
    server.fail(Method::DELETE, "/old", 1, Act::Slow);
    std::thread::scope(|scope| {
        let rename = scope.spawn(|| mounted.rename("/old", "/new"));
        while !server.requests().iter().any(|request| request.starts_with("DELETE")) {
            std::thread::yield_now();
        }
        mounted.names("/").unwrap();
        rename.join().unwrap().unwrap();
    });
    assert_eq!(mounted.names("/").unwrap(), ["new"]);
    assert_eq!(mounted.size("/old"), Err(Errno::ENOENT));
}

#[test]
fn a_hanging_store_frees_its_callers_at_their_deadline() {
    let server = Server::start();
    let mounted = mount(&server, Duration::ZERO);
    mounted.write("/file", b"text").unwrap();
    mounted.write("/other", b"other").unwrap();
    let file = mounted.open("/file", OpenFlags::RDWR).unwrap();
    file.write_at(0, b"TEXT").unwrap();
    for (method, has) in
        [(Method::HEAD, "/file"), (Method::GET, "/file"), (Method::PUT, "/file"), (Method::DELETE, "/file")]
    {
        server.fail(method, has, usize::MAX, Act::Hang);
    }
    server.fail(Method::GET, "prefix=file", usize::MAX, Act::Hang);
    let limited = mounted.at.fork();
    limited.set_timeout_ns(Some(200_000_000));
    assert_eq!(limited.attr(Base::CWD, b"/file", true).err(), None, "it is being written here");
    assert_eq!(limited.unlink(Base::CWD, b"/file"), Err(Errno::ETIMEDOUT));
    assert_eq!(limited.attr(Base::CWD, b"/filed", true).err(), Some(Errno::ETIMEDOUT));
    assert_eq!(mounted.read("/other"), Ok(b"other".to_vec()), "other names proceed");
    server.mend();
    assert_eq!(file.flush(), Ok(()));
    drop(file);
    assert_eq!(mounted.read("/file"), Ok(b"TEXT".to_vec()));
}
