//! The work of a copy: what there is to copy, and one thing after the other.

use super::end::{Contents, End, Facts};
use crate::offline::failure::{Failure, Troubles};
use crate::offline::join;
use crate::progress::Progress;
use lightfoot::Errno;
use std::io;

/// Bytes that are copied at a time, and the least that can become a hole.
const PIECE: usize = 128 << 10;

/// Permission bits that are not copied unless they are to be preserved.
const SPECIAL: u32 = 0o7000;

/// One thing to copy.
pub(super) struct Item {
    from: Vec<u8>,
    to: Vec<u8>,
    facts: Option<Facts>,
    /// `to` is what the caller wrote: a symbolic link there is the caller's.
    is_named: bool,
    /// It was named by the caller, not found in a directory.
    is_start: bool,
}

impl Item {
    /// What the caller named.
    pub(super) fn start(from: Vec<u8>, to: Vec<u8>, is_named: bool) -> Self {
        Self { from, to, facts: None, is_named, is_start: true }
    }

    /// What it adds to the progress.
    pub(super) fn bytes(&self) -> u64 {
        self.facts.filter(Facts::is_file).map_or(0, |facts| facts.len)
    }
}

/// A copy that is being made.
pub(super) struct Job<'j> {
    from: &'j dyn End,
    to: &'j dyn End,
    troubles: &'j Troubles,
    recursive: bool,
    preserve: bool,
    progress: Option<Progress>,
    buffer: Vec<u8>,
}

impl<'j> Job<'j> {
    pub(super) fn new(
        from: &'j dyn End,
        to: &'j dyn End,
        troubles: &'j Troubles,
        recursive: bool,
        preserve: bool,
    ) -> Self {
        Self { from, to, troubles, recursive, preserve, progress: None, buffer: vec![0; PIECE] }
    }

    /// Shows how far it is from now on.
    pub(super) fn set_progress(&mut self, progress: Progress) {
        self.progress = Some(progress);
    }

    fn tell(&self, failure: &Failure) {
        match &self.progress {
            Some(progress) => progress.aside(|| self.troubles.tell(failure)),
            None => self.troubles.tell(failure),
        }
    }

    /// Whether `to` lies in the directory `from`; both are paths of one end.
    pub(super) fn is_below_itself(&self, from: &[u8], to: &[u8]) -> bool {
        let Ok(from) = self.from.canonical(from) else { return false };
        // What is not there yet lies where its directory does.
        let end = to.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
        let parent = match to[..end].iter().rposition(|&byte| byte == b'/') {
            Some(0) => &b"/"[..],
            Some(slash) => &to[..slash],
            None => b".",
        };
        let Ok(to) = self.to.canonical(to).or_else(|_| self.to.canonical(parent)) else { return false };
        let is_dir = self.from.facts(&from, true).is_ok_and(|facts| facts.is_dir());
        is_dir && (to == from || is_below(&to, &from))
    }

    /// Adds `start` and all below it to `items`, each directory before what is in it.
    pub(super) fn plan(&self, start: Item, items: &mut Vec<Item>) {
        let mut to_look_at = vec![start];
        while let Some(mut item) = to_look_at.pop() {
            let follows = item.is_start && !self.recursive;
            let facts = match self.from.facts(&item.from, follows) {
                Ok(facts) => facts,
                Err(error) => {
                    self.tell(&Failure::new("copied", &item.from, self.from.source(), error));
                    continue;
                }
            };
            if !self.recursive && !facts.is_file() {
                let reason = if facts.is_dir() { "it is a directory" } else { "it is no regular file" };
                let way_out = "copy it with --recursive";
                self.tell(&Failure::said("copied", &item.from, self.from.source(), reason, way_out));
                continue;
            }
            if facts.is_dir() {
                match self.from.names(&item.from) {
                    Ok(names) => to_look_at.extend(names.iter().rev().map(|name| Item {
                        from: join(&item.from, name),
                        to: join(&item.to, name),
                        facts: None,
                        is_named: false,
                        is_start: false,
                    })),
                    Err(error) => self.tell(&Failure::new("listed", &item.from, self.from.source(), error)),
                }
            }
            item.facts = Some(facts);
            items.push(item);
        }
    }

