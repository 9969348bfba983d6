//! Many writers at once, and the state of the tree after they have ended.

use crate::namespace::rng::Rng;
use crate::races::names::{Seen, look, make, name, tree};
use crate::races::race::Race;
use crate::tree_kind::TreeKind;
use lightfoot::{Context, File, OpenOptions};
use std::collections::BTreeMap;
use std::io::{Read, Write};
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

/// Files in `/fixed` with their inode numbers.
fn make_fixed(context: &Context, count: u64) -> Vec<(String, u64)> {
    let path = |number: u64| format!("/fixed/{}", name(number, [3, 17, 40][number as usize % 3]));
    (0..count).map(path).map(|path| (path.clone(), make(context, &path))).collect()
}

pub(crate) fn names_are_found_while_the_table_grows_and_shrinks_again(kind: TreeKind) {
    const MANY: u64 = 100_000;
    let (vfs, context) = tree(kind, &["/fixed", "/many"]);
    let fixed = make_fixed(&context, 500);
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
    let fixed = make_fixed(&context, 200);
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
