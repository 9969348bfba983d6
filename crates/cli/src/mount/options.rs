//! The words after `-o`, as `mount(8)` and `mount.fuse(8)` have them.
//!
//! # What it is
//! [`Words::parse`] sorts them: what the mount is to be, what is for the source to understand, what means nothing here and
//! is said all the same by `/etc/fstab`. The later of two that contradict one another counts.
//!
//! # What it is not
//! The source's words: it only knows which there are.

use super::failure::Failure;
use crate::source::{Source, SourceError, duration, size};
use fuse::{Checks, MountOptions, Ttls};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// A word that is said alone, and what it sets.
type Switch = (&'static str, fn(&mut MountOptions));

/// Words that are said alone.
const SWITCHES: [Switch; 28] = [
    ("ro", |mount| mount.read_only = true),
    ("rw", |mount| mount.read_only = false),
    ("allow_other", |mount| mount.allow_other = true),
    ("default_permissions", |mount| mount.session.checks = Checks::Kernel),
    ("own_permissions", |mount| mount.session.checks = Checks::Own),
    ("clone_fd", |mount| mount.clone_fd = true),
    ("no_clone_fd", |mount| mount.clone_fd = false),
    // The kernel does one or the other.
    ("writeback", |mount| (mount.session.writeback, mount.session.passthrough) = (true, false)),
    ("nowriteback", |mount| mount.session.writeback = false),
    ("passthrough", |mount| (mount.session.passthrough, mount.session.writeback) = (true, false)),
    ("nopassthrough", |mount| mount.session.passthrough = false),
    ("acl", |mount| mount.acl = true),
    ("noacl", |mount| mount.acl = false),
    ("locks", |mount| mount.session.locks = true),
    ("nolocks", |mount| mount.session.locks = false),
    ("no_open", |mount| mount.session.no_open = true),
    ("open", |mount| mount.session.no_open = false),
    ("suid", |mount| mount.nosuid = false),
    ("nosuid", |mount| mount.nosuid = true),
    ("dev", |mount| mount.nodev = false),
    ("nodev", |mount| mount.nodev = true),
    ("exec", |mount| mount.noexec = false),
    ("noexec", |mount| mount.noexec = true),
    ("atime", |mount| mount.noatime = false),
    ("noatime", |mount| mount.noatime = true),
    ("relatime", |mount| mount.noatime = false),
    ("strictatime", |mount| mount.noatime = false),
    ("nonempty", |mount| mount.nonempty = true),
];

/// Words with values, and how one is said.
const SETTINGS: [(&str, &str); 12] = [
    ("uid", "uid=1000"),
    ("gid", "gid=1000"),
    ("umask", "umask=022"),
    ("entry_timeout", "entry_timeout=0.5"),
    ("attr_timeout", "attr_timeout=0.5"),
    ("negative_timeout", "negative_timeout=0.5"),
    ("ttl", "ttl=500ms"),
    ("threads", "threads=4"),
    ("max_threads", "max_threads=4"),
    ("max_names", "max_names=500000"),
    ("max_write", "max_write=1048576"),
    ("fsname", "fsname=NAME"),
];

/// Words that the source understands, if it is of the kind that has them.
const OF_SOURCES: [&str; 17] = [
    "size",
    "nr_blocks",
    "nr_inodes",
    "mode",
    "casefold",
    "usrquota_block_hardlimit",
    "usrquota_inode_hardlimit",
    "nosymfollow",
    "nodiratime",
    "cache",
    "always",
    "exclusive",
    "watch",
    "nowatch",
    "cross",
    "stay",
    "fds",
];

/// Words that are for who mounts, not for what is mounted.
const OF_OTHERS: [&str; 24] = [
    "defaults",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "_netdev",
    "nofail",
    "async",
    "diratime",
    "norelatime",
    "lazytime",
    "nolazytime",
    "nostrictatime",
    "symfollow",
    "loud",
    "silent",
    "comment",
    "subtype",
    "helper",
    "uhelper",
    "big_writes",
];

/// What was said after `-o`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    /// What the mount is to be, but for times.
    pub(crate) mount: MountOptions,
    /// What is for the source.
    pub(crate) source: Vec<String>,
    ttl: Option<Duration>,
    entry: Option<Duration>,
    attr: Option<Duration>,
    negative: Option<Duration>,
    names: Option<usize>,
}

