//! The operations of [`Process`] on a tree: the work of the system calls around the era's own
//! steps, for all eras.
//!
//! # How it is locked
//! A change or listing of a directory holds the directory's mutex. Removal or replacement of a file
//! also holds the file's mutex. A rename between directories holds [`Tree::renaming`], so that no
//! directory becomes an ancestor of another meanwhile. It locks the ancestor first; of two
//! unrelated directories it locks the source first, which [`Tree::renaming`] makes safe.
//!
//! # Source
//! `fs/namei.c`; the order of checks is Linux's, see `crates/lightfoot/tests/it/kernel.rs`.

use super::Tree;
use super::dentry::{Dentry, UNHASHED};
use super::fs_struct::{FsStruct, ROOT};
use super::global_lock::GlobalGuard;
use super::mount::Mounts;
use super::name::Name;
use super::scheme::{Move, Scheme};
use super::verify::verify;
use crate::era::{Attributes, Era, Error, FileSystemStatus, Handle, HandleOf, Process, Result};
use crate::options::Options;
use crate::path::{Last, Route};
use locks::lockstat::Class;
use prim::preempt;
use prim::profile::{Scope, Tag, scope};
use sync::{LockGuard, MutexGuard, RawLock, TasLock};

/// Makes an era of a scheme, for the catalogue.
pub(crate) fn make<S: Scheme>(options: &Options) -> Box<dyn Era> {
    Box::new(Tree::<S>::new(options))
}

/// The border of the kernel: system time, on a CPU that is not taken away, and the locks that the
/// era holds during each operation.
///
/// The kernels that the eras re-create were built without preemption where figures were published: a thread lost its CPU
/// in its own code or when it slept, never with a spinlock held.
struct SystemCall<'t> {
    _held: Option<GlobalGuard<'t, TasLock>>,
    _section: preempt::Off,
    _time: Scope,
}

impl<S: Scheme> Tree<S> {
    fn system_call(&self) -> SystemCall<'_> {
        let (_time, _section) = (scope(Tag::Kernel), preempt::off());
        SystemCall { _held: self.scheme.enter(), _section, _time }
    }
}

/// A process of an era: a place in a tree.
struct Seat<'t, S: Scheme> {
    tree: &'t Tree<S>,
    fs: FsStruct,
}

impl<S: Scheme> Era for Tree<S> {
    fn process(&self) -> Box<dyn Process + '_> {
        let _section = self.system_call();
        let seat = Seat { tree: self, fs: FsStruct::new() };
        // One for the root, one for the working directory.
        for _ in 0..2 {
            let start = S::start(self, &seat.fs, true);
            debug_assert_eq!(start, ROOT);
        }
        Box::new(seat)
    }

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class)) {
        self.scheme.visit_locks(visit);
        self.mounts.visit_locks(visit);
        visit(&self.wait_lock);
    }

    fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        let stats = prim::uncharged(|| self.semaphore_stats());
        visit("queued_readers", stats.queued_readers);
        visit("slow_readers", stats.slow_readers);
        visit("early_exits", stats.early_exits);
        visit("queued_writers", stats.queued_writers);
        visit("lost_writers", stats.lost_writers);
        prim::uncharged(|| S::visit_counters(self, visit));
    }

    fn verify(&self) -> core::result::Result<(), String> {
        verify(self)
    }
}

impl<S: Scheme> Drop for Seat<'_, S> {
    fn drop(&mut self) {
        let _section = self.tree.system_call();
        let directory = self.fs.change_directory(ROOT);
        self.release(directory);
        self.release(ROOT);
    }
}

