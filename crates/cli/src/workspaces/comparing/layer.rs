//! `lightfoot diff --tar`: the changes as a layer of an OCI image.
//!
//! # Where it comes from
//! The OCI image specification, "Image Layer Filesystem Changeset": an empty file `.wh.NAME` removes NAME of the layers below. Times
//! finer than a second, and extended attributes, are records of pax (`mtime`, `SCHILY.xattr.NAME`).

use super::CompareError;
use super::sides::{Entry, Files, Sides};
use crate::output::report;
use fuse::message::show;
use rustix::fs::{lgetxattr, llistxattr, major, minor};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// The beginning of the name of a removal.
const REMOVED: &str = ".wh.";

/// Writes the archive.
///
/// # Errors
/// If a file cannot be read, or `out` not be written.
pub(super) fn write(sides: &Sides<'_>, out: impl Write) -> Result<(), CompareError> {
    let [old, new] = sides.files()?;
    let mut archive = Builder::new(out);
    archive.follow_symlinks(false);
    for path in old.keys() {
        if let Some(removal) = removal(path, sides, &new)? {
            archive.append_data(&mut empty(EntryType::Regular), removal, io::empty())?;
        }
    }
    let mut names: HashMap<u64, &Path> = HashMap::new();
    for entry in new.values() {
        sides.check()?;
        if entry.meta.file_type().is_socket() {
            report(format_args!("{}: not in the archive (it is a socket)", show(&entry.path)));
        } else if old.get(&entry.path).is_none_or(|old| !old.is_as(entry)) {
            check(&entry.path)?;
            let first = *names.entry(entry.file()).or_insert(&entry.path);
            if first == entry.path || entry.meta.is_dir() {
                append(entry, &mut archive)?;
            } else {
                archive.append_link(&mut empty(EntryType::Link), &entry.path, first)?;
            }
        }
    }
    archive.finish()?;
    Ok(())
}

/// Returns the name that removes an old path, if the new state lacks it, but has its directory.
fn removal(path: &Path, sides: &Sides<'_>, new: &Files) -> Result<Option<PathBuf>, CompareError> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(None) };
    let has_dir = dir.as_os_str().is_empty() || sides.new.entry(dir)?.is_some_and(|entry| entry.meta.is_dir());
    if new.contains_key(path) || !has_dir {
        return Ok(None);
    }
    let mut removal = OsString::from(REMOVED);
    removal.push(name);
    Ok(Some(dir.join(removal)))
}

/// Fails for a name that removes another.
fn check(path: &Path) -> Result<(), CompareError> {
    let is_removal = path.file_name().is_some_and(|name| name.as_bytes().starts_with(REMOVED.as_bytes()));
    if is_removal { Err(CompareError::Whiteout(path.into())) } else { Ok(()) }
}

fn empty(kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(0);
    header.set_mode(0o600);
    header
}

fn append(entry: &Entry, archive: &mut Builder<impl Write>) -> Result<(), CompareError> {
    let attributes = attributes(&entry.at()).map_err(|errno| CompareError::of(&entry.path)(errno.into()))?;
    let mtime = format!("{}.{:09}", entry.meta.mtime(), entry.meta.mtime_nsec());
    let records = attributes.iter().map(|(name, value)| (&**name, &**value));
    archive.append_pax_extensions(records.chain([("mtime", mtime.as_bytes())]))?;
    if entry.meta.is_file() {
        Ok(archive.append_file(&entry.path, &mut entry.open()?)?)
    } else if is_special(&entry.meta) {
        let mut header = Header::new_gnu();
        header.set_metadata(&entry.meta);
        header.set_size(0);
        header.set_device_major(major(entry.meta.rdev()))?;
        header.set_device_minor(minor(entry.meta.rdev()))?;
        Ok(archive.append_data(&mut header, &entry.path, io::empty())?)
    } else {
        Ok(archive.append_path_with_name(entry.at(), &entry.path)?)
    }
}

/// Returns whether a file is a pipe or a device.
fn is_special(meta: &Metadata) -> bool {
    !meta.is_dir() && !meta.is_symlink()
}

/// Returns the extended attributes of a file, as records.
fn attributes(at: &Path) -> rustix::io::Result<Vec<(String, Vec<u8>)>> {
    let mut names = Vec::with_capacity(1 << 16);
    match llistxattr(at, rustix::buffer::spare_capacity(&mut names)) {
        Ok(_) => {}
        Err(rustix::io::Errno::NOTSUP) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    }
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let record = |name: &[u8]| {
        let mut value = Vec::with_capacity(1 << 16);
        lgetxattr(at, name, rustix::buffer::spare_capacity(&mut value))?;
        Ok((format!("SCHILY.xattr.{}", String::from_utf8_lossy(name)), value))
    };
    names.map(record).collect()
}
