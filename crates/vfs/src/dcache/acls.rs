//! ACLs in the cache: the file system stores them as extended attributes; the inode has a copy for permission
//! checks.

use crate::base::access::acl::{Acl, AclKind, Acls};
use crate::base::attr::Attr;
use crate::base::errno::Errno;
use crate::dcache::dentry::Dentry;
use crate::dcache::fs::{Request, SetXattr};
use crate::dcache::inode::Inode;
use crate::dcache::object::ObjectFlags;
use crate::dcache::superblock::SuperBlock;

impl SuperBlock {
    /// Makes the file system store an ACL, or remove it.
    pub(crate) fn store_acl(
        &self,
        request: &Request,
        inode: &Inode,
        kind: AclKind,
        acl: Option<&Acl>,
    ) -> Result<(), Errno> {
        let name = kind.xattr_name();
        match acl {
            Some(acl) => self.fs.set_xattr(request, inode, name, &acl.to_xattr(), SetXattr::Any),
            None => match self.fs.remove_xattr(request, inode, name) {
                Err(Errno::ENODATA) => Ok(()),
                done => done,
            },
        }
    }

    pub(crate) fn put_acls(&self, dentry: &Dentry, inode: &Inode, acls: Acls) {
        let slow = acls.access.is_some() || self.own_permissions;
        let any = acls.access.is_some() || acls.default.is_some();
        inode.set_acl(&self.domain, any.then_some(acls));
        if dentry.object().is_dir() {
            let slow_dir = ObjectFlags::SLOW_DIR;
            dentry.update_flags(|object| if slow { object.with(slow_dir) } else { object.without(slow_dir) });
        }
    }

    /// The initial ACLs of a new entry in a directory with a default ACL; applies the ACL to `mode`.
    pub(crate) fn new_acls(&self, dir: &Inode, mode: &mut u32) -> Option<Acls> {
        let guard = self.domain.read();
        let default = dir.acl(&guard)?.default.as_ref()?;
        let access = Acl::create_from_default(default, mode);
        let is_dir = *mode & crate::base::attr::S_IFMT == crate::base::attr::S_IFDIR;
        let default = is_dir.then(|| default.clone());
        (access.is_some() || default.is_some()).then_some(Acls { access, default })
    }

    /// Stores the initial ACLs of a new entry, unless the file system did. If it cannot, the entry stays without.
    pub(crate) fn inherit_acls(&self, request: &Request, made: &Dentry, acls: Acls) {
        let Some(inode) = made.inode() else { return };
        for (kind, acl) in [(AclKind::Access, &acls.access), (AclKind::Default, &acls.default)] {
            if let Some(acl) = acl
                && !self.fs_keeps_modes
            {
                let _ = self.store_acl(request, inode, kind, Some(acl));
            }
        }
        self.put_acls(made, inode, acls);
    }

    /// Updates the access ACL after a chmod, under the inode's data lock.
    pub(crate) fn chmod_acl(
        &self,
        request: &Request,
        dentry: &Dentry,
        inode: &Inode,
        attr: &Attr,
    ) -> Result<(), Errno> {
        let Some(mut acls) = inode.acl(&self.domain.read()).cloned() else { return Ok(()) };
        let Some(access) = &acls.access else { return Ok(()) };
        let changed = access.chmod(attr.mode);
        if !self.fs_keeps_modes {
            self.store_acl(request, inode, AclKind::Access, Some(&changed))?;
        }
        acls.access = Some(changed);
        self.put_acls(dentry, inode, acls);
        Ok(())
    }
}
