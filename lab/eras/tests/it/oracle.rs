//! Every generation gives the same answers: a table of cases, and random operations beside Lightfoot.
//!
//! A random failure prints its seed and the shortest sequence that shows it; `ERAS_SEED=<seed>` runs that seed alone.

mod driver;
mod generate;

use driver::{Op, Outcome, run};
use generate::Generator;
use lightfoot_eras::{EraEntry, Error, Options, catalogue};

/// A script, whose steps are separated by bars, and the result of its last step. Names: see [`parse`].
const CASES: &[(&str, &str)] = &[
    // Making
    ("stat /", "directory 2"),
    ("mkdir d | stat /", "directory 3"),
    ("mkdir d | stat d", "directory 2"),
    ("mkdir d | mkdir d", "Exists"),
    ("mkdir d/", "done"),
    ("mkdir d/.", "NoEntry"),
    ("mkdir d | mkdir d/.", "Exists"),
    ("mkdir /", "Exists"),
    ("mkdir ..", "Exists"),
    ("create 0 f | stat f", "file 1"),
    ("create 0 f | create 1 f", "Exists"),
    ("create 0 f | mkdir f", "Exists"),
    ("mkdir d | create 0 d", "Exists"),
    ("create 0 f/", "IsDirectory"),
    ("create 0 /", "Exists"),
    ("create 0 .", "Exists"),
    ("create 0 d/f", "NoEntry"),
    ("create 0 f | create 1 f/g", "NotDirectory"),
    // Names
    ("create 0 {32} | stat {32}", "file 1"),
    ("create 0 {33} | stat {33}", "file 1"),
    ("create 0 {255} | stat {255}", "file 1"),
    ("create 0 {33} | stat {34}", "NoEntry"),
    ("create 0 {255} | list /", "names {255}"),
    ("create 0 {256}", "NameTooLong"),
    ("stat {256}", "NameTooLong"),
    ("stat d/{256}", "NoEntry"),
    ("rename {256} a", "NameTooLong"),
    ("create 0 f | rename f {256}", "NameTooLong"),
    ("create 0 {100} | rename {100} {200} | path 0", "path /{200}"),
    ("create 0 {100} | rename {100} a | path 0", "path /a"),
    // Walking
    ("stat ", "Invalid"),
    ("stat f", "NoEntry"),
    ("stat f/", "NoEntry"),
    ("stat d/f", "NoEntry"),
    ("create 0 f | stat f/", "NotDirectory"),
    ("create 0 f | stat f/.", "NotDirectory"),
    ("create 0 f | stat f/..", "NotDirectory"),
    ("create 0 f | stat f/g", "NotDirectory"),
    ("mkdir d | create 0 d/f | stat /./d//../d/./f", "file 1"),
    ("mkdir d | stat d/", "directory 2"),
    ("stat ../../..", "directory 2"),
    ("stat {4096}", "NameTooLong"),
    // Where a process stands
    ("mkdir d | cd d | create 0 f | stat /d/f", "file 1"),
    ("mkdir d | cd d | stat f", "NoEntry"),
    ("mkdir d | cd d | cd .. | stat d", "directory 2"),
    ("mkdir d | cd d | cd ../.. | stat d", "directory 2"),
    ("create 0 f | cd f", "NotDirectory"),
    ("cd d", "NoEntry"),
    ("mkdir a | mkdir b | cd a | rename ../b /a | stat .", "directory 0"),
    ("mkdir a | mkdir b | cd a | rename ../b /a | create 0 f", "NoEntry"),
    ("mkdir a | mkdir b | cd a | rename ../b /a | stat ../a", "directory 2"),
    ("mkdir a | mkdir b | cd a | rename /a /b/c | create 0 f | path 0", "path /b/c/f"),
    // Removing
    ("unlink f", "NoEntry"),
    ("create 0 f | unlink f | stat f", "NoEntry"),
    ("create 0 f | unlink f/", "NotDirectory"),
    ("create 0 f | unlink f | create 1 f | stat f", "file 1"),
    ("mkdir d | unlink d", "IsDirectory"),
    ("mkdir d | unlink d/", "IsDirectory"),
    ("unlink .", "IsDirectory"),
    ("unlink ..", "IsDirectory"),
    ("unlink /", "IsDirectory"),
    ("unlink d/..", "NoEntry"),
    // Renaming
    ("rename a b", "NoEntry"),
    ("create 0 a | rename a b | stat a", "NoEntry"),
    ("create 0 a | rename a b | stat b", "file 1"),
    ("create 0 a | rename a a | stat a", "file 1"),
    ("create 0 a | create 1 b | rename a b | list /", "names b"),
    ("create 0 a | create 1 b | rename a b | status /", "files 2"),
    ("create 0 a | rename a b/", "NotDirectory"),
    ("create 0 a | rename a/ b", "NotDirectory"),
    ("create 0 a | mkdir d | rename a d", "IsDirectory"),
    ("create 0 a | mkdir d | rename d a", "NotDirectory"),
    ("create 0 a | mkdir d | rename a d/b | stat d/b", "file 1"),
    ("create 0 a | rename a d/b", "NoEntry"),
    ("create 0 a | create 1 b | rename a b/c", "NotDirectory"),
    ("mkdir a | rename a/ b/ | stat b", "directory 2"),
    ("mkdir a | rename a a/b", "Invalid"),
    ("mkdir a | mkdir a/b | rename a a/b/c", "Invalid"),
    ("mkdir a | mkdir a/b | rename a a/b", "Invalid"),
    ("mkdir a | mkdir a/b | rename a/b a", "NotEmpty"),
    ("mkdir a | mkdir a/b | create 0 a/b/c | rename a/b/c a", "NotEmpty"),
    ("mkdir a | mkdir b | create 0 b/f | rename a b", "NotEmpty"),
    ("mkdir a | mkdir b | create 0 a/f | rename a b | stat b/f", "file 1"),
    ("mkdir a | mkdir b | mkdir c | rename a b/a | stat /", "directory 4"),
    ("mkdir a | mkdir b | mkdir b/a | rename a b/a | stat b", "directory 3"),
    ("mkdir a | mkdir b | rename a b | stat /", "directory 3"),
    ("mkdir a | mkdir a/b | mkdir a/b/c | rename a/b/c c | stat c/..", "directory 4"),
    ("mkdir a | rename . b", "Invalid"),
    ("mkdir a | rename a ..", "Invalid"),
    ("mkdir a | rename / a/b", "Invalid"),
    // Open files
    ("open 0 f", "NoEntry"),
    ("create 0 f | unlink f | path 0", "path /f (deleted)"),
    ("create 0 f | path 0", "path /f"),
    ("open 0 / | path 0", "path /"),
    ("mkdir d | create 0 d/f | rename d e | path 0", "path /e/f"),
    ("mkdir d | create 0 d/f | unlink d/f | rename d e | path 0", "path /e/f (deleted)"),
    ("create 0 a | create 1 b | rename a b | path 0", "path /b"),
    ("create 0 a | create 1 b | rename a b | path 1", "path /b (deleted)"),
    ("mkdir d | create 0 d/f | unlink d/f | mkdir e | rename e d | path 0", "path /d/f (deleted)"),
    ("mkdir d | open 0 d/ | path 0", "path /d"),
    ("create 0 f | open 0 f/", "NotDirectory"),
    ("mkdir d | create 0 d/f | hold 0", "done"),
    ("mkdir d | create 0 d/f | unlink d/f | hold 0", "done"),
    ("create 0 f | read 0", "done"),
    ("create 0 f | write 0", "done"),
    ("create 0 f | close 0 | open 0 f | write 0", "done"),
    ("open 0 / | read 0", "IsDirectory"),
    ("open 0 / | write 0", "IsDirectory"),
    // Listing and status
    ("list /", "names"),
    ("mkdir d | create 0 f | list .", "names d f"),
    ("create 0 f | unlink f | list .", "names"),
    ("create 0 f | list f", "NotDirectory"),
    ("list d", "NoEntry"),
    ("status /", "files 1"),
    ("mkdir d | create 0 d/f | status d/f", "files 3"),
    ("create 0 f | unlink f | status .", "files 1"),
    ("status d", "NoEntry"),
];

