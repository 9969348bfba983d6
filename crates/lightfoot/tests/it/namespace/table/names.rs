//! Names that come, go and move.

use super::*;

/// All of them.
pub(super) fn rows() -> Vec<Row> {
    [creating(), removing(), renaming()].concat()
}

/// Names that come.
#[rustfmt::skip]
fn creating() -> Vec<Row> {
    vec![
        ("mkdir over a directory", vec![mkdir("a")], mkdir("a"), Err(EEXIST)),
        ("mkdir over a file", vec![file("a")], mkdir("a"), Err(EEXIST)),
        ("mkdir over a dangling link", vec![symlink("a", "l")], mkdir("l"), Err(EEXIST)),
        ("mkdir over a dangling link with a slash", vec![symlink("a", "l")], mkdir("l/"), Err(EEXIST)),
        ("mkdir with slashes at the end", vec![], mkdir("a//"), Ok(())),
        ("mkdir of a dot", vec![], mkdir("."), Err(EEXIST)),
        ("mkdir of two dots", vec![], mkdir(".."), Err(EEXIST)),
        ("mkdir of the root", vec![], mkdir("/"), Err(EEXIST)),
        ("mkdir of a dot below a missing directory", vec![], mkdir("a/."), Err(ENOENT)),
        ("mkdir of a dot below a directory", vec![mkdir("a")], mkdir("a/."), Err(EEXIST)),
        ("mkdir below a file", vec![file("a")], mkdir("a/b"), Err(ENOTDIR)),
        ("mkdir below a missing directory", vec![], mkdir("a/b"), Err(ENOENT)),
        ("mkdir through a link", vec![mkdir("d"), symlink("d", "l"), mkdir("l/a")], stat("d/a"), Ok(())),
        ("mkdir through a dangling link", vec![symlink("d", "l")], mkdir("l/a"), Err(ENOENT)),
        ("mknod of a directory", vec![], node("a", S_IFDIR | 0o755), Err(EPERM)),
        ("mknod of a link", vec![], node("a", S_IFLNK | 0o777), Err(EINVAL)),
        ("mknod of a directory beats an empty path", vec![], node("", S_IFDIR | 0o755), Err(EPERM)),
        ("mknod over a file", vec![file("a")], node("a", S_IFIFO | 0o644), Err(EEXIST)),
        ("mknod with a slash at the end", vec![], node("a/", S_IFIFO | 0o644), Err(ENOENT)),
        ("mknod with a slash at the end over a file", vec![file("a")], node("a/", S_IFIFO | 0o644), Err(EEXIST)),
        ("mknod of a device as a user",
            vec![chmod("/", 0o777), become_user(1)], node("a", S_IFCHR | 0o644), Err(EPERM)),
        ("mknod of a block device as a user",
            vec![chmod("/", 0o777), become_user(1)], node("a", S_IFBLK | 0o644), Err(EPERM)),
        ("mknod of a FIFO as a user", vec![chmod("/", 0o777), become_user(1)], node("a", S_IFIFO | 0o644), Ok(())),
        ("mknod of a socket as a user", vec![chmod("/", 0o777), become_user(1)], node("a", S_IFSOCK | 0o644), Ok(())),
        ("mknod of a whiteout as a user",
            vec![chmod("/", 0o777), become_user(1)],
            Op::Mknod { path: "w".into(), mode: S_IFCHR, rdev: (0, 0) }, Ok(())),
        ("mknod of a device where the user may not write",
            vec![become_user(1)], node("a", S_IFCHR | 0o644), Err(EACCES)),
        ("symlink over a file", vec![file("a")], symlink("x", "a"), Err(EEXIST)),
        ("symlink over a dangling link", vec![symlink("x", "a")], symlink("y", "a"), Err(EEXIST)),
        ("symlink with a slash at the end", vec![], symlink("x", "a/"), Err(ENOENT)),
        ("symlink with a slash at the end over a directory", vec![mkdir("a")], symlink("x", "a/"), Err(EEXIST)),
        ("symlink of a dot", vec![], symlink("x", "."), Err(EEXIST)),
        ("link of a missing file", vec![], link("a", "b"), Err(ENOENT)),
        ("link to a directory", vec![mkdir("a")], link("a", "b"), Err(EPERM)),
        ("link of a file over itself", vec![file("a")], link("a", "a"), Err(EEXIST)),
        ("link of a missing file over a file", vec![file("b")], link("a", "b"), Err(ENOENT)),
        ("link over a directory", vec![file("a"), mkdir("b")], link("a", "b"), Err(EEXIST)),
        ("link of a file with a slash", vec![file("a")], link("a/", "b"), Err(ENOTDIR)),
        ("link with a slash at the end", vec![file("a")], link("a", "b/"), Err(ENOENT)),
        ("link of a link does not follow it", vec![symlink("x", "l"), link("l", "m")], readlink("m"), Ok(())),
        ("link of a link to a directory with a slash",
            vec![mkdir("d"), symlink("d", "l")], link("l/", "m"), Err(EPERM)),
        ("link into a file", vec![file("a"), file("b")], link("a", "b/c"), Err(ENOTDIR)),
    ]
}

