//! Options as `mount(8)` writes them: `ro,size=1g`. Of two that contradict each other, the later one holds.
//!
//! # What it is
//! One table of all options ([`table`]), a parser that sets [`Settings`] from it, and the list that `--help` and the documents
//! show ([`listing`]).
//!
//! # What it is not
//! The meaning of a setting: that belongs to the mount and to the sources, which read [`Settings`].

mod listing;
mod row;
mod table;
mod values;

pub(crate) use listing::help;
pub(crate) use row::Owner;
pub(crate) use values::{number, size_of_memory};

use fuse::{Checks, MountOptions, Ttls};
use hostfs::{HostAcls, MountPoints, Ownership, Revalidate};
use lightfoot::{MountFlags, RamLimits, RamOptions, UserLimits};
use objectfs::ObjectOptions;
use row::Form;
use std::fmt;
use std::time::Duration;
use table::rows;
use thiserror::Error;
use vfs::{Budget, Foreign};

/// Options for other programs that `/etc/fstab` may have, besides those that begin with `x-`.
const IGNORED: &str = "defaults auto noauto user nouser users owner group _netdev nofail async lazytime nolazytime loud silent \
                       comment subtype helper uhelper big_writes";

/// Options of libfuse that are not offered, and their replacements.
const NOT_OFFERED: [(&str, &str); 1] = [(
    "allow_root",
    "the kernel lets in nobody else or everybody (use allow_other, on a mount point in a directory of mode 0700: only you and \
     root get there)",
)];

/// The values that options set. Begins with [`Settings::new`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// The mount, except for the name if none was given, and for the times.
    pub(crate) mount: MountOptions,
    /// A tree in memory.
    pub(crate) ram: RamOptions,
    /// A directory.
    pub(crate) host: HostSettings,
    /// An object store.
    pub(crate) objects: ObjectOptions,
    /// The URL of the server of the object store.
    pub(crate) endpoint: Option<String>,
    pub(crate) region: Option<String>,
    /// Flags of the source's mount.
    pub(crate) flags: MountFlags,
    /// The limit of the source's caches.
    pub(crate) budget: Budget,
    ttl: Option<Duration>,
    entry_timeout: Option<Duration>,
    attr_timeout: Option<Duration>,
    negative_timeout: Option<Duration>,
    max_names: Option<usize>,
    writeback: Option<bool>,
    checks: Option<Checks>,
    /// `NOATIME`, `STRICTATIME` or neither, if an option decides.
    pub(crate) access_times: Option<MountFlags>,
}

/// The values that options set for a directory; `None`: the default of `hostfs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostSettings {
    /// How long entries read from the directory are cached.
    pub(crate) policy: Option<Revalidate>,
    /// Whether inotify reports changes.
    pub(crate) watch: Option<bool>,
    /// Whether mount points below the directory are shown.
    pub(crate) mount_points: Option<MountPoints>,
    /// The most files that are kept open.
    pub(crate) max_fds: Option<usize>,
    /// With whose rights the directory is changed.
    pub(crate) ownership: Option<Ownership>,
    /// How the ACLs of the directory are used.
    pub(crate) acls: Option<HostAcls>,
    /// How long a call may take; zero: without a limit.
    pub(crate) call_timeout: Option<Duration>,
}

/// The place of a list of options, which decides which are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// After `-o`, for a source of this kind; `None`: a file of mounts, whose sources have their own lists.
    CommandLine(Option<Owner>),
    /// In `ram:LIST` or in a file of mounts, for a source of this kind.
    Source(Owner),
}

