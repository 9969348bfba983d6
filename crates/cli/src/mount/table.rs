//! The kernel's table of mounts, `/proc/self/mountinfo`: what is mounted where, without touching it, so that a mount whose
//! server hangs can be found too.
//!
//! Where it comes from: `proc_pid_mountinfo(5)`.

use super::failure::Failure;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The kind that the kernel calls ours.
const OURS: &str = "fuse.lightfoot";

/// A mount of Lightfoot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Where.
    pub(crate) at: PathBuf,
    /// The numbers of its device.
    pub(crate) device: (u32, u32),
    /// Who mounted it.
    pub(crate) uid: u32,
    kind: String,
}

impl Entry {
    /// The mount of Lightfoot at `path`, which may be a symbolic link or end in a slash.
    ///
    /// # Errors
    /// If nothing is mounted there, or something else.
    pub(crate) fn find(path: &Path) -> Result<Self, Failure> {
        let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
        let at = |wanted: &Path| {
            // The last mount on a place is the one that is seen.
            table.split(|&byte| byte == b'\n').filter_map(Self::of_line).rfind(|entry| entry.at == wanted)
        };
        // What is said as the table has it is found without a look at the place; else the place above it is looked at, and
        // then the place itself.
        let found = plain(path).and_then(|path| at(&path).ok_or(()).or_else(|()| at(&above(&path)?).ok_or(())).ok());
        let found = found.or_else(|| at(&path.canonicalize().ok()?));
        match found {
            Some(entry) if entry.kind == OURS => Ok(entry),
            Some(entry) => Err(Failure::NotOurs { path: path.into(), kind: entry.kind }),
            None => Err(Failure::NoMount(path.into())),
        }
    }

    fn of_line(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b' ');
        let (major, minor) = std::str::from_utf8(fields.nth(2)?).ok()?.split_once(':')?;
        let at = OsString::from_vec(unescape(fields.nth(1)?)).into();
        // After optional fields and a hyphen.
        let mut fields = fields.skip_while(|&field| field != b"-").skip(1);
        let kind = String::from_utf8_lossy(fields.next()?).into_owned();
        let options = String::from_utf8_lossy(fields.nth(1)?).into_owned();
        let uid =
            options.split(',').find_map(|option| option.strip_prefix("user_id=")).and_then(|uid| uid.parse().ok());
        Some(Self { at, device: (major.parse().ok()?, minor.parse().ok()?), uid: uid.unwrap_or(0), kind })
    }
}

/// The devices of all mounts.
pub(crate) fn devices() -> Vec<(u32, u32)> {
    let table = fs::read("/proc/self/mountinfo").unwrap_or_default();
    table.split(|&byte| byte == b'\n').filter_map(Entry::of_line).map(|entry| entry.device).collect()
}

/// An absolute path without `.` and slashes to spare; none if `..` is in it, which may lead elsewhere.
fn plain(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let is_plain = |part: &Component<'_>| !matches!(part, Component::ParentDir);
    absolute.components().all(|part| is_plain(&part)).then(|| absolute.components().collect())
}

/// The same where the directory above is said without symbolic links.
fn above(path: &Path) -> Result<PathBuf, ()> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return Err(()) };
    let above: io::Result<PathBuf> = above.canonicalize();
    above.map(|above| above.join(name)).map_err(|_| ())
}

/// Undoes the octal escapes.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut parts = field.split(|&byte| byte == b'\\');
    let mut plain = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let octal = part.get(..3).and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match octal {
            Some(byte) => plain.push(byte),
            None => plain.extend_from_slice(b"\\"),
        }
        plain.extend_from_slice(if octal.is_some() { &part[3..] } else { part });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_where_what_and_whose() {
        let line = b"52 27 0:49 / /m\\040n rw,relatime shared:3 - fuse.lightfoot ram: rw,user_id=7,group_id=0";
        let entry = Entry::of_line(line).expect("a line");
        assert_eq!(entry, Entry { at: "/m n".into(), device: (0, 49), uid: 7, kind: OURS.into() });
        assert_eq!(Entry::of_line(b""), None);
        assert_eq!(Entry::of_line(b"52 27 0:49 / /m rw"), None);
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(unescape(b"/a\\040b\\134c\\n"), b"/a b\\c\\n");
        assert_eq!(unescape(b"/plain\\"), b"/plain\\");
    }

    #[test]
    fn what_is_no_mount_of_ours_is_said_to_be_none() {
        let text = |path: &str| Entry::find(Path::new(path)).expect_err("no mount of Lightfoot").to_string();
        assert!(text("/proc").contains("a mount of proc"));
        assert!(text("/proc/self/").contains("is no mount point"));
        assert!(text("/no/such/place").contains("is no mount point"));
    }
}
