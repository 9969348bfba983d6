//! Misses: what a file system is asked, once for all who want to know it.
//!
//! # What it is
//! A name that is not cached, or no longer good, is asked of the file system by one thread (a *flight*); others that want the same
//! name wait for its answer, and different names of one directory are asked side by side. Who began to look after the directory
//! changed, or was said to have changed, does not wait for an answer from before: that is another flight. No lock of the cache is
//! held meanwhile. The answer is put into the cache under the directory's lock, unless the directory changed since it was
//! asked: then it is asked again.
//!
//! Operations that change a directory ask under its lock, since nobody may make the name meanwhile.
//!
//! # States of an asked name
//! ```text
//!            first asker                       file system answers
//!  unknown ---------------> in lookup (flight) -------------------> positive, negative: all askers look again
//!     ^                          |  |
//!     +---- directory changed ---+  +---- error: all askers get it; deadline: its asker gets ETIMEDOUT, the flight goes on
//! ```
//!
//! # How it is locked
//! Flights have locks of their own ([`sync::SingleFlight`]), held for no call. The directory's lock is taken twice, before and after.
//!
//! # Where it comes from
//! Linux's `d_alloc_parallel`, `d_revalidate`, `d_invalidate`; Go's `singleflight` for the hand-over.

use crate::cache::Kind;
use crate::context::Held;
use crate::dentry::{CHECKED, COMPLETE, DIR, Dentry, HASHED, INODE, MOUNTED};
use crate::errno::Errno;
use crate::fs::{NewInode, Request};
use crate::rank::{Locked, Rank};
use crate::slot::{Pinned, outlive};
use crate::superblock::SuperBlock;
use prim::atomic::{Ordering::SeqCst, fence};
use sync::single_flight::{Entry, Waited};

/// Answers that are thrown away since the directory changed meanwhile, before it is locked to get one.
const MOST_TRIES: u32 = 8;

/// What is asked: a name in the directory at an address, which had changed so often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Asked {
    dir: usize,
    version: u32,
    name: Box<[u8]>,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// The cache knows now.
    There,
    /// There is no such name.
    Absent,
    /// The directory changed meanwhile.
    Again,
    Failed(Errno),
}

/// What the cache says of a name.
enum Look {
    Positive(Pinned),
    Absent,
    /// Nothing that is good. The entry that was, if any; and how often the directory had changed.
    Unknown(Option<Pinned>, u32),
}

impl SuperBlock {
    /// The entry `name` of `dir`, which is one of this superblock's and held; a count is taken. Asks the file system if need be.
    ///
    /// # Errors
    /// `ENOENT` if the directory was removed; `ETIMEDOUT`; what the file system answers, but for `ENOENT` of the name, which is
    /// `None`.
    pub(crate) fn find_held(&self, dir: &Held, name: &[u8], request: &Request) -> Result<Option<Pinned>, Errno> {
        let hash = self.hash(name);
        let mut asked = false;
        let mut tries = 0;
        loop {
            let version = match self.look(dir.dentry(), name, hash, asked)? {
                Look::Positive(entry) => return Ok(Some(entry)),
                Look::Absent => return Ok(None),
                Look::Unknown(stale, version) => {
                    stale.into_iter().for_each(|stale| self.unpin(stale));
                    version
                }
            };
            match self.ask_together(dir, (name, hash), version, request) {
                // What was asked just now is taken even if it is good for no time at all.
                Answer::There => asked = true,
                // Changes, or pushes by the file system, may overtake each answer. Under the lock one is taken all the same.
                Answer::Again if tries == MOST_TRIES => {
                    let _held = self.lock_dir(dir.dentry())?;
                    let found = self.find_locked(|| *request, dir.dentry(), name, hash)?;
                    return Ok(found.and_then(|entry| self.pin(entry)));
                }
                Answer::Again => (asked, tries) = (false, tries + 1),
                Answer::Absent => return Ok(None),
                Answer::Failed(errno) => return Err(errno),
            }
        }
    }

    fn lock_dir<'d>(&'d self, dir: &'d Dentry) -> Result<Locked<'d>, Errno> {
        let held = self.ranks.lock(Rank::Directory, &dir.lock);
        if dir.has(HASHED) { Ok(held) } else { Err(Errno::ENOENT) }
    }

    fn look(&self, dir: &Dentry, name: &[u8], hash: u64, asked: bool) -> Result<Look, Errno> {
        let _held = self.lock_dir(dir)?;
        let version = self.versions.of(dir);
        Ok(match self.cached(dir, name, hash) {
            Some(entry) if (asked || is_good(entry)) && !is_positive(entry) => Look::Absent,
            Some(entry) => match self.pin(entry) {
                Some(pinned) if asked || is_good(entry) => Look::Positive(pinned),
                pinned => Look::Unknown(pinned, version),
            },
            None if dir.has(COMPLETE) => Look::Absent,
            None if self.fs_lists && self.listings.lacks(dir, version, name) => Look::Absent,
            None => Look::Unknown(None, version),
        })
    }