impl<S: Scheme> Process for Seat<'_, S> {
    fn change_directory(&self, path: &[u8]) -> Result<()> {
        let _section = self.tree.system_call();
        let directory = self.walk(path)?;
        if !self.tree.inode(directory).is_directory() {
            self.release(directory);
            return Err(Error::NotDirectory);
        }
        let before = self.fs.change_directory(directory);
        self.release(before);
        Ok(())
    }

    fn stat(&self, path: &[u8]) -> Result<Attributes> {
        let _section = self.tree.system_call();
        let at = self.walk(path)?;
        let inode = self.tree.inode(at);
        let attributes =
            Attributes { inode: u64::from(at) + 1, is_directory: inode.is_directory(), links: inode.links() };
        self.release(at);
        prim::cost(self.tree.options.stat_ns);
        Ok(attributes)
    }

    fn open(&self, path: &[u8]) -> Result<Handle> {
        let _section = self.tree.system_call();
        let at = self.walk(path)?;
        Ok(self.opened(at))
    }

    fn create(&self, path: &[u8]) -> Result<Handle> {
        let _section = self.tree.system_call();
        let (dir, last) = self.walk_to_parent(path)?;
        let made = if last.name.is_some() && last.is_directory {
            Err(Error::IsDirectory)
        } else {
            self.tree.make(dir, &last, false)
        };
        match made {
            // The mount that came with the directory stays with the file.
            Ok(file) => {
                S::put(self.tree, dir);
                Ok(self.opened(file))
            }
            Err(error) => {
                self.release(dir);
                Err(error)
            }
        }
    }

    fn close(&self, handle: Handle) {
        let _section = self.tree.system_call();
        if let Ok(file) = entry_of(&handle) {
            S::file_changed(self.tree, false);
            prim::cost(self.tree.options.open_ns);
            self.release(file);
        }
    }

    fn make_directory(&self, path: &[u8]) -> Result<()> {
        let _section = self.tree.system_call();
        let (dir, last) = self.walk_to_parent(path)?;
        let made = self.tree.make(dir, &last, true);
        if let Ok(made) = made {
            S::put(self.tree, made);
        }
        self.release(dir);
        made.map(drop)
    }

    fn unlink(&self, path: &[u8]) -> Result<()> {
        let _section = self.tree.system_call();
        let (dir, last) = self.walk_to_parent(path)?;
        let done = self.tree.remove(dir, &last);
        self.release(dir);
        done
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let _section = self.tree.system_call();
        let (from, from_last) = self.walk_to_parent(from)?;
        let done = self.walk_to_parent(to).and_then(|(to, to_last)| {
            let done = self.tree.rename(from, &from_last, to, &to_last);
            self.release(to);
            done
        });
        self.release(from);
        done
    }

    fn list(&self, path: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut names = Vec::new();
        {
            let _section = self.tree.system_call();
            let dir = self.walk(path)?;
            let listed = self.tree.names_in(dir, &mut names);
            self.release(dir);
            listed?;
        }
        names.iter().for_each(|name: &Vec<u8>| visit(name));
        Ok(())
    }

    fn reverse_path(&self, handle: &Handle, path: &mut Vec<u8>) -> Result<()> {
        let _section = self.tree.system_call();
        S::reverse_path(self.tree, &self.fs, entry_of(handle)?, path);
        Ok(())
    }

    fn hold_parent(&self, handle: &Handle, work_ns: u64) -> Result<()> {
        let file = entry_of(handle)?;
        let parent = {
            let _section = self.tree.system_call();
            let _caller = prim::lockstat::caller("dget_parent");
            S::parent(self.tree, file)
        };
        prim::cost(work_ns);
        let _section = self.tree.system_call();
        S::put(self.tree, parent);
        Ok(())
    }

    fn status(&self, path: &[u8]) -> Result<FileSystemStatus> {
        let tree = self.tree;
        let _section = tree.system_call();
        let at = self.walk(path)?;
        self.release(at);
        let mut line = Vec::new();
        let is_read_only = if S::LISTS_MOUNTS {
            tree.mount_list.is_read_only_by_list(|mounted| {
                S::reverse_path(tree, &self.fs, mounted, &mut line);
                prim::cost(tree.options.mount_ns);
            })
        } else {
            tree.mount_list.is_read_only()
        };
        Ok(FileSystemStatus { files: tree.files(), is_read_only })
    }

    fn mount(&self, path: &[u8]) -> Result<()> {
        let _section = self.tree.system_call();
        let at = self.walk(path)?;
        // The mount keeps the reference.
        self.tree.mount_on(at).inspect_err(|_| self.release(at))
    }

    fn unmount(&self, path: &[u8]) -> Result<()> {
        let _section = self.tree.system_call();
        let at = self.walk(path)?;
        let done = self.tree.unmount_from(at).inspect(|()| self.release(at));
        self.release(at);
        done
    }

    fn read(&self, handle: &Handle, work_ns: u64) -> Result<()> {
        let inode = self.tree.inode(entry_of(handle)?);
        if inode.is_directory() {
            return Err(Error::IsDirectory);
        }
        let _held = inode.semaphore.read();
        prim::cost(work_ns);
        Ok(())
    }

    fn write(&self, handle: &Handle, work_ns: u64) -> Result<()> {
        let inode = self.tree.inode(entry_of(handle)?);
        if inode.is_directory() {
            return Err(Error::IsDirectory);
        }
        let _held = inode.semaphore.write();
        prim::cost(work_ns);
        Ok(())
    }
}

