//! `lightfoot top`: the status of a mount again and again, each time what happened since the last.
//!
//! On a terminal each page takes the place of the one before; elsewhere they follow one another.

use super::{finish, page, seconds};
use crate::control;
use crate::error::Error;
use crate::mount::Entry;
use clap::Args;
use rustix::termios::{isatty, tcgetwinsize};
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// To the corner, and nothing below it.
const CLEAR: &str = "\x1b[H\x1b[J";

/// The lines of a terminal that does not say.
const USUAL_LINES: usize = 40;

/// What `lightfoot top` is asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Top {
    /// Where it is mounted
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Seconds from one page to the next
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    delay: Duration,

    /// End after so many pages [default: at ^C]
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// One page, as plain text
    #[arg(long, conflicts_with = "count")]
    once: bool,
}

/// Shows pages until it is told to end or the mount has gone.
pub(crate) fn run(top: &Top, out: &mut impl Write) -> Result<(), Error> {
    let mount = Entry::find(&top.mountpoint)?;
    let is_screen = !top.once && isatty(io::stdout());
    let pages = if top.once { 1 } else { top.count.unwrap_or(u64::MAX) };
    let mut before = control::ask(&mount)?;
    for _ in 0..pages {
        thread::sleep(top.delay);
        let now = control::ask(&mount)?;
        let happened = now.since(&before);
        before = now;
        let text =
            if is_screen { CLEAR.to_owned() + &page::short(&happened, lines()) } else { page::full(&happened) + "\n" };
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        if written.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::BrokenPipe) {
            return Ok(());
        }
        finish(written)?;
    }
    Ok(())
}

/// Lines of the terminal.
fn lines() -> usize {
    tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_row)).filter(|&rows| rows > 0).unwrap_or(USUAL_LINES)
}
