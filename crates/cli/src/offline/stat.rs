//! `lightfoot stat`: all attributes of files of a source.

use super::entry::{JsonArray, device_numbers, is_device, json, kind_in_words, mode_in_letters};
use super::owners::Owners;
use super::zone::Zone;
use super::{Opened, from_root, stamp};
use crate::source::SourceArguments;
use lightfoot::Metadata;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;

/// What `lightfoot stat` is asked.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Stat {
    #[command(flatten)]
    pub(crate) source: SourceArguments,

    /// What to look at, as paths of SOURCE
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,

    /// What symbolic links lead to, not they themselves
    #[arg(short = 'L', long)]
    dereference: bool,

    /// A JSON array with one object for each
    #[arg(long)]
    json: bool,
}

/// Shows what `stat` asks for.
pub(super) fn run(stat: &Stat, opened: &Opened, out: &mut impl Write) -> io::Result<()> {
    let (owners, zone) = (Owners::read(stat.json), Zone::local());
    let mut array = JsonArray::default();
    for path in stat.paths.iter().map(from_root) {
        match look(stat, opened, &path) {
            Ok((metadata, target)) if stat.json => array.push(out, &json(&path, &metadata, target.as_deref()))?,
            Ok((metadata, target)) => show(out, opened, (&owners, &zone), (&path, target.as_deref()), &metadata)?,
            Err(error) => opened.troubles.tell(&opened.failure("looked at", &path, error)),
        }
    }
    if stat.json { array.end(out) } else { Ok(()) }
}

fn look(stat: &Stat, opened: &Opened, path: &[u8]) -> io::Result<(Metadata, Option<Vec<u8>>)> {
    let context = &opened.context;
    if stat.dereference {
        return Ok((context.metadata(path)?, None));
    }
    let metadata = context.symlink_metadata(path)?;
    let target = if metadata.is_symlink() { Some(context.read_link(path)?.into_os_string().into_vec()) } else { None };
    Ok((metadata, target))
}

/// In the form of `stat(1)`.
fn show(
    out: &mut impl Write,
    opened: &Opened,
    (owners, zone): (&Owners, &Zone),
    (path, target): (&[u8], Option<&[u8]>),
    metadata: &Metadata,
) -> io::Result<()> {
    out.write_all(b"  File: ")?;
    opened.style.write(out, path)?;
    if let Some(target) = target {
        out.write_all(b" -> ")?;
        opened.style.write(out, target)?;
    }
    let (size, blocks, block) = (metadata.len(), metadata.blocks(), metadata.blksize());
    let kind = kind_in_words(metadata);
    writeln!(out, "\n  Size: {size:<10}\tBlocks: {blocks:<10} IO Block: {block:<6} {kind}")?;
    let (dev, ino, nlink) = (metadata.dev(), metadata.ino(), metadata.nlink());
    write!(out, "Device: 0,{dev}\tInode: {ino:<11} Links: ")?;
    if is_device(metadata.file_type()) {
        let (major, minor) = device_numbers(metadata.rdev());
        writeln!(out, "{nlink:<5} Device type: {major},{minor}")?;
    } else {
        writeln!(out, "{nlink}")?;
    }
    let (mode, letters) = (metadata.mode() & 0o7777, mode_in_letters(metadata.mode()));
    let (uid, gid) = (metadata.uid(), metadata.gid());
    let (user, group) = (owners.user(uid), owners.group(gid));
    writeln!(out, "Access: ({mode:04o}/{letters})  Uid: ({uid:>5}/{user:>8})   Gid: ({gid:>5}/{group:>8})")?;
    let times = [("Access", metadata.atime_ns()), ("Modify", metadata.mtime_ns()), ("Change", metadata.ctime_ns())];
    for (label, time) in times {
        writeln!(out, "{label}: {}", stamp::long(time, zone))?;
    }
    Ok(())
}
