//! A RAM file system under all operations at once.

use crate::namespace::rng::Rng;
use crate::races::race::{History, Observer, Race};
use crate::torture::own::{Able, Own};
use crate::torture::whole;
use crate::tree_kind::TreeKind;
use ramfs::RamFs;
use std::sync::Mutex;
use vfs::{Base, Context, Errno, MountFlags, OpenFlags, PathAt, PathRef, RenameFlags, SetAttr, SetXattr, UnmountFlags};

/// Operations of each thread.
const STEPS: u64 = 20_000;

/// Directories that are moved about; they never stop being directories.
const WANDERING: [&str; 4] = ["one", "two", "a-directory-of-more-than-sixteen", "four"];

/// Where they go.
const HOMES: [&str; 3] = ["/east", "/west", "/west/below"];

/// Names that all threads use.
fn shared(rng: &mut Rng) -> Vec<u8> {
    let name = format!("s{}{}", rng.below(8), "h".repeat(rng.pick(&[0, 20])));
    format!("{}/{}/{name}", rng.pick(&HOMES), rng.pick(&WANDERING)).into_bytes()
}

/// What may be answered where others change the same names.
fn expect<T: std::fmt::Debug>(result: Result<T, Errno>) {
    use Errno as E;
    let may_fail = [
        E::ENOENT,
        E::EEXIST,
        E::EISDIR,
        E::ENOTDIR,
        E::ENOTEMPTY,
        E::EPERM,
        E::ELOOP,
        E::EINVAL,
        E::EBUSY,
        E::EXDEV,
        E::ENODATA,
    ];
    assert!(result.is_ok() || may_fail.iter().any(|errno| matches!(&result, Err(got) if got == errno)), "{result:?}");
}

/// One operation on names that all threads use.
fn disturb(context: &Context, rng: &mut Rng) {
    let (path, other) = (shared(rng), shared(rng));
    let cwd = Base::CWD;
    match rng.below(13) {
        0 => expect(context.open(cwd, &path, OpenFlags::CREAT.union(OpenFlags::RDWR), 0o644)),
        1 => expect(context.unlink(cwd, &path)),
        2 => expect(context.mkdir(cwd, &path, 0o755)),
        3 => expect(context.rmdir(cwd, &path)),
        4 => expect(context.link(PathAt::new(cwd, &path), PathAt::new(cwd, &other), false)),
        5 => expect(context.symlink(b"../four/s1", cwd, &path)),
        6 => expect(context.rename(PathAt::new(cwd, &path), PathAt::new(cwd, &other), RenameFlags::default())),
        7 => expect(context.rename(PathAt::new(cwd, &path), PathAt::new(cwd, &other), RenameFlags::EXCHANGE)),
        8 => expect(context.rename(PathAt::new(cwd, &path), PathAt::new(cwd, &other), RenameFlags::NOREPLACE)),
        9 => expect(context.set_xattr(cwd, &path, false, b"trusted.t", b"value", SetXattr::Any)),
        10 => expect(context.remove_xattr(cwd, &path, false, b"trusted.t")),
        11 => {
            let set = SetAttr { mode: Some(rng.pick(&[0o644, 0o755, 0o600, 0o711])), ..SetAttr::default() };
            expect(context.set_attr(cwd, &path, true, &set));
        }
        _ => expect(context.canonical(cwd, &path)),
    }
}

/// Moves a directory from one home to another, or lets two change places.
fn wander(context: &Context, rng: &mut Rng) {
    let mut pick = || format!("{}/{}", rng.pick(&HOMES), rng.pick(&WANDERING)).into_bytes();
    let (from, to) = (pick(), pick());
    let flags = rng.pick(&[RenameFlags::NOREPLACE, RenameFlags::NOREPLACE, RenameFlags::EXCHANGE]);
    expect(context.rename(PathAt::cwd(&from), PathAt::cwd(&to), flags));
}

/// Mounts on a directory of the thread's own, looks at what is there and takes it away.
fn mount(context: &Context, dir: &str) {
    let path = dir.as_bytes();
    let inside = format!("{dir}/inside").into_bytes();
    let dev = |path: &[u8]| context.attr_as::<_, Errno>(Base::CWD, path, true, |_, dev| dev).unwrap();
    let before = dev(path);
    context.mount(RamFs::new(), Base::CWD, path, MountFlags::default()).unwrap();
    context.mkdir(Base::CWD, &inside, 0o755).unwrap();
    assert_ne!(dev(&inside), before, "{dir}: what is mounted is seen");
    assert_eq!(context.rmdir(Base::CWD, path), Err(Errno::EBUSY), "{dir}: a mount point");
    context.unmount(Base::CWD, path, UnmountFlags::default()).unwrap();
    assert_eq!(context.attr(Base::CWD, &inside, true), Err(Errno::ENOENT), "{dir}: after the unmount");
    assert_eq!(dev(path), before, "{dir}");
}

/// The states that two directories go through: where the outer one is, and what the inner one is called. Each differs from the
/// next in one of them.
const STATES: [(&str, &str); 4] = [
    ("/tour/a", "x"),
    ("/tour/way/a-name-of-more-than-thirty-two-bytes", "x"),
    ("/tour/way/a-name-of-more-than-thirty-two-bytes", "sixteen-bytes-16"),
    ("/tour/a", "sixteen-bytes-16"),
];

/// Directories between the two, so that a way back takes its time.
const BETWEEN: usize = 300;

/// Two directories, one far below the other, that one thread renames in turns; looked at by path, and by reverse path from below.
struct Tour {
    history: History,
    file: PathRef,
    ino: u64,
}

