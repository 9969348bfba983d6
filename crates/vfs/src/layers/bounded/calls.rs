//! The methods of a bounded file system: each copies its arguments, and has a rule for a late
//! answer.
//!
//! As [`FileSystem`].

use super::held::{OpenHandle, OpenedInside, late_error};
use super::{Bounded, Call, Late};
use crate::base::access::credentials::Credentials;
use crate::base::attr::{Attr, SetAttr};
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, OpenFlags};
use crate::cache::budget::SlotKind;
use crate::fs::invalidator::Invalidator;
use crate::fs::layer::Layer;
use crate::fs::{
    After, Allocate, Copying, FileId, FileSystem, FsTraits, Listed, NameStore, NewInode, NewNode, NextNames, Open,
    Opened, Position, Rename, Request, SeekFor, SetXattr, StatFs, Want, Written,
};
use crate::slots::inode::Inode;
use sync::Mutex;

/// The most entries of a listing that are collected before the caller gets them.
const ENTRIES: usize = 1024;

type Bytes = Box<[u8]>;

impl<F: FileSystem + ?Sized> Layer for Bounded<F> {
    type Inner = F;

    fn inner(&self) -> &F {
        &self.inner
    }

    fn traits(&self) -> FsTraits {
        let mut traits = self.inner.traits();
        if let NameStore::FileSystem(own) = &mut traits.names {
            own.remote = true;
        }
        FsTraits { is_cancellable: true, ..traits }
    }

    fn mounted(&self, invalidator: Invalidator) {
        *self.mounted.lock() = Some(invalidator.clone());
        self.inner.mounted(invalidator);
    }

    fn lookup(&self, request: &Request, dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        let call = self.asking(request)?;
        let args = (call.keep(dir), Bytes::from(name), Bytes::from(next.path()));
        let (found, answers) = call.ask(args, |fs, request, (dir, name, path)| {
            let mut next = NextNames::of(path);
            let found = fs.lookup(request, dir, name, &mut next);
            Ok((found, next.answers))
        })?;
        next.extend(answers);
        found
    }

    fn lookup_many(
        &self,
        request: &Request,
        wanted: &[(&Inode, &[u8])],
        found: &mut dyn FnMut(usize, Result<NewInode, Errno>),
    ) {
        let answers = self.asking(request).and_then(|call| {
            let args: Vec<_> = wanted.iter().map(|&(dir, name)| (call.keep(dir), Bytes::from(name))).collect();
            call.ask(args, |fs, request, wanted| {
                let wanted: Vec<(&Inode, &[u8])> = wanted.iter().map(|(dir, name)| (&**dir, &**name)).collect();
                let mut answers = Vec::new();
                fs.lookup_many(request, &wanted, &mut |place, answer| answers.push((place, answer)));
                Ok(answers)
            })
        });
        match answers {
            Ok(answers) => answers.into_iter().for_each(|(place, answer)| found(place, answer)),
            Err(errno) => (0..wanted.len()).for_each(|place| found(place, Err(errno))),
        }
    }

    fn revalidate(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<NewInode, Errno> {
        let call = self.asking(request)?;
        let args = (call.keep(dir), Bytes::from(name), call.keep(inode));
        call.ask(args, |fs, request, (dir, name, inode)| fs.revalidate(request, dir, name, inode))
    }

    fn by_id(&self, request: &Request, id: &FileId) -> Result<NewInode, Errno> {
        let call = self.asking(request)?;
        call.ask(*id, |fs, request, id| fs.by_id(request, id))
    }

    fn parent(&self, request: &Request, id: &FileId) -> Result<(FileId, Bytes), Errno> {
        let call = self.asking(request)?;
        call.ask(*id, |fs, request, id| fs.parent(request, id))
    }

    fn read_link(&self, request: &Request, inode: &Inode) -> Result<Bytes, Errno> {
        let call = self.asking(request)?;
        call.ask(call.keep(inode), |fs, request, inode| fs.read_link(request, inode))
    }

    fn read_dir(
        &self,
        request: &Request,
        dir: &Open<'_>,
        mut after: u64,
        want: Want,
        emit: &mut dyn FnMut(Listed) -> bool,
    ) -> Result<(), Errno> {
        loop {
            let call = self.asking(request)?;
            let args = (call.keep_open(dir), after, want);
            let (listed, is_all) = call.ask(args, |fs, request, (dir, after, want)| {
                let (mut listed, mut is_all) = (Vec::new(), true);
                fs.read_dir(request, &dir.get(), *after, *want, &mut |entry| {
                    listed.push(entry);
                    is_all = listed.len() < ENTRIES;
                    is_all
                })?;
                Ok((listed, is_all))
            })?;
            for entry in listed {
                after = entry.cookie;
                if !emit(entry) {
                    return Ok(());
                }
            }
            if is_all {
                return Ok(());
            }
        }
    }

    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        let call = self.changing(request)?;
        let made = call.run(
            (call.keep(dir), name.map(Bytes::from), new.keep()),
            |fs, request, (dir, name, new)| new.lend(|new| fs.create(request, dir, name.as_deref(), new)),
            |late, (dir, name, _), made| match (name, made) {
                (Some(name), _) => late.entry(dir, name),
                (None, Ok(made)) => late.evict(made.node, made.attr),
                (None, Err(_)) => {}
            },
        );
        Ok(new.learn(made?))
    }

