//! The operations, each of which makes calls of the host.
//!
//! Each can be repeated after it failed, unless the part that failed came after the host had made a name.

use crate::filesystem::HostFs;
use crate::options::HostOptions;
use crate::shared::Shared;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::sync::{Arc, Weak};
use vfs::{
    Acl, AclEntry, AclTag, Allocate, Base, Context, Credentials, Errno, InodeFlags, OpenFile, OpenFlags, PathAt,
    RenameFlags, SeekFor, SetAttr, SetTime, SetXattr, Vfs,
};

/// The user and the group of a caller other than root.
pub(super) const USER: u32 = 12_345;

/// Directories beside, so that the budget closes descriptors.
const MANY: usize = 5;

/// The answer of a reflink on a host that has none.
pub(super) const NO_REFLINKS: &str = "no reflinks";

/// A tree over a host directory.
pub(super) struct Scene {
    pub(super) vfs: Vfs,
    pub(super) at: Context,
    pub(super) shared: Weak<Shared>,
}

/// Makes the files of the host with which the script begins.
pub(super) fn furnish(source: &Path, owner: Option<u32>) {
    let path = |name: &str| source.join(name);
    fs::write(path("file"), [7; 5000]).unwrap();
    fs::write(path("other"), b"other").unwrap();
    symlink("file", path("link")).unwrap();
    symlink("x/".repeat(200), path("long")).unwrap();
    let mut made: Vec<String> = ["file", "other", "dir", "dir/inner"].map(String::from).into();
    fs::create_dir(path("dir")).unwrap();
    fs::write(path("dir/inner"), b"inner").unwrap();
    for number in 0..MANY {
        fs::create_dir(path(&format!("m{number}"))).unwrap();
        fs::write(path(&format!("m{number}/f")), b"text").unwrap();
        made.extend([format!("m{number}"), format!("m{number}/f")]);
    }
    fs::write(path("grouped"), b"grouped").unwrap();
    fs::set_permissions(path("grouped"), fs::Permissions::from_mode(0o640)).unwrap();
    if let Some(owner) = owner {
        chown(path("grouped"), Some(0), Some(owner)).unwrap();
    }
    for name in made.iter().map(String::as_str).chain([""]) {
        if let Some(owner) = owner {
            chown(path(name), Some(owner), Some(owner)).unwrap();
        }
    }
}

impl Scene {
    /// Mounts a directory.
    pub(super) fn new(source: &Path, options: &HostOptions, owner: Option<u32>) -> std::io::Result<Self> {
        let fs = HostFs::new(source, options)?;
        let shared = Arc::downgrade(&fs.shared);
        let vfs = Vfs::new(fs);
        let at = vfs.context();
        at.set_umask(0);
        if let Some(owner) = owner {
            at.set_credentials(Credentials::user(owner, owner, &[owner + 1]));
        }
        Ok(Self { vfs, at, shared })
    }

    pub(super) fn open(&self, path: &str, flags: OpenFlags) -> Result<OpenFile, Errno> {
        self.at.open(Base::CWD, path.as_bytes(), flags, 0o644)
    }

    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        all_of(&self.open(path, OpenFlags::RDONLY)?)
    }

    /// Type and mode, length, links and owner.
    pub(super) fn stat(&self, path: &str) -> Result<String, Errno> {
        let attr = self.at.attr(Base::CWD, path.as_bytes(), false)?;
        let size = if attr.is_dir() { 0 } else { attr.size };
        Ok(format!("{:o} {size} {} {}:{}", attr.mode, attr.nlink, attr.uid, attr.gid))
    }

    pub(super) fn names(&self, path: &str) -> Result<Vec<String>, Errno> {
        let dir = self.open(path, OpenFlags::DIRECTORY)?;
        let mut names = Vec::new();
        loop {
            let some = dir.next_entries()?;
            if some.is_empty() {
                names.sort_unstable();
                return Ok(names);
            }
            names.extend(some.into_iter().map(|entry| format!("{} {:o}", entry.name.escape_ascii(), entry.kind)));
        }
    }

    fn set(&self, path: &str, set: &SetAttr) -> Result<String, Errno> {
        self.at.set_attr(Base::CWD, path.as_bytes(), true, set)?;
        self.stat(path)
    }

    fn rename(&self, old: &str, new: &str, flags: RenameFlags) -> Result<String, Errno> {
        self.at.rename(PathAt::cwd(old.as_bytes()), PathAt::cwd(new.as_bytes()), flags).map(shown)
    }

    fn write(&self, path: &str, flags: OpenFlags, offset: u64, data: &[u8]) -> Result<String, Errno> {
        let file = self.open(path, flags)?;
        let (len, end) = file.write_at(offset, data)?;
        drop(file);
        Ok(format!("{len} {end} {}", self.stat(path)?))
    }

    fn access_acl(&self) -> Acl {
        let uid = self.at.credentials().uid;
        let entry = |tag, perm| AclEntry { tag, perm };
        let entries = [
            entry(AclTag::UserObj, 6),
            entry(AclTag::User(uid + 1), 4),
            entry(AclTag::GroupObj, 4),
            entry(AclTag::Mask, 4),
            entry(AclTag::Other, 4),
        ];
        Acl::new(&entries).unwrap()
    }
}

