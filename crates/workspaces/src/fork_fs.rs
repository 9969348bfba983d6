//! A fork as a file system: the methods of [`FileSystem`], over the [state](crate::state) of the fork.

use crate::contents::{Contents, Source};
use crate::open_files::OpenDir;
use crate::record::{Node, RECORD_BYTES, Xattrs};
use crate::state::State;
use crate::tree::Tree;
use prim::atomic::Ordering::Relaxed;
use std::sync::Arc;
use vfs::{
    After, Allocate, Attr, Attributes, Errno, FileSystem, FsTraits, Inode, Invalidator, Listed, NameStore, NewInode,
    NewNode, NextNames, Open, OpenFile, OpenFlags, Opened, Opens, OwnNames, Position, Rename, RenameFlags, Request,
    SeekFor, SetAttr, SetTime, SetXattr, StatFs, Valid, Want, Written,
};

/// Cookies of the names that a fork made begin here; cookies of the base are smaller.
const MADE_COOKIES: u64 = 1 << 62;

/// The entries that a listing takes from the map at a time.
const LISTED: usize = 64;

/// The file system of a fork. Its tree holds it; [`Fork`](crate::Fork) makes it.
#[derive(Debug)]
pub struct ForkFs(pub(crate) Arc<State>);

/// Returns the most bytes that the records of a new name take, with the records of its directory.
fn name_bytes(name: &[u8]) -> u64 {
    8 * (RECORD_BYTES + name.len() as u64)
}

/// Removes a name from a directory, and touches the directory.
fn remove(tree: &mut Tree, (dir, name): (u64, &[u8]), node: u64, covered: Option<u64>, now: i64) -> Result<(), Errno> {
    tree.leave(dir, name, node, covered)?;
    tree.node_mut(node)?.attr.ctime = now;
    tree.node_mut(dir)?.touch(now);
    if tree.attr(node)?.is_dir() { tree.end_dir(node) } else { Ok(()) }
}

impl ForkFs {
    /// Checks that a name leads to a node, as the cache assumes: `ENOENT`, `ESTALE`.
    fn check(&self, dir: u64, name: &[u8], node: u64) -> Result<(), Errno> {
        if self.0.find(dir, name)? == node { Ok(()) } else { Err(Errno::ESTALE) }
    }

    /// Checks that a name does not exist: `EEXIST`.
    fn check_absent(&self, dir: u64, name: &[u8]) -> Result<(), Errno> {
        match self.0.find(dir, name) {
            Err(Errno::ENOENT) => Ok(()),
            Ok(_) => Err(Errno::EEXIST),
            Err(errno) => Err(errno),
        }
    }

    /// Changes extended attributes.
    fn change_xattrs(
        &self,
        node: u64,
        now: i64,
        change: impl FnOnce(&mut Xattrs) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let _inside = self.0.enter();
        let current = self.0.current(node)?;
        let mut xattrs = self.0.xattrs(&current)?;
        change(Arc::make_mut(&mut xattrs))?;
        let bytes = Node { xattrs: Some(xattrs.clone()), ..Node::default() }.bytes();
        self.0.change(&[node], bytes, None, |tree| tree.set_xattrs(node, xattrs, now))
    }

    /// Lists the names that the fork made in a directory, up to a place.
    fn list_made(&self, dir: u64, (after, last): (u64, u64), emit: &mut dyn FnMut(Listed) -> bool) {
        let mut after = after;
        loop {
            let entries = self.0.tree.lock().listed(dir, after, LISTED);
            let Some((_, behind)) = entries.last() else { return };
            after = behind.serial;
            for (name, entry) in &entries {
                if entry.serial > last {
                    return;
                }
                let made = vfs::DirEntry { name: name[..].into(), ino: entry.node, kind: entry.kind };
                if !emit(Listed::new(made, MADE_COOKIES + entry.serial)) {
                    return;
                }
            }
        }
    }
}

impl FileSystem for ForkFs {
    fn root(&self) -> NewInode {
        self.0.inode(self.0.shown).unwrap_or_default()
    }

