//! The log of a mount: events of `tracing`.
//!
//! Lines of text or JSON on standard error, or appended to a file; in the background without a file, also to syslog(3), which is
//! journald where systemd runs. `--log-level` selects them, else `$LIGHTFOOT_LOG`. Both
//! take a level, and levels for single parts: `info,fuse=debug`. `RUST_LOG` is ignored. A level or part that does not exist
//! is an error.

use crate::escapes;
use clap::{Args, ValueEnum};
use fuse::message::{Reason, show};
use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use syslog_tracing::{Facility, Options, Syslog};
use thiserror::Error;
use tracing::Metadata;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};
use vfs::Foreign;

/// The environment variable that is read if `--log-level` is not given.
const VARIABLE: &str = "LIGHTFOOT_LOG";

/// The parts that can have a level, and the target of `tracing` that each logs with.
const PARTS: [(&str, &str); 5] = [
    ("lightfoot", "lightfoot"),
    ("fuse", "lightfoot_fuse"),
    ("hostfs", "lightfoot_hostfs"),
    ("objectfs", "lightfoot_objectfs"),
    ("vfs", "lightfoot_vfs"),
];

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::OFF),
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// What is logged, how and where.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogArguments {
    /// What is logged: error, warn, info, debug, trace or off; for one part: info,fuse=debug [default: $LIGHTFOOT_LOG,
    /// else info, or warn with --daemon]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) log_level: Option<String>,

    /// Format of the log's lines
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,

    /// Append the log to FILE [default: standard error; with --daemon also syslog or journald]
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,
}

/// Format of the log's lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// Why there is no log.
#[derive(Debug, Error)]
pub(crate) enum LogError {
    /// A level that does not exist.
    #[error("invalid log level {:?}{} (use error, warn, info, debug, trace or off)", Foreign::of(.level), place(*.is_from_environment))]
    Level { level: String, is_from_environment: bool },

    /// A level for a part that does not exist.
    #[error(
        "invalid log level {:?}{}: no part {:?} (use lightfoot, fuse, hostfs, objectfs or vfs)",
        Foreign::of(.item),
        place(*.is_from_environment),
        Foreign::of(.part)
    )]
    Part { item: String, part: String, is_from_environment: bool },

    /// The file cannot be opened.
    #[error("{}: cannot write the log: {reason} (name a file that you may write)", show(.path))]
    File { path: PathBuf, reason: Reason },
}

fn place(is_from_environment: bool) -> &'static str {
    if is_from_environment { " in $LIGHTFOOT_LOG" } else { "" }
}

/// Starts to log, until the process ends. In the background it logs to syslog, too, unless a file is given, and only warnings
/// and errors if neither the command line nor the environment has a level.
///
/// # Errors
/// If a level or part does not exist, or the file cannot be written.
pub(crate) fn start(arguments: &LogArguments, is_in_background: bool) -> Result<(), LogError> {
    let default = if is_in_background { LevelFilter::WARN } else { LevelFilter::INFO };
    let variable = || env::var(VARIABLE).ok().map(|levels| (levels, true));
    let given = arguments.log_level.clone().map(|levels| (levels, false));
    let (levels, is_from_environment) = given.or_else(variable).unwrap_or_default();
    let filter = filter(&levels, default, is_from_environment)?;
    let writer = arguments.log_file.as_deref().map_or_else(|| Ok(BoxMakeWriter::new(io::stderr)), file)?;
    let has_syslog = is_in_background && arguments.log_file.is_none();
    let writers = [Some((writer, false)), if has_syslog { syslog().map(|writer| (writer, true)) } else { None }];
    let layers: Vec<_> = writers
        .into_iter()
        .flatten()
        .map(|(writer, is_syslog)| {
            let format = arguments.log_format;
            let lines = fmt::layer().with_writer(Escaping { writer, format });
            match format {
                // syslog adds the time, and has the level as its priority.
                LogFormat::Text if is_syslog => lines.with_ansi(false).with_level(false).without_time().boxed(),
                LogFormat::Text => lines.boxed(),
                LogFormat::Json => lines.json().flatten_event(true).boxed(),
            }
        })
        .collect();
    // Fails only if a subscriber is set already, which then stays.
    let _ = tracing_subscriber::registry().with(layers.with_filter(filter)).try_init();
    Ok(())
}

