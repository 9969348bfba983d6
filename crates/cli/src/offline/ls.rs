//! `lightfoot ls`: what is in directories of a source.

use super::columns::{Line, Long, side_by_side, terminal_width};
use super::entry::{JsonArray, json};
use super::owners::Owners;
use super::walk::names;
use super::zone::Zone;
use super::{Opened, from_root, join};
use crate::source::SourceArguments;
use lightfoot::{Dir, Metadata};
use std::cmp::Reverse;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::SystemTime;

/// What `lightfoot ls` is asked.
#[derive(clap::Args, Clone, Debug)]
#[command(disable_help_flag = true)]
#[expect(clippy::struct_excessive_bools, reason = "they are the command's switches")]
pub(crate) struct Ls {
    #[command(flatten)]
    pub(crate) source: SourceArguments,

    /// What to list, as paths of SOURCE
    #[arg(default_value = "/", value_name = "PATH", hide_default_value = true)]
    paths: Vec<OsString>,

    /// Long lines: mode, names, owner, group, length, time of the last change, name
    #[arg(short, long)]
    long: bool,

    /// Names that begin with a dot too, and . and ..
    #[arg(short, long)]
    all: bool,

    /// Names that begin with a dot too, without . and ..
    #[arg(short = 'A', long)]
    almost_all: bool,

    /// Directories below directories too
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Directories themselves, not what is in them
    #[arg(short, long)]
    directory: bool,

    /// One name a line, also on a terminal
    #[arg(short = '1')]
    one: bool,

    /// Owners and groups by number
    #[arg(short, long = "numeric-uid-gid")]
    numeric: bool,

    /// Lengths such as 1.5K
    #[arg(short = 'h', long = "human-readable")]
    human: bool,

    /// The numbers of the inodes
    #[arg(short, long)]
    inode: bool,

    /// In the order of their times, newest first
    #[arg(short = 't', conflicts_with = "by_size")]
    by_time: bool,

    /// In the order of their lengths, longest first
    #[arg(short = 'S')]
    by_size: bool,

    /// In reverse order
    #[arg(short, long)]
    reverse: bool,

    /// A JSON array with one object for each
    #[arg(long)]
    json: bool,

    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// One name to list.
struct Row {
    name: Vec<u8>,
    ino: u64,
    is_dir: bool,
    /// If the listing asks for attributes.
    metadata: Option<Metadata>,
    target: Option<Vec<u8>>,
}

/// A listing that is being written.
struct Listing<'a, W> {
    ls: &'a Ls,
    opened: &'a Opened,
    out: &'a mut W,
    long: Long,
    array: JsonArray,
    has_block: bool,
}

/// Lists what `ls` asks for.
pub(super) fn run(ls: &Ls, opened: &Opened, out: &mut impl Write) -> io::Result<()> {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let long = Long {
        owners: Owners::read(ls.numeric || !ls.long),
        style: opened.style,
        human: ls.human,
        inodes: ls.inode,
        now: i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX),
        zone: if ls.long { Zone::local() } else { Zone::default() },
    };
    let mut listing = Listing { ls, opened, out, long, array: JsonArray::default(), has_block: false };
    let (mut files, mut dirs) = (Vec::new(), Vec::new());
    for path in &ls.paths {
        let shown = from_root(path);
        match listing.argument(&shown) {
            Ok(row) if row.is_dir && !ls.directory => dirs.push(shown),
            Ok(row) => files.push(row),
            Err(error) => opened.troubles.tell(&opened.failure("listed", &shown, error)),
        }
    }
    if !files.is_empty() {
        listing.sort(&mut files);
        listing.block(None, &files)?;
    }
    let has_heading = ls.recursive || ls.paths.len() > 1;
    for path in dirs {
        listing.directories(&path, has_heading)?;
    }
    if ls.json { listing.array.end(listing.out) } else { Ok(()) }
}