impl<S: Scheme> Seat<'_, S> {
    fn walk(&self, path: &[u8]) -> Result<u32> {
        S::walk(self.tree, &self.fs, &Route::whole(path)?)
    }

    fn walk_to_parent<'p>(&self, path: &'p [u8]) -> Result<(u32, Last<'p>)> {
        let (route, last) = Route::to_parent(path)?;
        Ok((S::walk(self.tree, &self.fs, &route)?, last))
    }

    /// `path_put`: returns the references of a walk.
    fn release(&self, entry: u32) {
        S::put(self.tree, entry);
        self.tree.mounts.put();
    }

    fn opened(&self, entry: u32) -> Handle {
        S::file_changed(self.tree, true);
        prim::cost(self.tree.options.open_ns);
        Handle(HandleOf::Entry(entry))
    }
}

fn entry_of(handle: &Handle) -> Result<u32> {
    match handle.0 {
        HandleOf::Entry(entry) => Ok(entry),
        HandleOf::Lightfoot(_) => Err(Error::Unsupported),
    }
}

impl<S: Scheme> Tree<S> {
    /// `ENOENT` for a directory that was removed; its mutex is held.
    fn check_alive(&self, dir: u32) -> Result<()> {
        if self.entry(dir).has(UNHASHED) { Err(Error::NoEntry) } else { Ok(()) }
    }

    /// Makes a file or a directory in the counted directory `dir`; it comes with one reference.
    fn make(&self, dir: u32, last: &Last<'_>, is_directory: bool) -> Result<u32> {
        let bytes = last.name.ok_or(Error::Exists)?;
        let _writer = self.mounts.want_write();
        let _mutex = self.inode(dir).lock();
        self.check_alive(dir)?;
        let name = Name::new(bytes)?;
        if let Some(there) = S::child(self, dir, &name) {
            S::put(self, there);
            return Err(Error::Exists);
        }
        let block = self.names.reserve(&name)?;
        let made = self.allocate().inspect_err(|_| self.names.give_back(block))?;
        self.prepare(made, dir, is_directory);
        self.place(made, dir, &name, block);
        prim::cost(self.options.create_ns);
        S::attach(self, dir, made);
        self.inode(dir).names_changed(1, is_directory.into());
        self.files_changed(1);
        Ok(made)
    }

    /// Removes a name, which must not be a directory's, from the counted directory `dir`.
    fn remove(&self, dir: u32, last: &Last<'_>) -> Result<()> {
        let bytes = last.name.ok_or(Error::IsDirectory)?;
        let _writer = self.mounts.want_write();
        let victim = {
            let _mutex = self.inode(dir).lock();
            self.check_alive(dir)?;
            let victim = S::child(self, dir, &Name::new(bytes)?).ok_or(Error::NoEntry)?;
            let inode = self.inode(victim);
            if inode.is_directory() || last.is_directory {
                let error = if inode.is_directory() { Error::IsDirectory } else { Error::NotDirectory };
                S::put(self, victim);
                return Err(error);
            }
            {
                let _victim = inode.lock();
                prim::cost(self.options.unlink_ns);
                S::detach(self, victim);
                inode.unlinked();
            }
            self.inode(dir).names_changed(-1, 0);
            victim
        };
        self.name_went(victim);
        S::put(self, victim);
        Ok(())
    }

    /// Ends the reference that a removed name has on its entry, and counts one file less.
    fn name_went(&self, entry: u32) {
        self.files_changed(-1);
        if self.options.is_pinned {
            S::put(self, entry);
        }
    }

    /// Moves a name from one counted directory to another, or in it.
    fn rename(&self, from: u32, from_last: &Last<'_>, to: u32, to_last: &Last<'_>) -> Result<()> {
        let (from_name, to_name) = (from_last.name.ok_or(Error::Invalid)?, to_last.name.ok_or(Error::Invalid)?);
        let is_directory = from_last.is_directory || to_last.is_directory;
        let _writer = self.mounts.want_write();
        let replaced = {
            let _locks = self.lock_two(from, to);
            self.check_alive(from)?;
            let entry = S::child(self, from, &Name::new(from_name)?).ok_or(Error::NoEntry)?;
            let moved = self.rename_entry((from, entry), to, to_name, is_directory);
            S::put(self, entry);
            moved?
        };
        if let Some(replaced) = replaced {
            self.name_went(replaced);
            S::put(self, replaced);
        }
        Ok(())
    }

