//! The temporary directory for the kernel's copy. It is removed when its value is dropped: at the
//! end, after an error, a panic or a signal that [`crate::interrupt`] takes.

use crate::error::Error;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{env, process};

/// Where temporary files are in memory on most systems.
const MEMORY: &str = "/dev/shm";

/// File systems by the number that `statfs(2)` gives.
const FILE_SYSTEMS: &[(u64, &str)] = &[
    (TMPFS, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x794c_7630, "overlayfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0x6969, "nfs"),
    (0x6573_5546, "fuse"),
];
const TMPFS: u64 = 0x0102_1994;

/// A directory of this process alone.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    parent: PathBuf,
    file_system: String,
    is_tmpfs: bool,
    free_bytes: u64,
}

impl Scratch {
    /// Makes one in `asked`; else in `/dev/shm`, else in the place of temporary files.
    pub(crate) fn make(asked: Option<&Path>) -> Result<Self, Error> {
        let places = match asked {
            Some(place) => vec![place.to_path_buf()],
            None => vec![PathBuf::from(MEMORY), env::temp_dir()],
        };
        let mut last = None;
        for place in &places {
            match Self::make_in(place) {
                Ok(scratch) => return Ok(scratch),
                Err(error) => last = Some(error),
            }
        }
        let tried: Vec<String> = places.iter().map(|place| format!("{place:?}")).collect();
        let reason = last.map_or_else(|| "there is none".into(), Into::into);
        Err(Error::NoScratch { tried: tried.join(" or "), reason })
    }

    fn make_in(parent: &Path) -> io::Result<Self> {
        let parent = parent.canonicalize()?;
        let stat = rustix::fs::statfs(&parent)?;
        let number = stat.f_type as u64 & 0xffff_ffff;
        let known = FILE_SYSTEMS.iter().find(|(listed, _)| *listed == number);
        let file_system = known.map_or_else(|| format!("file system {number:#x}"), |(_, name)| (*name).into());
        let free_bytes = stat.f_bavail.saturating_mul(stat.f_bsize as u64);
        let path = make_dir(&parent)?;
        Ok(Self { path, parent, file_system, is_tmpfs: number == TMPFS, free_bytes })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory that contains it.
    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    pub(crate) fn file_system(&self) -> &str {
        &self.file_system
    }

    pub(crate) fn is_tmpfs(&self) -> bool {
        self.is_tmpfs
    }

    /// Bytes that were free when it was made.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    /// Returns the kind and the place: "tmpfs at /dev/shm".
    pub(crate) fn place(&self) -> String {
        format!("{} at {}", self.file_system, self.parent.display())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Modes stop only users other than root, so the directories are made writable only if a
        // plain removal fails.
        let removed = fs::remove_dir_all(&self.path).or_else(|_| {
            open_up(&self.path)?;
            fs::remove_dir_all(&self.path)
        });
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                eprintln!("lightfoot-lab: {:?}: cannot remove: {error} (remove it)", self.path);
            }
            _ => {}
        }
    }
}

/// Returns a new directory of this process's name. One of that name may be left from a process that
/// was killed.
fn make_dir(parent: &Path) -> io::Result<PathBuf> {
    let base = format!("lightfoot-bench-{}", process::id());
    let mut number = 0;
    loop {
        let path = parent.join(if number == 0 { base.clone() } else { format!("{base}-{number}") });
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| path),
        }
    }
}

/// Gives the owner all rights to every directory from `dir` down.
fn open_up(dir: &Path) -> io::Result<()> {
    let mut to_open = vec![dir.to_path_buf()];
    while let Some(dir) = to_open.pop() {
        fs::set_permissions(&dir, Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                to_open.push(entry.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_goes_with_all_that_is_in_it_even_behind_closed_directories() {
        let scratch = Scratch::make(None).expect("there is a place for temporary files");
        let path = scratch.path().to_path_buf();
        fs::create_dir_all(path.join("a/b")).expect("directories");
        fs::write(path.join("a/b/f"), "x").expect("a file");
        fs::set_permissions(path.join("a/b"), Permissions::from_mode(0o0)).expect("a mode");
        fs::set_permissions(path.join("a"), Permissions::from_mode(0o100)).expect("a mode");
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn two_scratches_of_a_process_are_two_directories() {
        let make = || Scratch::make(None).expect("there is a place for temporary files");
        let (one, other) = (make(), make());
        assert_ne!(one.path(), other.path());
    }
}
