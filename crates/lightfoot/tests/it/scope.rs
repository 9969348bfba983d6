//! Walks that must not leave their scope (`openat2(2)` with `RESOLVE_BENEATH`, `RESOLVE_IN_ROOT`), while others move the directories
//! that they stand in out of it and back, put symbolic links in the place of directories, and mount, move and unmount.
//!
//! Walkers make a bounded number of tries; movers run as long as there are walkers.

use crate::namespace::rng::Rng;
use crate::races::race::Race;
use ramfs::RamFs;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use vfs::{Base, Context, Errno, MountFlags, OpenFlags, PathAt, RenameFlags, Resolve, UnmountFlags, Vfs};

/// Tries of each walker.
const TRIES: u64 = 150_000;

/// Directories; `jail` is the scope.
const DIRS: [&str; 9] =
    ["/jail", "/jail/a", "/jail/a/b", "/jail/a/b/c", "/jail/swap", "/jail/m", "/out", "/out/m", "/out/deep"];

/// What can be in a path. The secrets are called `secret` everywhere; nothing in the scope is.
const STEPS: [&str; 9] = ["a", "b", "c", "swap", "m", "..", "..", "../..", "inner"];

/// The tree, and what is not to be reached.
struct Prison {
    _vfs: Vfs,
    context: Context,
    /// File system and inode number of all that is outside and stays there.
    secrets: BTreeSet<(u64, u64)>,
}

impl Prison {
    fn new() -> Self {
        let vfs = Vfs::new(RamFs::new());
        let context = vfs.context();
        for dir in DIRS {
            context.mkdir(Base::CWD, dir.as_bytes(), 0o777).unwrap();
        }
        for dir in ["", "/out", "/out/deep"] {
            make(&context, &format!("{dir}/secret"));
        }
        for (body, path) in [("../out", "/jail/link"), ("/out/deep", "/jail/absolute"), ("a/b/../..", "/jail/a/round")]
        {
            context.symlink(body.as_bytes(), Base::CWD, path.as_bytes()).unwrap();
        }
        let outside = ["/", "/secret", "/out", "/out/secret", "/out/deep", "/out/deep/secret"];
        let secrets = outside.iter().map(|path| identity(&context, path).unwrap()).collect();
        Self { _vfs: vfs, context, secrets }
    }

    /// Moves a directory out and back, with all that is in it.
    fn move_out(&self, rng: &mut Rng) {
        let (inside, outside) =
            rng.pick(&[("/jail/a/b", "/out/b"), ("/jail/a/b/c", "/out/deep/c"), ("/jail/a", "/out/a")]);
        let (from, to) = if rng.chance(50) { (inside, outside) } else { (outside, inside) };
        expect(self.rename(from, to, RenameFlags::NOREPLACE));
    }

    /// Lets a directory and a symbolic link that leads out change places, and a directory and one of outside.
    fn exchange(&self, rng: &mut Rng) {
        let (a, b) =
            rng.pick(&[("/jail/swap", "/jail/link"), ("/jail/swap", "/jail/absolute"), ("/jail/a", "/jail/swap")]);
        expect(self.rename(a, b, RenameFlags::EXCHANGE));
    }

    fn rename(&self, from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
        self.context.rename(PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()), flags)
    }

    /// Mounts in the scope, moves what is mounted out and back, and takes it away.
    fn mount(&self, rng: &mut Rng) {
        let (inside, outside) = (b"/jail/m".as_slice(), b"/out/m".as_slice());
        let (from, to) = if rng.chance(50) { (inside, outside) } else { (outside, inside) };
        expect(match rng.below(4) {
            0 if self.context.mounts().len() < 3 => {
                let mounted = self.context.mount(RamFs::new(), Base::CWD, from, MountFlags::default());
                let _ = self.context.mkdir(Base::CWD, &[from, b"/inner"].concat(), 0o777);
                mounted
            }
            0 | 1 => self.context.unmount(Base::CWD, from, UnmountFlags::DETACH),
            _ => self.context.move_mount(PathAt::cwd(from), PathAt::cwd(to)),
        });
    }
}

fn make(context: &Context, path: &str) {
    context.open(Base::CWD, path.as_bytes(), OpenFlags::CREAT.union(OpenFlags::EXCL), 0o600).unwrap();
}

fn identity(context: &Context, path: &str) -> Result<(u64, u64), Errno> {
    context.attr_as(Base::CWD, path.as_bytes(), false, |attr, dev| (dev, attr.unpack().ino))
}

/// What a change may answer that others were in the way of.
fn expect(result: Result<(), Errno>) {
    let fine = [
        Errno::ENOENT,
        Errno::EEXIST,
        Errno::EINVAL,
        Errno::ENOTDIR,
        Errno::EBUSY,
        Errno::EXDEV,
        Errno::ENOTEMPTY,
        Errno::ELOOP,
    ];
    assert!(result.is_ok() || fine.iter().any(|errno| result == Err(*errno)), "{result:?}");
}

