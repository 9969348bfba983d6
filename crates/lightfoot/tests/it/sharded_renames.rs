//! Renames by name: what a listing returns beside them, and what a directory's attributes are after them; with directories split and whole.

use ramfs::RamFs;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use vfs::{Base, Context, Errno, OpenFlags, PathAt, RenameFlags, Vfs};

const DIR: OpenFlags = OpenFlags::RDONLY.union(OpenFlags::DIRECTORY);

/// Names that a directory has throughout: several times what a listing reads at a time.
const NAMES: usize = 300;

/// Calls `check` on a tree whose directories are split, and on another one.
fn each(check: fn(&Vfs)) {
    [true, false]
        .iter()
        .for_each(|&is_sharded| check(&Vfs::builder().shards_every_directory(is_sharded).build(RamFs::new())));
}

fn make(context: &Context, path: &str) {
    context.mknod(Base::CWD, path.as_bytes(), vfs::S_IFREG | 0o644, 0).expect(path);
}

fn rename(context: &Context, from: &str, to: &str, flags: RenameFlags) -> Result<(), Errno> {
    context.rename(PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()), flags)
}

/// Lists `/d`, calling `beside` between two batches. Each name with how often it was listed.
fn list(context: &Context, mut beside: impl FnMut(usize)) -> BTreeMap<String, usize> {
    let dir = context.open(Base::CWD, b"/d", DIR, 0).expect("/d");
    let mut seen = BTreeMap::new();
    for batch in 0.. {
        let entries = dir.next_entries().expect("a batch");
        if entries.is_empty() {
            break;
        }
        for entry in entries {
            *seen.entry(String::from_utf8_lossy(&entry.name).into_owned()).or_default() += 1;
        }
        beside(batch);
    }
    seen
}

/// That each of the names that stay was listed once, and no name twice.
fn check_listed(seen: &BTreeMap<String, usize>) {
    for number in 0..NAMES {
        assert_eq!(seen.get(&format!("n{number}")), Some(&1), "n{number}");
    }
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
}

/// Makes `/d` with the names that stay, some before the directory is split and some after.
fn make_all(context: &Context) {
    context.mkdir(Base::CWD, b"/d", 0o755).expect("/d");
    context.mkdir(Base::CWD, b"/e", 0o755).expect("/e");
    for number in 0..NAMES {
        make(context, &format!("/d/n{number}"));
        if number == NAMES / 2 {
            // The listing merges it.
            list(context, |_| ());
        }
    }
}

#[test]
fn a_name_that_is_renamed_over_or_exchanged_beside_a_listing_is_listed_once() {
    each(|vfs| {
        let context = vfs.context();
        make_all(&context);
        let seen = list(&context, |batch| {
            for step in (0..NAMES).step_by(7) {
                let name = |number: usize| format!("/d/n{}", (number + batch) % NAMES);
                let (one, other) = (name(step), name(step * 5 + 1));
                let fresh = format!("/{}/x{step}", ["d", "e"][step % 2]);
                make(&context, &fresh);
                rename(&context, &fresh, &one, RenameFlags::default()).expect("over a file");
                if one != other {
                    rename(&context, &one, &other, RenameFlags::EXCHANGE).expect("both are there");
                }
            }
        });
        check_listed(&seen);
        check_listed(&list(&context, |_| ()));
        // Neighbours in the listing change places, too.
        let order: Vec<String> = (0..NAMES - 1).map(|number| format!("/d/n{number}")).collect();
        order.windows(2).for_each(|two| rename(&context, &two[0], &two[1], RenameFlags::EXCHANGE).expect("both"));
        check_listed(&list(&context, |_| ()));
    });
}

#[test]
fn threads_that_rename_over_names_of_one_directory_leave_each_listed_once_and_counted() {
    const THREADS: usize = 3;
    const ROUNDS: usize = 150;
    each(|vfs| {
        let context = vfs.context();
        make_all(&context);
        let before = context.attr(Base::CWD, b"/d", true).expect("/d");
        let held = vfs.stats().held;
        let running = AtomicUsize::new(THREADS);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (context, running) = (context.fork(), &running);
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let (a, b) = (format!("/d/a{thread}-{round}"), format!("/d/b{thread}-{round}"));
                        let outside = format!("/e/x{thread}-{round}");
                        make(&context, &outside);
                        // From a directory that is not split to one that is, within it, over a name, and out of it.
                        rename(&context, &outside, &a, RenameFlags::NOREPLACE).expect("a new name");
                        rename(&context, &a, &b, RenameFlags::default()).expect("a new name");
                        assert_eq!(rename(&context, &a, &outside, RenameFlags::default()), Err(Errno::ENOENT));
                        let at = context.attr(Base::CWD, b"/d", true).expect("/d");
                        assert!(at.mtime >= before.mtime && at.nlink == 2, "{at:?}");
                        if round % 2 == 0 {
                            let stays = format!("/d/n{}", (thread + round * THREADS) % NAMES);
                            rename(&context, &b, &stays, RenameFlags::default()).expect("over a file");
                        } else {
                            rename(&context, &b, &outside, RenameFlags::default()).expect("a new name");
                        }
                    }
                    running.fetch_sub(1, SeqCst);
                });
            }
            while running.load(SeqCst) != 0 {
                let seen = list(&context, |_| ());
                for number in 0..NAMES {
                    assert_eq!(seen.get(&format!("n{number}")), Some(&1), "n{number}");
                }
                assert!(seen.values().all(|times| *times == 1), "{seen:?}");
            }
        });
        let after = context.attr(Base::CWD, b"/d", true).expect("/d");
        assert_eq!((after.size, after.nlink), (before.size, before.nlink));
        check_listed(&list(&context, |_| ()));
        for number in 0..NAMES {
            context.unlink(Base::CWD, format!("/d/n{number}").as_bytes()).expect("a name that stays");
        }
        context.rmdir(Base::CWD, b"/d").expect("an empty directory");
        vfs.barrier();
        assert_eq!(vfs.stats().held, held, "references");
    });
}
