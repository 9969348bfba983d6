//! The later operations, at random.

use super::*;
use crate::namespace::ops::{Extra, Lock, MOUNT_FLAGS, Storage, XattrAt};

/// The second process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    None,
    /// With the mounts of the first.
    Beside,
    /// With its own mounts.
    Apart,
    /// The same with a root that `chroot(2)` has changed.
    Confined,
}

pub(super) const EXTRAS: [(usize, Maker); 25] = [
    (50, |g| g.rename_with_flags()),
    (20, |g| Op::Extra(Extra::LinkFollowing { from: g.file_path(), to: g.new_path() })),
    (15, Generator::link_open),
    (50, |g| g.open_how()),
    (40, |g| g.open_place()),
    (15, |g| g.open_unnamed()),
    (15, |g| Op::Extra(Extra::AccessLink { path: g.path(), bits: g.rng.below(8) as u32 })),
    (50, |g| g.set_xattr()),
    (30, |g| Op::Extra(Extra::GetXattr { at: g.xattr_at(), name: g.xattr_name() })),
    (20, |g| Op::Extra(Extra::RemoveXattr { at: g.xattr_at(), name: g.xattr_name() })),
    (20, |g| Op::Extra(Extra::ListXattrs { at: g.xattr_at() })),
    (25, |g| g.allocate()),
    (20, |g| g.seek_for()),
    (15, |g| Op::Extra(Extra::StatVfs { path: g.path() })),
    (25, |g| Op::Extra(Extra::List { slot: g.slot() })),
    (8, |g| Op::Extra(Extra::Rewind { slot: g.slot() })),
    (3, |g| Op::Extra(Extra::Mount { path: g.dir_path(), flags: g.mount_flags() })),
    (14, |g| g.bind()),
    (5, |g| Op::Extra(Extra::MoveMount { from: g.mounted(), to: g.dir_path() })),
    (8, |g| Op::Extra(Extra::Remount { path: g.mounted(), flags: g.mount_flags() })),
    (8, Generator::fork),
    (20, |g| Op::Extra(Extra::Flock { slot: g.open_slot(), lock: g.lock() })),
    (40, |g| {
        Op::Extra(Extra::LockRange { slot: g.open_slot(), lock: g.lock(), start: g.lock_start(), len: g.lock_len() })
    }),
    (15, |g| g.test_lock()),
    (12, |g| Op::Extra(Extra::Unmount { path: g.mounted(), detach: g.rng.chance(60) })),
];

/// More mounts than this: rather unmount.
const MANY_MOUNTS: usize = 5;

const NAMES: [&str; 11] = [
    "user.a",
    "user.b",
    "user.",
    "trusted.t",
    "trusted.",
    "security.s",
    "system.posix_acl_access",
    "system.posix_acl_access",
    "system.posix_acl_default",
    "system.other",
    "none",
];

impl Generator {
    /// Makes an operation, now and then one of the second process.
    pub(super) fn acted(&mut self, make: Maker) -> Op {
        if self.second == Second::None || !self.rng.chance(25) {
            return self.based(make);
        }
        self.known.switch();
        let op = match self.rng.below(40) {
            0 => {
                self.second = if self.second == Second::Apart { Second::Confined } else { self.second };
                Op::Extra(Extra::Chroot { path: self.dir_path() })
            }
            1..=2 if self.second == Second::Apart => {
                Op::Extra(Extra::PivotRoot { new_root: self.mounted(), put_old: self.dir_path() })
            }
            3..=4 => Op::Chdir { path: self.dir_path() },
            5 => Op::Getcwd,
            _ => self.based(make),
        };
        self.known.switch();
        // Both have one user; and what begins the second process is the first.
        let by_first = matches!(op, Op::Become(_) | Op::Extra(Extra::Fork { .. }));
        if by_first { op } else { Op::Other(Box::new(op)) }
    }

    /// Linux compares the objects of the credentials, of which each process has its own.
    fn link_open(&mut self) -> Op {
        let (slot, to) = (self.slot(), self.new_path());
        let may = self.second == Second::None || self.known.acts_as_root();
        if may { Op::Extra(Extra::LinkOpen { slot, to }) } else { Op::Fstat { slot } }
    }

    fn fork(&mut self) -> Op {
        let unshare = self.rng.chance(50);
        self.second = if unshare { Second::Apart } else { Second::Beside };
        Op::Extra(Extra::Fork { unshare })
    }

    /// A slot with an open file, if there is one.
    fn open_slot(&mut self) -> usize {
        let first = self.slot();
        let slots = (0..SWEEP_SLOT).map(|at| (first + at) % SWEEP_SLOT);
        slots.into_iter().find(|slot| self.known.is_open(*slot)).unwrap_or(first)
    }

