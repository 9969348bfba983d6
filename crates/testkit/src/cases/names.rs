//! Names: creation, lookup and removal. Renames are in `moves`.

use crate::fixture::{Fixture, MAKE};
use crate::outcome::{OrFail, Outcome, same};
use vfs::{Base, Errno, OpenFlags, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG};

pub(crate) fn a_name_that_was_made_is_found_and_others_are_not(c: &Fixture) -> Outcome {
    same("a missing file", c.attr("/a").err(), Some(Errno::ENOENT))?;
    c.make_dirs(["/a", "/a/b"])?;
    c.write("/a/b/file", b"text")?;
    c.twice(|| {
        let kind = |path: &str| c.attr(path).map(|attr| attr.kind());
        same("type of /a/b", kind("/a/b"), Ok(S_IFDIR))?;
        same("type of /a/b/file", kind("/a/b/file"), Ok(S_IFREG))?;
        for (path, errno) in [
            ("/b", Errno::ENOENT),
            ("/a/file", Errno::ENOENT),
            ("/a/b/fil", Errno::ENOENT),
            ("/a/b/file2", Errno::ENOENT),
            ("/a/c/file", Errno::ENOENT),
            ("/a/b/file/below", Errno::ENOTDIR),
            ("/a/b/file/", Errno::ENOTDIR),
        ] {
            same(path, kind(path), Err(errno))?;
        }
        let numbers: Vec<_> = ["/", "/a", "/a/b", "/a/b/file"].iter().map(|path| c.attr(path).map(|a| a.ino)).collect();
        let mut distinct = numbers.clone();
        distinct.sort_by_key(|number| number.unwrap_or(0));
        distinct.dedup();
        same(format_args!("inode numbers that differ, of {numbers:?}"), distinct.len(), numbers.len())
    })
}

pub(crate) fn names_may_be_long_and_have_any_byte(c: &Fixture) -> Outcome {
    let mut names: Vec<Vec<u8>> =
        vec![vec![b'x'; 255], vec![b'x'; 254], b"...".to_vec(), b"..x".to_vec(), b"-".to_vec()];
    names.extend((31..=34).map(|len| vec![b'y'; len]));
    if c.features().all_bytes {
        // Each byte at the start and in the middle of a name.
        let bytes = (1..=255u8).filter(|byte| *byte != b'/' && *byte != b'.');
        names.extend(bytes.flat_map(|byte| [vec![byte, b'z'], vec![b'z', byte, b'z']]));
        names.extend([b" ".to_vec(), b"\n".to_vec(), "h\u{e9}".as_bytes().to_vec(), b"\xff\xfe".to_vec()]);
    }
    names.sort_unstable();
    names.dedup();
    c.mkdir("/d").or_fail("mkdir /d")?;
    let path = |name: &[u8]| [b"/d/", name].concat();
    for name in &names {
        c.write(path(name), name)?;
    }
    c.twice(|| {
        for name in &names {
            same(name.escape_ascii(), c.read(path(name)), Ok(name.clone()))?;
        }
        let mut listed: Vec<_> = c.list("/d").or_fail("listing /d")?.into_iter().map(|e| e.name.into_vec()).collect();
        listed.sort_unstable();
        same("names in /d", listed, names.clone())
    })?;
    same("a name of 256 bytes", c.mkdir(path(&[b'x'; 256])).err(), Some(Errno::ENAMETOOLONG))?;
    for name in &names {
        c.unlink(path(name)).or_fail(format_args!("unlink of {}", name.escape_ascii()))?;
    }
    c.twice(|| same("names in the empty /d", c.names("/d"), Ok(Vec::new())))
}

/// Checks that something was made; where the file system does not have such things, that it failed with one of the two errors
/// that file systems of Linux have for that.
fn made_or_unsupported(what: &str, has: bool, made: Result<(), Errno>) -> Outcome {
    let expected = if made == Err(Errno::EOPNOTSUPP) { Errno::EOPNOTSUPP } else { Errno::EPERM };
    same(what, made, if has { Ok(()) } else { Err(expected) })
}

pub(crate) fn each_type_of_file_is_made_or_refused(c: &Fixture) -> Outcome {
    let features = c.features();
    c.mkdir("/dir").or_fail("mkdir /dir")?;
    c.at().mknod(Base::CWD, b"/regular", S_IFREG | 0o640, 0).or_fail("mknod of a regular file")?;
    let fifo = c.at().mknod(Base::CWD, b"/fifo", S_IFIFO | 0o600, 0);
    made_or_unsupported("mknod of a FIFO", features.special_files, fifo)?;
    made_or_unsupported("symlink", features.symlinks, c.symlink("to", "/symlink"))?;
    c.twice(|| {
        let kept = if features.keeps_attributes { !0 } else { S_IFMT };
        let mode = |path: &str| c.attr(path).map(|attr| attr.mode & kept);
        same("mode of /dir", mode("/dir"), Ok((S_IFDIR | 0o755) & kept))?;
        same("mode of /regular", mode("/regular"), Ok((S_IFREG | 0o640) & kept))?;
        let or_none = |has: bool, mode: u32| if has { Ok(mode & kept) } else { Err(Errno::ENOENT) };
        same("mode of /fifo", mode("/fifo"), or_none(features.special_files, S_IFIFO | 0o600))?;
        same("mode of /symlink", mode("/symlink"), or_none(features.symlinks, S_IFLNK | 0o777))?;
        same("links of /regular", c.attr("/regular").map(|attr| attr.nlink), Ok(1))
    })
}