    fn link(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let call = self.changing(request)?;
        call.run(
            (call.keep(dir), Bytes::from(name), call.keep(inode)),
            |fs, request, (dir, name, inode)| fs.link(request, dir, name, inode),
            |late, (dir, name, inode), _| {
                late.entry(dir, name);
                late.inode(inode);
            },
        )
    }

    fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
        let call = self.changing(request)?;
        call.run(
            (call.keep(dir), Bytes::from(name), call.keep(inode)),
            |fs, request, (dir, name, inode)| fs.unlink(request, dir, name, inode),
            |late, (dir, name, inode), _| {
                late.entry(dir, name);
                late.inode(inode);
            },
        )
    }

    fn rename(&self, request: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
        let call = self.changing(request)?;
        let inodes = [rename.old_dir, rename.new_dir, rename.inode].map(|inode| call.keep(inode));
        let names = [rename.old_name, rename.new_name].map(Bytes::from);
        call.run(
            (inodes, names, rename.target.map(|target| call.keep(target)), rename.flags),
            |fs, request, ([old_dir, new_dir, inode], [old_name, new_name], target, flags)| {
                fs.rename(
                    request,
                    &Rename { old_dir, old_name, new_dir, new_name, inode, target: target.as_deref(), flags: *flags },
                )
            },
            |late, ([old_dir, new_dir, inode], [old_name, new_name], target, _), _| {
                late.entry(old_dir, old_name);
                late.entry(new_dir, new_name);
                late.inode(inode);
                target.iter().for_each(|target| late.inode(target));
            },
        )
    }

    fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
        let call = self.changing(request)?;
        let args = (call.keep(inode), *set);
        call.run(
            args,
            |fs, request, (inode, set)| fs.set_attr(request, inode, set),
            |late, (inode, _), _| late.inode(inode),
        )
    }

    fn attributes(&self, request: &Request, inode: &Inode) -> Result<Attr, Errno> {
        let call = self.asking(request)?;
        call.ask(call.keep(inode), |fs, request, inode| fs.attributes(request, inode))
    }

    fn birth(&self, request: &Request, inode: &Inode) -> Result<Option<i64>, Errno> {
        let call = self.asking(request)?;
        call.ask(call.keep(inode), |fs, request, inode| fs.birth(request, inode))
    }

    fn open(&self, request: &Request, inode: &Inode, flags: OpenFlags) -> Result<Opened, Errno> {
        let call = self.asking(request)?;
        let opened = call.run(
            (call.keep(inode), flags),
            |fs, request, (inode, flags)| fs.open(request, inode, *flags),
            |late, (inode, flags), opened| {
                if let Ok(opened) = opened {
                    late.fs.release(Open { inode, flags: *flags, state: &opened.state });
                }
            },
        )?;
        // A kernel would read and write the host file without a deadline.
        Ok(Opened { state: OpenedInside::state(opened.state), backing: None, ..opened })
    }

    fn release(&self, file: Open<'_>) {
        let Some(opened) = file.state.get::<OpenedInside>() else { return };
        let nobody = Credentials::root();
        let Ok(call) = self.asking(&Request::of(&nobody)) else { return };
        let kept = call.keep_open(&file);
        // The use by the VFS. The other one releases the open, unless a late call is about it still.
        drop(opened.leave());
        let end = |_: &F, _: &Request, kept: &Mutex<Option<OpenHandle<F>>>| {
            let kept = kept.lock().take();
            drop(kept);
            Ok(())
        };
        let _ = Call { must_run: true, ..call }.run(Mutex::new(Some(kept)), end, |_, _, _| {});
    }

    fn read(&self, request: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let call = self.asking(request)?;
        let args = (call.keep_open(file), offset, buf.len());
        let data = call.ask(args, |fs, request, (file, offset, len)| {
            let mut data = vec![0; *len];
            let len = fs.read(request, &file.get(), *offset, &mut data)?;
            data.truncate(len);
            Ok(data)
        })?;
        buf[..data.len()].copy_from_slice(&data);
        Ok(data.len())
    }

    fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
        let call = self.changing(request)?;
        let args = (call.keep_open(file), at, Bytes::from(data));
        call.run(
            args,
            |fs, request, (file, at, data)| fs.write(request, &file.get(), *at, data),
            |late, (file, ..), _| late.inode(file.get().inode),
        )
    }

    fn copy_range(
        &self,
        request: &Request,
        from: (&Open<'_>, u64),
        to: (&Open<'_>, u64),
        len: u64,
        how: Copying,
    ) -> Result<Written, Errno> {
        let call = self.begin(request, None, true)?;
        let args = (call.keep_open(from.0), from.1, call.keep_open(to.0), to.1, (len, how));
        call.run(
            args,
            |fs, request, (from, from_at, to, to_at, (len, how))| {
                fs.copy_range(request, (&from.get(), *from_at), (&to.get(), *to_at), *len, *how)
            },
            |late, (_, _, to, ..), _| late.inode(to.get().inode),
        )
    }

    fn set_len(&self, request: &Request, inode: &Inode, len: u64) -> Result<(u64, After), Errno> {
        let call = self.changing(request)?;
        let args = (call.keep(inode), len);
        call.run(
            args,
            |fs, request, (inode, len)| fs.set_len(request, inode, *len),
            |late, (inode, _), _| late.inode(inode),
        )
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
        let call = self.changing(request)?;
        let args = (call.keep_open(file), how, keep_size, offset, len);
        call.run(
            args,
            |fs, request, (file, how, keep_size, offset, len)| {
                fs.allocate(request, &file.get(), *how, *keep_size, *offset, *len)
            },
            |late, (file, ..), _| late.inode(file.get().inode),
        )
    }

    fn seek(&self, request: &Request, file: &Open<'_>, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        let call = self.asking(request)?;
        let args = (call.keep_open(file), offset, what);
        call.ask(args, |fs, request, (file, offset, what)| fs.seek(request, &file.get(), *offset, *what))
    }

    fn sync(&self, request: &Request, file: &Open<'_>, data_only: bool) -> Result<(), Errno> {
        let call = self.begin(request, None, false)?;
        let args = (call.keep_open(file), data_only);
        let work = |fs: &F, request: &Request, (file, data_only): &(OpenHandle<F>, bool)| {
            fs.sync(request, &file.get(), *data_only)
        };
        call.run(args, work, |_, (file, _), synced| file.note(synced)).and_then(|()| late_error(file))
    }

    fn flush(&self, request: &Request, file: &Open<'_>) -> Result<(), Errno> {
        let call = self.begin(request, None, false)?;
        let work = |fs: &F, request: &Request, file: &OpenHandle<F>| fs.flush(request, &file.get());
        call.run(call.keep_open(file), work, |_, file, flushed| file.note(flushed)).and_then(|()| late_error(file))
    }

    fn get_xattr(&self, request: &Request, inode: &Inode, name: &[u8]) -> Result<Bytes, Errno> {
        let call = self.asking(request)?;
        let args = (call.keep(inode), Bytes::from(name));
        call.ask(args, |fs, request, (inode, name)| fs.get_xattr(request, inode, name))
    }

    fn set_xattr(
        &self,
        request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        let call = self.changing(request)?;
        let args = (call.keep(inode), Bytes::from(name), Bytes::from(value), how);
        call.run(
            args,
            |fs, request, (inode, name, value, how)| fs.set_xattr(request, inode, name, value, *how),
            |late, (inode, ..), _| late.inode(inode),
        )
    }

    fn remove_xattr(&self, request: &Request, inode: &Inode, name: &[u8]) -> Result<(), Errno> {
        let call = self.changing(request)?;
        let args = (call.keep(inode), Bytes::from(name));
        call.run(
            args,
            |fs, request, (inode, name)| fs.remove_xattr(request, inode, name),
            |late, (inode, _), _| late.inode(inode),
        )
    }

    fn list_xattrs(&self, request: &Request, inode: &Inode) -> Result<Vec<Bytes>, Errno> {
        let call = self.asking(request)?;
        call.ask(call.keep(inode), |fs, request, inode| fs.list_xattrs(request, inode))
    }

    fn statfs(&self, request: &Request, inode: &Inode) -> Result<StatFs, Errno> {
        let call = self.asking(request)?;
        call.ask(call.keep(inode), |fs, request, inode| fs.statfs(request, inode))
    }

    fn inode_flags(&self, request: &Request, inode: &Inode) -> Result<InodeFlags, Errno> {
        let call = self.asking(request)?;
        call.ask(call.keep(inode), |fs, request, inode| fs.inode_flags(request, inode))
    }

    fn set_inode_flags(&self, request: &Request, inode: &Inode, flags: InodeFlags) -> Result<(), Errno> {
        let call = self.changing(request)?;
        let args = (call.keep(inode), flags);
        call.run(
            args,
            |fs, request, (inode, flags)| fs.set_inode_flags(request, inode, *flags),
            |late, (inode, _), _| late.inode(inode),
        )
    }
}

impl<F: FileSystem + ?Sized> Late<'_, F> {
    /// Ends a file that was created without a name and has no user: by the cache, which evicts it.
    fn evict(&self, node: u64, attr: Attr) {
        let new = NewInode { node, attr, ..NewInode::default() };
        let Ok(slot) = self.sb.slot(SlotKind::Entry) else { return };
        match self.sb.add_unnamed_unless_there(slot, &(&new).into()) {
            Ok(pinned) => self.sb.unpin(pinned),
            Err((slot, inode)) => {
                drop(slot);
                self.sb.put_inode(inode);
            }
        }
    }
}
