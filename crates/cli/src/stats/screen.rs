//! `lightfoot top`: the status of a mount at intervals, each page with what happened since the one before.
//!
//! On a terminal each page replaces the one before; elsewhere they follow one another.

use super::{StatsError, page, seconds};
use crate::control;
use crate::output::{Reader, print};
use clap::Args;
use rustix::termios::{isatty, tcgetwinsize};
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Moves to the top left corner and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[J";

/// The size of a terminal that does not report one.
const DEFAULT_LINES: usize = 40;

/// Arguments of `lightfoot top`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Top {
    /// A mount of Lightfoot
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Seconds between pages
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    delay: Duration,

    /// End after COUNT pages [default: run until Ctrl-C]
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Print one page as plain text
    #[arg(long, conflicts_with = "count")]
    once: bool,
}

/// Shows pages until the user ends it or the mount ends.
pub(crate) fn run(top: &Top, out: &mut impl Write) -> Result<(), StatsError> {
    let mount = control::find(&top.mountpoint)?;
    let is_screen = !top.once && isatty(io::stdout());
    let pages = if top.once { 1 } else { top.count.unwrap_or(u64::MAX) };
    let mut before = control::status(&mount)?;
    for _ in 0..pages {
        thread::sleep(top.delay);
        let now = control::status(&mount)?;
        let since = now.since(&before);
        before = now;
        let text = if is_screen { CLEAR.to_owned() + &page::short(&since, lines()) } else { page::full(&since) + "\n" };
        if print(text.as_bytes(), out)? == Reader::Gone {
            return Ok(());
        }
    }
    Ok(())
}

/// Lines of the terminal.
fn lines() -> usize {
    tcgetwinsize(io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_row))
        .filter(|&rows| rows > 0)
        .unwrap_or(DEFAULT_LINES)
}
