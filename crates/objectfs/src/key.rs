//! Which names and keys can be files.

use vfs::NAME_MAX;

/// Returns whether a file can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// Returns whether the store can have this key: OpenDAL removes white space at both ends.
pub(crate) fn is_key(key: &str) -> bool {
    key.trim() == key
}

/// Returns a name of a file, as text.
pub(crate) fn text(name: &[u8]) -> Option<&str> {
    core::str::from_utf8(name).ok().filter(|name| is_name(name))
}
