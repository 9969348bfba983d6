//! Permission checks: which caller may do what.

use super::*;

/// All of them.
pub(super) fn rows() -> Vec<Row> {
    [permissions(), unwritable_directory(), file_permissions(), ownership()].concat()
}

/// The operations with their callers, and the errors that they must get.
#[rustfmt::skip]
fn permissions() -> Vec<Row> {
    vec![
        ("unsearchable directory on the way",
            vec![mkdir_mode("d", 0o700), file("d/a"), become_user(1)], stat("d/a"), Err(EACCES)),
        ("unsearchable directory on the way to what is missing",
            vec![mkdir_mode("d", 0o700), become_user(1)], stat("d/a"), Err(EACCES)),
        ("unsearchable directory and a dot", vec![mkdir_mode("d", 0o700), become_user(1)], stat("d/."), Err(EACCES)),
        ("unsearchable directory itself", vec![mkdir_mode("d", 0o700), become_user(1)], stat("d"), Ok(())),
        ("unsearchable directory with a slash", vec![mkdir_mode("d", 0o700), become_user(1)], stat("d/"), Ok(())),
        ("unsearchable directory as root", vec![mkdir_mode("d", 0o000), file("d/a")], stat("d/a"), Ok(())),
        ("unsearchable working directory",
            vec![mkdir_mode("d", 0o700), file("d/a"), chdir("d"), become_user(1)], stat("a"), Err(EACCES)),
        ("unsearchable working directory and a dot",
            vec![mkdir_mode("d", 0o700), chdir("d"), become_user(1)], stat("."), Err(EACCES)),
        ("unsearchable working directory and an absolute path",
            vec![mkdir_mode("d", 0o700), chdir("d"), become_user(1)], stat("/d"), Ok(())),
        ("chdir to an unsearchable directory", vec![mkdir_mode("d", 0o700), become_user(1)], chdir("d"), Err(EACCES)),
        ("searchable but unreadable directory",
            vec![mkdir_mode("d", 0o711), file("d/a"), become_user(1)], stat("d/a"), Ok(())),
        ("searchable but unreadable directory, listed",
            vec![mkdir_mode("d", 0o711), become_user(1)], read_dir("d"), Err(EACCES)),
        ("readable but unsearchable directory, listed",
            vec![mkdir_mode("d", 0o744), become_user(1)], read_dir("d"), Ok(())),
        ("readable but unsearchable directory, entered",
            vec![mkdir_mode("d", 0o744), file("d/a"), become_user(1)], stat("d/a"), Err(EACCES)),
        ("the owner's bits come before the others'",
            vec![chmod("/", 0o777), become_user(1), mkdir_mode("d", 0o077)], read_dir("d"), Err(EACCES)),
        ("the group's bits come before the others'",
            vec![mkdir_mode("d", 0o705), chown("d", None, Some(1000)), become_user(1)], read_dir("d"), Err(EACCES)),
        ("supplementary groups count",
            vec![mkdir_mode("d", 0o750), chown("d", None, Some(2000)), become_user(2)], read_dir("d"), Ok(())),
        ("groups one is not in do not count",
            vec![mkdir_mode("d", 0o750), chown("d", None, Some(2000)), become_user(1)], read_dir("d"), Err(EACCES)),
    ]
}

