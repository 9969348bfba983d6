//! The parts of an error message, which reads `what: why (what to do)`.
//!
//! # What it is
//! [`show`] writes the path at the front, [`Reason`] and [`without_number`] the system's reason,
//! [`one_line`] the words of another program, and [`shell_word`] a path in the command that the
//! message proposes. The commands `lightfoot` and `lightfoot-lab` and the errors of this crate use
//! these.
//!
//! # What it is not
//! An error type: each command has one, with its exit statuses.
//!
//! # Where it comes from
//! Own code, and the messages of coreutils and git.

use std::fmt;
use std::io;
use std::path::Path;

/// Why the system refused, without its number and without a capital: `permission denied`.
#[derive(Debug)]
pub struct Reason(String);

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
    text
}

/// Returns a path on one line: as it is, or quoted and escaped if it has spaces or characters that
/// a terminal would not show.
#[must_use]
pub fn show(path: &Path) -> String {
    match path.to_str() {
        Some(text) if is_plain(text) => text.into(),
        _ => format!("{path:?}"),
    }
}

/// Text of another program on one line: with escapes for characters that a terminal would obey.
#[must_use]
pub fn one_line(text: &str) -> String {
    let escaped = |letter: char| {
        if is_obeyed(letter) { letter.escape_default().to_string() } else { letter.to_string() }
    };
    text.chars().map(escaped).collect()
}

/// Returns whether a terminal may act on a character, or show what follows elsewhere: control characters, ends of lines, and
/// the marks that change the direction of text.
fn is_obeyed(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a path as one word of a shell command.
#[must_use]
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_safe = |letter: char| letter.is_alphanumeric() || "/._-+:,@%".contains(letter);
    if !text.is_empty() && text.chars().all(is_safe) {
        text.into_owned()
    } else if text.contains(char::is_control) {
        format!("$'{}'", text.chars().map(in_dollar_quotes).collect::<String>())
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Returns a character between `$'` and `'` (POSIX 2024, bash, zsh).
fn in_dollar_quotes(letter: char) -> String {
    match letter {
        '\'' | '\\' => format!("\\{letter}"),
        letter if letter.is_control() => {
            letter.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:03o}")).collect()
        }
        letter => letter.into(),
    }
}

fn is_plain(text: &str) -> bool {
    let is_odd = |letter: char| is_obeyed(letter) || letter.is_whitespace() || "\"'\\".contains(letter);
    !text.is_empty() && !text.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn text_of_others_stays_on_one_line() {
        assert_eq!(one_line("a b: \u{1b}[2J\né"), r"a b: \u{1b}[2J\né");
    }

    #[test]
    fn a_path_stays_on_one_line_and_one_word() {
        let cases = [
            ("/mnt/a", "/mnt/a", "/mnt/a"),
            ("/a b", "\"/a b\"", "'/a b'"),
            ("/a\n\u{1b}[2J", r#""/a\n\u{1b}[2J""#, r"$'/a\012\033[2J'"),
            ("it's\\\u{85}", r#""it's\\\u{85}""#, r"$'it\'s\\\302\205'"),
            ("it's", r#""it's""#, r"'it'\''s'"),
            ("", "\"\"", "''"),
        ];
        for (path, shown, word) in cases {
            assert_eq!((show(Path::new(path)), shell_word(Path::new(path))), (shown.into(), word.into()));
        }
    }
}