/// Names that go.
#[rustfmt::skip]
fn removing() -> Vec<Row> {
    vec![
        ("unlink of what is missing", vec![], unlink("a"), Err(ENOENT)),
        ("unlink of a directory", vec![mkdir("a")], unlink("a"), Err(EISDIR)),
        ("unlink of a directory with a slash", vec![mkdir("a")], unlink("a/"), Err(EISDIR)),
        ("unlink of a file with a slash", vec![file("a")], unlink("a/"), Err(ENOTDIR)),
        ("unlink of a link with a slash", vec![mkdir("d"), symlink("d", "l")], unlink("l/"), Err(ENOTDIR)),
        ("unlink of a dangling link", vec![symlink("a", "l")], unlink("l"), Ok(())),
        ("unlink of what is missing with a slash", vec![], unlink("a/"), Err(ENOENT)),
        ("unlink of a dot", vec![], unlink("."), Err(EISDIR)),
        ("unlink of two dots", vec![], unlink(".."), Err(EISDIR)),
        ("unlink of the root", vec![], unlink("/"), Err(EISDIR)),
        ("unlink below a file", vec![file("a")], unlink("a/b"), Err(ENOTDIR)),
        ("rmdir of what is missing", vec![], rmdir("a"), Err(ENOENT)),
        ("rmdir of a full directory", vec![mkdir("a"), file("a/b")], rmdir("a"), Err(ENOTEMPTY)),
        ("rmdir of a file", vec![file("a")], rmdir("a"), Err(ENOTDIR)),
        ("rmdir of a file with a slash", vec![file("a")], rmdir("a/"), Err(ENOTDIR)),
        ("rmdir of a link to a directory", vec![mkdir("d"), symlink("d", "l")], rmdir("l"), Err(ENOTDIR)),
        ("rmdir of a link to a directory with a slash", vec![mkdir("d"), symlink("d", "l")], rmdir("l/"), Err(ENOTDIR)),
        ("rmdir with a slash", vec![mkdir("a")], rmdir("a/"), Ok(())),
        ("rmdir of a dot", vec![], rmdir("."), Err(EINVAL)),
        ("rmdir of a dot below a directory", vec![mkdir("a")], rmdir("a/."), Err(EINVAL)),
        ("rmdir of two dots", vec![mkdir("a")], rmdir("a/.."), Err(ENOTEMPTY)),
        ("rmdir of two dots at the root", vec![], rmdir(".."), Err(ENOTEMPTY)),
        ("rmdir of the root", vec![], rmdir("/"), Err(EBUSY)),
        ("rmdir of a dot below a missing directory", vec![], rmdir("a/."), Err(ENOENT)),
        ("rmdir of the working directory", vec![mkdir("a"), chdir("a")], rmdir("/a"), Ok(())),
    ]
}

