//! Patterns of names, as the shell has them: `*`, `?`, `[a-z]`, `[!a-z]`, `[[:digit:]]`, and a backslash before what is
//! to be taken as it is.
//!
//! # What it is
//! `fnmatch(3)` without flags, as `find -name` uses it: a dot at the beginning is nothing special. Names are bytes; what
//! is UTF-8 in them is matched by characters, each other byte by itself.
//!
//! # Where it comes from
//! POSIX, Shell Command Language, 2.14. Own code: `globset` matches bytes, so that `?` would be half an umlaut.

/// A pattern.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    pieces: Vec<Piece>,
    ignores_case: bool,
}

/// A character, or a byte that is part of none: above all characters.
type Unit = u32;

const BYTES: Unit = 0x11_0000;

#[derive(Clone, Debug)]
enum Piece {
    One(Unit),
    Any,
    Many,
    Set { negated: bool, ranges: Vec<(Unit, Unit)>, classes: Vec<Class> },
}

/// Which characters are of a class.
type Class = fn(char) -> bool;

/// Classes of characters by their names.
const CLASSES: [(&str, Class); 12] = [
    ("alnum", char::is_alphanumeric),
    ("alpha", char::is_alphabetic),
    ("blank", |character| matches!(character, ' ' | '\t')),
    ("cntrl", char::is_control),
    ("digit", |character| character.is_ascii_digit()),
    ("graph", |character| !character.is_control() && !character.is_whitespace()),
    ("lower", char::is_lowercase),
    ("print", |character| !character.is_control()),
    ("punct", |character| character.is_ascii_punctuation()),
    ("space", char::is_whitespace),
    ("upper", char::is_uppercase),
    ("xdigit", |character| character.is_ascii_hexdigit()),
];

impl Glob {
    /// The pattern that `text` is. Every text is one: what is no pattern matches itself.
    pub(super) fn new(text: &[u8], ignores_case: bool) -> Self {
        let text = units(text, ignores_case);
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(&unit) = text.get(at) {
            at += 1;
            pieces.push(match char::from_u32(unit) {
                Some('*') => Piece::Many,
                Some('?') => Piece::Any,
                Some('\\') if at < text.len() => {
                    at += 1;
                    Piece::One(text[at - 1])
                }
                Some('[') => match set(&text[at..]) {
                    Some((set, len)) => {
                        at += len;
                        set
                    }
                    None => Piece::One(unit),
                },
                _ => Piece::One(unit),
            });
        }
        Self { pieces, ignores_case }
    }

    /// Whether the whole of `name` is what the pattern says.
    pub(super) fn matches(&self, name: &[u8]) -> bool {
        let name = units(name, self.ignores_case);
        let (mut piece, mut at) = (0, 0);
        // Where the last `*` is, and how far it reaches: only the last one can have to reach further.
        let mut star: Option<(usize, usize)> = None;
        loop {
            match self.pieces.get(piece) {
                Some(Piece::Many) => {
                    star = Some((piece, at));
                    piece += 1;
                    continue;
                }
                Some(one) if name.get(at).is_some_and(|&unit| one.is(unit)) => {
                    (piece, at) = (piece + 1, at + 1);
                    continue;
                }
                None if at == name.len() => return true,
                _ => {}
            }
            let Some((many, reach)) = star.filter(|(_, reach)| *reach < name.len()) else { return false };
            star = Some((many, reach + 1));
            (piece, at) = (many + 1, reach + 1);
        }
    }
}

impl Piece {
    fn is(&self, unit: Unit) -> bool {
        match self {
            Self::One(one) => *one == unit,
            Self::Any | Self::Many => true,
            Self::Set { negated, ranges, classes } => {
                let in_range = ranges.iter().any(|&(first, last)| (first..=last).contains(&unit));
                let in_class = || char::from_u32(unit).is_some_and(|unit| classes.iter().any(|class| class(unit)));
                (in_range || in_class()) != *negated
            }
        }
    }
}

