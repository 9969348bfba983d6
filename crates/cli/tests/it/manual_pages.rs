//! Manual pages and completions, made from the command line's description.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn lightfoot(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the command starts")
}

fn checked(arguments: &[&str]) -> String {
    let output = lightfoot(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

#[test]
fn every_command_has_a_manual_page() {
    let pages = std::env::temp_dir().join(format!("lightfoot-manual-test-{}", std::process::id()));
    checked(&["man", "--dir", pages.to_str().expect("a path in UTF-8")]);
    for name in ["lightfoot", "lightfoot-mount", "lightfoot-stats", "lightfoot-man"] {
        let page = fs::read_to_string(pages.join(format!("{name}.1"))).expect("a page");
        assert!(page.contains(&format!(".TH {name} 1")) && page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    let options = fs::read_to_string(pages.join("lightfoot-mount.1")).expect("a page");
    assert!(options.contains("own_permissions") && options.contains("usrquota_inode_hardlimit=N"), "{options}");
    fs::remove_dir_all(&pages).expect("the pages can be removed");
    assert!(checked(&["man"]).contains(".TH lightfoot 1"));
    assert!(checked(&["man", "mount"]).contains(".TH lightfoot-mount 1"));
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(checked(&["completions", shell]).contains("daemon"), "{shell}");
    }
}

#[test]
fn a_command_line_that_cannot_be_parsed_has_status_2() {
    let cases: [&[&str]; 6] = [
        &["mount"],
        &["mount", "ram:"],
        &["mont"],
        &["completions", "nonsense"],
        &["man", "nonsense"],
        &["man", "--dir", "x", "stats"],
    ];
    for arguments in cases {
        let output = lightfoot(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error_but_a_full_disk_is() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot"));
    let child = command.args(["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let output = Command::new(env!("CARGO_BIN_EXE_lightfoot")).args(["man", "mount"]).stdout(full).output();
    let output = output.expect("the command runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && message.contains("no space left on device"), "{message}");
}

#[test]
fn a_directory_that_cannot_be_made_is_reported_with_status_2() {
    let output = lightfoot(&["man", "--dir", "/dev/null/x"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("/dev/null/x") && errors.contains("not a directory"), "{errors}");
    assert!(!Path::new("/dev/null/x").exists());
}
