//! The thread's work, done by the test when it wants.

use super::*;
use crate::HostFs;
use crate::options::{HostOptions, Revalidate};
use crate::settling::DELAY;
use crate::shared::Shared;
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use vfs::{Base, Context, Identity, Observer, OpenFlags, PathAt, RenameFlags, SetAttr, Vfs};

/// A watched directory and its tree, without the thread: the test reads the events when it wants to.
struct Watched {
    settling: RefCell<Settling>,
    source: tempfile::TempDir,
    shared: Arc<Shared>,
    context: Context,
    vfs: Vfs,
    /// The time of each turn that names no other: no test depends on how fast it runs.
    start: Instant,
}

impl Watched {
    fn new() -> Self {
        let source = tempfile::tempdir().unwrap();
        let policy = Revalidate::Ttl(Duration::from_secs(100_000));
        let options = HostOptions { policy, watch: true, ..HostOptions::default() };
        let shared = Arc::new(Shared::new(source.path(), &options).unwrap());
        let vfs = Vfs::new(HostFs { shared: shared.clone() });
        Self { settling: RefCell::default(), source, shared, context: vfs.context(), vfs, start: Instant::now() }
    }

    /// Calls the event thread's [`Reading::turn`] with the time `now`, until the host has no more
    /// events, [`IDLE_ROUNDS`] more calls found no event, and no invalidation is due at `now`.
    /// Returns the number of invalidations since the start of the file system.
    fn turn_at(&self, now: Instant) -> u64 {
        let watches = self.shared.watches.as_ref().unwrap();
        let mut reading = Reading { settling: self.settling.take(), ..Reading::new(&self.shared, watches) };
        let mut idle = 0;
        while idle <= IDLE_ROUNDS || reading.settling.next_time().is_some_and(|next| next <= now) {
            idle = if reading.turn(now) { 0 } else { idle + 1 };
        }
        self.settling.replace(reading.settling);
        watches.invalidations()
    }

    /// As [`turn_at`](Self::turn_at), with the time of the start.
    fn turn(&self) -> u64 {
        self.turn_at(self.start)
    }

    /// Returns a new value with the file `/f` of 3 bytes, which is in the cache and whose events
    /// were read; and the file's path on the host.
    fn with_file() -> (Self, PathBuf) {
        let watched = Self::new();
        let path = watched.source.path().join("f");
        fs::write(&path, b"one").unwrap();
        assert_eq!(watched.size("/f"), 3);
        watched.turn();
        (watched, path)
    }

    fn write(&self, path: &str) {
        let flags = OpenFlags::RDWR.union(OpenFlags::CREAT).union(OpenFlags::TRUNC);
        let file = self.context.open(Base::CWD, path.as_bytes(), flags, 0o644).unwrap();
        file.write_at(0, b"text").unwrap();
    }

    fn size(&self, path: &str) -> u64 {
        self.context.attr(Base::CWD, path.as_bytes(), false).unwrap().size
    }
}

#[test]
fn own_changes_of_names_cause_no_invalidations_and_those_of_files_one_later() {
    let watched = Watched::new();
    let at = &watched.context;
    fs::write(watched.source.path().join("last"), b"old").unwrap();
    let before = watched.turn();
    assert_eq!(watched.size("/last"), 3);
    for number in 0..300 {
        let (file, other, dir) = (format!("/f{number}"), format!("/g{number}"), format!("/d{number}"));
        watched.write(&file);
        let (old, new) = (PathAt::cwd(file.as_bytes()), PathAt::cwd(other.as_bytes()));
        at.rename(old, new, RenameFlags::default()).unwrap();
        at.mkdir(Base::CWD, dir.as_bytes(), 0o755).unwrap();
        watched.write(&format!("{dir}/h"));
        assert_eq!(watched.size(&other), 4);
        if number % 2 == 0 {
            at.unlink(Base::CWD, other.as_bytes()).unwrap();
        }
        // Sometimes after each change, sometimes after several.
        if number % 3 == 0 {
            assert_eq!(watched.turn(), before, "round {number}");
        }
    }
    assert_eq!(watched.turn(), before);
    // Later each file that was written is invalidated once: another program may have written it at the same time.
    let later = watched.start + DELAY;
    let settled = watched.turn_at(later);
    assert!((300..=900).contains(&(settled - before)), "{settled}");
    assert_eq!(watched.turn_at(later + DELAY), settled);
    fs::write(watched.source.path().join("last"), b"longer").unwrap();
    assert_eq!(watched.size("/last"), 3, "the events of other programs' changes are not read yet");
    assert!(watched.turn() > settled);
    assert_eq!(watched.size("/last"), 6);
}

