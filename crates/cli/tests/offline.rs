//! Commands on a source that is not mounted, as their user meets them: output, exit status, and what is on disk then.

#[path = "offline/copies.rs"]
mod copies;
#[path = "offline/fixture.rs"]
mod fixture;

use fixture::{Dir, check, checked, lightfoot, run, source, stderr, stdout, text};
use serde_json::Value;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn commands_answer_as_those_of_coreutils_do() {
    let source = source();
    let at = text(&source.0);
    let cases: [(&[&str], &str); 24] = [
        (&["ls", at], "a\ndangling\nempty\nin\nlink\nloop\nout\nup\n"),
        (&["ls", "-A", at, "a"], ".hidden\nb\nf\n"),
        (&["ls", "-a", at, "/a"], ".\n..\n.hidden\nb\nf\n"),
        (&["ls", "-r", at, "a"], "f\nb\n"),
        (&["ls", "-d", at, "a"], "/a\n"),
        (&["ls", at, "a/f", "link", "a/b"], "/a/f\n/link\n\n/a/b:\nlong\nodd name\n"),
        (&["ls", "-R", at, "a"], "/a:\nb\nf\n\n/a/b:\nlong\nodd name\n"),
        (&["ls", at, "up"], "a\ndangling\nempty\nin\nlink\nloop\nout\nup\n"),
        (&["ls", at, "empty"], ""),
        (&["ls", "ram:"], ""),
        (&["ls", "ram:size=1m,mode=1777,uid=7"], ""),
        (&["cat", at, "a/f", "link"], "contents\ncontents\n"),
        (&["cat", at, "in"], "contents\n"),
        (&["find", at, "a"], "/a\n/a/.hidden\n/a/b\n/a/b/long\n/a/b/odd name\n/a/f\n"),
        (&["find", at, "a", "--type", "d"], "/a\n/a/b\n"),
        (&["find", at, "--type", "l,d", "--max-depth", "1", "--name", "[el]*"], "/empty\n/link\n/loop\n"),
        (&["find", at, "--size", "+1k", "--type", "f"], "/a/b/long\n"),
        (&["find", at, "--empty"], "/a/.hidden\n/empty\n"),
        (&["find", at, "a", "--min-depth", "2", "-0"], "/a/b/long\0/a/b/odd name\0"),
        (&["find", at, "a/f", "link", "--iname", "LINK"], "/link\n"),
        (&["find", at, "--path", "*/b/*"], "/a/b/long\n/a/b/odd name\n"),
        (&["tree", at, "a"], "/a\n├── b\n│   ├── long\n│   └── odd name\n└── f\n\n1 directory, 3 files\n"),
        (&["tree", "-d", at, "/"], "/\n├── a\n│   └── b\n└── empty\n\n3 directories, 0 files\n"),
        (&["tree", "-a", "-L", "1", at, "a"], "/a\n├── .hidden\n├── b\n└── f\n\n1 directory, 2 files\n"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(stdout(&checked(arguments)), expected, "{arguments:?}");
    }
}

#[test]
fn what_cannot_be_done_is_told_in_one_sentence_with_status_2_and_the_rest_is_done() {
    let source = source();
    let at = text(&source.0);
    let cases: [(&[&str], &str, &[&str]); 17] = [
        (&["ls", at, "gone", "a/f"], "/a/f\n", &["\"/gone\" of", "no such file or directory", "lightfoot ls"]),
        (&["ls", at, "a/f/x"], "", &["\"/a/f/x\" of", "not a directory"]),
        (&["cat", at, "a", "a/f"], "contents\n", &["\"/a\" of", "is a directory", "name a file"]),
        (&["cat", at, "loop"], "", &["\"/loop\" of", "too many levels of symbolic links"]),
        (&["cat", at, "out"], "", &["\"/out\" of", "no such file or directory"]),
        (&["cat", at, "../../../../etc/passwd"], "", &["no such file or directory"]),
        (&["stat", at, "gone\n\u{1b}[2J"], "", &["\"/gone\\n\\u{1b}[2J\" of"]),
        (&["find", at, "gone"], "", &["\"/gone\" of", "no such file"]),
        (&["tree", "ram:", "gone"], "\n0 directories, 0 files\n", &["\"/gone\" of \"ram\""]),
        (&["ls", "/gone/away"], "", &["there is no \"/gone/away\"", "name a directory", "ram:"]),
        (&["ls", "/dev/null"], "", &["\"/dev/null\" is no directory"]),
        (&["ls", "/dev/null/x"], "", &["\"/dev/null/x\" cannot be used (not a directory)"]),
        (&["ls", "ram:size=much"], "", &["\"size=much\" is not understood", "size=512m"]),
        (&["ls", "ram:ttl=1s"], "", &["\"ttl=1s\" is no option of a tree in memory", "nr_inodes=N"]),
        (&["ls", at, "-o", "ttl=soon"], "", &["\"ttl=soon\" is not understood", "ttl=500ms"]),
        (&["ls", at, "-o", "ro", "-o", "size=1m"], "", &["\"size=1m\" is no option of a host directory", "always"]),
        (&["man", "nonsense"], "", &["lightfoot has no command \"nonsense\"", "bench, lab"]),
    ];
    for (arguments, output, parts) in cases {
        check(arguments, 2, output, parts);
    }
}

#[test]
fn a_command_line_that_makes_no_sense_has_status_2() {
    let cases: [&[&str]; 9] = [
        &["ls"],
        &["cat", "ram:"],
        &["find", "ram:", "--type", "x"],
        &["find", "ram:", "--size", "1K"],
        &["cp", "a", "b"],
        &["cp", "--into", "ram:", "a"],
        &["cp", "--into", "ram:", "--within", "ram:", "a", "b"],
        &["completions", "nonsense"],
        &["man", "--dir", "x", "ls"],
    ];
    for arguments in cases {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_ne!(stderr(&output), "", "{arguments:?}");
    }
}

/// The output of a command of this machine in `dir`, with the words and times that ours have.
fn system(dir: &Path, command: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(command);
    let output = command.args(arguments).current_dir(dir).env("LC_ALL", "C").env("TZ", "UTC").output();
    stdout(&output.expect("the command runs"))
}

#[test]
fn long_listings_are_those_of_ls() {
    let source = source();
    let at = text(&source.0);
    for number in 0..11 {
        fs::hard_link(source.at("a/f"), source.at(&format!("a/again{number}"))).expect("a link");
    }
    // Only root may make devices; everything else is shown without.
    for (name, major, minor) in [("null", "1", "3"), ("wide", "8", "1000"), ("far", "200", "0")] {
        let made = Command::new("mknod").arg(source.at(&format!("a/{name}"))).args(["c", major, minor]).output();
        assert!(made.is_ok(), "there is mknod(1)");
    }
    for (name, id) in [("a/again0", Some(12_345_678)), ("a/b", Some(1)), ("a/.hidden", Some(77_777))] {
        let _ = std::os::unix::fs::chown(source.at(name), id, id);
    }
    fs::set_permissions(source.at("a/f"), fs::Permissions::from_mode(0o4711)).expect("a mode");
    let old = Command::new("touch").args(["-d", "2001-02-03 04:05:06 UTC"]).arg(source.at("a/b/long")).status();
    assert!(old.is_ok_and(|status| status.success()), "touch works");
    for options in ["-l", "-la", "-lA", "-lh", "-lahn", "-li", "-lr", "-lt", "-ltr", "-lS", "-lRa", "-ldi", "-lnSr"] {
        let expected = system(&source.0, "ls", &[options, "--quoting-style=literal", "a"]);
        let expected = expected.replace("\na/", "\n/a/").replace("a:\n", "/a:\n").replace(" a\n", " /a\n");
        let expected = if options == "-lRa" { expected } else { expected.replace("/a:\n", "a:\n") };
        assert_eq!(stdout(&checked(&["ls", options, at, "a"])), expected, "{options}");
    }
    let expected = system(&source.0, "ls", &["-l", "--quoting-style=literal", "dangling", "loop", "out"]);
    let expected = expected.replace(" dangling", " /dangling").replace(" loop ", " /loop ").replace(" out", " /out");
    assert_eq!(stdout(&checked(&["ls", "-l", at, "dangling", "loop", "out"])), expected);
}

#[test]
fn all_attributes_are_those_of_stat_and_all_that_is_found_those_of_find() {
    let source = source();
    let at = text(&source.0);
    for path in ["a", "a/f", "a/.hidden", "link"] {
        let lines = |text: &str| -> Vec<String> {
            // Reading a link, as both do, is an access to it.
            let left_out = ["  File:", " Birth:", "Access: 20"];
            let kept = |line: &&str| !left_out.iter().any(|start| line.starts_with(start));
            let rest = |line: &str| line.split_once("Inode:").map_or(line, |(_, rest)| rest).to_owned();
            text.lines().filter(kept).map(rest).collect()
        };
        let expected = system(&source.0, "stat", &[path]);
        assert_eq!(lines(&stdout(&checked(&["stat", at, path]))), lines(&expected), "{path}");
    }
    assert!(stdout(&checked(&["stat", at, "link"])).starts_with("  File: /link -> a/f\n"));
    assert!(stdout(&checked(&["stat", "-L", at, "link"])).contains("regular file"));
    let cases: [(&[&str], &[&str]); 6] = [
        (&[], &[]),
        (&["--type", "f"], &["-type", "f"]),
        (&["--name", "*n*"], &["-name", "*n*"]),
        (&["--size", "1"], &["-size", "1"]),
        (&["--size", "-2k"], &["-size", "-2k"]),
        (&["--empty", "--type", "f"], &["-empty", "-type", "f"]),
    ];
    for (ours, theirs) in cases {
        let mut expected: Vec<String> =
            system(&source.0, "find", &[&["."], theirs].concat()).lines().map(|line| line[1..].to_owned()).collect();
        expected.iter_mut().filter(|path| path.is_empty()).for_each(|path| path.push('/'));
        expected.sort();
        let found = stdout(&checked(&[&["find", at], ours].concat()));
        let mut found: Vec<&str> = found.lines().collect();
        found.sort_unstable();
        assert_eq!(found, expected, "{ours:?}");
    }
}

#[test]
fn json_is_one_document_and_loses_no_byte() {
    let source = source();
    fs::write(source.0.join(std::ffi::OsStr::from_bytes(b"\xff\n")), "odd").expect("a file");
    let at = text(&source.0);
    let document = |arguments: &[&str]| -> Value {
        serde_json::from_slice(&checked(arguments).stdout).expect("one JSON document")
    };
    let listed = document(&["ls", "--json", at]);
    let paths: Vec<&Value> = listed.as_array().expect("an array").iter().map(|entry| &entry["path"]).collect();
    assert_eq!(paths, ["/a", "/dangling", "/empty", "/in", "/link", "/loop", "/out", "/up", "/\u{fffd}\n"]);
    assert_eq!(listed[8]["path_bytes"], serde_json::json!([0x2f, 0xff, 0x0a]));
    assert!(listed[0]["path_bytes"].is_null());
    assert_eq!((&listed[4]["type"], &listed[4]["target"]), (&"symlink".into(), &"a/f".into()));
    let stat = document(&["stat", "--json", at, "a/f", "a"]);
    let metadata = fs::metadata(source.at("a/f")).expect("a file");
    assert_eq!((&stat[0]["size"], &stat[0]["mode"]), (&9.into(), &"0640".into()));
    assert_eq!((&stat[0]["uid"], &stat[0]["ino"]), (&metadata.uid().into(), &metadata.ino().into()));
    assert_eq!(stat[1]["type"], "directory");
    let found = document(&["find", "--json", at, "a", "--type", "f"]);
    assert_eq!(found.as_array().map(Vec::len), Some(4));
    assert_eq!(document(&["find", "--json", at, "--name", "nothing"]), serde_json::json!([]));
    assert_eq!(document(&["ls", "--json", "ram:"]), serde_json::json!([]));
    let tree = document(&["tree", "--json", at]);
    assert_eq!(tree["path"], "/");
    assert_eq!(tree["children"][0]["children"][0]["children"][1]["path"], "/a/b/odd name");
    assert_eq!(tree["children"][2]["children"], serde_json::json!([]));
}

#[test]
fn a_file_of_mounts_makes_one_tree_of_several() {
    let source = source();
    let dir = Dir::new();
    let at = |path: &str| format!("{}/{path}", text(&source.0));
    fs::create_dir(dir.at("here")).expect("a directory");
    fs::write(dir.at("here/x"), "relative").expect("a file");
    let file = dir.at("tree.toml");
    let mounts = format!(
        "[[mount]]\nat = \"/deep/er/b\"\nsource = {:?}\noptions = \"ro,ttl=1s\"\n\n\
         [[mount]]\nat = \"/\"\nsource = \"ram:size=1m,ro\"\n\n\
         [[mount]]\nat = \"//here/\"\nsource = \"here\"\n[[mount]]\nat = \"/here/tmp\"\nsource = \"ram:\"\n",
        at("a/b")
    );
    fs::write(&file, mounts).expect("a file");
    let file = text(&file);
    // The mount point in a directory of the host is not there yet.
    check(&["ls", file], 2, "", &["tree.toml\", line 14, at", "no directory \"/here/tmp\"", "make it there"]);
    assert!(!dir.at("here/tmp").exists(), "nothing is made on the host");
    fs::create_dir(dir.at("here/tmp")).expect("a directory");
    assert_eq!(stdout(&checked(&["find", file, "--type", "f"])), "/deep/er/b/long\n/deep/er/b/odd name\n/here/x\n");
    assert_eq!(stdout(&checked(&["cat", file, "here/x"])), "relative");
    let cp = |to: &str| run(&["cp", "--into", file, &at("a/f"), to]);
    for read_only in ["/deep/er/b/f", "/deep/f"] {
        let output = cp(read_only);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("read-only file system); leave ro out"), "{}", stderr(&output));
    }
    assert!(cp("/here/f").status.success(), "the other mounts can be written to");
    assert_eq!(fs::read(dir.at("here/f")).expect("a copy"), b"contents\n");
    assert!(cp("/here/tmp/f").status.success());
    assert!(!dir.at("here/tmp/f").exists(), "what is in memory is not on the host");
}