impl Words {
    /// What `texts` say, each of which may have several words, with commas between them. With `is_sloppy`, words that
    /// nobody knows are left out.
    ///
    /// # Errors
    /// The first word that is not understood.
    pub(crate) fn parse(texts: &[String], is_sloppy: bool) -> Result<Self, Failure> {
        let mount = MountOptions { name: String::new(), ..MountOptions::default() };
        let mut words = Self { mount, ..Self::default() };
        let pieces = texts.iter().flat_map(|text| text.split(',')).map(str::trim);
        for word in pieces.filter(|piece| !piece.is_empty()) {
            match words.add(word) {
                Err(Failure::UnknownWord { .. }) if is_sloppy => tracing::warn!(word, "nobody knows this option"),
                added => added?,
            }
        }
        Ok(words)
    }

    fn add(&mut self, word: &str) -> Result<(), Failure> {
        let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
        if key == "remount" {
            return Err(Failure::Remount);
        }
        let is_flag_of_source = matches!(key, "ro" | "rw") && value.is_none();
        if is_flag_of_source || key == "ttl" || OF_SOURCES.contains(&key) {
            self.source.push(word.into());
        }
        let not_understood = |example: &str| Failure::BadValue { word: word.into(), example: example.into() };
        if let Some((_, set)) = SWITCHES.iter().find(|(switch, _)| *switch == key) {
            if value.is_some() {
                return Err(not_understood(key));
            }
            set(&mut self.mount);
        } else if let Some((_, example)) = SETTINGS.iter().find(|(setting, _)| *setting == key) {
            value.and_then(|value| self.set(key, value)).ok_or_else(|| not_understood(example))?;
        } else if !is_of_others(key) && !OF_SOURCES.contains(&key) {
            return Err(Failure::UnknownWord { word: word.into(), near: near(key) });
        }
        Ok(())
    }

    /// Does what a word of [`SETTINGS`] says; `None`: the value is not understood.
    fn set(&mut self, key: &str, value: &str) -> Option<()> {
        let session = &mut self.mount.session;
        match key {
            "uid" => session.shown.uid = Some(value.parse().ok()?),
            "gid" => session.shown.gid = Some(value.parse().ok()?),
            "umask" => session.shown.umask = Some(octal(value)?),
            "entry_timeout" => self.entry = Some(duration(value)?),
            "attr_timeout" => self.attr = Some(duration(value)?),
            "negative_timeout" => self.negative = Some(duration(value)?),
            "ttl" => self.ttl = Some(duration(value)?),
            "threads" | "max_threads" => self.mount.threads = Some(at_least_one(value)?),
            "max_names" => self.names = Some(at_least_one(value)?),
            "max_write" => self.mount.max_write = u32::try_from(at_least_one(value)?).ok()?,
            "fsname" => self.mount.name = value.into(),
            _ => return None,
        }
        Some(())
    }

    /// How many names the kernel may know.
    pub(crate) fn max_names(&self, otherwise: usize) -> usize {
        self.names.unwrap_or(otherwise)
    }

    /// The times that were said; those that were not are `otherwise`'s.
    pub(crate) fn ttls(&self, otherwise: Ttls) -> Ttls {
        let said = |one: Option<Duration>, otherwise| one.or(self.ttl).unwrap_or(otherwise);
        Ttls {
            entry: said(self.entry, otherwise.entry),
            attr: said(self.attr, otherwise.attr),
            negative: said(self.negative, otherwise.negative),
        }
    }

    /// What `source` names, used as these words say.
    ///
    /// # Errors
    /// If it names nothing, or does not understand its words.
    pub(crate) fn source_of(&self, source: &OsStr) -> Result<Source, SourceError> {
        // A file of mounts has words of its own; that nothing is changed is then the mount's to see to.
        let is_file = Path::new(source).is_file();
        let own = self.source.iter().filter(|word| !is_file || !matches!(word.as_str(), "ro" | "rw"));
        // How long it is believed is for directories to know; a tree in memory is always right.
        let is_ram = source.as_bytes().starts_with(b"ram:");
        let own: Vec<_> = own.filter(|word| !is_ram || !word.starts_with("ttl=")).cloned().collect();
        Source::parse(source, &own)
    }
}

