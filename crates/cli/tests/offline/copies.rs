//! Copies into sources, out of them, within one and between two.

use crate::fixture::{Dir, check, checked, run, source, stderr, text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// All below a directory: path to mode with type, time of the last change, and contents or link body.
type Snapshot = BTreeMap<Vec<u8>, (u32, (i64, i64), Vec<u8>)>;

fn snapshot(root: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    let mut to_list = vec![root.to_path_buf()];
    while let Some(dir) = to_list.pop() {
        for entry in fs::read_dir(dir).expect("a directory can be listed") {
            let path = entry.expect("an entry").path();
            let metadata = fs::symlink_metadata(&path).expect("an entry has attributes");
            let body = match metadata.file_type() {
                kind if kind.is_symlink() => fs::read_link(&path).expect("a link").as_os_str().as_bytes().into(),
                kind if kind.is_file() => fs::read(&path).expect("a file"),
                _ => Vec::new(),
            };
            let time = (metadata.mtime(), metadata.mtime_nsec());
            let relative = path.strip_prefix(root).expect("it lies below").as_os_str().as_bytes().to_vec();
            found.insert(relative, (metadata.mode(), time, body));
            if metadata.is_dir() {
                to_list.push(path);
            }
        }
    }
    found
}

/// The same without times, and with the modes that a copy without `--preserve` gives.
fn plain(snapshot: Snapshot) -> Snapshot {
    let is_link = |mode: u32| mode & 0o170_000 == 0o120_000;
    let mode = |mode: u32| if is_link(mode) { mode } else { mode & !0o7022 };
    snapshot.into_iter().map(|(path, (bits, _, body))| (path, (mode(bits), (0, 0), body))).collect()
}

/// A tree with all that is awkward: odd names, modes that keep their owner out, old times, holes, special files.
fn awkward() -> Dir {
    let dir = source();
    fs::write(dir.0.join(std::ffi::OsStr::from_bytes(b"a/\xff\n\x1b")), "odd").expect("a file");
    fs::write(dir.at("a/zeros"), vec![0; 300_000]).expect("a file");
    let sparse = fs::File::create(dir.at("a/sparse")).expect("a file");
    sparse.set_len(5 << 20).expect("a hole");
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"middle", 3 << 20).expect("data");
    let fifo = Command::new("mkfifo").arg(dir.at("a/fifo")).status();
    assert!(fifo.is_ok_and(|status| status.success()), "a FIFO can be made");
    for (path, mode) in [("a/zeros", 0o6755), ("a/b", 0o500), ("empty", 0o1777), ("a/f", 0o4711)] {
        fs::set_permissions(dir.at(path), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    for path in ["link", "a/f", "a/b", "empty"] {
        let old = Command::new("touch").args(["-h", "-d", "2001-02-03 04:05:06.789 UTC"]).arg(dir.at(path)).status();
        assert!(old.is_ok_and(|status| status.success()), "touch works");
    }
    dir
}

#[test]
fn a_tree_is_the_same_after_the_way_in_and_out() {
    for preserve in [false, true] {
        let (original, middle, back) = (awkward(), Dir::new(), Dir::new());
        let options = if preserve { "-rp" } else { "-r" };
        let from = format!("{}/.", text(&original.0));
        checked(&["cp", options, "--into", text(&middle.0), &from, "/new"]);
        checked(&["cp", options, "--out-of", text(&middle.0), "new", text(&back.0)]);
        let (before, after) = (snapshot(&original.0), snapshot(&back.at("new")));
        if preserve {
            assert_eq!(before, after);
            assert_eq!(before, snapshot(&middle.at("new")));
        } else {
            assert_eq!(plain(before.clone()), plain(after.clone()));
            assert_ne!(before, after, "times are those of the copy");
        }
        let blocks = fs::metadata(back.at("new/a/sparse")).expect("a file").blocks();
        assert!(blocks < 2 << 11, "holes stay holes: {blocks} blocks");
    }
}

#[test]
fn zeros_are_written_where_something_was_before() {
    let (original, target) = (awkward(), Dir::new());
    fs::write(target.at("sparse"), vec![b'y'; 4 << 20]).expect("a file");
    checked(&["cp", "--out-of", text(&original.0), "a/sparse", text(&target.0)]);
    let same = fs::read(target.at("sparse")).expect("a copy") == fs::read(original.at("a/sparse")).expect("a file");
    assert!(same, "the contents differ");
}

#[test]
fn what_goes_from_one_source_to_another_need_not_touch_the_host() {
    let (original, other) = (awkward(), Dir::new());
    checked(&["cp", "-rp", "--out-of", text(&original.0), "--into", text(&other.0), "/", "/"]);
    assert_eq!(snapshot(&original.0), snapshot(&other.0));
    checked(&["cp", "-rp", "--within", text(&other.0), "/a", "/copy"]);
    assert_eq!(snapshot(&other.at("a")), snapshot(&other.at("copy")));
}

#[test]
fn a_copy_goes_where_cp_would_put_it() {
    let (source, target) = (source(), Dir::new());
    // So that its copy can be written over by who is not root.
    fs::set_permissions(source.at("a/b/long"), fs::Permissions::from_mode(0o644)).expect("a mode");
    let (from, to) = (text(&source.0), text(&target.0));
    let read = |path: &str| fs::read_to_string(target.at(path)).expect(path);
    checked(&["cp", "--out-of", from, "a/f", to]);
    assert_eq!(read("f"), "contents\n");
    checked(&["cp", "--out-of", from, "a/f", &format!("{to}/g")]);
    assert_eq!(read("g"), "contents\n");
    checked(&["cp", "--out-of", from, "link", "a/b/odd name", to]);
    assert_eq!((read("link").as_str(), read("odd name").as_str()), ("contents\n", "odd"));
    assert!(!target.at("link").is_symlink(), "without --recursive a link is followed");
    checked(&["cp", "-r", "--out-of", from, "link", &format!("{to}/as-it-is")]);
    assert!(target.at("as-it-is").is_symlink());
    fs::create_dir(target.at("dir")).expect("a directory");
    checked(&["cp", "-r", "--out-of", from, "a", &format!("{to}/dir")]);
    checked(&["cp", "-r", "--out-of", from, "a", &format!("{to}/dir")]);
    assert_eq!(read("dir/a/f"), "contents\n");
    checked(&["cp", "-r", "--out-of", from, "/a/.", &format!("{to}/dir")]);
    assert_eq!(read("dir/f"), "contents\n");
    // What is there is cut to the length of what takes its place, and keeps its mode.
    fs::write(target.at("g"), "much longer contents\n").expect("a file");
    fs::set_permissions(target.at("g"), fs::Permissions::from_mode(0o600)).expect("a mode");
    checked(&["cp", "--out-of", from, "a/f", &format!("{to}/g")]);
    assert_eq!(read("g"), "contents\n");
    assert_eq!(fs::metadata(target.at("g")).expect("a file").mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(target.at("f")).expect("a file").mode() & 0o7777, 0o640);
}

#[test]
fn a_copy_that_makes_no_sense_is_told_and_changes_nothing() {
    let (source, target) = (source(), Dir::new());
    let (from, to) = (text(&source.0), text(&target.0));
    fs::create_dir_all(target.at("dir/f")).expect("directories");
    fs::write(target.at("file"), "old").expect("a file");
    let (dir, file) = (format!("{to}/dir"), format!("{to}/file"));
    symlink("nowhere", target.at("dangling")).expect("a link");
    let fifo = Command::new("mkfifo").arg(target.at("fifo")).status();
    assert!(fifo.is_ok_and(|status| status.success()), "a FIFO can be made");
    let (fifo, dangling) = (format!("{to}/fifo"), format!("{to}/dangling"));
    let before = (snapshot(&source.0), snapshot(&target.0));
    let cases: [(&[&str], &[&str]); 17] = [
        (&["--out-of", from, "a/f", &fifo], &["fifo\" cannot be made", "a device or the like"]),
        (&["--out-of", from, "a/f", &dangling], &["dangling\" cannot be made", "leads nowhere"]),
        (&["-r", "--within", from, "link", "link"], &["it is what is copied"]),
        (&["-r", "--out-of", from, "", to], &["\"\" of", "no such file"]),
        (&["--into", from, &fifo, "/x"], &["fifo\" cannot be copied (it is no regular file)", "--recursive"]),
        (&["--out-of", from, "a", to], &["\"/a\"", "it is a directory", "--recursive"]),
        (&["--out-of", from, "gone", to], &["gone", "no such file"]),
        (&["--out-of", from, "a/f", &dir], &["dir/f\" cannot be made", "there is a directory of that name"]),
        (&["-r", "--out-of", from, "a", &file], &["file\" cannot be made", "something else of that name"]),
        (&["--out-of", from, "a/f", "link", &file], &["file\" cannot be copied into", "no such directory"]),
        (&["--out-of", from, "a/f", &format!("{to}/none/")], &["none/\" cannot be copied into", "make it"]),
        (&["--out-of", from, "a/f", &format!("{to}/none/f")], &["none/f\"", "no such file"]),
        (&["--within", from, "a/f", "a/f"], &["it is what is copied"]),
        (&["--within", from, "link", "a/f"], &["it is what is copied"]),
        (&["-r", "--within", from, "a", "a/b/c"], &["the copy would lie in what is copied"]),
        (&["-r", "--within", from, "/", "a/c"], &["the copy would lie in what is copied"]),
        (&["--into", from, "-o", "ro", &file, "new"], &["read-only file system", "leave ro out"]),
    ];
    for (arguments, parts) in cases {
        check(&[&["cp"], arguments].concat(), 2, "", parts);
        assert_eq!((snapshot(&source.0), snapshot(&target.0)), before, "{arguments:?}");
    }
}

#[test]
fn of_two_that_go_to_one_place_the_first_is_copied() {
    let (source, target) = (source(), Dir::new());
    fs::write(source.at("f"), "another").expect("a file");
    let arguments = ["cp", "--out-of", text(&source.0), "a/f", "f", text(&target.0)];
    check(&arguments, 2, "", &["\"/f\" of", "another of that name goes to the same place"]);
    assert_eq!(fs::read_to_string(target.at("f")).expect("a copy"), "contents\n");
}

#[test]
fn a_file_that_is_copied_onto_itself_by_another_way_stays_what_it_is() {
    let source = source();
    let at = text(&source.0);
    fs::set_permissions(source.at("a/b/long"), fs::Permissions::from_mode(0o644)).expect("a mode");
    let before = plain(snapshot(&source.0));
    assert!(run(&["cp", "--into", at, &format!("{at}/a/b/long"), "a/b/long"]).status.success());
    assert!(run(&["cp", "--out-of", at, "a/b/long", &format!("{at}/a/b/long")]).status.success());
    assert_eq!(plain(snapshot(&source.0)), before);
}

#[test]
fn a_directory_that_is_copied_into_itself_from_outside_has_an_end() {
    let source = source();
    let at = text(&source.0);
    fs::create_dir_all(source.at("a/into")).expect("a directory");
    checked(&["cp", "-r", "--into", at, &format!("{at}/a"), "a/into"]);
    assert!(source.at("a/into/a/f").exists() && source.at("a/into/a/into").exists());
    assert!(!source.at("a/into/a/into/a").exists());
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_unless_it_is_what_was_named() {
    let (source, target, outside) = (source(), Dir::new(), Dir::new());
    let (from, to) = (text(&source.0), text(&target.0));
    let victim = outside.at("victim");
    let renew = |at: &str| {
        let _ = fs::remove_file(target.at(at));
        fs::write(&victim, "untouched").expect("a file");
        symlink(&victim, target.at(at)).expect("a link");
    };
    let victim_is = |contents: &str| assert_eq!(fs::read_to_string(&victim).expect("a file"), contents);
    renew("f");
    checked(&["cp", "--out-of", from, "a/f", to]);
    victim_is("untouched");
    assert!(target.at("f").is_file() && !target.at("f").is_symlink());
    fs::create_dir(target.at("a")).expect("a directory");
    renew("a/f");
    checked(&["cp", "-r", "--out-of", from, "a", to]);
    victim_is("untouched");
    renew("named");
    checked(&["cp", "--out-of", from, "a/f", &format!("{to}/named")]);
    victim_is("contents\n");
    // A directory is not made through a link either.
    let trap = Dir::new();
    symlink(&outside.0, trap.at("a")).expect("a link");
    check(&["cp", "-r", "--out-of", from, "a", text(&trap.0)], 2, "", &["something else of that name"]);
    assert!(!outside.at("f").exists());
}

#[test]
fn what_can_be_copied_is_copied_when_something_cannot() {
    let (source, target) = (source(), Dir::new());
    fs::create_dir_all(target.at("a/b")).expect("directories");
    fs::create_dir(target.at("a/f")).expect("a directory in the way");
    fs::write(target.at("empty"), "a file in the way").expect("a file");
    let output = run(&["cp", "-r", "--out-of", text(&source.0), "a", "empty", "gone", "link", text(&target.0)]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stderr(&output).lines().count(), 3, "{}", stderr(&output));
    assert!(target.at("a/b/long").exists() && target.at("link").is_symlink() && target.at("a/.hidden").exists());
}

#[test]
fn a_full_source_is_told_with_status_1() {
    let source = source();
    let output = run(&["cp", "--into", "ram:size=4k", &format!("{}/a/b/long", text(&source.0)), "/x"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("\"/x\" of \"ram\" cannot be written (no space left on device)"));
}
