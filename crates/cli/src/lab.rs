//! `lightfoot lab`: eras of the directory cache under workloads, on this machine and on simulated ones.

mod arguments;
mod calibrate;
mod chart;
mod figure;
mod list;
mod machines;
mod place;
mod published;
mod report;
mod run;
mod table;

pub(crate) use arguments::{Lab, LabCommand};

use crate::error::Error;
use std::io::{self, Write};

/// Runs the command and writes what it has to say to `out`.
pub(crate) fn run(lab: &Lab, out: &mut impl Write) -> Result<(), Error> {
    match &lab.command {
        LabCommand::List => write(out, &list::text()),
        LabCommand::Machines => write(out, &machines::text()),
        LabCommand::Calibrate(arguments) => calibrate::run(arguments, out),
        LabCommand::Report(arguments) => published::run(arguments, out),
        LabCommand::Run(arguments) => run::run(arguments, out),
        LabCommand::Cell => lab::run_cell(io::stdin().lock(), out).map_err(|error| Error::Cell(error.into())),
    }
}

fn write(out: &mut impl Write, text: &str) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Whoever reads has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Error::Output(error.into())),
    }
}
