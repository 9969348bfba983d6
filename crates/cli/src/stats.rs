//! `lightfoot stats` and `lightfoot top`: statistics of a mount, once or repeatedly.

mod page;
mod prometheus;
mod top;
mod units;

pub(crate) use prometheus::text as prometheus;
pub(crate) use top::{Top, run as top};

use crate::command_error::CommandError;
use crate::control::{self, ControlError};
use crate::output::{OutputError, json, print};
use clap::Args;
use fuse::message::Reason;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Arguments of `lightfoot stats`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Stats {
    /// A mount of Lightfoot
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Print one JSON document: times in nanoseconds, sizes in bytes
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,

    /// Print the text format of Prometheus
    #[arg(long)]
    prometheus: bool,

    /// Count what happens during the next SECONDS, instead of everything since it was mounted
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    interval: Option<Duration>,
}

/// Why there are no statistics.
#[derive(Debug, Error)]
pub(crate) enum StatsError {
    /// The mount was not found, or does not reply.
    #[error(transparent)]
    Control(#[from] ControlError),

    /// They cannot be printed.
    #[error(transparent)]
    Output(#[from] OutputError),

    /// The terminal cannot be used.
    #[error("terminal: {} (--once and pipes print plain text)", Reason::from(.0))]
    Terminal(#[from] io::Error),

    /// A signal of this number ended it.
    #[error("ended by signal {0}")]
    Killed(u8),

    /// A thread panicked, which was reported.
    #[error("it panicked")]
    Panicked,
}

impl CommandError for StatsError {
    fn status(&self) -> u8 {
        match self {
            Self::Control(error) => error.status(),
            Self::Output(_) | Self::Terminal(_) => 1,
            Self::Killed(signal) => 128 + signal,
            Self::Panicked => 101,
        }
    }

    fn is_reported(&self) -> bool {
        matches!(self, Self::Killed(_) | Self::Panicked)
    }
}

/// Prints the status of a mount, or its counts during an interval.
pub(crate) fn run(stats: &Stats, out: &mut impl Write) -> Result<(), StatsError> {
    let mount = control::find(&stats.mountpoint)?;
    let mut status = control::status(&mount)?;
    if let Some(interval) = stats.interval {
        thread::sleep(interval);
        status = control::status(&mount)?.since(&status);
    }
    let text = if stats.json {
        json(&status)?
    } else if stats.prometheus {
        prometheus(&status)
    } else {
        page::full(&status)
    };
    print(&text, out)?;
    Ok(())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|seconds| !seconds.is_zero()).ok_or_else(|| "use a number of seconds, such as 1 or 0.5".into())
}