/// Names that move.
#[rustfmt::skip]
fn renaming() -> Vec<Row> {
    vec![
        ("rename of what is missing", vec![], rename("a", "b"), Err(ENOENT)),
        ("rename of what is missing over a directory with content",
            vec![mkdir("b"), file("b/c")], rename("a", "b"), Err(ENOENT)),
        ("rename to a missing directory", vec![file("a")], rename("a", "b/c"), Err(ENOENT)),
        ("rename to below a file", vec![file("a"), file("b")], rename("a", "b/c"), Err(ENOTDIR)),
        ("rename of a directory into itself", vec![mkdir("a")], rename("a", "a/b"), Err(EINVAL)),
        ("rename of a directory into its grandchild",
            vec![mkdir("a"), mkdir("a/b")], rename("a", "a/b/c"), Err(EINVAL)),
        ("rename of a directory into itself over what exists",
            vec![mkdir("a"), file("a/b")], rename("a", "a/b"), Err(EINVAL)),
        ("rename of a directory into itself by a link",
            vec![mkdir("a"), symlink("a", "l")], rename("a", "l/b"), Err(EINVAL)),
        ("rename over its own parent", vec![mkdir("a"), mkdir("a/b")], rename("a/b", "a"), Err(ENOTEMPTY)),
        ("rename of a file over its own parent", vec![mkdir("a"), file("a/b")], rename("a/b", "a"), Err(ENOTEMPTY)),
        ("rename of a directory over itself", vec![mkdir("a")], rename("a", "a"), Ok(())),
        ("rename of a file over itself", vec![file("a")], rename("a", "a"), Ok(())),
        ("rename over a full directory", vec![mkdir("a"), mkdir("b"), file("b/c")], rename("a", "b"), Err(ENOTEMPTY)),
        ("rename over an empty directory", vec![mkdir("a"), mkdir("b")], rename("a", "b"), Ok(())),
        ("rename of a file over a directory", vec![file("a"), mkdir("b")], rename("a", "b"), Err(EISDIR)),
        ("rename of a file over a full directory",
            vec![file("a"), mkdir("b"), file("b/c")], rename("a", "b"), Err(EISDIR)),
        ("rename of a directory over a file", vec![mkdir("a"), file("b")], rename("a", "b"), Err(ENOTDIR)),
        ("rename of a link over a directory", vec![symlink("x", "l"), mkdir("d")], rename("l", "d"), Err(EISDIR)),
        ("rename of a directory over a link to a directory",
            vec![mkdir("a"), mkdir("d"), symlink("d", "l")], rename("a", "l"), Err(ENOTDIR)),
        ("rename of a file with a slash", vec![file("a")], rename("a/", "b"), Err(ENOTDIR)),
        ("rename of a file to a name with a slash", vec![file("a")], rename("a", "b/"), Err(ENOTDIR)),
        ("rename of a file over a directory with a slash",
            vec![file("a"), mkdir("b")], rename("a", "b/"), Err(ENOTDIR)),
        ("rename of a directory to a name with a slash", vec![mkdir("a")], rename("a", "b/"), Ok(())),
        ("rename of a directory with a slash", vec![mkdir("a")], rename("a/", "b"), Ok(())),
        ("rename of a link to a directory with a slash",
            vec![mkdir("d"), symlink("d", "l")], rename("l/", "m"), Err(ENOTDIR)),
        ("rename over a hard link of itself keeps both names",
            vec![file("a"), link("a", "b"), rename("a", "b")], stat("a"), Ok(())),
        ("rename of a dot", vec![mkdir("a")], rename(".", "b"), Err(EBUSY)),
        ("rename of a dot below a directory", vec![mkdir("a")], rename("a/.", "b"), Err(EBUSY)),
        ("rename of two dots", vec![mkdir("a")], rename("a/..", "b"), Err(EBUSY)),
        ("rename to a dot", vec![file("a")], rename("a", "."), Err(EBUSY)),
        ("rename to two dots", vec![file("a")], rename("a", ".."), Err(EBUSY)),
        ("rename of the root", vec![], rename("/", "a"), Err(EBUSY)),
        ("rename to the root", vec![file("a")], rename("a", "/"), Err(EBUSY)),
        ("rename of what is missing to a dot", vec![], rename("a", "."), Err(EBUSY)),
        ("rename of a dangling link", vec![symlink("x", "l"), rename("l", "m")], readlink("m"), Ok(())),
        ("rename over a dangling link",
            vec![file("a"), symlink("x", "l"), rename("a", "l")], open("l", O_RDONLY | O_NOFOLLOW), Ok(())),
    ]
}
