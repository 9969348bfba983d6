//! Requests to a FUSE session over a tree in memory, without a kernel.
//!
//! There are two attackers. A hostile *kernel* sends any node, handle, name, offset, size and number of forgets. A hostile
//! *user* has a kernel that keeps its rules (it names only what it looked up and opened), and the session checks the user's
//! permissions ([`Checks::Own`]).
//!
//! Against both: no panic; nodes, lookups and handles are those of a plain count of the replies; the tree stays within its
//! limits; at the end nothing is held. Against the user also: what belongs to root stays as it is and is not read, nothing
//! belongs to another user, and no file has a set-id bit that the user may not give.

use crate::guarded_tree::{BYTES, INODES, SECRET, check_others_files, check_roots_files, tree};
use crate::input::Input;
use fuse::{
    Caller, Checks, Entry, FileLock, Gauge, LockFamily, LockOwner, NameIn, NewMode, Opened, ROOT_NODE, Session,
    SessionOptions, Unlisted,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use testkit::Counts;
use vfs::{
    Base, Errno, LockKind, OpenFlags, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFMT, S_IFREG, SetAttr, SetTime, Vfs, Want,
};

/// One run sends at most this many requests.
const MAX_STEPS: usize = 128;

/// The longest wait for the end of the file system. An end that takes longer never comes.
const PATIENCE: Duration = Duration::from_secs(10);

/// The limit on the memory of dentries and inodes. The tree takes this memory from the system in
/// units; the limit is two units for each file system.
const SLOT_BYTES: usize = 8 << 20;

const ROOT: Caller = Caller::of(0, 0);
const USER: Caller = Caller { pid: 0, group: Some(7), ..Caller::of(1001, 1001) };
const OTHER: Caller = Caller { pid: u32::MAX, group: None, ..Caller::of(7, u32::MAX) };

const GOOD_NAMES: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b"secret",
    b"private",
    b"x",
    b"program",
    b"read",
    b"d",
    b"kept",
    b"open",
    b"drop",
    b"m",
    b"a-name-of-more-than-thirty-two-bytes",
    b"\xff\x01",
];
const BAD_NAMES: &[&[u8]] =
    &[b"", b".", b"..", b"/", b"a/b", b"../private/x", b"a\0b", b"/secret", &[b'n'; 255], &[b'n'; 256], &[b'n'; 5000]];
const XATTRS: &[&[u8]] = &[
    b"user.a",
    b"user.b",
    b"trusted.a",
    b"security.capability",
    b"security.a",
    b"system.posix_acl_access",
    b"system.posix_acl_default",
    b"user.",
    b"",
    b"x",
    b"user.\0",
];
const NUMBERS: &[u64] = &[
    0,
    1,
    2,
    3,
    4095,
    4096,
    BYTES,
    1 << 31,
    1 << 32,
    1 << 62,
    i64::MAX as u64 - 1,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

struct World {
    vfs: Vfs,
    counts: Arc<Counts>,
    session: Arc<Session>,
    /// Whether the kernel keeps its rules and every request comes from the user.
    is_user: bool,
    /// Whether the kernel sends neither OPEN nor RELEASE.
    no_open: bool,
    /// The number of lookups that replies have counted, less the forgets, for each node.
    known: BTreeMap<u64, u64>,
    forgotten: Vec<u64>,
    /// The number of forgets beyond the counted lookups.
    excess: u64,
    /// The node and the handle of each open file.
    files: Vec<(u64, u64)>,
    directories: Vec<u64>,
}

/// Runs one input: its first byte chooses the options, and the rest makes the requests.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut world = World::new(input.byte());
    let mut steps = 0;
    while !input.is_empty() && steps < MAX_STEPS {
        // What a request answers is other tests' business.
        let _ = world.step(&mut input);
        let open = world.files.len() + world.directories.len();
        let kept = (world.session.known_nodes(), world.session.open_handles());
        assert_eq!(kept, (world.known.len() + 1, open), "nodes and handles");
        steps += 1;
    }
    world.end();
}

impl World {
    fn new(flags: u8) -> Self {
        let is_user = flags & 1 == 1;
        let (vfs, counts) = tree();
        let is_own = is_user || flags & 2 != 0;
        let options = SessionOptions {
            checks: if is_own { Checks::Own } else { Checks::Kernel },
            writeback: flags & 4 != 0,
            locks: flags & 8 != 0,
            // Nobody would check reads and writes.
            no_open: flags & 16 != 0 && !is_own,
            passthrough: flags & 32 != 0,
            max_nodes: 8,
            ..SessionOptions::default()
        };
        let no_open = options.no_open;
        let session = Session::new(&vfs, options).expect("a session");
        session.note_groups(flags & 64 != 0);
        Self {
            vfs,
            counts,
            session,
            is_user,
            no_open,
            known: BTreeMap::new(),
            forgotten: Vec::new(),
            excess: 0,
            files: Vec::new(),
            directories: Vec::new(),
        }
    }

