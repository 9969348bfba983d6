//! A path, split before its last component.

use crate::base::name::{ShortName, last_name, short};

/// The kind of the last component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastKind {
    /// A name.
    Normal,
    /// `.`
    Dot,
    /// `..`
    DotDot,
    /// Only slashes: the path is the root.
    Root,
}

/// The last component of a path, and the path before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Last<'p> {
    /// Never empty: `.` if the path is one component, `/` if it is one component below the root.
    pub(crate) parent: &'p [u8],
    pub(crate) name: &'p [u8],
    pub(crate) kind: LastKind,
    /// The name again, if it is short.
    pub(crate) short: Option<ShortName>,
    /// Slashes follow the name.
    pub(crate) slash: bool,
}

impl<'p> Last<'p> {
    /// Splits `path` before its last component. Returns `None` if the path is empty.
    #[inline(always)]
    pub(crate) fn of(path: &'p [u8]) -> Option<Self> {
        match Self::of_plain(path) {
            Some(last) => Some(last),
            None => (!path.is_empty()).then(|| Self::of_any(path)),
        }
    }

    /// Splits a path of the common case, by its last 16 bytes: a name of fewer than 16 bytes after one slash,
    /// whose first byte is not a dot.
    #[inline(always)]
    fn of_plain(path: &'p [u8]) -> Option<Self> {
        let (slash, short) = last_name(path)?;
        let (above, name) = (path.get(..slash)?, path.get(slash + 1..)?);
        let parent = if above.is_empty() { b"/" } else { above };
        let plain = above.last() != Some(&b'/') && short.len != 0 && short.words[0] as u8 != b'.';
        plain.then_some(Self { parent, name, kind: LastKind::Normal, short: Some(short), slash: false })
    }

    #[cold]
    #[inline(never)]
    fn of_any(path: &'p [u8]) -> Self {
        let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
        let start = path[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let parent_end = path[..start].iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
        let parent = match (parent_end, start) {
            (0, 0) if end == 0 => b"/".as_slice(),
            (0, 0) => b".",
            (0, _) => b"/",
            (parent_end, _) => &path[..parent_end],
        };
        let name = &path[start..end];
        let kind = match name {
            b"" => LastKind::Root,
            b"." => LastKind::Dot,
            b".." => LastKind::DotDot,
            _ => LastKind::Normal,
        };
        Self { parent, name, kind, short: short(name), slash: end < path.len() }
    }

    /// Returns whether the name has a NUL byte.
    #[inline(always)]
    pub(crate) fn has_nul(&self) -> bool {
        self.short.map_or_else(|| self.name.contains(&0), ShortName::has_nul)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_cut_before_its_last_component() {
        let check = |path: &str, parent: &str, name: &str, kind, slash| {
            let (parent, name) = (parent.as_bytes(), name.as_bytes());
            let want = Last { parent, name, kind, short: short(name), slash };
            assert_eq!(Last::of(path.as_bytes()), Some(want), "{path}");
        };
        check("a", ".", "a", LastKind::Normal, false);
        check("/a", "/", "a", LastKind::Normal, false);
        check("a/b", "a", "b", LastKind::Normal, false);
        check("/a//b//", "/a", "b", LastKind::Normal, true);
        check("../x", "..", "x", LastKind::Normal, false);
        check("///a", "/", "a", LastKind::Normal, false);
        check("/a/long/directory/name", "/a/long/directory", "name", LastKind::Normal, false);
        check("/a/long/directory/", "/a/long", "directory", LastKind::Normal, true);
        check("/a/long/directory//x", "/a/long/directory", "x", LastKind::Normal, false);
        check("/a/long/directory/..", "/a/long/directory", "..", LastKind::DotDot, false);
        check("a-name-of-more-than-sixteen", ".", "a-name-of-more-than-sixteen", LastKind::Normal, false);
        check("/fifteen-letters", "/", "fifteen-letters", LastKind::Normal, false);
        check(".", ".", ".", LastKind::Dot, false);
        check("a/..", "a", "..", LastKind::DotDot, false);
        check("a/./", "a", ".", LastKind::Dot, true);
        check("/", "/", "", LastKind::Root, true);
        check("//", "/", "", LastKind::Root, true);
    }
}
