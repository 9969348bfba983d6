//! The attributes that files have after a change.

use crate::base::attr::Attr;

/// Attributes after a change, which the file system has without another call: the reply of a server brings them. The VFS keeps
/// them if the file system has [`Attributes::FileSystem`](crate::Attributes::FileSystem) with `with_changes`, and otherwise computes
/// its own. Each of them is of a moment at which the change was done, and before the method returned.
///
/// ```
/// use lightfoot_vfs::{After, Attr};
///
/// let (file, dir) = (Attr { nlink: 2, ..Attr::default() }, Attr { mtime: 7, ..Attr::default() });
/// let after = After::NONE.file(file).dir(dir);
/// assert_ne!(after, After::NONE);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct After(Option<Box<Returned>>);

/// The attributes by the part that a file has in the change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Returned {
    pub(crate) file: Option<Attr>,
    pub(crate) dir: Option<Attr>,
    pub(crate) new_dir: Option<Attr>,
    pub(crate) target: Option<Attr>,
}

impl After {
    /// No attributes.
    pub const NONE: Self = Self(None);

    /// With the attributes of the file that the change is about.
    #[must_use]
    pub fn file(self, attr: Attr) -> Self {
        self.with(|returned| returned.file = Some(attr))
    }

    /// With the attributes of the directory of the name; of a rename, of the old name.
    #[must_use]
    pub fn dir(self, attr: Attr) -> Self {
        self.with(|returned| returned.dir = Some(attr))
    }

    /// With the attributes of the directory of a rename's new name. Ignored if the old name is in
    /// the same directory.
    #[must_use]
    pub fn new_dir(self, attr: Attr) -> Self {
        self.with(|returned| returned.new_dir = Some(attr))
    }

    /// With the attributes of the file that a rename replaces, or exchanges.
    #[must_use]
    pub fn target(self, attr: Attr) -> Self {
        self.with(|returned| returned.target = Some(attr))
    }

    fn with(mut self, set: impl FnOnce(&mut Returned)) -> Self {
        set(self.0.get_or_insert_default());
        self
    }

    pub(crate) fn returned(&self) -> Option<&Returned> {
        self.0.as_deref()
    }
}
