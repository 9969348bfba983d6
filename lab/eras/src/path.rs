//! Paths cut into components: the one splitter of all eras but `lightfoot`, which has its own.
//!
//! `.` and repeated slashes are removed here; `..` is a component, since the tree decides where it
//! leads.

use crate::era::{Error, Result};

/// Bytes that a path may have: `PATH_MAX` without its terminator.
const PATH_MAX: usize = 4095;

/// One step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component<'p> {
    /// `..`
    Parent,
    /// A name; not checked for its length.
    Name(&'p [u8]),
}

/// The course of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route<'p> {
    /// From the root, not from the working directory.
    pub(crate) is_absolute: bool,
    /// The walk must end at a directory.
    pub(crate) to_directory: bool,
    /// The walk ends at the directory of a name that is about to be created, removed or moved
    /// (`LOOKUP_PARENT`).
    pub(crate) is_parent: bool,
    pub(crate) components: Components<'p>,
}

/// The kind of the last component of a path that is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Last<'p> {
    /// `None`: `.`, `..`, or the root.
    pub(crate) name: Option<&'p [u8]>,
    /// A slash follows.
    pub(crate) is_directory: bool,
}

/// The components left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Components<'p>(&'p [u8]);

impl<'p> Route<'p> {
    /// Returns the route along all of `path`. [`Error::Invalid`] if it is empty.
    pub(crate) fn whole(path: &'p [u8]) -> Result<Self> {
        let first = *path.first().ok_or(Error::Invalid)?;
        if path.len() > PATH_MAX {
            return Err(Error::NameTooLong);
        }
        let to_directory = path.ends_with(b"/") || path.ends_with(b"/.") || path == b".";
        Ok(Self { is_absolute: first == b'/', to_directory, is_parent: false, components: Components(path) })
    }

    /// Returns the route to the directory that the last component of `path` is in, and that
    /// component.
    pub(crate) fn to_parent(path: &'p [u8]) -> Result<(Self, Last<'p>)> {
        let whole = Self::whole(path)?;
        let end = path.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
        let start = path[..end].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let last = &path[start..end];
        let name = if matches!(last, b"" | b"." | b"..") { None } else { Some(last) };
        let route = Self { to_directory: true, is_parent: true, components: Components(&path[..start]), ..whole };
        Ok((route, Last { name, is_directory: end < path.len() }))
    }
}

impl<'p> Iterator for Components<'p> {
    type Item = Component<'p>;

    fn next(&mut self) -> Option<Component<'p>> {
        loop {
            let start = self.0.iter().position(|&byte| byte != b'/')?;
            let rest = &self.0[start..];
            let end = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
            let (name, rest) = rest.split_at(end);
            self.0 = rest;
            match name {
                b"." => {}
                b".." => return Some(Component::Parent),
                name => return Some(Component::Name(name)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(component: Component<'_>) -> String {
        match component {
            Component::Parent => "^".into(),
            Component::Name(name) => String::from_utf8_lossy(name).into_owned(),
        }
    }

    #[test]
    fn a_path_is_cut_at_its_slashes() {
        let check = |path: &str, is_absolute: bool, to_directory: bool, components: &str| {
            let route = Route::whole(path.as_bytes()).unwrap();
            let names: Vec<String> = route.components.map(text).collect();
            assert_eq!(
                (route.is_absolute, route.to_directory, names.join(" ").as_str()),
                (is_absolute, to_directory, components),
                "{path}"
            );
        };
        check("a", false, false, "a");
        check("/", true, true, "");
        check("/a/b", true, false, "a b");
        check("//a///b//", true, true, "a b");
        check("./a/./b/.", false, true, "a b");
        check(".", false, true, "");
        check("../../a/..", false, false, "^ ^ a ^");
        check("a...", false, false, "a...");
        assert_eq!(Route::whole(b""), Err(Error::Invalid));
        assert_eq!(Route::whole(&[b'a'; 4096]), Err(Error::NameTooLong));
    }

    #[test]
    fn the_last_component_is_cut_off() {
        let check = |path: &str, components: &str, name: Option<&str>, is_directory: bool| {
            let (route, last) = Route::to_parent(path.as_bytes()).unwrap();
            assert!(route.is_parent && !Route::whole(path.as_bytes()).unwrap().is_parent);
            let names: Vec<String> = route.components.map(text).collect();
            assert_eq!(
                (names.join(" ").as_str(), last.name, last.is_directory, route.to_directory),
                (components, name.map(str::as_bytes), is_directory, true),
                "{path}"
            );
        };
        check("a", "", Some("a"), false);
        check("/a", "", Some("a"), false);
        check("/a//b", "a", Some("b"), false);
        check("a/b/", "a", Some("b"), true);
        check("a/..", "a", None, false);
        check("a/.", "a", None, false);
        check("///", "", None, true);
    }
}
