//! `lightfoot stats` and `lightfoot top`: how a mount is, once or again and again.

mod page;
mod prometheus;
mod screen;
mod units;

pub(crate) use prometheus::text as prometheus;
pub(crate) use screen::{Top, run as top};

use crate::control;
use crate::error::Error;
use crate::mount::Entry;
use clap::Args;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// What `lightfoot stats` is asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Stats {
    /// Where it is mounted
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Print one JSON document: times in nanoseconds, sizes in bytes
    #[arg(long, conflicts_with = "prometheus")]
    json: bool,

    /// Print what Prometheus reads
    #[arg(long)]
    prometheus: bool,

    /// What happens in so many seconds from now, instead of since it was mounted
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    interval: Option<Duration>,
}

/// Asks once, or at both ends of an interval, and prints it.
pub(crate) fn run(stats: &Stats, out: &mut impl Write) -> Result<(), Error> {
    let mount = Entry::find(&stats.mountpoint)?;
    let mut status = control::ask(&mount)?;
    if let Some(interval) = stats.interval {
        thread::sleep(interval);
        status = control::ask(&mount)?.since(&status);
    }
    let written = if stats.json {
        serde_json::to_writer_pretty(&mut *out, &status).map_err(io::Error::from).and_then(|()| writeln!(out))
    } else if stats.prometheus {
        out.write_all(prometheus(&status).as_bytes())
    } else {
        out.write_all(page::full(&status).as_bytes())
    };
    finish(written.and_then(|()| out.flush()))
}

/// Who reads no further ends us like everybody.
fn finish(written: io::Result<()>) -> Result<(), Error> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Error::Output(error.into())),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.filter(|seconds| !seconds.is_zero()).ok_or_else(|| "say a number of seconds, such as 1 or 0.5".into())
}
