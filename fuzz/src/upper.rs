//! Directories of forks: a log of real changes in which bytes are changed, added and removed, with right checksums.
//!
//! Whatever the log has, the directory is refused with an error, or its forks can be listed, read, compared and written, and are
//! there again at the next start.

use crate::input::Input;
use crate::mount_options::directory;
use hostfs::{HostFs, HostOptions};
use lightfoot_workspaces::{BASE, ForkLimits, ForkOptions, Workspaces};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use vfs::{Base, Context, Errno, OpenFlags, PathAt, RenameFlags, SetAttr, Vfs};

/// The files of a directory, with a log of some changes.
struct Seed {
    base: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
    /// The batches of the log, without lengths and checksums.
    batches: Vec<Vec<u8>>,
}

/// The log of the first run.
const LOG: &str = "log-1";

/// Numbers that are often a limit, as bytes of a variable length.
const NUMBERS: &[&[u8]] = &[
    &[0],
    &[1],
    &[0x7f],
    &[0x80, 0x20],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0x80, 0x80, 0x80, 0x80, 0x80, 0x20],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    b"\x02..",
    b"\x03a/b",
    b"\x00",
];

fn open(base: &Path, dir: &Path) -> Result<Workspaces, lightfoot_workspaces::UpperError> {
    let fs = HostFs::new(base, &HostOptions::default()).expect("a directory");
    Workspaces::durable(Vfs::new(fs).context(), false, dir)
}

/// Makes a change of each kind in forks, and returns what they leave in the directory.
fn seed() -> Seed {
    let (base, dir) = (directory().join("base"), directory().join("upper"));
    for (path, text) in [("d/one", "1"), ("d/two", "22"), ("top", "333")] {
        fs::create_dir_all(base.join(path).parent().expect("a directory")).expect("a directory");
        fs::write(base.join(path), text).expect("a file");
    }
    let spaces = open(&base, &dir).expect("an empty directory");
    let context = spaces.tree().context();
    let at = |path: &str| format!("/w/{path}").into_bytes();
    let write = |path: &str, len: usize| {
        let file =
            context.open(Base::CWD, &at(path), OpenFlags::WRONLY.union(OpenFlags::CREAT), 0o644).expect("a file");
        file.write_at(0, &vec![7; len]).expect("written");
    };
    let limits = ForkLimits::default();
    spaces.fork(BASE, "a", limits).expect("a fork");
    write("a/d/one", 5000);
    write("a/new", 3);
    let (from, to) = (at("a/d"), at("a/e"));
    let [from, to] = [&from, &to].map(|path| PathAt { base: Base::CWD, path });
    context.rename(from, to, RenameFlags::empty()).expect("renamed");
    context.symlink(b"new", Base::CWD, &at("a/link")).expect("a link");
    context.unlink(Base::CWD, &at("a/top")).expect("removed");
    spaces.fork("a", "b", limits).expect("a fork");
    write("b/new", 9000);
    let shorter = SetAttr { size: Some(100), ..SetAttr::default() };
    context.set_attr(Base::CWD, &at("b/new"), true, &shorter).expect("shorter");
    spaces.fork_with("b", "c", ForkOptions { is_read_only: true, ..ForkOptions::default() }).expect("a fork");
    spaces.commit("b", lightfoot_workspaces::CommitOptions::default()).expect("no conflict");
    spaces.roll_back("a", None).expect("rolled back");
    drop(context);
    drop(spaces);
    let file =
        |entry: fs::DirEntry| (entry.file_name().into_string().expect("text"), fs::read(entry.path()).expect("a file"));
    let files: BTreeMap<_, _> = fs::read_dir(&dir).expect("a directory").flatten().map(file).collect();
    let (mut batches, mut rest) = (Vec::new(), &files[LOG][..]);
    while let Ok(((_, events), more)) = postcard::take_from_bytes::<(u32, &[u8])>(rest) {
        batches.push(events.to_vec());
        rest = more;
    }
    assert!(batches.len() > 10, "a log of changes: {}", batches.len());
    Seed { base, files, batches }
}

