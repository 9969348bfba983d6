//! The log of a mount: what `tracing` is told, and by a bridge what `fuser` tells `log`.
//!
//! Lines of text or of JSON on standard error, or at the end of a file. Which are written is said by `--log-level`, else by
//! `$LIGHTFOOT_LOG`, in the words of `tracing-subscriber`'s filters: a level, or levels for parts (`info,fuse=debug`).

use crate::mount::Failure;
use clap::{Args, ValueEnum};
use std::env;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::util::SubscriberInitExt;

/// Where the level is looked for if it is not on the command line.
const VARIABLE: &str = "LIGHTFOOT_LOG";

/// What is written where.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogArguments {
    /// What is logged: error, warn, info, debug, trace or off, or for parts: info,fuse=debug [default: $LIGHTFOOT_LOG, else
    /// info, and warn with --daemon]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,

    /// How a line of the log looks
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    /// Where the log is appended to [default: standard error; nowhere once in the background]
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
}

/// How a line of the log looks.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// Begins to log, for the rest of the process; what nobody says otherwise is logged from `otherwise` on.
///
/// # Errors
/// If the file cannot be written, or the level is none.
pub(crate) fn start(arguments: &LogArguments, otherwise: &str) -> Result<(), Failure> {
    let said = arguments.log_level.clone().or_else(|| env::var(VARIABLE).ok()).filter(|level| !level.is_empty());
    let level = said.unwrap_or_else(|| otherwise.into());
    let filter = EnvFilter::try_new(&level).map_err(|_| Failure::LogLevel(level))?;
    let writer = arguments.log_file.as_deref().map_or_else(|| Ok(BoxMakeWriter::new(io::stderr)), file)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    // It fails where somebody logs already, who may go on.
    let _ = match arguments.log_format {
        LogFormat::Text => lines.finish().try_init(),
        LogFormat::Json => lines.json().flatten_event(true).finish().try_init(),
    };
    Ok(())
}

fn file(path: &Path) -> Result<BoxMakeWriter, Failure> {
    let opened = File::options().append(true).create(true).open(path);
    let file = opened.map_err(|error| Failure::LogFile { path: path.into(), reason: error.into() })?;
    // Each line is one write at the end of the file, so lines of several processes do not mix.
    Ok(BoxMakeWriter::new(Arc::new(file)))
}
