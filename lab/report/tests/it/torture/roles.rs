//! What threads do with the tree of a RAM file system, and what must hold for it.

use super::{ROUNDS, Stage};
use ramfs_sim::RamFs;
use vfs_sim::{Base, Context, Errno, Fallback, MountFlags, OpenFlags, PathAt, PathRef, RenameFlags, UnmountFlags};

/// The ways of the directory that moves: each step is one rename, and the last leads to the first. The steps that move
/// the directory around it do so while it is not in there, or take it along.
const MOVES: [(&str, &str); 6] = [
    ("/left/m/deep", "/right/on-the-way"),
    ("/left/m", "/right/moved"),
    ("/right/on-the-way", "/right/moved/deeper"),
    ("/right/moved", "/left/m"),
    ("/left/m/deeper", "/left/m/d"),
    ("/left/m/d", "/left/m/deep"),
];

/// Where the file in it is after each of them; the first is before all.
pub(crate) const PLACES: [&str; 6] = [
    "/left/m/deep/f",
    "/right/on-the-way/f",
    "/right/on-the-way/f",
    "/right/moved/deeper/f",
    "/left/m/deeper/f",
    "/left/m/d/f",
];

/// A directory on the way to the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dir {
    Root,
    Left,
    Right,
    /// Moves between the two.
    M,
    /// Has the file.
    Moving,
}

impl Dir {
    /// The directory `name` in this one, in a state of the history.
    fn look_up(self, name: &str, number: u64) -> Option<Self> {
        let is_right = [2, 3].contains(&(number % 6));
        let place = place(number);
        let is_moving = |is_beside: bool| place.rsplit('/').nth(1) == Some(name) && (place == PLACES[1]) == is_beside;
        match (self, name) {
            (Self::Root, "left") => Some(Self::Left),
            (Self::Root, "right") => Some(Self::Right),
            (Self::Left, "m") if !is_right => Some(Self::M),
            (Self::Right, "moved") if is_right => Some(Self::M),
            (Self::Right, _) if is_moving(true) => Some(Self::Moving),
            (Self::M, _) if is_moving(false) => Some(Self::Moving),
            _ => None,
        }
    }
}

/// Whether the file may be found at `path` in a time with these first and last states, if ref-walk takes steps
/// (`docs/walk.md`, "Moves beside a walk"): each step sees a state that is not older than that of the step before, and
/// looks in the directory that the step before found, wherever that is by then.
fn seen_by_steps(path: &str, from: u64, to: u64) -> Vec<bool> {
    let dirs = path.strip_suffix("/f").expect("a path of the file");
    // Each name here leads to one directory or to none.
    let (mut dir, mut since) = (Dir::Root, from);
    let mut seen = Vec::new();
    for name in dirs[1..].split('/') {
        let found = |number: &u64| dir.look_up(name, *number);
        if (since..=to).any(|number| found(&number).is_none()) {
            seen.push(false);
        }
        let Some(first) = (since..=to).find(|number| found(number).is_some()) else { return seen };
        (dir, since) = (found(&first).expect("it was found"), first);
    }
    seen.push(true);
    seen
}

#[test]
fn steps_see_the_states_that_they_meet_and_no_others() {
    for (state, at) in (0..6).flat_map(|state| PLACES.map(|at| (state, at))) {
        // In one state, a walk sees that.
        assert!(seen_by_steps(at, state, state).iter().all(|seen| *seen == (place(state) == at)), "{at} in {state}");
        let seen = seen_by_steps(at, state, state + 1);
        let states = [place(state) == at, place(state + 1) == at];
        assert!(seen.iter().all(|seen| states.contains(seen)), "{at} beside one move: {seen:?}");
    }
    // `m` is found in state 0 or 1, and gets `deeper` in state 3.
    for (from, to, may_find) in [(0, 2, false), (0, 3, true), (1, 3, true), (2, 3, false), (3, 3, false), (2, 4, true)]
    {
        assert_eq!(seen_by_steps("/left/m/deeper/f", from, to).contains(&true), may_find, "{from} to {to}");
    }
}