/// Changes the batches as the input says.
fn change(batches: &mut Vec<Vec<u8>>, input: &mut Input<'_>) {
    while !input.is_empty() && !batches.is_empty() {
        let (kind, which) = (input.below(6), input.below(batches.len()));
        if batches[which].is_empty() {
            return;
        }
        let at = input.word() as usize % batches[which].len();
        match kind {
            0 => drop(batches.remove(which)),
            1 => batches.push(batches[which].clone()),
            2 => {
                let number = input.pick(NUMBERS).iter().copied();
                batches[which].splice(at..=at, number);
            }
            3 => batches[which].truncate(at),
            4 => batches[which].insert(at, input.byte()),
            _ => batches[which][at] = input.byte(),
        }
    }
}

/// Reads what a directory has, down to a depth, and returns its paths.
fn read(context: &Context, at: &str, depth: usize, paths: &mut Vec<String>) {
    let flags = OpenFlags::RDONLY.union(OpenFlags::DIRECTORY);
    let Ok(dir) = context.open(Base::CWD, at.as_bytes(), flags, 0) else { return };
    for entry in dir.next_entries().unwrap_or_default().into_iter().take(64) {
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        if name == "." || name == ".." || paths.len() > 400 {
            continue;
        }
        let path = format!("{at}/{name}");
        let _ = context.read_link(Base::CWD, path.as_bytes());
        if let Ok(file) = context.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY, 0) {
            let _ = file.read_at(0, &mut [0; 6000]);
        }
        if depth > 0 {
            read(context, &path, depth - 1, paths);
        }
        paths.push(path);
    }
}

/// Uses all forks, and returns what they have.
fn used(spaces: &Workspaces) -> Vec<String> {
    let (context, mut paths) = (spaces.tree().context(), Vec::new());
    for fork in spaces.list() {
        let at = format!("/w/{}", fork.name);
        let _ = spaces.changes(&fork.name);
        paths.push(at.clone());
        read(&context, &at, 4, &mut paths);
    }
    paths.sort();
    paths
}

/// Writes into all forks: each call may fail.
fn write(spaces: &Workspaces, paths: &[String]) {
    let context = spaces.tree().context();
    let each = |path: &String| -> Result<(), Errno> {
        let file = context.open(Base::CWD, path.as_bytes(), OpenFlags::WRONLY, 0)?;
        file.write_at(4090, &[1; 20])?;
        context.unlink(Base::CWD, path.as_bytes())
    };
    for path in paths.iter().take(40) {
        let _ = each(path);
        let _ = context.mkdir(Base::CWD, format!("{path}/made").as_bytes(), 0o755);
    }
    for fork in spaces.list() {
        let _ =
            spaces.commit(&fork.name, lightfoot_workspaces::CommitOptions { check_only: true, ..Default::default() });
        let _ = spaces.roll_back(&fork.name, None);
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    static SEED: OnceLock<Seed> = OnceLock::new();
    let seed = SEED.get_or_init(seed);
    let dir = directory().join("fuzzed");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).expect("a directory");
    for (name, bytes) in &seed.files {
        fs::write(dir.join(name), bytes).expect("a file");
    }
    let mut batches = seed.batches.clone();
    change(&mut batches, &mut Input::new(data));
    let mut log = Vec::new();
    for events in batches {
        let batch = (crc32fast::hash(&events), &events[..]);
        log.extend(postcard::to_allocvec(&batch).expect("bytes"));
    }
    fs::write(dir.join(LOG), log).expect("a file");
    let Ok(spaces) = open(&seed.base, &dir) else { return };
    let paths = used(&spaces);
    drop(spaces);
    let spaces = open(&seed.base, &dir).expect("a directory that was open opens again");
    assert_eq!(paths, used(&spaces), "the forks at the next start");
    write(&spaces, &paths);
    drop(spaces);
    drop(open(&seed.base, &dir).expect("a directory that was open opens again"));
}