/// What a directory's write permission is for.
#[rustfmt::skip]
fn unwritable_directory() -> Vec<Row> {
    vec![
        ("unwritable directory, mkdir", vec![become_user(1)], mkdir("a"), Err(EACCES)),
        ("unwritable directory, mkdir over what exists", vec![mkdir("a"), become_user(1)], mkdir("a"), Err(EEXIST)),
        ("unwritable directory, create", vec![become_user(1)], create("a"), Err(EACCES)),
        ("unwritable directory, create over what exists",
            vec![node("a", S_IFREG | 0o666), chmod("a", 0o666), become_user(1)], create("a"), Ok(())),
        ("unwritable directory, create with a name too long",
            vec![become_user(1)], create(name(256)), Err(ENAMETOOLONG)),
        ("unwritable directory, symlink", vec![become_user(1)], symlink("x", "a"), Err(EACCES)),
        ("unwritable directory, link",
            vec![chmod("/", 0o777), become_user(1), file("a"), become_user(0), mkdir("d"), become_user(1)],
            link("a", "d/a"), Err(EACCES)),
        ("unwritable directory, unlink", vec![file("a"), become_user(1)], unlink("a"), Err(EACCES)),
        ("unwritable directory, unlink of what is missing", vec![become_user(1)], unlink("a"), Err(ENOENT)),
        ("unwritable directory, unlink of a directory", vec![mkdir("a"), become_user(1)], unlink("a"), Err(EACCES)),
        ("unwritable directory, rmdir", vec![mkdir("a"), become_user(1)], rmdir("a"), Err(EACCES)),
        ("unwritable directory, rmdir of a file", vec![file("a"), become_user(1)], rmdir("a"), Err(EACCES)),
        ("unwritable directory, rename from",
            vec![chmod("/", 0o777), mkdir("d"), file("d/a"), become_user(1)], rename("d/a", "a"), Err(EACCES)),
        ("unwritable directory, rename to",
            vec![chmod("/", 0o777), mkdir("d"), become_user(1), file("a")], rename("a", "d/a"), Err(EACCES)),
        ("unwritable directory, rename over itself", vec![file("a"), become_user(1)], rename("a", "a"), Ok(())),
        ("unwritable directory, rename of a directory into itself",
            vec![mkdir("a"), become_user(1)], rename("a", "a/b"), Err(EINVAL)),
        ("a directory one may not write to keeps its parent",
            vec![chmod("/", 0o777), mkdir("d"), chmod("d", 0o777), mkdir("a"), become_user(1)],
            rename("a", "d/a"), Err(EACCES)),
        ("a directory one may not write to changes its name",
            vec![chmod("/", 0o777), mkdir("a"), become_user(1)], rename("a", "b"), Ok(())),
    ]
}

/// What a file's permissions are for.
#[rustfmt::skip]
fn file_permissions() -> Vec<Row> {
    vec![
        ("unreadable file", vec![node("a", S_IFREG | 0o600), become_user(1)], open("a", O_RDONLY), Err(EACCES)),
        ("unreadable FIFO", vec![node("p", S_IFIFO | 0o600), become_user(1)], open("p", O_RDONLY), Err(EACCES)),
        ("unreadable device", vec![node("c", S_IFCHR | 0o600), become_user(1)], open("c", O_RDONLY), Err(EACCES)),
        ("unwritable file", vec![file("a"), become_user(1)], open("a", O_WRONLY), Err(EACCES)),
        ("unwritable file, truncating", vec![file("a"), become_user(1)], open("a", O_RDONLY | O_TRUNC), Err(EACCES)),
        ("unwritable file, truncate", vec![file("a"), become_user(1)], truncate("a", 0), Err(EACCES)),
        ("unreadable file as root", vec![node("a", S_IFREG)], open("a", O_RDWR), Ok(())),
        ("a new file is open whatever its mode",
            vec![chmod("/", 0o777), become_user(1)],
            Op::Open { slot: 0, path: "a".into(), flags: O_RDWR | O_CREAT, mode: 0 }, Ok(())),
        ("a directory for writing beats its permissions",
            vec![mkdir_mode("d", 0o000), become_user(1)], open("d", O_WRONLY), Err(EISDIR)),
        ("access of what one may not read",
            vec![node("a", S_IFREG | 0o600), become_user(1)], access("a", 4), Err(EACCES)),
        ("access that asks nothing", vec![node("a", S_IFREG), become_user(1)], access("a", 0), Ok(())),
        ("access of what is missing", vec![], access("a", 0), Err(ENOENT)),
        ("access through a dangling link", vec![symlink("a", "l")], access("l", 0), Err(ENOENT)),
    ]
}

