//! Handles of directories: every operation from them, what they keep in, and what they survive.

use crate::answers::{errno, is, names};
use lightfoot::{
    Context, Credentials, Dir, DirBuilder, Errno, Fallback, FileTimes, MountFlags, OpenOptions, Permissions, RamFs,
    RenameFlags, Resolve, Scope, SetXattr, Vfs, View, WalkFailure,
};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// `/out/file`, and `/in` with a file, a directory with a file, and links of every kind.
fn tree() -> (Vfs, Context) {
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    ctx.create_dir_all("/in/sub/deep").unwrap();
    ctx.create_dir("/out").unwrap();
    for file in ["/in/file", "/in/sub/file", "/out/file"] {
        ctx.write(file, file).unwrap();
    }
    for (text, link) in [
        ("sub/file", "/in/good"),
        ("../out/file", "/in/up"),
        ("/out/file", "/in/absolute"),
        ("/in/file", "/in/absolute-in"),
        ("sub/../../out", "/in/round"),
        ("..", "/in/sub/back"),
        ("loop", "/in/loop"),
    ] {
        ctx.symlink(text, link).unwrap();
    }
    (vfs, ctx)
}

/// Uses every operation of a view once, below `at`, whose own path it is given.
fn use_every_operation(view: &View, at: &Path) {
    view.create_dir("d").unwrap();
    view.create_dir_all("d/e/f").unwrap();
    view.create_dir_with("d/built", DirBuilder::new().mode(0o700)).unwrap();
    view.mkdir("d/made", 0o711).unwrap();
    view.write("d/file", "0123").unwrap();
    assert_eq!(
        (view.read("d/file").unwrap(), view.read_to_string("d/file").unwrap()),
        (b"0123".to_vec(), "0123".into())
    );
    view.create("d/created").unwrap();
    view.create_new("d/new").unwrap();
    view.open("d/file").unwrap();
    view.open_with("d/file", OpenOptions::new().write(true)).unwrap();
    view.mknod("d/fifo", lightfoot::fs::S_IFIFO | 0o600, 0).unwrap();
    view.symlink("file", "d/link").unwrap();
    view.soft_link("none", "d/soft").unwrap();
    view.hard_link("d/file", "d/hard").unwrap();
    assert_eq!(view.copy("d/file", "d/copy").unwrap(), 4);
    view.rename("d/copy", "d/copied").unwrap();
    view.rename_with("d/copied", "d/new", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(view.metadata("d/link").unwrap().len(), 4);
    assert!(view.symlink_metadata("d/link").unwrap().is_symlink() && view.is_symlink("d/link"));
    assert!(view.is_dir("d") && view.is_file("d/link") && view.exists("d/file") && !view.exists("d/soft"));
    assert!(!view.try_exists("d/none").unwrap());
    view.access("d/file", lightfoot::R_OK | lightfoot::W_OK).unwrap();
    assert_eq!(view.read_link("d/link").unwrap(), Path::new("file"));
    assert_eq!(view.canonicalize("d/e/../link").unwrap(), at.join("d/file"));
    assert_eq!(names(view, "d/e"), ["f"]);
    view.set_permissions("d/file", Permissions::from_mode(0o600)).unwrap();
    view.set_permissions_nofollow("d/file", Permissions::from_mode(0o640)).unwrap();
    view.chown("d/link", Some(3), None).unwrap();
    view.lchown("d/link", None, Some(4)).unwrap();
    view.truncate("d/file", 2).unwrap();
    view.set_times("d/file", FileTimes::now()).unwrap();
    view.set_times_nofollow("d/link", FileTimes::now()).unwrap();
    view.set_times_ns("d/file", 1, 2, true).unwrap();
    let of = view.metadata("d/hard").unwrap();
    assert_eq!((of.mode() & 0o7777, of.uid(), of.gid(), of.len()), (0o640, 3, 0, 2));
    assert_eq!((of.atime_ns(), of.mtime_ns(), view.symlink_metadata("d/link").unwrap().gid()), (1, 2, 4));
    view.set_xattr("d/file", "user.x", "y", SetXattr::Any).unwrap();
    assert_eq!(
        (view.get_xattr("d/hard", "user.x").unwrap(), view.list_xattrs("d/file").unwrap().len()),
        (vec![b'y'], 1)
    );
    view.remove_xattr("d/file", "user.x").unwrap();
    assert!(view.statvfs("d").unwrap().fs.files > 0);
    let watch = view.watch("d", Scope::Directory).unwrap();
    view.remove_file("d/hard").unwrap();
    assert_eq!(watch.pending(), 1);
    drop(watch);
    view.remove_dir("d/built").unwrap();
    use_every_mount_operation(view);
    view.open_dir("d").unwrap().write("by-handle", "").unwrap();
    assert_eq!(view.explain("d/by-handle"), None);
    view.remove_dir_all("d").unwrap();
    assert!(!view.exists("d"));
}

fn use_every_mount_operation(view: &View) {
    let none = lightfoot::MountFlags::default();
    view.mount(lightfoot::RamFs::new(), "d/made", none).unwrap();
    view.write("d/made/on-it", "").unwrap();
    view.bind("d/made", "d/e", none).unwrap();
    view.bind_recursive("d/made", "d/e", none).unwrap();
    view.remount("d/e", lightfoot::MountFlags::RDONLY).unwrap();
    assert_eq!(errno(view.write("d/e/on-it", "x")), is(Errno::EROFS));
    view.unmount("d/e", lightfoot::UnmountFlags::default()).unwrap();
    view.move_mount("d/e", "d/e/f").unwrap_err();
    view.unmount("d/e", lightfoot::UnmountFlags::DETACH).unwrap();
    view.move_mount("d/made", "d/e/f").unwrap();
    assert_eq!((names(view, "d/e/f"), view.holders("d/e/f").unwrap()), (vec!["on-it".to_owned()], vec![]));
    view.unmount("d/e/f", lightfoot::UnmountFlags::default()).unwrap();
}

#[test]
fn every_operation_works_from_a_context_a_handle_and_a_scoped_handle() {
    let (_vfs, ctx) = tree();
    ctx.set_current_dir("/in").unwrap();
    use_every_operation(&ctx, Path::new("/in"));
    ctx.set_current_dir("/out").unwrap();
    let dir = ctx.open_dir("/in").unwrap();
    use_every_operation(&dir, Path::new("/in"));
    use_every_operation(&dir.scoped(), Path::new(""));
    use_every_operation(&dir.within(Resolve::IN_ROOT).unwrap(), Path::new("/"));
    use_every_operation(&dir.open_dir("sub/deep").unwrap(), Path::new("/in/sub/deep"));
    assert_eq!(names(&ctx, "/out"), ["file"]);
}

#[test]
fn what_leads_out_of_a_scope_is_refused_and_what_leads_around_in_it_is_not() {
    let (_vfs, ctx) = tree();
    let plain = ctx.open_dir("/in").unwrap();
    let scoped = plain.scoped();
    let rooted = plain.within(Resolve::IN_ROOT).unwrap();
    let straight = plain.within(Resolve::NO_SYMLINKS).unwrap();
    // A path, and what a walk of it answers: plain, beneath, in root, without symbolic links.
    let (fine, out, none, looped) = (None, is(Errno::EXDEV), is(Errno::ENOENT), is(Errno::ELOOP));
    let cases = [
        ("file", [fine, fine, fine, fine]),
        ("sub/../file", [fine, fine, fine, fine]),
        ("good", [fine, fine, fine, looped]),
        ("sub/back/file", [fine, fine, fine, looped]),
        ("..", [fine, out, fine, fine]),
        ("../in/file", [fine, out, none, fine]),
        ("../out/file", [fine, out, none, fine]),
        ("sub/../../out/file", [fine, out, none, fine]),
        ("/in/file", [fine, out, none, fine]),
        ("/file", [none, out, fine, none]),
        ("/", [fine, out, fine, fine]),
        ("up", [fine, out, none, looped]),
        ("absolute", [fine, out, none, looped]),
        ("absolute-in", [fine, out, none, looped]),
        ("round/file", [fine, out, none, looped]),
        ("loop", [looped; 4]),
    ];
    for (path, expected) in cases {
        let views: [&View; 4] = [&plain, &scoped, &rooted, &straight];
        assert_eq!(views.map(|view| errno(view.metadata(path))), expected, "{path}");
        let explained = views.map(|view| view.explain(path).map(|failure| failure.errno.raw()));
        assert_eq!(explained, expected, "{path}");
    }
}

#[test]
fn nothing_is_changed_outside_of_a_scope_by_any_operation() {
    let (_vfs, ctx) = tree();
    let scoped = ctx.open_dir("/in").unwrap().scoped();
    let other = ctx.open_dir("/out").unwrap();
    let out = is(Errno::EXDEV);
    for escape in ["../out/new", "/out/new", "round/new"] {
        let answers = [
            errno(scoped.create_dir(escape)),
            errno(scoped.create_dir_all(escape)),
            errno(scoped.write(escape, "")),
            errno(scoped.create_new(escape)),
            errno(scoped.symlink("x", escape)),
            errno(scoped.mknod(escape, 0o100_600, 0)),
            errno(scoped.hard_link("file", escape)),
            errno(scoped.rename("file", escape)),
            errno(scoped.copy("file", escape)),
            errno(other.rename_to("file", &scoped, escape, RenameFlags::default())),
            errno(other.hard_link_to("file", &scoped, escape)),
            errno(other.copy_to("file", &scoped, escape)),
        ];
        assert_eq!(answers, [out; 12], "{escape}");
    }
    for escape in ["../out/file", "/out/file", "up", "absolute", "round/file"] {
        let is_link = matches!(escape, "up" | "absolute");
        let answers = [
            errno(scoped.open(escape)),
            errno(scoped.truncate(escape, 0)),
            errno(scoped.set_permissions(escape, Permissions::from_mode(0))),
            errno(scoped.chown(escape, Some(1), None)),
            errno(scoped.set_times(escape, FileTimes::now())),
            errno(scoped.set_xattr(escape, "user.x", "", SetXattr::Any)),
            errno(scoped.watch(escape, Scope::Directory)),
            errno(scoped.open_dir(escape)),
            errno(OpenOptions::new().write(true).create(true).open(&scoped, escape)),
        ];
        assert_eq!(answers, [out; 9], "{escape}");
        if !is_link {
            assert_eq!((errno(scoped.remove_file(escape)), errno(scoped.rename(escape, "x"))), (out, out), "{escape}");
        }
    }
    assert_eq!(
        (names(&ctx, "/out"), ctx.read_to_string("/out/file").unwrap()),
        (vec!["file".to_owned()], "/out/file".into())
    );
}

#[test]
fn limits_are_inherited_and_become_narrower_only() {
    let (_vfs, ctx) = tree();
    let scoped = ctx.root_dir().unwrap().scoped();
    let sub = scoped.open_dir("in").unwrap();
    assert_eq!((sub.resolve(), errno(sub.metadata("../out"))), (Resolve::BENEATH, is(Errno::EXDEV)));
    let both = sub.within(Resolve::NO_SYMLINKS).unwrap();
    assert_eq!((errno(both.metadata("good")), errno(both.metadata(".."))), (is(Errno::ELOOP), is(Errno::EXDEV)));
    assert_eq!(errno(sub.within(Resolve::IN_ROOT)), is(Errno::EINVAL));
    let rooted = ctx.open_dir("/in").unwrap().within(Resolve::IN_ROOT).unwrap();
    assert_eq!(rooted.scoped().resolve(), Resolve::IN_ROOT);
    let entry = scoped.read_dir("in").unwrap().map(Result::unwrap).find(|entry| entry.file_name() == "up").unwrap();
    assert_eq!(errno(entry.open()), is(Errno::EXDEV));
}

#[test]
fn a_walk_from_the_cache_alone_asks_nobody() {
    let (vfs, ctx) = tree();
    let cached = ctx.open_dir("/in").unwrap().within(Resolve::CACHED).unwrap();
    assert_eq!(cached.metadata("sub/file").unwrap().len(), 12);
    assert_eq!((errno(cached.metadata("none")), vfs.fallbacks(Fallback::Miss)), (is(Errno::ENOENT), 0));
    assert_eq!(errno(cached.write("new", "")), is(Errno::EAGAIN));
}

#[test]
fn a_handle_stays_what_it_is_when_its_directory_moves_or_goes() {
    let (_vfs, ctx) = tree();
    let dir = ctx.open_dir("/in/sub").unwrap();
    let clone = dir.clone();
    ctx.rename("/in/sub", "/out/moved").unwrap();
    assert_eq!((dir.path(), dir.canonicalize("deep").unwrap()), ("/out/moved".into(), "/out/moved/deep".into()));
    assert_eq!(
        thread::scope(|scope| scope.spawn(|| clone.read_to_string("file").unwrap()).join().unwrap()),
        "/in/sub/file"
    );
    ctx.remove_dir_all("/out/moved").unwrap();
    assert_eq!(dir.path(), Path::new("/out/moved (deleted)"));
    assert_eq!((errno(dir.create_dir("x")), names(&dir, ".")), (is(Errno::ENOENT), vec![]));
    let file = ctx.open("/in").unwrap();
    assert_eq!(Dir::from_file(&ctx, &file).unwrap().path(), Path::new("/in"));
    assert_eq!(errno(Dir::from_file(&ctx, &ctx.open("/in/file").unwrap())), is(Errno::ENOTDIR));
    assert_eq!(errno(ctx.open_dir("/in/file")), is(Errno::ENOTDIR));
}

#[test]
fn a_handle_works_under_the_credentials_that_its_context_has_then() {
    let (_vfs, ctx) = tree();
    let user = ctx.fork();
    let dir = user.open_dir("/in").unwrap();
    dir.write("by-root", "").unwrap();
    user.set_credentials(Credentials::user(7, 7, &[]));
    assert_eq!(errno(dir.write("by-user", "")), is(Errno::EACCES));
    ctx.set_permissions("/in", Permissions::from_mode(0o600)).unwrap();
    assert_eq!((errno(dir.metadata("file")), dir.dir_metadata().unwrap().mode() & 0o777), (is(Errno::EACCES), 0o600));
    // Opening needs no permission on the directory itself.
    assert_eq!(errno(user.open_dir("/in").unwrap().entries()), is(Errno::EACCES));
}

#[test]
fn names_move_and_are_copied_between_handles() {
    let (_vfs, ctx) = tree();
    let (a, b) = (ctx.open_dir("/in").unwrap(), ctx.open_dir("/out").unwrap());
    a.rename_to("file", &b, "moved", RenameFlags::default()).unwrap();
    a.hard_link_to("sub/file", &b, "hard").unwrap();
    assert_eq!(a.copy_to("sub/file", &b.scoped(), "copy").unwrap(), 12);
    assert_eq!(names(&b, "."), ["copy", "file", "hard", "moved"]);
    assert_eq!(errno(a.rename_to("sub", &b, "file", RenameFlags::NOREPLACE)), is(Errno::EEXIST));
    a.rename_to("sub", &b, "file", RenameFlags::EXCHANGE).unwrap();
    assert!(a.is_file("sub") && b.is_dir("file"));
    let other = Vfs::ram();
    let elsewhere = other.context().root_dir().unwrap();
    assert_eq!(errno(a.rename_to("sub", &elsewhere, "x", RenameFlags::default())), is(Errno::EXDEV));
    assert_eq!(errno(a.copy_to("sub", &elsewhere, "x")), is(Errno::EXDEV));
}

#[test]
fn an_open_directory_is_removed_whatever_its_name_is() {
    let (_vfs, ctx) = tree();
    let dir = ctx.open_dir("/in/sub").unwrap();
    assert_eq!(errno(dir.clone().remove_open_dir()), is(Errno::ENOTEMPTY));
    ctx.rename("/in/sub", "/out/moved").unwrap();
    dir.scoped().remove_open_dir_all().unwrap();
    assert_eq!(names(&ctx, "/out"), ["file"]);
    assert_eq!(errno(dir.remove_open_dir()), is(Errno::ENOENT));
    assert_eq!(errno(ctx.root_dir().unwrap().remove_open_dir()), is(Errno::EBUSY));
    let entries = ctx.read_dir("/out").unwrap().map(Result::unwrap);
    entries.for_each(|entry| entry.remove_file().unwrap());
    assert_eq!(names(&ctx, "/out"), Vec::<String>::new());
}

#[test]
fn a_tree_deeper_than_any_stack_is_removed() {
    let ctx = Vfs::ram().context();
    ctx.create_dir("/top").unwrap();
    let mut at = ctx.open_dir("/top").unwrap();
    for level in 0..20_000 {
        at.create_dir("d").unwrap();
        if level % 1000 == 0 {
            at.write("file", "").unwrap();
        }
        at = at.open_dir("d").unwrap();
    }
    drop(at);
    ctx.remove_dir_all("/top").unwrap();
    assert_eq!(names(&ctx, "/"), Vec::<String>::new());
}

#[test]
fn removing_a_tree_never_leaves_it_while_others_put_links_and_directories_in_its_way() {
    let ctx = Vfs::ram().context();
    ctx.create_dir_all("/kept/dir").unwrap();
    ctx.write("/kept/dir/file", "").unwrap();
    ctx.create_dir("/tmp").unwrap();
    // Fewer than a listing takes out at once, so that it reports as a directory what is a link by the time it is opened.
    const DIRS: usize = 40;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // A directory and a symbolic link that leads to what must be kept change places all the time.
        scope.spawn(|| {
            for dir in (0..DIRS).rev().cycle() {
                // There and back again, so that the link is at home for the next.
                for _ in 0..2 {
                    let _ = ctx.rename_with("/tmp/link", format!("/tmp/tree/{dir}"), RenameFlags::EXCHANGE);
                }
                if stop.load(Relaxed) {
                    break;
                }
            }
        });
        for _ in 0..300 {
            (0..DIRS).for_each(|dir| ctx.create_dir_all(format!("/tmp/tree/{dir}/deeper")).unwrap_or(()));
            let _ = ctx.symlink("/kept", "/tmp/link");
            // It may meet a link where a directory was, or a directory that is not empty yet; never anything else.
            while let Err(failed) = ctx.remove_dir_all("/tmp/tree") {
                let number = failed.raw_os_error();
                assert!([is(Errno::ENOTEMPTY), is(Errno::ENOTDIR), is(Errno::ENOENT)].contains(&number), "{failed}");
            }
            let _ = ctx.remove_file("/tmp/link").or_else(|_| ctx.remove_dir_all("/tmp/link"));
        }
        stop.store(true, Relaxed);
    });
    assert!(ctx.exists("/kept/dir/file"));
}

