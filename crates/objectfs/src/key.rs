//! Which names and keys can be files.

use crate::meta::Kind;
use opendal::Operator;
use vfs::NAME_MAX;

/// The end of the names of objects that stand for symbolic links, as rclone writes them.
pub(crate) const LINK: &str = ".rclonelink";

/// Returns whether a file can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// Returns a name of a file, as text.
pub(crate) fn text(name: &[u8]) -> Option<&str> {
    core::str::from_utf8(name).ok().filter(|name| is_name(name))
}

/// The key of an object; with a slash at its end, the prefix of a directory's objects, which is also
/// the key of its marker. The root has the empty prefix.
///
/// OpenDAL changes some keys before it passes them on: it trims white space at both ends, removes
/// slashes at the beginning, and joins slashes that follow each other. A request for such a key would
/// act on another object. So no request takes a string: [`Key::new`] refuses these keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Key(String);

impl Key {
    /// Returns the key, if OpenDAL passes it on unchanged and all its components can be names of files.
    pub(crate) fn new(key: String) -> Option<Self> {
        let names = key.strip_suffix('/').unwrap_or(&key);
        let is_path = key.is_empty() || names.split('/').all(is_name);
        (is_path && key.trim() == key).then_some(Self(key))
    }

    /// Returns the key of the object `name` in this directory.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::new(format!("{}{name}", self.0))
    }

    /// Returns the key of the object for the symbolic link `name` in this directory.
    pub(crate) fn link(&self, name: &str) -> Option<Self> {
        self.object(&format!("{name}{LINK}"))
    }

    /// Returns the key of a file of this kind with the name `name` in this directory.
    pub(crate) fn of(&self, name: &str, kind: Kind) -> Option<Self> {
        match kind {
            Kind::File => self.object(name),
            Kind::Dir => self.dir(name),
            Kind::Link => self.link(name),
        }
    }

    /// Returns the prefix of the directory `name` in this directory.
    pub(crate) fn dir(&self, name: &str) -> Option<Self> {
        Self::new(format!("{}{name}/", self.0))
    }

    /// Returns whether it is a directory's prefix.
    pub(crate) fn is_dir(&self) -> bool {
        self.0.is_empty() || self.0.ends_with('/')
    }

    /// Returns the rest of the key behind the prefix of a directory.
    pub(crate) fn below(&self, dir: &Self) -> Option<&str> {
        self.0.strip_prefix(&dir.0)
    }

    /// Returns the key with the prefix of the operator's root, which is `/` or `/PREFIX/`.
    pub(crate) fn in_bucket(&self, operator: &Operator) -> String {
        format!("{}{}", operator.info().root().trim_start_matches('/'), self.0)
    }

    /// Returns the key as OpenDAL takes it.
    pub(crate) fn path(&self) -> &str {
        if self.0.is_empty() { "/" } else { &self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OpenDAL's `normalize_path`, as its documentation describes it.
    fn as_sent(key: &str) -> String {
        let trimmed = key.trim().trim_start_matches('/');
        let parts: Vec<&str> = trimmed.split('/').filter(|part| !part.is_empty()).collect();
        parts.join("/") + if trimmed.ends_with('/') && !parts.is_empty() { "/" } else { "" }
    }

    #[test]
    fn a_key_that_opendal_would_change_is_refused() {
        let parts = ["", " ", "a", " a", "a ", "\t", "\u{3000}b", "b\u{a0}", "a b", "/", "..", "\0"];
        let mut accepted = 0;
        for first in parts {
            for second in parts {
                for text in [format!("{first}{second}"), format!("{first}/{second}"), format!("{first}/{second}/")] {
                    if let Some(key) = Key::new(text.clone()) {
                        assert_eq!((key.0.as_str(), as_sent(&text)), (&*text, text.clone()));
                        accepted += 1;
                    }
                }
            }
        }
        assert!(accepted > 50, "{accepted}");
        for (key, is_key) in [("", true), ("a b", true), ("a /b", true), ("d /", true), ("a ", false), (" a/b", false)]
        {
            assert_eq!(Key::new(key.into()).is_some(), is_key, "{key:?}");
        }
    }

    #[test]
    fn a_directory_has_keys_below_it() {
        let dir = Key::default().dir("d ").unwrap();
        assert_eq!((dir.path(), dir.is_dir()), ("d /", true));
        let file = dir.object("f").unwrap();
        assert_eq!((file.path(), file.is_dir(), file.below(&dir)), ("d /f", false, Some("f")));
        assert_eq!((Key::default().path(), Key::default().is_dir()), ("/", true));
        assert_eq!(Key::default().object("f "), None);
    }
}