/// A path of a few steps, to a secret or to anything; or a long way down and up, so that there is time to move what the walk
/// stands in, and then up to what may be a secret.
fn path(rng: &mut Rng) -> Vec<u8> {
    if rng.chance(50) {
        let (down, back) = rng.pick(&[("a/b/", "c/../"), ("a/b/c/", "./../c/"), ("m/", "inner/../"), ("a/", "b/../")]);
        let up = rng.pick(&["../secret", "../..", "..", "../deep/secret"]);
        return [down, &back.repeat(20 + rng.below(60)), up].concat().into_bytes();
    }
    let mut path = String::from(rng.pick(&["", "", "", "/", "link/", "absolute/", "a/round/"]));
    for _ in 0..1 + rng.below(5) {
        path += rng.pick(&STEPS);
        path += "/";
    }
    path += rng.pick(&["secret", "secret", "..", ".", "a"]);
    path.into_bytes()
}

/// What a walker did.
#[derive(Default)]
struct Tally {
    completed: AtomicU64,
    reached: AtomicU64,
}

/// One try: opens what a path leads to, or makes, moves or removes a name.
fn walk(prison: &Prison, base: Base<'_>, rng: &mut Rng, tally: &Tally) {
    let (context, to) = (&prison.context, path(rng));
    let done = match rng.below(8) {
        0 => context.open(base, &[&to[..], b"/new"].concat(), OpenFlags::CREAT, 0o600).map(drop),
        1 => context.mkdir(base, &[&to[..], b"/new-directory"].concat(), 0o777),
        2 => context.rename(
            PathAt::new(base, &[&to[..], b"/new"].concat()),
            PathAt::new(base, &[&path(rng)[..], b"/new"].concat()),
            RenameFlags::default(),
        ),
        3 => context.unlink(base, &to),
        _ => context.open(base, &to, OpenFlags::PATH, 0).map(|file| {
            let found = (file.dev(), file.attr().unwrap().ino);
            if prison.secrets.contains(&found) {
                tally.reached.fetch_add(1, SeqCst);
            }
        }),
    };
    if done.is_ok() {
        tally.completed.fetch_add(1, SeqCst);
    }
}

/// Runs walkers from the scope's directory on with each of `limits` against movers. Gives what they did.
fn attack(limits: &[Resolve]) -> (Prison, Vec<Tally>) {
    let prison = Prison::new();
    let tallies: Vec<Tally> = limits.iter().map(|_| Tally::default()).collect();
    let jail = prison.context.hold(Base::CWD, b"/jail", true).unwrap();
    let (prison_ref, jail) = (&prison, &jail);
    let mut race = Race::default();
    for (limit, tally) in limits.iter().zip(&tallies) {
        let base = Base::at(jail).within(*limit);
        race = race.writer(TRIES, move |_, rng| walk(prison_ref, base, rng, tally));
    }
    race.reader(move |rng| prison_ref.move_out(rng))
        .reader(move |rng| prison_ref.exchange(rng))
        .reader(move |rng| prison_ref.mount(rng))
        .run();
    (prison, tallies)
}

/// Names that walkers make, in directories that are never in the scope.
fn made_outside(context: &Context) -> Vec<String> {
    let made = ["/new", "/new-directory", "/out/new", "/out/new-directory", "/out/deep/new", "/out/deep/new-directory"];
    made.iter().filter(|path| identity(context, path).is_ok()).map(|path| (*path).into()).collect()
}

#[test]
fn a_scoped_walk_never_leaves_its_scope_whatever_moves_and_gets_on() {
    let (prison, tallies) = attack(&[Resolve::BENEATH, Resolve::IN_ROOT]);
    for (tally, limit) in tallies.iter().zip(["BENEATH", "IN_ROOT"]) {
        let (completed, reached) = (tally.completed.load(SeqCst), tally.reached.load(SeqCst));
        println!("{limit}: {completed} of {TRIES} walks were completed");
        assert_eq!(reached, 0, "{limit}: secrets reached");
        assert!(completed > 0, "{limit}: no walk was completed");
    }
    assert_eq!(made_outside(&prison.context), Vec::<String>::new());
    for path in ["/secret", "/out/secret", "/out/deep/secret"] {
        assert!(identity(&prison.context, path).is_ok(), "{path} was removed from within the scope");
    }
}

#[test]
fn the_same_walks_without_a_scope_reach_the_secrets() {
    let (prison, tallies) = attack(&[Resolve::default(), Resolve::default()]);
    assert!(tallies.iter().any(|tally| tally.reached.load(SeqCst) > 0), "the attack would not show an escape");
    assert_ne!(made_outside(&prison.context), Vec::<String>::new());
}
