//! Random operations that are worth doing.
//!
//! Paths come from a small vocabulary and from what exists already - the generator keeps a tree at hand to know - so that operations
//! collide, about half of them succeed, and the tree stays populated. A list depends on its seed alone.

mod extra;
mod known;

use super::lightfoot::Lightfoot;
use super::ops::flags::*;
use super::ops::*;
use super::outcome::EXPLICIT_TIMES;
use super::rng::Rng;
use super::{Namespace, World};
use std::ops::Range;

/// Fewer objects than this: rather create. More than [`MANY`]: rather remove.
const FEW: usize = 60;
const MANY: usize = 180;

const FILE_MODES: [u32; 12] = [0o644, 0o600, 0o666, 0o755, 0o444, 0o000, 0o4755, 0o2755, 0o2644, 0o6777, 0o777, 0o640];
const DIR_MODES: [u32; 14] =
    [0o755, 0o755, 0o755, 0o777, 0o777, 0o777, 0o1777, 0o2775, 0o3777, 0o700, 0o711, 0o555, 0o000, 0o733];
const LENGTHS: [usize; 8] = [0, 1, 10, 100, 4095, 4096, 5000, 12288];
const OFFSETS: [u64; 6] = [0, 1, 100, 4096, 8191, 20000];

type Maker = fn(&mut Generator) -> Op;

const CREATE: [(usize, Maker); 6] = [
    (60, Generator::mkdir),
    (50, Generator::create),
    (20, Generator::mknod),
    (50, Generator::symlink),
    (40, Generator::link),
    (20, Generator::open),
];
const REMOVE: [(usize, Maker); 3] = [(50, Generator::unlink), (50, Generator::rmdir), (10, Generator::rename)];
const ANY: [(usize, Maker); 29] = [
    (14, Generator::become_user),
    (4, |g| Op::Umask(g.rng.pick(&[0o022, 0o022, 0o022, 0, 0o077, 0o027]))),
    (50, Generator::mkdir),
    (40, Generator::create),
    (25, Generator::mknod),
    (50, Generator::symlink),
    (50, Generator::link),
    (45, Generator::unlink),
    (45, Generator::rmdir),
    (90, Generator::rename),
    (90, Generator::open),
    (10, |g| Op::Close { slot: g.slot() }),
    (25, |g| Op::Readlink { path: g.file_path() }),
    (50, |g| Op::Stat { path: g.path() }),
    (70, |g| Op::Lstat { path: g.path() }),
    (30, |g| Op::ReadDir { path: g.dir_path() }),
    (40, |g| Op::Chmod { path: g.path(), mode: g.any_mode() }),
    (40, Generator::chown),
    (30, |g| Op::Truncate { path: g.file_path(), len: g.rng.pick(&[-1, 0, 0, 1, 100, 4096, 5000, 40000]) }),
    (25, |g| Op::Utimens { path: g.path(), atime: g.time(), mtime: g.time() }),
    (25, |g| Op::Access { path: g.path(), bits: g.rng.below(8) as u32 }),
    (25, |g| Op::Chdir { path: g.dir_path() }),
    (10, |_| Op::Getcwd),
    (35, |g| Op::Write { slot: g.slot(), fill: g.fill(), len: g.rng.pick(&LENGTHS) }),
    (20, |g| Op::Pwrite { slot: g.slot(), offset: g.rng.pick(&OFFSETS), fill: g.fill(), len: g.rng.pick(&LENGTHS) }),
    (25, |g| Op::Read { slot: g.slot(), len: g.rng.pick(&LENGTHS[1..]) }),
    (20, |g| Op::Pread { slot: g.slot(), offset: g.rng.pick(&OFFSETS), len: g.rng.pick(&LENGTHS[1..]) }),
    (20, Generator::handle_attributes),
    (15, Generator::lseek),
];

/// The slots that become empty after an operation because of what is compared: Lightfoot's open files keep the credentials of
/// `open(2)`, Linux uses those of the caller, so a change of credentials closes all files.
pub(crate) fn closed_by(op: &Op) -> Range<usize> {
    0..if matches!(op, Op::Become(_)) { SLOTS } else { 0 }
}

