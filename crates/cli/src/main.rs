//! The command `lightfoot`: measures Lightfoot beside the kernel.
//!
//! Exit status: 0; 1 if something failed that the caller has no hand in; 2 for input that cannot be worked with, with one
//! sentence that says how to mend it; 128 and the number of a signal that ended it.

#![forbid(unsafe_code)]

mod arguments;
mod bench;
mod cases;
mod copy;
mod error;
mod interrupt;
mod machine;
mod measure;
mod paths;
mod plot;
mod progress;
mod report;
mod scratch;
mod tree;

use arguments::{Arguments, Command};
use clap::Parser;
use std::io;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Command::Bench(bench) = Arguments::parse().command;
    match bench::run(&bench, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lightfoot: {error}");
            ExitCode::from(error.status())
        }
    }
}
