//! Next steps for a user, printed on a terminal when the mount is ready.

use crate::control::ServedMount;
use fuse::message::{shell_word, show};
use rustix::termios::isatty;
use std::ffi::OsStr;
use std::io;
use std::path::Path;

/// Prints it on standard error, if that is a terminal. `program` is the name that this process was started by.
pub(super) fn print(program: &OsStr, mount: &ServedMount) {
    if isatty(io::stderr()) {
        eprint!("{}", text(Path::new(program), mount));
    }
}

fn text(program: &Path, mount: &ServedMount) -> String {
    let what = show(Path::new(&mount.source));
    let (program, shown, at) = (shell_word(program), show(&mount.mountpoint), shell_word(&mount.mountpoint));
    format!(
        "\n{what} is mounted on {shown}. Try in another terminal:\n\
         \x20   ls -la {at}\n\
         \x20   {program} stats {at}\n\
         \x20   {program} top {at}\n\
         To end it, press Ctrl-C here, or run: umount {at}\n\n"
    )
}
