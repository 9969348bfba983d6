//! The same random operations on a tree over a host directory and, by the kernel, on another directory. The answers must
//! be the same, and the files at the end. `LIGHTFOOT_SEED` replays a run.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostOptions, Revalidate};
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, Timespec, Timestamps, XattrFlags};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use vfs::{Allocate, Base, Errno, OpenFlags, PathAt, RenameFlags, SetAttr, SetTime, SetXattr};

const STEPS: usize = 6000;

/// The result of an operation.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The number of bytes and their hash.
    Bytes(usize, u64),
    Names(Vec<String>),
    /// Access and modification, in nanoseconds.
    Times(i64, i64),
    /// Type, permission bits, links, owner, length unless it is a directory.
    Attr(u32, u32, (u32, u32), u64),
    Refused(i32),
}

impl Outcome {
    fn of_bytes(bytes: Vec<u8>) -> Self {
        let hash = bytes.iter().fold(7u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3));
        Self::Bytes(bytes.len(), hash)
    }
}

#[derive(Clone, Debug)]
enum Op {
    Make(String, u32, bool),
    Write(String, u64, (u8, usize)),
    Read(String),
    Cut(String, u64),
    Mkdir(String, u32),
    Symlink(String, String),
    Fifo(String),
    Link(String, String),
    Rename(String, String, u32),
    Unlink(String),
    Rmdir(String),
    Chmod(String, u32),
    Chown(String, u32),
    Stat(String),
    List(String),
    ReadLink(String),
    Append(String, (u8, usize)),
    /// The mode of `fallocate(2)`, offset and length.
    Allocate(String, u32, u64, u64),
    /// Makes a file without a name in a directory, and reads it.
    Unnamed(String, u8),
    Times(String, i64),
    SetXattr(String, &'static str, Vec<u8>, u32),
    GetXattr(String, &'static str),
    RemoveXattr(String, &'static str),
    ListXattrs(String),
}

/// The names of extended attributes.
const XATTRS: [&str; 4] = ["user.a", "user.b", ACL, "user.none"];
const ACL: &str = "system.posix_acl_access";

/// An ACL with an entry for a user: owner, user, group, mask and others.
fn acl(perm: u8) -> Vec<u8> {
    let entries =
        [(1, 6, u32::MAX), (2, perm & 7, 1001), (4, 4, u32::MAX), (16, perm >> 3 & 7, u32::MAX), (32, 4, u32::MAX)];
    let entries = entries.iter().flat_map(|(tag, perm, id)| [[*tag, 0, *perm, 0], id.to_le_bytes()].concat());
    2u32.to_le_bytes().into_iter().chain(entries).collect()
}

/// Chooses operations.
struct Chooser(fastrand::Rng);

impl Chooser {
    fn below(&mut self, end: u64) -> u64 {
        self.0.u64(..end)
    }

    /// Up to three components of few names, so that paths meet.
    fn path(&mut self) -> String {
        let deep = 1 + self.below(3);
        (0..deep).map(|_| format!("/{}", ["a", "b", "c", "d"][self.below(4) as usize])).collect()
    }

    fn op(&mut self) -> Op {
        let path = self.path();
        match self.below(30) {
            20..22 => Op::Append(path, (self.below(255) as u8, 1 + self.below(5000) as usize)),
            22 | 23 => {
                let mode = [0, 1, 3, 16, 17][self.below(5) as usize];
                Op::Allocate(path, mode, self.below(12_000), 1 + self.below(9000))
            }
            24 => Op::Unnamed(path, self.below(255) as u8),
            25 => Op::Times(path, self.below(1 << 31) as i64),
            26 | 27 => match XATTRS[self.below(4) as usize] {
                ACL => Op::SetXattr(path, ACL, acl(self.below(64) as u8), 0),
                name => Op::SetXattr(
                    path,
                    name,
                    vec![self.below(255) as u8; self.below(600) as usize],
                    self.below(3) as u32,
                ),
            },
            28 if self.below(2) == 0 => Op::ListXattrs(path),
            28 => Op::GetXattr(path, XATTRS[self.below(4) as usize]),
            29 => Op::RemoveXattr(path, XATTRS[self.below(4) as usize]),
            0..2 => Op::Make(path, 0o600 + self.below(0o200) as u32, self.below(2) == 0),
            2..4 => Op::Write(path, self.below(10_000), (self.below(255) as u8, self.below(9000) as usize)),
            4 => Op::Read(path),
            5 => Op::Cut(path, self.below(12_000)),
            6..9 => Op::Mkdir(path, 0o700 + self.below(0o100) as u32),
            9 => Op::Symlink(["a", "b", "a/../b", "./c/d", "none"][self.below(5) as usize].into(), path),
            10 => Op::Fifo(path),
            11 => Op::Link(path, self.path()),
            12..14 => Op::Rename(path, self.path(), self.below(3) as u32),
            14 => Op::Unlink(path),
            15 => Op::Rmdir(path),
            16 => Op::Chmod(path, 0o700 + self.below(0o7100) as u32 % 0o100),
            17 => Op::Chown(path, self.below(3) as u32 * 1000),
            18 => Op::Stat(path),
            _ if self.below(2) == 0 => Op::List(path),
            _ => Op::ReadLink(path),
        }
    }
}

fn ours(tree: &Tree, op: &Op) -> Result<Outcome, Errno> {
    let (at, cwd) = (&tree.at, Base::CWD);
    let set = |path: &String, set: SetAttr| at.set_attr(cwd, path.as_bytes(), true, &set).map(|()| Outcome::Done);
    match op {
        Op::Make(path, mode, exclusive) => {
            let exclusive = if *exclusive { OpenFlags::EXCL } else { OpenFlags::RDONLY };
            let flags = OpenFlags::RDWR.union(OpenFlags::CREAT).union(exclusive);
            at.open(cwd, path.as_bytes(), flags, *mode).map(|_| Outcome::Done)
        }
        Op::Write(path, offset, data) => {
            let file = tree.open(path, OpenFlags::WRONLY)?;
            file.write_at(*offset, &vec![data.0; data.1]).map(|_| Outcome::Done)
        }
        Op::Read(path) => tree.read(path).map(Outcome::of_bytes),
        Op::Cut(path, len) => set(path, SetAttr { size: Some(*len), ..SetAttr::default() }),
        Op::Mkdir(path, mode) => at.mkdir(cwd, path.as_bytes(), *mode).map(|()| Outcome::Done),
        Op::Symlink(body, path) => at.symlink(body.as_bytes(), cwd, path.as_bytes()).map(|()| Outcome::Done),
        Op::Fifo(path) => at.mknod(cwd, path.as_bytes(), vfs::S_IFIFO | 0o600, 0).map(|()| Outcome::Done),
        Op::Link(old, new) => {
            at.link(PathAt::new(cwd, old.as_bytes()), PathAt::new(cwd, new.as_bytes()), false).map(|()| Outcome::Done)
        }
        Op::Rename(old, new, flags) => {
            let flags = RenameFlags::from_bits(*flags).unwrap();
            at.rename(PathAt::new(cwd, old.as_bytes()), PathAt::new(cwd, new.as_bytes()), flags).map(|()| Outcome::Done)
        }
        Op::Unlink(path) => tree.unlink(path).map(|()| Outcome::Done),
        Op::Rmdir(path) => at.rmdir(cwd, path.as_bytes()).map(|()| Outcome::Done),
        Op::Chmod(path, mode) => set(path, SetAttr { mode: Some(*mode), ..SetAttr::default() }),
        Op::Chown(path, uid) => set(path, SetAttr { uid: Some(*uid), gid: Some(*uid), ..SetAttr::default() }),
        Op::Stat(path) => tree.attr(path).map(|attr| {
            let size = if attr.is_dir() { 0 } else { attr.size };
            Outcome::Attr(attr.mode, attr.nlink, (attr.uid, attr.gid), size)
        }),
        Op::List(path) => tree.names(path).map(Outcome::Names),
        Op::ReadLink(path) => at.read_link(cwd, path.as_bytes()).map(Outcome::of_bytes),
        Op::Append(path, data) => {
            let file = tree.open(path, OpenFlags::WRONLY.union(OpenFlags::APPEND))?;
            file.write_at(0, &vec![data.0; data.1]).map(|_| Outcome::Done)
        }
        Op::Allocate(path, mode, offset, len) => {
            let how = match mode & !1 {
                0 => Allocate::Reserve,
                2 => Allocate::PunchHole,
                _ => Allocate::Zero,
            };
            tree.open(path, OpenFlags::WRONLY)?.allocate(how, mode & 1 != 0, *offset, *len).map(|()| Outcome::Done)
        }
        Op::Unnamed(path, byte) => {
            let file = at.open(cwd, path.as_bytes(), OpenFlags::TMPFILE.union(OpenFlags::RDWR), 0o640)?;
            file.write_at(0, &[*byte; 100])?;
            assert_eq!(file.attr().map(|attr| (attr.nlink, attr.mode, attr.size)), Ok((0, 0o100_640, 100)));
            support::read_all(&file).map(Outcome::of_bytes)
        }
        Op::Times(path, time) => {
            let [atime, mtime] = [*time, *time + 1].map(|time| Some(SetTime::At(time * 1_000_000_000 + 5)));
            at.set_attr(cwd, path.as_bytes(), true, &SetAttr { atime, mtime, ..SetAttr::default() })?;
            at.attr(cwd, path.as_bytes(), true).map(|attr| Outcome::Times(attr.atime, attr.mtime))
        }
        Op::SetXattr(path, name, value, how) => {
            let how = [SetXattr::Any, SetXattr::Create, SetXattr::Replace][*how as usize];
            at.set_xattr(cwd, path.as_bytes(), true, name.as_bytes(), value, how).map(|()| Outcome::Done)
        }
        Op::GetXattr(path, name) => {
            at.get_xattr(cwd, path.as_bytes(), true, name.as_bytes()).map(|value| Outcome::of_bytes(value.into()))
        }
        Op::RemoveXattr(path, name) => {
            at.remove_xattr(cwd, path.as_bytes(), true, name.as_bytes()).map(|()| Outcome::Done)
        }
        Op::ListXattrs(path) => at.list_xattrs(cwd, path.as_bytes(), true).map(|names| xattr_names(&names)),
    }
}

/// The names of extended attributes, without those that the host gives each file.
fn xattr_names(names: &[Box<[u8]>]) -> Outcome {
    let mut names: Vec<_> = names.iter().map(|name| name.escape_ascii().to_string()).collect();
    names.retain(|name| XATTRS.contains(&name.as_str()));
    names.sort_unstable();
    Outcome::Names(names)
}

/// `open(2)` that refuses a FIFO, as the VFS does.
fn open(path: &Path, flags: OFlags, mode: u32) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let file = rustix::fs::open(path, flags | OFlags::NONBLOCK, Mode::from_raw_mode(mode))?;
    let is_fifo = rustix::fs::fstat(&file)?.st_mode & 0o170_000 == 0o010_000;
    if is_fifo { Err(rustix::io::Errno::NXIO) } else { Ok(file) }
}

/// The kernel's answer. The working directory is the root of its side: `/a` is `a`.
fn kernels(root: &Path, op: &Op) -> rustix::io::Result<Outcome> {
    let at = |path: &String| -> PathBuf { root.join(&path[1..]) };
    let done = |()| Outcome::Done;
    Ok(match op {
        Op::Make(path, mode, exclusive) => {
            let exclusive = if *exclusive { OFlags::EXCL } else { OFlags::empty() };
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK | exclusive;
            open(&at(path), flags, *mode).map(|_| Outcome::Done)?
        }
        Op::Write(path, offset, data) => {
            let file = open(&at(path), OFlags::WRONLY, 0)?;
            std::fs::File::from(file).write_all_at(&vec![data.0; data.1], *offset).unwrap();
            Outcome::Done
        }
        Op::Read(path) => {
            let file = open(&at(path), OFlags::RDONLY, 0)?;
            let is_dir = rustix::fs::fstat(&file)?.st_mode & 0o170_000 == 0o040_000;
            if is_dir {
                return Err(rustix::io::Errno::ISDIR);
            }
            let (mut all, mut buf) = (Vec::new(), vec![0; 65_536]);
            loop {
                match rustix::io::pread(&file, &mut *buf, all.len() as u64)? {
                    0 => break Outcome::of_bytes(all),
                    len => all.extend_from_slice(&buf[..len]),
                }
            }
        }
        Op::Cut(path, len) => {
            // As truncate(2), which fails with EINVAL on a FIFO.
            let opened = open(&at(path), OFlags::WRONLY, 0);
            let file = opened
                .map_err(|error| if error == rustix::io::Errno::NXIO { rustix::io::Errno::INVAL } else { error })?;
            rustix::fs::ftruncate(&file, *len).map(done)?
        }
        Op::Mkdir(path, mode) => rustix::fs::mkdir(at(path), Mode::from_raw_mode(*mode)).map(done)?,
        Op::Symlink(body, path) => rustix::fs::symlink(body.as_str(), at(path)).map(done)?,
        Op::Fifo(path) => {
            let kind = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(CWD, at(path), kind, Mode::from_raw_mode(0o600), 0).map(done)?
        }
        Op::Link(old, new) => rustix::fs::linkat(CWD, at(old), CWD, at(new), AtFlags::empty()).map(done)?,
        Op::Rename(old, new, flags) => {
            let flags = rustix::fs::RenameFlags::from_bits_retain(*flags);
            rustix::fs::renameat_with(CWD, at(old), CWD, at(new), flags).map(done)?
        }
        Op::Unlink(path) => rustix::fs::unlink(at(path)).map(done)?,
        Op::Rmdir(path) => rustix::fs::rmdir(at(path)).map(done)?,
        Op::Chmod(path, mode) => rustix::fs::chmod(at(path), Mode::from_raw_mode(*mode)).map(done)?,
        Op::Chown(path, uid) => {
            let (uid, gid) = (rustix::fs::Uid::from_raw(*uid), rustix::fs::Gid::from_raw(*uid));
            rustix::fs::chown(at(path), Some(uid), Some(gid)).map(done)?
        }
        Op::Stat(path) => {
            let stat = rustix::fs::lstat(at(path))?;
            let size = if stat.st_mode & 0o170_000 == 0o040_000 { 0 } else { stat.st_size as u64 };
            Outcome::Attr(stat.st_mode, stat.st_nlink as u32, (stat.st_uid, stat.st_gid), size)
        }
        Op::List(path) => {
            let dir = rustix::fs::open(at(path), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
            let entries = rustix::fs::Dir::read_from(&dir)?.map(|entry| entry.unwrap().file_name().to_owned());
            let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
            names.retain(|name| name != "." && name != "..");
            names.sort_unstable();
            Outcome::Names(names)
        }
        Op::ReadLink(path) => Outcome::of_bytes(rustix::fs::readlink(at(path), Vec::new())?.into_bytes()),
        op => return kernels_more(&at, op),
    })
}

fn kernels_more(at: &dyn Fn(&String) -> PathBuf, op: &Op) -> rustix::io::Result<Outcome> {
    let done = |()| Outcome::Done;
    Ok(match op {
        Op::Append(path, data) => {
            let file = open(&at(path), OFlags::WRONLY | OFlags::APPEND, 0)?;
            rustix::io::write(&file, &vec![data.0; data.1]).map(|_| Outcome::Done)?
        }
        Op::Allocate(path, mode, offset, len) => {
            let file = open(&at(path), OFlags::WRONLY, 0)?;
            let allocate =
                |mode: u32| rustix::fs::fallocate(&file, FallocateFlags::from_bits_retain(mode), *offset, *len);
            match allocate(*mode) {
                // tmpfs cannot; the tree makes a hole, and its storage.
                Err(rustix::io::Errno::OPNOTSUPP) if mode & 16 != 0 => {
                    allocate(3).and_then(|()| allocate(mode & 1)).map(done)?
                }
                allocated => allocated.map(done)?,
            }
        }
        Op::Unnamed(path, byte) => {
            let file = rustix::fs::open(at(path), OFlags::TMPFILE | OFlags::RDWR, Mode::from_raw_mode(0o640))?;
            let file = std::fs::File::from(file);
            file.write_all_at(&[*byte; 100], 0).unwrap();
            let mut all = vec![0; 200];
            let len = file.read_at(&mut all, 0).unwrap();
            all.truncate(len);
            Outcome::of_bytes(all)
        }
        Op::Times(path, time) => {
            let [last_access, last_modification] = [*time, *time + 1].map(|time| Timespec { tv_sec: time, tv_nsec: 5 });
            let times = Timestamps { last_access, last_modification };
            rustix::fs::utimensat(CWD, at(path), &times, AtFlags::empty())?;
            let metadata = std::fs::metadata(at(path)).unwrap();
            let ns = |seconds: i64, ns: i64| seconds * 1_000_000_000 + ns;
            Outcome::Times(ns(metadata.atime(), metadata.atime_nsec()), ns(metadata.mtime(), metadata.mtime_nsec()))
        }
        Op::SetXattr(path, name, value, how) => {
            rustix::fs::setxattr(at(path), *name, value, XattrFlags::from_bits_retain(*how)).map(done)?
        }
        Op::GetXattr(path, name) => {
            let mut value = vec![0; 1000];
            let len = rustix::fs::getxattr(at(path), *name, &mut *value)?;
            value.truncate(len);
            Outcome::of_bytes(value)
        }
        Op::RemoveXattr(path, name) => rustix::fs::removexattr(at(path), *name).map(done)?,
        Op::ListXattrs(path) => {
            let mut names = vec![0; 1000];
            let len = rustix::fs::listxattr(at(path), &mut *names)?;
            let names: Vec<_> = names[..len].split(|&byte| byte == 0).map(Box::from).collect();
            xattr_names(&names)
        }
        op => unreachable!("{op:?}"),
    })
}

/// All files below a directory of the host: paths, attributes, contents.
fn all_below(dir: &Path) -> Vec<(PathBuf, u32, u64, u64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let contents = if metadata.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            let size = if metadata.is_dir() { 0 } else { metadata.size() };
            found.push((path.strip_prefix(dir).unwrap().into(), metadata.mode(), metadata.nlink(), size, contents));
            if metadata.is_dir() {
                open.push(path);
            }
        }
    }
    found.sort_unstable();
    found
}

fn check(parent: &Path, policy: Revalidate, watch: bool, seed: u64) {
    eprintln!("LIGHTFOOT_SEED={seed} {policy:?} in {}", parent.display());
    let (source, other) = (support::dir_in(parent), support::dir_in(parent));
    let options = HostOptions { policy, watch, max_fds: 12, ..HostOptions::default() };
    let tree = Tree::new(&source, &options);
    let mut chooser = Chooser(fastrand::Rng::with_seed(seed));
    for step in 0..STEPS {
        let op = chooser.op();
        let came = ours(&tree, &op).unwrap_or_else(|errno| Outcome::Refused(errno.raw()));
        let expected = kernels(other.path(), &op).unwrap_or_else(|errno| Outcome::Refused(errno.raw_os_error()));
        assert_eq!(came, expected, "seed {seed}, step {step}, {op:?}");
    }
    assert_eq!(all_below(source.path()), all_below(other.path()), "seed {seed}");
}

#[test]
fn a_tree_over_a_host_directory_answers_as_the_kernel() {
    if !support::is_root_for("a_tree_over_a_host_directory_answers_as_the_kernel") {
        return;
    }
    // It changes the umask of its process.
    if testkit::ran_alone("differential::a_tree_over_a_host_directory_answers_as_the_kernel") {
        return;
    }
    rustix::process::umask(Mode::empty());
    let seed = support::seed();
    let memory = support::memory();
    for policy in [Revalidate::Exclusive, Revalidate::Always, Revalidate::Ttl(Duration::from_millis(1))] {
        check(&memory, policy, false, seed);
    }
    check(&memory, Revalidate::Ttl(Duration::from_secs(1000)), true, seed);
    check(&std::env::temp_dir(), Revalidate::Always, false, seed);
}
