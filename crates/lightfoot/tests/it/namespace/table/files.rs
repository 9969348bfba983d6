//! Open and open files.

use super::*;

/// All of them.
pub(super) fn rows() -> Vec<Row> {
    [opening(), no_follow_and_directory(), open_files()].concat()
}

/// Open and its flags.
#[rustfmt::skip]
fn opening() -> Vec<Row> {
    vec![
        ("open of what is missing", vec![], open("a", O_RDONLY), Err(ENOENT)),
        ("open of a directory for reading", vec![mkdir("a")], open("a", O_RDONLY), Ok(())),
        ("open of a directory for writing", vec![mkdir("a")], open("a", O_WRONLY), Err(EISDIR)),
        ("open of a directory for both", vec![mkdir("a")], open("a", O_RDWR), Err(EISDIR)),
        ("open of a directory, truncating", vec![mkdir("a")], open("a", O_RDONLY | O_TRUNC), Err(EISDIR)),
        ("open of the root for writing", vec![], open("/", O_WRONLY), Err(EISDIR)),
        ("create over a directory", vec![mkdir("a")], open("a", O_RDONLY | O_CREAT), Err(EISDIR)),
        ("create of a dot", vec![], create("."), Err(EISDIR)),
        ("create of two dots", vec![], create(".."), Err(EISDIR)),
        ("create of the root", vec![], create("/"), Err(EISDIR)),
        ("create over a file", vec![file("a")], create("a"), Ok(())),
        ("create with a slash", vec![], create("a/"), Err(EISDIR)),
        ("create with a slash over a file", vec![file("a")], create("a/"), Err(EISDIR)),
        ("create with a slash over a directory", vec![mkdir("a")], create("a/"), Err(EISDIR)),
        ("create below a missing directory", vec![], create("a/b"), Err(ENOENT)),
        ("create below a file", vec![file("a")], create("a/b"), Err(ENOTDIR)),
        ("create-new over a file", vec![file("a")], create_new("a"), Err(EEXIST)),
        ("create-new over a directory", vec![mkdir("a")], create_new("a"), Err(EEXIST)),
        ("create-new of a dot", vec![], create_new("."), Err(EEXIST)),
        ("create-new of the root", vec![], create_new("/"), Err(EEXIST)),
        ("create-new with a slash over a directory", vec![mkdir("a")], create_new("a/"), Err(EISDIR)),
        ("create-new over a link", vec![file("a"), symlink("a", "l")], create_new("l"), Err(EEXIST)),
        ("create-new over a dangling link", vec![symlink("a", "l")], create_new("l"), Err(EEXIST)),
        ("create through a dangling link makes its target",
            vec![symlink("a", "l"), create("l")], open("a", O_RDONLY | O_NOFOLLOW), Ok(())),
        ("create through a chain of dangling links",
            vec![symlink("a", "l"), symlink("l", "m"), create("m")], open("a", O_RDONLY | O_NOFOLLOW), Ok(())),
        ("create through a dangling link into a missing directory",
            vec![symlink("d/a", "l")], create("l"), Err(ENOENT)),
        ("create through a dangling link with a slash in its body", vec![symlink("a/", "l")], create("l"), Err(EISDIR)),
        ("create through a link to a directory", vec![mkdir("d"), symlink("d", "l")], create("l"), Err(EISDIR)),
        ("create through a link to the root", vec![symlink("/", "l")], create("l"), Err(EISDIR)),
        ("create through a link to itself", vec![symlink("l", "l")], create("l"), Err(ELOOP)),
        ("create without following a dangling link",
            vec![symlink("a", "l")], open("l", O_WRONLY | O_CREAT | O_NOFOLLOW), Err(ELOOP)),
    ]
}

/// Open with `O_NOFOLLOW` and `O_DIRECTORY`.
#[rustfmt::skip]
fn no_follow_and_directory() -> Vec<Row> {
    vec![
        ("no-follow on a link", vec![file("a"), symlink("a", "l")], open("l", O_RDONLY | O_NOFOLLOW), Err(ELOOP)),
        ("no-follow on a dangling link", vec![symlink("a", "l")], open("l", O_RDONLY | O_NOFOLLOW), Err(ELOOP)),
        ("no-follow on a link with a slash",
            vec![mkdir("d"), symlink("d", "l")], open("l/", O_RDONLY | O_NOFOLLOW), Ok(())),
        ("no-follow on a link on the way",
            vec![mkdir("d"), file("d/a"), symlink("d", "l")], open("l/a", O_RDONLY | O_NOFOLLOW), Ok(())),
        ("no-follow on a file", vec![file("a")], open("a", O_RDONLY | O_NOFOLLOW), Ok(())),
        ("no-follow and directory on a link to a directory",
            vec![mkdir("d"), symlink("d", "l")], open("l", O_RDONLY | O_NOFOLLOW | O_DIRECTORY), Err(ENOTDIR)),
        ("directory on a file", vec![file("a")], open("a", O_RDONLY | O_DIRECTORY), Err(ENOTDIR)),
        ("directory on a link to a directory",
            vec![mkdir("d"), symlink("d", "l")], open("l", O_RDONLY | O_DIRECTORY), Ok(())),
        ("directory on what is missing", vec![], open("a", O_RDONLY | O_DIRECTORY), Err(ENOENT)),
        ("directory for writing", vec![mkdir("a")], open("a", O_WRONLY | O_DIRECTORY), Err(EISDIR)),
        ("directory on a file for writing", vec![file("a")], open("a", O_WRONLY | O_DIRECTORY), Err(ENOTDIR)),
        ("directory and create", vec![], open("a", O_RDONLY | O_DIRECTORY | O_CREAT), Err(EINVAL)),
        ("directory and create on a directory",
            vec![mkdir("a")], open("a", O_RDONLY | O_DIRECTORY | O_CREAT), Err(EINVAL)),
        ("a slash after a file, open", vec![file("a")], open("a/", O_RDONLY), Err(ENOTDIR)),
        ("open of a socket", vec![node("s", S_IFSOCK | 0o644)], open("s", O_RDONLY), Err(ENXIO)),
        ("open of a device that is not there", vec![node("c", S_IFCHR | 0o644)], open("c", O_RDONLY), Err(ENXIO)),
        ("create over a socket without the right to",
            vec![chmod("/", 0o777), node("s", S_IFSOCK | 0o600), become_user(1)], create("s"), Err(EACCES)),
        ("list a file", vec![file("a")], read_dir("a"), Err(ENOTDIR)),
        ("list what is missing", vec![], read_dir("a"), Err(ENOENT)),
    ]
}

