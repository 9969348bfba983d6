//! `lightfoot top` in a pseudo-terminal: what it draws, what keys do, and how it leaves the terminal.

use crate::mounting::fixture::{Fixture, end_of};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command};

/// How often a condition is checked, at most; at least this many tenths of a second pass.
const ROUNDS: usize = 300;

/// A terminal with a program in it.
pub(crate) struct Terminal {
    /// Our end.
    master: File,
    /// Kept open, so that the modes can be read after the program has ended.
    other_end: File,
    child: Option<Child>,
    parser: vt100::Parser,
}

impl Terminal {
    /// `None` where the program setsid(1) is not installed, which it prints.
    pub(crate) fn start(fixture: &Fixture, arguments: &[&str], (rows, columns): (u16, u16)) -> Option<Self> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("a terminal");
        let name = ptsname(&master, Vec::new()).expect("a terminal");
        let master = File::from(master);
        // Before the program looks.
        resize(&master, rows, columns);
        let path = name.to_str().expect("a path in text");
        let other_end = File::options().read(true).write(true).open(path).expect("the other end");
        let end = || other_end.try_clone().expect("a descriptor");
        let mut command = Command::new("setsid");
        command.args(["--ctty", "env", "--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_lightfoot")]);
        command.args(arguments).current_dir(fixture.at(".")).env("TERM", "xterm-256color").env_remove("NO_COLOR");
        let Ok(child) = command.stdin(end()).stdout(end()).stderr(end()).spawn() else {
            println!("SKIPPED: setsid(1) is not installed");
            return None;
        };
        Some(Self { master, other_end, child: Some(child), parser: vt100::Parser::new(cells(rows), cells(columns), 0) })
    }

    /// Takes what the program has drawn so far.
    fn read(&mut self) {
        let tenth = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        if poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&tenth)) == Ok(1) {
            let mut drawn = [0; 65_536];
            let length = self.master.read(&mut drawn).expect("the other end is open");
            self.parser.process(&drawn[..length]);
        }
    }

    pub(crate) fn text(&self) -> String {
        self.parser.screen().contents()
    }

    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&str) -> bool) {
        for _ in 0..ROUNDS {
            if is_so(&self.text()) {
                return;
            }
            self.read();
        }
        panic!("waited in vain until {what}:\n{}", self.text());
    }

    pub(crate) fn type_in(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("it takes keys");
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.other_end).expect("a terminal").local_modes;
        !modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits for the end of the program. Its status, and what the terminal shows then.
    pub(crate) fn end(&mut self) -> (Option<i32>, String) {
        let output = end_of(self.child.take().expect("it was started"));
        while poll(&mut [PollFd::new(&self.master, PollFlags::IN)], Some(&Timespec::default())) == Ok(1) {
            self.read();
        }
        assert!(!self.is_raw(), "the modes of the terminal are restored");
        assert!(!self.parser.screen().alternate_screen() && !self.parser.screen().hide_cursor(), "{}", self.text());
        (output.status.code(), self.text())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn cells(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a size")
}

fn resize(terminal: &File, ws_row: u16, ws_col: u16) {
    tcsetwinsize(terminal, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).expect("it is a terminal");
}

/// `top` of a tree in memory, with the first interval on the screen.
fn top(fixture: &Fixture, size: (u16, u16)) -> Option<Terminal> {
    fs::write(fixture.at("m/f"), vec![7; 100_000]).expect("a file can be written");
    let mut terminal = Terminal::start(fixture, &["top", "m", "-d", "0.05"], size)?;
    terminal.until("it has drawn", |text| text.contains("statfs") || text.contains("write "));
    assert!(terminal.is_raw() && terminal.parser.screen().alternate_screen());
    Some(terminal)
}

#[test]
fn the_screen_fits_and_obeys_keys() {
    let Some(fixture) = Fixture::new() else { return };
    let _mount = fixture.mount(&["ram:", "m", "-o", "ttl=0"]);
    let Some(mut terminal) = top(&fixture, (24, 80)) else { return };
    let first = terminal.text();
    let lines: Vec<&str> = first.lines().collect();
    assert!(lines[0].starts_with(fixture.at("m").to_str().expect("text")), "{first}");
    assert!(lines.iter().any(|line| line.starts_with('/') && line.matches('-').count() >= 3), "no budget: {first}");
    assert!(lines.len() == 24 && lines[23].starts_with("q quit  s sort: per second"), "{first}");
    let cases: [(&str, &str); 9] = [
        ("s", "sort: p50"),
        ("<", "sort: per second"),
        (">", "▾p50"),
        ("?", "Ctrl-C"),
        ("\x1b", "sort: p50"),
        ("f", "file system: /"),
        ("f", "file system: all"),
        ("p", "PAUSED"),
        (" ", "sort: p50"),
    ];
    for (key, shown) in cases {
        terminal.type_in(key);
        let is_help = key == "?";
        terminal.until(&format!("{key:?} shows {shown:?}"), |text| {
            text.contains(shown) && text.contains("this help") == is_help && text.contains("PAUSED") == (key == "p")
        });
    }
    terminal.type_in("q");
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn the_screen_is_drawn_anew_in_each_size() {
    let Some(fixture) = Fixture::new() else { return };
    let _mount = fixture.mount(&["ram:", "m"]);
    let Some(mut terminal) = top(&fixture, (24, 80)) else { return };
    for (rows, columns) in [(8, 40), (40, 120), (1, 10), (24, 80)] {
        terminal.parser.set_size(cells(rows), cells(columns));
        resize(&terminal.master, rows, columns);
        terminal.until("it has the size", |text| {
            let has_keys = text.lines().nth(usize::from(rows) - 1).is_some_and(|line| line.starts_with("q quit"));
            has_keys || rows == 1 && text.lines().next().is_some_and(|line| line.starts_with('/'))
        });
    }
    terminal.type_in("\x03");
    assert_eq!(terminal.end().0, Some(0), "Ctrl-C");
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let Some(fixture) = Fixture::new() else { return };
    let _mount = fixture.mount(&["ram:", "m"]);
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let Some(mut terminal) = top(&fixture, (24, 80)) else { return };
        let process = Pid::from_child(terminal.child.as_ref().expect("it runs"));
        kill_process(process, signal).expect("it can be signalled");
        assert_eq!(terminal.end(), (Some(status), String::new()));
    }
}

#[test]
fn the_end_of_the_mount_ends_the_screen_with_a_sentence() {
    let Some(fixture) = Fixture::new() else { return };
    let mount = fixture.mount(&["ram:", "m"]);
    let Some(mut terminal) = top(&fixture, (24, 80)) else { return };
    mount.signal(Signal::TERM);
    let (status, text) = terminal.end();
    assert_eq!(status, Some(0));
    // The terminal wraps a long path.
    assert_eq!(text.replace('\n', ""), format!("{}: the mount has ended", fixture.at("m").display()));
    assert_eq!(mount.end().0, Some(0));
    // The command prints the same sentence into a pipe.
    let mount = fixture.mount(&["ram:", "m"]);
    let mut command = fixture.command(&["top", "m", "-d", "0.01"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().expect("the command runs");
    let mut first = [0; 64];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("it prints");
    mount.signal(Signal::TERM);
    let output = end_of(child);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.ends_with(": the mount has ended\n") && !text.contains('\x1b'), "{text}");
}