/// The list of operations that a seed stands for, in a fresh tree.
pub(crate) fn generate(seed: u64, count: usize, world: World) -> Vec<Op> {
    generate_in(Lightfoot::new(world), seed, count, world)
}

/// The list of operations that a seed stands for, in a tree.
pub(crate) fn generate_in(known: Lightfoot, seed: u64, count: usize, world: World) -> Vec<Op> {
    let mut generator = Generator {
        rng: Rng::new(seed),
        known,
        world,
        objects: 0,
        reserves: seed.is_multiple_of(2),
        second: extra::Second::None,
    };
    let mut ops = Vec::with_capacity(count);
    if generator.rng.chance(80) {
        ops.push(Op::Chmod { path: "/".into(), mode: generator.rng.pick(&[0o777, 0o777, 0o2777]) });
        generator.known.apply(&ops[0]);
    }
    while ops.len() < count {
        if ops.len().is_multiple_of(16) {
            generator.objects = generator.known.objects(MANY);
        }
        let op = generator.op();
        generator.known.apply(&op);
        for slot in closed_by(&op) {
            generator.known.apply(&Op::Close { slot });
        }
        ops.push(op);
    }
    ops
}

struct Generator {
    rng: Rng,
    /// The tree after the operations so far.
    known: Lightfoot,
    world: World,
    objects: usize,
    /// Whether storage is reserved, or data and holes are looked for.
    reserves: bool,
    second: extra::Second,
}

impl Generator {
    fn op(&mut self) -> Op {
        let mix: &[(usize, Maker)] = match () {
            () if !self.world.confined && self.rng.chance(45) => &extra::EXTRAS,
            () if self.objects < FEW && self.rng.chance(40) => &CREATE,
            () if self.objects > MANY && self.rng.chance(30) => &REMOVE,
            () => &ANY,
        };
        let mut at = self.rng.below(mix.iter().map(|(weight, _)| weight).sum());
        for (weight, make) in mix {
            match at.checked_sub(*weight) {
                Some(rest) => at = rest,
                None => return self.acted(*make),
            }
        }
        unreachable!("the weights sum up")
    }

    fn become_user(&mut self) -> Op {
        if self.world.confined { Op::Getcwd } else { Op::Become(self.rng.pick(&[0, 0, 0, 0, 0, 1, 2])) }
    }

    fn mkdir(&mut self) -> Op {
        Op::Mkdir { path: self.new_path(), mode: self.dir_mode() }
    }

    fn create(&mut self) -> Op {
        let flags = self.rng.pick(&[O_WRONLY, O_RDWR, O_RDONLY]) | O_CREAT | O_EXCL;
        Op::Open { slot: self.slot(), path: self.new_path(), flags, mode: self.rng.pick(&FILE_MODES) }
    }

    fn open(&mut self) -> Op {
        let mut flags = self.rng.pick(&[O_RDONLY, O_RDONLY, O_WRONLY, O_RDWR, O_RDWR]);
        let odds = [(O_CREAT, 35), (O_EXCL, 10), (O_TRUNC, 20), (O_APPEND, 20), (O_DIRECTORY, 10), (O_NOFOLLOW, 12)];
        for (flag, percent) in odds {
            flags |= if self.rng.chance(percent) { flag } else { 0 };
        }
        Op::Open { slot: self.slot(), path: self.file_path(), flags, mode: self.rng.pick(&FILE_MODES) }
    }

    fn mknod(&mut self) -> Op {
        let kinds = [S_IFIFO, S_IFIFO, S_IFSOCK, S_IFREG, S_IFREG, S_IFCHR, S_IFBLK, S_IFDIR, S_IFLNK];
        let mode = self.rng.pick(&kinds) | self.rng.pick(&FILE_MODES);
        Op::Mknod { path: self.new_path(), mode, rdev: self.rng.pick(&[(0, 0), (241, 3), (250, 65536)]) }
    }

    fn symlink(&mut self) -> Op {
        Op::Symlink { body: self.body(), path: self.new_path() }
    }

    fn link(&mut self) -> Op {
        Op::Link { from: self.file_path(), to: self.new_path() }
    }

