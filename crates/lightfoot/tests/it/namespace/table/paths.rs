//! Paths and how they are walked.

use super::*;

/// All of them.
pub(super) fn rows() -> Vec<Row> {
    [before_the_walk(), walks(), links(), loops(), working_directory()].concat()
}

/// Paths before anything is looked up.
#[rustfmt::skip]
fn before_the_walk() -> Vec<Row> {
    vec![
        ("a NUL byte in a path", vec![], stat("a\0b"), Err(EINVAL)),
        ("a NUL byte in a name to create", vec![], mkdir("a\0b"), Err(EINVAL)),
        ("a NUL byte after a name that is there", vec![file("a")], stat("a\0"), Err(EINVAL)),
        ("two NUL bytes after a name that is there", vec![file("a")], stat("a\0\0"), Err(EINVAL)),
        ("a NUL byte after a directory that is there", vec![mkdir("d"), file("d/a")], stat("d\0/a"), Err(EINVAL)),
        ("a NUL byte after a dot", vec![], stat(".\0"), Err(EINVAL)),
        ("a NUL byte after a name that is there, open", vec![file("a")], open("a\0", O_RDONLY), Err(EINVAL)),
        ("a NUL byte after a name that is there, create", vec![file("a")], create("a\0"), Err(EINVAL)),
        ("a NUL byte after a name that is there, unlink", vec![file("a")], unlink("a\0"), Err(EINVAL)),
        ("a NUL byte after a name that is there, rename", vec![file("a")], rename("a\0", "b"), Err(EINVAL)),
        ("a NUL byte in a symlink body", vec![], symlink("a\0b", "l"), Err(EINVAL)),
        ("an empty path", vec![], stat(""), Err(ENOENT)),
        ("an empty path, lstat", vec![], lstat(""), Err(ENOENT)),
        ("an empty path, mkdir", vec![], mkdir(""), Err(ENOENT)),
        ("an empty path, create", vec![], create(""), Err(ENOENT)),
        ("an empty path, unlink", vec![], unlink(""), Err(ENOENT)),
        ("an empty path, rmdir", vec![], rmdir(""), Err(ENOENT)),
        ("an empty path, readlink", vec![], readlink(""), Err(ENOENT)),
        ("an empty path, chdir", vec![], chdir(""), Err(ENOENT)),
        ("an empty path, access", vec![], access("", 0), Err(ENOENT)),
        ("an empty path, first of rename", vec![file("a")], rename("", "a"), Err(ENOENT)),
        ("an empty path, second of rename", vec![file("a")], rename("a", ""), Err(ENOENT)),
        ("an empty path, first of link", vec![file("a")], link("", "b"), Err(ENOENT)),
        ("an empty path, second of link", vec![file("a")], link("a", ""), Err(ENOENT)),
        ("an empty symlink body", vec![], symlink("", "l"), Err(ENOENT)),
        ("an empty symlink path", vec![], symlink("a", ""), Err(ENOENT)),
        ("two slashes are the root", vec![], stat("//"), Ok(())),
        ("three slashes before a name", vec![file("a")], stat("///a"), Ok(())),
        ("slashes between names", vec![mkdir("a"), file("a/b")], stat("a////b"), Ok(())),
        ("slashes after a directory", vec![mkdir("a")], stat("a///"), Ok(())),
        ("a path of 4095 bytes", vec![file("a")], stat(slashes(4094) + "a"), Ok(())),
        ("a path of 4096 bytes", vec![file("a")], stat(slashes(4095) + "a"), Err(ENAMETOOLONG)),
        ("a path of 5000 bytes", vec![file("a")], stat(slashes(4999) + "a"), Err(ENAMETOOLONG)),
        ("a path of 4096 bytes, open", vec![file("a")], open(slashes(4095) + "a", O_RDONLY), Err(ENAMETOOLONG)),
        ("a symlink body of 4095 bytes", vec![symlink(name(4095), "l")], readlink("l"), Ok(())),
        ("a symlink body of 4096 bytes", vec![], symlink(name(4096), "l"), Err(ENAMETOOLONG)),
        ("a name of 255 bytes", vec![], mkdir(name(255)), Ok(())),
        ("a name of 256 bytes", vec![], mkdir(name(256)), Err(ENAMETOOLONG)),
        ("a name of 256 bytes, create", vec![], create(name(256)), Err(ENAMETOOLONG)),
        ("a name of 256 bytes, symlink", vec![], symlink("a", name(256)), Err(ENAMETOOLONG)),
        ("a name of 256 bytes, stat", vec![], stat(name(256)), Err(ENAMETOOLONG)),
        ("a name of 256 bytes, unlink", vec![], unlink(name(256)), Err(ENAMETOOLONG)),
        ("a name of 256 bytes, rename to", vec![file("a")], rename("a", name(256)), Err(ENAMETOOLONG)),
        ("a name of 256 bytes, rename from", vec![], rename(name(256), "a"), Err(ENAMETOOLONG)),
        ("a name of 256 bytes on the way", vec![], stat(name(256) + "/a"), Err(ENAMETOOLONG)),
        ("a name of 256 bytes below what is missing", vec![], stat("a/".to_owned() + &name(256)), Err(ENOENT)),
        ("a name of 256 bytes below a file", vec![file("a")], stat("a/".to_owned() + &name(256)), Err(ENOTDIR)),
        ("a name of 256 bytes in a removed directory",
            vec![mkdir("a"), chdir("a"), rmdir("../a")], stat(name(256)), Err(ENOENT)),
        ("a name that is not UTF-8", vec![file(b"\xff\xfe")], stat(b"\xff\xfe"), Ok(())),
        ("a name of three dots", vec![mkdir("...")], stat("..."), Ok(())),
        ("a name of three dots that is missing", vec![], stat("..."), Err(ENOENT)),
        ("a name of a dot and a comma", vec![mkdir("d"), file("d/.,")], stat("d/.,"), Ok(())),
        ("a name of a dot and a comma that is missing", vec![mkdir("d")], stat("d/.,"), Err(ENOENT)),
        ("a name of a dot and a space that is missing", vec![mkdir("d")], stat("d/. /"), Err(ENOENT)),
        ("a name of a dot and a letter that is missing", vec![mkdir("d")], stat("d/.a"), Err(ENOENT)),
        ("a name of a space and a dot that is missing", vec![mkdir("d")], stat("d/ ."), Err(ENOENT)),
        ("a name of spaces and control bytes", vec![file(" \n\t")], stat(" \n\t"), Ok(())),
    ]
}

