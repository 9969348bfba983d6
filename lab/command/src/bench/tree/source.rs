//! Reads a real directory tree. Symbolic links are not followed (but for the one that the caller named), other file
//! systems are not entered, and names are sorted, so that the same tree always gives the same list.
//!
//! # Limitations
//! Each hard link becomes another file.

use super::{Entry, Kind, Omitted, Tree};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most entries that are read.
const ENTRIES_AT_MOST: usize = 200_000;

/// The longest path from the root, in bytes: with room for the names that the cases add.
const PATH_AT_MOST: usize = 4000;

/// The deepest entry: removing the copy takes a file descriptor a level.
const DEPTH_AT_MOST: usize = 256;

pub(crate) fn read(dir: &Path, interrupt: &Interrupt) -> Result<Tree, Error> {
    read_at_most(dir, interrupt, ENTRIES_AT_MOST)
}

fn read_at_most(dir: &Path, interrupt: &Interrupt, entries_at_most: usize) -> Result<Tree, Error> {
    let root = root_of(dir)?;
    let progress = Progress::counting("reading");
    let mut tree = Tree {
        name: dir.to_string_lossy().into_owned(),
        origin: Some(dir.into()),
        root_mode: root.mode() & 0o7777,
        entries: Vec::new(),
        omitted: Omitted::default(),
    };
    let mut to_list: Vec<Box<[u8]>> = vec![Box::default()];
    while let Some(path) = to_list.pop() {
        interrupt.check()?;
        let Ok(names) = names(&below(dir, &path)) else {
            tree.omitted.unreadable += 1;
            continue;
        };
        let first_below = to_list.len();
        for name in names {
            if tree.entries.len() == entries_at_most {
                tree.omitted.is_cut = true;
                return Ok(tree);
            }
            let path = [&path, &b"/"[..], &name].concat().into_boxed_slice();
            to_list.extend(add(&mut tree, dir, path, root.dev()));
            progress.step(1);
        }
        to_list[first_below..].reverse();
    }
    Ok(tree)
}

fn root_of(dir: &Path) -> Result<Metadata, Error> {
    let root = fs::metadata(dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::SourceMissing(dir.into()),
        io::ErrorKind::NotADirectory => Error::SourceNotDirectory(dir.into()),
        _ => unreadable(dir, error),
    })?;
    if !root.is_dir() {
        return Err(Error::SourceNotDirectory(dir.into()));
    }
    fs::read_dir(dir).map_err(|error| unreadable(dir, error))?;
    Ok(root)
}

fn unreadable(dir: &Path, error: io::Error) -> Error {
    Error::File { path: dir.into(), what: "read", reason: error.into() }
}

/// Adds the entry at `path`, unless the entry was removed meanwhile or is too deep. Returns the
/// path if the entry is a directory of the same file system, which must be listed.
fn add(tree: &mut Tree, dir: &Path, path: Box<[u8]>, device: u64) -> Option<Box<[u8]>> {
    if path.len() > PATH_AT_MOST || super::depth(&path) > DEPTH_AT_MOST {
        tree.omitted.too_deep += 1;
        return None;
    }
    let place = below(dir, &path);
    let metadata = fs::symlink_metadata(&place).ok()?;
    let file_type = metadata.file_type();
    let kind = if file_type.is_dir() {
        tree.omitted.mount_points += usize::from(metadata.dev() != device);
        Kind::Directory
    } else if file_type.is_file() {
        Kind::File { len: metadata.len() }
    } else if file_type.is_symlink() {
        Kind::Symlink(fs::read_link(&place).ok()?.into_os_string().into_vec().into())
    } else {
        Kind::Special { file_type: metadata.mode() & 0o170_000, rdev: metadata.rdev() }
    };
    let to_list = (kind == Kind::Directory && metadata.dev() == device).then(|| path.clone());
    tree.entries.push(Entry { path, mode: metadata.mode() & 0o7777, kind });
    to_list
}

fn names(dir: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut names =
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().into_vec())).collect::<io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

/// Returns the place of the entry at `path`, which begins with a slash or is empty, in the tree at
/// `dir`.
pub(crate) fn below(dir: &Path, path: &[u8]) -> PathBuf {
    dir.join(OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scratch::Scratch;

    fn paths(tree: &Tree) -> Vec<String> {
        tree.entries.iter().map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect()
    }

    #[test]
    fn parents_come_before_children_and_names_are_sorted() {
        let scratch = Scratch::make(None).expect("there is a place for temporary files");
        for dir in ["b/y", "a/x"] {
            fs::create_dir_all(scratch.path().join(dir)).expect("a directory");
        }
        fs::write(scratch.path().join("b/f"), "abc").expect("a file");
        let tree = read(scratch.path(), &Interrupt::never()).expect("a tree");
        assert_eq!(paths(&tree), ["/a", "/b", "/a/x", "/b/f", "/b/y"]);
        assert_eq!(tree.entries[3].kind, Kind::File { len: 3 });
        assert_eq!(tree.omitted, Omitted::default());
    }

    #[test]
    fn a_great_tree_is_cut_and_says_so() {
        let scratch = Scratch::make(None).expect("there is a place for temporary files");
        for name in ["a", "b", "c"] {
            fs::write(scratch.path().join(name), "").expect("a file");
        }
        let tree = read_at_most(scratch.path(), &Interrupt::never(), 2).expect("a tree");
        assert_eq!(paths(&tree), ["/a", "/b"]);
        assert!(tree.omitted.is_cut);
    }
}