#[test]
fn a_bad_file_of_mounts_is_refused_with_file_line_and_key() {
    let dir = Dir::new();
    let one = "[[mount]]\nat = \"/\"\nsource = \"ram:\"\n";
    let with = |more: &str| format!("{one}\n[[mount]]\n{more}\n");
    let cases: [(String, &[&str]); 15] = [
        (String::new(), &["line 1", "names no mount", "[[mount]]"]),
        ("[[mount]]\nat = \n".into(), &["line 2"]),
        ("[[mount]]\nat = 5\nsource = \"ram:\"\n".into(), &["line 2", "string"]),
        ("[[mount]]\nsource = \"ram:\"\n".into(), &["line 1", "`at`"]),
        (with("at = \"/x\""), &["line 5", "`source`"]),
        (with("at = \"/x\"\nsource = \"ram:\"\nfrom = 1"), &["line 8", "`from`"]),
        (format!("speed = 1\n{one}"), &["line 1", "`speed`"]),
        (with("at = \"x\"\nsource = \"ram:\""), &["line 6, at", "\"x\" is no place", "/src"]),
        (with("at = \"/a/../b\"\nsource = \"ram:\""), &["line 6, at", "is no place"]),
        (with("at = \"//\"\nsource = \"ram:\""), &["line 6, at", "two mounts at \"/\""]),
        (with("at = \"/x\"\nsource = \"gone\""), &["line 7, source", "there is no", "gone\""]),
        (with("at = \"/x\"\nsource = \"ram:size=x\""), &["line 7, source", "\"size=x\" is not understood"]),
        (with("at = \"/x\"\nsource = \"ram:\"\noptions = \"tll=1s\""), &["line 8, options", "\"tll=1s\" is no option"]),
        (with("at = \"/x\"\nsource = \"tree.toml\""), &["line 7, source", "names mounts itself"]),
        (with("at = \"/x\"\nsource = \"/dev/null\""), &["line 7, source", "is no directory"]),
    ];
    let file = dir.at("tree.toml");
    for (contents, parts) in cases {
        fs::write(&file, &contents).expect("a file");
        check(&["ls", text(&file)], 2, "", &[&["tree.toml\""], parts].concat());
    }
    fs::write(&file, one).expect("a file");
    check(&["ls", text(&file), "-o", "ro"], 2, "", &["options are given for each [[mount]]", "tree.toml\""]);
    fs::write(&file, b"\xff\xfe").expect("a file");
    check(&["ls", text(&file)], 2, "", &["tree.toml\" cannot be read (it is no text in UTF-8)"]);
}

