//! Sources of `lightfoot mount`: directories, and files of mounts.

use crate::mounting::fixture::Fixture;
use rustix::fs::{StatVfsMountFlags, statvfs};
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

#[test]
fn a_file_of_mounts_makes_one_tree_of_several() {
    let Some(fixture) = Fixture::new() else { return };
    fs::create_dir_all(fixture.at("src/b")).expect("directories");
    fs::create_dir(fixture.at("here")).expect("a directory");
    fs::write(fixture.at("src/b/long"), "contents").expect("a file");
    fs::write(fixture.at("here/x"), "relative").expect("a file");
    let mounts = format!(
        "[[mount]]\nat = \"/deep/er/b\"\nsource = {:?}\noptions = \"ro,ttl=1s\"\n\n\
         [[mount]]\nat = \"/\"\nsource = \"ram:size=1m,ro\"\n\n\
         [[mount]]\nat = \"//here/\"\nsource = \"here\"\n[[mount]]\nat = \"/here/tmp\"\nsource = \"ram:\"\n",
        fixture.at("src/b")
    );
    fs::write(fixture.at("tree.toml"), mounts).expect("a file");
    // The mount point in a directory does not exist yet.
    let parts = ["tree.toml, line 14, at: no directory \"/here/tmp\"", "create it there"];
    fixture.refused(&["mount", "tree.toml", "m"], 2, &parts);
    assert!(!fixture.at("here/tmp").exists(), "nothing is created in a directory");
    fs::create_dir(fixture.at("here/tmp")).expect("a directory");
    let mount = fixture.mount(&["tree.toml", "m", "-o", "rw"]);
    let read = |path: &str| fs::read_to_string(fixture.at(path)).expect(path);
    assert_eq!((read("m/deep/er/b/long"), read("m/here/x")), ("contents".into(), "relative".into()));
    for read_only in ["m/deep/er/b/f", "m/deep/f"] {
        // `EROFS`.
        let written = fs::write(fixture.at(read_only), "");
        assert_eq!(written.map_err(|error| error.raw_os_error()), Err(Some(30)), "{read_only}");
    }
    fs::write(fixture.at("m/here/f"), "kept").expect("the other mounts can be written");
    assert_eq!(read("here/f"), "kept");
    fs::write(fixture.at("m/here/tmp/f"), "lost").expect("the other mounts can be written");
    assert!(!fixture.at("here/tmp/f").exists(), "a file in memory is not in the directory");
    drop(mount);
}

#[test]
fn a_write_beyond_the_file_size_limit_of_the_server_fails_and_ends_no_mount() {
    let Some(fixture) = Fixture::new() else { return };
    fs::create_dir(fixture.at("src")).expect("a directory");
    let mut command = std::process::Command::new("sh");
    // 16 blocks of 512 bytes. (dash has no other units.)
    let script = format!("ulimit -f 16; exec {} mount src m", env!("CARGO_BIN_EXE_lightfoot"));
    command.args(["-c", &script]).current_dir(fixture.at("")).stdin(std::process::Stdio::null());
    let mount = fixture.start(command);
    let written = fs::write(fixture.at("m/long"), vec![1; 65_536]);
    // `EFBIG`.
    assert_eq!(written.map_err(|error| error.raw_os_error()), Err(Some(27)));
    fs::write(fixture.at("m/short"), "text").expect("the mount is alive");
    assert_eq!(fs::read_to_string(fixture.at("src/short")).expect("a file"), "text");
    drop(mount);
}

