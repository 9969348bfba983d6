//! The words of options, as `mount(8)` has them: `size=1g,ro`.
//!
//! # What it is
//! Words and what they set: those of every mount, those of a tree in memory and those of a host directory. The later of
//! two that contradict one another counts. Sizes have the suffixes of `tmpfs(5)`.
//!
//! # What it is not
//! Where the words stand: who asks knows, and says it before the error.

use super::host::HostWords;
use hostfs::{MountPoints, Revalidate};
use lightfoot::{MountFlags, RamLimits, RamOptions, UserLimits};
use std::time::Duration;
use thiserror::Error;
use vfs::Budget;

/// Bytes of a block of `nr_blocks`.
const PAGE_BYTES: u64 = 4096;

/// Flags of every mount: the word, what it sets and what it takes away.
const FLAGS: [(&str, u32, u32); 9] = [
    ("ro", MountFlags::RDONLY.bits(), 0),
    ("rw", 0, MountFlags::RDONLY.bits()),
    ("nosuid", MountFlags::NOSUID.bits(), 0),
    ("nodev", MountFlags::NODEV.bits(), 0),
    ("noexec", MountFlags::NOEXEC.bits(), 0),
    ("nosymfollow", MountFlags::NOSYMFOLLOW.bits(), 0),
    ("noatime", MountFlags::NOATIME.bits(), 0),
    ("nodiratime", MountFlags::NODIRATIME.bits(), 0),
    ("strictatime", MountFlags::STRICTATIME.bits(), 0),
];

const OF_ALL: &str = "ro, rw, nosuid, nodev, noexec, nosymfollow, noatime, nodiratime, strictatime and cache=BYTES";
const OF_RAM: &str = "size=BYTES, nr_blocks=N, nr_inodes=N, mode=OCTAL, uid=N, gid=N, casefold, \
                      usrquota_block_hardlimit=BYTES, usrquota_inode_hardlimit=N";
const OF_HOST: &str = "ttl=TIME, always, exclusive, watch, nowatch, cross, stay, fds=N";

/// What is wrong with a word.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum WordError {
    /// There is no such word.
    #[error("{word:?} is no option of {kind}; there are {own}, {OF_ALL}")]
    Unknown {
        /// What was said.
        word: String,
        /// Of what it was said.
        kind: &'static str,
        /// What could have been said, besides the words of all.
        own: &'static str,
    },

    /// A word that needs a value has none, or one that it cannot have.
    #[error("{word:?} is not understood; say {example}")]
    Value {
        /// What was said.
        word: String,
        /// What could have been said.
        example: &'static str,
    },
}

impl WordError {
    /// Whether it is about a word of `text`.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let (Self::Unknown { word, .. } | Self::Value { word, .. }) = self;
        text.split(',').any(|piece| piece.trim() == word)
    }
}

/// What the words of every mount set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// Flags of the mount.
    pub(crate) flags: MountFlags,
    /// What its cache may hold.
    pub(crate) budget: Budget,
}

/// A word: what stands before the first `=`, and after it.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    key: &'a str,
    value: Option<&'a str>,
}

impl<'a> Word<'a> {
    fn of(text: &'a str) -> Self {
        let (key, value) = text.split_once('=').map_or((text, None), |(key, value)| (key, Some(value)));
        Self { text, key, value }
    }

    /// The value as `read` understands it.
    fn value<T>(&self, read: impl FnOnce(&str) -> Option<T>, example: &'static str) -> Result<T, WordError> {
        let read = self.value.and_then(read);
        read.ok_or_else(|| WordError::Value { word: self.text.into(), example })
    }

    /// That there is none.
    fn alone(&self) -> Result<(), WordError> {
        match self.value {
            None => Ok(()),
            Some(_) => Err(WordError::Value { word: self.text.into(), example: "it without a value" }),
        }
    }
}

/// The words of `texts`, each of which may have several, with commas between them. Empty ones mean nothing.
fn words<'a>(texts: &[&'a str]) -> impl Iterator<Item = Word<'a>> {
    let pieces = texts.iter().flat_map(|text| text.split(',')).map(str::trim);
    pieces.filter(|piece| !piece.is_empty()).map(Word::of).collect::<Vec<_>>().into_iter()
}

/// What `texts` say of a tree in memory, whose root belongs to `owner` unless they say otherwise.
pub(crate) fn of_ram(texts: &[&str], (uid, gid): (u32, u32)) -> Result<(RamOptions, Mounted), WordError> {
    let mut ram = RamOptions { uid, gid, ..RamOptions::default() };
    let mut mounted = Mounted::default();
    for word in words(texts) {
        if !ram_word(&mut ram, &word)? && !mounted.word(&word)? {
            return Err(WordError::Unknown { word: word.text.into(), kind: "a tree in memory", own: OF_RAM });
        }
    }
    Ok((ram, mounted))
}

