//! Renames: `renameat2(2)`.

use crate::fixture::Fixture;
use crate::outcome::{OrFail, Outcome, needs, same};
use vfs::{Errno, RenameFlags};

/// Returns whether the file system has renames. If not, checks that it refuses them.
fn has_rename(c: &Fixture) -> Result<bool, crate::outcome::Failure> {
    if !c.features().rename {
        c.write("/file", b"")?;
        same("rename", c.rename("/file", "/other"), Err(Errno::EPERM))?;
        same("names", c.names("/"), Ok(vec!["file".into()]))?;
    }
    Ok(c.features().rename)
}

pub(crate) fn a_file_moves_with_its_contents(c: &Fixture) -> Outcome {
    needs!(has_rename(c)?);
    c.make_dirs(["/a", "/b"])?;
    c.write("/a/file", b"text")?;
    let ino = c.attr("/a/file").or_fail("/a/file")?.ino;
    let path = ["/a/file", "/a/other", "/b/third", "/fourth", "/a/file"];
    for step in path.windows(2) {
        c.rename(step[0], step[1]).or_fail(format_args!("rename {} to {}", step[0], step[1]))?;
        c.twice(|| {
            same(format_args!("the old name {}", step[0]), c.attr(step[0]).err(), Some(Errno::ENOENT))?;
            same(format_args!("number of {}", step[1]), c.attr(step[1]).map(|attr| attr.ino), Ok(ino))?;
            same(format_args!("contents of {}", step[1]), c.read(step[1]), Ok(b"text".to_vec()))
        })?;
    }
    same("rename of a missing file", c.rename("/none", "/x"), Err(Errno::ENOENT))?;
    c.rename("/a/file", "/a/file").or_fail("rename to itself")?;
    c.twice(|| same("names", c.names("/a"), Ok(vec!["file".into()])))
}

pub(crate) fn a_rename_replaces_files_and_empty_directories(c: &Fixture) -> Outcome {
    needs!(has_rename(c)?);
    c.make_dirs(["/empty", "/full", "/full/below", "/moved"])?;
    c.write("/moved/mark", b"")?;
    c.write("/file", b"new")?;
    c.write("/target", b"old and longer")?;
    c.mark_stale();
    same("a directory over one with entries", c.rename("/moved", "/full"), Err(Errno::ENOTEMPTY))?;
    same("a directory over a file", c.rename("/moved", "/file"), Err(Errno::ENOTDIR))?;
    same("a file over a directory", c.rename("/file", "/empty"), Err(Errno::EISDIR))?;
    same("a directory into itself", c.rename("/full", "/full/below/x"), Err(Errno::EINVAL))?;
    c.mark_stale();
    c.rename("/file", "/target").or_fail("a file over a file")?;
    c.rename("/moved", "/empty").or_fail("a directory over an empty one")?;
    c.twice(|| {
        same("names", c.names("/"), Ok(vec!["empty".into(), "full".into(), "target".into()]))?;
        same("contents of the replaced file", c.read("/target"), Ok(b"new".to_vec()))?;
        same("names in the replaced directory", c.names("/empty"), Ok(vec!["mark".into()]))
    })
}

pub(crate) fn noreplace_replaces_nothing(c: &Fixture) -> Outcome {
    needs!(has_rename(c)?);
    c.write("/a", b"a")?;
    c.write("/b", b"b")?;
    let moved = |old, new| c.rename_with(old, new, RenameFlags::NOREPLACE);
    same("NOREPLACE over a file", moved("/a", "/b"), Err(Errno::EEXIST))?;
    moved("/a", "/c").or_fail("NOREPLACE to a free name")?;
    c.twice(|| {
        let contents = ["/a", "/b", "/c"].map(|path| c.read(path));
        same("contents", contents, [Err(Errno::ENOENT), Ok(b"b".to_vec()), Ok(b"a".to_vec())])
    })
}

pub(crate) fn exchanged_names_change_places(c: &Fixture) -> Outcome {
    needs!(has_rename(c)?);
    c.make_dirs(["/dir", "/dir/below"])?;
    c.write("/dir/below/mark", b"mark")?;
    c.write("/file", b"file")?;
    let exchange = |a, b| c.rename_with(a, b, RenameFlags::EXCHANGE);
    if !c.features().exchange {
        same("EXCHANGE", exchange("/file", "/dir"), Err(Errno::EINVAL))?;
        return c.twice(|| same("the file", c.read("/file"), Ok(b"file".to_vec())));
    }
    same("EXCHANGE with a missing file", exchange("/file", "/none"), Err(Errno::ENOENT))?;
    exchange("/file", "/dir/below").or_fail("EXCHANGE of a file and a directory")?;
    c.twice(|| {
        same("the file", c.read("/dir/below"), Ok(b"file".to_vec()))?;
        same("below the directory", c.read("/file/mark"), Ok(b"mark".to_vec()))?;
        let links = ["/", "/dir", "/file"].map(|path| c.attr(path).map(|attr| attr.nlink));
        same("links of /, /dir and the directory", links, c.links([4, 2, 2]))
    })
}

pub(crate) fn a_directory_moves_with_its_contents(c: &Fixture) -> Outcome {
    needs!(has_rename(c)?);
    c.make_dirs(["/a", "/a/b", "/a/b/c", "/x"])?;
    c.write("/a/b/c/file", b"text")?;
    c.rename("/a/b", "/x/moved").or_fail("rename of a directory")?;
    c.twice(|| {
        same("the file by its new path", c.read("/x/moved/c/file"), Ok(b"text".to_vec()))?;
        same("the file by its old path", c.read("/a/b/c/file"), Err(Errno::ENOENT))?;
        let links = ["/a", "/x", "/x/moved"].map(|path| c.attr(path).map(|attr| attr.nlink));
        same("links of /a, /x and the moved directory", links, c.links([2, 3, 3]))
    })?;
    c.write("/x/moved/c/file", b"TE")?;
    c.write("/x/moved/c/new", b"new")?;
    c.rename("/x", "/a/x").or_fail("rename of the directory above it")?;
    c.twice(|| {
        same("the file", c.read("/a/x/moved/c/file"), Ok(b"TExt".to_vec()))?;
        same("the new file", c.read("/a/x/moved/c/new"), Ok(b"new".to_vec()))
    })
}
