//! The mount points: the number of mounts on each dentry, in all namespaces.

use crate::base::errno::Errno;
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use crate::slots::object::ObjectFlags;
use crate::slots::whole_path::WholePaths;
use std::collections::BTreeMap;

/// The number of mounts on each dentry that has any.
#[derive(Default)]
pub(crate) struct Mountpoints {
    on: BTreeMap<usize, u32>,
}

/// Returns the address of a dentry as a key of tables.
fn address(dentry: &Dentry) -> usize {
    core::ptr::from_ref(dentry) as usize
}

impl Mountpoints {
    /// Counts a mount on `dentry` of `sb`, and makes walks look for it.
    ///
    /// # Errors
    /// `ENOENT`: the name of `dentry` was removed. `EBUSY`: a thread removes or renames `dentry`,
    /// in a remote file system.
    pub(crate) fn mark(&mut self, sb: &SuperBlock, dentry: &Dentry) -> Result<(), Errno> {
        loop {
            let parent = sb.pin_parent(dentry)?;
            let marked = self.mark_in(sb, parent.get(sb.slots()), dentry);
            sb.unpin(parent);
            if let Some(marked) = marked {
                return marked;
            }
        }
    }

    /// As [`Mountpoints::mark`], if `dentry` is in `parent`.
    fn mark_in(&mut self, sb: &SuperBlock, parent: &Dentry, dentry: &Dentry) -> Option<Result<(), Errno>> {
        let _held = sb.lock_dir(parent);
        // Otherwise it moved before the lock, and its removal needs the lock of another directory.
        if !dentry.is_in(parent) {
            return None;
        }
        if !dentry.object().is_hashed() {
            return Some(Err(Errno::ENOENT));
        }
        let hash = dentry.filed_hash_rcu(parent, sb.key, &sb.domain.read());
        if sb.is_in_flight(parent, hash) {
            return Some(Err(Errno::EBUSY));
        }
        *self.on.entry(address(dentry)).or_insert(0) += 1;
        dentry.update_flags(&sb.paths, |object| object.with(ObjectFlags::MOUNTED));
        Some(Ok(()))
    }

    /// Counts one mount less on `dentry`.
    pub(crate) fn unmark(&mut self, paths: &WholePaths, dentry: &Dentry) {
        let key = address(dentry);
        if let Some(count) = self.on.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.on.remove(&key);
                dentry.update_flags(paths, |object| object.without(ObjectFlags::MOUNTED));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::{Attr, S_IFDIR};
    use crate::cache::budget::{Budget, SlotKind};
    use crate::cache::insert::NewInodeArgs;
    use crate::cache::moving::MoveEnd;
    use crate::cache::tree::Tree;
    use crate::fs::{CachedNames, FileSystem, FsTraits, NameStore, NewInode};
    use crate::slots::whole_path::Options;
    use sync::PerCpuOwner;

    const DIR_ATTR: Attr = Attr {
        ino: 1,
        mode: S_IFDIR | 0o755,
        nlink: 2,
        uid: 0,
        gid: 0,
        rdev: 0,
        size: 0,
        blocks: 0,
        atime: 0,
        mtime: 0,
        ctime: 0,
    };

    struct Names;
    impl FileSystem for Names {
        fn root(&self) -> NewInode {
            NewInode { node: 1, attr: DIR_ATTR, ..NewInode::default() }
        }
        fn traits(&self) -> FsTraits {
            FsTraits { names: NameStore::Cache(CachedNames::default()), ..FsTraits::default() }
        }
    }

    fn has_sleeper(dir: &Dentry) -> bool {
        format!("{:?}", dir.lock).contains("(2)")
    }

    #[test]
    fn a_mount_point_that_moves_before_its_directory_is_locked_is_marked_under_the_lock_of_the_new_one() {
        let owner = PerCpuOwner::new(Tree::new(Options::default()), false);
        let sb = SuperBlock::new(owner.share(), Box::new(Names), Budget::default().into(), true);
        let make = |dir, name: &[u8]| {
            let slot = sb.slot(SlotKind::Entry).unwrap();
            let new = NewInode { node: 2, attr: DIR_ATTR, ..NewInode::default() };
            sb.add_in(&sb.domain.read(), None, slot, dir, sb.named(name), &NewInodeArgs::from(&new))
        };
        let (old, new) = (make(sb.root(), b"old"), make(sb.root(), b"new"));
        let point = make(old, b"m");
        let (lock_of_old, lock_of_new) = (old.lock.lock(), new.lock.lock());
        std::thread::scope(|scope| {
            let marking = scope.spawn(|| Mountpoints::default().mark(&sb, point).map(drop));
            prim::hint::spin_until(|| has_sleeper(old));
            let end = |dir| MoveEnd { dir, named: sb.named(b"m"), names: None };
            sb.move_entry(end(old), end(new), point, None, 0);
            drop(lock_of_old);
            // The directory of the name is still locked here: its entry may not become a mount point.
            prim::hint::spin_until(|| point.object().is_mountpoint() || has_sleeper(new));
            assert!(!point.object().is_mountpoint());
            sb.delete_in(None, None, new, point, sb.hash(b"m"), 2, 0);
            drop(lock_of_new);
            assert_eq!(marking.join().unwrap(), Err(Errno::ENOENT));
        });
    }
}