#[test]
fn a_failed_walk_is_explained_by_its_component() {
    let (_vfs, ctx) = tree();
    ctx.symlink("x/y/z", "/in/dangling").unwrap();
    ctx.create_dir("/in/x").unwrap();
    ctx.symlink("dangling", "/in/second").unwrap();
    ctx.set_permissions("/out", Permissions::from_mode(0o700)).unwrap();
    let user = ctx.with_credentials(Credentials::user(5, 5, &[]));
    let check = |path: &str, sentence: &str| {
        let failure: WalkFailure = user.explain(path).unwrap_or_else(|| panic!("{path} can be walked"));
        assert_eq!(failure.to_string(), sentence);
        assert_eq!(Some(failure.errno.raw()), errno(user.metadata(path)));
        assert_eq!(io::Error::from(failure).kind(), user.metadata(path).unwrap_err().kind());
    };
    let none = "No such file or directory (ENOENT)";
    check("/out/file", "cannot walk `/out/file`: `file` in `/out`: Permission denied (EACCES)");
    check("/in/none/below", &format!("cannot walk `/in/none/below`: `none` in `/in`: {none}"));
    check("none", &format!("cannot walk `none`: `none` in `.`: {none}"));
    check("//none", &format!("cannot walk `//none`: `none` in `/`: {none}"));
    check("in/file/x", "cannot walk `in/file/x`: `x` in `in/file`: Not a directory (ENOTDIR)");
    check("in//file/", "cannot walk `in//file/`: `file` in `in`: Not a directory (ENOTDIR)");
    check("/in/loop/x", "cannot walk `/in/loop/x`: `loop` in `/in`: Too many levels of symbolic links (ELOOP)");
    check(
        "/in/absolute",
        "cannot walk `/in/absolute`: `file` in `/out`, to which the symbolic link `/in/absolute` leads: Permission denied (EACCES)",
    );
    let by = |link: &str| format!("`y` in `/in/x`, to which the symbolic link `{link}` leads: {none}");
    check("/in/dangling/more", &format!("cannot walk `/in/dangling/more`: {}", by("/in/dangling")));
    check("/in/second", &format!("cannot walk `/in/second`: {}", by("/in/dangling")));
    check("", &format!("cannot walk ``: {none}"));
    // A name cannot begin a line, or act on the terminal that shows the sentence.
    check("in/\0/x", r"cannot walk `in/\u{0}/x`: `\u{0}` in `in`: Invalid argument (EINVAL)");
    check("in/a\n\u{1b}/x", &format!(r"cannot walk `in/a\n\u{{1b}}/x`: `a\n\u{{1b}}` in `in`: {none}"));
    let long = "n".repeat(256);
    check(
        &format!("/in/{long}/x"),
        &format!("cannot walk `/in/{long}/x`: `{long}` in `/in`: File name too long (ENAMETOOLONG)"),
    );
    assert_eq!(user.explain("/in/good"), None);
}

#[test]
fn an_escape_from_a_scope_is_explained_as_such_and_a_mount_is_not() {
    let (_vfs, ctx) = tree();
    ctx.create_dir("/in/mnt").unwrap();
    ctx.mount(RamFs::new(), "/in/mnt", MountFlags::default()).unwrap();
    let scope = ctx.open_dir("/in").unwrap().scoped().within(Resolve::NO_XDEV).unwrap();
    for (path, leads_outside) in [("../out", true), ("/out", true), ("absolute", true), ("mnt", false)] {
        let failure = scope.explain(path).unwrap_or_else(|| panic!("{path} can be walked"));
        assert_eq!((failure.errno, failure.leads_outside), (Errno::EXDEV, leads_outside), "{path}");
        assert_eq!(failure.to_string().contains(": the path leads outside of the directory handle: "), leads_outside);
    }
    assert!(!scope.explain("none").unwrap().leads_outside);
}
