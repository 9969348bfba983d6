//! `lightfoot doctor`: the parts that this machine has for mounts, and remedies for missing ones.
//!
//! # What it is
//! A list of findings. It mounts nothing and changes nothing.
//!
//! # Where it comes from
//! `fuse(4)`, `fusermount3(1)`, `fuse.conf` of `mount.fuse3(8)`; `Documentation/filesystems/fuse-passthrough.rst` and
//! `fuse-io-uring.rst` in Linux.

use crate::command_error::CommandError;
use crate::output::{OutputError, print};
use clap::Args;
use fuse::NoRing;
use rustix::process::{Resource, geteuid, getrlimit};
use rustix::system::uname;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;
use thiserror::Error;
use vfs::Foreign;

/// Fewer descriptors than this are few for a host directory, which keeps many open.
const FEW_FILES: u64 = 4096;

/// Arguments of `lightfoot doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Doctor {}

/// Why the status of the command is not 0.
#[derive(Debug, Error)]
pub(crate) enum DoctorError {
    /// This user cannot mount.
    #[error("this user cannot mount here (each line with `bad` has the cure)")]
    CannotMount,

    /// The findings cannot be printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl CommandError for DoctorError {}

/// How a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// As it should be.
    Ok,
    /// Mounts work without it.
    Note,
    /// Mounts do not work.
    Bad,
}

/// A finding: `what: why (what to do)`.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    level: Level,
    text: String,
}

fn ok(text: impl Into<String>) -> Finding {
    Finding { level: Level::Ok, text: text.into() }
}

fn note(text: impl Into<String>) -> Finding {
    Finding { level: Level::Note, text: text.into() }
}

fn bad(text: impl Into<String>) -> Finding {
    Finding { level: Level::Bad, text: text.into() }
}

/// Prints the findings.
///
/// # Errors
/// If a user like this one cannot mount.
pub(crate) fn run(_: &Doctor, out: &mut impl Write) -> Result<(), DoctorError> {
    let is_root = geteuid().is_root();
    let kernel = kernel_version(&uname().release().to_string_lossy());
    let findings = [
        version(kernel),
        device(File::options().read(true).write(true).open("/dev/fuse").err().as_ref()),
        helper(is_root, helper_version()),
        others(is_root, &fs::read_to_string("/etc/fuse.conf").unwrap_or_default()),
        passthrough(is_root, kernel),
        io_uring(
            fs::read_to_string("/sys/module/fuse/parameters/enable_uring").ok().as_deref(),
            NoRing::of_this_process(),
        ),
        files(getrlimit(Resource::Nofile).maximum),
        directory_of_sockets(),
    ];
    let text: String = findings.iter().map(line).collect();
    print(&text, out)?;
    if findings.iter().any(|finding| finding.level == Level::Bad) { Err(DoctorError::CannotMount) } else { Ok(()) }
}

fn line(Finding { level, text }: &Finding) -> String {
    let level = match level {
        Level::Ok => "ok  ",
        Level::Note => "note",
        Level::Bad => "bad ",
    };
    format!("{level}  {text}\n")
}

/// Returns the first two numbers of a release such as `6.12.9-amd64`.
fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn version(kernel: Option<(u32, u32)>) -> Finding {
    match kernel {
        Some((major, minor)) if (major, minor) < (6, 2) => note(format!(
            "kernel: Linux {major}.{minor} cannot expire names (Linux 6.2 can; until then names of a watched directory are cached for a second)"
        )),
        Some((major, minor)) => ok(format!("kernel: Linux {major}.{minor}")),
        None => note("kernel: a version that this program cannot read"),
    }
}

fn device(refused: Option<&io::Error>) -> Finding {
    match refused {
        None => ok("/dev/fuse: can be opened"),
        Some(error) if error.kind() == io::ErrorKind::NotFound => {
            bad("/dev/fuse: no such device (run `modprobe fuse`, or give the container the device)")
        }
        Some(error) => bad(format!(
            "/dev/fuse: {} (run as root, or let your user read and write the device)",
            fuse::message::without_number(error)
        )),
    }
}