pub(crate) fn an_existing_name_is_not_made_again(c: &Fixture) -> Outcome {
    c.mkdir("/dir").or_fail("mkdir /dir")?;
    c.write("/file", b"text")?;
    c.twice(|| {
        for path in ["/dir", "/file", "/"] {
            let bytes = path.as_bytes();
            same(format_args!("mkdir {path}"), c.mkdir(path), Err(Errno::EEXIST))?;
            same(format_args!("mknod {path}"), c.at().mknod(Base::CWD, bytes, S_IFREG, 0), Err(Errno::EEXIST))?;
            same(format_args!("symlink {path}"), c.symlink("to", path), Err(Errno::EEXIST))?;
            same(format_args!("link {path}"), c.link("/file", path), Err(Errno::EEXIST))?;
            let exclusive = c.open(path, MAKE.union(OpenFlags::EXCL)).err();
            same(format_args!("O_EXCL {path}"), exclusive, Some(Errno::EEXIST))?;
        }
        same("a name in a missing directory", c.mkdir("/none/x"), Err(Errno::ENOENT))?;
        same("a name in a file", c.mkdir("/file/x"), Err(Errno::ENOTDIR))?;
        same("the file's contents", c.read("/file"), Ok(b"text".to_vec()))
    })
}

pub(crate) fn unlink_and_rmdir_check_the_type(c: &Fixture) -> Outcome {
    c.make_dirs(["/dir", "/dir/below"])?;
    c.write("/file", b"")?;
    c.twice(|| {
        same("unlink of a directory", c.unlink("/dir"), Err(Errno::EISDIR))?;
        same("rmdir of a file", c.rmdir("/file"), Err(Errno::ENOTDIR))?;
        same("rmdir of a directory with entries", c.rmdir("/dir"), Err(Errno::ENOTEMPTY))?;
        same("unlink of a missing file", c.unlink("/none"), Err(Errno::ENOENT))?;
        same("rmdir of a missing directory", c.rmdir("/none"), Err(Errno::ENOENT))?;
        same("names", c.names("/"), Ok(vec!["dir".into(), "file".into()]))
    })?;
    c.rmdir("/dir/below").or_fail("rmdir /dir/below")?;
    c.mark_stale();
    c.rmdir("/dir").or_fail("rmdir of a directory that became empty")?;
    c.unlink("/file").or_fail("unlink /file")?;
    c.twice(|| same("names", c.names("/"), Ok(Vec::new())))
}

pub(crate) fn a_removed_name_can_be_made_again(c: &Fixture) -> Outcome {
    for round in 0..20u8 {
        c.write("/x", &[round; 3])?;
        c.twice(|| same("contents", c.read("/x"), Ok(vec![round; 3])))?;
        c.unlink("/x").or_fail("unlink /x")?;
        c.twice(|| same("the removed file", c.read("/x"), Err(Errno::ENOENT)))?;
        c.mkdir("/x").or_fail("mkdir /x in place of the file")?;
        c.twice(|| same("names in it", c.names("/x"), Ok(Vec::new())))?;
        c.rmdir("/x").or_fail("rmdir /x")?;
    }
    Ok(())
}

pub(crate) fn a_symbolic_link_keeps_its_body(c: &Fixture) -> Outcome {
    if !c.features().symlinks {
        return made_or_unsupported("symlink", false, c.symlink("to", "/link"));
    }
    c.write("/file", b"text")?;
    let long = vec![b'l'; 4095];
    let bodies = [("/link", b"file".to_vec()), ("/dangling", b"none/at all".to_vec()), ("/long", long)];
    for (path, body) in &bodies {
        c.symlink(body, path).or_fail(format_args!("symlink {path}"))?;
    }
    c.twice(|| {
        for (path, body) in &bodies {
            let attr = c.attr(path).or_fail(path)?;
            same(format_args!("type and length of {path}"), (attr.kind(), attr.size), (S_IFLNK, body.len() as u64))?;
            same(format_args!("body of {path}"), c.at().read_link(Base::CWD, path.as_bytes()), Ok(body.clone()))?;
        }
        same("read through the link", c.read("/link"), Ok(b"text".to_vec()))?;
        same("read through a dangling link", c.read("/dangling"), Err(Errno::ENOENT))
    })?;
    c.unlink("/link").or_fail("unlink of a link")?;
    c.twice(|| same("the file", c.read("/file"), Ok(b"text".to_vec())))
}

pub(crate) fn a_hard_link_is_a_further_name(c: &Fixture) -> Outcome {
    c.write("/file", b"text")?;
    c.mkdir("/dir").or_fail("mkdir /dir")?;
    if !c.features().hard_links {
        made_or_unsupported("link", false, c.link("/file", "/dir/other"))?;
        return c.twice(|| same("links of the file", c.attr("/file").map(|attr| attr.nlink), Ok(1)));
    }
    c.link("/file", "/dir/other").or_fail("link")?;
    same("link to a directory", c.link("/dir", "/dir2"), Err(Errno::EPERM))?;
    c.write("/dir/other", b"TE")?;
    c.twice(|| {
        let (file, other) = (c.attr("/file").or_fail("/file")?, c.attr("/dir/other").or_fail("/dir/other")?);
        same("both names' attributes", (other.ino, other.size), (file.ino, file.size))?;
        same("links", (file.nlink, other.nlink), (2, 2))?;
        same("contents by the first name", c.read("/file"), Ok(b"TExt".to_vec()))
    })?;
    c.unlink("/file").or_fail("unlink of the first name")?;
    c.twice(|| {
        same("links", c.attr("/dir/other").map(|attr| attr.nlink), Ok(1))?;
        same("contents by the other name", c.read("/dir/other"), Ok(b"TExt".to_vec()))
    })
}