/// The set that begins after a `[`, and how much of `text` it takes; `None` if nothing ends it.
fn set(text: &[Unit]) -> Option<(Piece, usize)> {
    let is = |at: usize, character: char| text.get(at) == Some(&u32::from(character));
    let negated = is(0, '!') || is(0, '^');
    let start = usize::from(negated);
    let (mut ranges, mut classes) = (Vec::new(), Vec::new());
    let mut at = start;
    // A bracket right at the beginning is one of the set.
    while at == start || !is(at, ']') {
        if is(at, '[')
            && is(at + 1, ':')
            && let Some(len) = text[at + 2..].windows(2).position(|end| end == [u32::from(':'), u32::from(']')])
        {
            let name: String = text[at + 2..at + 2 + len].iter().filter_map(|&unit| char::from_u32(unit)).collect();
            classes.extend(CLASSES.iter().filter(|(known, _)| *known == name).map(|(_, class)| *class));
            at += len + 4;
            continue;
        }
        at += usize::from(is(at, '\\'));
        let first = *text.get(at)?;
        at += 1;
        let mut last = first;
        if is(at, '-') && at + 1 < text.len() && !is(at + 1, ']') {
            at += 1 + usize::from(is(at + 1, '\\'));
            last = *text.get(at)?;
            at += 1;
        }
        ranges.push((first, last));
    }
    (at < text.len()).then_some((Piece::Set { negated, ranges, classes }, at + 1))
}

fn units(text: &[u8], ignores_case: bool) -> Vec<Unit> {
    let mut units = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        let lower = |character: char| {
            let mut lower = character.to_lowercase();
            if ignores_case && lower.len() == 1 { lower.next().unwrap_or(character) } else { character }
        };
        units.extend(chunk.valid().chars().map(lower).map(u32::from));
        units.extend(chunk.invalid().iter().map(|&byte| BYTES + u32::from(byte)));
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_the_shells_do() {
        let cases: [(&str, &str, bool); 40] = [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", ".hidden", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("*b*", "abc", true),
            ("*b", "abc", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("**", "x", true),
            ("?", "ö", true),
            ("?", "", false),
            ("??", "ö", false),
            ("*.rs", "lib.rs", true),
            ("*.rs", "lib.rst", false),
            ("[abc]", "b", true),
            ("[abc]", "d", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]", "d", true),
            ("[^a-c]", "b", false),
            ("[!a]", "", false),
            ("[]]", "]", true),
            ("[!]]", "]", false),
            ("[a-]", "-", true),
            ("[-a]", "-", true),
            ("[", "[", true),
            ("[a", "[a", true),
            ("[a-", "[a-", true),
            ("[ä-ü]", "ö", true),
            ("[[:digit:]]*", "7up", true),
            ("[[:digit:]]*", "up7", false),
            ("[[:upper:]_]", "_", true),
            ("[[:nonsense:]]", "n", false),
            ("[[:]", ":", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("[\\]]", "]", true),
            ("[b-a]", "a", false),
        ];
        for (glob, name, expected) in cases {
            assert_eq!(Glob::new(glob.as_bytes(), false).matches(name.as_bytes()), expected, "{glob} and {name}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_match_too() {
        assert!(Glob::new(b"a?b", false).matches(b"a\xffb"));
        assert!(Glob::new(b"*\xff*", false).matches(b"x\xffy"));
        assert!(!Glob::new(b"\xff", false).matches("\u{ff}".as_bytes()));
    }

    #[test]
    fn case_can_be_ignored() {
        assert!(Glob::new(b"READ*", true).matches(b"readme"));
        assert!(Glob::new("ÄÖ[X-Z]".as_bytes(), true).matches("äöy".as_bytes()));
        assert!(!Glob::new(b"READ*", false).matches(b"readme"));
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_time_to_fail() {
        let name = vec![b'a'; 255];
        assert!(!Glob::new("*a".repeat(60).as_bytes(), false).matches(&[&name[..], b"b"].concat()));
    }
}