/// Returns the output of `fusermount3 --version`; `None`: the program does not exist.
fn helper_version() -> Option<String> {
    let output = Command::new("fusermount3").arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn helper(is_root: bool, version: Option<String>) -> Finding {
    match version {
        Some(version) => ok(Foreign::of(&version).to_string()),
        None if is_root => note("fusermount3: not found (root mounts without it; other users need the package fuse3)"),
        None => bad("fusermount3: not found (install the package fuse3, or run as root)"),
    }
}

fn others(is_root: bool, conf: &str) -> Finding {
    let is_allowed = conf.lines().any(|line| line.trim() == "user_allow_other");
    match (is_allowed, is_root) {
        (true, _) => ok("/etc/fuse.conf: user_allow_other, so every user may mount with -o allow_other"),
        (false, true) => ok("/etc/fuse.conf: only root may mount with -o allow_other"),
        (false, false) => {
            note("/etc/fuse.conf: -o allow_other is for root alone (an administrator adds the line `user_allow_other`)")
        }
    }
}

fn passthrough(is_root: bool, kernel: Option<(u32, u32)>) -> Finding {
    match kernel {
        Some(version) if version < (6, 9) => note("passthrough: needs Linux 6.9 (-o passthrough is ignored)"),
        _ if !is_root => note("passthrough: needs root (-o passthrough is ignored)"),
        _ => ok("passthrough: available with -o passthrough"),
    }
}

/// `switch`: the module's parameter; `None`: it has none. `refused`: why this process gets no ring.
fn io_uring(switch: Option<&str>, refused: Option<NoRing>) -> Finding {
    match (switch.map(str::trim), refused) {
        (None, _) => note("io_uring: needs Linux 6.14 (mounts use /dev/fuse)"),
        (Some("Y"), None) => ok("io_uring: on"),
        (Some("Y"), Some(reason)) => {
            let cure = match reason {
                NoRing::Disabled => "`sysctl kernel.io_uring_disabled=0`",
                NoRing::Filtered => "let the container's security profile allow io_uring_setup",
                _ => "raise the limits of memory",
            };
            note(format!("io_uring: {reason} ({cure}; mounts use /dev/fuse)"))
        }
        (Some(_), _) => note(
            "io_uring: off for this machine (root: `echo Y > /sys/module/fuse/parameters/enable_uring`; mounts use /dev/fuse)",
        ),
    }
}

/// `most`: the hard limit; `None`: there is none.
fn files(most: Option<u64>) -> Finding {
    match most {
        Some(most) if most < FEW_FILES => note(format!(
            "open files: at most {most}, which is few for a host directory (raise it with `ulimit -Hn`, or LimitNOFILE of systemd)"
        )),
        Some(most) => ok(format!("open files: at most {most}")),
        None => ok("open files: no limit"),
    }
}

fn directory_of_sockets() -> Finding {
    let dirs: Vec<PathBuf> = crate::control::socket_dirs(geteuid().as_raw());
    let usable = dirs.iter().find(|dir| dir.is_dir() || dir.parent().is_some_and(|above| above.is_dir()));
    match usable {
        Some(dir) => ok(format!("sockets: {}", fuse::message::show(dir))),
        None => note("sockets: no directory for them, so `lightfoot stats` cannot reach mounts (set XDG_RUNTIME_DIR)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_and_a_missing_helper_are_bad() {
        let levels = |errors: [io::ErrorKind; 2]| errors.map(|kind| device(Some(&kind.into())).level);
        assert_eq!(levels([io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied]), [Level::Bad; 2]);
        assert_eq!(device(None).level, Level::Ok);
        assert_eq!([helper(false, None).level, helper(true, None).level], [Level::Bad, Level::Note]);
        assert_eq!(helper(false, Some("fusermount3 version: 3.14.0".into())), ok("fusermount3 version: 3.14.0"));
    }

    #[test]
    fn every_finding_but_ok_has_a_cure_in_parentheses() {
        let found = [
            version(Some((5, 10))),
            device(Some(&io::ErrorKind::NotFound.into())),
            device(Some(&io::ErrorKind::PermissionDenied.into())),
            helper(false, None),
            helper(true, None),
            others(false, "# user_allow_other\n"),
            passthrough(true, Some((6, 1))),
            passthrough(false, Some((6, 12))),
            io_uring(None, None),
            io_uring(Some("N\n"), Some(NoRing::Filtered)),
            io_uring(Some("Y\n"), Some(NoRing::Disabled)),
            io_uring(Some("Y\n"), Some(NoRing::Filtered)),
            io_uring(Some("Y\n"), Some(NoRing::NoMemory)),
            io_uring(Some("Y\n"), Some(NoRing::Failed("an error".into()))),
            files(Some(1024)),
        ];
        for finding in &found {
            assert!(finding.level != Level::Ok && finding.text.ends_with(')'), "{finding:?}");
            assert_eq!(line(finding).lines().count(), 1);
        }
    }

    #[test]
    fn what_is_there_is_ok() {
        let found = [
            version(kernel_version("6.12.9-amd64")),
            others(false, "user_allow_other\n"),
            passthrough(true, Some((6, 9))),
            io_uring(Some("Y\n"), None),
            files(Some(1 << 20)),
            files(None),
        ];
        assert!(found.iter().all(|finding| finding.level == Level::Ok), "{found:?}");
        assert_eq!([kernel_version("6.9"), kernel_version("rolling")], [Some((6, 9)), None]);
    }
}
