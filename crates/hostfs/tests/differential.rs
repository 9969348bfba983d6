//! The same random operations on a tree over a host directory and, by the kernel, on another directory. The answers must
//! be the same, and the files at the end. `LIGHTFOOT_SEED` replays a run.

mod support;

use lightfoot_hostfs::{HostOptions, Revalidate};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::Tree;
use vfs::{Base, Errno, OpenFlags, PathAt, RenameFlags, SetAttr};

const STEPS: usize = 6000;

/// The result of an operation.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    /// The number of bytes and their hash.
    Bytes(usize, u64),
    Names(Vec<String>),
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
        match self.below(20) {
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
    }
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
    if !rustix::process::geteuid().is_root() {
        return;
    }
    rustix::process::umask(Mode::empty());
    let seed = support::seed();
    let policies = [Revalidate::Exclusive, Revalidate::Always, Revalidate::Ttl(Duration::from_millis(1))];
    for parent in [std::env::temp_dir(), "/dev/shm".into()] {
        for policy in policies {
            check(&parent, policy, false, seed);
        }
        check(&parent, Revalidate::Ttl(Duration::from_secs(1000)), true, seed);
    }
}
