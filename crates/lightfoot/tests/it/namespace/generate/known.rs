//! What there is in a tree, for paths that name something.

use crate::namespace::lightfoot::Lightfoot;
use crate::namespace::ops::S_IFDIR;
use crate::namespace::rng::Rng;
use std::os::unix::ffi::OsStringExt;
use vfs::{Base, Context, Credentials, Errno, OpenFile, OpenFlags};

/// A name in a directory, and whether it is one itself.
type Known = (Vec<u8>, bool);

impl Lightfoot {
    pub(crate) fn names_something(&self, path: &[u8]) -> bool {
        self.context.attr(Base::CWD, path, false).is_ok()
    }

    pub(crate) fn names_directory(&self, path: &[u8]) -> bool {
        self.context.attr(Base::CWD, path, false).is_ok_and(|attr| attr.is_dir())
    }

    pub(crate) fn acts_as_root(&self) -> bool {
        self.context.credentials().uid == 0
    }

    pub(crate) fn is_open(&self, slot: usize) -> bool {
        self.slots[slot].is_some()
    }

    /// Exchanges the two processes.
    pub(crate) fn switch(&mut self) {
        if let Some(other) = &mut self.other {
            std::mem::swap(&mut self.context, other);
        }
    }

    /// How many names there are in the tree; some more than `most` is enough.
    pub(crate) fn objects(&self, most: usize) -> usize {
        let context = self.as_root();
        let mut dirs = vec![open(&context, Base::CWD, b"/")];
        let mut count = 0;
        while let Some(dir) = dirs.pop().filter(|_| count <= most) {
            let Ok(dir) = dir else { continue };
            let entries = entries_of(&dir);
            count += entries.len();
            let below = entries.iter().filter(|(_, is_dir)| *is_dir);
            dirs.extend(below.map(|(name, _)| open(&context, Base::at(dir.held()), name)));
        }
        count
    }

    /// Paths of directories that something is mounted on.
    pub(crate) fn mount_points(&self) -> Vec<Vec<u8>> {
        let context = self.as_root();
        let points = context.mounts().into_iter().skip(1).map(|mount| mount.mountpoint.into_os_string().into_vec());
        let mut points: Vec<_> = points.filter(|path| open(&context, Base::CWD, path).is_ok()).collect();
        points.sort();
        points
    }

    /// A path to something that exists, from the root or the working directory; to a directory if requested.
    pub(crate) fn random_path(&self, rng: &mut Rng, from_root: bool, dir: bool) -> Vec<u8> {
        self.random_path_from(rng, if from_root { b"/".to_vec() } else { Vec::new() }, dir)
    }

    /// The same below a directory with this path.
    pub(crate) fn random_path_from(&self, rng: &mut Rng, mut path: Vec<u8>, dir: bool) -> Vec<u8> {
        let context = self.as_root();
        let start: &[u8] = if path.is_empty() { b"." } else { &path };
        let Ok(mut at) = open(&context, Base::CWD, start) else { return path };
        loop {
            let mut entries = entries_of(&at);
            entries.retain(|(_, is_dir)| *is_dir || !dir);
            if entries.is_empty() || (!path.is_empty() && path != b"/" || dir) && rng.chance(30) {
                return path;
            }
            let (name, is_dir) = rng.pick(&entries);
            if !path.is_empty() && path != b"/" {
                path.push(b'/');
            }
            path.extend_from_slice(&name);
            if !is_dir {
                return path;
            }
            let Ok(next) = open(&context, Base::at(at.held()), &name) else { return path };
            at = next;
        }
    }

    /// The process with all rights.
    fn as_root(&self) -> Context {
        let context = self.context.fork();
        context.set_credentials(Credentials::root());
        context
    }
}

/// Opens a directory.
fn open(context: &Context, base: Base<'_>, path: &[u8]) -> Result<OpenFile, Errno> {
    context.open(base, path, OpenFlags::DIRECTORY, 0)
}

fn entries_of(dir: &OpenFile) -> Vec<Known> {
    let mut known = Vec::new();
    while let Ok(entries) = dir.next_entries()
        && !entries.is_empty()
    {
        known.extend(entries.into_iter().map(|entry| (entry.name.into_vec(), entry.kind == S_IFDIR)));
    }
    known.sort();
    known
}
