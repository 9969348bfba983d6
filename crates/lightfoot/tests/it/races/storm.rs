//! Many writers at once, and the state of the tree after they have ended.

use crate::namespace::rng::Rng;
use crate::races::names::{Seen, look, make, name, tree};
use crate::races::race::Race;
use crate::tree_kind::TreeKind;
use lightfoot::{Context, Errno, File, OpenOptions};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};

/// tmpfs's rule: an empty directory has 40 bytes, and 20 more for each entry.
fn dir_size(entries: usize) -> u64 {
    40 + 20 * entries as u64
}

/// Checks that what the directories say of themselves is what their listings say, and that each file has as many links
/// as names. Gives the number of names.
fn check_whole(context: &Context, dirs: &[&str]) -> usize {
    let mut names_of = BTreeMap::new();
    let mut total = 0;
    for dir in dirs {
        let entries: Vec<_> = context.read_dir(dir).unwrap().map(Result::unwrap).collect();
        let subdirs = entries.iter().filter(|entry| entry.file_type().unwrap().is_dir()).count();
        let metadata = context.metadata(dir).unwrap();
        assert_eq!((metadata.size(), metadata.nlink() as usize), (dir_size(entries.len()), 2 + subdirs), "{dir}");
        for entry in &entries {
            let metadata = entry.metadata().unwrap();
            assert_eq!(metadata.ino(), entry.ino());
            if !metadata.is_dir() {
                let (links, names) = names_of.entry(metadata.ino()).or_insert((0, 0));
                *links = metadata.nlink();
                *names += 1;
            }
        }
        total += entries.len();
    }
    for (ino, (links, names)) in names_of {
        assert_eq!(links, names, "inode {ino}");
    }
    total
}

/// What a call that others race with may answer besides success.
fn is_expected(result: &io::Result<()>) -> bool {
    let may_fail = [Errno::ENOENT, Errno::EEXIST, Errno::EISDIR, Errno::ENOTDIR, Errno::ENOTEMPTY];
    match result {
        Ok(()) => true,
        Err(error) => may_fail.iter().any(|errno| error.raw_os_error() == Some(errno.raw())),
    }
}

fn storm_step(context: &Context, dirs: &[&str], rng: &mut Rng) {
    let mut pick = || format!("{}/{}", rng.pick(dirs), name(rng.below(12) as u64, rng.pick(&[2, 17, 40])));
    let (path, other) = (pick(), pick());
    let result = match rng.below(7) {
        0 => context.mknod(&path, 0o644, 0),
        1 => context.remove_file(&path),
        2 => context.create_dir(&path),
        3 => context.remove_dir(&path),
        4 => context.hard_link(&path, &other).or_else(|error| match error.raw_os_error() {
            // A directory has one name.
            Some(1) => Ok(()),
            _ => Err(error),
        }),
        5 => context.symlink("nowhere", &path),
        _ => context.rename(&path, &other),
    };
    assert!(is_expected(&result), "{path} {other}: {result:?}");
}

pub(crate) fn after_a_storm_directories_links_and_listings_agree(kind: TreeKind) {
    for dirs in [&["/one"][..], &["/one", "/two", "/three"]] {
        let (vfs, context) = tree(kind, dirs);
        let context_ref = &context;
        let step = move |_: u64, rng: &mut Rng| storm_step(context_ref, dirs, rng);
        Race::default().writer(30_000, step).writer(30_000, step).writer(30_000, step).run();
        let names = check_whole(&context, dirs);
        vfs.barrier();
        // Directories that the storm made are empty or not: none was made in them. The root is one more.
        assert_eq!(vfs.cache_stats().live_dentries, names + dirs.len() + 1);
    }
}

pub(crate) fn makers_and_removers_in_directories_of_their_own_do_not_disturb_one_another(kind: TreeKind) {
    let dirs = ["/0", "/1", "/2"];
    let (_vfs, context) = tree(kind, &dirs);
    let context = &context;
    let maker = |dir: &'static str| {
        let mut there = [false; 64];
        move |_: u64, rng: &mut Rng| {
            let number = rng.below(64);
            let path = format!("{dir}/{}", name(number as u64, rng.pick(&[3])));
            if there[number] {
                context.remove_file(&path).unwrap();
            } else {
                context.mknod(&path, 0o644, 0).unwrap();
            }
            there[number] = !there[number];
            assert_eq!(context.exists(&path), there[number]);
        }
    };
    Race::default().writer(20_000, maker("/0")).writer(20_000, maker("/1")).writer(20_000, maker("/2")).run();
    check_whole(context, &dirs);
}

pub(crate) fn of_those_who_make_or_remove_one_name_each_time_one_succeeds(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/d"]);
    let balance: Vec<AtomicI64> = (0..8).map(|_| AtomicI64::new(0)).collect();
    let (context_ref, balance_ref) = (&context, &balance);
    let step = move |_: u64, rng: &mut Rng| {
        let number = rng.below(8);
        let path = format!("/d/{number}");
        let (result, by) = if rng.below(2) == 0 {
            (context_ref.mknod(&path, 0o644, 0), 1)
        } else {
            (context_ref.remove_file(&path), -1)
        };
        if result.is_ok() {
            balance_ref[number].fetch_add(by, SeqCst);
        }
    };
    Race::default().writer(20_000, step).writer(20_000, step).writer(20_000, step).run();
    for (number, balance) in balance.iter().enumerate() {
        let there = i64::from(context.exists(format!("/d/{number}")));
        assert_eq!(balance.load(SeqCst), there, "name {number}: made less removed, and what is there");
    }
    check_whole(&context, &["/d"]);
}

