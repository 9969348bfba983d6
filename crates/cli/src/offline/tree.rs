//! `lightfoot tree`: what lies below a directory of a source, as a picture.

use super::entry::json;
use super::walk::{Found, Keep, Walk};
use super::{Opened, from_root};
use crate::source::SourceArguments;
use lightfoot::DirEntry;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

/// What `lightfoot tree` is asked.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Tree {
    #[command(flatten)]
    pub(crate) source: SourceArguments,

    /// Where to begin, as a path of SOURCE
    #[arg(default_value = "/", value_name = "PATH", hide_default_value = true)]
    path: OsString,

    /// Names that begin with a dot too
    #[arg(short, long)]
    all: bool,

    /// Directories alone
    #[arg(short, long)]
    directories: bool,

    /// Look no further down than so many directories
    #[arg(short = 'L', long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    max_depth: usize,

    /// One JSON object, with the entries of directories in "children"
    #[arg(long)]
    json: bool,
}

/// Draws what `tree` asks for.
pub(super) fn run(tree: &Tree, opened: &Opened, out: &mut impl Write) -> io::Result<()> {
    let keep: Keep = match (tree.all, tree.directories) {
        (true, false) => |_| true,
        (false, false) => is_shown,
        (true, true) => is_directory,
        (false, true) => |entry| is_shown(entry) && is_directory(entry),
    };
    let walk = Walk::new(opened, &from_root(&tree.path), true, tree.max_depth).keeping(keep);
    if tree.json { nest(walk, opened, out) } else { draw(walk, opened, out) }
}

fn is_shown(entry: &DirEntry) -> bool {
    !entry.file_name_ref().as_bytes().starts_with(b".")
}

fn is_directory(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

/// As text.
fn draw(walk: Walk<'_>, opened: &Opened, out: &mut impl Write) -> io::Result<()> {
    let (mut directories, mut files) = (0_u64, 0_u64);
    // For each level down to here: whether something comes after it.
    let mut goes_on: Vec<bool> = Vec::new();
    for found in walk {
        let found = match found {
            Ok(found) => found,
            Err(failure) => {
                opened.troubles.tell(&failure);
                continue;
            }
        };
        if found.depth == 0 {
            opened.style.write(out, &found.path)?;
            out.write_all(b"\n")?;
            continue;
        }
        goes_on.truncate(found.depth - 1);
        for &goes_on in &goes_on {
            out.write_all(if goes_on { "│   " } else { "    " }.as_bytes())?;
        }
        goes_on.push(!found.is_last);
        out.write_all(if found.is_last { "└── " } else { "├── " }.as_bytes())?;
        opened.style.write(out, found.name())?;
        if let Some(target) = found.target(opened) {
            out.write_all(b" -> ")?;
            opened.style.write(out, &target)?;
        }
        out.write_all(b"\n")?;
        *(if found.metadata.is_dir() { &mut directories } else { &mut files }) += 1;
    }
    let directory = if directories == 1 { "directory" } else { "directories" };
    let file = if files == 1 { "file" } else { "files" };
    writeln!(out, "\n{directories} {directory}, {files} {file}")
}

/// As JSON: objects in one another.
fn nest(walk: Walk<'_>, opened: &Opened, out: &mut impl Write) -> io::Result<()> {
    // For each level whose list is open: whether it has an element.
    let mut open: Vec<bool> = Vec::new();
    let mut has_some = false;
    for found in walk {
        let found: Found = match found {
            Ok(found) => found,
            Err(failure) => {
                opened.troubles.tell(&failure);
                continue;
            }
        };
        while open.len() > found.depth {
            open.pop();
            out.write_all(b"]}")?;
        }
        if let Some(has_element) = open.last_mut() {
            out.write_all(if *has_element { b",\n" } else { b"\n" })?;
            *has_element = true;
        }
        let object = json(&found.path, &found.metadata, found.target(opened).as_deref());
        has_some = true;
        match object.strip_suffix('}').filter(|_| found.metadata.is_dir()) {
            Some(object) => {
                write!(out, "{object},\"children\":[")?;
                open.push(false);
            }
            None => out.write_all(object.as_bytes())?,
        }
    }
    for _ in open {
        out.write_all(b"]}")?;
    }
    out.write_all(if has_some { b"\n" } else { b"null\n" })
}
