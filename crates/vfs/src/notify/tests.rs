//! Watches by themselves: which watch gets which event, full queues, and threads.

use super::EventKind::*;
use super::*;
use std::sync::Barrier;
use std::thread;

impl Home for Arc<Watches> {
    fn watches(&self) -> &Watches {
        self
    }
}

/// A tree of places: key, name, parent.
const PLACES: [(u64, &str, u64); 5] = [(1, "", 0), (2, "usr", 1), (3, "share", 2), (4, "doc", 3), (5, "tmp", 1)];

fn climb(mut key: u64, trail: &mut Trail<u64>) {
    while let Some(&(_, name, parent)) = PLACES.iter().find(|place| place.0 == key)
        && trail.push(key, name.as_bytes(), key)
    {
        key = parent;
    }
}

/// Every watcher may see every place.
fn all_see(_: &u64, _: &Credentials) -> Option<bool> {
    Some(true)
}

fn change(kind: EventKind) -> Change {
    Change { kind, is_dir: false, cookie: 0 }
}

fn event(kind: EventKind, path: &str) -> Event {
    Event { kind, is_dir: false, cookie: 0, path: path.into() }
}

fn watch(watches: &Arc<Watches>, key: u64, scope: Scope, capacity: usize) -> Watch {
    Watches::watch(watches.clone(), key, scope, Credentials::root(), capacity)
}

fn all(watch: &Watch) -> Vec<Event> {
    core::iter::from_fn(|| watch.try_next()).collect()
}

/// The watch of `watched` gets a change to `changed` under the path `expected`, or not at all.
fn check(watched: u64, scope: Scope, kind: EventKind, changed: u64, expected: Option<&str>) {
    let watches = Arc::new(Watches::new());
    let watch = watch(&watches, watched, scope, 10);
    watches.publish(Change { kind, is_dir: true, cookie: 7 }, |trail| climb(changed, trail), all_see);
    let expected: Vec<_> =
        expected.map(|path| Event { is_dir: true, cookie: 7, ..event(kind, path) }).into_iter().collect();
    assert_eq!(all(&watch), expected, "{kind:?} of {changed} for a watch of {watched} {scope:?}");
}

#[test]
fn each_watch_is_told_what_the_table_says() {
    for kind in [Created, Deleted, MovedFrom, MovedTo] {
        for scope in [Scope::Directory, Scope::Subtree] {
            check(4, scope, kind, 4, None);
            check(3, scope, kind, 4, Some("doc"));
            check(5, scope, kind, 4, None);
            check(1, scope, kind, 2, Some("usr"));
        }
        check(2, Scope::Directory, kind, 4, None);
        check(2, Scope::Subtree, kind, 4, Some("share/doc"));
        check(1, Scope::Subtree, kind, 4, Some("usr/share/doc"));
    }
    for kind in [Attributes, Modified] {
        for scope in [Scope::Directory, Scope::Subtree] {
            check(4, scope, kind, 4, Some(""));
            check(3, scope, kind, 4, Some("doc"));
            check(4, scope, kind, 3, None);
            check(1, scope, kind, 1, Some(""));
        }
        check(1, Scope::Directory, kind, 3, None);
        check(1, Scope::Subtree, kind, 3, Some("usr/share"));
    }
    for kind in [DeletedSelf, MovedSelf] {
        for scope in [Scope::Directory, Scope::Subtree] {
            check(4, scope, kind, 4, Some(""));
            check(3, scope, kind, 4, None);
            check(1, scope, kind, 4, None);
        }
    }
}

#[test]
fn the_way_up_is_walked_only_as_far_as_somebody_may_watch() {
    let watches = Arc::new(Watches::new());
    assert!(watches.is_idle());
    watches.publish(change(Created), |_| panic!("climbed for nobody"), all_see);
    let steps_for = |kind| {
        let mut steps = 0;
        watches.publish(
            change(kind),
            |trail| {
                climb(4, trail);
                steps = trail.steps.len();
            },
            all_see,
        );
        steps
    };
    let on_dir = watch(&watches, 5, Scope::Directory, 10);
    assert_eq!((steps_for(Created), steps_for(Modified), steps_for(DeletedSelf)), (2, 2, 1));
    let on_all = watch(&watches, 1, Scope::Subtree, 10);
    assert_eq!((steps_for(Created), steps_for(Modified), steps_for(MovedSelf)), (4, 4, 1));
    drop(on_all);
    assert_eq!(steps_for(Created), 2);
    drop(on_dir);
    assert!(watches.is_idle() && watches.places.lock().is_empty());
    assert!(watches.filter.iter().all(|count| count.load(Relaxed) == 0));
}