/// Why an option cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum OptionError {
    /// The option does not exist.
    #[error("unknown option {:?} ({}`lightfoot mount --help` lists all options)", Foreign::of(.option), did_you_mean(.near))]
    Unknown { option: String, near: Vec<&'static str> },

    /// The option exists, but is not valid here.
    #[error("option {:?}: not valid for {place} (only for {})", Foreign::of(.option), list(.valid))]
    Misplaced { option: String, place: Place, valid: &'static [Owner] },

    /// Other programs have the option, and this program does not offer it.
    #[error("option {:?}: {why}", Foreign::of(.option))]
    NotOffered { option: String, why: &'static str },

    /// The value of the option cannot be used, is missing, or must not be there.
    #[error("invalid option {:?} (use {usage})", Foreign::of(.option))]
    Value { option: String, usage: String },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine(None) => f.write_str("a file of mounts"),
            Self::CommandLine(Some(owner)) | Self::Source(owner) => owner.fmt(f),
        }
    }
}

impl Place {
    fn allows(self, owner: Owner) -> bool {
        match self {
            Self::CommandLine(source) => owner == Owner::Mount || Some(owner) == source,
            Self::Source(source) => owner == source,
        }
    }
}

impl Settings {
    /// Without any option. A tree in memory belongs to the user who runs this, as a tmpfs does.
    pub(crate) fn new() -> Self {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Self {
            mount: MountOptions { name: String::new(), ..MountOptions::default() },
            ram: RamOptions { uid, gid, limits: RamLimits::tmpfs(), ..RamOptions::default() },
            ..Self::default()
        }
    }

    /// Sets the options of `list`, which have commas between them. With `is_sloppy`, unknown options are ignored.
    ///
    /// # Errors
    /// The first option that cannot be used.
    pub(crate) fn add(&mut self, list: &str, place: Place, is_sloppy: bool) -> Result<(), OptionError> {
        for option in split(list) {
            match self.set(option, place) {
                Err(OptionError::Unknown { .. }) if is_sloppy => {
                    tracing::warn!(option = Foreign::of(option).to_string(), "unknown option ignored")
                }
                set => set?,
            }
        }
        Ok(())
    }

    fn set(&mut self, option: &str, place: Place) -> Result<(), OptionError> {
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        let is_on_command_line = matches!(place, Place::CommandLine(_));
        if is_on_command_line && is_ignored(name) {
            return Ok(());
        }
        let named: Vec<_> = rows().filter(|(_, row)| row.has_name(name)).collect();
        let Some((_, row)) = named.iter().find(|(valid, _)| valid.iter().any(|&owner| place.allows(owner))) else {
            let not_offered = NOT_OFFERED.iter().find(|(known, _)| *known == name);
            return Err(match named.first() {
                None if let Some((_, why)) = not_offered => OptionError::NotOffered { option: option.into(), why },
                Some((valid, _)) => OptionError::Misplaced { option: option.into(), place, valid },
                None => OptionError::Unknown { option: option.into(), near: near(name) },
            });
        };
        let wrong = |usage| OptionError::Value { option: option.into(), usage };
        match (&row.form, value) {
            (Form::Switch { set, .. }, None) => set(self, name == row.name),
            (Form::Switch { off, .. }, Some(_)) => {
                return Err(wrong(if name == row.name { row.name } else { off }.into()));
            }
            (Form::Value { set, shape, example }, value) => {
                let usage = || format!("{name}={shape}, such as {example}");
                value.and_then(|value| set(self, value)).ok_or_else(|| wrong(usage()))?;
            }
        }
        Ok(())
    }

    fn flag(&mut self, flag: MountFlags, is_on: bool) {
        let bits = if is_on { self.flags.bits() | flag.bits() } else { self.flags.bits() & !flag.bits() };
        self.flags = MountFlags::from_bits(bits).unwrap_or_default();
    }

    pub(crate) fn has(&self, flag: MountFlags) -> bool {
        self.flags.bits() & flag.bits() != 0
    }

    /// Sets `NOATIME`, `STRICTATIME` or neither.
    pub(crate) fn set_access_times(&mut self, flag: MountFlags) {
        self.access_times = Some(flag);
        for one in [MountFlags::NOATIME, MountFlags::STRICTATIME] {
            self.flag(one, flag == one);
        }
    }