    /// Copies them.
    pub(super) fn run(&mut self, items: Vec<Item>) {
        // Directories get their modes and times when all that is in them is there.
        let mut made: Vec<(Item, bool)> = Vec::new();
        // Below what could not be made.
        let mut lost: Option<Vec<u8>> = None;
        for item in items {
            if lost.as_ref().is_some_and(|lost| is_below(&item.to, lost)) {
                continue;
            }
            let Some(facts) = item.facts else { continue };
            match self.item(&item, &facts) {
                Ok(is_new) if facts.is_dir() => made.push((item, is_new)),
                Ok(_) => {}
                Err(failure) => {
                    self.tell(&failure);
                    lost = facts.is_dir().then_some(item.to);
                }
            }
        }
        for (item, is_new) in made.iter().rev() {
            let Some(facts) = item.facts else { continue };
            if let Err(error) = self.finish(item, &facts, *is_new) {
                self.tell(&Failure::new("given its attributes", &item.to, self.to.source(), error));
            }
        }
    }

    /// Copies one; says whether there was nothing before.
    fn item(&mut self, item: &Item, facts: &Facts) -> Result<bool, Failure> {
        let failure = |error| Failure::new("made", &item.to, self.to.source(), error);
        let follows = item.is_named && (facts.is_file() || facts.is_dir());
        let there = match self.to.facts(&item.to, follows) {
            Ok(there) => Some(there),
            Err(error) if error.raw_os_error() == Some(Errno::ENOENT.raw()) => None,
            Err(error) => return Err(failure(error)),
        };
        if facts.is_dir() {
            return self.directory(item, facts, there);
        }
        if let Some(there) = &there {
            self.may_replace(item, facts, there)?;
        } else if follows && self.to.facts(&item.to, false).is_ok() {
            return Err(self.in_the_way(item, "there is a symbolic link that leads nowhere", "name another place"));
        }
        if facts.is_file() {
            return self.file(item, facts, there).map(|()| there.is_none());
        }
        let read = |error| Failure::new("read", &item.from, self.from.source(), error);
        let body = if facts.is_symlink() { Some(self.from.read_link(&item.from).map_err(read)?) } else { None };
        if there.is_some() {
            self.to.remove_file(&item.to).map_err(failure)?;
        }
        if let Some(body) = body {
            self.to.symlink(&body, &item.to).map_err(failure)?;
        } else {
            let mode = facts.mode & !SPECIAL & !self.to.umask();
            self.to.mknod(&item.to, mode, facts.rdev).map_err(failure)?;
        }
        self.finish(item, facts, true).map_err(failure)?;
        Ok(true)
    }

    /// Whether what is there may go, or be written over, for something that is no directory.
    fn may_replace(&self, item: &Item, facts: &Facts, there: &Facts) -> Result<(), Failure> {
        let reason = if there.is_dir() {
            "there is a directory of that name"
        } else if std::ptr::addr_eq(self.from, self.to) && there.identity == facts.identity {
            "it is what is copied"
        } else if !there.is_file() && !there.is_symlink() && there.kind() != facts.kind() {
            "there is a device or the like of that name"
        } else {
            return Ok(());
        };
        Err(self.in_the_way(item, reason, "name another place"))
    }

    fn in_the_way(&self, item: &Item, reason: &'static str, way_out: &'static str) -> Failure {
        Failure::said("made", &item.to, self.to.source(), reason, way_out)
    }

