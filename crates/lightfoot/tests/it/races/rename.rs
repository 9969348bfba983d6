//! Names that move, go and come back, looked up meanwhile.

use crate::namespace::rng::Rng;
use crate::races::names::{ABSENT, Seen, look, look_at_link, make, name, tree};
use crate::races::race::{History, Notes, Observer, Race};
use crate::tree_kind::TreeKind;
use lightfoot::{Context, Credentials, Permissions};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Makes and removes files, so that the memory of what goes serves other names at once: of the same name as those of the race
/// but elsewhere, and of other names beside them.
fn make_noise(context: &Context, same: &[String], rng: &mut Rng) {
    let path = match rng.below(4) {
        0 => format!("/d1/{}", name(rng.below(30) as u64, rng.pick(&[4, 16, 17, 40]))),
        1 => format!("/d2/{}", name(rng.below(30) as u64, rng.pick(&[4, 16, 17, 40]))),
        _ => format!("/d3/{}", rng.pick(same)),
    };
    if context.mknod(&path, 0o644, 0).is_err() {
        context.remove_file(&path).unwrap();
    }
}

fn check_one_name_at_a_time(kind: TreeKind, from: (&str, usize), to: (&str, usize)) {
    let (_vfs, context) = tree(kind, &["/d1", "/d2", "/d3"]);
    // No noise has a name of these letters.
    let names = ["a".repeat(from.1), "b".repeat(to.1)];
    let paths = [format!("{}/{}", from.0, names[0]), format!("{}/{}", to.0, names[1])];
    let own = make(&context, &paths[0]);
    let history = History::default();
    let (context, history, names, paths) = (&context, &history, &names, &paths);
    let reader = || {
        let mut observer = Observer::new(history);
        move |rng: &mut Rng| {
            let which = rng.below(2);
            let path = &paths[which];
            let fits = |state: u64, &seen: &Seen| {
                let there = state % 2 == which as u64;
                seen == if there { Seen::Ino(own) } else { ABSENT }
            };
            match rng.below(3) {
                0 => observer.see(|| look_at_link(context, path), fits),
                1 => observer.see(|| if context.exists(path) { Seen::Ino(own) } else { ABSENT }, fits),
                _ => observer.see(|| look(context, path), fits),
            }
        }
    };
    Race::default()
        .writer(20_000, move |round, _| {
            let (old, new) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
            history.step(|| context.rename(&paths[old], &paths[new]).unwrap());
        })
        .writer(20_000, move |_, rng| make_noise(context, names, rng))
        .reader(reader())
        .reader(reader())
        .run();
}

pub(crate) fn a_file_that_is_renamed_has_one_of_its_names_at_every_moment(kind: TreeKind) {
    let cases = [
        (("/d1", 1), ("/d2", 1)),
        (("/d1", 1), ("/d1", 1)),
        (("/d1", 16), ("/d2", 17)),
        (("/d1", 16), ("/d1", 16)),
        (("/d1", 32), ("/d1", 33)),
        (("/d1", 8), ("/d2", 200)),
        (("/d1", 40), ("/d1", 41)),
        (("/d1", 255), ("/d2", 32)),
    ];
    for (from, to) in cases {
        println!("{from:?} to {to:?}");
        check_one_name_at_a_time(kind, from, to);
    }
}

fn check_target_is_there(kind: TreeKind, spare: &str, target: &str, is_dir: bool) {
    const ROUNDS: u64 = 15_000;
    let (_vfs, context) = tree(kind, &["/d1", "/d2"]);
    let make = |path: &str, content: u64| {
        match is_dir {
            true => context.create_dir(path).unwrap(),
            false => context.write(path, content.to_le_bytes()).unwrap(),
        }
        context.metadata(path).unwrap().ino()
    };
    let inos: Vec<AtomicU64> = (0..=ROUNDS).map(|_| AtomicU64::new(0)).collect();
    inos[0].store(make(target, 0), SeqCst);
    let history = History::default();
    let (context, history, inos, make) = (&context, &history, &inos, &make);
    let reader = || {
        let mut observer = Observer::new(history);
        move |rng: &mut Rng| {
            if is_dir || rng.below(2) == 0 {
                let fits = |state: u64, &seen: &Seen| seen == Seen::Ino(inos[state as usize].load(SeqCst));
                observer.see(|| look(context, target), fits);
            } else {
                let fits = |state: u64, seen: &Option<Vec<u8>>| seen.as_deref() == Some(&state.to_le_bytes());
                observer.see(|| context.read(target).ok(), fits);
            }
        }
    };
    Race::default()
        .writer(ROUNDS, move |round, _| {
            inos[round as usize + 1].store(make(spare, round + 1), SeqCst);
            history.step(|| context.rename(spare, target).unwrap());
        })
        .reader(reader())
        .reader(reader())
        .run();
}

