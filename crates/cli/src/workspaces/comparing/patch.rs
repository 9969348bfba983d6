//! `lightfoot diff --patch`: the changes as `git apply` reads them.
//!
//! # Where it comes from
//! The section "Generating patch text" of `git-diff(1)`; `Documentation/technical` and `base85` of git for binary files: lines of up to
//! 52 bytes, deflated by zlib, in the digits of RFC 1924.

use super::CompareError;
use super::sides::{Entry, Pair, Sides, pairs};
use crate::output::report;
use miniz_oxide::deflate::compress_to_vec_zlib;
use sha1::{Digest, Sha1};
use similar::TextDiff;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// The digits of numbers to the base 85.
const DIGITS: &[u8; 85] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// The bytes in a line of a binary file.
const LINE: usize = 52;

/// The level of compression that git has for binary files.
const LEVEL: u8 = 6;

/// After this time the comparison of two files is not the shortest any more.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes at the beginning of a file in which a zero means that it is not text.
const LOOKED_AT: usize = 8000;

/// A state of one file.
struct Side {
    /// `a/PATH` or `b/PATH`, quoted.
    name: String,
    /// The mode that git has for it, in octal.
    mode: &'static str,
    body: Vec<u8>,
}

/// Writes a patch.
///
/// # Errors
/// If a file cannot be read, or `out` not be written.
pub(super) fn write(sides: &Sides<'_>, out: &mut impl Write) -> Result<(), CompareError> {
    let files = sides.files()?;
    for pair in pairs(&files, &sides.changes) {
        sides.check()?;
        write_pair(pair, out)?;
    }
    Ok(())
}

fn write_pair((old, new): Pair<'_>, out: &mut impl Write) -> Result<(), CompareError> {
    let (Some(a), Some(b)) = (side(old, 'a')?, side(new, 'b')?) else { return Ok(()) };
    Ok(write_sides((old, a), (new, b), out)?)
}

/// Returns the state of a file, an empty one if it is missing, and none if a patch cannot have it.
fn side(entry: Option<&Entry>, label: char) -> Result<Option<Side>, CompareError> {
    let Some(entry) = entry else {
        return Ok(Some(Side { name: "/dev/null".into(), mode: "", body: Vec::new() }));
    };
    let Some(mode) = mode(entry) else {
        report(format_args!(
            "{}: not in the patch (only files and symbolic links are)",
            fuse::message::show(&entry.path)
        ));
        return Ok(None);
    };
    Ok(Some(Side { name: quoted(label, &entry.path), mode, body: entry.body()? }))
}

/// Returns the mode that git has for a file, if it has one.
fn mode(entry: &Entry) -> Option<&'static str> {
    match entry.meta.file_type() {
        kind if kind.is_symlink() => Some("120000"),
        kind if kind.is_file() && entry.meta.mode() & 0o100 != 0 => Some("100755"),
        kind if kind.is_file() => Some("100644"),
        _ => None,
    }
}

fn write_sides(
    (old, a): (Option<&Entry>, Side),
    (new, b): (Option<&Entry>, Side),
    out: &mut impl Write,
) -> io::Result<()> {
    let is_moved = old.zip(new).is_some_and(|(old, new)| old.path != new.path);
    let is_changed = a.body != b.body || old.is_none() || new.is_none();
    if !is_moved && !is_changed && a.mode == b.mode {
        return Ok(());
    }
    let [from, to] = [old.or(new), new.or(old)].map(|entry| entry.map_or(Path::new(""), |entry| &entry.path));
    writeln!(out, "diff --git {} {}", quoted('a', from), quoted('b', to))?;
    match (old, new) {
        (None, _) => writeln!(out, "new file mode {}", b.mode)?,
        (_, None) => writeln!(out, "deleted file mode {}", a.mode)?,
        _ if a.mode != b.mode => writeln!(out, "old mode {}\nnew mode {}", a.mode, b.mode)?,
        _ => {}
    }
    if let (Some(old), Some(new), true) = (old, new, is_moved) {
        writeln!(out, "rename from {}\nrename to {}", quoted_path(&old.path), quoted_path(&new.path))?;
    }
    if !is_changed {
        return Ok(());
    }
    let hash = |of: Option<&Entry>, side: &Side| of.map_or_else(|| "0".repeat(40), |_| blob(&side.body));
    writeln!(out, "index {}..{}", hash(old, &a), hash(new, &b))?;
    if is_binary(&a.body) || is_binary(&b.body) {
        writeln!(out, "GIT binary patch")?;
        literal(&b.body, out)?;
        return literal(&a.body, out);
    }
    lines(&a.body, &b.body).unified_diff().header(&a.name, &b.name).to_writer(out)
}

/// Returns the lines that differ.
pub(super) fn lines<'a>(old: &'a [u8], new: &'a [u8]) -> TextDiff<'a, 'a, [u8]> {
    TextDiff::configure().timeout(PATIENCE).diff_lines(old, new)
}

/// Returns whether a file is shown as bytes, not as lines.
pub(super) fn is_binary(body: &[u8]) -> bool {
    body[..body.len().min(LOOKED_AT)].contains(&0)
}

/// Returns the name of the contents in a git repository.
fn blob(body: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", body.len()));
    hash.update(body);
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn literal(body: &[u8], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "literal {}", body.len())?;
    for line in compress_to_vec_zlib(body, LEVEL).chunks(LINE) {
        // 1 to 26 bytes are A to Z, 27 to 52 are a to z.
        let length = u8::try_from(line.len()).unwrap_or_default();
        out.write_all(&[if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 }])?;
        for group in line.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..group.len()].copy_from_slice(group);
            let mut number = u32::from_be_bytes(bytes);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS[(number % 85) as usize];
                number /= 85;
            }
            out.write_all(&digits)?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn quoted(label: char, path: &Path) -> String {
    quote(&[label.to_string().as_bytes(), b"/", path.as_os_str().as_bytes()].concat())
}

/// Returns a path as git writes it.
pub(super) fn quoted_path(path: &Path) -> String {
    quote(path.as_os_str().as_bytes())
}

/// Returns a name in quotes with octal escapes, unless all its bytes are visible ASCII.
fn quote(name: &[u8]) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if name.iter().all(is_plain) {
        return name.iter().map(|byte| char::from(*byte)).collect();
    }
    let shown = |byte: &u8| {
        if is_plain(byte) || *byte == b' ' { char::from(*byte).to_string() } else { format!("\\{byte:03o}") }
    };
    format!("\"{}\"", name.iter().map(shown).collect::<String>())
}