    fn traits(&self) -> FsTraits {
        let lower = &self.0.shared.lower;
        FsTraits {
            type_name: "workspace".into(),
            names: NameStore::FileSystem(OwnNames {
                valid: if lower.is_fixed { Valid::default() } else { lower.root.valid() },
                keeps_listings: lower.is_fixed,
                attributes: Attributes::FileSystem { with_changes: true },
                ..OwnNames::default()
            }),
            opens: Opens::Yes { flush: false },
            acls: true,
            ..FsTraits::default()
        }
    }

    fn mounted(&self, invalidator: Invalidator) {
        self.0.invalidators.lock().push(invalidator);
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        let found = self.0.find(dir.node(), name).and_then(|node| self.0.inode(node));
        if let Ok(_) | Err(Errno::ENOENT) = found {
            self.0.note_read(dir.node(), Some(name), found.as_ref().ok());
        }
        found
    }

    fn read_link(&self, _: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        let current = self.0.current(inode.node())?;
        match (&current.link_body, &current.base) {
            (Some(body), _) => Ok(Box::from(&**body)),
            (None, Some(base)) => self.0.shared.lower.context.read_link_held(base).map(Box::from),
            (None, None) => Err(Errno::ESTALE),
        }
    }

    /// Lists the names of the base in its order and with its cookies, without the names that the fork has changed; then the
    /// names that the fork made.
    fn read_dir(
        &self,
        _: &Request,
        dir: &Open<'_>,
        after: u64,
        _: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        let node = dir.inode.node();
        let opened = dir.state.get::<OpenDir>().ok_or(Errno::ESTALE)?;
        if after == 0 {
            // Relaxed, here and below: the caller orders its own calls.
            opened.last.store(self.0.last_listed(), Relaxed);
        }
        let mut is_wanted = true;
        self.0.note_read(node, None, None);
        if let Some(base) = opened.base.get::<OpenFile>().filter(|_| after < MADE_COOKIES) {
            base.entries_after(after, Want::NAMES, &mut |entry, cookie| {
                let is_shown = self.0.tree.lock().name(node, &entry.name).is_none();
                let of_base = || vfs::DirEntry { ino: self.0.number(entry.ino), ..entry.clone() };
                is_wanted = !is_shown || emit(Listed::new(of_base(), cookie));
                is_wanted
            })?;
        }
        if is_wanted {
            self.list_made(node, (after.saturating_sub(MADE_COOKIES), opened.last.load(Relaxed)), emit);
        }
        Ok(())
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        let _inside = self.0.enter();
        let (parent, node, now) = (dir.node(), self.0.shared.next_node(), request.now());
        name.map_or(Ok(()), |name| self.check_absent(parent, name))?;
        let is_dir = new.attr.is_dir();
        let xattrs = new.xattrs().into_iter().map(|(name, value)| (Box::from(name), Box::from(&*value)));
        let made = Node {
            attr: Attr { ino: node, nlink: 0, size: if is_dir { 40 } else { new.attr.size }, ..new.attr },
            birth: Some(now),
            is_unnamed: name.is_none(),
            link_body: new.link_body.map(Arc::from),
            xattrs: Some(Arc::new(xattrs.collect())),
            ..Node::default()
        };
        self.0.usage.take_inode()?;
        let bytes = made.bytes() + name.map_or(0, name_bytes);
        let attrs = self.0.change(&[parent], bytes, None, |tree| {
            tree.make(node, made);
            if let Some(name) = name {
                tree.enter(parent, name, node)?;
                tree.node_mut(parent)?.touch(now);
            }
            Ok((tree.attr(node)?, tree.attr(parent)?))
        });
        let (attr, parent) = attrs.inspect_err(|_| self.0.usage.give_inode())?;
        new.attr = attr;
        new.xattrs_stored();
        if name.is_some() {
            new.after = After::NONE.dir(parent);
        }
        Ok(node)
    }

