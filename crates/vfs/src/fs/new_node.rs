//! A file that is about to be made.

use crate::base::access::acl::{Acl, AclKind, Acls};
use crate::base::attr::Attr;
use crate::base::errno::Errno;
use crate::fs::after::After;
use core::any::Any;
use core::cell::Cell;
use std::borrow::Cow;

/// A file that [`FileSystem::create`](crate::FileSystem::create) makes, with all its initial
/// values. If the file system stores the ACLs in the same step as the file, no crash, snapshot or
/// other user shows the file without its ACLs.
///
/// ```
/// use lightfoot_vfs::{Attr, NewNode, S_IFREG};
///
/// let new = NewNode::new(Attr { mode: S_IFREG | 0o644, nlink: 1, ..Attr::default() });
/// assert!(new.attr.ino == 0 && new.xattrs().is_empty());
/// ```
#[derive(Debug)]
pub struct NewNode<'a> {
    /// Type, mode, owner, device number, times, and the length of a symbolic link's body. The file
    /// system fills in inode number and storage, and changes the values that it keeps differently.
    pub attr: Attr,
    /// A symbolic link's body.
    pub link_body: Option<&'a [u8]>,
    /// Attributes of the directory after the call. The file system fills them in, as in [`After`].
    pub after: After,
    /// `None` for most files.
    pub(crate) beside: Option<&'a InitExtra<'a>>,
}

/// Labels of security modules: names and values of extended attributes.
pub type Labels<'a> = &'a [(&'a [u8], &'a [u8])];

/// Initial values that few files have.
pub(crate) struct InitExtra<'a> {
    pub(crate) acls: Acls,
    pub(crate) labels: Labels<'a>,
    is_stored: Cell<bool>,
    /// The file system's data of the inode.
    data: Cell<Option<Data>>,
}

/// A file system's data of an inode.
pub(crate) type Data = Box<dyn Any + Send + Sync>;

impl core::fmt::Debug for InitExtra<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self { acls, labels, is_stored, .. } = self;
        let mut shown = f.debug_struct("InitExtra");
        shown.field("acls", acls).field("labels", labels).field("is_stored", is_stored).finish_non_exhaustive()
    }
}

impl<'a> NewNode<'a> {
    /// Returns a file with these attributes and nothing else.
    #[must_use]
    #[inline(always)]
    pub fn new(attr: Attr) -> Self {
        Self { attr, link_body: None, after: After::NONE, beside: None }
    }

    /// Returns names and values of the node's first extended attributes: labels of security
    /// modules, and the ACLs from the default ACL of its directory, unless the file system keeps
    /// modes by itself ([`Modes::FileSystem`](crate::Modes::FileSystem)).
    #[must_use]
    pub fn xattrs(&self) -> Vec<(&'a [u8], Cow<'a, [u8]>)> {
        self.beside.map(InitExtra::xattrs).unwrap_or_default()
    }

    /// Returns the access ACL among [`xattrs`](Self::xattrs), if the ACL has more than the mode.
    #[must_use]
    pub fn access_acl(&self) -> Option<&'a Acl> {
        self.beside?.acls.access.as_ref()
    }

    /// Returns the default ACL of a directory among [`xattrs`](Self::xattrs).
    #[must_use]
    pub fn default_acl(&self) -> Option<&'a Acl> {
        self.beside?.acls.default.as_ref()
    }

    /// Returns the labels of security modules among [`xattrs`](Self::xattrs).
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        self.beside.map(|beside| beside.labels).unwrap_or_default()
    }

    /// Returns whether there are [`xattrs`](Self::xattrs) to store.
    #[must_use]
    #[inline(always)]
    pub fn has_xattrs(&self) -> bool {
        self.beside.is_some()
    }

    /// Notes that the file system has stored all [`xattrs`](Self::xattrs) with the file. Without
    /// this call the VFS sets each attribute by
    /// [`FileSystem::set_xattr`](crate::FileSystem::set_xattr) after the creation, and removes the
    /// file again if a label cannot be stored.
    pub fn xattrs_stored(&mut self) {
        if let Some(beside) = self.beside {
            beside.is_stored.set(true);
        }
    }

    /// As [`xattrs_stored`](Self::xattrs_stored), if the attributes lie in the inode's own data
    /// ([`Inode::data`](crate::Inode::data)). `data` becomes the inode's data when the inode is
    /// made; it is dropped if there are no attributes to store.
    pub fn xattrs_stored_in<T: Send + Sync + 'static>(&mut self, data: T) {
        if let Some(beside) = self.beside {
            beside.data.set(Some(Box::new(data)));
            beside.is_stored.set(true);
        }
    }
}

