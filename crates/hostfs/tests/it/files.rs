//! Contents, extended attributes, and read-only sources.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostOptions, Revalidate};
use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use vfs::{Allocate, Base, Errno, OpenFlags, PathAt, SeekFor, SetAttr, SetTime, SetXattr};

const RDWR: OpenFlags = OpenFlags::RDWR;

#[test]
fn a_read_only_source_refuses_changes() {
    let source = support::temp_dir();
    fs::create_dir(source.path().join("d")).unwrap();
    fs::write(source.path().join("x"), b"text").unwrap();
    let tree = Tree::new(&source, &HostOptions { read_only: true, ..HostOptions::default() });
    let (at, cwd) = (&tree.at, Base::CWD);
    assert_eq!(tree.read("/x").unwrap(), b"text");
    let set = |set: SetAttr| at.set_attr(cwd, b"/x", false, &set);
    let refused = [
        tree.write("/new", b""),
        tree.open("/x", RDWR).map(drop),
        tree.mkdir("/new"),
        tree.unlink("/x"),
        at.rmdir(cwd, b"/d"),
        tree.rename("/x", "/y"),
        at.symlink(b"x", cwd, b"/link"),
        at.link(PathAt::new(cwd, b"/x"), PathAt::new(cwd, b"/y"), false),
        at.mknod(cwd, b"/fifo", vfs::S_IFIFO | 0o600, 0),
        set(SetAttr { mode: Some(0o600), ..SetAttr::default() }),
        set(SetAttr { size: Some(1), ..SetAttr::default() }),
        set(SetAttr { mtime: Some(SetTime::At(1)), ..SetAttr::default() }),
        at.set_xattr(cwd, b"/x", false, b"user.a", b"1", SetXattr::Any),
        at.remove_xattr(cwd, b"/x", false, b"user.a"),
        tree.open("/", OpenFlags::TMPFILE.union(RDWR)).map(drop),
    ];
    for (number, done) in refused.into_iter().enumerate() {
        assert_eq!(done, Err(Errno::EROFS), "{number}");
    }
    assert_eq!(fs::read(source.path().join("x")).unwrap(), b"text");
    assert_eq!(fs::read_dir(&source).unwrap().count(), 2);
}

#[test]
fn contents_are_those_of_the_host_both_ways() {
    let source = support::temp_dir();
    let tree = Tree::new(&source, &HostOptions { policy: Revalidate::Always, ..HostOptions::default() });
    fs::write(source.path().join("x"), b"of the host").unwrap();
    let file = tree.open("/x", RDWR).unwrap();
    file.write_at(3, b"THE").unwrap();
    assert_eq!(fs::read(source.path().join("x")).unwrap(), b"of THE host");
    let host = fs::OpenOptions::new().write(true).open(source.path().join("x")).unwrap();
    host.write_all_at(b"OF", 0).unwrap();
    assert_eq!(support::read_all(&file).unwrap(), b"OF THE host");
    // A write appends after data that another program appended.
    let appending = tree.open("/x", RDWR.union(OpenFlags::APPEND)).unwrap();
    host.write_all_at(b" and more", 11).unwrap();
    tree.attr("/x").unwrap();
    appending.write_at(0, b"!").unwrap();
    assert_eq!(fs::read(source.path().join("x")).unwrap(), b"OF THE host and more!");
    let backing = file.backing().unwrap();
    let mut buf = [0; 6];
    rustix::io::pread(&backing, &mut buf, 3).unwrap();
    assert_eq!(&buf, b"THE ho");
}

