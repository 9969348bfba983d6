//! `lightfoot cp`: copies between sources and the host.
//!
//! # What it is
//! Two [`end::End`]s, one to copy from and one to copy to, and the work between them ([`job`]). All that is to be copied
//! is listed before anything is made, so that a directory that is copied into itself has an end, and the progress too.
//!
//! # What it is not
//! A step: what fails is told, and the rest is gone on with.
//!
//! # Limitations
//! It works by paths: what is longer than a path can be is told and not copied, and on the host whoever may rename the
//! directories of TO meanwhile can lead the copy elsewhere, as with `cp(1)`. Hard links become files of their own. Extended
//! attributes are not copied. Options hold for both sources, if there are two.
//!
//! # Where it comes from
//! `cp(1)` of coreutils, where it does not say otherwise.

mod end;
mod host;
mod inside;
mod job;

use super::Opened;
use super::failure::{Failure, Troubles};
use crate::error::Error;
use crate::progress::Progress;
use crate::source::{Source, WordArguments};
use end::End;
use host::Host;
use inside::Inside;
use job::{Item, Job};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// What `lightfoot cp` is asked.
#[derive(clap::Args, Clone, Debug)]
#[command(override_usage = "lightfoot cp [OPTIONS] <--into SOURCE|--out-of SOURCE|--within SOURCE> FROM... TO")]
#[command(group = clap::ArgGroup::new("side").required(true).multiple(true).args(["into", "out_of", "within"]))]
pub(crate) struct Cp {
    /// Copy into this source: TO is one of its paths
    #[arg(long, value_hint = clap::ValueHint::AnyPath, value_name = "SOURCE")]
    into: Option<OsString>,

    /// Copy out of this source: FROM are its paths
    #[arg(long, value_hint = clap::ValueHint::AnyPath, value_name = "SOURCE")]
    out_of: Option<OsString>,

    /// Copy within this source: all are its paths
    #[arg(long, value_hint = clap::ValueHint::AnyPath, value_name = "SOURCE", conflicts_with_all = ["into", "out_of"])]
    within: Option<OsString>,

    /// FROM, what to copy, once or more; and TO, where to
    #[arg(required = true, num_args = 2.., value_name = "PATH", value_hint = clap::ValueHint::AnyPath)]
    paths: Vec<OsString>,

    /// Directories with all that is in them; symbolic links and special files as such
    #[arg(short = 'r', visible_short_alias = 'R', long)]
    recursive: bool,

    /// Modes, owners and times too
    #[arg(short, long)]
    preserve: bool,

    #[command(flatten)]
    words: WordArguments,
}

/// Copies what `cp` asks for.
pub(super) fn run(cp: &Cp) -> Result<(), Error> {
    let open = |source: &OsString| Opened::new(&Source::parse(source, &cp.words.options)?).map(Inside::new);
    let (into, out_of) = (cp.into.as_ref().or(cp.within.as_ref()), cp.out_of.as_ref());
    let to_source = into.map(open).transpose()?;
    let from_source = out_of.map(open).transpose()?;
    let host = Host::new();
    let from: &dyn End = match (&from_source, &to_source) {
        (Some(source), _) => source,
        (None, Some(source)) if cp.within.is_some() => source,
        _ => &host,
    };
    let to: &dyn End = to_source.as_ref().map_or(&host, |source| source);
    copy(cp, from, to)
}

/// Where each of the paths goes.
fn copy(cp: &Cp, from: &dyn End, to: &dyn End) -> Result<(), Error> {
    let troubles = Troubles::default();
    let Some((target, paths)) = cp.paths.split_last() else { return Ok(()) };
    let target = &*path_of(to, target);
    let target_is_dir = match to.facts(target, true) {
        Ok(facts) => facts.is_dir(),
        Err(_) => false,
    };
    if !target_is_dir && (paths.len() > 1 || target.ends_with(b"/") && !cp.recursive) {
        let told = (target, to.source(), "there is no such directory", "make it, or copy one file to one name");
        troubles.tell(&Failure::said("copied into", told.0, told.1, told.2, told.3));
        return troubles.end();
    }
    let same_side = cp.within.is_some() || cp.into.is_none() && cp.out_of.is_none();
    let mut job = Job::new(from, to, &troubles, cp.recursive, cp.preserve);
    let mut items = Vec::new();
    let mut taken = BTreeSet::new();
    for path in paths.iter().map(|path| path_of(from, path)) {
        let name = base(&path);
        let (target, is_named) = match name {
            Some(name) if target_is_dir => (super::join(target, name), false),
            _ => (target.to_vec(), true),
        };
        let wrong = if same_side && job.is_below_itself(&path, &target) {
            Some(("the copy would lie in what is copied", "name another place for the copy"))
        } else if name.is_some() && !taken.insert(target.clone()) {
            Some(("another of that name goes to the same place", "copy them one by one"))
        } else {
            None
        };
        match wrong {
            Some((reason, way_out)) => {
                troubles.tell(&Failure::said("copied", &path, from.source(), reason, way_out));
            }
            None => job.plan(Item::start(path, target, is_named), &mut items),
        }
    }
    let bytes = items.iter().map(Item::bytes).sum();
    job.set_progress(Progress::of_bytes("copying", bytes));
    job.run(items);
    drop(job);
    troubles.end()
}

/// A path as the end has it.
fn path_of(end: &dyn End, path: &OsString) -> Vec<u8> {
    if end.source().is_some() { super::from_root(path) } else { path.as_bytes().to_vec() }
}

/// The last component of a path; `None` if it is the directory itself or one above it.
fn base(path: &[u8]) -> Option<&[u8]> {
    let name = path.split(|&byte| byte == b'/').rev().find(|name| !name.is_empty())?;
    (!matches!(name, b"." | b"..")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_last_component_that_is_one() {
        let cases: [(&[u8], Option<&[u8]>); 8] = [
            (b"a", Some(b"a")),
            (b"/a/b", Some(b"b")),
            (b"/a/b//", Some(b"b")),
            (b"/", None),
            (b".", None),
            (b"a/.", None),
            (b"a/..", None),
            (b"", None),
        ];
        for (path, name) in cases {
            assert_eq!(base(path), name);
        }
    }
}
