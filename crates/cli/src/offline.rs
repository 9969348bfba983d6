//! Commands on a SOURCE that is mounted nowhere: `ls`, `stat`, `find`, `tree`, `cat`, `cp`.
//!
//! # What it is
//! Each makes the tree that SOURCE names, looks at it or changes it through the library, and lets it go. Names go out as
//! the bytes that they are; on a terminal, what would move the cursor is escaped. A path is one of the tree's: it
//! begins at the tree's root, with or without a slash. So does what a symbolic link says: none leads out.
//!
//! # What it is not
//! A shell: nothing stays between two commands but what SOURCE keeps itself.
//!
//! # Where it comes from
//! GNU coreutils, findutils and `tree(1)`, whose columns and options they have.

mod cat;
mod columns;
mod cp;
mod entry;
mod failure;
mod find;
mod glob;
mod ls;
mod owners;
mod stamp;
mod stat;
mod text;
mod tree;
mod walk;
mod zone;

pub(crate) use failure::Failure;

use crate::error::Error;
use crate::source::{Source, SourceArguments};
use failure::Troubles;
use lightfoot::{Context, Credentials, Vfs};
use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use text::Style;

/// Bytes that are written at a time.
const BUFFER: usize = 64 << 10;

/// What can be done with a source that is not mounted.
#[derive(clap::Subcommand, Clone, Debug)]
pub(crate) enum Offline {
    /// List directories of a source, as ls(1)
    Ls(ls::Ls),

    /// Show the attributes of files of a source, as stat(1)
    Stat(stat::Stat),

    /// Find files of a source by name, type and size, as find(1)
    Find(find::Find),

    /// Show what lies below a directory of a source, as tree(1)
    Tree(tree::Tree),

    /// Write the contents of files of a source to standard output, as cat(1)
    Cat(cat::Cat),

    /// Copy files into a source, out of one, within one, or from one to another, as cp(1)
    ///
    /// Which side is a source is said by options: with --into SOURCE, FROM are paths of this machine and TO is one of
    /// the source; with --out-of SOURCE it is the other way round; with both, FROM are paths of the one and TO is one of
    /// the other, and options hold for both; with --within SOURCE all are the source's. If TO is a directory, or if there are several FROM, they go
    /// into it under their names; / and . have none, so what is in them goes into TO.
    ///
    /// A symbolic link in the place of a file is replaced, never written through, unless TO itself names it. Symbolic
    /// links are copied as such with --recursive. Nothing is changed on the host outside TO.
    Cp(cp::Cp),
}

/// Runs the command and writes what it has to say to `out`.
pub(crate) fn run(command: &Offline, out: &mut impl Write) -> Result<(), Error> {
    match command {
        Offline::Ls(ls) => on_source(&ls.source, out, |tree, out| ls::run(ls, tree, out)),
        Offline::Stat(stat) => on_source(&stat.source, out, |tree, out| stat::run(stat, tree, out)),
        Offline::Find(find) => on_source(&find.source, out, |tree, out| find::run(find, tree, out)),
        Offline::Tree(shown) => on_source(&shown.source, out, |tree, out| tree::run(shown, tree, out)),
        Offline::Cat(cat) => on_source(&cat.source, out, |tree, out| cat::run(cat, tree, out)),
        Offline::Cp(cp) => cp::run(cp),
    }
}

/// A tree and whose eyes see it.
pub(crate) struct Opened {
    context: Context,
    /// What it is called in errors.
    name: String,
    style: Style,
    troubles: Troubles,
}

impl Opened {
    /// The tree that `source` names, seen by who runs this.
    fn new(source: &Source) -> Result<Self, Error> {
        let context = Vfs::from(source.open()?).context();
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let groups = rustix::process::getgroups().unwrap_or_default();
        let groups: Vec<u32> = groups.into_iter().map(rustix::process::Gid::as_raw).collect();
        context.set_credentials(Credentials::user(uid, gid, &groups));
        context.set_umask(own_umask());
        Ok(Self {
            context,
            name: format!("{:?}", source.name()),
            style: Style::of_stdout(),
            troubles: Troubles::default(),
        })
    }

    /// The failure to do what `verb` says with `path`.
    fn failure(&self, verb: &'static str, path: &[u8], error: io::Error) -> Failure {
        Failure::new(verb, path, Some(&self.name), error)
    }
}

/// Makes the tree and lets `work` write about it. Output errors end the work; failures with single paths are told one by
/// one, and make the status.
fn on_source<W: Write>(
    arguments: &SourceArguments,
    out: &mut W,
    work: impl FnOnce(&Opened, &mut BufWriter<&mut W>) -> io::Result<()>,
) -> Result<(), Error> {
    let opened = Opened::new(&Source::parse(&arguments.source, &arguments.words.options)?)?;
    let mut out = BufWriter::with_capacity(BUFFER, out);
    match work(&opened, &mut out).and_then(|()| out.flush()) {
        // Whoever reads has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written.map_err(|error| Error::Output(error.into()))?,
    }
    opened.troubles.end()
}

/// The mask of creation modes that this process has.
fn own_umask() -> u32 {
    let empty = rustix::fs::Mode::empty();
    let mask = rustix::process::umask(empty);
    rustix::process::umask(mask);
    mask.as_raw_mode()
}

/// A path as the tree has it: from its root.
fn from_root(path: &OsString) -> Vec<u8> {
    let path = path.as_bytes();
    // One that is empty leads nowhere, as anywhere.
    if path.starts_with(b"/") || path.is_empty() { path.to_vec() } else { [b"/", path].concat() }
}

/// `name` in the directory at `dir`.
fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if dir.ends_with(b"/") { b"" } else { b"/" };
    [dir, slash, name].concat()
}
