//! `lightfoot list`: the mounts of Lightfoot that this process can see.
//!
//! # What it is
//! The kernel's table of mounts has the mounts and their places. Each process then has a moment to
//! report what it serves; a mount whose process does not reply is listed all the same.

use crate::control::{self, Status};
use crate::output::{json, print};
use crate::workspaces::{self, WorkspacesError};
use clap::Args;
use comfy_table::{ContentArrangement, Table, presets};
use fuse::message::show;
use fuse::mountinfo::{self, MountInfo};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

/// How many processes get a request at a time.
const AT_A_TIME: usize = 64;

/// Arguments of `lightfoot list`.
#[derive(Args, Clone, Debug)]
pub(crate) struct List {
    /// Print a JSON array
    #[arg(long)]
    json: bool,

    /// List the forks of this mount instead
    #[arg(value_name = "MOUNTPOINT")]
    mountpoint: Option<PathBuf>,
}

/// A mount.
#[derive(Debug, Serialize)]
struct Listed {
    mountpoint: String,
    /// The user who mounted it.
    uid: u32,
    /// The report of its process; `None`: it does not reply to this user.
    #[serde(flatten)]
    process: Option<Process>,
}

/// The report of a mount's process.
#[derive(Debug, Serialize)]
struct Process {
    source: String,
    pid: u32,
    version: String,
    transport: String,
}

impl From<Status> for Process {
    fn from(status: Status) -> Self {
        let Status { source, pid, version, transport, .. } = status;
        Self { source, pid, version, transport }
    }
}

/// Prints the mounts, in the order in which they were made.
///
/// # Errors
/// If standard output cannot be written.
pub(crate) fn run(list: &List, out: &mut impl Write) -> Result<(), WorkspacesError> {
    if let Some(mountpoint) = &list.mountpoint {
        return workspaces::list(mountpoint, list.json, out);
    }
    let mounts = mountinfo::list().unwrap_or_default();
    let ours: Vec<_> = mounts.iter().filter(|mount| mount.is_lightfoot()).collect();
    // Side by side: each process has the whole time to reply.
    let listed: Vec<_> = ours.chunks(AT_A_TIME).flat_map(listed).collect();
    let text = if list.json { json(&listed)? } else { table(&listed) };
    print(&text, out)?;
    Ok(())
}

fn listed(mounts: &[&MountInfo]) -> Vec<Listed> {
    thread::scope(|scope| {
        let running: Vec<_> = mounts.iter().map(|mount| scope.spawn(|| of(mount))).collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

fn of(mount: &MountInfo) -> Listed {
    let process = control::status(mount).ok().map(Process::from);
    Listed { mountpoint: mount.mountpoint.to_string_lossy().into(), uid: mount.uid, process }
}

/// Returns a table without lines around its cells, or a sentence.
fn table(listed: &[Listed]) -> String {
    if listed.is_empty() {
        return "no mounts of Lightfoot (make one with `lightfoot mount ram: DIRECTORY`)\n".into();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(["MOUNTPOINT", "SOURCE", "UID", "PID", "REQUESTS THROUGH"]);
    for one in listed {
        let [source, pid, transport] = match &one.process {
            Some(Process { source, pid, transport, .. }) => [
                show(Path::new(source)).to_string(),
                pid.to_string(),
                transport.split([',', ';']).next().unwrap_or_default().into(),
            ],
            None => ["?".into(), "?".into(), "no reply from its process".into()],
        };
        table.add_row([show(Path::new(&one.mountpoint)).to_string(), source, one.uid.to_string(), pid, transport]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.trim_fmt() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(mountpoint: &str, process: Option<Process>) -> Listed {
        Listed { mountpoint: mountpoint.into(), uid: 1000, process }
    }

    #[test]
    fn a_mount_whose_process_does_not_reply_is_listed() {
        let process = Process {
            source: "ram:size=1g".into(),
            pid: 4711,
            version: "0.1.0".into(),
            transport: "/dev/fuse, 2 threads; no io_uring: the kernel does not offer it".into(),
        };
        let text = table(&[one("/mnt/a", Some(process)), one("/mnt/line\nbreak", None)]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["MOUNTPOINT", "SOURCE", "UID", "PID", "REQUESTS", "THROUGH"]);
        assert_eq!(lines[1], ["/mnt/a", "ram:size=1g", "1000", "4711", "/dev/fuse"]);
        assert_eq!(lines[2][1..], ["?", "1000", "?", "no", "reply", "from", "its", "process"], "{text}");
        assert_eq!(lines.len(), 3, "a name cannot make a line: {text}");
    }

    #[test]
    fn without_mounts_there_is_a_sentence() {
        assert!(table(&[]).starts_with("no mounts"));
    }
}