fn ram_word(ram: &mut RamOptions, word: &Word<'_>) -> Result<bool, WordError> {
    const BYTES: &str = "a number of bytes, with k, m, g or t, or a part of memory, such as size=512m or size=10%";
    const NUMBER: &str = "a number, with k, m or g, such as nr_inodes=10k";
    const ID: &str = "a number, such as uid=1000";
    let limits = &mut ram.limits;
    match word.key {
        "size" => limits.bytes = no_limit_if_zero(word.value(|value| size(value, memory()), BYTES)?),
        "nr_blocks" => {
            let blocks = word.value(|value| size(value, 0)?.checked_mul(PAGE_BYTES), NUMBER)?;
            limits.bytes = no_limit_if_zero(blocks);
        }
        "nr_inodes" => limits.inodes = no_limit_if_zero(word.value(number, NUMBER)?),
        "usrquota_block_hardlimit" => per_user(limits).bytes = Some(word.value(|value| size(value, memory()), BYTES)?),
        "usrquota_inode_hardlimit" => per_user(limits).inodes = Some(word.value(number, NUMBER)?),
        "mode" => ram.mode = word.value(mode, "permission bits in octal, such as mode=0755")?,
        "uid" => ram.uid = word.value(|value| value.parse().ok(), ID)?,
        "gid" => ram.gid = word.value(|value| value.parse().ok(), ID)?,
        "casefold" => {
            word.alone()?;
            ram.case_insensitive = true;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// As `tmpfs(5)` has it.
fn no_limit_if_zero(limit: u64) -> Option<u64> {
    (limit != 0).then_some(limit)
}

fn per_user(limits: &mut RamLimits) -> &mut UserLimits {
    limits.per_user.get_or_insert_default()
}

/// What `texts` say of a host directory.
pub(crate) fn of_host(texts: &[&str]) -> Result<(HostWords, Mounted), WordError> {
    let mut host = HostWords::default();
    let mut mounted = Mounted::default();
    for word in words(texts) {
        if !host_word(&mut host, &word)? && !mounted.word(&word)? {
            return Err(WordError::Unknown { word: word.text.into(), kind: "a host directory", own: OF_HOST });
        }
    }
    host.read_only = mounted.flags.has(MountFlags::RDONLY);
    Ok((host, mounted))
}

fn host_word(host: &mut HostWords, word: &Word<'_>) -> Result<bool, WordError> {
    match word.key {
        "ttl" => {
            let ttl = word.value(duration, "a time with ms, s, m or h, such as ttl=500ms")?;
            host.trust = Some(Revalidate::Ttl(ttl));
        }
        "fds" => {
            let at_least_one = |value: &str| value.parse().ok().filter(|&fds| fds > 0);
            host.max_fds = Some(word.value(at_least_one, "a number of files, such as fds=4096")?);
        }
        key => {
            match key {
                "always" => host.trust = Some(Revalidate::Always),
                "exclusive" => host.trust = Some(Revalidate::Exclusive),
                "watch" => host.watch = Some(true),
                "nowatch" => host.watch = Some(false),
                "cross" => host.mount_points = Some(MountPoints::Cross),
                "stay" => host.mount_points = Some(MountPoints::Stay),
                _ => return Ok(false),
            }
            word.alone()?;
        }
    }
    Ok(true)
}

impl Mounted {
    /// Does what the word says, if it is one of every mount's.
    fn word(&mut self, word: &Word<'_>) -> Result<bool, WordError> {
        if word.key == "cache" {
            let bytes = word.value(|value| size(value, memory()), "a number of bytes, such as cache=64m")?;
            self.budget = budget(bytes);
            return Ok(true);
        }
        let Some((_, set, clear)) = FLAGS.iter().find(|(key, _, _)| *key == word.key) else { return Ok(false) };
        word.alone()?;
        let bits = (self.flags.bits() | set) & !clear;
        self.flags = MountFlags::from_bits(bits).unwrap_or_default();
        Ok(true)
    }
}

/// A cache of so many bytes: as the default, 8 of 10 parts for entries, one for negative ones and one for listings.
fn budget(bytes: u64) -> Budget {
    let part = bytes / 10;
    Budget { entries: bytes - 2 * part, negatives: part, listings: part }
}

/// A number with a suffix: `k`, `m`, `g`, `t` of 1024, or `%` of `whole`, if that is not 0.
pub(crate) fn size(text: &str, whole: u64) -> Option<u64> {
    let (digits, suffix) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = digits.parse().ok()?;
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "%" if whole > 0 => return u64::try_from(u128::from(whole) * u128::from(number) / 100).ok(),
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

fn number(text: &str) -> Option<u64> {
    size(text, 0)
}

fn mode(text: &str) -> Option<u32> {
    let is_octal = text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    u32::from_str_radix(text, 8).ok().filter(|mode| is_octal && *mode <= 0o7777)
}

/// A time: a number, which may have a point, of `us`, `ms`, `s`, `m` or `h`; without one of them, of seconds.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (number, unit) = text.split_at(text.find(|letter| !is_number(letter)).unwrap_or(text.len()));
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

/// Bytes of memory that this machine has.
fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_tmpfs() {
        let cases = [
            ("0", Some(0)),
            ("1", Some(1)),
            ("4k", Some(4096)),
            ("2M", Some(2 << 20)),
            ("1g", Some(1 << 30)),
            ("3t", Some(3 << 40)),
            ("50%", Some(500)),
            ("100%", Some(1000)),
            ("16777215t", Some(16_777_215 << 40)),
            ("16777216t", None),
            ("18446744073709551616", None),
            ("", None),
            ("k", None),
            ("-1", None),
            ("+1", None),
            ("1.5g", None),
            ("1kb", None),
            ("1 k", None),
            ("%", None),
        ];
        for (text, expected) in cases {
            assert_eq!(size(text, 1000), expected, "{text}");
        }
        assert_eq!(size("50%", 0), None, "a part of nothing that is known");
    }

    #[test]
    fn times_have_units() {
        let cases = [
            ("1s", Some(Duration::from_secs(1))),
            ("1", Some(Duration::from_secs(1))),
            ("0", Some(Duration::ZERO)),
            ("500ms", Some(Duration::from_millis(500))),
            ("0.25s", Some(Duration::from_millis(250))),
            ("2m", Some(Duration::from_secs(120))),
            ("1h", Some(Duration::from_secs(3600))),
            ("7us", Some(Duration::from_micros(7))),
            ("", None),
            ("s", None),
            ("1.2.3s", None),
            ("-1s", None),
            ("inf", None),
            ("1d", None),
            ("9999999999999999999999999s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn a_tree_in_memory_is_what_its_words_say() {
        let (ram, mounted) = of_ram(&["size=1m,nr_inodes=2k", "mode=1777,gid=7,ro", ""], (5, 6)).expect("good words");
        assert_eq!((ram.limits.bytes, ram.limits.inodes), (Some(1 << 20), Some(2048)));
        assert_eq!((ram.mode, ram.uid, ram.gid), (0o1777, 5, 7));
        assert_eq!((mounted.flags, mounted.budget), (MountFlags::RDONLY, Budget::default()));
        let (ram, mounted) = of_ram(&["size=0,nr_inodes=0,ro,rw,nosuid"], (0, 0)).expect("good words");
        assert_eq!(ram.limits, RamLimits::none());
        assert_eq!(mounted.flags, MountFlags::NOSUID);
        let (ram, _) = of_ram(&["nr_blocks=4,casefold,usrquota_inode_hardlimit=3"], (0, 0)).expect("good words");
        assert_eq!((ram.limits.bytes, ram.case_insensitive), (Some(16384), true));
        assert_eq!(ram.limits.per_user, Some(UserLimits { bytes: None, inodes: Some(3) }));
    }

    #[test]
    fn a_host_directory_is_what_its_words_say() {
        let (host, mounted) = of_host(&["ro,ttl=1s,fds=9,stay,nowatch,cache=10m"]).expect("good words");
        let expected = HostWords {
            trust: Some(Revalidate::Ttl(Duration::from_secs(1))),
            watch: Some(false),
            mount_points: Some(MountPoints::Stay),
            max_fds: Some(9),
            read_only: true,
        };
        assert_eq!(host, expected);
        assert_eq!(mounted.budget, Budget { entries: 8 << 20, negatives: 1 << 20, listings: 1 << 20 });
        let (host, _) = of_host(&["ttl=1s,always,stay,cross,ro,rw"]).expect("good words");
        assert_eq!(
            host,
            HostWords {
                trust: Some(Revalidate::Always),
                mount_points: Some(MountPoints::Cross),
                ..HostWords::default()
            },
            "the later word counts"
        );
    }

    #[test]
    fn a_bad_word_is_named_with_what_could_be_said() {
        let of_ram = |text: &str| of_ram(&[text], (0, 0)).expect_err(text).to_string();
        let of_host = |text: &str| of_host(&[text]).expect_err(text).to_string();
        let cases = [
            (of_ram("ttl=1s"), &["\"ttl=1s\"", "a tree in memory", "nr_inodes=N", "noexec"][..]),
            (of_ram("size"), &["\"size\"", "size=512m"]),
            (of_ram("size=lots"), &["\"size=lots\"", "size=10%"]),
            (of_ram("mode=999"), &["\"mode=999\"", "octal"]),
            (of_ram("mode=+7"), &["\"mode=+7\"", "octal"]),
            (of_ram("uid=root"), &["\"uid=root\"", "uid=1000"]),
            (of_ram("ro=1"), &["\"ro=1\"", "without a value"]),
            (of_ram("casefold=1"), &["\"casefold=1\"", "without a value"]),
            (of_host("size=1g"), &["\"size=1g\"", "a host directory", "ttl=TIME", "cache=BYTES"]),
            (of_host("fds=0"), &["\"fds=0\"", "fds=4096"]),
            (of_host("always=1"), &["\"always=1\"", "without a value"]),
            (of_host("cache=x"), &["\"cache=x\"", "cache=64m"]),
        ];
        for (text, parts) in cases {
            for part in parts {
                assert!(text.contains(part), "{part} is not in {text}");
            }
        }
    }
}
