//! The command `lightfoot`: mounts trees and shows their statistics.
//!
//! Exit status: 0; 1 for a failure that the user cannot correct; 2 for wrong input, with a sentence about what to do;
//! 128 + N if signal N ended it.
//!
//! Each module imports only modules of the rows above its own:
//!
//! 1. `command_error`
//! 2. `output`, `logging`, `options`, `signals`
//! 3. `control`, `source`
//! 4. `doctor`, `list`, `stats`, `unmount`
//! 5. `mount`
//! 6. `manual`
//! 7. `arguments`

#![forbid(unsafe_code)]

mod arguments;
mod command_error;
mod control;
mod doctor;
mod list;
mod logging;
mod manual;
mod mount;
mod options;
mod output;
mod signals;
mod source;
mod stats;
mod unmount;

use arguments::{Arguments, CommandArguments};
use clap::{CommandFactory, Parser};
use command_error::CommandError;
use std::env;
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let out = &mut io::stdout().lock();
    let arguments = mount::arguments(env::args_os().collect());
    match Arguments::parse_from(&arguments).command {
        CommandArguments::Mount(mount) => exit_code(mount::run(&mount, &arguments)),
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

fn exit_code<E: CommandError>(result: Result<(), E>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    if !error.is_reported() {
        eprintln!("lightfoot: {error}");
    }
    ExitCode::from(error.status())
}