    fn unlink(&mut self) -> Op {
        Op::Unlink { path: self.file_path() }
    }

    fn rmdir(&mut self) -> Op {
        Op::Rmdir { path: self.dir_path() }
    }

    fn rename(&mut self) -> Op {
        let from = self.path();
        let to = match self.rng.below(10) {
            0 => RawPath([&from, b"/".as_slice(), &self.name()].concat()),
            1..=4 => self.path(),
            _ => self.new_path(),
        };
        Op::Rename { from, to }
    }

    fn chown(&mut self) -> Op {
        let (own_uid, own_gid) = self.world.owner;
        let (uids, gids) = match self.world.confined {
            true => (vec![None, Some(own_uid), Some(own_uid + 1)], vec![None, Some(own_gid), Some(own_gid + 77)]),
            false => ([None, None, Some(0), Some(1000), Some(1000), Some(1001)].into(), {
                [None, None, Some(0), Some(1000), Some(2000), Some(3000)].into()
            }),
        };
        let follow = self.rng.chance(60);
        Op::Chown { path: self.path(), uid: self.rng.pick(&uids), gid: self.rng.pick(&gids), follow }
    }

    fn handle_attributes(&mut self) -> Op {
        let slot = self.slot();
        match self.rng.below(4) {
            0 => Op::Ftruncate { slot, len: self.rng.pick(&[0, 1, 4096, 5000, 40000]) },
            1 => Op::Fchmod { slot, mode: self.any_mode() },
            _ => Op::Fstat { slot },
        }
    }

    fn lseek(&mut self) -> Op {
        let whence = self.rng.pick(&[Whence::Start, Whence::Current, Whence::End]);
        let offset = self.rng.pick(&[-5000, -1, 0, 1, 5, 4096, 30000]);
        let offset = if whence == Whence::Start { offset.max(0) } else { offset };
        Op::Lseek { slot: self.slot(), whence, offset }
    }

    fn slot(&mut self) -> usize {
        self.rng.below(SWEEP_SLOT)
    }

    fn fill(&mut self) -> u8 {
        self.rng.pick(b"abcdefgh")
    }

    fn any_mode(&mut self) -> u32 {
        if self.rng.chance(50) { self.rng.pick(&FILE_MODES) } else { self.dir_mode() }
    }

    fn dir_mode(&mut self) -> u32 {
        let mode = self.rng.pick(&DIR_MODES);
        let World { protected_regular, protected_fifos, .. } = self.world;
        // Lightfoot has no protection in directories that are open to their group only: level 2.
        let beyond = protected_regular.max(protected_fifos) > 1;
        if beyond && mode & S_ISVTX != 0 { mode & !0o020 } else { mode }
    }

    fn time(&mut self) -> Option<i64> {
        self.rng.chance(75).then(|| self.rng.pick(&EXPLICIT_TIMES))
    }

    /// A path that mostly names something.
    fn path(&mut self) -> RawPath {
        let path = match self.rng.below(100) {
            0..=77 => self.existing(false),
            78..=90 => self.beside_existing(),
            _ => self.vocabulary(),
        };
        self.decorate(path)
    }

    /// A path that mostly names a directory.
    fn dir_path(&mut self) -> RawPath {
        if self.rng.chance(40) {
            return self.path();
        }
        let mut path = self.existing(true);
        for _ in 0..2 {
            if path.len() > 1 {
                break;
            }
            path = self.known.random_path(&mut self.rng, true, true);
        }
        self.decorate(path)
    }

    /// A path that mostly names something other than a directory.
    fn file_path(&mut self) -> RawPath {
        let mut path = self.path();
        for _ in 0..3 {
            if !self.known.names_directory(&path) {
                break;
            }
            path = self.path();
        }
        path
    }

    /// A path that mostly names nothing yet, in a directory that mostly exists.
    fn new_path(&mut self) -> RawPath {
        let path = match self.rng.below(100) {
            0..=84 => self.beside_existing(),
            85..=92 => self.vocabulary(),
            _ => self.existing(false),
        };
        self.decorate(path)
    }

