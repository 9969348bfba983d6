//! A RAM file system under all operations at once.

use crate::own::{Able, Own};
use crate::race::{History, Observer, Race};
use crate::rng::Rng;
use crate::whole;
use ramfs::RamFs;
use std::sync::Mutex;
use vfs::{Base, Context, Errno, Held, MountFlags, OpenFlags, RenameFlags, SetAttr, SetXattr, UnmountFlags, Vfs};

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
        4 => expect(context.link((cwd, &path, false), (cwd, &other))),
        5 => expect(context.symlink(b"../four/s1", cwd, &path)),
        6 => expect(context.rename((cwd, &path), (cwd, &other), RenameFlags::default())),
        7 => expect(context.rename((cwd, &path), (cwd, &other), RenameFlags::EXCHANGE)),
        8 => expect(context.rename((cwd, &path), (cwd, &other), RenameFlags::NOREPLACE)),
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
    expect(context.rename((Base::CWD, &from), (Base::CWD, &to), flags));
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

/// The states that one directory goes through: where it is.
const PLACES: [&str; 3] = ["/tour/a", "/tour/way/b", "/tour/way/a-name-of-more-than-thirty-two-bytes"];

/// A directory that one thread takes round, looked at by its path and asked back from below.
struct Tour {
    history: History,
    file: Held,
    dir: Held,
    ino: u64,
}

impl Tour {
    fn new(context: &Context) -> Self {
        for dir in ["/tour", "/tour/way", PLACES[0]] {
            context.mkdir(Base::CWD, dir.as_bytes(), 0o755).unwrap();
        }
        let path = format!("{}/file", PLACES[0]).into_bytes();
        context.open(Base::CWD, &path, OpenFlags::CREAT, 0o644).unwrap();
        let hold = |path: &[u8]| context.hold(Base::CWD, path, true).unwrap();
        let ino = context.attr(Base::CWD, &path, true).unwrap().ino;
        Self { history: History::default(), file: hold(&path), dir: hold(PLACES[0].as_bytes()), ino }
    }

    fn step(&self, context: &Context, round: u64) {
        let at = |round: u64| (Base::CWD, PLACES[(round % 3) as usize].as_bytes());
        self.history.step(|| context.rename(at(round), at(round + 1), RenameFlags::default()).unwrap());
    }

    fn look(&self, context: &Context, observer: &mut Observer<'_>, rng: &mut Rng) {
        let place = rng.below(3);
        let path = format!("{}/file", PLACES[place]).into_bytes();
        observer.see(
            || context.attr(Base::CWD, &path, true).map(|attr| attr.ino),
            |state, seen| *seen == if state % 3 == place as u64 { Ok(self.ino) } else { Err(Errno::ENOENT) },
        );
        let asked = || String::from_utf8(context.path_of(&self.file)).unwrap();
        observer.see(asked, |state, seen| *seen == format!("{}/file", PLACES[(state % 3) as usize]));
        let seen = context.attr(Base::at(&self.dir), b"../../tour", true).or_else(|_| {
            // From two directories below, one more step leads there.
            context.attr(Base::at(&self.dir), b"../../../tour", true)
        });
        assert!(seen.is_ok() || seen == Err(Errno::ENOENT), "{seen:?}");
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(4, std::num::NonZero::get).max(4)
}

#[test]
fn all_operations_at_once_lose_no_name_and_leave_nothing_held() {
    let vfs = Vfs::new(RamFs::new());
    let context = vfs.context();
    let mkdir = |path: &str| context.mkdir(Base::CWD, path.as_bytes(), 0o755).unwrap();
    HOMES.iter().for_each(|home| mkdir(home));
    WANDERING.iter().for_each(|dir| mkdir(&format!("/east/{dir}")));
    let mounts: Vec<String> = (0..threads()).map(|thread| format!("/mount-{thread}")).collect();
    mounts.iter().for_each(|dir| mkdir(dir));
    let hold = |dir: &&str| context.hold(Base::CWD, format!("/east/{dir}").as_bytes(), true).unwrap();
    let dirs: Vec<Held> = WANDERING.iter().map(hold).collect();
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