    fn per_user(&mut self) -> &mut UserLimits {
        self.ram.limits.per_user.get_or_insert_default()
    }

    /// Returns the number of names that the kernel may cache.
    pub(crate) fn max_names(&self, default: usize) -> usize {
        self.max_names.unwrap_or(default)
    }

    /// Returns whether the kernel collects writes. Without an option, if the tree `is_in_memory`:
    /// the data are lost with the process anyway.
    pub(crate) fn writeback(&self, is_in_memory: bool) -> bool {
        self.writeback.unwrap_or(is_in_memory && !self.mount.session.no_open)
    }

    /// Returns the side that checks permissions.
    pub(crate) fn checks(&self) -> Checks {
        self.checks.unwrap_or_else(|| fuse::default_checks(&self.mount))
    }

    /// Halves the option `ttl`, for a tree that is an object store alone: the store itself uses an
    /// answer for the other half of the time.
    pub(crate) fn share_ttl(&mut self) {
        self.ttl = self.ttl.map(|ttl| ttl / 2);
    }

    /// Returns how long the kernel may cache.
    pub(crate) fn ttls(&self, default: Ttls) -> Ttls {
        let of = |one: Option<Duration>, default| one.or(self.ttl).unwrap_or(default);
        Ttls {
            entry: of(self.entry_timeout, default.entry),
            attr: of(self.attr_timeout, default.attr),
            negative: of(self.negative_timeout, default.negative),
        }
    }
}

/// Returns the options of a list. Empty ones mean nothing.
pub(crate) fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|option| !option.is_empty())
}

fn is_ignored(name: &str) -> bool {
    IGNORED.split(' ').any(|ignored| ignored == name) || name.starts_with("x-") || name.starts_with("X-")
}

/// Returns the names that `name` could be a misspelling of, the most similar first; a few.
fn near(name: &str) -> Vec<&'static str> {
    let is_part = |known: &str| name.len() > 2 && (known.contains(name) || known.len() > 3 && name.contains(known));
    let far = |known: &str| if is_part(known) { 1 } else { distance(name.as_bytes(), known.as_bytes()) };
    let all = rows().flat_map(|(_, row)| row.names()).chain(IGNORED.split(' '));
    let near = all.map(|known| (far(known), known.len().abs_diff(name.len()), known));
    let mut near: Vec<_> = near.filter(|&(far, _, known)| far <= 1 + known.len() / 4).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().map(|(_, _, known)| known).take(3).collect()
}

/// Returns the number of letters to insert, delete or replace to make one of the other
/// (Levenshtein).
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

fn did_you_mean(near: &[&str]) -> String {
    if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(" or ")) }
}