#[test]
fn holes_are_those_of_the_host() {
    let source = support::temp_dir();
    let tree = Tree::new(&source, &HostOptions::default());
    let file = tree.open("/x", RDWR.union(OpenFlags::CREAT)).unwrap();
    file.write_at(1 << 20, b"data").unwrap();
    assert_eq!(file.seek_for(SeekFor::Data, 0), Ok(1 << 20));
    assert_eq!(file.seek_for(SeekFor::Hole, 0), Ok(0));
    assert_eq!(file.seek_for(SeekFor::Hole, 1 << 20), Ok((1 << 20) + 4));
    let blocks = |name: &str| fs::metadata(source.path().join(name)).unwrap().blocks();
    assert!(blocks("x") <= 16, "{}", blocks("x"));
    file.allocate(Allocate::Reserve, false, 0, 1 << 20).unwrap();
    assert!(blocks("x") >= 2048, "{}", blocks("x"));
    assert_eq!(file.attr().unwrap().blocks, blocks("x"));
    file.allocate(Allocate::PunchHole, true, 0, 1 << 20).unwrap();
    assert!(blocks("x") <= 16, "{}", blocks("x"));
    file.sync(false).unwrap();
    file.sync(true).unwrap();
}

#[test]
fn extended_attributes_are_those_of_the_host() {
    let source = support::temp_dir();
    let tree = Tree::new(&source, &HostOptions::default());
    tree.write("/x", b"").unwrap();
    tree.mkdir("/d").unwrap();
    for name in ["x", "d"] {
        let path = format!("/{name}");
        tree.at.set_xattr(Base::CWD, path.as_bytes(), false, b"user.a", b"value", SetXattr::Any).unwrap();
        let mut value = [0; 16];
        let len = rustix::fs::getxattr(source.path().join(name), "user.a", &mut value).unwrap();
        assert_eq!(&value[..len], b"value");
        rustix::fs::setxattr(source.path().join(name), "user.b", &[7; 5000][..2000], rustix::fs::XattrFlags::empty())
            .unwrap();
        let value = tree.at.get_xattr(Base::CWD, path.as_bytes(), false, b"user.b").unwrap();
        assert_eq!(&*value, &[7; 2000]);
        let mut names = tree.at.list_xattrs(Base::CWD, path.as_bytes(), false).unwrap();
        names.sort_unstable();
        assert_eq!(names, [Box::from(*b"user.a"), Box::from(*b"user.b")]);
    }
}

#[test]
fn a_running_program_is_not_written_to() {
    // A process that another test starts meanwhile would have the descriptor too that writes the program.
    if testkit::ran_alone("files::a_running_program_is_not_written_to") {
        return;
    }
    let source = support::temp_dir();
    // By another process: this one never has a descriptor that writes the program.
    let copied = std::process::Command::new("cp").arg("/bin/sleep").arg(source.path().join("sleep")).status().unwrap();
    assert!(copied.success());
    let run = || std::process::Command::new(source.path().join("sleep")).arg("1000").spawn().unwrap();
    let end = |mut running: std::process::Child| {
        running.kill().unwrap();
        running.wait().unwrap();
    };
    let running = run();
    let tree = Tree::new(&source, &HostOptions::default());
    let refused = tree.open("/sleep", RDWR).map(drop);
    let read = tree.open("/sleep", OpenFlags::RDONLY).map(drop);
    end(running);
    assert_eq!((refused, read), (Err(Errno::ETXTBSY), Ok(())));
    // A program that was written can be executed once it is closed.
    drop(tree.open("/sleep", RDWR).unwrap());
    end(run());
}

#[test]
fn long_links_and_large_directories_are_read_completely() {
    let source = support::temp_dir();
    let body = "x/".repeat(2000);
    std::os::unix::fs::symlink(&body, source.path().join("long")).unwrap();
    for number in 0..3000 {
        fs::write(source.path().join(format!("{number:0>200}")), b"").unwrap();
    }
    let tree = Tree::new(&source, &HostOptions::default());
    assert_eq!(tree.at.read_link(Base::CWD, b"/long").unwrap(), body.as_bytes());
    assert_eq!(tree.names("/").unwrap().len(), 3001);
    // Two listings at the same time do not disturb each other.
    let open = || tree.open("/", OpenFlags::DIRECTORY).unwrap();
    let (a, b) = (open(), open());
    let (mut in_a, mut in_b) = (0, 0);
    loop {
        let (more_a, more_b) = (a.next_entries().unwrap().len(), b.next_entries().unwrap().len());
        (in_a, in_b) = (in_a + more_a, in_b + more_b);
        if more_a == 0 && more_b == 0 {
            break;
        }
    }
    assert_eq!((in_a, in_b), (3001, 3001));
}
