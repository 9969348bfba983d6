//! Contexts and attributes that are replaced while walks go through them.

use crate::namespace::rng::Rng;
use crate::races::names::{ABSENT, Seen, look, make, seen, tree};
use crate::races::race::{History, Observer, Race};
use crate::tree_kind::TreeKind;
use lightfoot::{Credentials, R_OK};

/// `EACCES`.
const REFUSED: Seen = Seen::Error(13);

pub(crate) fn a_relative_path_starts_at_a_working_directory_of_one_moment(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/one/below", "/two/below"]);
    let inos = [make(&context, "/one/below/file"), make(&context, "/two/below/file")];
    let only = make(&context, "/two/only");
    context.set_current_dir("/one").unwrap();
    let history = History::default();
    let (context, history) = (&context, &history);
    let reader = || {
        let mut observer = Observer::new(history);
        move |rng: &mut Rng| {
            let path = rng.pick(&["below/file", "./below/../below/file"]);
            observer.see(|| look(context, path), |state, &seen| seen == Seen::Ino(inos[(state % 2) as usize]));
            let expected = [ABSENT, Seen::Ino(only)];
            observer.see(|| look(context, "only"), |state, &seen| seen == expected[(state % 2) as usize]);
        }
    };
    Race::default()
        .writer(25_000, move |round, _| {
            let to = if round % 2 == 0 { "/two" } else { "../one" };
            history.step(|| context.set_current_dir(to).unwrap());
        })
        .reader(reader())
        .reader(reader())
        .run();
}

pub(crate) fn a_walk_has_the_credentials_of_one_moment(kind: TreeKind) {
    let (_vfs, root) = tree(kind, &["/private"]);
    let own = make(&root, "/private/file");
    root.chown("/private", Some(1), Some(1)).unwrap();
    root.set_permissions("/private", lightfoot::Permissions::from_mode(0o700)).unwrap();
    let context = root.with_credentials(Credentials::user(1, 1, &[]));
    let history = History::default();
    let (context, history) = (&context, &history);
    let reader = || {
        let mut observer = Observer::new(history);
        move |_: &mut Rng| {
            let expected = [Seen::Ino(own), REFUSED];
            let fits = |state: u64, &seen: &Seen| seen == expected[(state % 2) as usize];
            observer.see(|| look(context, "/private/file"), fits);
            observer.see(|| seen(context.access("/private/file", R_OK).map(|()| own)), fits);
        }
    };
    Race::default()
        .writer(20_000, move |round, _| {
            let uid = 1 + (round as u32 + 1) % 2;
            history.step(|| context.set_credentials(Credentials::user(uid, uid, &[uid + 10])));
        })
        .reader(reader())
        .reader(reader())
        .run();
}

pub(crate) fn a_walk_that_is_disturbed_keeps_the_credentials_that_it_began_with(kind: TreeKind) {
    let (_vfs, root) = tree(kind, &["/private"]);
    make(&root, "/private/file");
    let set = |path: &str, owner: u32, mode: u32| {
        root.chown(path, Some(owner), Some(owner)).unwrap();
        root.set_permissions(path, lightfoot::Permissions::from_mode(mode)).unwrap();
    };
    // User 1 may not read the file, and user 2 may not go where it is.
    set("/private/file", 2, 0o600);
    set("/private", 1, 0o700);
    let context = root.with_credentials(Credentials::user(1, 1, &[]));
    let (root, context) = (&root, &context);
    let reader = || {
        move |rng: &mut Rng| {
            let path = rng.pick(&["/private/file", "/private/other"]);
            let seen = seen(context.access(path, R_OK).map(|()| 0));
            assert!(seen == REFUSED || seen == ABSENT, "{path}: {seen:?}");
            assert!(context.open(path).is_err(), "{path} was opened");
        }
    };
    Race::default()
        .writer(20_000, move |round, _| {
            let (from, to) = if round % 2 == 0 { ("file", "other") } else { ("other", "file") };
            root.rename(format!("/private/{from}"), format!("/private/{to}")).unwrap();
        })
        .writer(100_000, move |round, _| {
            let uid = 1 + (round as u32 + 1) % 2;
            context.set_credentials(Credentials::user(uid, uid, &[]));
        })
        .reader(reader())
        .reader(reader())
        .run();
}

pub(crate) fn attributes_are_those_of_one_moment(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/d"]);
    make(&context, "/d/file");
    context.chown("/d/file", Some(0), Some(0)).unwrap();
    let file = lightfoot::File::open(&context, "/d/file").unwrap();
    let history = History::default();
    let (context, history, file) = (&context, &history, &file);
    let reader = || {
        let mut observer = Observer::new(history);
        move |rng: &mut Rng| {
            let look = || {
                let metadata = if rng.below(2) == 0 { context.metadata("/d/file") } else { file.metadata() };
                let metadata = metadata.unwrap();
                (metadata.uid(), metadata.gid(), metadata.size())
            };
            observer.see(look, |state, &(uid, gid, size)| {
                let owner = (state as u32).div_ceil(2);
                // Odd states: the owner is new, the length still old.
                (uid, gid, size) == (owner, owner, state / 2)
            });
        }
    };
    Race::default()
        .writer(25_000, move |round, _| {
            let owner = Some(round as u32 + 1);
            history.step(|| context.chown("/d/file", owner, owner).unwrap());
            history.step(|| context.truncate("/d/file", round + 1).unwrap());
        })
        .reader(reader())
        .reader(reader())
        .run();
}