fn list(valid: &[Owner]) -> String {
    valid.iter().map(Owner::to_string).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON_RAM: Place = Place::CommandLine(Some(Owner::Ram));
    const ON_DIRECTORY: Place = Place::CommandLine(Some(Owner::Directory));
    const IN_RAM: Place = Place::Source(Owner::Ram);
    const IN_DIRECTORY: Place = Place::Source(Owner::Directory);

    fn parse(list: &str, place: Place) -> Result<Settings, OptionError> {
        let mut settings = Settings::new();
        settings.add(list, place, false).map(|()| settings)
    }

    fn good(list: &str, place: Place) -> Settings {
        parse(list, place).expect(list)
    }

    #[test]
    fn options_of_one_owner_have_different_names() {
        for owner in [Owner::Mount, Owner::Ram, Owner::Directory, Owner::Objects] {
            let of_owner = rows().filter(|(valid, _)| valid.contains(&owner));
            let mut names: Vec<_> = of_owner.flat_map(|(_, row)| row.names()).collect();
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count, "{owner}");
        }
    }

    #[test]
    fn every_example_can_be_used() {
        for (valid, row) in rows() {
            let Form::Value { example, .. } = row.form else { continue };
            for example in example.split(" or ") {
                let place = match valid[0] {
                    Owner::Mount => Place::CommandLine(None),
                    owner => Place::Source(owner),
                };
                good(example, place);
            }
        }
    }

    #[test]
    fn options_set_the_mount_and_the_later_one_holds() {
        let list = "ro,allow_other,threads=3,uid=7,umask=027,nosuid,suid,max_write=128k,noacl,own_permissions";
        let settings = good(list, ON_RAM);
        let mount = &settings.mount;
        assert!(mount.read_only && mount.allow_other && !mount.nosuid && !mount.session.acl);
        // The kernel's mount ignores both unless it must not; the options below do not.
        assert!(mount.nodev && Settings::new().mount.nosuid && Settings::new().flags == MountFlags::default());
        assert_eq!((mount.threads, mount.max_write, settings.checks()), (Some(3), 128 << 10, Checks::Own));
        assert_eq!((mount.session.shown.uid, mount.session.shown.umask), (Some(7), Some(0o027)));
        assert_eq!((settings.flags, settings.ram.uid), (MountFlags::RDONLY, Settings::new().ram.uid));
        let both = good("writeback,passthrough", ON_DIRECTORY);
        assert!(both.mount.session.passthrough && !both.writeback(true));
        assert_eq!(good("noatime,strictatime", IN_RAM).flags, MountFlags::STRICTATIME);
        assert_eq!(good("strictatime,noatime", IN_RAM).flags, MountFlags::NOATIME);
        good("defaults,noauto,_netdev,x-systemd.automount,comment=y,size=1g,cache=64m,rw", ON_RAM);
    }

    #[test]
    fn a_tree_in_memory_has_writeback_unless_an_option_decides() {
        let cases =
            [("", true, false), ("writeback", true, true), ("nowriteback", false, false), ("no_open", false, false)];
        for (list, in_memory, on_disk) in cases {
            let settings = good(list, Place::CommandLine(None));
            assert_eq!((settings.writeback(true), settings.writeback(false)), (in_memory, on_disk), "{list}");
        }
        assert!(!good("writeback,passthrough,nopassthrough", ON_DIRECTORY).writeback(true));
    }

    #[test]
    fn a_single_timeout_takes_precedence_over_ttl() {
        let settings = good("attr_timeout=0,ttl=500ms", ON_RAM);
        let expected = Ttls { attr: Duration::ZERO, ..Ttls::all(Duration::from_millis(500)) };
        assert_eq!(settings.ttls(Ttls::LONG), expected);
        assert_eq!(Settings::new().ttls(Ttls::LONG), Ttls::LONG);
    }

    #[test]
    fn options_set_a_tree_in_memory() {
        let ram = |list| good(list, IN_RAM).ram;
        let settings = good("size=1m,nr_inodes=2k,mode=1777,gid=7,ro,", IN_RAM);
        assert_eq!((settings.ram.limits.bytes, settings.ram.limits.inodes), (Some(1 << 20), Some(2048)));
        assert_eq!((settings.ram.mode, settings.ram.gid), (0o1777, 7));
        assert_eq!((settings.flags, settings.budget), (MountFlags::RDONLY, Budget::default()));
        assert_eq!(ram("size=0,nr_inodes=0").limits, RamLimits::none());
        assert_eq!(good("ro,rw,nosuid", IN_RAM).flags, MountFlags::NOSUID);
        let ram = ram("nr_blocks=4,casefold,usrquota_inode_hardlimit=3");
        assert_eq!((ram.limits.bytes, ram.case_insensitive), (Some(16384), true));
        assert_eq!(ram.limits.per_user, Some(UserLimits { bytes: None, inodes: Some(3) }));
    }

    #[test]
    fn options_set_a_directory() {
        let settings = good("ro,ttl=1s,fds=9,stay,nowatch,cache=10m,call_timeout=1.5", IN_DIRECTORY);
        let expected = HostSettings {
            policy: Some(Revalidate::Ttl(Duration::from_secs(1))),
            watch: Some(false),
            mount_points: Some(MountPoints::Stay),
            max_fds: Some(9),
            ownership: None,
            acls: None,
            call_timeout: Some(Duration::from_millis(1500)),
        };
        assert_eq!((settings.host, settings.flags), (expected, MountFlags::RDONLY));
        assert_eq!(settings.budget, Budget { entries: 8 << 20, negatives: 1 << 20, listings: 1 << 20 });
        let host = good("ttl=1s,always,stay,cross", ON_DIRECTORY).host;
        assert_eq!((host.policy, host.mount_points), (Some(Revalidate::Always), Some(MountPoints::Cross)));
    }

    #[test]
    fn an_option_that_cannot_be_used_is_named_with_one_that_can() {
        let cases = [
            (ON_RAM, "allow_others", "unknown option \"allow_others\" (did you mean allow_other? "),
            (ON_RAM, "nosiud", "did you mean nosuid"),
            (ON_RAM, "entry_timeuot=1", "did you mean entry_timeout"),
            (ON_RAM, "sizes=1", "did you mean size"),
            (ON_RAM, "writeback_cache", "did you mean writeback"),
            (ON_RAM, "quux", "unknown option \"quux\" (`lightfoot mount --help` lists"),
            (ON_RAM, "threads=0", "invalid option \"threads=0\" (use threads=N, such as threads=4)"),
            (ON_RAM, "threads", "\"threads\" (use threads=N, such as threads=4)"),
            (ON_RAM, "uid=no such user", "uid=1000"),
            (ON_RAM, "umask=9", "umask=022"),
            (ON_RAM, "ttl=soon", "ttl=500ms"),
            (ON_RAM, "ro=1", "(use ro)"),
            (ON_RAM, "nowriteback=1", "(use nowriteback)"),
            (ON_RAM, "allow_root", "in a directory of mode 0700"),
            (ON_RAM, "max_write=8g", "max_write=128k"),
            (ON_RAM, "exclusive", "option \"exclusive\": not valid for ram: (only for a directory)"),
            (ON_DIRECTORY, "size=1g", "option \"size=1g\": not valid for a directory (only for ram:)"),
            (ON_DIRECTORY, "fds=0", "fds=4096"),
            (ON_DIRECTORY, "call_timeout=long", "(use call_timeout=TIME, such as call_timeout=30s)"),
            (ON_RAM, "call_timeout=1s", "not valid for ram: (only for a directory)"),
            (Place::CommandLine(Some(Owner::Objects)), "call_timeout=1s", "not valid for s3: (only for a directory)"),
            (ON_DIRECTORY, "always=1", "(use always)"),
            (ON_DIRECTORY, "cache=x", "cache=64m"),
            (Place::CommandLine(None), "cache=1m", "not valid for a file of mounts (only for ram: and a directory)"),
            (IN_RAM, "ttl=1s", "not valid for ram: (only for the mount, after -o and a directory and s3:)"),
            (IN_RAM, "size", "size=512m"),
            (IN_RAM, "size=lots", "size=10%"),
            (IN_RAM, "mode=999", "mode=0755"),
            (IN_RAM, "threads=3", "not valid for ram: (only for the mount, after -o)"),
            (IN_RAM, "defaults", "unknown option"),
        ];
        for (place, list, part) in cases {
            let error = parse(list, place).expect_err(list);
            assert!(error.to_string().contains(part), "{error}: {part}");
        }
    }

    #[test]
    fn sloppy_ignores_unknown_options_and_no_others() {
        let mut settings = Settings::new();
        settings.add("quux,ro", ON_RAM, true).expect("sloppy");
        assert!(settings.mount.read_only);
        assert!(settings.add("threads=0", ON_RAM, true).is_err());
    }
}
