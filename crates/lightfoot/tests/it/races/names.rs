//! Names and answers that the races have in common.

use crate::tree_kind::TreeKind;
use lightfoot::{Context, Vfs};
use std::io;

/// The results of a lookup between which the tests distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Ino(u64),
    Error(i32),
}

/// `ENOENT`.
pub(crate) const ABSENT: Seen = Seen::Error(2);

/// A tree and a context in it.
pub(crate) fn tree(kind: TreeKind, dirs: &[&str]) -> (Vfs, Context) {
    let vfs = crate::races::new_tree(kind);
    let context = vfs.context();
    dirs.iter().for_each(|dir| context.create_dir_all(dir).unwrap());
    (vfs, context)
}

/// A name of `len` bytes that no other `number` has.
pub(crate) fn name(number: u64, len: usize) -> String {
    let digits = number.to_string();
    format!("{digits}{}", "n".repeat(len.saturating_sub(digits.len())))
}

/// The inode that the path leads to.
pub(crate) fn look(context: &Context, path: &str) -> Seen {
    seen(context.metadata(path).map(|metadata| metadata.ino()))
}

/// As [`look`], without following a symbolic link at the end.
pub(crate) fn look_at_link(context: &Context, path: &str) -> Seen {
    seen(context.symlink_metadata(path).map(|metadata| metadata.ino()))
}

pub(crate) fn seen(ino: io::Result<u64>) -> Seen {
    ino.map_or_else(|error| Seen::Error(error.raw_os_error().unwrap_or(0)), Seen::Ino)
}

/// Makes an empty file and gives its inode number.
pub(crate) fn make(context: &Context, path: &str) -> u64 {
    lightfoot::File::create_new(context, path).unwrap().metadata().unwrap().ino()
}
