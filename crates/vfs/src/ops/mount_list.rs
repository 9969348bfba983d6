//! Lists of mounts and their storage: `/proc/self/mountinfo`, `statvfs(3)`.

use crate::base::errno::Errno;
use crate::base::flags::MountFlags;
use crate::mount::Owned;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathRef, Place, path_in_file_system};
use crate::mount::reverse_path::{path_from, path_of_mount};
use crate::mount::statvfs::StatVfs;
use crate::slots::dentry::Dentry;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One mount, as in `proc_pid_mountinfo(5)`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct MountInfo {
    /// The number of the mount.
    pub id: u64,
    /// The number of the parent mount; its own number for the root.
    pub parent_id: u64,
    /// `st_dev` of its files.
    pub dev: u64,
    /// Its root, as a path in its file system.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::base::serde::path"))]
    pub root: PathBuf,
    /// Its mount point, as a path from the context's root.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::base::serde::path"))]
    pub mountpoint: PathBuf,
    /// Its flags.
    pub flags: MountFlags,
    /// The type of its file system.
    pub type_name: String,
}

/// A file or directory that keeps a mount busy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Holder {
    /// The path of the place; followed by ` (deleted)` if the name was removed.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::base::serde::path"))]
    pub path: PathBuf,
    /// References on it.
    pub references: u32,
}

impl Context {
    /// Returns all mounts below this context's root, parents before children.
    #[must_use]
    pub fn mounts(&self) -> Vec<MountInfo> {
        let (root, _) = self.root_and_cwd();
        self.namespace().mounts().iter().filter_map(|mount| describe(mount, &root)).collect()
    }

    /// Storage of the file system at `path`, and flags of its mount: `statvfs(3)`. Reports the mount that the
    /// walk ended on.
    ///
    /// # Errors
    /// `ENOSYS` if the file system has no such figures; errors of a walk.
    pub fn statvfs(&self, base: Base<'_>, path: &[u8]) -> Result<StatVfs, Errno> {
        self.on_held(base, path, true, |held| held.statvfs_for(&self.request()))
    }

    /// Returns the held places of the file system at `path`: open files, directories, working
    /// directories of contexts. Examines all its cached entries: use it to report why a mount is
    /// busy.
    ///
    /// # Errors
    /// The errors of a walk.
    pub fn holders(&self, base: Base<'_>, path: &[u8]) -> Result<Vec<Holder>, Errno> {
        // Mounts that were unmounted may still have counts until the next grace period ends.
        let _ = self.tree().domain.try_barrier();
        let place = self.hold(base, path, true)?;
        let (root, _) = self.root_and_cwd();
        let sb = place.sb();
        let mut holders = Vec::new();
        sb.for_each(|dentry| {
            if dentry.count.is_dead() {
                return;
            }
            // Counts that belong to no user: the name's, the mount's on its root, and this call's.
            let is = |held: &Dentry| core::ptr::eq(dentry, held);
            let own = [dentry.object().is_hashed(), is(place.mount().root()), is(place.dentry())].map(u32::from);
            let references = dentry.count.count().saturating_sub(own.iter().sum());
            if references != 0 {
                let at = Place { mount: place.mount().borrow(), dentry };
                holders.push(Holder { path: path_buf(path_from(sb, at, root.place())), references });
            }
        });
        Ok(holders)
    }
}

/// Returns a mount as a context with this root sees it; `None` if it is outside of the root.
fn describe(mount: &Owned, root: &PathRef) -> Option<MountInfo> {
    let sb = &mount.sb;
    let mountpoint = path_of_mount(sb, mount.borrow(), root.place());
    if mountpoint.starts_with(b"(unreachable)") {
        return None;
    }
    let guard = sb.domain.read();
    let parent_id = mount.attachment(&guard).map_or(mount.id, |up| up.parent.id);
    Some(MountInfo {
        id: mount.id,
        parent_id,
        dev: mount.dev,
        root: path_buf(path_in_file_system(sb, mount.root())),
        mountpoint: path_buf(mountpoint),
        flags: mount.flags(),
        type_name: sb.type_name.to_string(),
    })
}

fn path_buf(path: Vec<u8>) -> PathBuf {
    OsString::from_vec(path).into()
}
