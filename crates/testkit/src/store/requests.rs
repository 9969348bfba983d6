//! The requests to a [`Store`]: each runs its hooks before and after the answer.
//!
//! As [`vfs::FileSystem`].

use super::call::Call;
use super::nodes::Nodes;
use super::quota::Limit;
use super::{ROOT, Store, StoreOptions};
use vfs::{
    After, Allocate, Attr, Attributes, CachedNames, Errno, FileId, FileSystem, FsTraits, Inode, Invalidator, Listed,
    NameStore, NewInode, NewNode, NextNames, Open, OpenFlags, Opened, Opens, OwnNames, Position, Rename, RenameFlags,
    Request, SetAttr, SetXattr, Valid, Want, Written,
};

impl Store {
    /// Returns the return value of a change that has been made.
    fn returned(&self, nodes: &Nodes, parts: &[Part]) -> After {
        let parts = parts.iter().filter(|_| self.0.options.returns_attributes);
        let found = parts.filter_map(|(add, node)| Some((add, nodes.get(*node).ok()?.attr)));
        found.fold(After::NONE, |after, (add, attr)| add(after, attr))
    }

    /// Returns the quota for a change by this caller.
    fn limit(&self, request: &Request) -> Limit {
        Limit(self.0.options.quota.filter(|_| !request.privileged))
    }

    /// Answers one request, with its hooks around it. The store is not locked while a hook runs. `answer` must not read an
    /// inode: on the simulated machine (`lab/twins/testkit`) another thread could run at that access, and block on the mutex.
    fn serve<T>(&self, call: Call<'_>, answer: impl FnOnce(&mut Nodes) -> Result<T, Errno>) -> Result<T, Errno> {
        self.0.before.run(&call)?;
        let answer = answer(&mut self.nodes());
        self.0.after.run(&call)?;
        answer
    }
}

/// The return value of a change for one file: its part in [`After`], and its number.
type Part = (fn(After, Attr) -> After, u64);

/// Moves the node of `old` to the name `new`, where `target` is, or exchanges the two: `ENOENT`, `ESTALE`, `ENOTEMPTY`.
fn rename(
    nodes: &mut Nodes,
    (from, old, node): (u64, &[u8], u64),
    (to, new, target): (u64, &[u8], Option<u64>),
    exchanges: bool,
) -> Result<(), Errno> {
    nodes.check(from, old, node)?;
    if let Some(target) = target {
        nodes.check(to, new, target)?;
        if !exchanges {
            nodes.check_empty(target)?;
        }
    }
    nodes.remove(from, old);
    if let (Some(target), true) = (target, exchanges) {
        nodes.remove(to, new);
        nodes.enter(from, old, target);
    }
    nodes.enter(to, new, node);
    Ok(())
}

/// Returns the id of a file: its number, which no other file ever has.
fn id_of(node: u64) -> FileId {
    FileId::new(&node.to_le_bytes()).expect("eight bytes")
}

/// Returns the number in an id: `ESTALE`.
fn node_of(id: &FileId) -> Result<u64, Errno> {
    id.as_bytes().try_into().map(u64::from_le_bytes).map_err(|_| Errno::ESTALE)
}

impl FileSystem for Store {
    fn root(&self) -> NewInode {
        self.nodes().new_inode(ROOT, self.0.options.valid).unwrap_or_default()
    }

    fn traits(&self) -> FsTraits {
        let options = &self.0.options;
        FsTraits {
            type_name: "store".into(),
            names: match options.names_in_cache {
                true => NameStore::Cache(CachedNames::default()),
                false => NameStore::FileSystem(OwnNames {
                    valid: options.valid,
                    keeps_listings: options.keeps_listings,
                    remote: options.remote,
                    attributes: match options.reports_attributes {
                        true => Attributes::FileSystem { with_changes: options.returns_attributes },
                        false => Attributes::Cache,
                    },
                    ..OwnNames::default()
                }),
            },
            opens: Opens::Yes { flush: false },
            acls: true,
            ..FsTraits::default()
        }
    }

