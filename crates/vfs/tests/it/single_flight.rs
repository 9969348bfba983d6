//! Misses over a file system that answers when the test lets it: requests, waiting threads, timeouts.

use lightfoot_vfs::{Base, Context, Errno, Fallback, MountFlags, OpenFlags, UnmountFlags, Vfs};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use testkit::{Call, Counting, Gate, Store};

/// A timeout that ends before the file system answers.
const LITTLE_NS: u64 = 1_000_000;

/// A file system whose lookups can be held, after they have their answer. Names that begin with `bad` answer `EIO`.
#[derive(Clone, Debug)]
struct Slow {
    store: Store,
    gate: Gate,
    /// How many further lookups of a name are held.
    held: Arc<Mutex<BTreeMap<Vec<u8>, u32>>>,
}

impl Slow {
    fn new(names: &[&str]) -> Self {
        let slow = Self { store: Store::with_paths(names), gate: Gate::default(), held: Arc::default() };
        let (gate, held) = (slow.gate.clone(), slow.held.clone());
        slow.store.after(move |call| {
            let Call::Lookup { name, .. } = call else { return Ok(()) };
            let is_held = held.lock().unwrap().get_mut(*name).is_some_and(|left| {
                let is_held = *left > 0;
                *left = left.saturating_sub(1);
                is_held
            });
            if is_held {
                gate.pass();
            }
            if name.starts_with(b"bad") { Err(Errno::EIO) } else { Ok(()) }
        });
        slow
    }

    /// Holds the next `count` lookups of `name`.
    fn hold(&self, name: &str, count: u32) {
        self.gate.close();
        self.held.lock().unwrap().insert(name.into(), count);
    }

    /// Lets all lookups continue.
    fn release(&self) {
        self.held.lock().unwrap().clear();
        self.gate.open();
    }

    /// Waits until `count` lookups are held.
    fn wait_for(&self, count: u32) {
        self.gate.wait_for(count);
    }

    fn asked(&self, name: &str) -> u32 {
        self.store.lookups_of(Store::ROOT, name)
    }
}

fn look(context: &Context, path: &str) -> Result<u64, Errno> {
    context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino)
}

fn wait_for_misses(vfs: &Vfs, count: u64) {
    while vfs.fallbacks(Fallback::Miss) < count {
        thread::yield_now();
    }
}

#[test]
fn many_askers_of_one_name_cause_one_lookup() {
    const ASKERS: u64 = 8;
    for (name, found) in [("there", true), ("none", false)] {
        let slow = Slow::new(&["there"]);
        slow.hold(name, 1);
        let vfs = slow.store.tree();
        thread::scope(|scope| {
            let askers: Vec<_> = (0..ASKERS).map(|_| scope.spawn(|| look(&vfs.context(), name))).collect();
            slow.wait_for(1);
            wait_for_misses(&vfs, ASKERS);
            slow.release();
            for asker in askers {
                assert_eq!(asker.join().unwrap().is_ok(), found, "{name}");
            }
        });
        assert_eq!(slow.asked(name), 1, "{name}");
    }
}

#[test]
fn different_names_of_one_directory_are_asked_side_by_side() {
    const NAMES: u32 = 6;
    let names: Vec<String> = (0..NAMES).map(|number| format!("n{number}")).collect();
    let slow = Slow::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    names.iter().for_each(|name| slow.hold(name, 1));
    let vfs = slow.store.tree();
    thread::scope(|scope| {
        let (vfs, names) = (&vfs, &names);
        let askers: Vec<_> = names.iter().map(|name| scope.spawn(move || look(&vfs.context(), name))).collect();
        slow.wait_for(NAMES);
        // And the directory can be changed meanwhile.
        vfs.context().mknod(Base::CWD, b"/made", 0o644, 0).unwrap();
        slow.release();
        askers.into_iter().for_each(|asker| assert!(asker.join().unwrap().is_ok()));
    });
}

#[test]
fn a_name_that_is_made_while_it_is_looked_up_is_found() {
    let slow = Slow::new(&[]);
    slow.hold("x", 1);
    let vfs = slow.store.tree();
    let context = vfs.context();
    thread::scope(|scope| {
        let asker = scope.spawn(|| look(&vfs.context(), "/x"));
        slow.wait_for(1);
        context.mknod(Base::CWD, b"/x", 0o644, 0).unwrap();
        let made = look(&context, "/x");
        assert!(made.is_ok());
        slow.release();
        assert_eq!(asker.join().unwrap(), made, "the file system's answer was from before");
    });
    drop(context);
    let stats = vfs.stats();
    assert_eq!((stats.live_dentries, stats.held), (2, 0));
}

#[test]
fn a_name_that_is_removed_while_it_is_looked_up_is_not_found() {
    let slow = Slow::new(&["x"]);
    slow.hold("x", 1);
    let vfs = slow.store.tree();
    thread::scope(|scope| {
        let asker = scope.spawn(|| look(&vfs.context(), "/x"));
        slow.wait_for(1);
        vfs.context().unlink(Base::CWD, b"/x").unwrap();
        slow.release();
        assert_eq!(asker.join().unwrap(), Err(Errno::ENOENT), "the file system's answer was from before");
    });
}