/// From one component to the next.
#[rustfmt::skip]
fn walks() -> Vec<Row> {
    vec![
        ("a missing file", vec![], stat("a"), Err(ENOENT)),
        ("a missing directory on the way", vec![], stat("a/b"), Err(ENOENT)),
        ("a file used as a directory", vec![file("a")], stat("a/b"), Err(ENOTDIR)),
        ("a file followed by a dot", vec![file("a")], stat("a/."), Err(ENOTDIR)),
        ("a file followed by two dots", vec![file("a")], stat("a/.."), Err(ENOTDIR)),
        ("a slash after a file", vec![file("a")], stat("a/"), Err(ENOTDIR)),
        ("a slash after a file, lstat", vec![file("a")], lstat("a/"), Err(ENOTDIR)),
        ("a slash after what is missing", vec![], stat("a/"), Err(ENOENT)),
        ("a slash after a link to a file", vec![file("a"), symlink("a", "l")], lstat("l/"), Err(ENOTDIR)),
        ("a slash after a link to a directory", vec![mkdir("d"), symlink("d", "l")], lstat("l/"), Ok(())),
        ("a FIFO used as a directory", vec![node("p", S_IFIFO | 0o644)], stat("p/a"), Err(ENOTDIR)),
    ]
}

/// Links on the way and at its end.
#[rustfmt::skip]
fn links() -> Vec<Row> {
    vec![
        ("two dots above the root", vec![mkdir("a")], stat("../../a"), Ok(())),
        ("two dots in a missing directory", vec![], stat("a/.."), Err(ENOENT)),
        ("two dots behind a link lead to the target's parent",
            vec![mkdir("a"), mkdir("a/b"), file("a/f"), symlink("a/b", "l")], stat("l/../f"), Ok(())),
        ("an absolute link", vec![mkdir("d"), file("f"), symlink("/f", "d/l")], stat("d/l"), Ok(())),
        ("a link to the root", vec![symlink("/", "l"), file("f")], stat("l/f"), Ok(())),
        ("a link to slashes", vec![symlink("///", "l")], stat("l"), Ok(())),
        ("a relative link starts beside itself",
            vec![mkdir("d"), file("d/f"), symlink("f", "d/l")], stat("d/l"), Ok(())),
        ("a dangling link", vec![symlink("a", "l")], stat("l"), Err(ENOENT)),
        ("a dangling link itself", vec![symlink("a", "l")], lstat("l"), Ok(())),
        ("a dangling link on the way", vec![symlink("a", "l")], stat("l/b"), Err(ENOENT)),
        ("a link to a file on the way", vec![file("f"), symlink("f", "l")], stat("l/b"), Err(ENOTDIR)),
        ("a link whose body has a slash at its end, to a file",
            vec![file("f"), symlink("f/", "l")], stat("l"), Err(ENOTDIR)),
        ("a link whose body has a slash at its end, to a directory",
            vec![mkdir("d"), symlink("d/", "l")], stat("l"), Ok(())),
        ("a link through a file", vec![file("f"), symlink("f/a", "l")], stat("l"), Err(ENOTDIR)),
    ]
}

