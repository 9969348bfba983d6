//! `lightfoot top`: the operations of a mount, at intervals.
//!
//! # What it is
//! On a terminal a screen that keys control ([`screen`]); elsewhere one page of text for each interval. Both end with a
//! sentence when the mount ends.
//!
//! # Where it comes from
//! `top(1)`, `htop(1)`.

mod drawing;
mod feed;
mod screen;
mod view;

use super::{StatsError, page, seconds};
use crate::control;
use crate::output::{Reader, print};
use clap::Args;
use feed::take;
use fuse::message::show;
use fuse::mountinfo::MountInfo;
use rustix::termios::isatty;
use std::io::{self, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Arguments of `lightfoot top`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Top {
    /// A mount of Lightfoot
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: PathBuf,

    /// Seconds between pages
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    delay: Duration,

    /// End after COUNT pages [default: run until q or Ctrl-C]
    #[arg(short = 'n', long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Print one page as plain text
    #[arg(long, conflicts_with = "count")]
    once: bool,
}

/// Why it ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The user or the count of pages ended it.
    Wanted,
    /// The mount has ended.
    OfMount,
}

/// Shows pages until the user ends it or the mount ends.
pub(crate) fn run(top: &Top, out: &mut impl Write) -> Result<(), StatsError> {
    let mount = control::find(&top.mountpoint)?;
    let is_screen = !top.once && isatty(io::stdout());
    let pages = if top.once { 1 } else { top.count.unwrap_or(u64::MAX) };
    let end =
        if is_screen { screen::run(&mount, top.delay, pages, out)? } else { print_pages(&mount, top, pages, out)? };
    if end == End::OfMount {
        print(&format!("{}: the mount has ended\n", show(&mount.mountpoint)), out)?;
    }
    Ok(())
}

fn print_pages(mount: &MountInfo, top: &Top, pages: u64, out: &mut impl Write) -> Result<End, StatsError> {
    let Some(mut before) = take(mount)? else { return Ok(End::OfMount) };
    for _ in 0..pages {
        thread::sleep(top.delay);
        let Some(now) = take(mount)? else { return Ok(End::OfMount) };
        let text = page::full(&now.since(&before)) + "\n";
        before = now;
        if print(&text, out)? == Reader::Gone {
            break;
        }
    }
    Ok(End::Wanted)
}