    /// Makes a directory that its owner can write to.
    fn directory(&self, item: &Item, facts: &Facts, there: Option<Facts>) -> Result<bool, Failure> {
        match there {
            Some(there) if there.is_dir() => Ok(false),
            Some(_) => Err(self.in_the_way(item, "there is something else of that name", "name another place")),
            None => {
                let made = self.to.mkdir(&item.to, facts.mode & 0o777 | 0o700);
                made.map_err(|error| Failure::new("made", &item.to, self.to.source(), error))?;
                Ok(true)
            }
        }
    }

    /// Copies a regular file. What is there is written over and cut at the end, so that a file that is copied onto itself
    /// by another way stays what it is.
    fn file(&mut self, item: &Item, facts: &Facts, there: Option<Facts>) -> Result<(), Failure> {
        let made = |error| Failure::new("made", &item.to, self.to.source(), error);
        if there.is_some_and(|there| !there.is_file()) {
            self.to.remove_file(&item.to).map_err(made)?;
        }
        let read = |error| Failure::new("read", &item.from, self.from.source(), error);
        let source = self.from.open(&item.from).map_err(read)?;
        let target = self.to.create(&item.to, facts.mode & 0o777, item.is_named).map_err(made)?;
        let (from, to) = ((self.from, &item.from), (self.to, &item.to));
        contents((&*source, from), (&*target, to), facts, &mut self.buffer, self.progress.as_ref())?;
        drop(target);
        let is_new = there.is_none_or(|there| !there.is_file());
        self.finish(item, facts, is_new)
            .map_err(|error| Failure::new("given its attributes", to.1, to.0.source(), error))
    }

    /// Gives what was made the attributes that it should have.
    fn finish(&self, item: &Item, facts: &Facts, is_new: bool) -> io::Result<()> {
        if !self.preserve {
            // New files have their modes already.
            let mode = facts.mode & 0o777 & !self.to.umask();
            return if is_new && facts.is_dir() { self.to.chmod(&item.to, mode) } else { Ok(()) };
        }
        let mut mode = facts.mode & 0o7777;
        match self.to.chown(&item.to, facts.uid, facts.gid) {
            Err(error) if error.raw_os_error() == Some(Errno::EPERM.raw()) => {
                // As cp(1): it then belongs to who copies, who must not give away what is another's.
                mode &= !SPECIAL;
            }
            changed => changed?,
        }
        if !facts.is_symlink() {
            self.to.chmod(&item.to, mode)?;
        }
        self.to.set_times(&item.to, facts.atime, facts.mtime)
    }
}

/// Whether the path is one of something in the directory at `dir`.
fn is_below(path: &[u8], dir: &[u8]) -> bool {
    let rest = path.strip_prefix(dir).filter(|rest| !rest.is_empty());
    rest.is_some_and(|rest| rest[0] == b'/' || dir.ends_with(b"/"))
}

/// An open file, and what it is called.
type Named<'n> = (&'n dyn Contents, (&'n dyn End, &'n Vec<u8>));

/// Copies contents. Pieces of zeros become holes where nothing was before, if the file has holes.
fn contents(
    (source, from): Named<'_>,
    (target, to): Named<'_>,
    facts: &Facts,
    buffer: &mut [u8],
    progress: Option<&Progress>,
) -> Result<(), Failure> {
    let read = |error| Failure::new("read", from.1, from.0.source(), error);
    let written = |error| Failure::new("written", to.1, to.0.source(), error);
    let before = target.len().map_err(written)?;
    let has_holes = facts.blocks.saturating_mul(512) < facts.len;
    let mut at = 0;
    loop {
        let len = match source.read_at(buffer, at) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(read(error)),
        };
        let is_hole = has_holes && at >= before && buffer[..len].iter().all(|&byte| byte == 0);
        if !is_hole {
            target.write_all_at(&buffer[..len], at).map_err(written)?;
        }
        at += len as u64;
        if let Some(progress) = progress {
            progress.steps(len as u64);
        }
    }
    if target.len().map_err(written)? != at {
        target.set_len(at).map_err(written)?;
    }
    Ok(())
}