    #[cold]
    fn ask_together(&self, dir: &Held, (name, hash): (&[u8], u64), version: u32, request: &Request) -> Answer {
        let at = core::ptr::from_ref(dir.dentry()) as usize;
        let is = |asked: &Asked| asked.dir == at && asked.version == version && *asked.name == *name;
        let key = || Asked { dir: at, version, name: name.into() };
        let entered = self.flights.enter_with(hash ^ at as u64 >> 6, is, key);
        let waiter = match entered {
            Entry::Wait(waiter) => waiter,
            Entry::Lead(leader) if request.deadline.is_none() => {
                let answer = self.ask(dir.dentry(), name, hash, request);
                leader.finish(answer);
                return answer;
            }
            Entry::Lead(leader) => {
                // On a thread of its own, so that who asked can go when its time is over.
                let waiter = leader.waiter();
                let (dir, name, request) = (dir.clone(), Box::<[u8]>::from(name), *request);
                let work = move || {
                    let answer = dir.sb().ask(dir.dentry(), &name, hash, &request);
                    drop(dir);
                    leader.finish(answer);
                };
                if prim::thread::spawn("lightfoot-ask", work).is_none() {
                    return Answer::Failed(Errno::EAGAIN);
                }
                waiter
            }
        };
        match waiter.wait(request.deadline) {
            Waited::Done(answer) => answer,
            Waited::Abandoned => Answer::Again,
            Waited::TimedOut => Answer::Failed(Errno::ETIMEDOUT),
        }
    }

    /// Asks the file system for `name` in `dir`, which is held, and puts the answer into the cache.
    fn ask(&self, dir: &Dentry, name: &[u8], hash: u64, request: &Request) -> Answer {
        // Whoever asked before this flight began may have brought the answer.
        let (stale, version) = match self.look(dir, name, hash, false) {
            Err(errno) => return Answer::Failed(errno),
            Ok(Look::Absent) => return Answer::Absent,
            Ok(Look::Positive(entry)) => {
                self.unpin(entry);
                return Answer::There;
            }
            Ok(Look::Unknown(stale, version)) => (stale, version),
        };
        let pushes = self.pushes();
        let told = self.tell(dir, name, stale.as_ref().map(Pinned::get), request);
        let answer = match self.lock_dir(dir) {
            Err(errno) => Answer::Failed(errno),
            Ok(_held) if self.versions.of(dir) != version => Answer::Again,
            Ok(_held) => {
                let answer = self.settle(dir, name, hash, told);
                self.doubt_if_pushed(pushes, self.cached(dir, name, hash));
                answer
            }
        };
        stale.into_iter().for_each(|stale| self.unpin(stale));
        answer
    }

    /// What the file system says of a name; of one that was there, whether it still is.
    fn tell(&self, dir: &Dentry, name: &[u8], stale: Option<&Dentry>, request: &Request) -> Result<NewInode, Errno> {
        let inode = dir.inode().ok_or(Errno::ENOENT)?;
        if let Some(old) = stale.and_then(Dentry::inode) {
            match self.fs.revalidate(request, inode, name, old) {
                Err(Errno::ENOENT | Errno::ESTALE) => {}
                told => return told,
            }
        }
        self.fs.lookup(request, inode, name)
    }

    /// Puts what the file system told of a name into the cache of the locked directory.
    fn settle(&self, dir: &Dentry, name: &[u8], hash: u64, told: Result<NewInode, Errno>) -> Answer {
        let new = match told {
            Ok(new) => Some(new),
            Err(Errno::ENOENT) => None,
            Err(errno) => return Answer::Failed(errno),
        };
        if let Some(old) = self.cached(dir, name, hash) {
            let stays = match (&new, old.inode()) {
                (Some(new), Some(inode)) => inode.node() == new.node && inode.attr().kind() == new.attr.kind(),
                _ => false,
            };
            if let Some(new) = new.as_ref().filter(|_| stays) {
                self.refresh(old, new);
                return Answer::There;
            }
            if !self.prune(dir, old, hash) {
                return Answer::There;
            }
        }
        match new {
            Some(new) => match self.insert(dir, name, hash, &new) {
                Ok(_) => Answer::There,
                Err(errno) => Answer::Failed(errno),
            },
            None => {
                self.add_negative(dir, name, hash, self.default_valid);
                Answer::Absent
            }
        }
    }