#[test]
fn a_name_that_goes_is_counted_in_the_file_s_other_names() {
    let watched = Watched::new();
    let host = |path: &str| watched.source.path().join(path);
    let links = |path: &str| watched.context.attr(Base::CWD, path.as_bytes(), false).unwrap().nlink;
    fs::write(host("file"), b"text").unwrap();
    fs::create_dir(host("dir")).unwrap();
    assert_eq!(links("/file"), 1);
    // No event: the directory is not watched yet.
    fs::hard_link(host("file"), host("dir/other")).unwrap();
    assert_eq!(links("/dir/other"), 2);
    fs::remove_file(host("dir/other")).unwrap();
    watched.turn();
    assert_eq!(links("/file"), 1);
}

#[test]
fn a_file_that_got_a_second_name_through_the_mount_is_cached_for_a_time_only() {
    let (watched, _) = Watched::with_file();
    let at = &watched.context;
    let valid = |path: &[u8]| at.hold(Base::CWD, path, false).unwrap().valid();
    assert_eq!(valid(b"/f"), vfs::Valid::UntilInvalidated);
    at.link(PathAt::cwd(b"/f"), PathAt::cwd(b"/g"), false).unwrap();
    assert_eq!(at.attr(Base::CWD, b"/g", false).unwrap().nlink, 2);
    assert!(matches!(valid(b"/g"), vfs::Valid::For(_)), "changes by the other name may cause no event");
}

#[test]
fn the_cached_name_of_a_file_that_has_another_one_is_looked_up_again() {
    let watched = Watched::new();
    let host = |path: &str| watched.source.path().join(path);
    let links = |path: &str| watched.context.attr(Base::CWD, path.as_bytes(), false).unwrap().nlink;
    fs::write(host("first"), b"text").unwrap();
    fs::create_dir(host("dir")).unwrap();
    assert_eq!(links("/first"), 1);
    // No event: the directory is not watched yet.
    fs::hard_link(host("first"), host("dir/second")).unwrap();
    assert_eq!(links("/dir/second"), 2);
    fs::write(host("other"), b"longer").unwrap();
    fs::rename(host("other"), host("first")).unwrap();
    assert_eq!(watched.size("/first"), 6, "the name is looked up again, although no event was read");
}

#[test]
fn a_file_that_had_several_names_is_cached_for_a_time_only() {
    let (watched, path) = Watched::with_file();
    let valid = || watched.context.hold(Base::CWD, b"/f", false).unwrap().valid();
    let other = watched.source.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    watched.turn();
    assert!(matches!(valid(), vfs::Valid::For(_)));
    fs::remove_file(other).unwrap();
    fs::write(&path, b"new").unwrap();
    watched.turn();
    assert!(matches!(valid(), vfs::Valid::For(_)), "a program may write it by a descriptor of the removed name");
}

#[test]
fn a_name_that_other_programs_made_and_removed_after_an_own_removal_is_not_an_own_change() {
    let watched = Watched::new();
    let at = &watched.context;
    let links = || at.hold(Base::CWD, b"/p", false).unwrap().attr_anew().unwrap().nlink;
    at.mkdir(Base::CWD, b"/p", 0o755).unwrap();
    at.mkdir(Base::CWD, b"/p/d", 0o755).unwrap();
    watched.turn();
    at.rmdir(Base::CWD, b"/p/d").unwrap();
    watched.turn();
    fs::create_dir(watched.source.path().join("p/d")).unwrap();
    assert_eq!(links(), 3);
    fs::remove_dir(watched.source.path().join("p/d")).unwrap();
    watched.turn_at(watched.start + DELAY);
    watched.turn_at(watched.start + 2 * DELAY);
    assert_eq!(at.attr(Base::CWD, b"/p", false).unwrap().nlink, 2);
    // Now the thread reads each event by itself.
    at.mkdir(Base::CWD, b"/p/d", 0o755).unwrap();
    watched.turn();
    at.rmdir(Base::CWD, b"/p/d").unwrap();
    watched.turn();
    fs::create_dir(watched.source.path().join("p/d")).unwrap();
    watched.turn();
    assert_eq!(links(), 3);
    fs::remove_dir(watched.source.path().join("p/d")).unwrap();
    watched.turn();
    assert_eq!(at.attr(Base::CWD, b"/p", false).unwrap().nlink, 2);
}

