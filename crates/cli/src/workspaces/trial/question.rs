//! The question on the terminal.

use super::{TrialError, failed};
use crate::signals::{Signals, Woken};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;

/// The most times that the question is printed; a terminal that has ended gives no answer.
const TIMES: usize = 20;

/// The terminal of this process.
pub(super) struct Terminal {
    file: File,
    modes: Option<Termios>,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Apply,
    Keep,
    Drop,
}

impl Terminal {
    /// Opens the terminal, whatever the standard streams are.
    ///
    /// # Errors
    /// If this process has none.
    pub(super) fn open() -> Result<Self, TrialError> {
        let opened = File::options().read(true).write(true).open("/dev/tty");
        let file = opened.map_err(|error| TrialError::NoTerminal(error.into()))?;
        let modes = tcgetattr(&file).ok();
        Ok(Self { file, modes })
    }

    /// Prints the question until there is an answer. Ctrl-C, and the end of the terminal, drop the changes.
    ///
    /// # Errors
    /// If no signal can be received.
    pub(super) fn ask(&self, can_keep: bool) -> Result<Answer, TrialError> {
        // A new one: an earlier Ctrl-C ended the command.
        let mut signals = Signals::listen().map_err(failed("receive signals"))?;
        // A command that was killed may have left other modes; keys that were typed before are not an answer.
        self.modes.as_ref().map(|modes| tcsetattr(&self.file, OptionalActions::Flush, modes));
        let question = if can_keep { "apply, keep or drop them? [a/k/d] " } else { "apply or drop them? [a/d] " };
        for _ in 0..TIMES {
            let mut terminal = &self.file;
            let mut line = [0; 256];
            let is_asked = terminal.write_all(question.as_bytes()).is_ok();
            if !is_asked || signals.wait(self.file.as_fd()).map_err(failed("wait for an answer"))? != Woken::Ended {
                break;
            }
            let Ok(len) = terminal.read(&mut line) else { break };
            match String::from_utf8_lossy(&line[..len]).trim() {
                "a" | "apply" => return Ok(Answer::Apply),
                "k" | "keep" if can_keep => return Ok(Answer::Keep),
                "d" | "drop" => return Ok(Answer::Drop),
                _ => {}
            }
        }
        let _ = (&self.file).write_all(b"\ndropped\n");
        Ok(Answer::Drop)
    }
}