    /// Moves `entry` of the locked directory `from`; returns the replaced entry, counted.
    fn rename_entry(&self, (from, entry): (u32, u32), to: u32, bytes: &[u8], is_slashed: bool) -> Result<Option<u32>> {
        self.check_alive(to)?;
        let name = Name::new(bytes)?;
        let there = S::child(self, to, &name);
        let checked = self.check_rename((from, entry), to, there, is_slashed);
        let is_same = there == Some(entry);
        let block = match checked {
            Ok(()) if !is_same => self.names.reserve(&name),
            other => other.map(|()| super::list::NONE),
        };
        if block.is_err() || is_same {
            there.into_iter().for_each(|there| S::put(self, there));
            return block.map(|_| None);
        }
        let block = block?;
        let is_directory = self.inode(entry).is_directory();
        let _replaced = match there {
            Some(there) => match self.lock_replaced(there, is_directory) {
                Ok(held) => Some(held),
                Err(error) => {
                    self.names.give_back(block);
                    S::put(self, there);
                    return Err(error);
                }
            },
            None => None,
        };
        prim::cost(self.options.create_ns);
        S::relocate(self, &Move { entry, from, to, replaced: there, name, block });
        there.into_iter().for_each(|there| self.inode(there).unlinked());
        self.inode(from).names_changed(-1, -i32::from(is_directory));
        self.inode(to).names_changed(i32::from(there.is_none()), i32::from(is_directory && there.is_none()));
        Ok(there)
    }

    /// Fails if the move is forbidden. Does not check the contents of a directory that is replaced.
    fn check_rename(&self, (from, entry): (u32, u32), to: u32, there: Option<u32>, is_slashed: bool) -> Result<()> {
        let is_directory = self.inode(entry).is_directory();
        if !is_directory && is_slashed {
            return Err(Error::NotDirectory);
        }
        if from != to {
            if self.is_at_or_below(to, entry) {
                return Err(Error::Invalid);
            }
            if there.is_some_and(|there| self.is_at_or_below(from, there)) {
                return Err(Error::NotEmpty);
            }
        }
        match there {
            Some(there) if there == entry => Ok(()),
            Some(there) if is_directory && !self.inode(there).is_directory() => Err(Error::NotDirectory),
            Some(there) if !is_directory && self.inode(there).is_directory() => Err(Error::IsDirectory),
            _ => Ok(()),
        }
    }

    /// Locks the entry that is about to be replaced; a directory must be empty.
    fn lock_replaced(&self, there: u32, is_directory: bool) -> Result<LockGuard<'_, S::Mutex, ()>> {
        let held = self.inode(there).lock();
        let is_empty = !is_directory || S::with_children(self, there, || self.next_child(there, None)).is_none();
        if is_empty { Ok(held) } else { Err(Error::NotEmpty) }
    }

    /// Locks one directory or two: see the [module documentation](self).
    fn lock_two(&self, from: u32, to: u32) -> Locks<'_, S::Mutex> {
        if from == to {
            return Locks { _inner: None, _outer: self.inode(from).lock(), _renaming: None };
        }
        let renaming = self.renaming.lock();
        let (first, second) = if self.is_at_or_below(from, to) { (to, from) } else { (from, to) };
        let outer = self.inode(first).lock();
        Locks { _inner: Some(self.inode(second).lock()), _outer: outer, _renaming: Some(renaming) }
    }

    /// Returns whether `number` is `above` or is below it. The caller must hold `renaming`.
    fn is_at_or_below(&self, mut number: u32, above: u32) -> bool {
        while number != above && number != ROOT {
            number = self.entry(number).parent();
        }
        number == above
    }

    /// Adds the names in the counted entry `dir` to `names`.
    fn names_in(&self, dir: u32, names: &mut Vec<Vec<u8>>) -> Result<()> {
        if !self.inode(dir).is_directory() {
            return Err(Error::NotDirectory);
        }
        let _mutex = self.inode(dir).lock();
        // Under the mutex a child that has a name keeps it, so the place in the list stays good between two holds.
        let mut last = None;
        loop {
            let mut name = Vec::new();
            last = S::with_children(self, dir, || {
                let next = self.next_child(dir, last);
                next.inspect(|&child| S::with_child(self, child, || self.copy_name(child, &mut name)))
            });
            if last.is_none() {
                return Ok(());
            }
            names.push(name);
        }
    }
}

/// The mutexes of one directory or of two. Fields are dropped in this order.
struct Locks<'t, M: RawLock> {
    _inner: Option<LockGuard<'t, M, ()>>,
    _outer: LockGuard<'t, M, ()>,
    _renaming: Option<MutexGuard<'t, ()>>,
}
