//! The command `lightfoot`: works on trees without mounting them, and measures Lightfoot beside the kernel.
//!
//! Exit status: 0; 1 if something failed that the caller has no hand in; 2 for input that cannot be worked with, with one
//! sentence that says how to mend it; 128 and the number of a signal that ended it.

#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod cases;
mod control;
mod copy;
mod error;
mod interrupt;
mod lab;
mod logging;
mod machine;
mod manual;
mod measure;
mod mount;
mod offline;
mod paths;
mod plot;
mod progress;
mod report;
mod scratch;
mod source;
mod stats;
mod tree;
mod unmount;

use arguments::{Arguments, Command};
use clap::Parser;
use error::Error;
use std::env;
use std::io;
use std::process::ExitCode;

/// Outside of a simulation it is the system's.
#[global_allocator]
static ARENA: sim::Arena = sim::Arena;

fn main() -> ExitCode {
    let out = &mut io::stdout().lock();
    let arguments = mount::arguments(env::args_os().collect());
    let done = match Arguments::parse_from(&arguments).command {
        Command::Bench(bench) => bench::run(&bench, out),
        Command::Lab(lab) => lab::run(&lab, out),
        Command::Mount(mount) => mount::run(&mount, arguments.get(1..).unwrap_or_default()),
        Command::Unmount(unmount) => unmount::run(&unmount),
        Command::Stats(stats) => stats::run(&stats, out),
        Command::Top(top) => stats::top(&top, out),
        Command::Offline(offline) => offline::run(&offline, out),
        Command::Completions(completions) => manual::complete(&completions, out),
        Command::Man(man) => manual::run(&man, out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Told(status)) => ExitCode::from(status),
        Err(error) => {
            eprintln!("lightfoot: {error}");
            ExitCode::from(error.status())
        }
    }
}
