//! Misses over a file system that answers when it is told to: who asks, who waits, who goes.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use vfs::{
    Attr, Base, Context, Errno, Fallback, FileSystem, Inode, NewInode, OpenFlags, Request, S_IFDIR, S_IFREG, Vfs,
};

/// A patience that is over before anyone answers.
const LITTLE_NS: u64 = 1_000_000;

#[derive(Debug, Default)]
struct State {
    /// Names that are there, all in the root, with their nodes.
    names: BTreeMap<Vec<u8>, u64>,
    /// How many further lookups of a name are held.
    held: BTreeMap<Vec<u8>, u32>,
    /// Lookups of a name that were asked, and those that are inside.
    asked: BTreeMap<Vec<u8>, u32>,
    inside: u32,
    next: u64,
}

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

/// A file system whose lookups can be held. Names that begin with `bad` answer `EIO`.
#[derive(Clone, Debug)]
struct Slow(Arc<Inner>);

impl Slow {
    fn new(names: &[&str]) -> Self {
        let slow = Self(Arc::default());
        slow.state().next = 2;
        names.iter().for_each(|name| {
            slow.state().add(name.as_bytes());
        });
        slow
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    /// Holds the next `count` lookups of `name`.
    fn hold(&self, name: &str, count: u32) {
        self.state().held.insert(name.into(), count);
    }

    /// Lets all lookups go.
    fn release(&self) {
        self.state().held.clear();
        self.0.changed.notify_all();
    }

    fn wait_until(&self, is: impl Fn(&State) -> bool) {
        drop(self.0.changed.wait_while(self.state(), |state| !is(state)).unwrap());
    }

    fn asked(&self, name: &str) -> u32 {
        self.state().asked.get(name.as_bytes()).copied().unwrap_or(0)
    }
}

impl State {
    fn add(&mut self, name: &[u8]) -> u64 {
        let node = self.next;
        self.next += 1;
        self.names.insert(name.into(), node);
        node
    }
}

impl FileSystem for Slow {
    fn root(&self) -> NewInode {
        let attr = Attr { ino: 1, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        NewInode { node: 1, attr, ..NewInode::default() }
    }

    fn lookup(&self, _: &Request, _: &Inode, name: &[u8]) -> Result<NewInode, Errno> {
        let mut state = self.state();
        *state.asked.entry(name.into()).or_default() += 1;
        // The answer is that of the moment when it was asked.
        let node = state.names.get(name).copied();
        if state.held.get(name).is_some_and(|left| *left > 0) {
            *state.held.get_mut(name).unwrap() -= 1;
            state.inside += 1;
            self.0.changed.notify_all();
            // Held until all are released.
            state = self.0.changed.wait_while(state, |state| !state.held.is_empty()).unwrap();
            state.inside -= 1;
            self.0.changed.notify_all();
        }
        drop(state);
        if name.starts_with(b"bad") {
            return Err(Errno::EIO);
        }
        let node = node.ok_or(Errno::ENOENT)?;
        let attr = Attr { ino: node, mode: S_IFREG | 0o644, nlink: 1, ..Attr::default() };
        Ok(NewInode { node, attr, ..NewInode::default() })
    }

    fn create(&self, _: &Request, _: &Inode, name: &[u8], attr: &mut Attr, _: Option<&[u8]>) -> Result<u64, Errno> {
        attr.ino = self.state().add(name);
        Ok(attr.ino)
    }

    fn unlink(&self, _: &Request, _: &Inode, name: &[u8], _: &Inode) -> Result<(), Errno> {
        self.state().names.remove(name).map(drop).ok_or(Errno::ENOENT)
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
        let vfs = Vfs::new(slow.clone());
        thread::scope(|scope| {
            let askers: Vec<_> = (0..ASKERS).map(|_| scope.spawn(|| look(&vfs.context(), name))).collect();
            slow.wait_until(|state| state.inside == 1);
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
    let vfs = Vfs::new(slow.clone());
    thread::scope(|scope| {
        let (vfs, names) = (&vfs, &names);
        let askers: Vec<_> = names.iter().map(|name| scope.spawn(move || look(&vfs.context(), name))).collect();
        slow.wait_until(|state| state.inside == NAMES);
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
    let vfs = Vfs::new(slow.clone());
    let context = vfs.context();
    thread::scope(|scope| {
        let asker = scope.spawn(|| look(&vfs.context(), "/x"));
        slow.wait_until(|state| state.inside == 1);
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
    let vfs = Vfs::new(slow.clone());
    thread::scope(|scope| {
        let asker = scope.spawn(|| look(&vfs.context(), "/x"));
        slow.wait_until(|state| state.inside == 1);
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
        let vfs = Vfs::new(slow.clone());
        thread::scope(|scope| {
            let askers: Vec<_> = (0..ASKERS).map(|_| scope.spawn(|| look(&vfs.context(), "/bad"))).collect();
            slow.wait_until(|state| state.inside == 1);
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

/// An asker without patience, and one with little: whoever asks first.
fn check_patience(impatient_first: bool) {
    let slow = Slow::new(&["dead", "other"]);
    slow.hold("dead", 1);
    let vfs = Vfs::new(slow.clone());
    let context = vfs.context();
    let impatient = vfs.context();
    impatient.set_patience_ns(Some(LITTLE_NS));
    thread::scope(|scope| {
        if impatient_first {
            assert_eq!(look(&impatient, "/dead"), Err(Errno::ETIMEDOUT));
        }
        let patient = scope.spawn(|| look(&vfs.context(), "/dead"));
        slow.wait_until(|state| state.inside == 1);
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
    impatient.set_patience_ns(Some(u64::MAX));
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
    let vfs = Vfs::new(slow.clone());
    let impatient = vfs.context();
    impatient.set_patience_ns(Some(LITTLE_NS));
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
    let vfs = Vfs::new(slow.clone());
    let impatient = vfs.context();
    impatient.set_patience_ns(Some(LITTLE_NS));
    assert_eq!(look(&impatient, "/dead"), Err(Errno::ETIMEDOUT));
    drop((impatient, vfs));
    slow.wait_until(|state| state.inside == 1);
    slow.release();
    // The last to know the file system is this test.
    while Arc::strong_count(&slow.0) > 1 {
        thread::yield_now();
    }
}
