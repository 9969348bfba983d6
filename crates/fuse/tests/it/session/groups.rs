//! Makers of files with a supplementary group, in a host directory, whose host checks them once more.

use crate::session::callers::Member;
use crate::session::kernel::{Kernel, RDWR, SUPER, USER};
use hostfs::{HostFs, HostOptions};
use lightfoot_fuse::{Caller, NewMode, ROOT_NODE, SessionOptions};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vfs::{Errno, S_IFDIR};

/// A directory of the host, `d`, which only its group may change, and a session over it.
struct Team {
    kernel: Kernel,
    source: PathBuf,
    /// Its node.
    dir: u64,
}

impl Team {
    fn new(group: u32, mode: u32, names_groups: bool) -> Self {
        let source = new_dir();
        fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(source.join("d")).unwrap();
        chown(source.join("d"), Some(0), Some(group)).unwrap();
        fs::set_permissions(source.join("d"), fs::Permissions::from_mode(mode)).unwrap();
        let host = HostFs::new(&source, &HostOptions::default()).unwrap();
        let kernel = Kernel::over(host, SessionOptions::default());
        kernel.note_groups(names_groups);
        let dir = kernel.lookup(&SUPER, ROOT_NODE, b"d").unwrap().node;
        Self { kernel, source, dir }
    }

    /// The results of each request that makes a file.
    fn make(&self, caller: &Caller) -> [Result<(), Errno>; 5] {
        let (kernel, dir, new) = (&self.kernel, self.dir, NewMode::new(0o644, 0));
        [
            kernel.create(caller, dir, b"create", new, RDWR).map(drop),
            kernel.mknod(caller, dir, b"mknod", new, 0).map(drop),
            kernel.mkdir(caller, dir, b"mkdir", NewMode::new(0o755, 0)).map(drop),
            kernel.symlink(caller, dir, b"symlink", b"x", &[]).map(drop),
            kernel.tmpfile(caller, dir, new, RDWR).map(drop),
        ]
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.source);
    }
}

const GROUP: u32 = 4243;

fn new_dir() -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Relaxed);
    let at = std::env::temp_dir().join(format!("lightfoot-groups-{}-{number}", std::process::id()));
    fs::create_dir(&at).unwrap();
    at
}

#[test]
fn the_group_of_a_request_that_makes_a_file_is_the_callers() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: acting as others needs root");
    }
    // Nobody has this thread, so that `/proc` has no groups of it.
    let stranger = Caller { pid: u32::MAX, ..USER };
    let named = Caller { group: Some(GROUP), ..stranger };
    for (caller, names_groups, expected) in [
        (named, true, Ok(())),
        (stranger, true, Err(Errno::EACCES)),
        (stranger, false, Err(Errno::EACCES)),
        (Caller { group: Some(GROUP + 1), ..stranger }, true, Err(Errno::EACCES)),
    ] {
        let team = Team::new(GROUP, 0o770, names_groups);
        assert_eq!(team.make(&caller), [expected; 5], "{caller:?} {names_groups}");
    }
    // It also keeps set-group-id.
    let team = Team::new(GROUP, 0o2777, true);
    for (caller, name, mode) in [(named, "in", 0o2755), (stranger, "out", 0o755)] {
        let made = team.kernel.mknod(&caller, team.dir, name.as_bytes(), NewMode::new(0o2755, 0), 0).unwrap();
        let host = fs::metadata(team.source.join("d").join(name)).unwrap();
        assert_eq!((made.attr.mode & 0o7777, host.gid(), host.uid()), (mode, GROUP, 5), "{name}");
    }
}

#[test]
fn a_group_that_only_an_acl_names_is_found_in_proc() {
    let Some(member) = Member::new() else {
        return println!("SKIPPED: supplementary groups need setpriv and root");
    };
    let team = Team::new(0, 0o755, true);
    let acl = format!("g:{}:rwx", member.group);
    let set = Command::new("setfacl").args(["-m", &acl]).arg(team.source.join("d")).status();
    if !set.is_ok_and(|set| set.success()) {
        return println!("SKIPPED: no ACLs in {}", team.source.display());
    }
    let inside = Caller { pid: member.process.id(), ..USER };
    assert_eq!(team.kernel.getattr(team.dir).unwrap().0.mode, S_IFDIR | 0o775);
    assert_eq!(team.make(&USER), [Err(Errno::EACCES); 5]);
    assert_eq!(team.make(&inside), [Ok(()); 5]);
}