/// Returns the filter that `levels` describes: levels and `PART=LEVEL`, with commas between them.
fn filter(levels: &str, default: LevelFilter, is_from_environment: bool) -> Result<Targets, LogError> {
    let level = |text: &str| {
        let found = LEVELS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        found.map(|&(_, level)| level).ok_or_else(|| LogError::Level { level: text.into(), is_from_environment })
    };
    let mut general = default;
    let mut of_parts = Vec::new();
    for item in levels.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let Some((part, of_part)) = item.split_once('=') else {
            general = level(item)?;
            continue;
        };
        let Some((_, target)) = PARTS.iter().find(|(name, _)| *name == part) else {
            return Err(LogError::Part { item: item.into(), part: part.into(), is_from_environment });
        };
        of_parts.push((*target, level(of_part)?));
    }
    // Each target separately, because `lightfoot` is a prefix of others.
    let of_all = PARTS.map(|(_, target)| (target, general));
    Ok(Targets::new().with_default(general).with_targets(of_all).with_targets(of_parts))
}

/// Returns the system's log. Each event of the log has the priority of its level.
fn syslog() -> Option<BoxMakeWriter> {
    Syslog::new(c"lightfoot", Options::LOG_PID, Facility::Daemon).map(BoxMakeWriter::new)
}

fn file(path: &Path) -> Result<BoxMakeWriter, LogError> {
    let opened = File::options().append(true).create(true).open(path);
    let file = opened.map_err(|error| LogError::File { path: path.into(), reason: error.into() })?;
    // Each line is one write at the end of the file, so lines of several processes do not mix.
    Ok(BoxMakeWriter::new(Arc::new(file)))
}

/// A writer of events that writes each as one line, without characters that a terminal would obey: also the events of other
/// crates, which do not use [`Foreign`].
struct Escaping<W> {
    writer: W,
    format: LogFormat,
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Escaping<W> {
    type Writer = Escaping<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Escaping { writer: self.writer.make_writer(), format: self.format }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Self::Writer {
        Escaping { writer: self.writer.make_writer_for(event), format: self.format }
    }
}

impl<W: Write> Write for Escaping<W> {
    /// Writes an event, which comes as a whole.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let line = match self.format {
            LogFormat::Text => Foreign::of(text).to_string(),
            LogFormat::Json => escapes::json(text).into_owned(),
        };
        self.writer.write_all((line + "\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn levels_select_what_is_logged() {
        let filter = |levels: &str| filter(levels, LevelFilter::INFO, false).expect(levels);
        assert!(filter("").would_enable("lightfoot::mount", &Level::INFO));
        assert!(!filter("warn").would_enable("lightfoot::mount", &Level::INFO));
        assert!(filter("DEBUG").would_enable("lightfoot_vfs::walk", &Level::DEBUG));
        let one = filter("warn, fuse=debug");
        assert!(
            one.would_enable("lightfoot_fuse::session", &Level::DEBUG)
                && !one.would_enable("lightfoot_hostfs", &Level::INFO)
        );
        assert!(!filter("warn,lightfoot=debug").would_enable("lightfoot_fuse::session", &Level::DEBUG));
        assert!(filter("off,hostfs=info").would_enable("lightfoot_hostfs::watch", &Level::INFO));
    }

    #[test]
    fn a_level_or_part_that_does_not_exist_is_an_error() {
        let error = |levels: &str, is_from_environment| {
            filter(levels, LevelFilter::INFO, is_from_environment).expect_err(levels).to_string()
        };
        assert_eq!(error("x", false), "invalid log level \"x\" (use error, warn, info, debug, trace or off)");
        assert!(error("info,y", true).starts_with("invalid log level \"y\" in $LIGHTFOOT_LOG (use "));
        assert!(error("fuse=loud", false).starts_with("invalid log level \"loud\" (use "));
        assert!(error("a=b=c", false).contains("no part \"a\" (use lightfoot, fuse"));
        assert!(error("fuse=debug=", false).contains("\"debug=\""));
    }
}