    /// Adds a name that the file system told of: of an inode that is known by its node, or of a new one.
    ///
    /// # Errors
    /// `ENOMEM`: the budget is used up, and all of it is held.
    fn insert(&self, dir: &Dentry, name: &[u8], hash: u64, new: &NewInode) -> Result<&Dentry, Errno> {
        let slot = self.slot(Kind::Entry, Some(dir))?;
        let mut slot = Some(slot);
        let _held = self.ranks.lock(Rank::Inodes, &self.inodes.lock);
        let alias = self.inodes.get(self, new.node, |inode| {
            if new.attr.is_dir() || inode.attr().kind() != new.attr.kind() {
                // A directory that moved behind the cache: the name that it had is in doubt.
                crate::slot::dentry_beside(inode).expire();
                self.inodes.note_double();
                self.put_inode(inode);
                return None;
            }
            inode.update(|attr| *attr = new.attr);
            let slot = slot.take()?;
            Some(outlive(self, self.add_alias(slot, dir, (name, hash), inode, new.valid)))
        });
        if let Some(alias) = alias.flatten() {
            return Ok(alias);
        }
        let slot = slot.take().ok_or(Errno::ENOMEM)?;
        Ok(self.add(slot, dir, name, hash, &new.into()))
    }

    /// The positive entry `name` of the locked directory `dir`, from the cache or the file system. It stays while the lock is held.
    ///
    /// # Errors
    /// What the file system answers, but for `ENOENT`, which is `None`.
    pub(crate) fn find_locked(
        &self,
        request: impl FnOnce() -> Request,
        dir: &Dentry,
        name: &[u8],
        hash: u64,
    ) -> Result<Option<&Dentry>, Errno> {
        let cached = self.cached(dir, name, hash);
        match cached {
            Some(entry) if is_good(entry) => return Ok(is_positive(entry).then_some(entry)),
            None if dir.has(COMPLETE) => return Ok(None),
            _ => {}
        }
        let pushes = self.pushes();
        let told = self.tell(dir, name, cached, &request());
        if let Answer::Failed(errno) = self.settle(dir, name, hash, told) {
            return Err(errno);
        }
        let entry = self.cached(dir, name, hash);
        self.doubt_if_pushed(pushes, entry);
        Ok(entry.filter(|entry| is_positive(entry)))
    }

    /// The directory `name` of the locked directory `dir` as it is cached, if [`SuperBlock::find_locked`] would ask about it: if it is
    /// another by then, it is taken out with all below it.
    pub(crate) fn doubted_dir(&self, dir: &Dentry, name: &[u8], hash: u64) -> Option<&Dentry> {
        self.cached(dir, name, hash).filter(|entry| !is_good(entry) && is_positive(entry) && entry.has(DIR))
    }

    /// Lets an entry be asked for again if the file system pushed anything since `pushes` was read: what it told may be from before.
    fn doubt_if_pushed(&self, pushes: u32, entry: Option<&Dentry>) {
        // ORDERING: the fence pairs with that of `Invalidator::push`: either the push is seen here, or what was just stored is seen,
        // and expired, there.
        fence(SeqCst);
        if self.pushes() != pushes {
            entry.into_iter().for_each(Dentry::expire);
        }
    }

    /// Takes an entry that is no longer what it was out of the cache, with all that is cached below it. The directory is locked.
    /// What something is mounted on or below stays, as long as it is mounted; `false`: the entry is such a one.
    pub(crate) fn prune(&self, dir: &Dentry, entry: &Dentry, hash: u64) -> bool {
        let mut open: Vec<Pruned<'_>> = Vec::new();
        let mut at = Some(entry);
        loop {
            if let Some(found) = at {
                let keeps = found.has(MOUNTED);
                if keeps || !found.has(DIR) {
                    let Some(above) = open.last_mut() else {
                        // The entry itself: nothing can be below it.
                        if !keeps {
                            self.delete(dir, entry, hash, 0, 0);
                        }
                        return !keeps;
                    };
                    above.keeps |= keeps;
                    at = found.sib_next.get();
                    if !keeps {
                        let above = above.dir;
                        let name_hash = found.filed_hash_rcu(above, self.key, &self.domain.read());
                        self.delete(above, found, name_hash, 0, 0);
                    }
                } else {
                    let lock = self.ranks.lock_nested(Rank::Directory, &found.lock);
                    open.push(Pruned { dir: found, keeps: false, _lock: lock });
                    at = found.first_child.get();
                }
                continue;
            }
            // All that was in the innermost directory has been seen to: it goes too, if nothing in it stays.
            let Some(done) = open.pop() else { return false };
            let Some(above) = open.last_mut() else {
                if !done.keeps {
                    self.delete(dir, entry, hash, 0, 0);
                }
                return !done.keeps;
            };
            above.keeps |= done.keeps;
            at = done.dir.sib_next.get();
            if !done.keeps {
                let above = above.dir;
                let name_hash = done.dir.filed_hash_rcu(above, self.key, &self.domain.read());
                self.delete(above, done.dir, name_hash, 0, 0);
            }
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

/// Whether what the entry says still holds.
fn is_good(entry: &Dentry) -> bool {
    !entry.has(CHECKED) || !entry.is_expired()
}

fn is_positive(entry: &Dentry) -> bool {
    entry.object() & INODE != 0
}
