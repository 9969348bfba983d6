//! Names on the way out: as they are, or so that a terminal shows them and does nothing else.

use std::io::{self, IsTerminal, Write};

/// How names are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// Where the output goes is a terminal: what it would obey is escaped, and there are columns.
    pub(super) is_terminal: bool,
}

impl Style {
    /// What standard output asks for.
    pub(super) fn of_stdout() -> Self {
        Self { is_terminal: io::stdout().is_terminal() }
    }

    /// Writes a name or path.
    pub(super) fn write(self, out: &mut impl Write, name: &[u8]) -> io::Result<()> {
        if self.is_terminal { out.write_all(escaped(name).as_bytes()) } else { out.write_all(name) }
    }

    /// Characters that a name takes.
    pub(super) fn width(self, name: &[u8]) -> usize {
        if self.is_terminal { escaped(name).chars().count() } else { name.len() }
    }
}

/// The name with a backslash before what is no character, moves the cursor or changes the direction of writing, as `ls
/// --escape` does it.
pub(super) fn escaped(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\0'..='\x7f' if character.is_control() => octal(&mut text, &[character as u8]),
                _ if is_obeyed(character) => {
                    octal(&mut text, character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => text.push(character),
            }
        }
        octal(&mut text, chunk.invalid());
    }
    text
}

/// Control characters, marks that change the direction of writing, and ends of lines that are no control characters.
pub(super) fn is_obeyed(character: char) -> bool {
    let turns = matches!(character, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || character.is_control()
}

fn octal(text: &mut String, bytes: &[u8]) {
    text.extend(bytes.iter().map(|byte| format!("\\{byte:03o}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_byte_that_it_obeys() {
        let cases: [(&[u8], &str); 8] = [
            (b"plain name", "plain name"),
            ("Größe 日本".as_bytes(), "Größe 日本"),
            (b"a\nb\tc\rd", "a\\nb\\tc\\rd"),
            (b"\x1b[31mred", "\\033[31mred"),
            (b"\x7f\x00", "\\177\\000"),
            (b"back\\slash", "back\\\\slash"),
            (b"\xff\xfeodd\xc3", "\\377\\376odd\\303"),
            ("\u{9b}31m\u{202e}txt".as_bytes(), "\\302\\23331m\\342\\200\\256txt"),
        ];
        for (name, expected) in cases {
            assert_eq!(escaped(name), expected);
        }
    }

    #[test]
    fn what_is_no_terminal_gets_the_bytes() {
        let mut out = Vec::new();
        Style { is_terminal: false }.write(&mut out, b"\x1b\xff\n").expect("memory can be written");
        assert_eq!(out, b"\x1b\xff\n");
    }
}
