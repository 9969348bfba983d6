//! The mounts of this process's mount namespace, from `/proc/self/mountinfo`.
//!
//! # What it is
//! A parser for the fields that finding and ending a mount needs. It touches no mounted file system, so it also finds a
//! mount whose server hangs.
//!
//! # Where it comes from
//! `proc_pid_mountinfo(5)`; `seq_path` and `mangle` in Linux, which escape space, tab, newline, backslash and `#`.

mod pinned;

pub use pinned::Pinned;
use rustix::fs::makedev;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The file system type of a Lightfoot mount.
pub const FS_TYPE: &str = "fuse.lightfoot";

/// One line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountInfo {
    /// The number of the mount, which another mount may get after its end.
    pub id: u64,
    /// Mount point, relative to the root directory of this process.
    pub mountpoint: PathBuf,
    /// Device number as in `stat(2)`: see `makedev(3)`.
    pub device: u64,
    /// File system type, with its subtype after a dot: `ext4`, `fuse.sshfs`.
    pub fs_type: String,
    /// Flags of the mount, with commas between them: `rw,nosuid,nodev,relatime`.
    pub options: String,
    /// User who mounted it: the `user_id=` option of a FUSE mount. 0 for all other types.
    pub uid: u32,
}

impl MountInfo {
    /// Returns whether Lightfoot serves this mount, by its file system type.
    #[must_use]
    pub fn is_lightfoot(&self) -> bool {
        self.fs_type == FS_TYPE
    }

    /// Returns the mount of a line; `None` if the line lacks a field that `proc_pid_mountinfo(5)`
    /// requires.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b' ');
        let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let (major, minor) = std::str::from_utf8(fields.nth(1)?).ok()?.split_once(':')?;
        let device = makedev(major.parse().ok()?, minor.parse().ok()?);
        let mountpoint = OsString::from_vec(unescape(fields.nth(1)?)).into();
        let flags = String::from_utf8_lossy(fields.next()?).into_owned();
        // A hyphen ends the optional fields.
        let mut fields = fields.skip_while(|&field| field != b"-").skip(1);
        let fs_type = String::from_utf8_lossy(&unescape(fields.next()?)).into_owned();
        let options = String::from_utf8_lossy(fields.nth(1)?).into_owned();
        let uid = options.split(',').find_map(|option| option.strip_prefix("user_id=")?.parse().ok());
        Some(Self { id, mountpoint, device, fs_type, options: flags, uid: uid.unwrap_or(0) })
    }
}

/// Returns all mounts. Of several mounts on one mount point, the last is visible.
///
/// # Errors
/// As for `open(2)` and `read(2)`: `ENOENT` if `/proc` is not mounted.
pub fn list() -> io::Result<Vec<MountInfo>> {
    Ok(parse(&fs::read("/proc/self/mountinfo")?))
}

/// Returns the mounts on `mountpoint`, an absolute path without symbolic links. The last is the
/// visible one.
///
/// # Errors
/// As for [`list`].
pub fn stack(mountpoint: &Path) -> io::Result<Vec<MountInfo>> {
    let mut mounts = list()?;
    mounts.retain(|mount| mount.mountpoint == mountpoint);
    Ok(mounts)
}

/// Returns the visible mount on `mountpoint`, an absolute path without symbolic links.
///
/// # Errors
/// As for [`list`].
pub fn top(mountpoint: &Path) -> io::Result<Option<MountInfo>> {
    Ok(stack(mountpoint)?.pop())
}

fn parse(text: &[u8]) -> Vec<MountInfo> {
    text.split(|&byte| byte == b'\n').filter_map(MountInfo::parse).collect()
}

/// Decodes the escapes of a field: a backslash and exactly three octal digits. Other backslashes stand for themselves.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(field.len());
    let mut rest = field;
    loop {
        let (byte, after) = match rest {
            [b'\\', high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', after @ ..] => {
                ((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'), after)
            }
            [byte, after @ ..] => (*byte, after),
            [] => return decoded,
        };
        decoded.push(byte);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_line_has_mount_point_device_type_flags_and_user() {
        let line = b"52 27 0:49 / /m\\040n rw,relatime shared:3 master:1 - fuse.lightfoot ram: rw,user_id=7,group_id=0";
        let mount = MountInfo::parse(line).expect("all fields are there");
        let (mountpoint, options) = ("/m n".into(), "rw,relatime".into());
        let expected =
            MountInfo { id: 52, mountpoint, device: makedev(0, 49), fs_type: FS_TYPE.into(), options, uid: 7 };
        assert_eq!(mount, expected);
        assert!(mount.is_lightfoot());
    }

    #[test]
    fn a_line_may_have_no_optional_fields_and_no_user() {
        let mount = MountInfo::parse(b"36 35 98:1 /mnt1 /mnt2 rw,noatime - ext3 /dev/root rw").expect("a line");
        assert_eq!((mount.device, &*mount.fs_type, mount.uid), (makedev(98, 1), "ext3", 0));
        assert!(!mount.is_lightfoot());
    }

    #[test]
    fn an_incomplete_line_is_skipped() {
        for line in ["", "52 27 0:49 / /m rw", "52 27 0:49 / /m rw - ext4", "52 27 49 / /m rw - ext4 d rw", "a b c"] {
            assert_eq!(MountInfo::parse(line.as_bytes()), None, "{line}");
        }
        let text = b"\n36 35 98:1 / /a rw - ext3 d rw\nnonsense\n37 35 98:2 / /b rw - ext3 d rw\n";
        let points: Vec<_> = parse(text).into_iter().map(|mount| mount.mountpoint).collect();
        assert_eq!(points, [Path::new("/a"), Path::new("/b")]);
    }

    #[test]
    fn escapes_are_three_octal_digits_and_nothing_else() {
        let cases: [(&str, &[u8]); 9] = [
            (r"/a\040b\134c\n", br"/a b\c\n"),
            (r"\011\012\043", b"\t\n#"),
            (r"\134040", br"\040"),
            (r"\303\244\377", b"\xC3\xA4\xFF"),
            (r"\400\777", br"\400\777"),
            (r"\+12\-12\ 12", br"\+12\-12\ 12"),
            (r"\089\04", br"\089\04"),
            (r"\0401", b" 1"),
            ("\\", b"\\"),
        ];
        for (field, expected) in cases {
            assert_eq!(unescape(field.as_bytes()), expected, "{field}");
        }
    }

    #[test]
    fn a_mount_point_need_not_be_utf_8() {
        let line = b"1 2 0:3 / /\\134\\012\xFF rw - tmpfs t rw";
        let mount = MountInfo::parse(line).expect("a line");
        assert_eq!(mount.mountpoint.as_os_str().as_bytes(), b"/\\\n\xFF");
    }

    #[test]
    fn this_process_has_a_root_and_a_proc() {
        assert!(top(Path::new("/")).expect("/proc is mounted").is_some());
        assert_eq!(top(Path::new("/proc")).expect("/proc is mounted").map(|mount| mount.fs_type), Some("proc".into()));
        assert_eq!(top(Path::new("/no/such/mount")).expect("/proc is mounted"), None);
    }
}