/// What only owners may do.
#[rustfmt::skip]
fn ownership() -> Vec<Row> {
    vec![
        ("sticky directory, somebody else's file, unlink",
            vec![chmod("/", 0o1777), file("a"), become_user(1)], unlink("a"), Err(EPERM)),
        ("sticky directory, own file, unlink",
            vec![chmod("/", 0o1777), become_user(1), file("a")], unlink("a"), Ok(())),
        ("sticky directory, own directory of somebody else's file",
            vec![chmod("/", 0o1777), chown("/", Some(1000), None), file("a"), become_user(1)], unlink("a"), Ok(())),
        ("sticky directory, somebody else's directory, rmdir",
            vec![chmod("/", 0o1777), mkdir("a"), become_user(1)], rmdir("a"), Err(EPERM)),
        ("sticky directory, somebody else's file, rmdir",
            vec![chmod("/", 0o1777), file("a"), become_user(1)], rmdir("a"), Err(EPERM)),
        ("sticky directory, somebody else's directory, unlink",
            vec![chmod("/", 0o1777), mkdir("a"), become_user(1)], unlink("a"), Err(EPERM)),
        ("sticky directory, somebody else's file, rename",
            vec![chmod("/", 0o1777), file("a"), become_user(1)], rename("a", "b"), Err(EPERM)),
        ("sticky directory, rename over somebody else's file",
            vec![chmod("/", 0o1777), file("b"), become_user(1), file("a")], rename("a", "b"), Err(EPERM)),
        ("sticky directory, as root",
            vec![chmod("/", 0o1777), become_user(1), file("a"), become_user(0)], unlink("a"), Ok(())),
        ("sticky directory, create over somebody else's socket",
            vec![chmod("/", 0o1777), node("s", S_IFSOCK | 0o666), chown("s", Some(1001), None), become_user(1)],
            create("s"), Err(EACCES)),
        ("sticky directory, create over somebody else's link without following it",
            vec![chmod("/", 0o1777), symlink("x", "l"), lchown("l", Some(1001), None), become_user(1)],
            open("l", O_WRONLY | O_CREAT | O_NOFOLLOW), Err(EACCES)),
        ("chmod of somebody else's file",
            vec![node("a", S_IFREG | 0o666), become_user(1)], chmod("a", 0o600), Err(EPERM)),
        ("chmod of what is missing", vec![], chmod("a", 0o600), Err(ENOENT)),
        ("chmod of a dangling link", vec![symlink("a", "l")], chmod("l", 0o600), Err(ENOENT)),
        ("fchmod of somebody else's file",
            vec![file("a"), become_user(1), open("a", O_RDONLY)], fchmod(0o600), Err(EPERM)),
        ("chown to somebody else as a user",
            vec![chmod("/", 0o777), become_user(1), file("a")], chown("a", Some(1001), None), Err(EPERM)),
        ("chown to oneself as the owner",
            vec![chmod("/", 0o777), become_user(1), file("a")], chown("a", Some(1000), Some(1000)), Ok(())),
        ("chown to oneself as somebody else",
            vec![file("a"), become_user(1)], chown("a", Some(1000), None), Err(EPERM)),
        ("chown to a group one is in",
            vec![chmod("/", 0o777), become_user(2), file("a")], chown("a", None, Some(2000)), Ok(())),
        ("chown to a group one is not in",
            vec![chmod("/", 0o777), become_user(1), file("a")], chown("a", None, Some(2000)), Err(EPERM)),
        ("chown that changes nothing, of somebody else's file",
            vec![file("a"), become_user(1)], chown("a", None, None), Ok(())),
        ("chown that changes nothing, of somebody else's set-user-ID file",
            vec![node("a", S_IFREG | 0o4755), become_user(1)], chown("a", None, None), Err(EPERM)),
        ("chown of a dangling link", vec![symlink("a", "l")], chown("l", Some(1), None), Err(ENOENT)),
        ("lchown of a dangling link", vec![symlink("a", "l")], lchown("l", Some(1), None), Ok(())),
        ("lchown of somebody else's link",
            vec![symlink("a", "l"), become_user(1)], lchown("l", Some(1000), None), Err(EPERM)),
        ("times of somebody else's file",
            vec![node("a", S_IFREG | 0o666), chmod("a", 0o666), become_user(1)], utimens("a"), Err(EPERM)),
        ("times of a file that its owner may not write",
            vec![chmod("/", 0o777), become_user(1), node("a", S_IFREG | 0o400)], utimens("a"), Ok(())),
        ("times of what is missing", vec![], utimens("a"), Err(ENOENT)),
        ("link to one's own file", vec![chmod("/", 0o777), become_user(1), file("a")], link("a", "b"), Ok(())),
        ("link to somebody else's file that one may write",
            vec![chmod("/", 0o777), file("a"), chmod("a", 0o666), become_user(1)], link("a", "b"), Ok(())),
    ]
}