    fn mounted(&self, invalidator: Invalidator) {
        // The first tree's: each later one has another invalidator.
        let _ = self.0.invalidator.set(invalidator);
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        let parent = dir.node();
        self.count_lookup(parent, name);
        let StoreOptions { answers_ahead, valid, .. } = self.0.options;
        self.serve(Call::Lookup { dir, name }, |nodes| {
            let first = nodes.find(parent, name)?;
            let mut at = first;
            for name in next.names().take_while(|_| answers_ahead) {
                let Ok(found) = nodes.find(at, name) else {
                    next.absent();
                    break;
                };
                next.found(nodes.new_inode(found, valid)?);
                at = found;
            }
            nodes.new_inode(first, valid)
        })
    }

    fn id(&self, inode: &Inode) -> Option<FileId> {
        Some(id_of(inode.node()))
    }

    fn by_id(&self, _: &Request, id: &FileId) -> Result<NewInode, Errno> {
        let valid = self.0.options.valid;
        let node = node_of(id)?;
        self.serve(Call::ById { node }, |nodes| nodes.by_id(node, valid))
    }

    fn parent(&self, _: &Request, id: &FileId) -> Result<(FileId, Box<[u8]>), Errno> {
        let node = node_of(id)?;
        self.serve(Call::Parent { node }, |nodes| {
            let (dir, name) = nodes.name_of(node)?;
            Ok((id_of(dir), name.into()))
        })
    }

    fn read_link(&self, _: &Request, inode: &Inode) -> Result<Box<[u8]>, Errno> {
        let node = inode.node();
        let new = self.nodes().new_inode(node, Valid::default())?;
        new.link_body.ok_or(Errno::EINVAL)
    }

    fn read_dir(
        &self,
        _: &Request,
        dir: &Open<'_>,
        after: u64,
        want: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        let dir = dir.inode;
        let parent = dir.node();
        let StoreOptions { lists_attributes, valid, .. } = self.0.options;
        let listed = self.serve(Call::ReadDir { dir, want }, |nodes| {
            let listed = nodes.list(parent, after).into_iter();
            let inode = |node| nodes.new_inode(node, valid).ok().filter(|_| want.attributes && lists_attributes);
            Ok(listed.map(|(entry, cookie)| Listed { inode: inode(entry.ino), entry, cookie }).collect::<Vec<_>>())
        })?;
        let _ = listed.into_iter().all(emit);
        Ok(())
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        let (parent, limit) = (dir.node(), self.limit(request));
        self.serve(Call::Create { dir, name }, |nodes| {
            if name.is_some_and(|name| nodes.find(parent, name).is_ok()) {
                return Err(Errno::EEXIST);
            }
            limit.check_new(nodes, new)?;
            new.attr.ino = nodes.create(new);
            new.xattrs_stored();
            if let Some(name) = name {
                nodes.enter(parent, name, new.attr.ino);
                nodes.touch(parent, request.now());
                new.after = self.returned(nodes, &[(After::dir, parent)]);
            }
            Ok(new.attr.ino)
        })
    }

    fn link(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let (parent, node) = (dir.node(), inode.node());
        self.serve(Call::Link { dir, name, inode }, |nodes| {
            if nodes.find(parent, name).is_ok() {
                return Err(Errno::EEXIST);
            }
            nodes.get_mut(node)?.attr.ctime = request.now();
            nodes.enter(parent, name, node);
            nodes.touch(parent, request.now());
            Ok(self.returned(nodes, &[(After::file, node), (After::dir, parent)]))
        })
    }

    fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let (parent, node) = (dir.node(), inode.node());
        self.serve(Call::Unlink { dir, name, inode }, |nodes| {
            nodes.check(parent, name, node)?;
            nodes.check_empty(node)?;
            nodes.remove(parent, name);
            nodes.touch(parent, request.now());
            Ok(self.returned(nodes, &[(After::file, node), (After::dir, parent)]))
        })
    }

    fn rename(&self, request: &Request, moved: &Rename<'_>) -> Result<After, Errno> {
        let Rename { old_dir, old_name, new_dir, new_name, inode, target, flags } = *moved;
        let (from, to, node, target) = (old_dir.node(), new_dir.node(), inode.node(), target.map(Inode::node));
        self.serve(Call::Rename(moved), |nodes| {
            let exchanges = flags.contains(RenameFlags::EXCHANGE);
            rename(nodes, (from, old_name, node), (to, new_name, target), exchanges)?;
            nodes.touch(from, request.now());
            nodes.touch(to, request.now());
            // No file has the number 0.
            let target = target.unwrap_or(0);
            let parts: [Part; 4] =
                [(After::file, node), (After::dir, from), (After::new_dir, to), (After::target, target)];
            Ok(self.returned(nodes, &parts))
        })
    }

    fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
        let (node, limit) = (inode.node(), self.limit(request));
        self.serve(Call::SetAttr { inode, set }, |nodes| {
            set.uid.map_or(Ok(()), |user| limit.check_owner(nodes, node, user))?;
            nodes.get_mut(node)?.set_attr(set, request.now());
            Ok(self.returned(nodes, &[(After::file, node)]))
        })
    }

    fn attributes(&self, _: &Request, inode: &Inode) -> Result<Attr, Errno> {
        let node = inode.node();
        self.serve(Call::Attributes { inode }, |nodes| Ok(nodes.get(node)?.attr))
    }

    fn open(&self, _: &Request, inode: &Inode, flags: OpenFlags) -> Result<Opened, Errno> {
        self.serve(Call::Open { inode, flags }, |_| Ok(Opened::default()))
    }

    fn release(&self, file: Open<'_>) {
        let _ = self.serve(Call::Release { inode: file.inode, flags: file.flags }, |_| Ok(()));
    }

    fn read(&self, _: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let node = file.inode.node();
        self.serve(Call::Read { inode: file.inode }, |nodes| Ok(nodes.get(node)?.read(offset, buf)))
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        let (node, limit) = (file.inode.node(), self.limit(request));
        self.serve(Call::Write { inode: file.inode, at }, |nodes| {
            let most = limit.most(nodes, node)?;
            let file = nodes.get_mut(node)?;
            let offset = if let Position::At(offset) = at { offset } else { file.attr.size };
            let room = most.checked_sub(offset).filter(|&room| room > 0).ok_or(Errno::EDQUOT)?;
            let data = &data[..data.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
            let blocks = file.write(offset, data, request.now())?;
            let after = self.returned(nodes, &[(After::file, node)]);
            Ok(Written { end: Some(offset + data.len() as u64), after, ..Written::new(data.len(), blocks) })
        })
    }

    fn set_len(&self, request: &Request, inode: &Inode, len: u64) -> Result<(u64, After), Errno> {
        let node = inode.node();
        self.serve(Call::SetLen { inode, len }, |nodes| {
            let blocks = nodes.get_mut(node)?.set_len(len, request.now());
            Ok((blocks, self.returned(nodes, &[(After::file, node)])))
        })
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
        let (node, limit) = (file.inode.node(), self.limit(request));
        self.serve(Call::Allocate { inode: file.inode }, |nodes| {
            let most = limit.most(nodes, node)?;
            let node = nodes.get_mut(node)?;
            if how != Allocate::Reserve {
                node.zero(offset, len);
            } else if offset + len > most {
                return Err(Errno::EDQUOT);
            } else {
                node.reserve(offset + len)?;
            }
            if !keep_size {
                node.attr.size = node.attr.size.max(offset + len);
            }
            Ok(node.attr.blocks)
        })
    }

    fn sync(&self, _: &Request, file: &Open<'_>, _: bool) -> Result<(), Errno> {
        self.serve(Call::Sync { inode: file.inode }, |_| Ok(()))
    }

    fn get_xattr(&self, _: &Request, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        let node = inode.node();
        self.serve(Call::Xattr { inode }, |nodes| nodes.get(node)?.xattr(name))
    }

    fn set_xattr(&self, _: &Request, inode: &Inode, name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno> {
        let node = inode.node();
        self.serve(Call::Xattr { inode }, |nodes| nodes.get_mut(node)?.set_xattr(name, value, how))
    }

    fn remove_xattr(&self, _: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        let node = inode.node();
        self.serve(Call::Xattr { inode }, |nodes| nodes.get_mut(node)?.remove_xattr(name))
    }

    fn list_xattrs(&self, _: &Request, inode: &Inode) -> Result<Vec<Box<[u8]>>, Errno> {
        let node = inode.node();
        self.serve(Call::Xattr { inode }, |nodes| Ok(nodes.get(node)?.xattr_names()))
    }

    fn evict(&self, inode: &Inode) {
        let node = inode.node();
        let _ = self.serve(Call::Evict { inode }, |nodes| {
            nodes.evict(node);
            Ok(())
        });
    }
}
