//! The name `mount.lightfoot`, by which `mount(8)` calls for `/etc/fstab`: its arguments become those of `lightfoot mount`.
//!
//! Where it comes from: `mount(8)`, "External helpers": `SOURCE DIRECTORY [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Names that mean it.
const NAMES: [&str; 2] = ["mount.lightfoot", "mount.fuse.lightfoot"];

/// The arguments of the command, as they are or as the helper's name makes them.
pub(crate) fn arguments(said: Vec<OsString>) -> Vec<OsString> {
    let name = said.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default().to_owned();
    if NAMES.iter().any(|helper| name == *helper) { rewritten(said) } else { said }
}

fn rewritten(said: Vec<OsString>) -> Vec<OsString> {
    let mut flags: Vec<OsString> = vec!["lightfoot".into(), "mount".into(), "--daemon".into()];
    let mut places = vec![OsString::from("--")];
    let mut said = said.into_iter().skip(1);
    while let Some(word) = said.next() {
        match word.as_bytes() {
            b"-t" | b"-N" => drop(said.next()),
            b"-o" => flags.extend([word].into_iter().chain(said.next())),
            [b'-', b'o', ..] | [b'-', b'-', ..] => flags.push(word),
            [b'-', letters @ ..] if !letters.is_empty() => flags.extend(letters.iter().filter_map(flag)),
            _ => places.push(word),
        }
    }
    flags.into_iter().chain(places).collect()
}

/// What a letter means to us; what it does not is left for the command line to refuse.
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
    fn what_mount_says_becomes_what_we_say() {
        let cases: [(&[&str], &[&str]); 4] = [
            (&["lightfoot", "mount", "ram:", "/m"], &["lightfoot", "mount", "ram:", "/m"]),
            (
                &["/sbin/mount.lightfoot", "ram:", "/m", "-n", "-o", "rw,size=1g", "-t", "lightfoot"],
                &["lightfoot", "mount", "--daemon", "-o", "rw,size=1g", "--", "ram:", "/m"],
            ),
            (
                &["mount.fuse.lightfoot", "/a b", "/m", "-sv"],
                &["lightfoot", "mount", "--daemon", "--sloppy", "--log-level=info", "--", "/a b", "/m"],
            ),
            (&["mount.lightfoot", "-x", "-o"], &["lightfoot", "mount", "--daemon", "-x", "-o", "--"]),
        ];
        for (said, meant) in cases {
            assert_eq!(arguments(said.iter().map(OsString::from).collect()), meant);
        }
    }
}
