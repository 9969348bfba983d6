//! Lookups that answer the walk's next names, too.

use lightfoot_vfs::{Base, Budget, Context, Errno, OpenFlags, Valid, Vfs, Want};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use testkit::{Call, Fault, Faults, Store, StoreOptions};

const ROOT: u64 = Store::ROOT;
const AHEAD: StoreOptions = StoreOptions {
    remote: false,
    names_in_cache: false,
    keeps_listings: false,
    reports_attributes: false,
    returns_attributes: false,
    lists_attributes: true,
    answers_ahead: true,
    valid: Valid::UntilInvalidated,
    quota: None,
};
const DEEP: &[&str] =
    &["a/", "a/b/", "a/b/c/", "a/b/c/d/", "a/b/c/d/e/", "a/b/c/d/e/f/", "a/b/c/d/e/f/g/", "a/b/c/d/e/f/g/h"];

fn look(context: &Context, path: &str) -> Result<u64, Errno> {
    context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino)
}

/// Has `act` run once, after the answer to the lookup of `a`.
fn after_a(store: &Store, act: impl Fn() + Send + Sync + 'static) {
    let is_done = AtomicBool::new(false);
    store.after(move |call| {
        if let Call::Lookup { name: b"a", .. } = call
            && !is_done.swap(true, SeqCst)
        {
            act();
        }
        Ok(())
    });
}

#[test]
fn a_cold_path_of_eight_names_takes_one_call() {
    // Whether the store answers ahead, the caller's timeout, the path, and the lookups that it takes.
    let cases = [
        (true, None, "/a/b/c/d/e/f/g/h", 1),
        (true, Some(u64::MAX), "/a/b/c/d/e/f/g/h", 1),
        (true, None, "//a//b/c/d/e/f/g///h", 1),
        (false, None, "/a/b/c/d/e/f/g/h", 8),
        // Of what is behind these, the directory is not known.
        (true, None, "/a/b/./c/d/e/f/g/h", 2),
        (true, None, "/a/b/c/../c/d/e/f/g/h", 2),
        // The first name that does not exist is remembered, too.
        (true, None, "/a/b/none/d/e", 1),
        (true, None, "/a/b/c/d/e/f/g/h/none", 1),
        (true, None, "/none/b/c", 1),
    ];
    for (answers_ahead, timeout, path, lookups) in cases {
        let store = Store::with_options(StoreOptions { answers_ahead, ..AHEAD }, DEEP);
        // As if it were far away.
        let (far, plan) = Faults::of(Box::new(store.clone()));
        plan.set(|_| Some(Fault::Delay(Duration::from_millis(1))));
        let vfs = Vfs::new(far);
        let context = vfs.context();
        context.set_timeout_ns(timeout);
        let expected = match path {
            "/a/b/c/d/e/f/g/h/none" => Err(Errno::ENOTDIR),
            _ if path.contains("none") => Err(Errno::ENOENT),
            _ => Ok(store.node("a/b/c/d/e/f/g/h")),
        };
        for _ in 0..3 {
            assert_eq!(look(&context, path), expected, "{path}");
            assert_eq!(store.lookups(), lookups, "{answers_ahead} {path}");
        }
    }
}

#[test]
fn answers_behind_a_link_are_ignored() {
    let store = Store::with_options(AHEAD, &["a/", "a/link -> real", "a/real/", "a/real/f"]);
    let vfs = store.tree();
    let context = vfs.context();
    assert_eq!(look(&context, "/a/link/f"), Ok(store.node("a/real/f")));
    assert_eq!(look(&context, "/a/real/f"), Ok(store.node("a/real/f")));
    // `a` with `link`, and `real` with `f` in it, as the walk came there by the link's body.
    assert_eq!(store.lookups(), 2);
}

