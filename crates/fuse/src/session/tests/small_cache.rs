//! Sessions over a small cache, with a kernel that drops the names it must, except those that are watched.

use super::*;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Weak;
use vfs::Budget;

/// Entries that the smallest cache has room for.
const ENTRIES: u64 = 4096;

const ALICE: Caller = Caller::of(50_001, 50_001);
const BOB: Caller = Caller::of(50_002, 50_002);

/// A kernel that has looked up each name once.
#[derive(Default)]
struct DroppingKernel {
    session: OnceLock<Weak<Session>>,
    /// Nodes of the names that the kernel does not drop.
    watched: Mutex<HashSet<u64>>,
}

struct Link(Arc<DroppingKernel>);

impl Sender for Link {
    fn send(&self, notice: &Notice) -> io::Result<()> {
        let nodes = match notice {
            Notice::Prune(nodes) => nodes.to_vec(),
            Notice::Drop { name, .. } => vec![node_of_name(str::from_utf8(name).unwrap())],
            other => panic!("{other:?}"),
        };
        let Some(session) = self.0.session.get().and_then(Weak::upgrade) else { return Ok(()) };
        for node in nodes {
            if !self.0.watched.lock().contains(&node) {
                session.forget(node, 1);
            }
        }
        Ok(())
    }

    fn all(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Node of the file `nN`.
fn node_of_name(name: &str) -> u64 {
    100 + name[1..].parse::<u64>().unwrap()
}

struct SmallCase {
    session: Arc<Session>,
    kernel: Arc<DroppingKernel>,
}

impl SmallCase {
    fn new() -> Self {
        let budget = Budget { entries: 0, ..Budget::default() };
        let vfs = Vfs::with_budget(ChangingFs(Arc::default()), budget);
        let session = Session::new(&vfs, SessionOptions { max_nodes: 1 << 20, ..SessionOptions::default() }).unwrap();
        let kernel = Arc::new(DroppingKernel::default());
        kernel.session.set(Arc::downgrade(&session)).unwrap();
        session.notify_by(Link(kernel.clone()));
        session.allow_waiting(1);
        Self { session, kernel }
    }

    fn look(&self, caller: &Caller, number: u64) -> Result<u64, Errno> {
        self.session.lookup(caller, ROOT_NODE, format!("n{number}").as_bytes()).map(|found| found.node)
    }

    /// Makes the kernel keep the names with these numbers.
    fn watch(&self, numbers: impl IntoIterator<Item = u64>) {
        self.kernel.watched.lock().extend(numbers.into_iter().map(|number| 100 + number));
    }

    /// Returns how many names from `start` on the caller can look up, up to a limit.
    fn count(&self, caller: &Caller, start: u64, limit: u64) -> u64 {
        (0..limit).take_while(|number| self.look(caller, start + number).is_ok()).count() as u64
    }
}

#[test]
fn a_lookup_in_a_full_cache_waits_until_the_kernel_has_forgotten_names() {
    let case = SmallCase::new();
    // Many times the room of the cache.
    assert_eq!(case.count(&SUPER, 0, 5 * ENTRIES), 5 * ENTRIES);
    assert!((case.session.known_nodes() as u64) < ENTRIES);
}

#[test]
fn a_lookup_fails_if_the_kernel_forgets_nothing() {
    let case = SmallCase::new();
    case.watch(0..2 * ENTRIES);
    let held = case.count(&SUPER, 0, 2 * ENTRIES);
    assert!((ENTRIES / 2..ENTRIES).contains(&held), "{held}");
    assert_eq!(case.look(&SUPER, 3 * ENTRIES), Err(Errno::ENOMEM));
    // Names that the kernel has need no room.
    assert_eq!(case.look(&SUPER, 0), Ok(100));
    case.kernel.watched.lock().clear();
    assert_eq!(case.look(&SUPER, 3 * ENTRIES), Ok(100 + 3 * ENTRIES));
}

#[test]
fn a_user_cannot_pin_what_others_need() {
    let case = SmallCase::new();
    case.watch(0..10 * ENTRIES);
    let alice = case.count(&ALICE, 0, 2 * ENTRIES);
    assert!(alice > 500, "{alice}");
    assert_eq!(case.look(&ALICE, 0), Ok(100), "it is known");
    let bob = case.count(&BOB, 2 * ENTRIES, 2 * ENTRIES);
    assert!(bob > 300, "{bob}");
    for user in 0..8 {
        let caller = Caller::of(60_000 + user, 50_002);
        assert_eq!(case.count(&caller, 5 * ENTRIES + u64::from(user) * 300, 30), 30, "user {user} of eight others");
    }
    // A share comes back with the nodes that the kernel forgets.
    assert_eq!(case.look(&ALICE, 4 * ENTRIES), Err(Errno::ENOMEM));
    (0..alice).for_each(|number| case.session.forget(100 + number, if number == 0 { 2 } else { 1 }));
    assert!(case.look(&ALICE, 4 * ENTRIES).is_ok());
    assert!(case.count(&SUPER, 8 * ENTRIES, 500) == 500, "root has no share");
}

#[test]
fn all_unknown_users_have_one_share_and_leave_a_part_for_others() {
    let case = SmallCase::new();
    case.watch(0..10 * ENTRIES);
    let unknown = Caller::of(u32::MAX, u32::MAX);
    let pinned = case.count(&unknown, 0, 2 * ENTRIES);
    assert!((500..ENTRIES * 2 / 3).contains(&pinned), "{pinned}");
    // Another thread of an unknown user is the same account.
    assert_eq!(case.look(&Caller { pid: 7, ..unknown }, 3 * ENTRIES), Err(Errno::ENOMEM));
    let alice = case.count(&ALICE, 4 * ENTRIES, 2 * ENTRIES);
    assert!(alice > 300, "{alice}");
}

#[test]
fn a_user_whose_files_are_not_in_use_has_no_limit() {
    for prunes in [true, false] {
        let case = SmallCase::new();
        if !prunes {
            case.session.note_kernel_without_prune();
        }
        assert_eq!(case.count(&ALICE, 0, 5 * ENTRIES), 5 * ENTRIES);
    }
}
