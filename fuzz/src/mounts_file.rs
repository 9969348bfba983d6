//! Files of mounts: each is refused with one line that names the file, or makes a tree with all its mounts.

use crate::cli::source::Source;
use crate::input::Input;
use crate::mount_options::{check_message, directory, list, make};
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Pieces of a file of mounts, good and bad.
const PIECES: &[&str] = &[
    "[[mount]]\n",
    "at = \"",
    "source = \"",
    "options = \"",
    "\"\n",
    "\"",
    "\n",
    " = ",
    "[mount]\n",
    "mount = [",
    "]",
    "{",
    "}",
    "'''",
    "\"\"\"",
    "# ü\n",
    "\\u00e9",
    "\\",
    "/",
    "/",
    "a",
    "b",
    "a/b",
    "..",
    ".",
    "ram:",
    "d",
    "d/e",
    "d/none",
    "mounts.toml",
    "ü",
    "0",
    "1979-05-27",
    "true",
    "inf",
];

/// Places and sources of mounts that are mostly right.
const PLACES: &[&str] = &["/", "/a", "/a/b", "/b", "//a/", "/a/../b", "a", "", "/\u{1}", "/d/e", "/ü"];
const SOURCES: &[&str] = &["ram:", "d", "./d/e", "d/none", "mounts.toml", "", "/dev/null", "ram:size=1m"];

/// Makes the text of a file of mounts. A byte of the input below 64 adds a piece, a byte from 64 to
/// 127 adds a whole mount, and a greater byte adds its lower seven bits.
fn text(input: &mut Input<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    while !input.is_empty() && text.len() < 4000 {
        match input.byte() {
            byte if byte < 0x40 => text.extend_from_slice(PIECES[usize::from(byte) % PIECES.len()].as_bytes()),
            byte if byte < 0x80 => {
                let (at, source) = (input.pick(PLACES), input.pick(SOURCES));
                let mount = format!("[[mount]]\nat = {at:?}\nsource = {source:?}\n");
                text.extend_from_slice(mount.as_bytes());
                if byte & 1 == 1 {
                    text.extend_from_slice(format!("options = {:?}\n", list(input, 200)).as_bytes());
                }
            }
            byte => text.push(byte & 0x7f),
        }
    }
    text
}

/// Runs one input. After a first byte of 255, the input is the text of the file of mounts. Any
/// other input chooses the pieces of that text.
pub fn run(data: &[u8]) {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    let file = FILE.get_or_init(|| directory().join("mounts.toml"));
    let text = match data {
        [0xff, text @ ..] => text.to_vec(),
        data => text(&mut Input::new(data)),
    };
    fs::write(file, &text).expect("a file");
    match Source::parse(file.as_os_str(), &[], false) {
        // The mounts of other directories than ours are not made.
        Ok(parsed) => {
            let own = file.parent();
            if parsed.source.directories().all(|directory| own.is_some_and(|own| directory.path.starts_with(own))) {
                make(parsed);
            }
        }
        Err(error) => {
            let message = error.to_string();
            check_message(&message);
            assert!(message.contains("mounts.toml"), "{message}");
        }
    }
}