#[test]
fn links_lead_no_further_than_the_source() {
    let (source, outside) = (source(), Dir::new());
    fs::write(outside.at("secret"), "secret").expect("a file");
    symlink(&outside.0, source.at("absolute")).expect("a link");
    symlink(format!("../{}", outside.0.file_name().expect("a name").display()), source.at("relative")).expect("a link");
    let at = text(&source.0);
    for path in ["absolute/secret", "relative/secret", "absolute", "up/../../relative/secret"] {
        check(&["cat", at, path], 2, "", &["no such file or directory"]);
        check(&["ls", at, &format!("{path}/")], 2, "", &["no such file or directory"]);
        let output = run(&["cp", "--into", at, &format!("{at}/a/f"), &format!("{path}/new")]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
    let left: Vec<_> = fs::read_dir(&outside.0).expect("a directory").collect();
    assert_eq!(left.len(), 1, "nothing was made there");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let source = source();
    fs::write(source.at("great"), vec![b'x'; 8 << 20]).expect("a file");
    let at = text(&source.0);
    let cases: [&[&str]; 6] = [
        &["cat", at, "great"],
        &["find", at],
        &["ls", "-lR", at],
        &["tree", at],
        &["stat", at, "a"],
        &["completions", "bash"],
    ];
    for arguments in cases {
        let child = lightfoot().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the command starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("the command ends");
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn output_that_cannot_be_written_is_told_with_status_1() {
    let source = source();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("there is one");
    let output = lightfoot().args(["find", text(&source.0)]).stdout(full).output().expect("the command runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no space left on device"), "{}", stderr(&output));
}

#[test]
fn a_terminal_gets_columns_and_no_byte_that_it_obeys() {
    let source = source();
    fs::write(source.at("\u{1b}[31mred\nname"), "").expect("a file");
    let command = format!("COLUMNS=40 {} ls {}", env!("CARGO_BIN_EXE_lightfoot"), text(&source.0));
    let output = Command::new("script").args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        eprintln!("SKIPPED: there is no script(1) here");
        return;
    };
    let shown = stdout(&output).replace('\r', "");
    assert!(shown.contains("\\033[31mred\\nname"), "{shown:?}");
    assert!(!shown.contains('\u{1b}') && shown.lines().count() < 9, "{shown:?}");
}

#[test]
fn a_copy_shows_its_progress_on_a_terminal_and_nowhere_else() {
    let (source, target) = (source(), Dir::new());
    fs::write(source.at("great"), vec![b'x'; 4 << 20]).expect("a file");
    let copy = format!("cp --out-of {} great {}", text(&source.0), text(&target.0));
    checked(&copy.split(' ').collect::<Vec<_>>());
    let command = format!("{} {copy}", env!("CARGO_BIN_EXE_lightfoot"));
    let output = Command::new("script").args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        eprintln!("SKIPPED: there is no script(1) here");
        return;
    };
    let shown = stdout(&output);
    assert!(shown.contains("copying") && shown.contains("of 4.00 MiB"), "{shown:?}");
}

#[test]
fn every_command_has_a_manual_page_and_every_shell_completions() {
    let dir = Dir::new();
    let pages = dir.at("man");
    checked(&["man", "--dir", text(&pages)]);
    for name in ["lightfoot", "lightfoot-ls", "lightfoot-cp", "lightfoot-bench", "lightfoot-lab-run", "lightfoot-man"] {
        let page = fs::read_to_string(pages.join(format!("{name}.1"))).expect("a page");
        assert!(page.contains(&format!(".TH {name} 1")) && page.contains(".SH SYNOPSIS"), "{name}: {page}");
    }
    assert!(!pages.join("lightfoot-lab-cell.1").exists(), "what is hidden has none");
    assert!(stdout(&checked(&["man"])).contains(".TH lightfoot 1"));
    assert!(stdout(&checked(&["man", "lab", "run"])).contains(".TH lightfoot-lab-run 1"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(stdout(&checked(&["completions", shell])).contains("out-of"), "{shell}");
    }
    check(&["man", "--dir", "/dev/null/x"], 2, "", &["\"/dev/null/x\" cannot be written (not a directory)"]);
}
