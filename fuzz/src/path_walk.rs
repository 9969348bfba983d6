//! Walks of any path: rcu-walk, ref-walk and the slow walk over a table answer alike.

use crate::input::Input;
use crate::static_fs::StaticFs;
use crate::tree::{Kind, MOUNT, NODES, PIECES, STARTS, SlowWalk, is_second, path_of};
use ramfs::RamFs;
use std::sync::OnceLock;
use vfs::{Base, Context, Credentials, Errno, MountFlags, OpenFlags, PathRef, Resolve, S_IFREG, SetAttr, Vfs};

/// One of the two trees, with a context of root and a context of a user.
struct Side {
    _vfs: Vfs,
    contexts: [Context; 2],
    starts: Vec<PathRef>,
}

/// Returns the path of `node` from the root of the tree. The second file system is mounted at `/m`.
fn full_path(node: usize) -> Vec<u8> {
    let root = if is_second(node) { "/m/" } else { "/" };
    [root.as_bytes(), path_of(node).as_bytes()].concat()
}

impl Side {
    fn new(vfs: Vfs, context: Context) -> Self {
        let starts = STARTS.map(|node| context.hold(Base::CWD, &full_path(node), true).expect("a start")).into();
        let user = context.fork();
        user.set_credentials(Credentials::user(7, 7, &[]));
        Self { _vfs: vfs, contexts: [context, user], starts }
    }

    /// Makes a tree whose names are all in the cache.
    fn cached() -> Self {
        let vfs = Vfs::new(RamFs::new());
        let context = vfs.context();
        for (at, node) in NODES.iter().enumerate() {
            let path = full_path(at);
            if at == MOUNT.1 {
                context.mount(RamFs::new(), Base::CWD, b"/m", MountFlags::default()).expect("a mount");
            } else if at != 0 {
                match node.kind {
                    Kind::Dir(mode) => context.mkdir(Base::CWD, &path, mode),
                    Kind::File => context.mknod(Base::CWD, &path, S_IFREG | 0o644, 0),
                    Kind::Link(body) => context.symlink(body.as_bytes(), Base::CWD, &path),
                }
                .expect("a new node");
            }
            let gid = Some(u32::try_from(at).unwrap_or(0) + 1000);
            let set = SetAttr { gid, ..SetAttr::default() };
            context.set_attr(Base::CWD, &path, false, &set).expect("a group");
        }
        Self::new(vfs, context)
    }

    /// Makes a tree in which each walk looks up every name anew.
    fn asked() -> Self {
        let vfs = Vfs::new(StaticFs(0));
        let context = vfs.context();
        context.mount(StaticFs(MOUNT.1), Base::CWD, b"/m", MountFlags::default()).expect("a mount");
        Self::new(vfs, context)
    }
}

fn sides() -> &'static [Side; 2] {
    static SIDES: OnceLock<[Side; 2]> = OnceLock::new();
    SIDES.get_or_init(|| [Side::cached(), Side::asked()])
}

/// Makes a path. A byte of the input from 1 to 63 adds a piece, and any other byte adds itself. A
/// large first byte makes the last component very long.
fn path(input: &mut Input<'_>) -> Vec<u8> {
    let stretch = usize::from(input.byte());
    let mut path = Vec::new();
    while !input.is_empty() && path.len() < 5000 {
        match input.byte() {
            0 => path.push(0),
            byte if byte <= 32 => path.extend_from_slice(PIECES[usize::from(byte) - 1].as_bytes()),
            byte if byte < 64 => {
                path.push(b'/');
                path.extend_from_slice(PIECES[usize::from(byte) - 32].as_bytes());
            }
            byte => path.push(byte),
        }
    }
    if stretch > 200 {
        path.extend(std::iter::repeat_n(b'x', (stretch - 200) * 100));
    }
    path
}

/// Returns the number of the node that has the attributes `attr`.
fn node(attr: vfs::Attr) -> usize {
    attr.gid as usize - 1000
}

/// Runs one input: four bytes of flags, then the path.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (flags, resolve, open_flags) = (input.byte(), input.byte() & 0x1f, input.word());
    let (follow, is_user, start) = (flags & 1 != 0, flags & 2 != 0, usize::from(flags >> 2) % STARTS.len());
    let Ok(resolve) = Resolve::from_linux(resolve.into()) else { return };
    let path = path(&mut input);
    let expected = if path.contains(&0) {
        Err(Errno::EINVAL)
    } else {
        SlowWalk::walk(STARTS[start], &path, follow, resolve, !is_user)
    };
    for (n, side) in sides().iter().enumerate() {
        let context = &side.contexts[usize::from(is_user)];
        let base = Base::at(&side.starts[start]).within(resolve);
        let what =
            || format!("side {n}, from {start}, {resolve:?}, follow {follow}, {:?}", String::from_utf8_lossy(&path));
        let answer = context.attr(base, &path, follow).map(node);
        assert_eq!(answer, expected, "{}", what());
        let cached = context.attr(base.within(Resolve::CACHED), &path, follow).map(node);
        assert!(cached == expected || cached == Err(Errno::EAGAIN), "cached: {cached:?} {expected:?} {}", what());
        assert!(n == 1 || cached == expected, "a cached tree had to ask: {}", what());
        let o_path = if follow { OpenFlags::PATH } else { OpenFlags::PATH.union(OpenFlags::NOFOLLOW) };
        let opened = context.open(base, &path, o_path, 0).and_then(|file| file.attr()).map(node);
        assert_eq!(opened, expected, "open: {}", what());
        if let (Ok(_), false) = (expected, is_user) {
            // Of a scoped walk, the path from the root of its scope.
            let scoped = resolve.contains(Resolve::BENEATH) || resolve.contains(Resolve::IN_ROOT);
            let from = if scoped { Base::at(&side.starts[start]).within(Resolve::IN_ROOT) } else { Base::CWD };
            let canonical = context.canonical(base, &path).map(|path| context.attr(from, &path, false).map(node));
            let followed = context.attr(base, &path, true).map(node);
            assert_eq!(canonical.unwrap_or_else(Err), followed, "canonical: {}", what());
        }
        // Any other way to open: an answer, whatever it is. (Nothing is made or cut, so the tree stays.)
        let harmless = !(OpenFlags::CREAT.bits() | OpenFlags::TRUNC.bits() | OpenFlags::TMPFILE.bits());
        let harmless = ((open_flags << 4) & harmless) | (OpenFlags::DIRECTORY.bits() * (open_flags & 1));
        drop(context.open(base, &path, OpenFlags::from_bits_retain(harmless), 0));
    }
}