/// Open files.
#[rustfmt::skip]
fn open_files() -> Vec<Row> {
    vec![
        ("read without a file", vec![], read(1), Err(EBADF)),
        ("write without a file", vec![], write(1), Err(EBADF)),
        ("close without a file", vec![], close(), Err(EBADF)),
        ("fstat without a file", vec![], fstat(), Err(EBADF)),
        ("close twice", vec![create("a"), close()], close(), Err(EBADF)),
        ("read on a file open for writing", vec![create("a")], read(1), Err(EBADF)),
        ("positioned read on a file open for writing",
            vec![create("a")], Op::Pread { slot: 0, offset: 0, len: 1 }, Err(EBADF)),
        ("write on a file open for reading", vec![file("a"), open("a", O_RDONLY)], write(1), Err(EBADF)),
        ("write of nothing on a file open for reading", vec![file("a"), open("a", O_RDONLY)], write(0), Err(EBADF)),
        ("positioned write on a file open for reading",
            vec![file("a"), open("a", O_RDONLY)], Op::Pwrite { slot: 0, offset: 0, fill: 0, len: 1 }, Err(EBADF)),
        ("read on a directory", vec![mkdir("a"), open("a", O_RDONLY)], read(1), Err(EISDIR)),
        ("write on a directory", vec![mkdir("a"), open("a", O_RDONLY)], write(1), Err(EBADF)),
        ("ftruncate on a file open for reading", vec![file("a"), open("a", O_RDONLY)], ftruncate(0), Err(EINVAL)),
        ("ftruncate on a directory", vec![mkdir("a"), open("a", O_RDONLY)], ftruncate(0), Err(EINVAL)),
        ("a seek before the start", vec![create("a"), write(10)], seek(Whence::Current, -11), Err(EINVAL)),
        ("a seek before the start, from the end", vec![create("a"), write(10)], seek(Whence::End, -11), Err(EINVAL)),
        ("a seek to the start from the end", vec![create("a"), write(10)], seek(Whence::End, -10), Ok(())),
        ("a seek beyond the end", vec![create("a")], seek(Whence::Start, 1 << 40), Ok(())),
        ("truncate to less than nothing", vec![file("a")], truncate("a", -1), Err(EINVAL)),
        ("truncate to less than nothing beats a missing file", vec![], truncate("a", -1), Err(EINVAL)),
        ("truncate of a directory", vec![mkdir("a")], truncate("a", 0), Err(EISDIR)),
        ("truncate of a FIFO", vec![node("p", S_IFIFO | 0o644)], truncate("p", 0), Err(EINVAL)),
        ("truncate of what is missing", vec![], truncate("a", 0), Err(ENOENT)),
        ("truncate of a link to a directory", vec![mkdir("d"), symlink("d", "l")], truncate("l", 0), Err(EISDIR)),
        ("readlink of a file", vec![file("a")], readlink("a"), Err(EINVAL)),
        ("readlink of a directory", vec![mkdir("a")], readlink("a"), Err(EINVAL)),
        ("readlink of a link with a slash", vec![mkdir("d"), symlink("d", "l")], readlink("l/"), Err(EINVAL)),
        ("readlink of a dangling link with a slash", vec![symlink("d", "l")], readlink("l/"), Err(ENOENT)),
        ("an unlinked file stays while it is open", vec![create("a"), unlink("a"), write(5)], fstat(), Ok(())),
        ("an unlinked file can grow", vec![create("a"), unlink("a")], ftruncate(5000), Ok(())),
        ("execute on a file that nobody may execute, as root", vec![file("a")], access("a", 1), Err(EACCES)),
        ("execute on a file that its group may execute, as root",
            vec![node("a", S_IFREG | 0o610), chown("a", Some(1000), Some(1000))], access("a", 1), Ok(())),
    ]
}