    fn caller(&self, input: &mut Input<'_>) -> Caller {
        if self.is_user { USER } else { [ROOT, USER, OTHER][input.below(3)] }
    }

    /// Takes the number of the root or of a node that the kernel has looked up. A hostile kernel
    /// may send any number instead.
    fn node(&self, input: &mut Input<'_>) -> u64 {
        let which = input.byte();
        if which >= 0xe0 && !self.is_user {
            return match which & 3 {
                0 => number(input),
                1 => 1 << 62 | u64::from(input.word()),
                _ => self.forgotten.last().copied().unwrap_or(u64::from(which)),
            };
        }
        let known = usize::from(which) % (self.known.len() + 1);
        self.known.keys().nth(known).copied().unwrap_or(ROOT_NODE)
    }

    /// Takes the node and the handle of an open file. A hostile kernel may send any numbers
    /// instead.
    fn file(&self, input: &mut Input<'_>) -> Option<(u64, u64)> {
        let which = input.byte();
        if which >= 0xc0 && !self.is_user {
            let handle = match which & 3 {
                0 => number(input),
                1 => self.directories.last().copied().unwrap_or(1),
                2 => self.files.last().map_or(0, |(_, handle)| handle ^ u64::from(input.byte())),
                _ => 0,
            };
            return Some((self.node(input), handle));
        }
        self.files.get(usize::from(which) % self.files.len().max(1)).copied()
    }

    fn directory(&self, input: &mut Input<'_>) -> u64 {
        let which = input.byte();
        match self.directories.get(usize::from(which) % self.directories.len().max(1)) {
            Some(_) | None if which >= 0xe0 && !self.is_user => number(input),
            Some(handle) => *handle,
            None => 0,
        }
    }