/// Creates a file with unique contents under a name that other threads use too, removes the name, then reads the file.
fn keep_open(context: &Context, next: &AtomicU64, rng: &mut Rng) {
    let path = format!("/d/{}", rng.below(5));
    let own = next.fetch_add(1, SeqCst);
    let Ok(mut file) = OpenOptions::new().read(true).write(true).create_new(true).open(context, &path) else {
        // Somebody else's: it holds nothing yet, or one number, and still does after its name has gone.
        if let Ok(mut file) = File::open(context, &path) {
            let ino = file.metadata().unwrap().ino();
            let _ = context.remove_file(&path);
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            assert!(matches!(content.len(), 0 | 8), "{content:?}");
            assert_eq!(file.metadata().unwrap().ino(), ino);
        }
        return;
    };
    file.write_all(&own.to_le_bytes()).unwrap();
    let ino = file.metadata().unwrap().ino();
    if rng.below(2) == 0 {
        let _ = context.rename(&path, format!("/d/{}", rng.below(5)));
    } else {
        let _ = context.remove_file(&path);
    }
    let mut content = [0; 9];
    assert_eq!(file.read_at(&mut content, 0).unwrap(), 8);
    assert_eq!(content[..8], own.to_le_bytes(), "{path}");
    assert_eq!(file.metadata().unwrap().ino(), ino);
}

pub(crate) fn an_open_file_keeps_its_contents_when_its_name_goes_and_comes_back(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/d"]);
    let next = AtomicU64::new(1);
    let (context_ref, next) = (&context, &next);
    let step = move |_: u64, rng: &mut Rng| keep_open(context_ref, next, rng);
    Race::default().writer(20_000, step).writer(20_000, step).writer(20_000, step).run();
    check_whole(&context, &["/d"]);
}

pub(crate) fn names_are_found_while_the_table_grows_and_shrinks_again(kind: TreeKind) {
    const MANY: u64 = 100_000;
    let (vfs, context) = tree(kind, &["/fixed", "/many"]);
    let fixed: Vec<(String, u64)> = (0..500)
        .map(|number| format!("/fixed/{}", name(number, [3, 17, 40][number as usize % 3])))
        .map(|path| (path.clone(), make(&context, &path)))
        .collect();
    let small = vfs.cache_stats().buckets;
    let (context, fixed) = (&context, &fixed);
    let reader = || {
        move |rng: &mut Rng| {
            let (path, ino) = &fixed[rng.below(fixed.len())];
            assert_eq!(look(context, path), Seen::Ino(*ino), "{path}");
        }
    };
    let writers = |step: fn(&Context, &str)| {
        let half =
            move |offset: u64| move |round: u64, _: &mut Rng| step(context, &format!("/many/{}", 2 * round + offset));
        Race::default().writer(MANY / 2, half(0)).writer(MANY / 2, half(1)).reader(reader()).reader(reader()).run();
    };
    writers(|context, path| context.mknod(path, 0o644, 0).unwrap());
    assert!(vfs.cache_stats().buckets > 60_000, "{:?} from {small}", vfs.cache_stats());
    assert_eq!(check_whole(context, &["/fixed", "/many"]), fixed.len() + MANY as usize);
    writers(|context, path| context.remove_file(path).unwrap());
    // It shrinks when it was sparse for as many operations as it has buckets.
    (0..vfs.cache_stats().buckets).for_each(|_| {
        context.mknod("/many/again", 0o644, 0).unwrap();
        context.remove_file("/many/again").unwrap();
    });
    assert!(vfs.cache_stats().buckets < 10_000, "{:?}", vfs.cache_stats());
    assert_eq!(check_whole(context, &["/fixed", "/many"]), fixed.len());
}

pub(crate) fn a_name_that_stays_is_found_while_its_neighbours_on_the_chain_come_and_go(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/fixed", "/0", "/1"]);
    // One or two to a bucket of a small table, so that there are neighbours.
    let fixed: Vec<(String, u64)> = (0..200)
        .map(|number| format!("/fixed/{}", name(number, [3, 17, 40][number as usize % 3])))
        .map(|path| (path.clone(), make(&context, &path)))
        .collect();
    let (context, fixed) = (&context, &fixed);
    let churn = |dir: u64| {
        move |round: u64, _: &mut Rng| {
            let path = |number: u64| format!("/{dir}/{}", number % 50);
            context.mknod(path(round), 0o644, 0).unwrap();
            if round >= 25 {
                context.remove_file(path(round - 25)).unwrap();
            }
        }
    };
    let reader = || {
        move |_: &mut Rng| {
            for (path, ino) in fixed {
                assert_eq!(look(context, path), Seen::Ino(*ino), "{path}");
            }
        }
    };
    Race::default().writer(100_000, churn(0)).writer(100_000, churn(1)).reader(reader()).reader(reader()).run();
}