#[test]
fn a_watch_of_a_directory_is_not_told_of_what_lies_deeper_even_if_another_is() {
    let watches = Arc::new(Watches::new());
    let shallow = watch(&watches, 2, Scope::Directory, 10);
    let deep = [2, 1].map(|key| watch(&watches, key, Scope::Subtree, 10));
    watches.publish(change(Created), |trail| climb(4, trail), all_see);
    assert_eq!(all(&shallow), []);
    assert_eq!(deep.each_ref().map(all), [[event(Created, "share/doc")], [event(Created, "usr/share/doc")]]);
}

#[test]
fn a_way_walked_again_leaves_nothing_of_the_first_walk() {
    let watches = Arc::new(Watches::new());
    let watch = watch(&watches, 1, Scope::Subtree, 10);
    watches.publish(
        change(Created),
        |trail| {
            climb(5, trail);
            trail.restart();
            climb(3, trail);
        },
        all_see,
    );
    assert_eq!(all(&watch), [event(Created, "usr/share")]);
}

#[test]
fn names_in_a_directory_that_the_watcher_may_not_list_are_not_reported() {
    // For a change to 4 (`usr/share/doc`): the directory that is hidden, or cannot be decided, and
    // the watch's events.
    let path = |path| vec![event(Created, path)];
    let (lost, nothing) = (vec![event(Overflow, "")], vec![]);
    let cases = [
        (1, Some(3), Some(false), nothing.clone()),
        (1, Some(2), Some(false), nothing.clone()),
        // The watched place itself: decided when the watch began. The changed thing: its name is in its directory.
        (1, Some(1), Some(false), path("usr/share/doc")),
        (1, Some(4), Some(false), path("usr/share/doc")),
        (2, Some(1), Some(false), path("share/doc")),
        (2, Some(3), Some(false), nothing.clone()),
        (3, Some(3), Some(false), path("doc")),
        (1, Some(2), None, lost.clone()),
        (1, Some(3), None, lost),
        (1, None, None, path("usr/share/doc")),
    ];
    for (watched, hidden, answer, expected) in cases {
        let watches = Arc::new(Watches::new());
        let cred = Credentials::user(1001, 1001, &[]);
        let watch = Watches::watch(watches.clone(), watched, Scope::Subtree, cred.clone(), 10);
        let sees = |place: &u64, by: &Credentials| {
            assert_eq!(by, &cred);
            if Some(*place) == hidden { answer } else { Some(true) }
        };
        watches.publish(change(Created), |trail| climb(4, trail), sees);
        assert_eq!(all(&watch), expected, "{watched} {hidden:?} {answer:?}");
    }
}

#[test]
fn the_name_is_the_last_of_the_path() {
    for (path, name) in [("", ""), ("a", "a"), ("a/b", "b"), ("usr/share/doc", "doc")] {
        assert_eq!(event(Created, path).name(), name);
    }
}

/// Checks the events `left` in a queue of `capacity` after the pushes; a `take` takes one on the
/// way.
fn check_queue(capacity: usize, steps: &[&str], left: &[Event]) {
    let queue = Queue::new(capacity);
    for step in steps {
        match *step {
            "take" => drop(queue.try_next()),
            "unmount" => queue.push(event(Unmounted, "")),
            name => queue.push(event(Modified, name)),
        }
    }
    assert_eq!(queue.pending(), left.len(), "{steps:?}");
    let given: Vec<_> = core::iter::from_fn(|| queue.try_next()).collect();
    assert_eq!(given, left, "{steps:?}");
}

#[test]
fn a_queue_collapses_equals_marks_overflow_once_and_ends_with_the_unmount() {
    let modified = |name| event(Modified, name);
    let lost = || event(Overflow, "");
    let end = || event(Unmounted, "");
    check_queue(2, &["a", "a", "a"], &[modified("a")]);
    check_queue(3, &["a", "b", "a"], &[modified("a"), modified("b"), modified("a")]);
    check_queue(2, &["a", "b", "b"], &[modified("a"), modified("b")]);
    check_queue(2, &["a", "b", "c", "d", "e"], &[modified("a"), modified("b"), lost()]);
    check_queue(2, &["a", "b", "c", "take", "d", "e"], &[modified("b"), lost(), modified("d")]);
    check_queue(1, &["a", "b", "take", "take", "c", "d"], &[modified("c"), lost()]);
    check_queue(0, &["a", "b"], &[modified("a"), lost()]);
    check_queue(1, &["a", "unmount", "b"], &[modified("a"), end()]);
    check_queue(1, &["a", "b", "unmount", "unmount"], &[modified("a"), lost(), end()]);
}