fn all_of(file: &OpenFile) -> Result<Vec<u8>, Errno> {
    let (mut all, mut buf) = (Vec::new(), [0; 4096]);
    loop {
        match file.read_at(all.len() as u64, &mut buf)? {
            0 => return Ok(all),
            read => all.extend_from_slice(&buf[..read]),
        }
    }
}

fn shown(result: impl core::fmt::Debug) -> String {
    format!("{result:?}")
}

type Operation = fn(&Scene) -> Result<String, Errno>;

const CREAT: OpenFlags = OpenFlags::RDWR.union(OpenFlags::CREAT);
const ACL_NAME: &[u8] = b"system.posix_acl_access";

/// Operations that succeed where the host refuses to open the file, or its attributes: the name is
/// removed nevertheless, and appended data are written.
pub(super) const GOES_ON: [&str; 5] = ["append", "rename over a file", "unlink of an open file", "unlink", "rmdir"];

/// The script, with the name that an operation makes.
pub(super) const SCRIPT: &[(&str, Option<&str>, Operation)] = &[
    ("lookup", None, |s| s.stat("/file")),
    ("lookup of a name that does not exist", None, |s| s.stat("/none")),
    ("stat", None, |s| s.stat("/dir/inner")),
    ("read", None, |s| s.read("/file").map(|all| shown(all.len()))),
    ("read below a directory", None, |s| s.read("/dir/inner").map(shown)),
    ("list the root", None, |s| s.names("/").map(shown)),
    ("list", None, |s| s.names("/dir").map(shown)),
    ("readlink", None, |s| s.at.read_link(Base::CWD, b"/link").map(shown)),
    ("readlink of a long one", None, |s| s.at.read_link(Base::CWD, b"/long").map(shown)),
    ("follow", None, |s| s.read("/link").map(|all| shown(all.len()))),
    ("create", Some("new"), |s| s.write("/new", CREAT, 0, b"text")),
    ("create exclusively", Some("excl"), |s| s.open("/excl", CREAT.union(OpenFlags::EXCL)).map(drop).map(shown)),
    ("read by the group", None, |s| s.read("/grouped").map(shown)),
    ("write", None, |s| s.write("/dir/inner", OpenFlags::WRONLY, 3, b"written")),
    ("append", None, |s| {
        // Absolute, so that a repetition has the same result.
        let file = s.open("/dir/inner", OpenFlags::WRONLY.union(OpenFlags::APPEND))?;
        file.set_len(10)?;
        file.write_at(0, b"appended").map(shown)
    }),
    ("write synchronously", None, |s| s.write("/new", OpenFlags::WRONLY.union(OpenFlags::SYNC), 0, b"sync")),
    ("write data synchronously", None, |s| s.write("/new", OpenFlags::WRONLY.union(OpenFlags::DSYNC), 0, b"data")),
    ("close", None, |s| s.open("/new", OpenFlags::WRONLY)?.flush().map(shown)),
    ("truncate at open", None, |s| s.write("/other", OpenFlags::RDWR.union(OpenFlags::TRUNC), 0, b"again")),
    ("mkdir", Some("made"), |s| s.at.mkdir(Base::CWD, b"/made", 0o755).map(shown)),
    ("mkdir with more rights than the umask", Some("wide"), |s| s.at.mkdir(Base::CWD, b"/wide", 0o777).map(shown)),
    ("symlink", Some("sym"), |s| s.at.symlink(b"body", Base::CWD, b"/sym").map(shown)),
    ("mknod", Some("fifo"), |s| s.at.mknod(Base::CWD, b"/fifo", vfs::S_IFIFO | 0o644, 0).map(shown)),
    ("link", Some("hard"), |s| s.at.link(PathAt::cwd(b"/new"), PathAt::cwd(b"/hard"), false).map(shown)),
    ("chmod", None, |s| s.set("/file", &SetAttr { mode: Some(0o640), ..SetAttr::default() })),
    ("chown", None, |s| {
        let gid = s.at.credentials().gid;
        s.set("/file", &SetAttr { gid: Some(gid), ..SetAttr::default() })
    }),
    ("utimes", None, |s| {
        let time = Some(SetTime::At(1_000_000_000_000_000_000));
        s.set("/file", &SetAttr { atime: time, mtime: time, ..SetAttr::default() })?;
        s.at.attr(Base::CWD, b"/file", false).map(|attr| shown(attr.mtime))
    }),
    ("truncate", None, |s| s.set("/file", &SetAttr { size: Some(3000), ..SetAttr::default() })),
    ("setxattr", None, |s| s.at.set_xattr(Base::CWD, b"/file", true, b"user.a", b"value", SetXattr::Any).map(shown)),
    ("getxattr", None, |s| s.at.get_xattr(Base::CWD, b"/file", true, b"user.a").map(shown)),
    ("listxattr", None, |s| {
        s.at.list_xattrs(Base::CWD, b"/file", true).map(|mut names| {
            names.retain(|name| name.starts_with(b"user."));
            shown(names)
        })
    }),
    ("removexattr", None, |s| s.at.remove_xattr(Base::CWD, b"/file", true, b"user.a").map(shown)),
    ("set an ACL", None, |s| {
        let value = s.access_acl().to_xattr();
        s.at.set_xattr(Base::CWD, b"/other", true, ACL_NAME, &value, SetXattr::Any)?;
        s.stat("/other")
    }),
    ("get an ACL", None, |s| s.at.get_xattr(Base::CWD, b"/other", true, ACL_NAME).map(shown)),
    ("get flags", None, |s| {
        let held = s.at.hold(Base::CWD, b"/file", true)?;
        s.at.inode_flags_held(&held).map(|flags| shown(flags.bits()))
    }),
    ("set flags", None, |s| {
        let held = s.at.hold(Base::CWD, b"/file", true)?;
        s.at.set_inode_flags_held(&held, InodeFlags::NODUMP).map(shown)
    }),
    ("statfs", None, |s| s.at.statvfs(Base::CWD, b"/").map(|stat| shown(stat.fs.name_max))),
    ("copy", None, |s| {
        let (from, to) = (s.open("/file", OpenFlags::RDONLY)?, s.open("/new", OpenFlags::RDWR)?);
        let copied = from.copy_to(0, &to, 0, 4)?;
        Ok(format!("{copied} {}", s.stat("/new")?))
    }),
    ("clone", None, |s| {
        let (from, to) = (s.open("/file", OpenFlags::RDONLY)?, s.open("/new", OpenFlags::RDWR)?);
        match from.clone_to(0, &to, 0, 0) {
            Ok(()) => s.stat("/new"),
            Err(Errno::EOPNOTSUPP) => Ok(NO_REFLINKS.into()),
            Err(errno) => Err(errno),
        }
    }),
    ("allocate", None, |s| {
        let file = s.open("/new", OpenFlags::RDWR)?;
        file.allocate(Allocate::Reserve, false, 0, 8192)?;
        s.stat("/new")
    }),
    ("zero", None, |s| {
        let file = s.open("/new", OpenFlags::RDWR)?;
        file.allocate(Allocate::Zero, false, 0, 4096)?;
        s.read("/new").map(|all| shown(all == [0; 8192]))
    }),
    ("punch a hole", None, |s| {
        s.open("/new", OpenFlags::RDWR)?.allocate(Allocate::PunchHole, true, 0, 4096).map(shown)
    }),
    ("seek", None, |s| s.open("/new", OpenFlags::RDONLY)?.seek_for(SeekFor::Hole, 0).map(shown)),
    ("copy", None, |s| s.read("/file").and_then(|all| s.write("/excl", OpenFlags::WRONLY, 0, &all))),
    ("fsync", None, |s| s.open("/new", OpenFlags::WRONLY)?.sync(false).map(shown)),
    ("fdatasync", None, |s| s.open("/new", OpenFlags::RDONLY)?.sync(true).map(shown)),
    ("fsync of a directory", None, |s| s.open("/dir", OpenFlags::DIRECTORY)?.sync(false).map(shown)),
    ("unnamed", None, |s| {
        let file = s.open("/dir", OpenFlags::TMPFILE.union(OpenFlags::RDWR))?;
        file.write_at(0, b"unnamed")?;
        all_of(&file).map(shown)
    }),
    ("many", None, |s| {
        let mut all = Vec::new();
        for number in 0..MANY {
            all.extend(s.read(&format!("/m{number}/f"))?);
        }
        Ok(shown(all.len()))
    }),
    ("reopen", None, |s| {
        s.open("/m0/f", OpenFlags::RDWR)?.write_at(0, b"TEXT")?;
        s.read("/dir/inner").map(shown)
    }),
    ("rename", Some("renamed"), |s| s.rename("/excl", "/renamed", RenameFlags::default())),
    ("rename into a directory", Some("dir/moved"), |s| s.rename("/made", "/dir/moved", RenameFlags::default())),
    ("create another", None, |s| s.write("/source", CREAT, 0, b"source")),
    ("rename over a file", None, |s| s.rename("/source", "/hard", RenameFlags::default())),
    ("exchange", None, |s| s.rename("/hard", "/new", RenameFlags::EXCHANGE)),
    ("unlink of an open file", None, |s| {
        let file = s.open("/gone", CREAT)?;
        file.write_at(0, b"gone")?;
        s.at.unlink(Base::CWD, b"/gone")?;
        file.attr()?;
        all_of(&file).map(shown)
    }),
    ("unlink", None, |s| {
        drop(s.open("/gone", CREAT)?);
        s.at.unlink(Base::CWD, b"/gone").map(shown)
    }),
    ("mkdir once more", Some("empty"), |s| s.at.mkdir(Base::CWD, b"/empty", 0o755).map(shown)),
    ("rmdir", None, |s| s.at.rmdir(Base::CWD, b"/empty").map(shown)),
    ("look below", None, |s| s.names("/dir/moved").map(shown)),
];
