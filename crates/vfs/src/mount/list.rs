//! What is mounted where, and what a file system has left: `/proc/self/mountinfo`, `statvfs(3)`.

use super::{Mount, MountFlags};
use crate::context::{Context, Held, Place};
use crate::dentry::{Dentry, HASHED};
use crate::errno::Errno;
use crate::fs::StatFs;
use crate::namespace::Base;
use crate::reverse_path::{path_from, path_of_mount};

/// One mount, as `proc_pid_mountinfo(5)` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountInfo {
    /// Its number.
    pub id: u64,
    /// The number of the mount that it is mounted on; its own for the root.
    pub parent_id: u64,
    /// `st_dev` of what is on it.
    pub dev: u64,
    /// What it shows first, as a path in its file system.
    pub root: Vec<u8>,
    /// Where it is mounted, as the context sees it.
    pub mountpoint: Vec<u8>,
    /// Its flags.
    pub flags: MountFlags,
    /// The type of its file system.
    pub type_name: String,
}

/// What [`Context::statvfs`] answers: what the file system has, and how it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatVfs {
    /// What the file system has and has left.
    pub fs: StatFs,
    /// `st_dev` of what is on it.
    pub dev: u64,
    /// Flags of the mount that the path led to.
    pub flags: MountFlags,
}

/// Somebody who keeps a mount busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The path of what is held; ` (deleted)` behind it if its name has gone.
    pub path: Vec<u8>,
    /// References on it.
    pub references: u32,
}

impl Context {
    /// All mounts that this context's root leads to, each after what it is mounted on.
    #[must_use]
    pub fn mounts(&self) -> Vec<MountInfo> {
        let (root, _) = self.root_and_cwd();
        let mounts = self.namespace().mounts();
        let shown = mounts.iter().filter_map(|mount| describe(mount, &mount.share(), &root));
        shown.collect()
    }

    /// What the file system at `path` has left, and how it is mounted: `statvfs(3)`. Looks at the mount that the walk ended on,
    /// never through a list of mounts.
    ///
    /// # Errors
    /// `ENOSYS` if the file system cannot say; those of a walk.
    pub fn statvfs(&self, base: Base<'_>, path: &[u8]) -> Result<StatVfs, Errno> {
        self.hold(base, path, true)?.statvfs()
    }

    /// Who holds something of the file system at `path`: open files, directories, working directories of contexts. Looks at all that
    /// is cached of it: for reports of what keeps it busy.
    ///
    /// # Errors
    /// Those of a walk.
    pub fn holders(&self, base: Base<'_>, path: &[u8]) -> Result<Vec<Holder>, Errno> {
        let place = self.hold(base, path, true)?;
        let (root, _) = self.root_and_cwd();
        let sb = place.sb();
        let mut holders = Vec::new();
        sb.for_each(|dentry| {
            if dentry.count.is_dead() {
                return;
            }
            let own = u32::from(dentry.has(HASHED)) + own_counts(place.mount(), &place, dentry);
            let references = dentry.count.count().saturating_sub(own);
            if references != 0 {
                let at = Place { mount: place.mount().borrow(), dentry };
                holders.push(Holder { path: path_from(sb, at, root.place()), references });
            }
        });
        Ok(holders)
    }
}

/// Counts on a dentry that are no user's: the mount's on its root, and this question's own.
fn own_counts(mount: &Mount, place: &Held, dentry: &Dentry) -> u32 {
    u32::from(core::ptr::eq(dentry, mount.root())) + u32::from(core::ptr::eq(dentry, place.dentry()))
}

impl Held {
    /// [`Context::statvfs`] of what is held.
    ///
    /// # Errors
    /// `ENOSYS` if the file system cannot say.
    pub fn statvfs(&self) -> Result<StatVfs, Errno> {
        Ok(StatVfs { fs: self.sb().fs.statfs()?, dev: self.sb().dev, flags: self.mount().flags() })
    }
}

/// A mount as a context with this root sees it; `None` if it does not.
fn describe(mount: &Mount, arc: &sync::PerCpuArc<Mount>, root: &Held) -> Option<MountInfo> {
    let sb = &mount.sb;
    let mountpoint = path_of_mount(sb, arc.borrow(), root.place());
    if mountpoint.starts_with(b"(unreachable)") {
        return None;
    }
    let guard = sb.domain.read();
    let parent_id = mount.attachment(&guard).map_or(mount.id(), |up| up.parent.id());
    Some(MountInfo {
        id: mount.id(),
        parent_id,
        dev: mount.dev,
        root: in_file_system(mount),
        mountpoint,
        flags: mount.flags(),
        type_name: sb.fs.type_name().to_owned(),
    })
}

/// The path of what a mount shows first, in its file system.
fn in_file_system(mount: &Mount) -> Vec<u8> {
    let guard = mount.sb.domain.read();
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut at = mount.root();
    while let Some(parent) = at.parent()
        && !core::ptr::eq(parent, at)
    {
        names.push(at.with_name_rcu(&guard, <[u8]>::to_vec));
        at = parent;
    }
    names.iter().rev().fold(Vec::new(), |path, name| [&path[..], b"/", name].concat()).or_root()
}

/// `/` for an empty path.
trait OrRoot {
    fn or_root(self) -> Self;
}

impl OrRoot for Vec<u8> {
    fn or_root(self) -> Self {
        if self.is_empty() { b"/".to_vec() } else { self }
    }
}
