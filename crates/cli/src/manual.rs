//! `lightfoot completions` and `lightfoot man`: shell completions and manual pages, made from the command line's description.

use crate::command_error::CommandError;
use crate::output::{OutputError, print_own};
use clap::Command;
use clap_complete::Shell;
use fuse::message::{Reason, show};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;
use vfs::Foreign;

/// Arguments of `lightfoot completions`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Completions {
    /// The shell; its manual says where to save them
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `lightfoot man`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Man {
    /// Write the pages of all commands into DIR, and create it if it is missing
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,

    /// The command whose page to print, such as mount
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Option<String>,
}

/// Why there is no page, or no completions.
#[derive(Debug, Error)]
pub(crate) enum ManualError {
    /// The command does not exist.
    #[error("unknown command {:?} (use {})", Foreign::of(.name), .known.join(", "))]
    UnknownCommand { name: String, known: Vec<String> },

    /// A page cannot be written.
    #[error("{}: cannot write manual pages: {reason} (use a directory that you may write)", show(.path))]
    Save { path: PathBuf, reason: Reason },

    /// They cannot be printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl CommandError for ManualError {
    fn status(&self) -> u8 {
        if matches!(self, Self::Output(_)) { 1 } else { 2 }
    }
}

/// Prints completions of `root`, the description of the command line.
pub(crate) fn complete(completions: &Completions, mut root: Command, out: &mut impl Write) -> Result<(), ManualError> {
    let mut text = Vec::new();
    clap_complete::generate(completions.shell, &mut root, "lightfoot", &mut text);
    print_own(&text, out)?;
    Ok(())
}

/// Prints a page of `root`, the description of the command line, or writes all.
pub(crate) fn run(man: &Man, mut root: Command, out: &mut impl Write) -> Result<(), ManualError> {
    root.build();
    if let Some(dir) = &man.dir {
        return write_all(&root, dir);
    }
    let text = match &man.command {
        None => page(&root, "lightfoot"),
        Some(name) => {
            let Some(command) = root.find_subcommand(name) else {
                let known = documented(&root).map(|command| command.get_name().to_owned()).collect();
                return Err(ManualError::UnknownCommand { name: name.clone(), known });
            };
            page(command, &format!("lightfoot-{}", command.get_name()))
        }
    };
    print_own(&text, out)?;
    Ok(())
}

fn write_all(root: &Command, dir: &Path) -> Result<(), ManualError> {
    let failed = |path: &Path, error: io::Error| ManualError::Save { path: path.into(), reason: error.into() };
    fs::create_dir_all(dir).map_err(|error| failed(dir, error))?;
    let below = documented(root).map(|command| (command, format!("lightfoot-{}", command.get_name())));
    for (command, name) in [(root, "lightfoot".to_owned())].into_iter().chain(below) {
        let path = dir.join(format!("{name}.1"));
        fs::write(&path, page(command, &name)).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

fn documented(root: &Command) -> impl Iterator<Item = &Command> {
    root.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn page(command: &Command, name: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let command = command.clone().disable_help_subcommand(true);
    let source = concat!("lightfoot ", env!("CARGO_PKG_VERSION"));
    let page = clap_mangen::Man::new(command).title(name).source(source).manual("Lightfoot");
    page.render(&mut text).expect("memory can be written");
    text
}
