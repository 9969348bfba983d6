//! `lightfoot find`: what lies below a path of a source and is what is looked for.

use super::entry::{JsonArray, json, letter};
use super::glob::Glob;
use super::walk::{Found, Walk};
use super::{Opened, from_root};
use crate::source::SourceArguments;
use std::cmp::Ordering;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

/// What `lightfoot find` is asked.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Find {
    #[command(flatten)]
    pub(crate) source: SourceArguments,

    /// Where to look, as paths of SOURCE
    #[arg(default_value = "/", value_name = "PATH", hide_default_value = true)]
    paths: Vec<OsString>,

    /// Only names like this, such as '*.rs'; with several, names like any of them
    #[arg(long, value_name = "GLOB")]
    name: Vec<OsString>,

    /// As --name, whatever the case
    #[arg(long, value_name = "GLOB")]
    iname: Vec<OsString>,

    /// Only files whose whole path is like this; * matches a slash too
    #[arg(long, value_name = "GLOB")]
    path: Vec<OsString>,

    /// Only files of these kinds: f (file), d (directory), l (symbolic link), p (FIFO), s (socket), c, b (devices)
    #[arg(long = "type", value_name = "LETTER,LETTER..", value_delimiter = ',', value_parser = parse_kind)]
    kinds: Vec<char>,

    /// Only files of N units, rounded up; of more with +N, of less with -N; units c (bytes), b (512 bytes, if none is
    /// said), k, M, G
    #[arg(long, value_name = "[+-]N[ckMG]", value_parser = parse_size, allow_hyphen_values = true)]
    size: Vec<Size>,

    /// Only files without contents and directories without entries
    #[arg(long)]
    empty: bool,

    /// Look no further down than so many directories; 0 is PATH itself
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    max_depth: usize,

    /// Leave out what is less far down
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    min_depth: usize,

    /// End each path with a zero byte instead of a line break
    #[arg(short = '0', long, conflicts_with = "json")]
    print0: bool,

    /// A JSON array with one object for each
    #[arg(long)]
    json: bool,
}

/// A condition on lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    order: Ordering,
    units: u64,
    unit: u64,
}

impl Size {
    fn is(self, bytes: u64) -> bool {
        bytes.div_ceil(self.unit).cmp(&self.units) == self.order
    }
}

/// `+10k` and the like.
fn parse_size(text: &str) -> Result<Size, String> {
    let (order, rest) = match text.as_bytes().first() {
        Some(b'+') => (Ordering::Greater, &text[1..]),
        Some(b'-') => (Ordering::Less, &text[1..]),
        _ => (Ordering::Equal, text),
    };
    let (digits, unit) = rest.split_at(rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len()));
    let unit = match unit {
        "c" => 1,
        "b" | "" => 512,
        "k" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err("say a number and c, b, k, M or G, such as +10k".into()),
    };
    let units = digits.parse().map_err(|_| "say a number and c, b, k, M or G, such as +10k")?;
    Ok(Size { order, units, unit })
}

fn parse_kind(text: &str) -> Result<char, String> {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        // The letter that long lines have.
        (Some('f'), None) => Ok('-'),
        (Some(kind @ ('d' | 'l' | 'p' | 's' | 'c' | 'b')), None) => Ok(kind),
        _ => Err("say f, d, l, p, s, c or b".into()),
    }
}

/// What is looked for.
struct Wanted<'f> {
    find: &'f Find,
    names: Vec<Glob>,
    paths: Vec<Glob>,
}

impl<'f> Wanted<'f> {
    fn new(find: &'f Find) -> Self {
        let globs = |texts: &[OsString], ignores_case| -> Vec<Glob> {
            texts.iter().map(|text| Glob::new(text.as_bytes(), ignores_case)).collect()
        };
        let names = [globs(&find.name, false), globs(&find.iname, true)].concat();
        Self { find, names, paths: globs(&find.path, false) }
    }

    fn is(&self, found: &Found, opened: &Opened) -> bool {
        let any = |globs: &[Glob], text: &[u8]| globs.is_empty() || globs.iter().any(|glob| glob.matches(text));
        // The root's name is a slash.
        let name = if found.name().is_empty() { b"/" } else { found.name() };
        let metadata = &found.metadata;
        found.depth >= self.find.min_depth
            && any(&self.names, name)
            && any(&self.paths, &found.path)
            && (self.find.kinds.is_empty() || self.find.kinds.contains(&letter(metadata.mode())))
            && self.find.size.iter().all(|size| size.is(metadata.len()))
            && (!self.find.empty || found.is_empty(opened))
    }
}

/// Writes the paths that `find` asks for.
pub(super) fn run(find: &Find, opened: &Opened, out: &mut impl Write) -> io::Result<()> {
    let wanted = Wanted::new(find);
    let mut array = JsonArray::default();
    for path in find.paths.iter().map(from_root) {
        for found in Walk::new(opened, &path, false, find.max_depth) {
            match found {
                Ok(found) if wanted.is(&found, opened) => {
                    if find.json {
                        let target = found.target(opened);
                        array.push(out, &json(&found.path, &found.metadata, target.as_deref()))?;
                    } else if find.print0 {
                        out.write_all(&found.path)?;
                        out.write_all(b"\0")?;
                    } else {
                        opened.style.write(out, &found.path)?;
                        out.write_all(b"\n")?;
                    }
                }
                Ok(_) => {}
                Err(failure) => opened.troubles.tell(&failure),
            }
        }
    }
    if find.json { array.end(out) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_compared_in_units_rounded_up() {
        let cases = [
            ("0", 0, true),
            ("1", 1, true),
            ("1", 512, true),
            ("1", 513, false),
            ("3c", 3, true),
            ("+3c", 3, false),
            ("+3c", 4, true),
            ("-3c", 2, true),
            ("-1k", 0, true),
            ("-1k", 1, false),
            ("2k", 1025, true),
            ("+1M", 1 << 20, false),
            ("+1M", (1 << 20) + 1, true),
            ("+18446744073709551614c", u64::MAX, true),
        ];
        for (text, bytes, expected) in cases {
            assert_eq!(parse_size(text).expect(text).is(bytes), expected, "{text} and {bytes}");
        }
        for text in ["", "k", "+", "1K", "1kB", "-", "1.5k", "99999999999999999999", "+-1", "ö"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
