//! The command `lightfoot-lab`: eras of the directory cache under workloads, on this machine and on simulated ones, and
//! Lightfoot beside the kernel.
//!
//! Exit status: 0; 1 for a failure other than bad input; 2 for bad input, with one line about what to do; 128 plus the
//! number of a signal that ended the command.

#![forbid(unsafe_code)]

mod arguments;
mod axis;
mod bench;
mod calibrate;
mod commit;
mod dots;
mod error;
mod figure;
mod interrupt;
mod labels;
mod list;
mod machine;
mod output;
mod palette;
mod place;
mod progress;
mod published;
mod run;
mod run_report;
mod table;

use arguments::{Arguments, Command};
use clap::Parser;
use error::Error;
use std::io;
use std::process::ExitCode;

/// The simulator needs memory at fixed addresses; outside a simulation this is the system's allocator.
#[global_allocator]
static ARENA: sim::Arena = sim::Arena;

fn main() -> ExitCode {
    let out = &mut io::stdout().lock();
    let done = match Arguments::parse().command {
        Command::Bench(bench) => bench::run(&bench, out),
        Command::List(arguments) => output::write(out, &list::text(&arguments.parts)),
        Command::Calibrate(arguments) => calibrate::run(&arguments, out),
        Command::Report(arguments) => published::run(&arguments, out),
        Command::Run(arguments) => run::run(&arguments, out),
        Command::Cell => lab::run_cell(io::stdin().lock(), out).map_err(|error| Error::Cell(error.into())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lightfoot-lab: {error}");
            ExitCode::from(error.status())
        }
    }
}