    fn lock(&mut self) -> Lock {
        self.rng.pick(&[Lock::Shared, Lock::Shared, Lock::Exclusive, Lock::None])
    }

    fn lock_start(&mut self) -> u64 {
        self.rng.pick(&[0, 0, 10, 20, 30, 100])
    }

    fn lock_len(&mut self) -> u64 {
        self.rng.pick(&[0, 1, 10, 15, 20, 100])
    }

    /// Which lock conflicts with a shared or an exclusive one.
    fn test_lock(&mut self) -> Op {
        let lock = self.rng.pick(&[Lock::Shared, Lock::Exclusive]);
        let (slot, start, len) = (self.open_slot(), self.lock_start(), self.lock_len());
        Op::Extra(Extra::TestLock { slot, lock, start, len })
    }

    /// Makes an operation, now and then one whose relative paths start at what is open.
    pub(super) fn based(&mut self, make: Maker) -> Op {
        let op = make(self);
        let may = !self.world.confined && self.rng.chance(12);
        if !may || !takes_a_base(&op) {
            return op;
        }
        let slot = self.slot();
        Op::At { slot, op: Box::new(op) }
    }

    /// A path below something that is mounted.
    pub(super) fn through_a_mount(&mut self, dir: bool) -> Vec<u8> {
        let points = self.known.mount_points();
        if points.is_empty() {
            return b"/".to_vec();
        }
        let path = self.rng.pick(&points);
        self.known.random_path_from(&mut self.rng, path, dir)
    }

    fn rename_with_flags(&mut self) -> Op {
        let flags = self.rng.pick(&[RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_EXCHANGE, 3]);
        let (from, to) = (self.path(), if flags == RENAME_NOREPLACE { self.new_path() } else { self.path() });
        Op::Extra(Extra::Rename { from, to, flags })
    }

    /// `openat2` refuses what `open` ignores: modes without a file to make, other flags beside `O_PATH`.
    fn open_how(&mut self) -> Op {
        let resolve = [
            RESOLVE_BENEATH,
            RESOLVE_BENEATH,
            RESOLVE_IN_ROOT,
            RESOLVE_IN_ROOT,
            RESOLVE_NO_SYMLINKS,
            RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
            RESOLVE_NO_MAGICLINKS,
            RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
            RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS,
            RESOLVE_BENEATH | RESOLVE_IN_ROOT,
        ];
        let mut resolve = self.rng.pick(&resolve);
        let (slot, path) = (self.slot(), self.path());
        let mut flags = self.rng.pick(&[O_RDONLY, O_RDONLY, O_RDWR, O_PATH, O_PATH | O_NOFOLLOW, O_RDWR | O_CREAT]);
        flags |= self.rng.pick(&[0, 0, 0, O_NOFOLLOW, O_DIRECTORY]);
        if flags & O_CREAT != 0 {
            flags |= self.rng.pick(&[0, O_EXCL, O_TRUNC]);
        }
        if flags & O_CREAT != 0 {
            resolve &= !RESOLVE_NO_XDEV;
        }
        let mode = if flags & O_CREAT != 0 { self.rng.pick(&FILE_MODES) } else { 0 };
        Op::Extra(Extra::OpenHow { slot, path, flags, mode, resolve })
    }

    /// A directory or other place to start from.
    fn open_place(&mut self) -> Op {
        let slot = self.slot();
        let flags =
            self.rng.pick(&[O_PATH, O_PATH | O_DIRECTORY, O_DIRECTORY, O_DIRECTORY, O_PATH | O_NOFOLLOW, O_NOATIME]);
        let path = if self.rng.chance(75) { self.dir_path() } else { self.path() };
        Op::Open { slot, path, flags, mode: 0 }
    }

    fn open_unnamed(&mut self) -> Op {
        let flags = self.rng.pick(&[O_RDWR, O_RDWR, O_WRONLY, O_RDONLY]) | O_TMPFILE;
        let flags = flags | self.rng.pick(&[0, 0, 0, O_EXCL, O_CREAT]);
        Op::Open { slot: self.slot(), path: self.dir_path(), flags, mode: self.rng.pick(&FILE_MODES) }
    }

    fn xattr_at(&mut self) -> XattrAt {
        match self.rng.below(10) {
            0..=1 => XattrAt::Slot(self.slot()),
            2..=3 => XattrAt::Link(self.path()),
            _ => XattrAt::Path(self.path()),
        }
    }

    fn xattr_name(&mut self) -> RawPath {
        match self.rng.below(40) {
            0 => RawPath(Vec::new()),
            1 => RawPath([b"user.".to_vec(), b"n".repeat(self.rng.pick(&[250, 251]))].concat()),
            _ => RawPath::from(self.rng.pick(&NAMES)),
        }
    }

