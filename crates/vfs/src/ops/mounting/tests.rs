//! Changes by another thread between the seal of a mount's count and the lock of the mounts.

use super::*;
use crate::Vfs;
use crate::base::attr::{Attr, S_IFDIR};
use crate::fs::{CachedNames, FsTraits, NameStore, NewInode, NewNode, Request};
use crate::slots::inode::Inode;

struct Names;

impl FileSystem for Names {
    fn root(&self) -> NewInode {
        let attr = Attr { ino: 1, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        NewInode { node: 1, attr, ..NewInode::default() }
    }

    fn traits(&self) -> FsTraits {
        FsTraits { names: NameStore::Cache(CachedNames::default()), ..FsTraits::default() }
    }

    fn create(&self, _: &Request, _: &Inode, _: Option<&[u8]>, _: &mut NewNode<'_>) -> Result<u64, Errno> {
        Ok(2)
    }
}

/// Unmounts `/m` on another thread, which has sealed the count of the mount when `meanwhile` gets the lock of the mounts,
/// the mount, and the place that it is on.
fn unmount_beside(meanwhile: impl FnOnce(&Context, LockedMounts<'_>, &Owned, &PathRef)) -> Result<(), Errno> {
    let vfs = Vfs::new(Names);
    let context = vfs.context();
    context.mkdir(Base::CWD, b"/m", 0o755).unwrap();
    let below = context.hold(Base::CWD, b"/m", true).unwrap();
    context.mount(Names, Base::CWD, b"/m", MountFlags::empty()).unwrap();
    let mount = context.mounted_at(&context.hold(Base::CWD, b"/m", true).unwrap()).unwrap();
    std::thread::scope(|scope| {
        let points = context.lock_mounts();
        let unmounting = scope.spawn(|| context.unmount(Base::CWD, b"/m", UnmountFlags::default()));
        let is_waited_for = || format!("{:?}", context.tree().mounts).contains("(2)");
        prim::hint::spin_until(is_waited_for);
        assert!(mount.borrow().to_arc().is_none());
        meanwhile(&context, points, &mount, &below);
        let unmounted = unmounting.join().unwrap();
        // If it failed, the count is open again.
        assert_eq!(mount.borrow().to_arc().is_some(), unmounted.is_err());
        unmounted
    })
}

#[test]
fn a_mount_that_nobody_uses_goes() {
    assert_eq!(unmount_beside(|_, _, _, _| {}), Ok(()));
}

#[test]
fn what_is_mounted_on_a_sealed_mount_keeps_it() {
    let unmounted = unmount_beside(|context, mut points, mount, below| {
        let sb = Arc::new(SuperBlock::new(below.sb().tree().clone(), Box::new(Names), Budget::default().into(), false));
        let other = Mount::new(sb.clone(), sb.pin_again(sb.root()), MountFlags::empty());
        context.namespace().claim(&other);
        // At the place of the sealed mount: so on top of that.
        points.attach(&other, below.mount(), below.dentry()).unwrap();
        assert!(mount.has_children(&context.tree().domain.read()));
    });
    assert_eq!(unmounted, Err(Errno::EBUSY));
}

#[test]
fn a_reference_that_was_taken_from_the_owner_of_a_sealed_mount_keeps_it() {
    let mut taken = None;
    assert_eq!(unmount_beside(|_, _, mount, _| taken = Some(mount.share())), Err(Errno::EBUSY));
    drop(taken);
}

#[test]
fn a_tree_may_wait_from_the_first_file_system_that_may() {
    /// Answers from memory.
    struct Quick;

    impl FileSystem for Quick {
        fn root(&self) -> NewInode {
            Names.root()
        }

        fn traits(&self) -> FsTraits {
            let names = CachedNames { never_waits: true, ..CachedNames::default() };
            FsTraits { names: NameStore::Cache(names), ..Names.traits() }
        }

        fn create(
            &self,
            request: &Request,
            dir: &Inode,
            name: Option<&[u8]>,
            new: &mut NewNode<'_>,
        ) -> Result<u64, Errno> {
            Names.create(request, dir, name, new)
        }
    }

    let vfs = Vfs::new(Quick);
    let context = vfs.context();
    context.mkdir(Base::CWD, b"/m", 0o755).unwrap();
    context.mount(Quick, Base::CWD, b"/m", MountFlags::empty()).unwrap();
    assert!(!vfs.may_wait());
    context.mount(Names, Base::CWD, b"/m", MountFlags::empty()).unwrap();
    assert!(vfs.may_wait());
    context.unmount(Base::CWD, b"/m", UnmountFlags::default()).unwrap();
    assert!(vfs.may_wait(), "its files may be open");
}
