//! Batched resolution answers what single calls answer.

use crate::names::Names;
use lightfoot_vfs::{Base, Context, Credentials, Errno, MountFlags, PathAt, RenameFlags, S_IFREG, Vfs};

/// A tree with the files, and a table of whole paths of so many bytes.
fn tree(table: usize) -> (Vfs, Context) {
    let vfs = Vfs::builder().whole_paths(table).records_every_path(true).build(Names);
    let context = vfs.context();
    for dir in ["/a", "/a/b", "/a/b/c", "/closed", "/closed/in", "/mnt", "/a-directory-of-a-long-name"] {
        context.mkdir(Base::CWD, dir.as_bytes(), 0o755).unwrap();
    }
    for dir in ["/a", "/a/b", "/a/b/c", "/closed", "/a-directory-of-a-long-name"] {
        for file in 0..30 {
            let path = format!("{dir}/f{file}");
            context.mknod(Base::CWD, path.as_bytes(), S_IFREG | 0o644, 0).unwrap();
        }
    }
    context.symlink(b"a/b", Base::CWD, b"/link").unwrap();
    context.symlink(b"f1", Base::CWD, b"/a/b/link").unwrap();
    context.mount(Names, Base::CWD, b"/mnt", MountFlags::default()).unwrap();
    context.mknod(Base::CWD, b"/mnt/f", S_IFREG | 0o600, 0).unwrap();
    let closed = lightfoot_vfs::SetAttr { mode: Some(0o700), ..lightfoot_vfs::SetAttr::default() };
    context.set_attr(Base::CWD, b"/closed", true, &closed).unwrap();
    (vfs, context)
}

fn paths() -> Vec<String> {
    let odd = [
        "/",
        "",
        ".",
        "..",
        "a",
        "a/",
        "/a/b/",
        "/a//b///f3",
        "/a/./b/f4",
        "/a/../a/f5",
        "/link",
        "/link/f6",
        "/a/b/link",
        "/a/f1/x",
        "/none",
        "/none/x",
        "/a/b/none",
        "/closed/f1",
        "/closed/in",
        "/mnt",
        "/mnt/f",
        "/mnt/..",
        "/mnt/none",
        "a/b/c/f7",
        "b",
        "/a-directory-of-a-long-name/f8",
        "/a/\0",
    ];
    let many = (0..30).flat_map(|file| ["/a", "/a/b", "a/b/c", "/closed", "/link"].map(|dir| format!("{dir}/f{file}")));
    let long = [format!("/{}", "n".repeat(300)), "/x".repeat(3000)];
    odd.into_iter().map(String::from).chain(many).chain(long).collect()
}

fn check(context: &Context, paths: &[String], follow: bool) {
    let bytes: Vec<&[u8]> = paths.iter().map(String::as_bytes).collect();
    let mut answers = vec![None; bytes.len()];
    context.attr_many(Base::CWD, &bytes, follow, |number, found| {
        assert!(answers[number].replace(found).is_none(), "{} was answered twice", paths[number]);
    });
    for (path, answer) in paths.iter().zip(answers) {
        let single = context.attr_as(Base::CWD, path.as_bytes(), follow, |attr, dev| (attr, dev));
        assert_eq!(answer, Some(single), "{path:?}");
    }
}

#[test]
fn a_batch_answers_what_single_calls_answer() {
    [0, 1 << 16].into_iter().for_each(compare_with_single_calls);
}

fn compare_with_single_calls(table: usize) {
    let (_vfs, root) = tree(table);
    let user = root.fork();
    user.set_credentials(Credentials::user(1, 1, &[]));
    let inside = root.fork();
    inside.set_current_dir(b"/a").unwrap();
    let mut paths = paths();
    for context in [&root, &user, &inside] {
        for follow in [true, false] {
            check(context, &paths, follow);
        }
    }
    // In every order, and more than a chunk of them.
    paths.sort();
    check(&root, &paths, true);
    let many: Vec<String> = (0..20).flat_map(|_| paths.iter().rev().cloned()).collect();
    check(&inside, &many, true);
}

#[test]
fn a_batch_beside_renames_finds_each_file_where_it_is_or_nothing() {
    [0, 1 << 16].into_iter().for_each(batches_beside_renames);
}

fn batches_beside_renames(table: usize) {
    let (_vfs, context) = tree(table);
    let context = &context;
    let stop = &std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let renamed = (0..20_000).try_for_each(|round| {
                let (from, to) = if round % 2 == 0 { ("/a/b", "/a/moved") } else { ("/a/moved", "/a/b") };
                let flags = RenameFlags::default();
                context.rename(PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()), flags)
            });
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            renamed.unwrap();
        });
        let paths: Vec<String> =
            (0..30).flat_map(|file| ["/a/b/f", "/a/f", "/a/moved/f"].map(|dir| format!("{dir}{file}"))).collect();
        let bytes: Vec<&[u8]> = paths.iter().map(String::as_bytes).collect();
        let ino_of = |file: usize| {
            format!("f{file}").bytes().fold(7, |ino: u64, byte| ino.wrapping_mul(31).wrapping_add(u64::from(byte)))
        };
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            context.attr_many(Base::CWD, &bytes, true, |number, found| match found {
                Ok((attr, _)) => assert_eq!(attr.unpack().ino, ino_of(number / 3), "{}", paths[number]),
                Err(errno) => assert!(errno == Errno::ENOENT && number % 3 != 1, "{}: {errno:?}", paths[number]),
            });
        }
    });
}

#[test]
fn what_receives_the_results_may_wait_for_all_readers() {
    let (vfs, context) = tree(0);
    context.mkdir(Base::CWD, b"/d", 0o755).unwrap();
    let mut seen = 0;
    context.attr_many(Base::CWD, &[b"/d", b"/d", b"/none"], true, |_, _| {
        // Panics inside a read section of the tree.
        vfs.barrier();
        seen += 1;
    });
    assert_eq!(seen, 3);
}