impl<W: Write> Listing<'_, W> {
    /// What a path of the command line leads to: as with `ls`, a symbolic link to a directory is one, if no long lines
    /// are asked for.
    fn argument(&self, path: &[u8]) -> io::Result<Row> {
        let context = &self.opened.context;
        let mut metadata = context.symlink_metadata(path)?;
        if metadata.is_symlink() && !self.ls.long && !self.ls.directory {
            metadata = context.metadata(path).ok().filter(Metadata::is_dir).unwrap_or(metadata);
        }
        let target = if metadata.is_symlink() { context.read_link(path).ok() } else { None };
        let target = target.map(|target| target.into_os_string().into_vec());
        let is_dir = metadata.is_dir();
        Ok(Row { name: path.to_vec(), ino: metadata.ino(), is_dir, metadata: Some(metadata), target })
    }

    /// Lists the directory at `path`, and those below it if that is asked for.
    fn directories(&mut self, path: &[u8], has_heading: bool) -> io::Result<()> {
        // Names by their directories; paths alone would be too long far down.
        let mut to_list: Vec<(Option<Dir>, OsString, Vec<u8>)> =
            vec![(None, OsString::from_vec(path.to_vec()), path.to_vec())];
        while let Some((above, name, path)) = to_list.pop() {
            let opened = above.map_or_else(|| self.opened.context.open_dir(&name), |above| above.open_dir(&name));
            let told = |error| self.opened.troubles.tell(&self.opened.failure("listed", &path, error));
            let Ok(dir) = opened.map_err(told) else { continue };
            let Some(mut rows) = self.rows(&dir, &path) else { continue };
            self.sort(&mut rows);
            if self.ls.json {
                for row in &mut rows {
                    row.name = join(&path, &row.name);
                }
            }
            self.block(Some((&path, has_heading)), &rows)?;
            if self.ls.recursive {
                let base = |row: &Row| row.name.rsplit(|&byte| byte == b'/').next().unwrap_or_default().to_vec();
                let below = rows.iter().rev().filter(|row| row.is_dir).map(base);
                let below = below.filter(|name| !matches!(&name[..], b"." | b".."));
                to_list.extend(below.map(|name| {
                    let path = join(&path, &name);
                    (Some(dir.clone()), OsString::from_vec(name), path)
                }));
            }
        }
        Ok(())
    }

    /// What is in `dir`, as far as it is asked for.
    fn rows(&self, dir: &Dir, path: &[u8]) -> Option<Vec<Row>> {
        let ls = self.ls;
        let told = |path: &[u8], error| self.opened.troubles.tell(&self.opened.failure("listed", path, error));
        let mut rows = Vec::new();
        let names = names(dir, |_| true).map_err(|error| told(path, error)).ok()?;
        let dots = [".", ".."].into_iter().filter(|_| ls.all).map(OsString::from);
        let is_shown = |name: &OsString| ls.all || ls.almost_all || !name.as_bytes().starts_with(b".");
        for name in dots.chain(names.into_iter().filter(is_shown)) {
            match self.row(dir, &name) {
                Ok(row) => rows.push(row),
                Err(error) => told(&join(path, name.as_bytes()), error),
            }
        }
        Some(rows)
    }

    fn row(&self, dir: &Dir, name: &OsString) -> io::Result<Row> {
        let needs_attributes =
            self.ls.long || self.ls.json || self.ls.by_time || self.ls.by_size || self.ls.inode || self.ls.recursive;
        let row = Row { name: name.as_bytes().into(), ino: 0, is_dir: false, metadata: None, target: None };
        if !needs_attributes {
            return Ok(row);
        }
        let metadata = dir.symlink_metadata(name)?;
        let needs_target = metadata.is_symlink() && (self.ls.long || self.ls.json);
        let target = if needs_target { Some(dir.read_link(name)?.into_os_string().into_vec()) } else { None };
        Ok(Row { ino: metadata.ino(), is_dir: metadata.is_dir(), metadata: Some(metadata), target, ..row })
    }

    /// Puts rows, which are in the order of their names, into the order that is asked for.
    fn sort(&self, rows: &mut [Row]) {
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        if self.ls.by_time {
            rows.sort_by_key(|row| Reverse(row.metadata.map(|metadata| metadata.mtime_ns())));
        } else if self.ls.by_size {
            rows.sort_by_key(|row| Reverse(row.metadata.map(|metadata| metadata.len())));
        }
        if self.ls.reverse {
            rows.reverse();
        }
    }

    /// Writes one directory, or what is none.
    fn block(&mut self, heading: Option<(&[u8], bool)>, rows: &[Row]) -> io::Result<()> {
        if self.ls.json {
            for row in rows {
                if let Some(metadata) = &row.metadata {
                    self.array.push(self.out, &json(&row.name, metadata, row.target.as_deref()))?;
                }
            }
            return Ok(());
        }
        if let Some((path, true)) = heading {
            if self.has_block {
                self.out.write_all(b"\n")?;
            }
            self.opened.style.write(self.out, path)?;
            self.out.write_all(b":\n")?;
        }
        self.has_block = true;
        if self.ls.long {
            let line =
                |row: &Row| Some(Line { name: row.name.clone(), metadata: row.metadata?, target: row.target.clone() });
            let lines: Vec<Line> = rows.iter().filter_map(line).collect();
            if heading.is_some() {
                writeln!(self.out, "total {}", self.long.total(&lines))?;
            }
            return self.long.write(self.out, &lines);
        }
        self.names(rows)
    }

    /// Writes names alone.
    fn names(&mut self, rows: &[Row]) -> io::Result<()> {
        let style = self.opened.style;
        if style.is_terminal && !self.ls.one && !self.ls.inode {
            let names: Vec<Vec<u8>> = rows.iter().map(|row| row.name.clone()).collect();
            return side_by_side(self.out, style, &names, terminal_width());
        }
        let width = rows.iter().map(|row| row.ino.to_string().len()).max().unwrap_or(0);
        for row in rows {
            if self.ls.inode {
                write!(self.out, "{:>width$} ", row.ino)?;
            }
            style.write(self.out, &row.name)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }
}