/// The operations of a script. `{40}` stands for a name of 40 bytes.
fn parse(script: &str) -> Vec<(usize, Op)> {
    script
        .split('|')
        .map(|step| {
            let words = expand(step.trim_start());
            let mut words = words.trim_end_matches('\n').split(' ').map(str::to_owned);
            let verb = words.next().unwrap_or_default();
            let mut word = || words.next().unwrap_or_default();
            let slot = |word: String| word.parse().expect("a number");
            let op = match verb.as_str() {
                "stat" => Op::Stat(word()),
                "mkdir" => Op::MakeDirectory(word()),
                "unlink" => Op::Unlink(word()),
                "rename" => Op::Rename(word(), word()),
                "list" => Op::List(word()),
                "cd" => Op::ChangeDirectory(word()),
                "status" => Op::Status(word()),
                "close" => Op::Close(slot(word())),
                "path" => Op::ReversePath(slot(word())),
                "hold" => Op::HoldParent(slot(word())),
                "read" => Op::Read(slot(word())),
                "write" => Op::Write(slot(word())),
                "open" => {
                    let slot = slot(word());
                    Op::Open(word(), slot)
                }
                "create" => {
                    let slot = slot(word());
                    Op::Create(word(), slot)
                }
                verb => panic!("no such operation: {verb}"),
            };
            (0, op)
        })
        .collect()
}

