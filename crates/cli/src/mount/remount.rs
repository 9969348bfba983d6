//! `lightfoot mount -o remount,...`: changes the flags of a mount, as `mount(8)` does.
//!
//! The kernel changes them; the process that serves the mount is not involved. Options that are not flags, which `mount(8)` adds from
//! `/etc/fstab`, stay as they were.

use super::error::ServeError;
use crate::control;
use crate::options::{OptionError, Place, Settings};
use message::Reason;
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_remount};
use std::path::Path;

/// Options that set a flag, or take it back.
const WORDS: [(&str, MountFlags, bool); 11] = [
    ("ro", MountFlags::RDONLY, true),
    ("rw", MountFlags::RDONLY, false),
    ("nosuid", MountFlags::NOSUID, true),
    ("suid", MountFlags::NOSUID, false),
    ("nodev", MountFlags::NODEV, true),
    ("dev", MountFlags::NODEV, false),
    ("noexec", MountFlags::NOEXEC, true),
    ("exec", MountFlags::NOEXEC, false),
    ("noatime", MountFlags::NOATIME, true),
    ("atime", MountFlags::NOATIME, false),
    ("relatime", MountFlags::NOATIME, false),
];

/// Changes the mount on `mountpoint` as `options`, lists of words with commas between them, require.
///
/// # Errors
/// An option that does not exist; no mount of Lightfoot; `EPERM`, `EBUSY` of `mount(2)`.
pub(super) fn run(mountpoint: &Path, options: &[String]) -> Result<(), ServeError> {
    for option in words(options).filter(|option| *option != "remount") {
        // An option of the other kind of source, or one with a value, may be in the line of /etc/fstab.
        if let Err(error @ OptionError::Unknown { .. }) = Settings::new().add(option, Place::CommandLine(None), false) {
            return Err(error.into());
        }
    }
    let found = control::find(mountpoint)?;
    let flags = changed(changed(MountFlags::empty(), found.options.split(',')), words(options));
    // The tree itself was mounted read-only, too, which nothing takes back.
    if !flags.contains(MountFlags::RDONLY) && control::status(&found)?.is_read_only {
        return Err(ServeError::StaysReadOnly(mountpoint.into()));
    }
    mount_remount(&found.mountpoint, flags, c"").map_err(|errno| ServeError::Remount {
        path: mountpoint.into(),
        reason: Reason::from(std::io::Error::from(errno)),
        cure: match errno {
            Errno::PERM => "only root can change a mount",
            Errno::BUSY => "close the files that are open for writing",
            _ => "unmount it and mount it again",
        },
    })
}

fn words(options: &[String]) -> impl Iterator<Item = &str> {
    options.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|option| !option.is_empty())
}

fn changed<'a>(mut flags: MountFlags, options: impl Iterator<Item = &'a str>) -> MountFlags {
    for option in options {
        if let Some(&(_, flag, is_on)) = WORDS.iter().find(|(word, ..)| *word == option) {
            flags.set(flag, is_on);
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_words_change_the_flags_that_there_are() {
        let before = changed(MountFlags::empty(), "rw,nosuid,nodev,relatime".split(','));
        assert_eq!(before, MountFlags::NOSUID | MountFlags::NODEV);
        let after = changed(before, "remount,size=1g,ro,dev,noatime,noexec,exec".split(','));
        assert_eq!(after, MountFlags::NOSUID | MountFlags::RDONLY | MountFlags::NOATIME);
    }
}
