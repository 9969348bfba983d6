//! Pruning: removal of an obsolete entry with everything cached below it.

use crate::base::name::Named;
use crate::base::rank::Locked;
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use crate::slots::shard::Names;

impl SuperBlock {
    /// Removes an obsolete entry from the cache, with everything cached below it. The directory is locked, or `names` of
    /// it. A mount point, and every directory above one, stays until the unmount; `false` if the entry is such a
    /// one.
    pub(crate) fn prune(&self, names: Option<&Names<'_>>, dir: &Dentry, entry: &Dentry, hash: u64) -> bool {
        let mut open: Vec<Pruned<'_>> = Vec::new();
        let mut at = Some(entry);
        loop {
            if let Some(found) = at {
                let keeps = found.object().is_mountpoint();
                if keeps || !found.object().is_dir() {
                    let Some(above) = open.last_mut() else {
                        // The entry itself, without anything below it.
                        if !keeps {
                            self.uncache_name(names, dir, entry, hash);
                        }
                        return !keeps;
                    };
                    above.keeps |= keeps;
                    at = found.sib_next.get();
                    if !keeps {
                        let above = above.dir;
                        let name_hash = found.filed_hash_rcu(above, self.key, &self.domain.read());
                        self.uncache(above, found, name_hash);
                    }
                } else {
                    let lock = self.lock_dir_nested(found);
                    open.push(Pruned { dir: found, keeps: false, _lock: lock });
                    at = found.first_child.get();
                }
                continue;
            }
            // The innermost directory is done: it is removed too, unless something in it stays.
            let Some(done) = open.pop() else { return false };
            let Some(above) = open.last_mut() else {
                if !done.keeps {
                    self.uncache_name(names, dir, entry, hash);
                }
                return !done.keeps;
            };
            above.keeps |= done.keeps;
            at = done.dir.sib_next.get();
            if !done.keeps {
                let above = above.dir;
                let name_hash = done.dir.filed_hash_rcu(above, self.key, &self.domain.read());
                self.uncache(above, done.dir, name_hash);
            }
        }
    }

    /// Removes the entry of a name of the locked directory `dir` that leads to `inode`, which has lost that name. If a mount below keeps
    /// it, it is stale.
    pub(crate) fn end_name(&self, dir: &Dentry, named: Named<'_>, inode: &Inode) {
        let leads_there = |entry: &&Dentry| entry.inode().is_some_and(|at| at.node() == inode.node());
        if let Some(entry) = self.cached(dir, named).filter(leads_there)
            && !self.prune(None, dir, entry, named.hash)
        {
            entry.expire(&self.paths);
        }
    }
}

/// A directory whose entries are being taken out.
struct Pruned<'d> {
    dir: &'d Dentry,
    /// Something in it stays.
    keeps: bool,
    _lock: Locked<'d>,
}
