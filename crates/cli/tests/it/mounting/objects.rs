//! `lightfoot mount s3://...`, on a server of this process.

use crate::mounting::fixture::{Fixture, Mount};
use crate::mounting::server::{Act, BUCKET, KEYS, Server};
use hyper::Method;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::Command;
use std::time::SystemTime;

fn source() -> String {
    format!("s3://{BUCKET}/tree")
}

/// `lightfoot mount` of the bucket on `m`, with the server's address and `options`.
fn mount(fixture: &Fixture, server: &Server, options: &str) -> Mount {
    let options = format!("endpoint={},{options}", server.endpoint);
    let mut command = fixture.command(&["mount", &source(), "m", "-o", &options]);
    command.env("AWS_ACCESS_KEY_ID", KEYS.0).env("AWS_SECRET_ACCESS_KEY", KEYS.1);
    fixture.start(command)
}

/// Runs a program in the mount, which must succeed; what it printed.
fn run(fixture: &Fixture, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(fixture.at("m"));
    for (name, value) in [("HOME", OsStr::new("/nonexistent")), ("GIT_CONFIG_NOSYSTEM", OsStr::new("1"))] {
        command.env(name, value);
    }
    let output = command.output().expect("the program runs");
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_bucket_is_mounted_written_and_read() {
    let Some(fixture) = Fixture::new() else { return };
    let server = Server::start();
    let mounted = mount(&fixture, &server, "ttl=1h");
    fs::create_dir(fixture.at("m/dir")).expect("a directory");
    fs::write(fixture.at("m/dir/file"), "text").expect("a file");
    assert_eq!(fs::read_to_string(server.object("tree/dir/file")).expect("an object"), "text");
    run(&fixture, "touch", &["dir/new"]);
    run(&fixture, "sh", &["-c", "echo more >>dir/file; mv dir/new moved; cp dir/file copy; rm copy"]);
    assert_eq!(fs::read_to_string(fixture.at("m/dir/file")).expect("a file"), "textmore\n");
    assert_eq!(run(&fixture, "sh", &["-c", "find . | sort"]), ".\n./dir\n./dir/file\n./moved\n");
    let old = fs::File::create(fixture.at("old")).expect("a file");
    old.write_all_at(b"text", 0).expect("a file");
    old.set_modified(SystemTime::UNIX_EPOCH).expect("its time");
    run(&fixture, "cp", &["-p", "../old", "copied"]);
    let copied = fs::metadata(fixture.at("m/copied")).expect("a copy");
    assert_eq!((copied.len(), copied.modified().expect("a time")), (4, SystemTime::UNIX_EPOCH));
    fixture.unmount("m");
    drop(mounted);
}

#[test]
fn git_works_in_a_bucket() {
    let Some(fixture) = Fixture::new() else { return };
    if Command::new("git").arg("--version").output().is_err() {
        println!("SKIPPED: it needs git");
        return;
    }
    let server = Server::start();
    let mounted = mount(&fixture, &server, "ttl=1h");
    run(&fixture, "git", &["init", "-q", "."]);
    for number in 0..20 {
        fs::write(fixture.at(&format!("m/file{number}")), number.to_string()).expect("a file");
    }
    run(&fixture, "git", &["add", "."]);
    run(&fixture, "git", &["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "message"]);
    assert_eq!(run(&fixture, "git", &["status", "--porcelain"]), "");
    fs::write(fixture.at("m/file7"), "changed").expect("a file");
    assert_eq!(run(&fixture, "git", &["status", "--porcelain"]), " M file7\n");
    assert_eq!(run(&fixture, "git", &["config", "core.fileMode"]), "true\n");
    run(&fixture, "git", &["fsck"]);
    fixture.unmount("m");
    drop(mounted);
}

#[test]
fn find_lists_each_directory_once_and_a_warm_one_requests_nothing() {
    let Some(fixture) = Fixture::new() else { return };
    let server = Server::start();
    for number in 0..10_000 {
        let dir = server.object(&format!("tree/d{}", number / 100));
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join(number.to_string()), "contents").expect("an object");
    }
    let mounted = mount(&fixture, &server, "ttl=1h,nometadata");
    server.requests();
    let find = || run(&fixture, "find", &[".", "-type", "f", "-size", "-2"]).lines().count();
    assert_eq!(find(), 10_000);
    let requests = server.requests();
    assert!(requests.len() <= 102, "{} requests: {:?}", requests.len(), &requests[..20]);
    assert_eq!(find(), 10_000);
    assert_eq!(server.requests(), Vec::<String>::new(), "a warm one");
    fixture.unmount("m");
    drop(mounted);
}

#[test]
fn two_mounts_of_a_bucket_see_each_others_changes() {
    let (Some(one), Some(two)) = (Fixture::new(), Fixture::new()) else { return };
    let server = Server::start();
    let mounts = [&one, &two].map(|fixture| mount(fixture, &server, "ttl=400ms"));
    assert!(fs::metadata(two.at("m/x")).is_err());
    fs::write(one.at("m/x"), "first").expect("a file");
    two.until("the file is seen", || fs::read_to_string(two.at("m/x")).is_ok_and(|text| text == "first"));
    fs::write(two.at("m/x"), "another text").expect("a file");
    one.until("the change is seen", || fs::read_to_string(one.at("m/x")).is_ok_and(|text| text == "another text"));
    fs::remove_file(one.at("m/x")).expect("it can be removed");
    two.until("the removal is seen", || fs::metadata(two.at("m/x")).is_err());
    [&one, &two].iter().for_each(|fixture| fixture.unmount("m"));
    drop(mounts);
}

#[test]
fn options_decide_about_renames_of_directories_and_how_long_a_request_may_take() {
    let Some(fixture) = Fixture::new() else { return };
    let server = Server::start();
    // Errors of a rename of a directory, which `rename_dirs=no` refuses: `EXDEV`.
    for (options, error) in [("region=xx-test-7", Some(18)), ("rename_dirs=no", Some(18)), ("rename_dirs=copy", None)] {
        let mounted = mount(&fixture, &server, options);
        fs::create_dir_all(fixture.at("m/d")).expect("a directory");
        fs::write(fixture.at("m/d/f"), "text").expect("a file");
        let renamed = fs::rename(fixture.at("m/d"), fixture.at("m/e"));
        assert_eq!(renamed.err().and_then(|error| error.raw_os_error()), error, "{options}");
        let at = if error.is_none() { "tree/e/f" } else { "tree/d/f" };
        assert_eq!(fs::read_to_string(server.object(at)).expect("an object"), "text", "{options}");
        fixture.unmount("m");
        drop(mounted);
    }
    let mounted = mount(&fixture, &server, "timeout=100ms,ttl=0s");
    for method in [Method::GET, Method::HEAD] {
        server.fail(method, "", usize::MAX, Act::Hang);
    }
    let error = fs::metadata(fixture.at("m/absent")).expect_err("the server does not answer");
    // `EIO`, `ETIMEDOUT`.
    assert!([Some(5), Some(110)].contains(&error.raw_os_error()), "{error}");
    fixture.unmount("m");
    drop(mounted);
}

#[test]
fn a_bucket_that_cannot_be_used_is_reported_with_its_reason() {
    let fixture = Fixture::without_mounting();
    let server = Server::start();
    fixture.refused(&["mount", "s3://", "m"], 2, &["s3://BUCKET/PREFIX"]);
    fixture.refused(&["mount", &source(), "m", "-o", "endpoint="], 2, &["endpoint=http://127.0.0.1:9000"]);
    fixture.refused(&["mount", "ram:", "m", "-o", "endpoint=http://x"], 2, &["only for s3:"]);
    let options = format!("endpoint={}", server.endpoint);
    let mut command = fixture.command(&["mount", &source(), "m", "-o", &options]);
    command.env("AWS_ACCESS_KEY_ID", KEYS.0).env("AWS_SECRET_ACCESS_KEY", "wrong");
    let output = command.output().expect("the command runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), message.lines().count()), (Some(2), 1), "{message}");
    assert!(message.contains("SignatureDoesNotMatch"), "{message}");
}

#[test]
fn programs_that_keep_attributes_find_them_again() {
    let Some(fixture) = Fixture::new() else { return };
    let server = Server::start();
    fs::create_dir_all(fixture.at("source/d/below")).expect("directories");
    for name in ["source/d/a", "source/d/below/b", "source/script"] {
        fs::write(fixture.at(name), name).expect("a file");
    }
    run(&fixture, "chmod", &["750", "../source/script", "../source/d"]);
    run(&fixture, "ln", &["-s", "d/a", "../source/link"]);
    run(&fixture, "touch", &["-d", "2001-02-03 04:05:06.789", "../source/d/a", "../source/script", "../source/d"]);
    let stat = |at: &str| {
        run(&fixture, "sh", &["-c", &format!("cd {at} && find . -mindepth 1 | sort | xargs stat -c '%n %a %Y %F'")])
    };
    let mounted = mount(&fixture, &server, "symlinks");
    run(&fixture, "cp", &["-a", "../source", "copy"]);
    run(&fixture, "sh", &["-c", "tar -C ../source -cf - . | (mkdir tar && tar -C tar -xpf -)"]);
    run(&fixture, "mv", &["copy", "moved"]);
    fixture.unmount("m");
    drop(mounted);
    let mounted = mount(&fixture, &server, "symlinks");
    for copy in ["moved", "tar"] {
        assert_eq!(stat(copy), stat("../source"), "{copy}");
    }
    fixture.unmount("m");
    drop(mounted);
}