fn expand(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| {
        let (len, rest) = part.split_once('}').expect("a closing brace");
        out + &"n".repeat(len.parse().expect("a length")) + rest
    })
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".into(),
        Outcome::Failed(error) => format!("{error:?}"),
        Outcome::Attributes(_, true, links) => format!("directory {links}"),
        Outcome::Attributes(_, false, links) => format!("file {links}"),
        Outcome::Names(names) => ["names".to_owned()].iter().chain(names).cloned().collect::<Vec<_>>().join(" "),
        Outcome::Path(path) => format!("path {path}"),
        Outcome::Files(files) => format!("files {files}"),
        Outcome::Nothing => "nothing".into(),
    }
}

fn small(is_pinned: bool) -> Options {
    Options { capacity: 512, is_pinned, ..Options::default() }
}

#[test]
fn every_era_answers_the_cases_of_the_table() {
    for entry in catalogue() {
        for is_pinned in [false, true] {
            for (script, want) in CASES {
                let have = run(entry, &small(is_pinned), &parse(script)).unwrap_or_else(|wrong| panic!("{wrong}"));
                assert_eq!(show(&have), expand(want), "{}: {script}", entry.name);
            }
        }
    }
}

#[test]
fn every_era_answers_random_operations_as_lightfoot_does() {
    let chosen = std::env::var("ERAS_SEED").ok().map(|seed| seed.parse().expect("ERAS_SEED is a number"));
    let start = std::process::id().into();
    let seeds = chosen.map_or(start..start + 40, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let ops = Generator::new(seed).ops(400);
        for entry in catalogue() {
            let options = small(seed % 2 == 0);
            if let Err(wrong) = run(entry, &options, &ops) {
                let (shortest, wrong) = shorten(entry, &options, ops, wrong);
                panic!("{} differs, ERAS_SEED={seed}: {wrong}\nshortest: {shortest:?}", entry.name);
            }
        }
    }
}

/// Leaves out what is not needed for the era to differ.
fn shorten(
    entry: &EraEntry,
    options: &Options,
    mut ops: Vec<(usize, Op)>,
    mut wrong: String,
) -> (Vec<(usize, Op)>, String) {
    let mut index = ops.len();
    while index > 0 {
        index -= 1;
        let mut fewer = ops.clone();
        fewer.remove(index);
        if let Err(still) = run(entry, options, &fewer) {
            (ops, wrong) = (fewer, still);
            index = index.min(ops.len());
        }
    }
    (ops, wrong)
}

#[test]
fn a_mount_ends_once_and_leaves_nothing_behind_in_every_era() {
    for entry in catalogue() {
        let era = (entry.make)(&small(false));
        {
            let process = era.process();
            let mounts = [process.make_directory(b"/d"), process.mount(b"/d"), process.mount(b"/d")];
            assert_eq!(mounts, [Ok(()); 3], "{}", entry.name);
            assert!(process.stat(b"/d/.").is_ok() && process.status(b"/d").is_ok(), "{}", entry.name);
            let ends = [process.unmount(b"/d"), process.unmount(b"/d"), process.unmount(b"/d")];
            assert_eq!(ends, [Ok(()), Ok(()), Err(Error::Invalid)], "{}", entry.name);
        }
        era.verify().unwrap_or_else(|wrong| panic!("{}: {wrong}", entry.name));
    }
}

/// All eras but `lightfoot` have tables of a fixed size.
fn fixed() -> impl Iterator<Item = &'static EraEntry> {
    catalogue().iter().filter(|entry| entry.name != "lightfoot")
}

#[test]
fn a_full_table_says_so_and_serves_again_once_something_went() {
    let options = Options { capacity: 20, ..Options::default() };
    for entry in fixed() {
        let era = (entry.make)(&options);
        {
            let process = era.process();
            for round in 0..20 {
                let name = |file: usize| format!("{round}-{file}");
                let create = |file: usize| process.create(name(file).as_bytes()).map(|handle| process.close(handle));
                let made = (0..40).take_while(|&file| create(file).is_ok()).count();
                // One is the root. Some eras have room for more, which waits for grace periods at other times.
                assert!(made == 19 || made == 39, "{}: round {round} made {made}", entry.name);
                assert_eq!(process.make_directory(b"d"), Err(Error::NoSpace), "{}", entry.name);
                let files = process.status(b"/").map(|status| status.files);
                assert_eq!(files, Ok(made as u64 + 1), "{}", entry.name);
                (0..made).for_each(|file| process.unlink(name(file).as_bytes()).expect(entry.name));
            }
        }
        era.verify().unwrap_or_else(|wrong| panic!("{}: {wrong}", entry.name));
    }
}

#[test]
fn an_era_notices_when_something_is_left_held() {
    for entry in catalogue() {
        let era = (entry.make)(&small(false));
        let process = era.process();
        let handle = process.create(b"f").expect(entry.name);
        if entry.name != "lightfoot" {
            assert!(era.verify().is_err(), "{}: a process and an open file are there", entry.name);
        }
        process.close(handle);
        drop(process);
        era.verify().unwrap_or_else(|wrong| panic!("{}: {wrong}", entry.name));
    }
}
