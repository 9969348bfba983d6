//! Working directory and root by handle: the same checks as by path, also after the directory was moved or removed.

use crate::answers::{errno, is};
use lightfoot::{
    Capabilities, Context, Credentials, Dir, Errno, File, MountFlags, Permissions, RamFs, UnmountFlags, Vfs,
};
use std::path::Path;

fn tree() -> Context {
    let ctx = Vfs::ram().context();
    ctx.create_dir_all("/a/b").unwrap();
    ctx.create_dir("/closed").unwrap();
    ctx.set_permissions("/closed", Permissions::from_mode(0o700)).unwrap();
    ctx
}

/// The change by path and the change by handle end the same way.
fn check(ctx: &Context, path: &str, expected: Result<(), Errno>) {
    let root = ctx.with_credentials(Credentials::root());
    let dir = root.open_dir(path).unwrap();
    let expected = expected.err().map(Errno::raw);
    assert_eq!(errno(ctx.fork().set_current_dir(path)), expected, "chdir {path}");
    assert_eq!(errno(ctx.fork().set_current_dir_to(&dir)), expected, "fchdir {path}");
}

#[test]
fn a_handle_gives_no_more_rights_than_a_path() {
    let root = tree();
    let user = root.with_credentials(Credentials::user(7, 7, &[]));
    check(&root, "/a", Ok(()));
    check(&root, "/closed", Ok(()));
    check(&user, "/a", Ok(()));
    check(&user, "/closed", Err(Errno::EACCES));
}

#[test]
fn a_root_by_handle_needs_the_capability() {
    let root = tree();
    let dir = root.open_dir("/a").unwrap();
    let mut weak = Credentials::root();
    weak.capabilities = Capabilities::all().without(Capabilities::SYS_CHROOT);
    let weak = root.with_credentials(weak);
    assert_eq!(errno(weak.chroot("/a")), is(Errno::EPERM));
    assert_eq!(errno(weak.chroot_to(&dir)), is(Errno::EPERM));
    root.chroot_to(&dir).unwrap();
    assert!(root.is_dir("/b"));
    assert!(!root.exists("/a"));
    // As chroot(2): the working directory stays, outside of the root.
    assert!(root.current_dir().unwrap().starts_with("(unreachable)"), "{:?}", root.current_dir());
    let user = tree();
    let closed = user.open_dir("/closed").unwrap();
    let mut able = Credentials::user(7, 7, &[]);
    able.capabilities = Capabilities::SYS_CHROOT;
    user.set_credentials(able);
    assert_eq!(errno(user.chroot_to(&closed)), is(Errno::EACCES));
}

#[test]
fn a_handle_leads_to_its_directory_wherever_that_is() {
    let ctx = tree();
    let dir = ctx.open_dir("/a/b").unwrap();
    ctx.rename("/a/b", "/moved").unwrap();
    ctx.set_current_dir_to(&dir).unwrap();
    assert_eq!(ctx.current_dir().unwrap(), Path::new("/moved"));
    ctx.write("file", "").unwrap();
    assert!(ctx.exists("/moved/file"));
    let gone = ctx.open_dir("/a").unwrap();
    ctx.remove_dir("/a").unwrap();
    // As fchdir(2) to a directory without a name.
    ctx.set_current_dir_to(&gone).unwrap();
    assert_eq!(errno(ctx.current_dir()), is(Errno::ENOENT));
    assert_eq!(errno(ctx.write("file", "")), is(Errno::ENOENT));
}

#[test]
fn handles_of_another_tree_are_refused() {
    let (ctx, other) = (tree(), tree());
    let dir = other.open_dir("/a").unwrap();
    let expected = is(Errno::EXDEV);
    assert_eq!(errno(ctx.set_current_dir_to(&dir)), expected);
    assert_eq!(errno(ctx.chroot_to(&dir)), expected);
    assert_eq!(errno(ctx.pivot_root_to(&dir, &dir)), expected);
    assert_eq!(ctx.current_dir().unwrap(), Path::new("/"));
}

#[test]
fn pivot_root_by_handle_checks_as_by_path() {
    let ctx = tree();
    let (plain, top) = (ctx.open_dir("/a").unwrap(), ctx.open_dir("/").unwrap());
    assert_eq!(errno(ctx.pivot_root_to(&plain, &plain)), is(Errno::EBUSY));
    ctx.mount(RamFs::new(), "/a", MountFlags::default()).unwrap();
    let new = ctx.open_dir("/a").unwrap();
    new.create_dir("old").unwrap();
    let old = new.open_dir("old").unwrap();
    assert_eq!(errno(ctx.pivot_root_to(&old, &old)), is(Errno::EINVAL));
    assert_eq!(errno(ctx.pivot_root_to(&new, &top)), is(Errno::EBUSY));
    let user = ctx.with_credentials(Credentials::user(7, 7, &[]));
    assert_eq!(errno(user.pivot_root_to(&new, &old)), is(Errno::EPERM));
    ctx.pivot_root_to(&new, &old).unwrap();
    assert!(ctx.is_dir("/old/closed"));
    ctx.unmount("/old", UnmountFlags::DETACH).unwrap();
    assert_eq!(ctx.mounts().len(), 1);
}

#[test]
fn what_comes_from_the_core_is_the_same_thing() {
    let vfs = Vfs::ram();
    let ctx = Context::from(vfs.as_inner().context());
    ctx.create_dir("/dir").unwrap();
    ctx.write("/dir/file", "text").unwrap();
    let file = ctx.open("/dir/file").unwrap();
    let refused = Dir::from_inner(&ctx, file.as_inner().held().clone());
    assert_eq!(errno(refused), is(Errno::ENOTDIR));
    let scoped = ctx.open_dir("/dir").unwrap().scoped();
    let plain = Dir::from_inner(&ctx, scoped.as_inner().clone()).unwrap();
    assert_eq!(plain.dir_metadata().unwrap(), scoped.dir_metadata().unwrap());
    assert!(plain.resolve().is_empty());
    let opened = ctx.as_inner().open(vfs::Base::at(plain.as_inner()), b"file", vfs::OpenFlags::RDONLY, 0).unwrap();
    assert_eq!(File::from(opened).metadata().unwrap(), file.metadata().unwrap());
}