    fn name(&self, input: &mut Input<'_>) -> &'static [u8] {
        let which = input.byte();
        let names = if which >= 0xf0 && !self.is_user { BAD_NAMES } else { GOOD_NAMES };
        names[usize::from(which) % names.len()]
    }

    /// Counts the lookup of the node in a reply.
    fn replied(&mut self, entry: Result<Entry, Errno>) -> Result<(), Errno> {
        let entry = entry?;
        assert!(entry.node >= ROOT_NODE && entry.attr.ino == entry.node, "{entry:?}");
        if entry.node == ROOT_NODE {
            // `.` or `..`, as of a file handle: its lookups are not counted.
            return Ok(());
        }
        *self.known.entry(entry.node).or_default() += 1;
        Ok(())
    }

    fn opened(&mut self, node: u64, opened: &Opened) {
        if opened.handle == 0 {
            assert!(self.no_open, "0 stands for no handle");
        } else {
            self.files.push((node, opened.handle));
        }
    }

    fn forget(&mut self, node: u64, lookups: u64) {
        self.session.forget(node, lookups);
        if node == ROOT_NODE {
            return;
        }
        let known = self.known.get(&node).copied().unwrap_or(0);
        self.excess = self.excess.wrapping_add(lookups.saturating_sub(known));
        if known > lookups {
            self.known.insert(node, known - lookups);
        } else if self.known.remove(&node).is_some() {
            self.forgotten.push(node);
        }
    }

    fn step(&mut self, input: &mut Input<'_>) -> Result<(), Errno> {
        let (kind, caller) = (input.byte(), self.caller(input));
        match kind % 32 {
            0..=9 => self.names(kind % 32, &caller, input),
            10..=20 => self.data(kind % 32, &caller, input),
            21..=25 => self.attributes(kind % 32, &caller, input),
            26 | 27 => self.list(&caller, input),
            28 if self.is_user => {
                let node = self.node(input);
                let known = self.known.get(&node).copied().unwrap_or(0);
                self.forget(node, (1 + u64::from(input.byte())).min(known));
                Ok(())
            }
            28 => {
                let lookups = if input.byte() & 1 == 0 { 1 } else { number(input) };
                let node = self.node(input);
                self.forget(node, lookups);
                Ok(())
            }
            29 => self.lock(&caller, input),
            _ => {
                let node = self.node(input);
                let is_known = node == ROOT_NODE || self.known.contains_key(&node);
                let answer = self.session.getattr(node).map(|(attr, _)| attr);
                assert_eq!(is_known, answer != Err(Errno::ESTALE), "node {node}: {answer:?}");
                self.session.statfs(node).map(drop)
            }
        }
    }

    fn names(&mut self, kind: u8, caller: &Caller, input: &mut Input<'_>) -> Result<(), Errno> {
        let (session, dir, name) = (self.session.clone(), self.node(input), self.name(input));
        let new = NewMode::new(input.word() & 0o7777, u32::from(input.byte()) & 0o777);
        let entry = match kind {
            0 | 1 => session.lookup(caller, dir, name),
            2 => session.mkdir(caller, dir, name, new),
            3 => {
                let types: &[u32] = if self.is_user {
                    &[S_IFREG, S_IFIFO, 0]
                } else {
                    &[S_IFREG, S_IFIFO, 0, S_IFCHR, S_IFBLK, S_IFDIR, S_IFMT]
                };
                session.mknod(caller, dir, name, NewMode { mode: new.mode | input.pick(types), ..new }, input.word())
            }
            4 => session.symlink(caller, dir, name, [SECRET, b"", b"/", &[b'x'; 5000]][input.below(3)], &[]),
            5 => session.link(caller, self.node(input), dir, name),
            6 => {
                let (entry, opened) = session.create(caller, dir, name, new, flags(input, self.is_user))?;
                self.opened(entry.node, &opened);
                Ok(entry)
            }
            7 => return session.unlink(caller, dir, name),
            8 => return session.rmdir(caller, dir, name),
            _ => {
                let (to, flags) = (NameIn::new(self.node(input), self.name(input)), u32::from(input.byte()));
                return session.rename(
                    caller,
                    NameIn::new(dir, name),
                    to,
                    if self.is_user { flags % 3 } else { flags },
                );
            }
        };
        self.replied(entry)
    }

    fn data(&mut self, kind: u8, caller: &Caller, input: &mut Input<'_>) -> Result<(), Errno> {
        let session = self.session.clone();
        if kind <= 11 {
            let node = self.node(input);
            let opened = session.open(caller, node, flags(input, self.is_user))?;
            self.opened(node, &opened);
            return Ok(());
        }
        let (node, handle) = self.file(input).ok_or(Errno::EBADF)?;
        match kind {
            12 => {
                let mut buffer = [0; 4096];
                let (offset, len) = (number(input), usize::from(input.byte()) * 16);
                let read = session.read(node, handle, offset, &mut buffer[..len])?;
                assert!(read <= len);
                self.check_not_secret(&buffer[..read]);
                Ok(())
            }
            13 | 14 => {
                let (offset, data) = (number(input), input.take(16));
                let written = session.write(node, handle, offset, data)?;
                assert!(written <= data.len());
                Ok(())
            }
            15 => session.write_clearing(node, handle, number(input), &[7; 8192]).map(drop),
            16 => {
                let mode = u32::from(input.byte()) & 0x3f;
                session.fallocate(caller, node, handle, mode, (number(input), number(input)))
            }
            17 => session.lseek(node, handle, number(input), u32::from(input.byte()) % 6).map(drop),
            18 => {
                let set = SetAttr { size: Some(number(input)), ..SetAttr::default() };
                session.setattr(caller, node, &set, Some(handle)).map(drop)
            }
            19 => session.fsync(node, handle, true).and(session.flush(node, handle, number(input))),
            _ => {
                session.release(handle);
                self.files.retain(|(_, open)| *open != handle);
                Ok(())
            }
        }
    }

    fn attributes(&self, kind: u8, caller: &Caller, input: &mut Input<'_>) -> Result<(), Errno> {
        let (session, node) = (&self.session, self.node(input));
        let name = *input.pick(XATTRS);
        match kind {
            21 => {
                let bits = input.byte();
                let owners = [0, 1001, 7, u32::MAX, u32::MAX - 1];
                let mut some = |bit: u8, value: fn(&mut Input<'_>) -> u64| (bits & bit != 0).then(|| value(input));
                let mode = some(1, |input| u64::from(input.word() & 0o7777)).map(|mode| mode as u32);
                let uid = some(2, |input| u64::from(input.byte())).map(|at| owners[at as usize % owners.len()]);
                let gid = some(4, |input| u64::from(input.byte())).map(|at| owners[at as usize % owners.len()]);
                let (size, at) = (some(8, number), some(16, number).map(|at| SetTime::At(at as i64)));
                let set = SetAttr { mode, uid, gid, size, atime: at, mtime: (bits & 32 != 0).then_some(SetTime::Now) };
                session.setattr(caller, node, &set, None).map(drop)
            }
            22 => session.setxattr(caller, node, name, &input.acl_attribute(1001), i32::from(input.byte() & 7)),
            23 => session.removexattr(caller, node, name),
            24 => {
                let (value, names) = (session.getxattr(caller, node, name), session.listxattr(caller, node));
                if let Ok(value) = value {
                    self.check_not_secret(&value);
                }
                names.map(drop)
            }
            _ => session.access(caller, node, u32::from(input.byte())).and(session.readlink(node).map(drop)),
        }
    }

    fn list(&mut self, caller: &Caller, input: &mut Input<'_>) -> Result<(), Errno> {
        let session = self.session.clone();
        match input.byte() % 4 {
            0 => self.directories.push(session.opendir(caller, self.node(input))?),
            1 => {
                let handle = self.directory(input);
                session.releasedir(handle);
                self.directories.retain(|open| *open != handle);
            }
            _ => {
                let (handle, cookie, mut room) = (self.directory(input), number(input), usize::from(input.byte()));
                let mut entries = Vec::new();
                let listed = session.readdir(handle, cookie, Want::ATTRIBUTES, &mut |entry| {
                    if room == 0 {
                        return false;
                    }
                    room -= 1;
                    if !matches!(entry.name, b"." | b"..") {
                        match session.listed_entry(caller, handle, entry) {
                            Ok(entry) => entries.push(entry),
                            Err(Unlisted::NameOnly(node)) => session.forget(node, 1),
                            Err(Unlisted::Gone) => {}
                        }
                    }
                    true
                });
                entries.into_iter().try_for_each(|entry| self.replied(Ok(entry)))?;
                listed?;
                session.fsyncdir(handle, false)?;
            }
        }
        Ok(())
    }

    fn lock(&self, caller: &Caller, input: &mut Input<'_>) -> Result<(), Errno> {
        let node = self.node(input);
        let kind = *input.pick(&[LockKind::Shared, LockKind::Exclusive, LockKind::Unlock]);
        let family = *input.pick(&[LockFamily::Ranges, LockFamily::Whole]);
        let lock = FileLock { kind, start: number(input), end: number(input), family, pid: 1 };
        let owner = LockOwner { node, owner: u64::from(input.byte() & 3), handle: 0 };
        if input.byte() & 1 == 0 {
            return self.session.getlk(caller, owner, lock).map(drop);
        }
        // Those that wait end with the session.
        if input.byte() & 1 == 0 {
            self.session.setlk_waiting(caller, number(input), owner, lock, Box::new(drop));
            return self.session.interrupt(number(input));
        }
        self.session.setlk(caller, owner, lock)
    }

    fn check_not_secret(&self, bytes: &[u8]) {
        let is_secret = bytes.windows(SECRET.len()).any(|part| part == SECRET);
        assert!(!self.is_user || !is_secret, "a user read what only root may read");
    }

    fn end(self) {
        let Self { vfs, counts, session, is_user, known, excess, .. } = self;
        session.measure();
        let gauge = |gauge| session.metrics().get(gauge);
        assert_eq!(gauge(Gauge::Lookups), known.values().sum::<u64>(), "lookups");
        assert_eq!(gauge(Gauge::ExcessForgets), excess, "forgets in excess");
        session.end();
        assert_eq!((session.known_nodes(), session.open_handles()), (1, 0));
        drop(session);
        vfs.barrier();
        let stats = vfs.stats();
        assert!(stats.slot_bytes <= SLOT_BYTES, "{stats:?}");
        let context = vfs.context();
        for path in ["/", "/m"] {
            let used = context.statvfs(Base::CWD, path.as_bytes()).expect("a root").fs;
            let bytes = (used.blocks - used.blocks_free) * u64::from(used.block_size);
            assert!(bytes <= BYTES && used.files - used.files_free <= INODES, "{path}: {used:?}");
        }
        if is_user {
            let roots = check_roots_files(&context);
            check_others_files(&context, b"/", &roots);
        }
        drop(context);
        drop(vfs);
        assert!(counts.ends_within(PATIENCE), "a file system outlived its tree");
    }
}

/// Takes a number from the input. The number is often near a limit.
fn number(input: &mut Input<'_>) -> u64 {
    match input.byte() {
        byte if byte < 0x80 => NUMBERS[usize::from(byte) % NUMBERS.len()],
        byte if byte < 0xc0 => u64::from(byte & 0x3f),
        _ => input.take(8).iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

/// Takes flags of `open(2)` from the input. If `is_user` is set, takes only flags that a
/// rule-keeping kernel sends.
fn flags(input: &mut Input<'_>, is_user: bool) -> u32 {
    let (bits, access) = (input.word() << 4, u32::from(input.byte()) & 3);
    if is_user {
        // A kernel that keeps its rules resolves the others.
        let known = OpenFlags::TRUNC.bits() | OpenFlags::APPEND.bits() | OpenFlags::EXCL.bits();
        return bits & known | access % 3;
    }
    bits | access
}