/// The name and the value of a label.
type OwnedLabel = (Box<[u8]>, Box<[u8]>);

/// A copy of a [`NewNode`], for another thread.
pub(crate) struct OwnedNewNode {
    attr: Attr,
    link_body: Option<Box<[u8]>>,
    /// ACLs and labels, if there are any.
    beside: Option<(Acls, Vec<OwnedLabel>)>,
}

/// The file system's changes to an [`OwnedNewNode`].
pub(crate) struct MadeNode {
    pub(crate) node: u64,
    pub(crate) attr: Attr,
    after: After,
    is_stored: bool,
    data: Option<Data>,
}

impl NewNode<'_> {
    pub(crate) fn keep(&self) -> OwnedNewNode {
        let labels = self.labels().iter().map(|&(name, value)| (Box::from(name), Box::from(value)));
        let beside = self.beside.map(|beside| (beside.acls.clone(), labels.collect()));
        OwnedNewNode { attr: self.attr, link_body: self.link_body.map(Box::from), beside }
    }

    /// Notes the file system's changes to the copy. Returns the node.
    pub(crate) fn learn(&mut self, made: MadeNode) -> u64 {
        (self.attr, self.after) = (made.attr, made.after);
        if let Some(beside) = self.beside {
            beside.is_stored.set(made.is_stored);
            beside.data.set(made.data);
        }
        made.node
    }
}

impl OwnedNewNode {
    /// Calls `create` with the file.
    pub(crate) fn lend(&self, create: impl FnOnce(&mut NewNode<'_>) -> Result<u64, Errno>) -> Result<MadeNode, Errno> {
        let labels = self.beside.iter().flat_map(|(_, labels)| labels);
        let labels: Vec<_> = labels.map(|(name, value)| (&**name, &**value)).collect();
        let beside =
            self.beside.as_ref().map(|(acls, _)| InitExtra::labelled(Some(InitExtra::new(acls.clone())), &labels));
        let beside = beside.as_deref();
        let mut new = NewNode { attr: self.attr, link_body: self.link_body.as_deref(), after: After::NONE, beside };
        let node = create(&mut new)?;
        let (is_stored, data) = (beside.is_some_and(InitExtra::is_stored), beside.and_then(InitExtra::take_data));
        Ok(MadeNode { node, attr: new.attr, after: new.after, is_stored, data })
    }
}

impl<'a> InitExtra<'a> {
    #[cold]
    pub(crate) fn new(acls: Acls) -> Box<Self> {
        Box::new(Self { acls, labels: &[], is_stored: Cell::new(false), data: Cell::new(None) })
    }

    /// `beside` with labels, if there are any.
    #[inline(always)]
    pub(crate) fn with_labels(beside: Option<Box<Self>>, labels: Labels<'a>) -> Option<Box<Self>> {
        if labels.is_empty() { beside } else { Some(Self::labelled(beside, labels)) }
    }

    #[cold]
    fn labelled(beside: Option<Box<Self>>, labels: Labels<'a>) -> Box<Self> {
        let mut beside = beside.unwrap_or_else(|| Self::new(Acls::default()));
        beside.labels = labels;
        beside
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.is_stored.get()
    }

    /// Returns the data that the file system gave the inode, once.
    pub(crate) fn take_data(&self) -> Option<Data> {
        self.data.take()
    }

    /// Names and values of all extended attributes.
    fn xattrs(&self) -> Vec<(&[u8], Cow<'_, [u8]>)> {
        let labels = self.labels.iter().map(|(name, value)| (*name, Cow::Borrowed(*value)));
        self.acl_xattrs().chain(labels).collect()
    }

    /// Names and values of the ACLs.
    pub(crate) fn acl_xattrs(&self) -> impl Iterator<Item = (&[u8], Cow<'_, [u8]>)> {
        let acls = [(AclKind::Access, &self.acls.access), (AclKind::Default, &self.acls.default)];
        acls.into_iter().filter_map(|(kind, acl)| Some((kind.xattr_name(), Cow::Owned(acl.as_ref()?.to_xattr()))))
    }
}
