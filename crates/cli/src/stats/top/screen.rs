//! The terminal while `lightfoot top` has it, and the loop that draws.
//!
//! # What it is
//! The terminal shows its alternate screen and gives each key at once. [`OwnTerminal`] restores it on drop; a hook does before
//! a panic is reported, so that the report can be read. Both write past the lock of standard output, which another thread may
//! hold.

use super::End;
use super::drawing::draw;
use super::feed::{self, Happened};
use super::view::View;
use crate::stats::StatsError;
use fuse::mountinfo::MountInfo;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::Command;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{Event, KeyEventKind};
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use std::io::{self, Write};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The terminal, which is restored on drop, or by a panic of any thread before.
struct OwnTerminal {
    is_taken: Arc<AtomicBool>,
}

impl OwnTerminal {
    fn take() -> io::Result<Self> {
        let own = Self { is_taken: Arc::new(AtomicBool::new(true)) };
        let (report, is_taken) = (panic::take_hook(), own.is_taken.clone());
        panic::set_hook(Box::new(move |info| {
            restore(&is_taken);
            report(info);
        }));
        enable_raw_mode()?;
        write_past_lock(&[&EnterAlternateScreen, &Hide]);
        Ok(own)
    }
}

impl Drop for OwnTerminal {
    fn drop(&mut self) {
        restore(&self.is_taken);
    }
}

/// Does it once: a terminal that leaves its alternate screen again moves the cursor.
fn restore(is_taken: &AtomicBool) {
    // Relaxed: it decides alone which thread restores.
    if is_taken.swap(false, Relaxed) {
        write_past_lock(&[&Show, &LeaveAlternateScreen]);
        let _ = disable_raw_mode();
    }
}

/// A command to the terminal, as its escape sequence.
trait Sequence {
    fn add_to(&self, text: &mut String);
}

impl<C: Command> Sequence for C {
    fn add_to(&self, text: &mut String) {
        let _ = self.write_ansi(text);
    }
}

fn write_past_lock(sequences: &[&dyn Sequence]) {
    let mut text = String::new();
    sequences.iter().for_each(|sequence| sequence.add_to(&mut text));
    let _ = rustix::io::write(rustix::stdio::stdout(), text.as_bytes());
}

/// Shows `pages` pages at most.
///
/// # Errors
/// The terminal or the mount's process fails; a signal arrived.
pub(super) fn run(mount: &MountInfo, delay: Duration, pages: u64, out: &mut impl Write) -> Result<End, StatsError> {
    let terminal = OwnTerminal::take()?;
    let end = show(mount, delay, pages, out);
    drop(terminal);
    end
}

fn show(mount: &MountInfo, delay: Duration, pages: u64, out: &mut impl Write) -> Result<End, StatsError> {
    let mut terminal = Terminal::new(CrosstermBackend::new(out))?;
    let happened = feed::start(mount, delay)?;
    let (mut view, mut shown): (Option<View>, u64) = (None, 0);
    for happened in happened {
        match happened {
            Happened::Status(status) => match &mut view {
                None => view = Some(View::new(*status)),
                Some(view) => {
                    view.sampled(*status);
                    shown += 1;
                }
            },
            Happened::Input(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                let obeys = |view: &mut View| view.pressed(key).is_break();
                if view.as_mut().map_or_else(|| View::is_quit(key), obeys) {
                    return Ok(End::Wanted);
                }
            }
            Happened::Input(_) => {}
            Happened::NoInput(error) => return Err(error.into()),
            Happened::Signal(number) => return Err(StatsError::Killed(number)),
            Happened::Ended => return Ok(End::OfMount),
            Happened::NoReply(error) => return Err(error.into()),
            Happened::Panicked => return Err(StatsError::Panicked),
        }
        if let Some(view) = &view {
            terminal.draw(|frame| draw(frame, view))?;
        }
        if shown >= pages {
            break;
        }
    }
    Ok(End::Wanted)
}