fn is_of_others(key: &str) -> bool {
    OF_OTHERS.contains(&key) || key.starts_with("x-") || key.starts_with("X-")
}

fn at_least_one(value: &str) -> Option<usize> {
    size(value, 0).and_then(|number| usize::try_from(number).ok()).filter(|&number| number > 0)
}

fn octal(value: &str) -> Option<u32> {
    let is_octal = value.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    u32::from_str_radix(value, 8).ok().filter(|mask| is_octal && *mask <= 0o777)
}

/// The words that `key` could have been meant to be, the nearest first; a few.
fn near(key: &str) -> Vec<&'static str> {
    let switches = SWITCHES.iter().map(|(word, _)| *word);
    let all = switches.chain(SETTINGS.iter().map(|(word, _)| *word)).chain(OF_SOURCES).chain(OF_OTHERS);
    let is_part = |word: &str| key.len() > 2 && (word.contains(key) || word.len() > 3 && key.contains(word));
    let far = |word: &str| if is_part(word) { 1 } else { distance(key.as_bytes(), word.as_bytes()) };
    let mut near: Vec<_> = all.map(|word| (far(word), word)).filter(|&(far, word)| far <= 1 + word.len() / 4).collect();
    near.sort_unstable();
    near.into_iter().map(|(_, word)| word).take(4).collect()
}

/// How many letters must be put in, taken out or replaced to make one of the other (Levenshtein).
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Result<Words, Failure> {
        Words::parse(&[text.into()], false)
    }

    #[test]
    fn words_set_what_they_say_and_the_later_counts() {
        let words =
            words("ro,allow_other,threads=3,uid=7,umask=027,nosuid,suid,max_write=128k,noacl").expect("good words");
        let mount = &words.mount;
        assert!(mount.read_only && mount.allow_other && !mount.nosuid && !mount.acl);
        assert_eq!((mount.threads, mount.max_write), (Some(3), 128 << 10));
        assert_eq!((mount.session.shown.uid, mount.session.shown.umask), (Some(7), Some(0o027)));
        assert_eq!(words.source, ["ro"]);
    }

    #[test]
    fn words_of_the_source_and_of_others_are_left_to_them() {
        let words =
            words("defaults,noauto,_netdev,x-systemd.automount,comment=y,size=1g,cache=64m,rw").expect("good words");
        assert_eq!(words.source, ["size=1g", "cache=64m", "rw"]);
    }

    #[test]
    fn a_time_of_its_own_goes_before_the_one_for_all() {
        let words = words("attr_timeout=0,ttl=500ms").expect("good words");
        let expected = Ttls { attr: Duration::ZERO, ..Ttls::all(Duration::from_millis(500)) };
        assert_eq!(words.ttls(Ttls::LONG), expected);
        assert_eq!(Words::default().ttls(Ttls::LONG), Ttls::LONG);
    }

    #[test]
    fn a_word_that_is_none_is_named_with_near_ones() {
        let cases = [
            ("allow_others", "allow_other"),
            ("nosiud", "nosuid"),
            ("entry_timeuot=1", "entry_timeout"),
            ("sizes=1", "size"),
            ("writeback_cache", "writeback"),
        ];
        for (word, near) in cases {
            let text = words(word).expect_err(word).to_string();
            assert!(text.contains(word) && text.contains(near), "{text}");
        }
        assert!(words("quux").expect_err("no word").to_string().contains("quux"));
        assert!(Words::parse(&["quux,ro".into()], true).expect("sloppy").mount.read_only);
    }

    #[test]
    fn a_value_that_is_none_is_named_with_an_example() {
        for (word, example) in [
            ("threads=0", "threads=4"),
            ("threads", "threads=4"),
            ("uid=root", "uid=1000"),
            ("umask=9", "umask=022"),
            ("ttl=soon", "ttl=500ms"),
            ("ro=1", "ro"),
            ("max_write=8g", "max_write="),
        ] {
            let text = words(word).expect_err(word).to_string();
            assert!(text.contains(word) && text.contains(example), "{text}");
        }
    }
}