pub(crate) fn a_name_that_is_renamed_over_is_never_absent_and_leads_to_the_old_or_the_new(kind: TreeKind) {
    let long = format!("/d1/{}", "t".repeat(40));
    for (spare, target, is_dir) in [
        ("/d1/spare", "/d1/target", false),
        ("/d2/spare", "/d1/target", false),
        ("/d2/spare", &long, false),
        ("/d1/spare", "/d1/target", true),
        ("/d2/spare", "/d1/target", true),
    ] {
        println!("{spare} over {target}");
        check_target_is_there(kind, spare, target, is_dir);
    }
}

pub(crate) fn a_name_that_is_removed_and_made_again_leads_to_a_file_that_was_there_meanwhile(kind: TreeKind) {
    const ROUNDS: u64 = 20_000;
    for path in ["/d1/name", "/d1/a-name-of-more-than-thirty-two-bytes"] {
        let (_vfs, context) = tree(kind, &["/d1"]);
        let inos: Vec<AtomicU64> = (0..ROUNDS).map(|_| AtomicU64::new(0)).collect();
        // Odd states: there.
        let history = History::default();
        let mut notes = [Notes::new(&history, 100_000), Notes::new(&history, 100_000)];
        let [first, second] = &mut notes;
        Race::default()
            .writer(ROUNDS, |round, _| {
                history.step(|| context.mknod(path, 0o644, 0).unwrap());
                let ino = context.metadata(path).unwrap().ino();
                inos[round as usize].store(ino, SeqCst);
                history.step(|| context.remove_file(path).unwrap());
            })
            .reader(|_| first.look(|| look(&context, path)))
            .reader(|_| second.look(|| look(&context, path)))
            .run();
        let expected = |state: u64| match state % 2 {
            0 => ABSENT,
            _ => Seen::Ino(inos[(state / 2) as usize].load(SeqCst)),
        };
        notes.iter().for_each(|notes| notes.check(|state, &seen| seen == expected(state)));
    }
}

pub(crate) fn a_path_does_not_lead_into_a_directory_that_took_the_memory_of_one_on_the_way(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/d1", "/d2"]);
    context.set_umask(0);
    let users = [1, 2].map(|uid| context.with_credentials(Credentials::user(uid, uid, &[])));
    for dir in ["/d1", "/d2"] {
        context.set_permissions(dir, Permissions::from_mode(0o777)).unwrap();
    }
    let markers = ["/d1/marker", "/d2/marker"].map(|path| make(&context, path));
    let users = &users;
    // What is made and removed in turn: the memory that one gives back is what the next takes.
    let places = [("/d1/dir", "/d1/dir/file"), ("/d2/dir", "/d2/dir/file")];
    let reader = || {
        move |rng: &mut Rng| {
            let which = rng.below(2);
            let (dir, file) = places[which];
            if let Ok(metadata) = users[0].metadata(file) {
                assert_eq!(metadata.uid() as usize, which + 1, "{file}");
            }
            let seen = look(&users[0], &format!("{dir}/../marker"));
            assert!(seen == Seen::Ino(markers[which]) || seen == ABSENT, "{dir}/../marker: {seen:?}");
        }
    };
    Race::default()
        .writer(60_000, move |round, _| {
            let which = (round % 2) as usize;
            let (dir, file) = places[which];
            users[which].create_dir(dir).unwrap();
            users[which].mknod(file, 0o644, 0).unwrap();
            users[which].remove_file(file).unwrap();
            users[which].remove_dir(dir).unwrap();
        })
        .reader(reader())
        .reader(reader())
        .reader(reader())
        .run();
}