    /// The body of a symbolic link: anything a path can be, and more.
    fn body(&mut self) -> RawPath {
        let body = match self.rng.below(24) {
            0 => b"".to_vec(),
            1 => b".".to_vec(),
            2 => b"..".to_vec(),
            3 => b"/".to_vec(),
            4 => b"../..".to_vec(),
            5 => b"./".repeat(2047),
            6 => b"x".repeat(self.rng.pick(&[127, 128, 129, 4095, 4096])),
            7..=12 => self.path().0,
            13..=17 => self.name(),
            18..=19 => [self.name(), b"/".to_vec()].concat(),
            _ => [b"../".to_vec(), self.name()].concat(),
        };
        let escapes = self.world.confined && (body.starts_with(b"/") || body.starts_with(b".."));
        if escapes { RawPath(b"b".to_vec()) } else { RawPath(body) }
    }

    fn name(&mut self) -> Vec<u8> {
        match self.rng.below(100) {
            0..=79 => vec![self.rng.pick(b"abcde")],
            80..=82 => b"n".repeat(255),
            83 => b"n".repeat(256),
            84..=86 => b"forty".repeat(8),
            87..=91 => b"m".repeat(self.rng.pick(&[15, 16, 17, 31, 32, 33, 64])),
            92..=94 => vec![0xff, 0xfe, b'a'],
            95 => b"...".to_vec(),
            96 => self.rng.pick(&["..a", ".,", ". ", ".a", " .", ",."]).as_bytes().to_vec(),
            97 if !self.world.confined => b"..".to_vec(),
            98 => b".".to_vec(),
            _ => b" \n\x7f".to_vec(),
        }
    }

    fn vocabulary(&mut self) -> Vec<u8> {
        let depth = 1 + self.rng.below(4);
        let names: Vec<_> = (0..depth).map(|_| self.name()).collect();
        let root: &[u8] = if self.rng.chance(50) { b"/" } else { b"" };
        [root, &names.join(&b'/')].concat()
    }

    fn existing(&mut self, dir: bool) -> Vec<u8> {
        let from_root = self.rng.chance(60);
        if !self.world.confined && self.rng.chance(12) {
            return self.through_a_mount(dir);
        }
        let path = self.known.random_path(&mut self.rng, from_root, dir);
        if path.is_empty() && !dir { self.known.random_path(&mut self.rng, true, dir) } else { path }
    }

    fn beside_existing(&mut self) -> Vec<u8> {
        let mut path = self.existing(true);
        if !path.is_empty() && !path.ends_with(b"/") {
            path.push(b'/');
        }
        let mut name = self.name();
        if self.rng.chance(50) && self.known.names_something(&[&path[..], &name].concat()) {
            name = self.name();
        }
        [path, name].concat()
    }

    /// Now and then, makes a path look odd.
    fn decorate(&mut self, path: Vec<u8>) -> RawPath {
        let confined = self.world.confined;
        let path = match self.rng.below(100) {
            0..=3 => [&path[..], b"/"].concat(),
            4 => [&path[..], b"//"].concat(),
            5 => [&path[..], b"/."].concat(),
            6 if !confined => [&path[..], b"/.."].concat(),
            7 => [b"./", &path[..]].concat(),
            8 => [&path[..], b"/a"].concat(),
            9 => path.iter().flat_map(|b| if *b == b'/' { vec![b'/', b'/'] } else { vec![*b] }).collect(),
            10 if !confined => [b"../".as_slice(), &path].concat(),
            11 if !confined => [&path[..], b"/../", &self.name()].concat(),
            12 if !confined && self.rng.chance(20) => {
                let filler = self.rng.pick(&[4095, 4096, 5000]) - path.len().min(1000);
                [&b"/".repeat(filler), &path[..]].concat()
            }
            13 if self.rng.chance(20) => Vec::new(),
            14 if self.rng.chance(30) => b"/".to_vec(),
            15 if self.rng.chance(30) => b".".to_vec(),
            _ => path,
        };
        // A confined process has no root that it could name as such.
        RawPath(if confined && path.iter().all(|b| *b == b'/') { self.name() } else { path })
    }
}
