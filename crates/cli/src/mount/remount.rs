//! `lightfoot mount -o remount,...`: changes the flags of a mount, as `mount(8)` does.
//!
//! The kernel changes them; the process that serves the mount is not involved. Options that are not flags, which `mount(8)` adds from
//! `/etc/fstab`, have no effect.

use super::error::ServeError;
use crate::control;
use crate::options::{OptionError, Owner, Place, Settings, split};
use fuse::MountOptions;
use lightfoot::MountFlags;
use rustix::io::Errno;
use std::path::Path;

/// The word that makes a list of options one for a mount that exists.
const REMOUNT: &str = "remount";

/// Returns whether the options are for a mount that exists.
pub(super) fn is_requested(options: &[String]) -> bool {
    options.iter().flat_map(|list| split(list)).any(|option| option == REMOUNT)
}

/// Changes the mount on `mountpoint` as `options`, lists of words with commas between them, require.
///
/// # Errors
/// An option that does not exist; no mount of Lightfoot; `EPERM`, `EBUSY` of `mount(2)`.
pub(super) fn run(mountpoint: &Path, options: &[String]) -> Result<(), ServeError> {
    let found = control::find(mountpoint)?;
    let changed = changed(&found.options, options)?;
    // The tree itself was mounted read-only, too. The kernel cannot change that.
    if !changed.read_only && control::status(&found)?.is_read_only {
        return Err(ServeError::StaysReadOnly(mountpoint.into()));
    }
    let pinned = found.pin().map_err(std::io::Error::from);
    pinned.and_then(|pinned| fuse::remount(&pinned.path(), &changed)).map_err(|error| ServeError::Remount {
        path: mountpoint.into(),
        cure: match Errno::from_io_error(&error) {
            Some(Errno::PERM) => "only root can change a mount",
            Some(Errno::BUSY) => "close the files that are open for writing",
            _ => "unmount it and mount it again",
        },
        reason: error.into(),
    })
}

/// Returns the flags of a mount that has `flags`, after `options`.
fn changed(flags: &str, options: &[String]) -> Result<MountOptions, OptionError> {
    const HERE: Place = Place::CommandLine(Some(Owner::Ram));
    let mut settings = Settings::new();
    // The kernel lists only the flags that restrict the mount.
    for flag in ["suid", "dev"].into_iter().chain(split(flags)) {
        // Some flags of the kernel are not options.
        let _ = settings.add(flag, HERE, false);
    }
    for option in options.iter().flat_map(|list| split(list)).filter(|option| *option != REMOUNT) {
        // The line of /etc/fstab may have an option that another kind of source has.
        if let Err(error @ OptionError::Unknown { .. }) = settings.add(option, HERE, false) {
            return Err(error);
        }
    }
    settings.mount.nosymfollow = settings.has(MountFlags::NOSYMFOLLOW);
    Ok(settings.mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(flags: &str, options: &str) -> [bool; 6] {
        let MountOptions { read_only, nosuid, nodev, noexec, noatime, nosymfollow, .. } =
            changed(flags, &[options.into()]).expect(options);
        [read_only, nosuid, nodev, noexec, noatime, nosymfollow]
    }

    #[test]
    fn later_words_change_the_flags_that_there_are() {
        assert_eq!(after("rw,nosuid,nodev,relatime", "remount"), [false, true, true, false, false, false]);
        let options = "remount,size=1g,ro,dev,noatime,noexec,exec";
        assert_eq!(after("rw,nosuid,nodev,relatime", options), [true, true, false, false, true, false]);
        assert_eq!(after("ro,noexec,noatime,nosymfollow", "remount,rw"), [false, false, false, true, true, true]);
        assert_eq!(after("rw,noatime,nosymfollow", "remount,atime,symfollow"), [false; 6]);
    }
}
