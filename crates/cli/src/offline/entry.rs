//! One file as it is reported: what it is called, and its attributes in the letters of `ls` or as JSON.

use super::stamp;
use super::text::is_obeyed;
use lightfoot::fs::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK};
use lightfoot::{FileType, Metadata};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, Write};

/// Kinds of files: type bits, the letter of `ls -l` and `find --type`, the name in JSON, the name of `stat`.
const KINDS: [(u32, char, &str, &str); 7] = [
    (S_IFREG, '-', "file", "regular file"),
    (S_IFDIR, 'd', "directory", "directory"),
    (S_IFLNK, 'l', "symlink", "symbolic link"),
    (S_IFIFO, 'p', "fifo", "fifo"),
    (S_IFSOCK, 's', "socket", "socket"),
    (S_IFCHR, 'c', "char_device", "character special file"),
    (S_IFBLK, 'b', "block_device", "block special file"),
];

fn kind(mode: u32) -> (u32, char, &'static str, &'static str) {
    let unknown = (0, '?', "unknown", "weird file");
    KINDS.into_iter().find(|(bits, ..)| *bits == mode & S_IFMT).unwrap_or(unknown)
}

/// The letter by which `ls -l` tells the kind of file.
pub(super) fn letter(mode: u32) -> char {
    kind(mode).1
}

/// What `stat` calls the kind of file.
pub(super) fn kind_in_words(metadata: &Metadata) -> &'static str {
    if metadata.is_file() && metadata.len() == 0 { "regular empty file" } else { kind(metadata.mode()).3 }
}

/// The mode in ten letters: `drwxr-xr-x`.
pub(super) fn mode_in_letters(mode: u32) -> String {
    let mut letters = String::from(letter(mode));
    for (shift, special, with, without) in [(6, 0o4000, 's', 'S'), (3, 0o2000, 's', 'S'), (0, 0o1000, 't', 'T')] {
        let bits = mode >> shift;
        letters.push(if bits & 4 != 0 { 'r' } else { '-' });
        letters.push(if bits & 2 != 0 { 'w' } else { '-' });
        letters.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => with,
            (true, false) => without,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    letters
}

/// Whether it is a device, which has numbers instead of a length.
pub(super) fn is_device(kind: FileType) -> bool {
    kind.is_char_device() || kind.is_block_device()
}

/// Major and minor number of a device, out of the 32 bits that Linux keeps them in.
pub(super) fn device_numbers(rdev: u64) -> (u64, u64) {
    (rdev >> 8 & 0xfff, rdev & 0xff | rdev >> 12 & 0xf_ff00)
}

/// A file as JSON has it.
#[derive(Serialize)]
struct Record<'a> {
    path: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<&'a [u8]>,
    r#type: &'static str,
    mode: String,
    nlink: u64,
    uid: u32,
    gid: u32,
    size: u64,
    blocks: u64,
    dev: u64,
    ino: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rdev: Option<String>,
    atime: String,
    mtime: String,
    ctime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_bytes: Option<&'a [u8]>,
}

/// The bytes, if text cannot say them.
fn odd(bytes: &[u8]) -> Option<&[u8]> {
    std::str::from_utf8(bytes).is_err().then_some(bytes)
}

/// One JSON object on one line: `path` (and `path_bytes`, if it is no UTF-8), attributes, and what a symbolic link says.
pub(super) fn json(path: &[u8], metadata: &Metadata, target: Option<&[u8]>) -> String {
    let record = Record {
        path: String::from_utf8_lossy(path),
        path_bytes: odd(path),
        r#type: kind(metadata.mode()).2,
        mode: format!("{:04o}", metadata.mode() & 0o7777),
        nlink: metadata.nlink(),
        uid: metadata.uid(),
        gid: metadata.gid(),
        size: metadata.len(),
        blocks: metadata.blocks(),
        dev: metadata.dev(),
        ino: metadata.ino(),
        rdev: is_device(metadata.file_type()).then(|| {
            let (major, minor) = device_numbers(metadata.rdev());
            format!("{major}:{minor}")
        }),
        atime: stamp::rfc3339(metadata.atime_ns()),
        mtime: stamp::rfc3339(metadata.mtime_ns()),
        ctime: stamp::rfc3339(metadata.ctime_ns()),
        target: target.map(String::from_utf8_lossy),
        target_bytes: target.and_then(odd),
    };
    let text = serde_json::to_string(&record).unwrap_or_default();
    if !text.contains(is_obeyed) {
        return text;
    }
    // What serde leaves as it is, a terminal may not.
    let escape = |character: char| {
        if is_obeyed(character) { format!("\\u{:04x}", u32::from(character)) } else { character.into() }
    };
    text.chars().map(escape).collect()
}

/// A JSON array that is written while its elements are found.
#[derive(Default)]
pub(super) struct JsonArray {
    has_some: bool,
}

impl JsonArray {
    /// Writes the next element.
    pub(super) fn push(&mut self, out: &mut impl Write, element: &str) -> io::Result<()> {
        out.write_all(if self.has_some { b",\n" } else { b"[\n" })?;
        self.has_some = true;
        out.write_all(element.as_bytes())
    }

    /// Writes its end.
    pub(super) fn end(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(if self.has_some { b"\n]\n" } else { b"[]\n" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_have_the_letters_of_ls() {
        let cases = [
            (S_IFDIR | 0o755, "drwxr-xr-x"),
            (S_IFREG | 0o4755, "-rwsr-xr-x"),
            (S_IFREG | 0o6644, "-rwSr-Sr--"),
            (S_IFDIR | 0o1777, "drwxrwxrwt"),
            (S_IFDIR | 0o3770, "drwxrws--T"),
            (S_IFLNK | 0o777, "lrwxrwxrwx"),
            (S_IFIFO, "p---------"),
            (S_IFSOCK | 0o1, "s--------x"),
            (S_IFCHR | 0o620, "crw--w----"),
            (S_IFBLK | 0o660, "brw-rw----"),
            (0o644, "?rw-r--r--"),
        ];
        for (mode, letters) in cases {
            assert_eq!(mode_in_letters(mode), letters);
        }
    }

    #[test]
    fn device_numbers_are_linuxs() {
        assert_eq!(device_numbers(0x0103), (1, 3));
        assert_eq!(device_numbers(0x1230_0145), (1, 0x1_2345));
    }
}