#[test]
fn what_one_source_forbids_the_kernel_forbids_in_the_whole_mount() {
    let Some(fixture) = Fixture::new() else { return };
    let cases = [
        ("", StatVfsMountFlags::empty()),
        ("nosuid", StatVfsMountFlags::NOSUID),
        ("nodev", StatVfsMountFlags::NODEV),
        ("noexec", StatVfsMountFlags::NOEXEC),
        ("nosymfollow", StatVfsMountFlags::empty()),
    ];
    for (option, expected) in cases {
        let mounts = format!("[[mount]]\nat = \"/a/b\"\nsource = \"ram:\"\noptions = {option:?}\n");
        fs::write(fixture.at("tree.toml"), mounts).expect("a file");
        let mount = fixture.mount(&["tree.toml", "m", "-o", "suid,dev,exec"]);
        let flags = statvfs(fixture.at("m/a/b")).expect("a mount").f_flag;
        let all = StatVfsMountFlags::NOSUID | StatVfsMountFlags::NODEV | StatVfsMountFlags::NOEXEC;
        assert_eq!(flags & all, expected, "{option}");
        fs::write(fixture.at("m/a/b/f"), "text").expect("a file");
        symlink("f", fixture.at("m/a/b/l")).expect("a link");
        let read = fs::read_to_string(fixture.at("m/a/b/l")).map_err(|error| error.raw_os_error());
        // `ELOOP`.
        assert_eq!(read.err(), (option == "nosymfollow").then_some(Some(40)), "{option}");
        drop(mount);
    }
}

#[test]
fn a_bad_file_of_mounts_is_refused_with_file_line_and_key() {
    let fixture = Fixture::without_mounting();
    let one = "[[mount]]\nat = \"/\"\nsource = \"ram:\"\n";
    let with = |more: &str| format!("{one}\n[[mount]]\n{more}\n");
    let cases: [(String, &[&str]); 16] = [
        (String::new(), &["line 1", "no [[mount]]"]),
        ("[[mount]]\nat = \n".into(), &["line 2"]),
        ("[[mount]]\nat = 5\nsource = \"ram:\"\n".into(), &["line 2", "string"]),
        ("[[mount]]\nsource = \"ram:\"\n".into(), &["line 1", "`at`"]),
        (with("at = \"/x\""), &["line 5", "`source`"]),
        (with("at = \"/x\"\nsource = \"ram:\"\nfrom = 1"), &["line 8", "`from`"]),
        (format!("speed = 1\n{one}"), &["line 1", "`speed`"]),
        (with("at = \"x\"\nsource = \"ram:\""), &["line 6, at: invalid mount point \"x\"", "/src"]),
        (with("at = \"/a/../b\"\nsource = \"ram:\""), &["line 6, at: invalid mount point"]),
        (with("at = \"//\"\nsource = \"ram:\""), &["line 6, at: two mounts at \"/\""]),
        (with("at = \"/x\"\nsource = \"gone\""), &["line 7, source:", "gone: no such directory"]),
        (with("at = \"/x\"\nsource = \"ram:size=x\""), &["line 7, source: invalid option \"size=x\""]),
        (with("at = \"/x\"\nsource = \"ram:\"\noptions = \"tll=1s\""), &["line 8, options: unknown option \"tll=1s\""]),
        (with("at = \"/x\"\nsource = \"ram:\"\noptions = \"threads=1\""), &["line 8, options:", "only for the mount"]),
        (with("at = \"/x\"\nsource = \"tree.toml\""), &["line 7, source:", "inside another"]),
        (with("at = \"/x\"\nsource = \"/dev/null\""), &["line 7, source: /dev/null: not a directory"]),
    ];
    let file = fixture.at("tree.toml");
    for (contents, parts) in cases {
        fs::write(&file, &contents).expect("a file");
        fixture.refused(&["mount", "--fake", "tree.toml", "m"], 2, &[&["tree.toml, line "], parts].concat());
    }
    fs::write(&file, one).expect("a file");
    fixture.ok(&["mount", "--fake", "tree.toml", "m", "-o", "ro"]);
    fixture.refused(
        &["mount", "--fake", "tree.toml", "m", "-o", "cache=1m"],
        2,
        &["cache=1m", "a file of mounts", "own `options`"],
    );
    fs::write(&file, b"\xff\xfe").expect("a file");
    fixture.refused(&["mount", "--fake", "tree.toml", "m"], 2, &["tree.toml: cannot read", "not UTF-8"]);
}

