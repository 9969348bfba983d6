//! A directory changes its owner and its mode under users who find out from two counters whether they may search it.
//!
//! `WHOLE_PATH_LOOKUPS=1000000000 cargo test --release -p lightfoot-vfs --test it attack_rights -- --nocapture` runs that
//! many lookups.

use crate::whole_path::pace::Pace;
use lightfoot_vfs::{Base, Context, Credentials, Errno, SetAttr, Vfs};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use testkit::Store;

/// Lookups of all users, unless the variable has another number.
const LOOKUPS: u64 = 300_000;

/// The users, each on a thread: the directory's owner is one of them.
const USERS: [u32; 2] = [7, 8];

/// Lookups between two changes at most.
const MAX_BETWEEN: u64 = 300;

const FILES: u64 = 16;

/// The owner and the mode of `/p/x`. Odd while a change is under way; half of it is the number of changes.
#[derive(Default)]
struct Rights {
    owner: AtomicU64,
    mode: AtomicU64,
}

impl Rights {
    fn change(&self, root: &Context, is_owner: bool) {
        let state = if is_owner { &self.owner } else { &self.mode };
        let next = (state.fetch_add(1, SeqCst) / 2 + 1) % 2;
        let set = if is_owner {
            SetAttr { uid: Some(USERS[next as usize]), ..SetAttr::default() }
        } else {
            SetAttr { mode: Some(if next == 0 { 0o700 } else { 0o755 }), ..SetAttr::default() }
        };
        root.set_attr(Base::CWD, b"/p/x", true, &set).unwrap();
        state.fetch_add(1, SeqCst);
    }

    /// The certain answers of one user, by what they had to be: refused, permitted; and the wrong ones.
    fn look(&self, pace: &Pace, context: &Context, who: usize) -> [u64; 3] {
        let (mut seen, mut random) = ([0; 3], fastrand::Rng::with_seed(5 + who as u64));
        for _ in 0..pace.lookups() / USERS.len() as u64 {
            let path = format!("/p/x/q/f{}", random.u64(0..FILES));
            let state = || [self.owner.load(SeqCst), self.mode.load(SeqCst)];
            let look = || context.attr(Base::CWD, path.as_bytes(), true).map(drop);
            let Some((state, found)) = pace.look(state, look) else { continue };
            let [owner, mode] = state.map(|state| (state / 2 % 2) as usize);
            let may = owner == who || mode == 1;
            seen[usize::from(may)] += 1;
            seen[2] += u64::from(found != if may { Ok(()) } else { Err(Errno::EACCES) });
        }
        seen
    }
}

#[test]
fn attack_rights() {
    let pace = Pace::new(LOOKUPS, MAX_BETWEEN);
    let lookups = pace.lookups();
    let store = Store::with_paths(&["p/", "p/x/", "p/x/q/"]);
    for file in 0..FILES {
        store.make(store.node("p/x/q"), &format!("f{file}"));
    }
    let vfs = Vfs::builder().whole_paths(1 << 16).records_every_path(true).build(store);
    let root = vfs.context();
    let set = SetAttr { mode: Some(0o700), uid: Some(USERS[0]), ..SetAttr::default() };
    root.set_attr(Base::CWD, b"/p/x", true, &set).unwrap();
    let rights = Rights::default();
    let users = (0..USERS.len()).map(|who| {
        let (context, rights, pace) = (root.fork(), &rights, &pace);
        context.set_credentials(Credentials::user(USERS[who], 100, &[]));
        move || rights.look(pace, &context, who)
    });
    let seen = pace.run(users, 150, |random| rights.change(&root, random.bool()));
    let [refused, permitted, wrong] = [0, 1, 2].map(|at| seen.iter().map(|seen| seen[at]).sum::<u64>());
    let stats = vfs.whole_path_stats();
    println!("attack of rights: {lookups} lookups, {refused} refused, {permitted} permitted, {wrong} wrong; {stats:?}");
    assert_eq!(wrong, 0, "{seen:?}");
    assert!(refused > lookups / 40 && permitted > lookups / 10, "{seen:?} {stats:?}");
    let hits = lookups - stats.misses.min(lookups);
    assert!(stats.changes > 100 && hits > lookups / 8, "{hits} {stats:?}");
}