#[test]
fn rights_are_checked_as_ever() {
    let store = Store::with_options(AHEAD, &["a/", "a/b/", "a/b/f"]);
    store.change(store.node("a"), |attr| attr.mode = attr.kind() | 0o700);
    let vfs = store.tree();
    let context = vfs.context();
    context.set_credentials(lightfoot_vfs::Credentials::user(5, 5, &[]));
    assert_eq!(look(&context, "/a/b/f"), Err(Errno::EACCES));
    assert_eq!(look(&context, "/a/b"), Err(Errno::EACCES));
}

#[test]
fn what_is_invalidated_during_the_call_is_looked_up() {
    let size = |context: &Context| context.attr(Base::CWD, b"/a/b/f", true).map(|attr| attr.size);
    for (is_removed, expected) in [(true, Err(Errno::ENOENT)), (false, Ok(7))] {
        let store = Store::with_options(AHEAD, &["a/", "a/b/", "a/b/f"]);
        let vfs = store.tree();
        let own = store.clone();
        after_a(&store, move || {
            let (a, f) = (own.node("a"), own.node("a/b/f"));
            if is_removed {
                own.remove(a, "b");
                own.invalidator().entry(a, b"b");
            } else {
                own.change(f, |attr| attr.size = 7);
                own.invalidator().inode(f);
            }
        });
        assert_eq!(size(&vfs.context()), expected, "{is_removed}");
    }
}

#[test]
fn a_name_that_was_removed_while_its_directory_came_and_went_stays_removed() {
    let store = Store::with_options(AHEAD, &["a/", "a/b", "big/"]);
    let big = store.node("big");
    (0..20_000).for_each(|number| _ = store.make(big, &format!("f{number}")));
    let vfs = Vfs::builder().budget(Budget { entries: 0, ..Budget::default() }).build(store.clone());
    let list = |context: &Context, path: &str| {
        let dir = context.open(Base::CWD, path.as_bytes(), OpenFlags::DIRECTORY, 0).unwrap();
        while !dir.next_entries_with(Want::ATTRIBUTES).unwrap().is_empty() {}
    };
    let (other, lookups) = (vfs.context(), Arc::new(AtomicU32::new(0)));
    let (own, counted) = (store.clone(), lookups.clone());
    after_a(&store, move || {
        // A listing brings the directory, another one drives it out.
        list(&other, "/");
        other.unlink(Base::CWD, b"/a/b").unwrap();
        list(&other, "/big");
        list(&other, "/big");
        counted.store(own.lookups_of(ROOT, "a"), SeqCst);
    });
    assert_eq!(look(&vfs.context(), "/a/b"), Err(Errno::ENOENT));
    assert_eq!(lookups.load(SeqCst), 1, "no other thread has looked `a` up");
}

#[test]
fn a_name_that_another_thread_removes_stays_removed() {
    for round in 0..300 {
        let store = Store::with_options(AHEAD, &["a/", "a/b"]);
        let vfs = store.tree();
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                let _ = look(&vfs.context(), "/a/b");
            });
            let context = vfs.context();
            barrier.wait();
            assert_eq!(context.unlink(Base::CWD, b"/a/b"), Ok(()), "{round}");
            assert_eq!(look(&context, "/a/b"), Err(Errno::ENOENT), "{round}");
        });
        assert_eq!(look(&vfs.context(), "/a/b"), Err(Errno::ENOENT), "{round}");
    }
}

#[test]
fn a_file_that_was_answered_ahead_ends_when_it_is_removed() {
    let store = Store::with_options(AHEAD, &["a/", "a/f"]);
    let (fs, counts) = testkit::Counting::of(Box::new(store.clone()));
    let vfs = Vfs::new(fs);
    let context = vfs.context();
    assert_eq!(look(&context, "/a/f"), Ok(store.node("a/f")));
    assert_eq!(store.lookups(), 1);
    context.unlink(Base::CWD, b"/a/f").unwrap();
    vfs.barrier();
    assert_eq!(counts.evictions(), 1);
}