#[test]
fn a_link_in_a_directory_leads_no_mount_point_out_of_it() {
    let Some(fixture) = Fixture::new() else { return };
    fs::create_dir_all(fixture.at("src/a")).expect("directories");
    fs::create_dir_all(fixture.at("outside/sub")).expect("directories");
    symlink(fixture.at("outside"), fixture.at("src/absolute")).expect("a link");
    symlink("../outside", fixture.at("src/relative")).expect("a link");
    symlink("/a", fixture.at("src/inside")).expect("a link");
    let tree = |at: &str| {
        let text = format!("[[mount]]\nat = \"/\"\nsource = \"src\"\n[[mount]]\nat = {at:?}\nsource = \"outside\"\n");
        fs::write(fixture.at("tree.toml"), text).expect("a file");
    };
    for at in ["/absolute/sub", "/relative/sub", "/absolute"] {
        tree(at);
        fixture.refused(&["mount", "tree.toml", "m"], 2, &["no directory", at, "no such file or directory"]);
    }
    tree("/inside");
    let _mount = fixture.mount(&["tree.toml", "m"]);
    assert!(fixture.at("m/a/sub").exists(), "an absolute link starts from the root of the tree");
    assert_eq!(fs::read_dir(fixture.at("outside")).expect("a directory").count(), 1, "nothing was created there");
}

#[test]
fn access_times_move_as_the_options_say() {
    const DAY: i64 = 24 * 3600;
    let Some(fixture) = Fixture::new() else { return };
    for name in ["src", "src/sub"] {
        fs::create_dir(fixture.at(name)).expect("a directory");
    }
    let tree = "[[mount]]\nat = \"/\"\nsource = \"ram:\"\n[[mount]]\nat = \"/src\"\nsource = \"src\"\n";
    fs::write(fixture.at("tree.toml"), tree).expect("a file");
    // Whether reads of a file with an old and with a new access time move it, and listings of a directory with an old one.
    let cases = [
        ("ram:", "relatime", "m", [true, false, true]),
        ("ram:", "noatime", "m", [false; 3]),
        ("ram:", "nodiratime", "m", [true, false, false]),
        ("ram:", "strictatime", "m", [true; 3]),
        ("ram:", "strictatime,nowriteback", "m", [true; 3]),
        ("tree.toml", "noatime", "m", [false; 3]),
        ("tree.toml", "strictatime", "m", [true; 3]),
        ("src", "relatime", "m", [true, false, true]),
        ("src", "noatime", "m", [false; 3]),
        ("src", "nodiratime", "m", [true, false, false]),
        ("src", "noatime,exclusive", "m", [false; 3]),
        ("tree.toml", "noatime", "m/src", [false; 3]),
    ];
    for (source, options, at, expected) in cases {
        let label = format!("{source} {options} {at}");
        let mount = fixture.mount(&[source, "m", "-o", options]);
        let (file, sub) = (fixture.at(at).join("f"), fixture.at(at).join("d"));
        // A whole page: the kernel need not read it, so that the host would not see an access.
        let behind = if source == "src" || at == "m/src" { fixture.at("src/f") } else { file.clone() };
        fs::write(behind, vec![1; 4096]).expect("a file");
        fs::create_dir(&sub).expect("a directory");
        let moves = |path: &Path, seconds: i64, read: &dyn Fn()| {
            let by = Duration::from_secs(seconds.unsigned_abs());
            let time = if seconds < 0 { SystemTime::now() - by } else { SystemTime::now() + by };
            File::open(path).expect("a file").set_times(FileTimes::new().set_accessed(time)).expect("root may");
            let accessed = || fs::metadata(path).expect("attributes").accessed().expect("a time");
            let before = accessed();
            read();
            accessed() != before
        };
        let reads = || drop(fs::read(&file).expect("a file"));
        // The time of the last change is now, so that only an access time in the future is a new one.
        let seen = [
            moves(&file, -DAY, &reads),
            moves(&file, 100, &reads),
            moves(&sub, -DAY, &|| assert_eq!(fs::read_dir(&sub).expect("a directory").count(), 0)),
        ];
        assert_eq!(seen, expected, "{label}");
        drop(mount);
        fixture.ok(&["unmount", "--lazy", "m"]);
        let _ = fs::remove_dir_all(fixture.at("src/d"));
        let _ = fs::remove_file(fixture.at("src/f"));
    }
}