    fn set_xattr(&mut self) -> Op {
        let (at, name) = (self.xattr_at(), self.xattr_name());
        let value = match &name[..] {
            b"system.posix_acl_access" | b"system.posix_acl_default" => self.acl(),
            _ => self.rng.pick(&[b"v".to_vec(), b"longer".repeat(20), Vec::new(), vec![7; 3000]]),
        };
        let value = if self.rng.chance(1) { vec![1; 65537] } else { value };
        let how = self.rng.pick(&[0, 0, 0, 1, 2]);
        Op::Extra(Extra::SetXattr { at, name, value: RawPath(value), how })
    }

    /// An ACL as `setxattr` takes it, mostly a right one.
    fn acl(&mut self) -> Vec<u8> {
        if self.rng.chance(10) {
            return Vec::new();
        }
        let mut acl = 2_u32.to_le_bytes().to_vec();
        let mut add = |tag: u16, perm: usize, id: u32| {
            acl.extend(tag.to_le_bytes());
            acl.extend((perm as u16).to_le_bytes());
            acl.extend(id.to_le_bytes());
        };
        const NO_ID: u32 = u32::MAX;
        let rng = &mut self.rng;
        add(1, rng.pick(&[7, 6, 4, 7]), NO_ID);
        let mut named = false;
        for (tag, ids) in [(2, [0, 1000, 1001]), (8, [0, 1000, 2000])] {
            if tag == 8 {
                add(4, rng.below(8), NO_ID);
            }
            for id in ids {
                if rng.chance(25) {
                    named = true;
                    add(tag, rng.below(8), id);
                }
            }
        }
        if named != rng.chance(8) {
            add(0x10, rng.below(8), NO_ID);
        }
        add(0x20, rng.below(8), NO_ID);
        acl
    }

    fn allocate(&mut self) -> Op {
        let reserves = [Storage::Reserve, Storage::ReserveKeepSize, Storage::PunchHole, Storage::PunchHole];
        let how = if self.reserves { self.rng.pick(&reserves) } else { Storage::PunchHole };
        let (offset, len) = (self.rng.pick(&OFFSETS), self.rng.pick(&[0, 1, 100, 4096, 8192, 20000]));
        Op::Extra(Extra::Allocate { slot: self.slot(), how, offset, len })
    }

    /// Not where storage was reserved: see [`crate::namespace::exceptions`].
    fn seek_for(&mut self) -> Op {
        let slot = self.slot();
        if self.reserves {
            return Op::Fstat { slot };
        }
        Op::Extra(Extra::SeekFor { slot, hole: self.rng.chance(50), offset: self.rng.pick(&OFFSETS) })
    }

    fn mount_flags(&mut self) -> u32 {
        let mut flags = 0;
        for flag in MOUNT_FLAGS {
            flags |= if self.rng.chance(15) { flag } else { 0 };
        }
        flags
    }

    fn bind(&mut self) -> Op {
        if self.known.mount_points().len() > MANY_MOUNTS {
            return Op::Extra(Extra::Unmount { path: self.mounted(), detach: true });
        }
        let (from, to) =
            if self.rng.chance(85) { (self.dir_path(), self.dir_path()) } else { (self.path(), self.path()) };
        Op::Extra(Extra::Bind { from, to, flags: self.mount_flags(), recursive: self.rng.chance(30) })
    }

    /// A path where mostly something is mounted.
    fn mounted(&mut self) -> RawPath {
        let points = self.known.mount_points();
        if points.is_empty() || self.rng.chance(10) { self.dir_path() } else { RawPath(self.rng.pick(&points)) }
    }
}

/// Whether there is a system call that does it from a directory on.
fn takes_a_base(op: &Op) -> bool {
    match op {
        Op::Mkdir { .. }
        | Op::Mknod { .. }
        | Op::Symlink { .. }
        | Op::Link { .. }
        | Op::Unlink { .. }
        | Op::Rmdir { .. }
        | Op::Rename { .. }
        | Op::Open { .. }
        | Op::Readlink { .. }
        | Op::Stat { .. }
        | Op::Lstat { .. }
        | Op::ReadDir { .. }
        | Op::Chmod { .. }
        | Op::Chown { .. }
        | Op::Utimens { .. }
        | Op::Access { .. } => true,
        Op::Extra(op) => matches!(
            op,
            Extra::Rename { .. } | Extra::LinkFollowing { .. } | Extra::OpenHow { .. } | Extra::AccessLink { .. }
        ),
        _ => false,
    }
}