/// The inner directory's own directory.
fn middle(outer: &str) -> String {
    outer.to_owned() + &"/s".repeat(BETWEEN)
}

/// The path of the file in a state.
fn file_in(state: u64) -> String {
    let (outer, inner) = STATES[(state % 4) as usize];
    format!("{}/{inner}/file", middle(outer))
}

impl Tour {
    fn new(context: &Context) -> Self {
        let mkdir = |path: &str| context.mkdir(Base::CWD, path.as_bytes(), 0o755).unwrap();
        ["/tour", "/tour/way", STATES[0].0].iter().for_each(|dir| mkdir(dir));
        (1..=BETWEEN).for_each(|depth| mkdir(&(STATES[0].0.to_owned() + &"/s".repeat(depth))));
        mkdir(&format!("{}/{}", middle(STATES[0].0), STATES[0].1));
        let path = file_in(0).into_bytes();
        context.open(Base::CWD, &path, OpenFlags::CREAT, 0o644).unwrap();
        let file = context.hold(Base::CWD, &path, true).unwrap();
        let ino = context.attr(Base::CWD, &path, true).unwrap().ino;
        Self { history: History::default(), file, ino }
    }

    fn step(&self, context: &Context, round: u64) {
        let ((old, child), (new, next)) = (STATES[(round % 4) as usize], STATES[((round + 1) % 4) as usize]);
        let (from, to) = if old == new {
            (format!("{}/{child}", middle(old)), format!("{}/{next}", middle(old)))
        } else {
            (old.into(), new.into())
        };
        let (from, to) = (PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()));
        self.history.step(|| context.rename(from, to, RenameFlags::default()).unwrap());
    }

    fn look(&self, context: &Context, observer: &mut Observer<'_>, rng: &mut Rng) {
        let place = rng.pick(&[0, 1]);
        let outer = STATES[place].0;
        observer.see(
            || context.attr(Base::CWD, outer.as_bytes(), true).map(|attr| attr.nlink),
            |state, seen| *seen == if STATES[(state % 4) as usize].0 == outer { Ok(3) } else { Err(Errno::ENOENT) },
        );
        let asked = || String::from_utf8(context.path_of(&self.file)).unwrap();
        observer.see(asked, |state, seen| *seen == file_in(state));
        let seen = context.attr(Base::CWD, file_in(place as u64).as_bytes(), true).map(|attr| attr.ino);
        assert!(seen == Ok(self.ino) || seen == Err(Errno::ENOENT), "{seen:?}");
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(4, std::num::NonZero::get).max(4)
}

pub(crate) fn all_operations_at_once_lose_no_name_and_leave_nothing_held(kind: TreeKind) {
    let vfs = crate::torture::new_tree(kind, RamFs::new());
    let context = vfs.context();
    let mkdir = |path: &str| context.mkdir(Base::CWD, path.as_bytes(), 0o755).unwrap();
    HOMES.iter().for_each(|home| mkdir(home));
    WANDERING.iter().for_each(|dir| mkdir(&format!("/east/{dir}")));
    let mounts: Vec<String> = (0..threads()).map(|thread| format!("/mount-{thread}")).collect();
    mounts.iter().for_each(|dir| mkdir(dir));
    let hold = |dir: &&str| context.hold(Base::CWD, format!("/east/{dir}").as_bytes(), true).unwrap();
    let dirs: Vec<PathRef> = WANDERING.iter().map(hold).collect();
    let tour = Tour::new(&context);
    let finished = Mutex::new(Vec::new());
    {
        let (context, dirs, tour, finished) = (&context, &dirs[..], &tour, &finished);
        let mut race = Race::default();
        for (thread, dir) in mounts.iter().enumerate() {
            let mut own = Some(Own::new(context, dirs, thread, Able::Everything));
            race = race.writer(STEPS, move |round, rng| {
                if let Some(own) = &mut own {
                    own.step(rng);
                }
                match rng.below(40) {
                    0 => mount(context, dir),
                    1..=8 => wander(context, rng),
                    _ => disturb(context, rng),
                }
                if round + 1 == STEPS {
                    finished.lock().unwrap().extend(own.take());
                }
            });
        }
        let mut observer = Observer::new(&tour.history);
        race.writer(2 * STEPS, move |round, _| tour.step(context, round))
            .reader(move |rng| tour.look(context, &mut observer, rng))
            .run();
    }
    let finished = finished.into_inner().unwrap();
    assert_eq!(finished.len(), mounts.len());
    finished.iter().for_each(Own::check_all);
    drop(finished);
    drop((tour, dirs));
    let names = whole::check(&context);
    assert_eq!(context.mounts().len(), 1);
    // The root is one more.
    assert_eq!(whole::check_released(&vfs, context), names + 1, "dentries, and names");
}

pub(crate) fn a_path_that_is_asked_back_is_of_one_moment_however_long_the_way_is(kind: TreeKind) {
    let vfs = crate::torture::new_tree(kind, RamFs::new());
    let context = vfs.context();
    let tour = Tour::new(&context);
    {
        let (context, tour) = (&context, &tour);
        let mut observer = Observer::new(&tour.history);
        Race::default()
            .writer(2 * STEPS, move |round, _| tour.step(context, round))
            .reader(move |rng| tour.look(context, &mut observer, rng))
            .run();
    }
    drop(tour);
    let names = whole::check(&context);
    assert_eq!(whole::check_released(&vfs, context), names + 1, "dentries, and names");
}
