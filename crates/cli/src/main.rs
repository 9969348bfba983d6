//! The command `lightfoot`: mounts trees and shows their statistics.
//!
//! Exit status: 0; 1 for a failure that the user cannot correct; 2 for wrong input, with a sentence about what to do;
//! 128 + N if signal N ended it.
//!
//! Each module imports only modules of the rows above its own:
//!
//! 1. `command_error`, `escapes`
//! 2. `output`, `logging`, `options`, `signals`
//! 3. `source`
//! 4. `workspaces_server`
//! 5. `control`
//! 6. `doctor`, `stats`, `unmount`, `workspaces`
//! 7. `list`, `mount`
//! 8. `manual`
//! 9. `arguments`

#![forbid(unsafe_code)]

mod arguments;
mod command_error;
mod control;
mod doctor;
mod escapes;
mod list;
mod logging;
mod manual;
mod mount;
mod options;
mod output;
mod paragraph;
mod signals;
mod source;
mod stats;
mod unmount;
mod workspaces;
mod workspaces_server;

use arguments::{Arguments, CommandArguments};
use clap::{CommandFactory, Parser};
use command_error::CommandError;
use output::report;
use std::env;
use std::ffi::OsString;
use std::io;
use std::process::{ExitCode, exit};
use vfs::Foreign;

fn main() -> ExitCode {
    let out = &mut io::stdout().lock();
    let arguments = mount::arguments(env::args_os().collect());
    match parsed(&arguments).command {
        CommandArguments::Mount(mount) => exit_code(mount::run(&mount, &arguments)),
        CommandArguments::Workspaces(verb) => exit_code(workspaces::run(&verb, out)),
        CommandArguments::Unmount(unmount) => exit_code(unmount::run(&unmount)),
        CommandArguments::List(list) => exit_code(list::run(&list, out)),
        CommandArguments::Stats(stats) => exit_code(stats::run(&stats, out)),
        CommandArguments::Top(top) => exit_code(stats::top(&top, out)),
        CommandArguments::Doctor(doctor) => exit_code(doctor::run(&doctor, out)),
        CommandArguments::Completions(completions) => {
            exit_code(manual::complete(&completions, Arguments::command(), out))
        }
        CommandArguments::Man(man) => exit_code(manual::run(&man, Arguments::command(), out)),
    }
}

/// Returns the command line. If it is wrong, prints why and ends the process.
fn parsed(arguments: &[OsString]) -> Arguments {
    Arguments::try_parse_from(arguments).unwrap_or_else(|error| {
        if arguments.iter().any(|argument| Foreign::of(argument).is_escaped()) {
            // The message has some of the arguments in it, so a second try gets them with escapes.
            let shown = arguments.iter().map(|argument| Foreign::of(argument).to_string());
            Arguments::try_parse_from(shown).map_or_else(|error| error.exit(), drop);
            report("an argument has a character that is not permitted there (omit it)");
            exit(2);
        }
        error.exit()
    })
}

fn exit_code<E: CommandError>(result: Result<(), E>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if !error.is_reported() {
        report(&error);
    }
    ExitCode::from(error.status())
}