/// How often walks left rcu-walk.
fn fallbacks(stage: &Stage) -> u64 {
    sim::uncharged(|| Fallback::ALL.iter().map(|reason| stage.ram.fallbacks(*reason)).sum())
}

/// Where the file is in a state of its history.
fn place(number: u64) -> &'static str {
    PLACES[(number % 6) as usize]
}

pub(crate) fn ino(context: &Context, path: &str) -> Result<u64, Errno> {
    context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino)
}

pub(crate) fn hold(context: &Context, path: &str) -> PathRef {
    context.hold(Base::CWD, path.as_bytes(), true).expect(path)
}

pub(crate) fn create(context: &Context, path: &str) {
    let flags = OpenFlags::RDWR.union(OpenFlags::CREAT).union(OpenFlags::EXCL);
    drop(context.open(Base::CWD, path.as_bytes(), flags, 0o644).expect(path));
}

pub(crate) fn unlink(context: &Context, path: &str) {
    context.unlink(Base::CWD, path.as_bytes()).expect(path);
}

pub(crate) fn rename(context: &Context, from: &str, to: &str) {
    rename_as(context, from, to, RenameFlags::default());
}

fn rename_as(context: &Context, from: &str, to: &str, flags: RenameFlags) {
    let renamed = context.rename(PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()), flags);
    assert_eq!(renamed, Ok(()), "{from} to {to}");
}

fn mkdir(context: &Context, path: &str) {
    context.mkdir(Base::CWD, path.as_bytes(), 0o755).expect(path);
}

/// Makes what is there before all; answers with the inodes that are exchanged.
pub(crate) fn set_up(context: &Context) -> [u64; 2] {
    for dir in ["left", "left/m", "left/m/deep", "right", "ex", "ex/x", "ey", "ey/y", "swap", "common", "other", "mnt"]
    {
        mkdir(context, &format!("/{dir}"));
    }
    for file in [PLACES[0], "/ex/x/owner", "/ey/y/owner", "/swap/t", "/common/one", "/mnt/under"] {
        create(context, file);
    }
    ["/ex/x/owner", "/ey/y/owner"].map(|path| ino(context, path).expect(path))
}

/// Moves a directory with a file in it within and between directories.
pub(crate) fn move_directory(stage: &Stage, _: u64) {
    let context = stage.context();
    for _ in 0..ROUNDS / 2 {
        for (from, to) in MOVES {
            stage.histories.moved.change(|_| rename(&context, from, to));
            assert!(ino(&context, to).is_ok(), "{to} is where it was moved to");
            assert_eq!(ino(&context, from), Err(Errno::ENOENT), "{from} was moved");
            let below = format!("{to}/below");
            let (old, new) = (PathAt::cwd(to.as_bytes()), PathAt::cwd(below.as_bytes()));
            assert_eq!(context.rename(old, new, RenameFlags::default()), Err(Errno::EINVAL), "below itself");
        }
    }
}

/// Exchanges two directories of different directories. The other way round every second time.
pub(crate) fn exchange(stage: &Stage, _: u64) {
    let context = stage.context();
    for _ in 0..3 * ROUNDS {
        stage.histories.exchanged.change(|number| {
            let (a, b) = if number % 2 == 0 { ("/ex/x", "/ey/y") } else { ("/ey/y", "/ex/x") };
            rename_as(&context, a, b, RenameFlags::EXCHANGE);
        });
    }
}

/// Replaces one name by a new file again and again.
pub(crate) fn replace(stage: &Stage, _: u64) {
    let context = stage.context();
    for _ in 0..3 * ROUNDS {
        create(&context, "/swap/new");
        let made = ino(&context, "/swap/new").expect("it was made");
        stage.replaced.borrow_mut().push(made);
        stage.histories.replaced.change(|_| rename(&context, "/swap/new", "/swap/t"));
    }
}

