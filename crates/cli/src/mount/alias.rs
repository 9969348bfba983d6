//! The names `mount.lightfoot` and `mount.fuse.lightfoot`, which `mount(8)` runs for lines of
//! `/etc/fstab`: their arguments become arguments of `lightfoot mount`.
//!
//! Where it comes from: `mount(8)`, "External helpers": `SOURCE DIRECTORY [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names of the helper.
const NAMES: [&str; 2] = ["mount.lightfoot", "mount.fuse.lightfoot"];

/// Returns the arguments of the command: unchanged, or rewritten if the process was started by a
/// name of the helper.
pub(crate) fn arguments(given: Vec<OsString>) -> Vec<OsString> {
    let name = given.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default().to_owned();
    if NAMES.iter().any(|helper| name == *helper) { rewritten(given) } else { given }
}

fn rewritten(given: Vec<OsString>) -> Vec<OsString> {
    let mut flags: Vec<OsString> = ["lightfoot", "mount", "--daemon", "--no-create"].map(OsString::from).to_vec();
    let mut places = vec![OsString::from("--")];
    let mut given = given.into_iter().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_bytes() {
            b"-t" | b"-N" => drop(given.next()),
            b"-o" => flags.extend([argument].into_iter().chain(given.next())),
            [b'-', b'o', ..] | [b'-', b'-', ..] => flags.push(argument),
            [b'-', letters @ ..] if !letters.is_empty() => flags.extend(letters.iter().filter_map(flag)),
            _ => places.push(argument),
        }
    }
    flags.into_iter().chain(places).collect()
}

/// Returns the long option of a letter. Unknown letters stay, for the parser to refuse.
fn flag(letter: &u8) -> Option<OsString> {
    match letter {
        b'n' => None,
        b'v' => Some("--log-level=info".into()),
        b's' => Some("--sloppy".into()),
        b'f' => Some("--fake".into()),
        other => Some([OsStr::new("-"), OsStr::from_bytes(&[*other])].into_iter().collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_mount_become_arguments_of_lightfoot_mount() {
        let cases: [(&[&str], &[&str]); 4] = [
            (&["lightfoot", "mount", "ram:", "/m"], &["lightfoot", "mount", "ram:", "/m"]),
            (
                &["/sbin/mount.lightfoot", "ram:", "/m", "-n", "-o", "rw,size=1g", "-t", "lightfoot"],
                &["lightfoot", "mount", "--daemon", "--no-create", "-o", "rw,size=1g", "--", "ram:", "/m"],
            ),
            (
                &["mount.fuse.lightfoot", "/a b", "/m", "-sv"],
                &["lightfoot", "mount", "--daemon", "--no-create", "--sloppy", "--log-level=info", "--", "/a b", "/m"],
            ),
            (&["mount.lightfoot", "-x", "-o"], &["lightfoot", "mount", "--daemon", "--no-create", "-x", "-o", "--"]),
        ];
        for (given, expected) in cases {
            assert_eq!(arguments(given.iter().map(OsString::from).collect()), expected);
        }
    }
}