#[test]
fn an_error_is_the_answer_of_all_who_wait_and_is_not_kept() {
    const ASKERS: u64 = 4;
    // An asker that comes after the answer asks anew: in some round none does.
    let is_shared = (0..1000).any(|_| {
        let slow = Slow::new(&[]);
        slow.hold("bad", 1);
        let vfs = slow.store.tree();
        thread::scope(|scope| {
            let askers: Vec<_> = (0..ASKERS).map(|_| scope.spawn(|| look(&vfs.context(), "/bad"))).collect();
            slow.wait_for(1);
            wait_for_misses(&vfs, ASKERS);
            (0..1000).for_each(|_| thread::yield_now());
            slow.release();
            askers.into_iter().for_each(|asker| assert_eq!(asker.join().unwrap(), Err(Errno::EIO)));
        });
        let asked = slow.asked("bad");
        assert_eq!(look(&vfs.context(), "/bad"), Err(Errno::EIO));
        assert_eq!(slow.asked("bad"), asked + 1, "an error is not kept");
        asked == 1
    });
    assert!(is_shared);
}

/// A lookup without a timeout and one with a short one, in both orders.
fn check_patience(impatient_first: bool) {
    let slow = Slow::new(&["dead", "other"]);
    slow.hold("dead", 1);
    let vfs = slow.store.tree();
    let context = vfs.context();
    let impatient = vfs.context();
    impatient.set_timeout_ns(Some(LITTLE_NS));
    thread::scope(|scope| {
        if impatient_first {
            assert_eq!(look(&impatient, "/dead"), Err(Errno::ETIMEDOUT));
        }
        let patient = scope.spawn(|| look(&vfs.context(), "/dead"));
        slow.wait_for(1);
        wait_for_misses(&vfs, 1 + u64::from(impatient_first));
        for _ in 0..2 {
            assert_eq!(look(&impatient, "/dead"), Err(Errno::ETIMEDOUT));
        }
        // All else works, in the same directory too, for both.
        for (context, path) in [(&context, "/other"), (&impatient, "/other")] {
            assert!(look(context, path).is_ok());
        }
        context.mknod(Base::CWD, b"/new", 0o644, 0).unwrap();
        context.unlink(Base::CWD, b"/other").unwrap();
        assert!(!patient.is_finished());
        slow.release();
        assert!(patient.join().unwrap().is_ok());
    });
    impatient.set_timeout_ns(Some(u64::MAX));
    assert!(look(&impatient, "/dead").is_ok());
    assert_eq!(look(&impatient, "/other"), Err(Errno::ENOENT));
}

#[test]
fn an_impatient_asker_gives_up_and_the_others_wait_on() {
    check_patience(false);
}

#[test]
fn an_impatient_asker_that_came_first_leaves_its_question_to_the_others() {
    check_patience(true);
}

#[test]
fn a_change_by_an_impatient_one_does_not_wait_for_a_dead_lookup_of_another_name() {
    let slow = Slow::new(&["dead"]);
    slow.hold("dead", 1);
    let vfs = slow.store.tree();
    let impatient = vfs.context();
    impatient.set_timeout_ns(Some(LITTLE_NS));
    assert_eq!(look(&impatient, "/dead"), Err(Errno::ETIMEDOUT));
    let flags = OpenFlags::RDWR.union(OpenFlags::CREAT);
    drop(impatient.open(Base::CWD, b"/new", flags, 0o644).unwrap());
    impatient.unlink(Base::CWD, b"/new").unwrap();
    slow.release();
}

#[test]
fn a_tree_that_is_dropped_while_its_file_system_is_asked_goes_when_it_answers() {
    let slow = Slow::new(&["dead"]);
    slow.hold("dead", 1);
    let (fs, counts) = Counting::of(Box::new(slow.store.clone()));
    let vfs = Vfs::new(fs);
    let impatient = vfs.context();
    impatient.set_timeout_ns(Some(LITTLE_NS));
    // At its deadline it may not have a thread yet: then it never begins.
    while slow.asked("dead") == 0 {
        assert_eq!(look(&impatient, "/dead"), Err(Errno::ETIMEDOUT));
    }
    drop((impatient, vfs));
    slow.wait_for(1);
    slow.release();
    assert!(counts.ends_within(Duration::from_secs(60)), "the tree's file system stays");
}

#[test]
fn a_file_system_that_never_answers_keeps_few_threads() {
    let names: Vec<String> = (0..100).map(|number| format!("f{number}")).collect();
    let slow = Slow::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let upper = Store::with_paths(&["mnt/"]);
    let vfs = upper.tree();
    let context = vfs.context();
    context.mount(slow.store.clone(), Base::CWD, b"/mnt", MountFlags::default()).unwrap();
    for name in &names {
        slow.hold(name, 1);
    }
    let impatient = vfs.context();
    impatient.set_timeout_ns(Some(LITTLE_NS));
    let look = |name: &str| impatient.attr(Base::CWD, format!("/mnt/{name}").as_bytes(), true);
    let look_all = || names.iter().for_each(|name| assert_eq!(look(name), Err(Errno::ETIMEDOUT), "{name}"));
    while slow.store.lookups() < 32 {
        look_all();
    }
    look_all();
    slow.release();
    // Until the last of its threads has ended.
    while context.unmount(Base::CWD, b"/mnt", UnmountFlags::default()).is_err() {
        thread::yield_now();
    }
    assert_eq!(slow.store.lookups(), 32);
}