/// Gives `/common/one` a second name and takes it away; odd states have it.
pub(crate) fn link_and_unlink(stage: &Stage, _: u64) {
    let context = stage.context();
    for _ in 0..3 * ROUNDS {
        stage.histories.linked.change(|number| {
            if number % 2 == 1 {
                context.link(PathAt::cwd(b"/common/one"), PathAt::cwd(b"/other/two"), true).expect("link");
            } else {
                unlink(&context, "/other/two");
            }
        });
    }
}

/// Creates, renames, links and removes private files in two directories that other threads use too. Those rename in
/// the other direction.
pub(crate) fn own_names(stage: &Stage, index: u64) {
    let context = stage.context();
    let (from, to) = if index.is_multiple_of(2) { ("/common", "/other") } else { ("/other", "/common") };
    for round in 0..ROUNDS {
        let first = format!("{from}/{index}-{round}");
        let second = format!("{from}/..{to}/{index}-{round}-{}", "x".repeat(round as usize * 9));
        create(&context, &first);
        let (made, held) = (ino(&context, &first), hold(&context, &first));
        rename(&context, &first, &second);
        assert_eq!(ino(&context, &first), Err(Errno::ENOENT), "{first} was renamed");
        assert_eq!(ino(&context, &second), made, "{second} is what was renamed");
        context.link(PathAt::cwd(second.as_bytes()), PathAt::cwd(first.as_bytes()), true).expect("link");
        assert_eq!(held.attr().map(|attr| attr.nlink), Ok(2));
        unlink(&context, &second);
        assert_eq!(ino(&context, &first), made, "{first} is the name that is left");
        unlink(&context, &first);
        assert_eq!(held.attr().map(|attr| attr.nlink), Ok(0));
        let want = format!("{} (deleted)", second.replacen(&format!("{from}/.."), "", 1));
        assert_eq!(String::from_utf8_lossy(&context.path_of(&held)), want);
    }
}

/// Makes and removes directories that others make names in; each is likely to lie where the one before lay.
pub(crate) fn replace_directories(stage: &Stage, _: u64) {
    let context = stage.context();
    for _ in 0..4 * ROUNDS {
        mkdir(&context, "/common/t");
        while let Err(errno) = context.rmdir(Base::CWD, b"/common/t") {
            assert_eq!(errno, Errno::ENOTEMPTY, "others make names in it");
        }
        mkdir(&context, "/other/u");
        assert_eq!(context.rmdir(Base::CWD, b"/other/u"), Ok(()), "nobody makes names in it");
    }
}

/// Lists a directory in which others make and remove names, and looks at its attributes.
pub(crate) fn list_common(stage: &Stage, _: u64) {
    let context = stage.context();
    while stage.is_changing() {
        let names = super::verdict::list(&context, "/common");
        assert_eq!(names.iter().filter(|name| *name == "one").count(), 1, "{names:?}");
        assert!(names.windows(2).all(|two| two[0] != two[1]), "listed twice: {names:?}");
        let attr = context.attr(Base::CWD, b"/common", true).expect("/common");
        assert!(matches!(attr.nlink, 2 | 3), "only /common/t comes and goes: {}", attr.nlink);
    }
}

/// Makes and removes names in directories that come and go.
pub(crate) fn create_below(stage: &Stage, _: u64) {
    let context = stage.context();
    while stage.is_changing() {
        if let Ok(held) = context.hold(Base::CWD, b"/common/t", true) {
            let path = String::from_utf8_lossy(&context.path_of(&held)).into_owned();
            assert!(["/common/t", "/common/t (deleted)"].contains(&path.as_str()), "/common/t is at {path}");
        }
        match context.mknod(Base::CWD, b"/common/t/x", vfs_sim::S_IFREG | 0o644, 0) {
            Ok(()) => unlink(&context, "/common/t/x"),
            Err(errno) => assert_eq!(errno, Errno::ENOENT),
        }
    }
}