    fn link(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let _inside = self.0.enter();
        let (parent, node, now) = (dir.node(), inode.node(), request.now());
        self.check_absent(parent, name)?;
        self.0.change(&[parent, node], name_bytes(name), None, |tree| {
            let linked = tree.node_mut(node)?;
            if linked.attr.nlink == 0 && !linked.is_unnamed {
                return Err(Errno::ENOENT);
            }
            linked.attr.ctime = now;
            tree.enter(parent, name, node)?;
            tree.node_mut(parent)?.touch(now);
            Ok(After::NONE.file(tree.attr(node)?).dir(tree.attr(parent)?))
        })
    }

    fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let _inside = self.0.enter();
        let (parent, node) = (dir.node(), inode.node());
        self.check(parent, name, node)?;
        if self.0.current(node)?.attr.is_dir() {
            self.0.check_empty(node)?;
        }
        let covered = self.0.covered(parent, name)?;
        self.0.change(&[parent, node], 0, None, |tree| {
            remove(tree, (parent, name), node, covered, request.now())?;
            Ok(After::NONE.file(tree.attr(node)?).dir(tree.attr(parent)?))
        })
    }

    fn rename(&self, request: &Request, moved: &Rename<'_>) -> Result<After, Errno> {
        let _inside = self.0.enter();
        let Rename { old_dir, old_name, new_dir, new_name, inode, target, flags } = *moved;
        let (from, to, node, now) = (old_dir.node(), new_dir.node(), inode.node(), request.now());
        let target = target.map(Inode::node);
        let exchanges = flags.contains(RenameFlags::EXCHANGE);
        self.check(from, old_name, node)?;
        match target {
            Some(target) => self.check(to, new_name, target)?,
            None => self.check_absent(to, new_name)?,
        }
        if let Some(target) = target.filter(|_| !exchanges)
            && self.0.current(target)?.attr.is_dir()
        {
            self.0.check_empty(target)?;
        }
        let covered = [self.0.covered(from, old_name)?, self.0.covered(to, new_name)?];
        let nodes: Vec<u64> = [from, to, node].into_iter().chain(target).collect();
        self.0.change(&nodes, name_bytes(new_name), None, |tree| {
            tree.leave(from, old_name, node, covered[0])?;
            if let Some(target) = target {
                if exchanges {
                    tree.leave(to, new_name, target, covered[1])?;
                    tree.enter(from, old_name, target)?;
                    tree.node_mut(target)?.attr.ctime = now;
                } else {
                    remove(tree, (to, new_name), target, covered[1], now)?;
                }
            }
            tree.enter(to, new_name, node)?;
            tree.node_mut(node)?.attr.ctime = now;
            tree.node_mut(from)?.touch(now);
            tree.node_mut(to)?.touch(now);
            let after = After::NONE.file(tree.attr(node)?).dir(tree.attr(from)?).new_dir(tree.attr(to)?);
            Ok(match target {
                Some(target) => after.target(tree.attr(target)?),
                None => after,
            })
        })
    }

    fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
        let _inside = self.0.enter();
        let (node, now) = (inode.node(), request.now());
        let time = |time: Option<SetTime>, old| match time {
            None => old,
            Some(SetTime::Now) => now,
            Some(SetTime::At(ns)) => ns,
        };
        self.0.change(&[node], 0, None, |tree| {
            let attr = &mut tree.node_mut(node)?.attr;
            attr.mode = set.mode.map_or(attr.mode, |mode| attr.kind() | mode);
            (attr.uid, attr.gid) = (set.uid.unwrap_or(attr.uid), set.gid.unwrap_or(attr.gid));
            (attr.atime, attr.mtime, attr.ctime) = (time(set.atime, attr.atime), time(set.mtime, attr.mtime), now);
            Ok(After::NONE.file(*attr))
        })
    }

    fn attributes(&self, _: &Request, inode: &Inode) -> Result<Attr, Errno> {
        Ok(self.0.current(inode.node())?.attr)
    }

    fn birth(&self, _: &Request, inode: &Inode) -> Result<Option<i64>, Errno> {
        self.0.current(inode.node())?.birth()
    }

    fn open(&self, _: &Request, inode: &Inode, _: OpenFlags) -> Result<Opened, Errno> {
        self.0.open(inode.node())
    }

    fn release(&self, file: Open<'_>) {
        self.0.release(file.inode.node());
    }

    fn read(&self, _: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.0.read(file, offset, buf)
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        let offset = match at {
            Position::At(offset) => offset,
            Position::End(_) => self.0.current(file.inode.node())?.attr.size,
        };
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        let now = request.now();
        let (written, attr) = self.0.change_contents(
            (file.inode, Some(file)),
            (u64::MAX, now),
            |contents, source| contents.write(offset, data, source),
            |size, written| size.max((end - data.len() as u64) + *written as u64),
        )?;
        let end = Some(offset + written as u64);
        Ok(Written { end, after: After::NONE.file(attr), ..Written::new(written, attr.blocks) })
    }

    fn set_len(&self, request: &Request, inode: &Inode, len: u64) -> Result<(u64, After), Errno> {
        // A file that grows keeps the storage that was reserved behind its end.
        let cut = |contents: &mut Contents, source: Source<'_>| {
            let grows = len > self.0.current(inode.node())?.attr.size;
            if grows { Ok(()) } else { contents.cut(len, source) }
        };
        let (_, attr) = self.0.change_contents((inode, None), (len, request.now()), cut, |_, _| len)?;
        Ok((attr.blocks, After::NONE.file(attr)))
    }

    fn allocate(
        &self,
        request: &Request,
        file: &Open<'_>,
        how: Allocate,
        keep_size: bool,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        let end = offset.checked_add(len).filter(|end| *end <= i64::MAX as u64).ok_or(Errno::EFBIG)?;
        let range = offset..end;
        let (_, attr) = self.0.change_contents(
            (file.inode, Some(file)),
            (u64::MAX, request.now()),
            |contents, source| {
                if how != Allocate::Reserve {
                    contents.punch(&range, source)?;
                }
                if how == Allocate::PunchHole { Ok(()) } else { contents.reserve(&range, source) }
            },
            |size, ()| if keep_size || how == Allocate::PunchHole { size } else { size.max(end) },
        )?;
        Ok(attr.blocks)
    }

    fn seek(&self, _: &Request, file: &Open<'_>, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        let current = self.0.current(file.inode.node())?;
        let end = current.attr.size;
        let found = match &current.contents {
            Some(contents) => contents.state.read().seek(offset, what),
            None if current.base.is_some() => {
                return file.state.get::<OpenFile>().ok_or(Errno::ESTALE)?.seek_for(what, offset);
            }
            // A file that the fork made has nothing but a hole yet.
            None if what == SeekFor::Hole => Some(offset),
            None => None,
        };
        match what {
            SeekFor::Data => found.filter(|found| *found < end).ok_or(Errno::ENXIO),
            SeekFor::Hole => Ok(found.unwrap_or(end).min(end)),
        }
    }

    fn get_xattr(&self, _: &Request, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.0.xattr(&*self.0.current(inode.node())?, name)
    }

    fn set_xattr(
        &self,
        request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        self.change_xattrs(inode.node(), request.now(), |xattrs| {
            match (how, xattrs.contains_key(name)) {
                (SetXattr::Create, true) => return Err(Errno::EEXIST),
                (SetXattr::Replace, false) => return Err(Errno::ENODATA),
                _ => xattrs.insert(name.into(), value.into()),
            };
            Ok(())
        })
    }

    fn remove_xattr(&self, request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        let remove = |xattrs: &mut Xattrs| xattrs.remove(name).map(drop).ok_or(Errno::ENODATA);
        self.change_xattrs(inode.node(), request.now(), remove)
    }

    fn list_xattrs(&self, _: &Request, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        let current = self.0.current(inode.node())?;
        Ok(self.0.xattrs(&current)?.keys().cloned().collect())
    }

    fn statfs(&self, _: &Request, _: &Inode) -> Result<StatFs, Errno> {
        Ok(self.0.usage.statfs(self.0.shared.pages.left()))
    }

    fn sync(&self, _: &Request, _: &Open<'_>, _: bool) -> Result<(), Errno> {
        self.0.sync()
    }

    fn evict(&self, inode: &Inode) {
        self.0.evict(inode.node());
    }
}