/// The inode numbers of files that an observer must drop.
#[derive(Default)]
struct Dropped(Mutex<Vec<u64>>);

impl Observer for Dropped {
    fn entry(&self, _dir: &Identity, _name: &[u8], _inode: Option<&Identity>) {}

    fn inode(&self, inode: &Identity) {
        self.0.lock().unwrap().push(inode.ino);
    }

    fn all(&self) {
        unreachable!("no event was lost");
    }
}

/// The action of the VFS between a change by another program and its event.
type Meanwhile = fn(&Watched);

fn open(watched: &Watched) {
    drop(watched.context.open(Base::CWD, b"/f", OpenFlags::RDONLY, 0).unwrap());
}

fn stat_anew(watched: &Watched) {
    watched.context.hold(Base::CWD, b"/f", false).unwrap().attr_anew().unwrap();
}

#[test]
fn a_change_by_another_program_reaches_observers_whatever_the_vfs_was_given_meanwhile() {
    let meanwhile: [(&str, Meanwhile); 4] = [
        ("nothing", |_| {}),
        ("open", open),
        ("stat", stat_anew),
        ("a mark", |watched| {
            watched.context.hold(Base::CWD, b"/f", false).unwrap().mark_stale();
        }),
    ];
    for (what, meanwhile) in meanwhile {
        for text in [&b"two"[..], b"longer"] {
            let (watched, path) = Watched::with_file();
            let dropped = Arc::new(Dropped::default());
            watched.vfs.observe(&dropped);
            let file = fs::File::options().write(true).open(&path).unwrap();
            file.write_all_at(text, 0).unwrap();
            meanwhile(&watched);
            watched.turn();
            assert_eq!(dropped.0.lock().unwrap().len(), 1, "{what}, {} bytes", text.len());
            assert_eq!(watched.size("/f"), text.len() as u64);
        }
    }
}

#[test]
fn a_change_by_another_program_beside_an_own_one_reaches_observers_a_little_later() {
    let changes: [Meanwhile; 2] = [
        |watched| watched.write("/f"),
        |watched| {
            let set = SetAttr { mode: Some(0o600), ..SetAttr::default() };
            watched.context.set_attr(Base::CWD, b"/f", true, &set).unwrap();
        },
    ];
    for change in changes {
        let watched = Watched::new();
        watched.write("/f");
        watched.turn();
        let now = watched.start + DELAY;
        watched.turn_at(now);
        let dropped = Arc::new(Dropped::default());
        watched.vfs.observe(&dropped);
        change(&watched);
        fs::write(watched.source.path().join("f"), b"TEXT").unwrap();
        watched.turn_at(now);
        assert_eq!(*dropped.0.lock().unwrap(), [0; 0], "it may have been the own change");
        watched.turn_at(now + DELAY);
        assert_eq!(dropped.0.lock().unwrap().len(), 1);
        // The own changes are over.
        fs::write(watched.source.path().join("f"), b"text").unwrap();
        watched.turn_at(now + DELAY);
        assert_eq!(dropped.0.lock().unwrap().len(), 2);
    }
}

/// Panics when it first hears of an inode, and counts the times that everything was invalidated.
#[derive(Default)]
struct Panics {
    has_panicked: AtomicBool,
    all: AtomicUsize,
}

impl Observer for Panics {
    fn entry(&self, _dir: &Identity, _name: &[u8], _inode: Option<&Identity>) {}

    fn inode(&self, _inode: &Identity) {
        assert!(self.has_panicked.swap(true, Relaxed), "the panic of this test");
    }

    fn all(&self) {
        self.all.fetch_add(1, Relaxed);
    }
}

#[test]
fn after_a_panic_of_an_observer_everything_is_invalidated_and_changes_are_still_seen() {
    let (watched, path) = Watched::with_file();
    let observer = Arc::new(Panics::default());
    watched.vfs.observe(&observer);
    let mut reading = Reading::new(&watched.shared, watched.shared.watches.as_ref().unwrap());
    for (length, times) in [(6, 1), (9, 1)] {
        fs::write(&path, vec![0; length]).unwrap();
        // In the first turn the observer panics, in the second the thread does the rest.
        (0..2).for_each(|_| reading.guarded_turn(watched.start));
        assert_eq!((watched.size("/f"), observer.all.load(Relaxed)), (length as u64, times));
    }
    assert!(observer.has_panicked.load(Relaxed));
}
