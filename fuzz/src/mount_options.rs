//! Lists of options, as they follow `-o` and `ram:`: each is refused with one line, or makes a tree and a session.

use crate::cli::source::{Source, SourceAndSettings};
use crate::input::Input;
use fuse::Session;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use vfs::Base;

/// The page with the table of all options, which a test of the command compares with the code.
const PAGE: &str = include_str!("../../docs/mounting.md");

/// Values of options, good and bad, separated by spaces. The first value is empty.
const VALUES: &str = " = =0 =1 =7 =4096 =1k =3M =16777215t =16777216t =18446744073709551615 =50% =100% =18446744073709551615% \
    =-1 =+1 =0777 =7777 =10000 =8 =4294967295 =4294967296 =1s =5ms =7us =.5h =1e300 =1.2.3s \
    =99999999999999999999999999s =nan =a=b =ü =\u{1b}[2J =\n";

/// Returns the names of all options in the table of `PAGE`, without their values.
fn names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let rows = PAGE.lines().skip_while(|line| !line.starts_with("<!-- options: begin"));
        let rows = rows.take_while(|line| !line.starts_with("<!-- options: end"));
        let cells = rows.filter_map(|row| row.strip_prefix("| `")?.split(" | ").next());
        let words = cells.flat_map(|cell| cell.split(['`', ',', ' ']).filter(|word| !word.is_empty()));
        let names: Vec<_> = words.map(|word| word.split('=').next().unwrap_or(word)).collect();
        assert!(names.contains(&"own_permissions") && names.contains(&"usrquota_block_hardlimit"), "{names:?}");
        names
    })
}

/// Makes a list of options, and stops when the list has `most` bytes. A byte of the input below 127
/// adds an option with a value, 127 ends the list, and a greater byte adds its lower seven bits.
pub(crate) fn list(input: &mut Input<'_>, most: usize) -> String {
    let mut list = Vec::new();
    while !input.is_empty() && list.len() < most {
        match input.byte() {
            0x7f => break,
            byte if byte < 0x7f => {
                list.extend_from_slice(names()[usize::from(byte) % names().len()].as_bytes());
                list.extend_from_slice(input.pick(&VALUES.split(' ').collect::<Vec<&str>>()).as_bytes());
                list.push(b',');
            }
            byte => list.push(byte & 0x7f),
        }
    }
    String::from_utf8_lossy(&list).into_owned()
}

/// Creates a directory for this process, with the directories `d` and `d/e` in it, and returns its
/// path.
pub(crate) fn directory() -> PathBuf {
    let path = std::env::temp_dir().join(format!("lightfoot-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(path.join("d/e")).expect("a directory");
    path
}

/// Opens the tree of `parsed`, starts a session over the tree, and reads the attributes of the root
/// through both. Ignores that the machine may refuse the tree or the session.
pub(crate) fn make(parsed: SourceAndSettings) {
    let SourceAndSettings { source, mut settings } = parsed;
    let Ok(tree) = source.open(&mut crate::cli::source::Handles::default()) else { return };
    let ttls = settings.ttls(source.ttls());
    let most = settings.max_names(source.max_names());
    settings.mount.session.ttls = ttls;
    settings.mount.session.max_nodes = most;
    assert!(tree.context().attr(Base::CWD, b"/", true).is_ok(), "a tree without a root");
    if let Ok(session) = Session::new(&tree, settings.mount.session.clone()) {
        assert!(session.getattr(fuse::ROOT_NODE).is_ok(), "a session without a root");
        session.end();
    }
}

/// Checks that the message of a refusal is one line, is not empty, and has no escape character.
pub(crate) fn check_message(message: &str) {
    assert!(!message.is_empty() && !message.contains(['\n', '\u{1b}']), "{message:?}");
}

/// Runs one input: one byte of flags, then the options of the source, then the options after `-o`.
pub fn run(data: &[u8]) {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    let mut input = Input::new(data);
    let flags = input.byte();
    let own = list(&mut input, 300);
    let lists = [list(&mut input, 600)];
    let source = match flags & 1 {
        0 => format!("ram:{own}"),
        _ => format!("{}/d", DIRECTORY.get_or_init(directory).display()),
    };
    let source = OsStr::from_bytes(source.as_bytes());
    let parse = |lists: &[String], is_sloppy| Source::parse(source, lists, is_sloppy);
    let strict = parse(&lists, false);
    let sloppy = parse(&lists, true);
    match (strict, sloppy) {
        (Ok(strict), Ok(sloppy)) => {
            let shown = |parsed: &SourceAndSettings| format!("{:?}", parsed.settings);
            assert_eq!(shown(&strict), shown(&sloppy), "unknown options alone are ignored");
            let twice = parse(&[lists[0].clone(), lists[0].clone()], false).expect("a good list, twice");
            assert_eq!(shown(&strict), shown(&twice), "the later option holds");
            make(strict);
        }
        (Ok(_), Err(error)) => panic!("only with --sloppy: {error}"),
        (Err(error), sloppy) => {
            check_message(&error.to_string());
            match sloppy {
                Ok(sloppy) => make(sloppy),
                Err(error) => check_message(&error.to_string()),
            }
        }
    }
}
