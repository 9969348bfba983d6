//! `lightfoot completions` and `lightfoot man`: what is made of the command line's description.

use crate::arguments::Arguments;
use crate::error::Error;
use clap::CommandFactory;
use clap_complete::Shell;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What `lightfoot completions` is asked.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Completions {
    /// The shell; its manual says where such a file belongs
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// What `lightfoot man` is asked.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Man {
    /// Write a page for each command into this directory instead, which is made if it is not there
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    dir: Option<PathBuf>,

    /// The command whose page is printed, such as ls or lab run
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    command: Vec<String>,
}

/// Prints what completes the arguments.
pub(crate) fn complete(completions: &Completions, out: &mut impl Write) -> Result<(), Error> {
    let mut command = Arguments::command();
    let mut text = Vec::new();
    clap_complete::generate(completions.shell, &mut command, "lightfoot", &mut text);
    print(&text, out)
}

/// Prints or writes manual pages.
pub(crate) fn run(man: &Man, out: &mut impl Write) -> Result<(), Error> {
    let mut root = Arguments::command();
    root.build();
    if let Some(dir) = &man.dir {
        let save = |path: &Path, error: io::Error| Error::Save { path: path.into(), reason: error.into() };
        fs::create_dir_all(dir).map_err(|error| save(dir, error))?;
        return write_all(&root, "lightfoot", dir);
    }
    let mut command = &root;
    let mut name = String::from("lightfoot");
    for part in &man.command {
        let there = || command.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
        let Some(below) = command.find_subcommand(part) else {
            let there = there().collect::<Vec<_>>().join(", ");
            return Err(Error::NoSuchCommand { asked: part.clone(), of: name, there });
        };
        command = below;
        name = format!("{name}-{part}");
    }
    print(&page(command, &name).map_err(|error| Error::Output(error.into()))?, out)
}

/// Writes the page of `command` and of all below it.
fn write_all(command: &clap::Command, name: &str, dir: &Path) -> Result<(), Error> {
    let path = dir.join(format!("{name}.1"));
    let written = page(command, name).and_then(|text| fs::write(&path, text));
    written.map_err(|error| Error::Save { path, reason: error.into() })?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
        write_all(below, &format!("{name}-{}", below.get_name()), dir)?;
    }
    Ok(())
}

fn page(command: &clap::Command, name: &str) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let command = command.clone().disable_help_subcommand(true);
    let source = concat!("lightfoot ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command).title(name).source(source).manual("Lightfoot").render(&mut text)?;
    Ok(text)
}

fn print(text: &[u8], out: &mut impl Write) -> Result<(), Error> {
    match out.write_all(text).and_then(|()| out.flush()) {
        // Whoever reads has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Error::Output(error.into())),
    }
}
