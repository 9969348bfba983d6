//! What the command line can say.

use crate::lab::Lab;
use crate::manual::{Completions, Man};
use crate::mount::Mount;
use crate::offline::Offline;
use crate::stats::{Stats, Top};
use crate::unmount::Unmount;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "lightfoot",
    version,
    about = "Lightfoot: a virtual file system in a crate",
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure Lightfoot beside the kernel, on copies of a directory tree
    ///
    /// The tree (names, kinds, modes, symbolic links, small contents) is copied into a Lightfoot instance in memory and
    /// into a temporary directory for the kernel, which is removed at the end. Both then do the same operations on the
    /// same paths, in turn.
    Bench(Box<Bench>),

    /// Run generations of the Linux directory cache side by side, on this machine and on simulated ones
    Lab(Lab),

    /// Mount a source, and answer for it until it is unmounted
    ///
    /// The process stays in the foreground, and unmounts at TERM, INT or HUP. With --daemon it returns once the mount is
    /// there.
    Mount(Box<Mount>),

    /// Unmount what `lightfoot mount` has mounted, and wait until its process has ended
    Unmount(Unmount),

    /// Show how a mount is: operations and how long they took, caches, memory
    Stats(Stats),

    /// Show what happens on a mount, each second
    Top(Top),

    /// What is done with a source that is not mounted.
    #[command(flatten)]
    Offline(Offline),

    /// Print what a shell needs to complete this command's arguments
    Completions(Completions),

    /// Print the manual page, or write one for each command
    Man(Man),
}

/// What `lightfoot bench` is asked.
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the command's switches")]
pub(crate) struct Bench {
    /// The directory to copy; without one, a synthetic tree of 9,984 files at each of the depths 1, 4, 8 and 16
    #[arg(conflicts_with = "cold")]
    pub(crate) dir: Option<PathBuf>,

    /// Print one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw time against depth into this SVG file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,

    /// Two depths, 5 rounds, short slices: done in less than 20 seconds, and less exact
    #[arg(long)]
    pub(crate) quick: bool,

    /// Numbers of threads [default: 1, 2, 4, ... up to all CPUs; with --quick 1 and all]
    #[arg(long, value_name = "N,N..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) threads: Vec<u32>,

    /// Rounds, of which the median is given [default: 9; with --quick 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..=999))]
    pub(crate) rounds: Option<u32>,

    /// Only the cases that have one of these in their names, such as stat or lightfoot.open
    #[arg(long, value_name = "PART,PART..", value_delimiter = ',', conflicts_with = "cold")]
    pub(crate) cases: Vec<String>,

    /// Where to put the kernel's copy [default: /dev/shm if it can be written to, else $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,

    /// Instead of hot paths: every file of a synthetic tree of a million in random order, with Lightfoot alone
    #[arg(long, conflicts_with = "quick")]
    pub(crate) cold: bool,

    /// With --cold, the kernel too: takes about 1 GiB more memory
    #[arg(long, requires = "cold")]
    pub(crate) cold_kernel: bool,

    /// Length of a slice in microseconds
    #[arg(long, hide = true, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) slice_us: Option<u64>,

    /// Files of the tree for --cold, about
    #[arg(long, hide = true, default_value_t = 1_000_000)]
    pub(crate) cold_files: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
