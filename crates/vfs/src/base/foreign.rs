//! Text that another party chose: the name of a file, the words of another program.
//!
//! # What it is
//! [`Foreign`], which writes such text to a terminal or a log so that it stays in its line and in its place. Each crate that
//! writes names passes them through it.
//!
//! # What it is not
//! An escape of JSON or of a shell: the text is for people. `Debug` writes it in quotes, and only then can a reader tell a line
//! break from a backslash with an `n`.
//!
//! # Where it comes from
//! `ls --quoting-style=escape`; the marks of direction: Boucher and Anderson, "Trojan Source", 2021.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Display, Formatter, Write};

/// Text that another party chose. `Display` writes control characters, line breaks and marks of direction as escapes (`\n`,
/// `\u{1b}`), and bytes that are not UTF-8 as `\xff`. `Debug` does the same in quotes, with escapes for quotes and backslashes.
///
/// ```
/// use lightfoot_vfs::Foreign;
///
/// let name = "a\u{1b}[2J\nb";
/// assert_eq!(Foreign::of(name).to_string(), r"a\u{1b}[2J\nb");
/// assert_eq!(format!("{:?}", Foreign::bytes(b"\"\xff")), r#""\"\xff""#);
/// ```
#[derive(Clone)]
pub struct Foreign<'a>(Cow<'a, [u8]>);

impl<'a> Foreign<'a> {
    /// Takes a string, a name or a path.
    #[must_use]
    pub fn of(text: &'a (impl AsRef<OsStr> + ?Sized)) -> Self {
        Self::bytes(text.as_ref().as_encoded_bytes())
    }

    /// Takes the bytes of a name or a path.
    #[must_use]
    pub fn bytes(text: &'a [u8]) -> Self {
        Self(text.into())
    }

    /// Takes the text of a value, such as an error that has names in it.
    #[must_use]
    pub fn text(value: impl Display) -> Foreign<'static> {
        Foreign(value.to_string().into_bytes().into())
    }

    /// Returns whether the text is written with escapes.
    #[must_use]
    pub fn is_escaped(&self) -> bool {
        str::from_utf8(&self.0).map_or(true, |text| text.contains(Self::is_obeyed))
    }

    /// Returns whether a terminal or a reader of lines may act on a character, or show what follows elsewhere: control
    /// characters, ends of lines, and marks that change the direction of text.
    #[must_use]
    pub fn is_obeyed(letter: char) -> bool {
        letter.is_control()
            || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    }

    fn write(&self, f: &mut Formatter<'_>, is_quoted: bool) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for letter in chunk.valid().chars() {
                if Self::is_obeyed(letter) || is_quoted && matches!(letter, '"' | '\\') {
                    Display::fmt(&letter.escape_default(), f)?;
                } else {
                    f.write_char(letter)?;
                }
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

impl Display for Foreign<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, false)
    }
}

impl fmt::Debug for Foreign<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.write(f, true)?;
        f.write_char('"')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_has_a_character_that_a_terminal_obeys() {
        let cases: [(&[u8], &str, &str); 7] = [
            (b"a b/c'", "a b/c'", r#""a b/c'""#),
            (b"", "", r#""""#),
            ("a\u{1b}]0;x\u{7}\té".as_bytes(), r"a\u{1b}]0;x\u{7}\té", r#""a\u{1b}]0;x\u{7}\té""#),
            (b"a\nb\r\x7f", r"a\nb\r\u{7f}", r#""a\nb\r\u{7f}""#),
            (
                "\u{202e}\u{2028}\u{2069}\u{85}".as_bytes(),
                r"\u{202e}\u{2028}\u{2069}\u{85}",
                r#""\u{202e}\u{2028}\u{2069}\u{85}""#,
            ),
            (b"\x9b31m\xff\xc3", r"\x9b31m\xff\xc3", r#""\x9b31m\xff\xc3""#),
            (br#""\n"#, r#""\n"#, r#""\"\\n""#),
        ];
        for (text, plain, quoted) in cases {
            let foreign = Foreign::bytes(text);
            assert_eq!((foreign.to_string(), format!("{foreign:?}")), (plain.into(), quoted.into()));
            assert_eq!(foreign.is_escaped(), plain.as_bytes() != text, "{plain}");
        }
        assert!(!Foreign::text(fmt::Error).is_escaped() && Foreign::text('\u{7}').is_escaped());
    }

    #[test]
    fn all_control_characters_and_marks_of_direction_are_escaped() {
        let escaped = (0..=0x2100).filter_map(char::from_u32).filter(|&letter| Foreign::text(letter).is_escaped());
        let marks = (0x2028..=0x202e).chain(0x2066..=0x2069);
        let expected = (0..0x20).chain(0x7f..0xa0).chain([0x61c, 0x200e, 0x200f]).chain(marks);
        assert_eq!(escaped.map(u32::from).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}
