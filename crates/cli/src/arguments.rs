//! The arguments of the command line.

use crate::doctor::Doctor;
use crate::list::List;
use crate::manual::{Completions, Man};
use crate::mount::Mount;
use crate::stats::{Stats, Top};
use crate::unmount::Unmount;
use crate::workspaces::Verb;
use clap::{Parser, Subcommand};

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "lightfoot",
    version = env!("LIGHTFOOT_VERSION"),
    about = "Mount trees in memory, directories and s3:// buckets through FUSE, and show statistics of the mounts",
    after_help = "Try: lightfoot mount ram: /mnt/x",
    max_term_width = 100,
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    /// The subcommand.
    #[command(subcommand)]
    pub(crate) command: CommandArguments,
}

/// A subcommand with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum CommandArguments {
    /// Mount a tree, and serve it until it is unmounted
    ///
    /// The process stays in the foreground; Ctrl-C, TERM and HUP unmount. With --daemon it goes to the background once the
    /// mount is ready.
    Mount(Box<Mount>),

    /// Work with forks.
    #[command(flatten)]
    Workspaces(Verb),

    /// Unmount mounts of Lightfoot, and wait until their processes have ended
    #[command(visible_alias = "umount")]
    Unmount(Unmount),

    /// List the mounts of Lightfoot
    List(List),

    /// Show statistics of a mount: operations, latencies, caches, memory
    Stats(Stats),

    /// Show what happens on a mount, once a second
    Top(Top),

    /// Check what mounts need on this machine
    ///
    /// Prints a line for each finding: `ok`, `note` (mounts work without it), `bad` (mounts do not work), with the cure in
    /// parentheses. The exit status is 1 if this user cannot mount. Nothing is mounted or changed.
    #[command(verbatim_doc_comment)]
    Doctor(Doctor),

    /// Print shell completions
    Completions(Completions),

    /// Print the manual page, or write all pages
    Man(Man),
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
