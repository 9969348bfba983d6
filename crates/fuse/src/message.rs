//! The parts of an error message, which reads `what: why (what to do)`.
//!
//! # What it is
//! [`show`] writes the path at the front, [`Reason`] and [`without_number`] the system's reason, and
//! [`shell_word`] a path in the command that the message proposes. All escape as [`Foreign`] does,
//! which writes the words of another program. The commands `lightfoot` and `lightfoot-lab` and the
//! errors of this crate use these.
//!
//! # What it is not
//! An error type: each command has one, with its exit statuses.
//!
//! # Where it comes from
//! Own code, and the messages of coreutils and git.

use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use vfs::Foreign;

/// Why the system refused, without its number and without a capital: `permission denied`.
#[derive(Debug)]
pub struct Reason(String);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Foreign::of(&self.0).fmt(f)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        Self::from(&error)
    }
}

impl From<&io::Error> for Reason {
    fn from(error: &io::Error) -> Self {
        let text = without_number(error);
        let mut letters = text.chars();
        Self(letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect()))
    }
}

/// Returns the text of `error` without the number that the standard library appends: `Permission
/// denied` instead of `Permission denied (os error 13)`.
#[must_use]
pub fn without_number(error: &io::Error) -> String {
    let mut text = error.to_string();
    let number = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (os error "));
    if let Some((reason, number)) = number
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        let len = reason.len();
        text.truncate(len);
    }
    Foreign::of(&text).to_string()
}

/// Returns a path on one line: as it is, or quoted and escaped if it has spaces or characters that
/// a terminal would not show.
#[must_use]
pub fn show(path: &Path) -> String {
    let foreign = Foreign::of(path);
    let text = foreign.to_string();
    let is_odd = |letter: char| letter.is_whitespace() || "\"'\\".contains(letter);
    if foreign.is_escaped() || text.is_empty() || text.contains(is_odd) { format!("{foreign:?}") } else { text }
}

/// Returns a path as one word of a shell command.
#[must_use]
pub fn shell_word(path: &Path) -> String {
    let foreign = Foreign::of(path);
    if foreign.is_escaped() {
        return format!("$'{}'", path.as_os_str().as_bytes().iter().map(in_dollar_quotes).collect::<String>());
    }
    let text = foreign.to_string();
    let is_safe = |letter: char| letter.is_alphanumeric() || "/._-+:,@%".contains(letter);
    if !text.is_empty() && text.chars().all(is_safe) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Returns a byte between `$'` and `'` (POSIX 2024, bash, zsh).
fn in_dollar_quotes(byte: &u8) -> String {
    match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
        b' '..=b'~' => char::from(*byte).into(),
        byte => format!("\\{byte:03o}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn the_number_of_a_system_error_is_removed() {
        assert_eq!(without_number(&io::Error::from_raw_os_error(13)), "Permission denied");
        let wrapped = io::Error::other(format!("open: {}", io::Error::from_raw_os_error(2)));
        assert_eq!(without_number(&wrapped), "open: No such file or directory");
    }

    #[test]
    fn other_text_is_kept() {
        for text in ["", "x (os error)", "x (os error )", "x (os error 2) y", "x (os error two)", "(os error"] {
            assert_eq!(without_number(&io::Error::other(text)), text);
            assert_eq!(Reason::from(io::Error::other(text)).to_string(), text);
        }
    }

    #[test]
    fn a_reason_has_no_number_and_no_capital() {
        assert_eq!(Reason::from(io::Error::from_raw_os_error(2)).to_string(), "no such file or directory");
    }

    #[test]
    fn a_path_stays_on_one_line_and_one_word() {
        let cases = [
            ("/mnt/a", "/mnt/a", "/mnt/a"),
            ("/a b", "\"/a b\"", "'/a b'"),
            ("/a\n\u{1b}[2J", r#""/a\n\u{1b}[2J""#, r"$'/a\012\033[2J'"),
            ("it's\\\u{85}", r#""it's\\\u{85}""#, r"$'it\'s\\\302\205'"),
            ("it's", r#""it's""#, r"'it'\''s'"),
            ("/\u{202e}é", r#""/\u{202e}é""#, r"$'/\342\200\256\303\251'"),
            ("", "\"\"", "''"),
        ];
        for (path, shown, word) in cases {
            assert_eq!((show(Path::new(path)), shell_word(Path::new(path))), (shown.into(), word.into()));
        }
        let path = Path::new(OsStr::from_bytes(b"/\xff"));
        assert_eq!((show(path), shell_word(path)), (r#""/\xff""#.into(), r"$'/\377'".into()));
    }
}
