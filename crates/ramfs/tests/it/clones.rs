//! Random reads, writes, copies, reflinks, holes and truncations of a few files, as `fsx` makes them, against plain vectors.

use lightfoot_ramfs::{RamFs, RamLimits};
use vfs::{Allocate, Base, Context, Errno, OpenFile, OpenFlags, Vfs};

const PAGE: u64 = 4096;
const FILES: usize = 3;
/// The most bytes of a file.
const MOST: u64 = 24 * PAGE;
const STEPS: usize = 30_000;

/// A file, and what it must contain.
struct Pair {
    file: OpenFile,
    bytes: Vec<u8>,
}

struct Run {
    random: fastrand::Rng,
    pairs: Vec<Pair>,
    at: Context,
    free: u64,
}

impl Run {
    fn new(seed: u64, limits: RamLimits) -> Self {
        let at = Vfs::new(RamFs::with_limits(limits)).context();
        let flags = OpenFlags::RDWR.union(OpenFlags::CREAT);
        let open = |number: usize| at.open(Base::CWD, format!("/{number}").as_bytes(), flags, 0o644).unwrap();
        let pairs = (0..FILES).map(|number| Pair { file: open(number), bytes: Vec::new() }).collect();
        let free = at.statvfs(Base::CWD, b"/").unwrap().fs.blocks_free;
        Self { random: fastrand::Rng::with_seed(seed), pairs, at, free }
    }

    /// An offset, often at a page.
    fn offset(&mut self) -> u64 {
        let at = self.random.u64(..MOST);
        if self.random.u8(..3) == 0 { at } else { at / PAGE * PAGE }
    }

    fn len(&mut self) -> u64 {
        let len = self.random.u64(1..8 * PAGE);
        if self.random.bool() { len } else { len.next_multiple_of(PAGE) }
    }

    fn step(&mut self, step: usize) {
        let (one, other) = (self.random.usize(..FILES), self.random.usize(..FILES));
        let (offset, at, len) = (self.offset(), self.offset(), self.len());
        match self.random.u8(..10) {
            0 => self.set_len(one, offset),
            1 => self.allocate(one, Allocate::PunchHole, offset, len),
            2 => self.allocate(one, Allocate::Zero, offset, len),
            3 => self.allocate(one, Allocate::Reserve, offset, len),
            4 | 5 => self.clone(one, other, (offset, at, len)),
            6 => self.clone(one, other, (0, 0, 0)),
            7 => self.copy(one, other, (offset, at, len)),
            _ => self.write(one, offset, len, step as u8),
        }
    }

    fn set_len(&mut self, one: usize, len: u64) {
        let pair = &mut self.pairs[one];
        pair.file.set_len(len).unwrap();
        pair.bytes.resize(len as usize, 0);
    }

    fn allocate(&mut self, one: usize, how: Allocate, offset: u64, len: u64) {
        let pair = &mut self.pairs[one];
        match pair.file.allocate(how, false, offset, len) {
            Ok(()) => {}
            Err(Errno::ENOSPC) => return,
            Err(errno) => panic!("{errno}"),
        }
        let (start, end) = (offset as usize, (offset + len) as usize);
        if how != Allocate::PunchHole && pair.bytes.len() < end {
            pair.bytes.resize(end, 0);
        }
        let (size, is_zeroed) = (pair.bytes.len(), how != Allocate::Reserve);
        pair.bytes[start.min(size)..if is_zeroed { end.min(size) } else { start.min(size) }].fill(0);
    }

    fn write(&mut self, one: usize, offset: u64, len: u64, byte: u8) {
        let pair = &mut self.pairs[one];
        match pair.file.write_at(offset, &vec![byte; len as usize]) {
            Ok((written, end)) => {
                put(&mut pair.bytes, offset, &vec![byte; written]);
                assert_eq!(end, offset + written as u64);
            }
            Err(errno) => assert_eq!(errno, Errno::ENOSPC),
        }
    }

