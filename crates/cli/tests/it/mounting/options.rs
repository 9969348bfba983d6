//! Options of mounts whose effect lasts beyond the process, or concerns others.

use crate::mounting::fixture::{Fixture, end_of};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_killed_server_leaves_no_mount_with_auto_unmount() {
    let Some(fixture) = Fixture::new() else { return };
    if Command::new("fusermount3").arg("--version").output().is_err() {
        return println!("SKIPPED: it needs fusermount3");
    }
    let mount = |arguments: &[&str]| fixture.ok(&[&["mount", "--daemon", "-o", "auto_unmount"], arguments].concat());
    mount(&["ram:", "m"]);
    kill_process(fixture.server(), Signal::KILL).expect("it can be killed");
    fixture.until("it is unmounted", || !fixture.is_mounted());
    // A mount that ends as usual leaves no helper, and its helper does not end the next mount.
    mount(&["ram:", "m"]);
    fixture.unmount("m");
    mount(&["ram:", "m", "-o", "uid=daemon,gid=daemon,kernel_cache,max_background=8"]);
    let attr = fs::metadata(fixture.at("m")).expect("it is mounted");
    assert_ne!((attr.uid(), attr.gid()), (0, 0));
    fixture.unmount("m");
    fixture.refused(&["mount", "-o", "uid=no-such-user", "ram:", "m"], 2, &["uid=no-such-user", "uid=USER"]);
}

#[test]
fn remount_changes_the_flags_of_a_mount() {
    let Some(fixture) = Fixture::new() else { return };
    fixture.ok(&["mount", "--daemon", "ram:", "m"]);
    let remount = |flags: &str| fixture.ok(&["mount", "-o", &format!("remount,{flags}"), "ram:", "m"]);
    let file = fs::File::create(fixture.at("m/f")).expect("it can be written");
    let busy = ["cannot remount", "close the files that are open for writing"];
    fixture.refused(&["mount", "-o", "remount,ro", "ram:", "m"], 2, &busy);
    drop(file);
    // As in `Fixture::unmount`.
    fixture.until("no file is open", || fixture.run(&["mount", "-o", "remount,ro", "ram:", "m"]).status.success());
    let refused = fs::write(fixture.at("m/f"), "x").expect_err("it is read-only");
    assert_eq!(refused.raw_os_error(), Some(30));
    remount("rw,noexec,size=1g");
    fs::write(fixture.at("m/f"), "x").expect("it can be written again");
    fixture.refused(&["mount", "-o", "remount,rx", "ram:", "m"], 2, &["unknown option \"rx\"", "rw"]);
    fixture.unmount("m");
    fixture.refused(&["mount", "-o", "remount,ro", "ram:", "m"], 2, &["not a mount point"]);
    // A flag that no word concerns stays.
    fixture.ok(&["mount", "--daemon", "-o", "nosymfollow,noatime", "ram:", "m"]);
    let flags = || {
        let table = fs::read_to_string("/proc/self/mountinfo").expect("a table of mounts");
        let line = table.lines().find(|line| line.contains(&*fixture.at("m").to_string_lossy())).expect("a mount");
        line.split(' ').nth(5).expect("flags").to_owned()
    };
    assert_eq!(flags(), "rw,nosuid,nodev,noatime,nosymfollow");
    remount("noexec,atime");
    assert_eq!(flags(), "rw,nosuid,nodev,noexec,relatime,nosymfollow");
    fixture.unmount("m");
    fixture.ok(&["mount", "--daemon", "-o", "ro", "ram:", "m"]);
    fixture.refused(&["mount", "-o", "remount,rw", "ram:", "m"], 2, &["mounted with ro from the beginning"]);
    fixture.unmount("m");
}

#[test]
fn a_mount_in_the_background_logs_to_syslog() {
    let Some(fixture) = Fixture::new() else { return };
    let socket = UnixDatagram::bind(fixture.at("log")).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
    let script = r#"
        set -eu
        mkdir dev; mount -t tmpfs none dev; touch dev/fuse dev/null dev/log
        for name in fuse null; do mount --bind /dev/$name dev/$name; done
        mount --bind log dev/log; mount --rbind dev /dev
        "$LIGHTFOOT" mount --daemon --log-level info ram: m
        "$LIGHTFOOT" unmount m
    "#;
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script])
        .current_dir(fixture.at(""))
        .env("LIGHTFOOT", env!("CARGO_BIN_EXE_lightfoot"));
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let output = end_of(child.expect("unshare runs"));
    assert!(output.status.success(), "{output:?}");
    let mut text = [0; 1024];
    let is_last = |line: &str| line.ends_with("lightfoot::mount: unmounted");
    let mut lines = std::iter::from_fn(|| {
        let length = socket.recv(&mut text).expect("a line of the log");
        Some(String::from_utf8_lossy(&text[..length]).trim_end_matches(['\n', '\0']).to_owned())
    });
    let first = lines.next().expect("a line");
    // Facility 3 (daemon), priority 5 (notice): that of an event of the level info.
    assert!(first.starts_with("<29>") && first.contains(" lightfoot["), "{first}");
    assert!(lines.any(|line| is_last(&line)));
}