#[test]
fn a_wait_ends_with_its_time_and_after_the_unmount_there_is_none() {
    let watches = Arc::new(Watches::new());
    let watch = watch(&watches, 2, Scope::Directory, 10);
    assert_eq!(watch.next(Some(Duration::ZERO)), None);
    assert_eq!(watch.next(Some(Duration::from_millis(1))), None);
    watches.unmounted(|_| true);
    watches.publish(change(Created), |trail| climb(3, trail), all_see);
    assert_eq!(watch.next(None), Some(event(Unmounted, "")));
    assert_eq!((watch.next(None), watch.try_next(), watch.pending()), (None, None, 0));
}

#[test]
fn cookies_are_never_zero() {
    let watches = Watches::new();
    watches.last_cookie.store(u32::MAX - 1, Relaxed);
    assert_eq!([watches.new_cookie(), watches.new_cookie(), watches.new_cookie()], [u32::MAX, 1, 2]);
}

#[test]
fn a_parked_watcher_is_woken_by_a_change_and_all_by_the_unmount() {
    let watches = Arc::new(Watches::new());
    let watch = watch(&watches, 2, Scope::Directory, 10);
    let await_sleepers = |count| {
        while watch.watcher.queue.sleepers() != count {
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        let waiter = scope.spawn(|| watch.next(None));
        await_sleepers(1);
        watches.publish(change(Created), |trail| climb(3, trail), all_see);
        assert_eq!(waiter.join().unwrap(), Some(event(Created, "share")));
        let waiters = [(); 3].map(|()| scope.spawn(|| watch.next(None)));
        await_sleepers(3);
        watches.unmounted(|_| true);
        let given = waiters.map(|waiter| waiter.join().unwrap());
        assert_eq!(given.iter().flatten().count(), 1, "{given:?}");
    });
}

#[test]
fn no_wake_is_lost_between_the_look_and_the_sleep() {
    const EVENTS: usize = 20_000;
    let queue = Queue::new(1);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| (0..EVENTS).filter_map(|_| queue.next(None)).count());
        for _ in 0..EVENTS {
            queue.push(event(Modified, "a"));
            while queue.pending() != 0 {
                thread::yield_now();
            }
        }
        assert_eq!(waiter.join().unwrap(), EVENTS);
    });
}

#[test]
fn every_event_of_many_publishers_is_given_once_to_one_of_many_waiters() {
    const EACH: usize = 2_000;
    let watches = Arc::new(Watches::new());
    let watch = watch(&watches, 1, Scope::Subtree, usize::MAX);
    let start = Barrier::new(5);
    let mut given: Vec<_> = thread::scope(|scope| {
        let publishers = [0, 1].map(|publisher| {
            let (watches, start) = (&watches, &start);
            scope.spawn(move || {
                start.wait();
                for i in 0..EACH {
                    let name = format!("{publisher}-{i:04}");
                    watches.publish(
                        change(Created),
                        |trail| {
                            assert!(trail.push(9, name.as_bytes(), 9));
                            climb(2, trail);
                        },
                        all_see,
                    );
                }
            })
        });
        let waiters = [(); 3].map(|()| {
            scope.spawn(|| {
                start.wait();
                core::iter::from_fn(|| watch.next(None).filter(|event| event.kind != Unmounted)).collect::<Vec<_>>()
            })
        });
        for publisher in publishers {
            publisher.join().unwrap();
        }
        watches.unmounted(|_| true);
        waiters.into_iter().flat_map(|waiter| waiter.join().unwrap()).map(|event| event.path).collect()
    });
    given.sort();
    let all = (0..2).flat_map(|publisher| (0..EACH).map(move |i| format!("usr/{publisher}-{i:04}").into()));
    assert_eq!(given, all.collect::<Vec<PathBuf>>());
}

#[test]
fn watches_come_and_go_while_changes_are_published() {
    let watches = Arc::new(Watches::new());
    thread::scope(|scope| {
        let watchers = [2, 3].map(|key| {
            let watches = &watches;
            scope.spawn(move || {
                for round in 0..500 {
                    let which = if round % 2 == 0 { Scope::Subtree } else { Scope::Directory };
                    let watch = watch(watches, key, which, 4);
                    // A watch that exists gets the event, whatever other watches begin and end:
                    // this thread's at least.
                    watches.publish(change(Attributes), |trail| climb(key, trail), all_see);
                    let mut events = core::iter::from_fn(|| watch.try_next());
                    assert!(events.any(|event| matches!(event.kind, Attributes | Overflow)), "{round}");
                }
            })
        });
        for _ in 0..20_000 {
            watches.publish(change(Created), |trail| climb(4, trail), all_see);
        }
        for watcher in watchers {
            watcher.join().unwrap();
        }
    });
    assert!(watches.is_idle() && watches.places.lock().is_empty());
}

#[test]
fn a_watch_can_be_shared_and_sent() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Watch>();
    is_shared::<Watches>();
}