    /// The rules of `ioctl_ficlonerange(2)`, once more.
    fn clone(&mut self, one: usize, other: usize, (offset, at, len): (u64, u64, u64)) {
        let (size, target_size) = (self.pairs[one].bytes.len() as u64, self.pairs[other].bytes.len() as u64);
        let done = self.pairs[one].file.clone_to(offset, &self.pairs[other].file, at, len);
        let whole = if len == 0 { size.saturating_sub(offset) } else { len };
        let end = offset + whole;
        let (is_to_end, in_pages) = (end == size, whole.next_multiple_of(PAGE));
        let is_refused = offset > size
            || len > 0 && offset == size
            || end > size
            || whole > 0 && (offset % PAGE != 0 || at % PAGE != 0)
            || end % PAGE != 0 && (!is_to_end || at + whole < target_size)
            || whole > 0 && one == other && at < offset + in_pages && offset < at + in_pages;
        match done {
            Err(Errno::ENOSPC) if !is_refused => {}
            _ if is_refused => assert_eq!(done, Err(Errno::EINVAL), "{offset} {at} {len} {size} {target_size}"),
            _ => {
                assert_eq!(done, Ok(()), "{offset} {at} {len} {size} {target_size}");
                let part = self.pairs[one].bytes[offset as usize..end as usize].to_vec();
                put(&mut self.pairs[other].bytes, at, &part);
            }
        }
    }

    fn copy(&mut self, one: usize, other: usize, (offset, at, len): (u64, u64, u64)) {
        let done = self.pairs[one].file.copy_to(offset, &self.pairs[other].file, at, len);
        let most = len.min((self.pairs[one].bytes.len() as u64).saturating_sub(offset));
        let overlaps = one == other && at < offset + most && offset < at + most;
        match done {
            Ok(copied) => {
                assert!(!overlaps && copied <= most);
                let part: Vec<u8> =
                    self.pairs[one].bytes.iter().skip(offset as usize).take(copied as usize).copied().collect();
                put(&mut self.pairs[other].bytes, at, &part);
            }
            Err(errno) => assert_eq!(errno, if overlaps { Errno::EINVAL } else { Errno::ENOSPC }),
        }
    }

    fn check(&self, step: usize) {
        let mut blocks = 0;
        for (number, Pair { file, bytes }) in self.pairs.iter().enumerate() {
            let attr = file.attr().unwrap();
            assert_eq!(attr.size, bytes.len() as u64, "step {step}, file {number}");
            let mut found = vec![1; bytes.len()];
            assert_eq!(file.read_at(0, &mut found), Ok(bytes.len()));
            let differ = found.iter().zip(bytes).position(|(found, wanted)| found != wanted);
            assert_eq!(differ, None, "step {step}, file {number}");
            blocks += attr.blocks / (PAGE / 512);
        }
        // Each file is charged for all of its pages.
        let free = self.at.statvfs(Base::CWD, b"/").unwrap().fs.blocks_free;
        assert_eq!(self.free - free, blocks, "step {step}");
    }
}

/// Writes `part` into `bytes`, which grow if necessary.
fn put(bytes: &mut Vec<u8>, at: u64, part: &[u8]) {
    if !part.is_empty() {
        let end = at as usize + part.len();
        bytes.resize(bytes.len().max(end), 0);
        bytes[at as usize..end].copy_from_slice(part);
    }
}

fn check(limits: RamLimits) {
    let given = std::env::var("LIGHTFOOT_SEED").ok();
    let seed = given.map_or_else(|| fastrand::u64(..), |seed| seed.parse().expect("LIGHTFOOT_SEED: a number"));
    println!("LIGHTFOOT_SEED={seed}");
    let mut run = Run::new(seed, limits);
    for step in 0..STEPS {
        run.step(step);
        run.check(step);
    }
}

#[test]
fn files_that_share_pages_agree_with_plain_vectors() {
    check(RamLimits { bytes: Some(1 << 30), ..RamLimits::none() });
}

#[test]
fn files_that_share_pages_agree_with_plain_vectors_where_room_is_short() {
    check(RamLimits { bytes: Some(40 * PAGE), ..RamLimits::none() });
}