/// Links without end, and nearly so.
#[rustfmt::skip]
fn loops() -> Vec<Row> {
    vec![
        ("a link to itself", vec![symlink("l", "l")], stat("l"), Err(ELOOP)),
        ("a link to itself, lstat", vec![symlink("l", "l")], lstat("l"), Ok(())),
        ("a link to itself with a slash, lstat", vec![symlink("l", "l")], lstat("l/"), Err(ELOOP)),
        ("a link to itself on the way", vec![symlink("l", "l")], stat("l/a"), Err(ELOOP)),
        ("two links to each other", vec![symlink("m", "l"), symlink("l", "m")], open("l", O_RDONLY), Err(ELOOP)),
        ("a link into itself", vec![symlink("l/a", "l")], stat("l"), Err(ELOOP)),
        ("links that cannot be followed are still renamed", vec![symlink("l", "l")], rename("l", "m"), Ok(())),
        ("40 links in a row", chain(40), stat("l40"), Ok(())),
        ("41 links in a row", chain(41), stat("l41"), Err(ELOOP)),
        ("40 links in a row, open", chain(40), open("l40", O_RDONLY), Ok(())),
        ("41 links in a row, open", chain(41), open("l41", O_RDONLY), Err(ELOOP)),
        ("41 links in a row, the last not followed", chain(41), lstat("l41"), Ok(())),
        ("40 links in a row and one on the way", chain_below_link(40), stat("m/l40"), Err(ELOOP)),
        ("39 links in a row and one on the way", chain_below_link(39), stat("m/l39"), Ok(())),
        ("40 links in a row and one on the way, create", chain_below_link(40), create("m/l40"), Err(ELOOP)),
        ("39 links in a row and one on the way, create", chain_below_link(39), create("m/l39"), Ok(())),
        ("one link passed 40 times",
            vec![mkdir("d"), symlink(".", "d/l")], stat("d/".to_owned() + &"l/".repeat(40)), Ok(())),
        ("one link passed 41 times",
            vec![mkdir("d"), symlink(".", "d/l")], stat("d/".to_owned() + &"l/".repeat(41)), Err(ELOOP)),
    ]
}

/// Where the process stands.
#[rustfmt::skip]
fn working_directory() -> Vec<Row> {
    vec![
        ("a file as working directory", vec![file("a")], chdir("a"), Err(ENOTDIR)),
        ("a missing working directory", vec![], chdir("a"), Err(ENOENT)),
        ("a removed working directory has no path", vec![mkdir("a"), chdir("a"), rmdir("../a")], getcwd(), Err(ENOENT)),
        ("a removed working directory can be looked at",
            vec![mkdir("a"), chdir("a"), rmdir("../a")], stat("."), Ok(())),
        ("a removed working directory has a parent",
            vec![mkdir("a"), chdir("a"), rmdir("../a"), file("../f")], stat("../f"), Ok(())),
        ("a removed working directory holds nothing",
            vec![mkdir("a"), chdir("a"), rmdir("../a")], stat("b"), Err(ENOENT)),
        ("a removed working directory takes no file",
            vec![mkdir("a"), chdir("a"), rmdir("../a")], create("b"), Err(ENOENT)),
        ("a removed working directory takes no directory",
            vec![mkdir("a"), chdir("a"), rmdir("../a")], mkdir("b"), Err(ENOENT)),
        ("a removed working directory takes no renamed file",
            vec![file("f"), mkdir("a"), chdir("a"), rmdir("../a")], rename("/f", "b"), Err(ENOENT)),
        ("a removed working directory takes no link",
            vec![file("f"), mkdir("a"), chdir("a"), rmdir("../a")], link("/f", "b"), Err(ENOENT)),
        ("a removed working directory takes no symlink",
            vec![mkdir("a"), chdir("a"), rmdir("../a")], symlink("f", "b"), Err(ENOENT)),
        ("a removed working directory can be entered again",
            vec![mkdir("a"), chdir("a"), rmdir("../a")], chdir("."), Ok(())),
        ("a removed working directory lists nothing",
            vec![mkdir("a"), chdir("a"), rmdir("../a")], read_dir("."), Ok(())),
        ("a replaced working directory is a removed one",
            vec![mkdir("a"), mkdir("b"), chdir("a"), rename("../b", "../a")], create("f"), Err(ENOENT)),
    ]
}

/// A file `l0` and links `l1` to `l<count>`, each to the one before.
fn chain(count: usize) -> Vec<Op> {
    let links = (1..=count).map(|i| symlink(format!("l{}", i - 1), format!("l{i}")));
    [file("l0")].into_iter().chain(links).collect()
}

/// The same in a directory `d`, and a link `m` to that.
fn chain_below_link(count: usize) -> Vec<Op> {
    [mkdir("d"), symlink("d", "m"), chdir("d")].into_iter().chain(chain(count)).chain([chdir("/")]).collect()
}
