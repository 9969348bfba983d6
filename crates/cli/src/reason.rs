//! What the errors of all commands share: the reason that the system gave, paths on one line, exit statuses.

use fuse::reason::without_number;
use std::fmt;
use std::io;
use std::path::Path;

/// An error that ends a command.
pub(crate) trait CommandError: fmt::Display {
    /// The exit status: 2 for input that the user can correct, 128 + N after signal N, 1 otherwise.
    fn status(&self) -> u8;

    /// Whether the user has already seen it, so that it must not be printed again.
    fn is_reported(&self) -> bool {
        false
    }
}

/// Why the system refused, without its number: `permission denied`.
#[derive(Debug)]
pub(crate) struct Reason(String);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

/// A path on one line: as it is, or quoted and escaped if it has spaces or characters that a terminal would not show.
pub(crate) fn show(path: &Path) -> String {
    match path.to_str() {
        Some(text) if is_plain(text) => text.into(),
        _ => format!("{path:?}"),
    }
}

/// A path as one word of a shell command.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_safe = |letter: char| letter.is_alphanumeric() || "/._-+:,@%".contains(letter);
    if !text.is_empty() && text.chars().all(is_safe) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn is_plain(text: &str) -> bool {
    let is_odd = |letter: char| letter.is_control() || letter.is_whitespace() || "\"'\\".contains(letter);
    !text.is_empty() && !text.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_no_number_and_no_capital() {
        assert_eq!(Reason::from(io::Error::from_raw_os_error(2)).to_string(), "no such file or directory");
    }

    #[test]
    fn a_path_stays_on_one_line_and_one_word() {
        let cases = [
            ("/mnt/a", "/mnt/a", "/mnt/a"),
            ("/a b", "\"/a b\"", "'/a b'"),
            ("/a\n\u{1b}[2J", r#""/a\n\u{1b}[2J""#, "'/a\n\u{1b}[2J'"),
            ("it's", r#""it's""#, r"'it'\''s'"),
            ("", "\"\"", "''"),
        ];
        for (path, shown, word) in cases {
            assert_eq!((show(Path::new(path)), shell_word(Path::new(path))), (shown.into(), word.into()));
        }
    }
}
