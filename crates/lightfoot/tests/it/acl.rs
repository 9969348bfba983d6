//! Differential tests of ACLs and of the rules of extended attributes against the running kernel, on its tmpfs.
//!
//! Random ACLs are set on a file of the kernel's; threads without root's credentials check their access with it.
//! Needs root, and `user.` attributes on tmpfs (Linux 6.6): without them a test prints that and ends.

use crate::answers::{number, raw};
use crate::namespace::rng::Rng;
use rustix::fs::{self as sys, Access, AtFlags, CWD, FileType, Gid, Mode, Uid, XattrFlags};
use rustix::thread as sys_thread;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::TempDir;
use vfs::xattr::{XattrUse, acl_to_set, may_get_acl, may_use};
use vfs::{Acl, AclKind, Attr, Credentials, Errno};

/// Ids that files, entries and callers are made of: few, so that they meet.
const IDS: [u32; 5] = [1, 5, 6, 7, 70_000];

/// A directory of the kernel's tmpfs, removed when dropped.
struct Place(TempDir);

impl Place {
    /// `None` if the kernel's answers cannot be had here.
    fn new(name: &str) -> Option<Self> {
        let dir = tempfile::Builder::new().prefix("lightfoot-acl-").tempdir_in("/dev/shm").ok();
        let dir = dir.filter(|dir| {
            let is_root = rustix::process::geteuid().is_root();
            is_root && sys::setxattr(dir.path(), "user.probe", b"", XattrFlags::empty()).is_ok()
        });
        let Some(dir) = dir else {
            eprintln!("{name}: skipped: needs root and a tmpfs with user attributes at /dev/shm");
            return None;
        };
        set_mode(dir.path(), 0o755);
        Some(Self(dir))
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Calls `f` in a thread that has these credentials.
fn with_credentials<R: Send>(cred: &Credentials, f: impl FnOnce() -> R + Send) -> R {
    let run = move || {
        let groups: Vec<Gid> = cred.groups().iter().map(|&gid| Gid::from_raw(gid)).collect();
        sys_thread::set_thread_groups(&groups).unwrap();
        let (uid, gid) = (Uid::from_raw(cred.uid), Gid::from_raw(cred.gid));
        sys_thread::set_thread_res_gid(gid, gid, gid).unwrap();
        sys_thread::set_thread_res_uid(uid, uid, uid).unwrap();
        f()
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// The value of an attribute; empty if there is none.
fn value_of(path: &Path, kind: AclKind) -> Vec<u8> {
    let mut buf = vec![0; 4096];
    let len = sys::getxattr(path, kind.xattr_name(), &mut buf[..]).unwrap_or(0);
    buf.truncate(len);
    buf
}

fn mode_of(path: &Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().mode()
}

fn set(path: &Path, kind: AclKind, value: &[u8]) -> i32 {
    number(sys::setxattr(path, kind.xattr_name(), value, XattrFlags::empty()))
}

/// The value of an ACL, valid but for `wild` ones.
fn random_value(random: &mut Rng, wild: bool) -> Vec<u8> {
    let mut entries: Vec<(u16, u32)> = vec![(1, u32::MAX)];
    for (named, of_file) in [(2, 4), (8, 0x10)] {
        entries.extend((0..random.below(3)).map(|_| (named, 0)));
        entries.push((of_file, u32::MAX));
    }
    // The order: owner, users, group, groups, mask, others.
    if entries.iter().all(|&(tag, _)| tag != 2 && tag != 8) && random.chance(50) {
        entries.retain(|&(tag, _)| tag != 0x10);
    }
    entries.push((0x20, u32::MAX));
    if wild {
        for _ in 0..random.below(3) {
            let at = random.below(entries.len());
            match random.below(3) {
                0 => drop(entries.remove(at)),
                1 => entries.insert(at, entries[at]),
                _ => entries[at].0 = random.pick(&[0, 1, 2, 4, 8, 0x10, 0x20, 0x40]),
            }
            if entries.is_empty() {
                break;
            }
        }
    }
    let mut value = random.pick(if wild { &[2u32, 2, 2, 2, 1, 3] } else { &[2] }).to_le_bytes().to_vec();
    for (tag, _) in entries {
        let id = if tag & 0xa != 0 || wild && random.chance(5) { random.pick(&IDS) } else { u32::MAX };
        let id = if wild && random.chance(5) { u32::MAX } else { id };
        let perms = if wild && random.chance(5) { 16 } else { 8 };
        let perm = random.below(perms) as u16;
        value.extend(tag.to_le_bytes().into_iter().chain(perm.to_le_bytes()).chain(id.to_le_bytes()));
    }
    let cut = if wild && random.chance(10) { random.below(value.len() + 1) } else { value.len() };
    value.truncate(cut);
    value
}

fn random_cred(random: &mut Rng) -> Credentials {
    let groups: Vec<u32> = (0..random.below(3)).map(|_| random.pick(&IDS)).collect();
    Credentials::user(random.pick(&IDS), random.pick(&IDS), &groups)
}

/// A caller, and what the file answers to it for each mask.
type Asked = (Credentials, Vec<bool>);

#[test]
fn an_acl_lets_in_whom_the_kernel_lets_in() {
    let Some(place) = Place::new("access") else { return };
    let file = place.0.path().join("f");
    std::fs::write(&file, "").unwrap();
    for seed in 0..400 {
        let mut random = Rng::new(seed);
        let (uid, gid) = (random.pick(&IDS), random.pick(&IDS));
        sys::chown(&file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).unwrap();
        let value = random_value(&mut random, false);
        let acl = Acl::from_xattr(&value).unwrap().unwrap();
        assert_eq!(set(&file, AclKind::Access, &value), 0, "seed {seed}: {acl:?}");
        let stored = value_of(&file, AclKind::Access);
        assert_eq!(mode_of(&file) & 0o777, acl.mode_bits(), "seed {seed}: {acl:?}");
        assert_eq!(
            stored,
            if acl.equiv_mode().is_some() { Vec::new() } else { acl.to_xattr() },
            "seed {seed}: {acl:?}"
        );
        for _ in 0..8 {
            let cred = random_cred(&mut random);
            let kernel = with_credentials(&cred, || {
                let may = |mask| sys::accessat(CWD, &file, Access::from_bits_retain(mask), AtFlags::EACCESS).is_ok();
                (1..8).map(may).collect()
            });
            let kernel: Asked = (cred.clone(), kernel);
            let ours: Asked = (cred.clone(), (1..8).map(|mask| acl.may(&cred, uid, gid, mask).is_ok()).collect());
            assert_eq!(ours, kernel, "seed {seed}: file of {uid} {gid}, {acl:?}");
        }
        let mode = random.below(0o1000) as u32;
        set_mode(&file, mode);
        let changed = acl.chmod(mode);
        let expected = if acl.equiv_mode().is_some() { Vec::new() } else { changed.to_xattr() };
        assert_eq!(value_of(&file, AclKind::Access), expected, "seed {seed}: chmod {mode:o} of {acl:?}");
    }
}

#[test]
fn what_is_made_inherits_as_in_the_kernel() {
    let Some(place) = Place::new("inherit") else { return };
    let (dir, inner, file) = (place.0.path().join("d"), place.0.path().join("d/d"), place.0.path().join("d/f"));
    std::fs::create_dir(&dir).unwrap();
    for seed in 0..400 {
        let mut random = Rng::new(seed);
        let default = Acl::from_xattr(&random_value(&mut random, false)).unwrap().unwrap();
        assert_eq!(set(&dir, AclKind::Default, &default.to_xattr()), 0);
        let asked = random.below(0o1000) as u32;
        sys::mkdirat(CWD, &inner, Mode::from_raw_mode(asked)).unwrap();
        sys::mknodat(CWD, &file, FileType::RegularFile, Mode::from_raw_mode(asked), 0).unwrap();
        let mut mode = asked;
        let made = Acl::create_from_default(&default, &mut mode).map_or(Vec::new(), |acl| acl.to_xattr());
        for path in [&inner, &file] {
            let kernel = (mode_of(path) & 0o777, value_of(path, AclKind::Access));
            assert_eq!((mode, &made), (kernel.0, &kernel.1), "seed {seed}: {asked:o} under {default:?}");
        }
        assert_eq!(value_of(&inner, AclKind::Default), default.to_xattr(), "seed {seed}");
        std::fs::remove_dir(&inner).unwrap();
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn values_are_refused_as_the_kernel_does() {
    let Some(place) = Place::new("values") else { return };
    let (file, dir) = (place.0.path().join("f"), place.0.path().join("d"));
    std::fs::write(&file, "").unwrap();
    std::fs::create_dir(&dir).unwrap();
    for (seed, callers) in (0..3000).map(|seed| (seed, [Credentials::root(), Credentials::user(7, 7, &[])])) {
        let mut random = Rng::new(seed);
        let value = random_value(&mut random, true);
        let cred = &callers[usize::from(random.chance(10))];
        for (path, kind) in [(&file, AclKind::Access), (&dir, AclKind::Default), (&file, AclKind::Default)] {
            let attr = Attr { mode: mode_of(path), ..Attr::default() };
            let kernel = with_credentials(cred, || set(path, kind, &value));
            let ours = raw(acl_to_set(cred, &attr, kind, &value));
            assert_eq!(ours, kernel, "seed {seed}: {kind:?} by {} of {value:?}", cred.uid);
        }
    }
}

#[test]
fn names_are_refused_as_the_kernel_does() {
    let Some(place) = Place::new("names") else { return };
    let (file, hidden, dir, sticky) =
        (place.0.path().join("f"), place.0.path().join("h"), place.0.path().join("d"), place.0.path().join("s"));
    let (fifo, link) = (place.0.path().join("p"), place.0.path().join("l"));
    for path in [&file, &hidden] {
        std::fs::write(path, "").unwrap();
    }
    for path in [&dir, &sticky] {
        std::fs::create_dir(path).unwrap();
    }
    sys::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    for (path, mode) in [(&file, 0o644), (&hidden, 0o600), (&dir, 0o777), (&sticky, 0o1777), (&fifo, 0o666)] {
        set_mode(path, mode);
    }
    let long = format!("user.{}", "a".repeat(251));
    let names = "user.x trusted.x security.x user. trusted. security. system. user foo.x system.x security.capability";
    for name in names.split(' ').chain([&long[..], &long[1..], ""]) {
        for path in [&file, &hidden, &dir, &sticky, &fifo, &link] {
            let attr = Attr { mode: mode_of(path), ..Attr::default() };
            for cred in [Credentials::root(), Credentials::user(7, 7, &[])] {
                let value = vec![1; 65_537];
                for usage in [XattrUse::Set(b"1"), XattrUse::Get, XattrUse::Remove, XattrUse::Set(&value)] {
                    let kernel = with_credentials(&cred, || number(kernel_use(path, name, usage)));
                    let ours = raw(may_use(&cred, &attr, name.as_bytes(), usage, |mask| cred.may(&attr, mask)));
                    // Whether it is there is not for the rules to say.
                    let there = if kernel == Errno::ENODATA.raw() && ours == 0 { ours } else { kernel };
                    let value_len = if let XattrUse::Set(value) = usage { value.len() } else { 0 };
                    assert_eq!(ours, there, "{name} of {} by {}: {value_len}", path.display(), cred.uid);
                }
            }
        }
    }
    for (path, kind) in [(&file, AclKind::Default), (&link, AclKind::Access), (&link, AclKind::Default)] {
        let attr = Attr { mode: mode_of(path), ..Attr::default() };
        let kernel = number(kernel_use(path, std::str::from_utf8(kind.xattr_name()).unwrap(), XattrUse::Get));
        assert_eq!(raw(may_get_acl(&attr, kind)), kernel, "{kind:?} of {}", path.display());
    }
}

fn kernel_use(path: &Path, name: &str, usage: XattrUse<'_>) -> rustix::io::Result<()> {
    match usage {
        XattrUse::Get => sys::lgetxattr(path, name, &mut [0; 64][..]).map(drop),
        XattrUse::Set(value) => sys::lsetxattr(path, name, value, XattrFlags::empty()),
        XattrUse::Remove => sys::lremovexattr(path, name),
    }
}
