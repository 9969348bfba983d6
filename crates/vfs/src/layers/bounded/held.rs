//! Counted references that a call still uses after its caller left it.
//!
//! # How it is locked
//! The uses of an open are a count under a mutex, a leaf.

use crate::base::errno::Errno;
use crate::base::flags::OpenFlags;
use crate::cache::superblock::SuperBlock;
use crate::fs::{FileSystem, Open, OpenState};
use crate::slots::inode::Inode;
use crate::slots::slot::DetachedInodeRef;
use prim::shared::{AnyArc, PlainArc as Arc};
use std::any::Any;
use sync::Mutex;

/// A reference on an inode, with its file system.
pub(super) struct InodeHandle {
    sb: Arc<SuperBlock>,
    /// `None` while it is dropped.
    counted: Option<DetachedInodeRef>,
}

impl InodeHandle {
    /// Creates the value for an inode of `sb` that the caller has a reference on.
    pub(super) fn new(sb: &Arc<SuperBlock>, inode: &Inode) -> Self {
        Self { sb: sb.clone(), counted: Some(DetachedInodeRef::again(sb.slots(), inode)) }
    }
}

impl core::ops::Deref for InodeHandle {
    type Target = Inode;

    fn deref(&self) -> &Inode {
        self.counted.as_ref().expect("a reference that was not dropped").get(self.sb.slots())
    }
}

impl Drop for InodeHandle {
    fn drop(&mut self) {
        self.counted.take().into_iter().for_each(|counted| self.sb.put_inode(counted.into_ref(self.sb.slots())));
    }
}

/// An open of the file system inside, as the state that the VFS keeps.
pub(super) struct OpenedInside(Mutex<Uses>);

struct Uses {
    /// By the VFS, until it releases the open, and by calls about it.
    count: u32,
    /// The state of the file system inside. The last use takes it out, so that a thread of the pool drops it: that may close a file.
    state: OpenState,
    /// An error of writing that no caller has got.
    error: Option<Errno>,
}

impl OpenedInside {
    /// Returns the state of an open that the VFS uses, whose own state is `state`.
    pub(super) fn state(state: OpenState) -> OpenState {
        let inside: Box<dyn Any + Send + Sync> = Box::new(Self(Mutex::new(Uses { count: 1, state, error: None })));
        OpenState::Shared(AnyArc::from(inside))
    }

    /// Begins a use. Returns the state of the file system inside.
    fn enter(&self) -> OpenState {
        let mut uses = self.0.lock();
        uses.count += 1;
        uses.state.clone()
    }

    /// Ends a use. If it was the last, returns the state: the caller releases the open.
    pub(super) fn leave(&self) -> Option<OpenState> {
        let mut uses = self.0.lock();
        uses.count -= 1;
        (uses.count == 0).then(|| core::mem::take(&mut uses.state))
    }
}

/// Returns, as an error, the error of writing that a late call about `file` has left.
pub(super) fn late_error(file: &Open<'_>) -> Result<(), Errno> {
    let error = file.state.get::<OpenedInside>().and_then(|inside| inside.0.lock().error.take());
    error.map_or(Ok(()), Err)
}

/// A use of an open. The last one releases it.
pub(super) struct OpenHandle<F: FileSystem + ?Sized> {
    fs: Arc<F>,
    inode: InodeHandle,
    flags: OpenFlags,
    /// The state that the VFS keeps.
    opened: OpenState,
    /// The state of the file system inside.
    state: OpenState,
}

impl<F: FileSystem + ?Sized> OpenHandle<F> {
    pub(super) fn new(sb: &Arc<SuperBlock>, fs: &Arc<F>, file: &Open<'_>) -> Self {
        let (inode, opened) = (InodeHandle::new(sb, file.inode), file.state.clone());
        let state = opened.get::<OpenedInside>().map(OpenedInside::enter).unwrap_or_default();
        Self { fs: fs.clone(), inode, flags: file.flags, opened, state }
    }

    /// Returns the open, for the file system inside.
    pub(super) fn get(&self) -> Open<'_> {
        Open { inode: &self.inode, flags: self.flags, state: &self.state }
    }

    /// Notes the answer of a call that reports errors of writing, and that its caller has left: the next one reports the error.
    pub(super) fn note(&self, answer: Result<(), Errno>) {
        if let (Some(inside), Err(errno)) = (self.opened.get::<OpenedInside>(), answer) {
            inside.0.lock().error.get_or_insert(errno);
        }
    }
}

impl<F: FileSystem + ?Sized> Drop for OpenHandle<F> {
    fn drop(&mut self) {
        if let Some(_last) = self.opened.get::<OpenedInside>().and_then(OpenedInside::leave) {
            self.inode.sb.contain(|| self.fs.release(self.get()));
        }
    }
}