/// Mounts a file system over `/mnt` and takes it away; odd states have it.
pub(crate) fn mount_and_unmount(stage: &Stage, _: u64) {
    let context = stage.context();
    for round in 0..ROUNDS {
        stage.histories.mounted.change(|_| {
            context.mount(RamFs::new(), Base::CWD, b"/mnt", MountFlags::default()).expect("mount");
        });
        create(&context, "/mnt/inside");
        let held = hold(&context, "/mnt/inside");
        assert_eq!(context.unmount(Base::CWD, b"/mnt", UnmountFlags::default()), Err(Errno::EBUSY));
        assert_eq!(context.path_of(&held), b"/mnt/inside");
        let detach = round % 2 == 0;
        if !detach {
            drop(held);
        }
        stage.histories.mounted.change(|_| {
            let flags = if detach { UnmountFlags::DETACH } else { UnmountFlags::default() };
            // Others may hold something in it for a moment.
            while let Err(errno) = context.unmount(Base::CWD, b"/mnt", flags) {
                assert_eq!((errno, detach), (Errno::EBUSY, false), "unmount");
            }
        });
        assert!(ino(&context, "/mnt/under").is_ok(), "what was under it is seen again");
        assert_eq!(ino(&context, "/mnt/inside"), Err(Errno::ENOENT));
    }
}

/// Looks at all that others change.
pub(crate) fn observe(stage: &Stage, _: u64) {
    let context = stage.context();
    let histories = &stage.histories;
    while stage.is_changing() {
        for at in PLACES {
            let before = fallbacks(stage);
            histories.moved.look_among(
                at,
                || ino(&context, at).is_ok(),
                // Of walks that stay in rcu-walk, each sees one state.
                |from, to| match fallbacks(stage) == before {
                    true => (from..=to).map(|number| place(number) == at).collect(),
                    false => seen_by_steps(at, from, to),
                },
            );
        }
        for (path, first) in [("/ex/x/owner", 0), ("/ey/y/owner", 1)] {
            let state = |number| Ok(stage.exchanged[(first + number as usize) % 2]);
            histories.exchanged.look(path, || ino(&context, path), state);
        }
        let state = |number| Ok(stage.replaced.borrow()[number as usize]);
        histories.replaced.look("/swap/t", || ino(&context, "/swap/t"), state);
        let links = || context.attr(Base::CWD, b"/common/one", true).map(|attr| attr.nlink);
        histories.linked.look("links", links, |number| Ok(1 + (number % 2) as u32));
        histories.linked.look("/other/two", || ino(&context, "/other/two").is_ok(), |number| number % 2 == 1);
        histories.mounted.look("/mnt/under", || ino(&context, "/mnt/under").is_ok(), |number| number % 2 == 0);
    }
}

/// Holds files and directories, and requests their paths.
pub(crate) fn climb(stage: &Stage, _: u64) {
    let (context, moving) = (stage.context(), stage.moving());
    let histories = &stage.histories;
    let text = |path: Vec<u8>| String::from_utf8_lossy(&path).into_owned();
    while stage.is_changing() {
        let state = |number| place(number).to_owned();
        histories.moved.look("the path of the file", || text(context.path_of(&moving)), state);
        let held = hold(&context, "/ex/x/owner");
        let which = usize::from(held.attr().map(|attr| attr.ino) == Ok(stage.exchanged[1]));
        let state = |number: u64| ["/ex/x/owner", "/ey/y/owner"][(which + number as usize) % 2].to_owned();
        histories.exchanged.look("the path of what is exchanged", || text(context.path_of(&held)), state);
        if let Ok(inside) = context.hold(Base::CWD, b"/mnt/inside", true) {
            let path = text(context.path_of(&inside));
            assert!(["/mnt/inside", "(unreachable)/inside"].contains(&path.as_str()), "it is at {path}");
        }
        let mut replaced = None;
        let hold_it = || {
            let held = replaced.insert(hold(&context, "/swap/t"));
            held.attr().map(|attr| attr.ino)
        };
        let state = |number| Ok(stage.replaced.borrow()[number as usize]);
        histories.replaced.look("/swap/t, held,", hold_it, state);
        let old = replaced.expect("it was held");
        let path = text(context.path_of(&old));
        assert!(["/swap/t", "/swap/t (deleted)"].contains(&path.as_str()), "it is at {path}");
    }
}
