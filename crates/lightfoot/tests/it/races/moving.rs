//! Directories that move while walks lead through them.

use crate::namespace::rng::Rng;
use crate::races::names::{ABSENT, Seen, look, make, tree};
use crate::races::race::{History, Observer, Race};
use crate::tree_kind::TreeKind;
use lightfoot::{Context, File};

/// Where the directories of [`Moving`] are in each state: the upper one, and what its child is called.
const PLACES: [(&str, &str); 4] = [
    ("/m/deep", "x"),
    ("/n/a-directory-name-of-more-than-32-bytes", "x"),
    ("/n/a-directory-name-of-more-than-32-bytes", "xx"),
    ("/m/deep", "xx"),
];

/// The path of the file in a state.
fn file_in(state: u64) -> String {
    let (dir, child) = PLACES[(state % 4) as usize];
    format!("{dir}/{child}/y/file")
}

/// Moves the directories from state `round` to the next.
fn move_on(context: &Context, history: &History, round: u64) {
    let ((old, child), (new, next)) = (PLACES[(round % 4) as usize], PLACES[(round as usize + 1) % 4]);
    let (from, to) =
        if old == new { (format!("{old}/{child}"), format!("{old}/{next}")) } else { (old.into(), new.into()) };
    history.step(|| context.rename(from, to).unwrap());
}

pub(crate) fn a_path_through_a_directory_that_moves_leads_to_its_file_or_to_nothing(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/m/deep/x/y", "/n", "/links"]);
    let own = make(&context, &file_in(0));
    context.symlink("../m/deep", "/links/up").unwrap();
    context.symlink(PLACES[1].0, "/links/long").unwrap();
    let history = History::default();
    let (context, history) = (&context, &history);
    let reader = || {
        let mut observer = Observer::new(history);
        move |rng: &mut Rng| {
            let place = rng.below(4);
            let (dir, child) = PLACES[place];
            let dir = match rng.below(2) {
                0 => dir,
                _ if dir == "/m/deep" => "/links/up",
                _ => "/links/long",
            };
            // Each directory is looked up once, so such a walk is of one moment for each: it fits two states in order. The
            // name of the child does not show where the upper one is.
            if rng.below(2) == 0 {
                let path = format!("{dir}/{child}/y/file");
                let seen = look(context, &path);
                assert!(seen == Seen::Ino(own) || seen == ABSENT, "{path}: {seen:?}");
            } else {
                let fits =
                    |state: u64, &seen: &Seen| (seen == ABSENT) != (PLACES[(state % 4) as usize].0 == PLACES[place].0);
                observer.see(|| look(context, dir), fits);
            }
            // Back and forth: every step may find another state, but only ever what was there.
            let path = format!("{dir}/{child}/../{child}/y/../../{child}/./y//file");
            let seen = look(context, &path);
            assert!(seen == Seen::Ino(own) || seen == ABSENT, "{path}: {seen:?}");
        }
    };
    Race::default()
        .writer(30_000, move |round, _| move_on(context, history, round))
        .reader(reader())
        .reader(reader())
        .run();
}

pub(crate) fn what_lies_below_a_working_directory_is_found_wherever_that_is_moved(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/m/deep/x/y", "/n"]);
    let own = make(&context, "/m/deep/x/y/file");
    let inner = context.fork();
    inner.set_current_dir("/m/deep/x").unwrap();
    let (context, inner) = (&context, &inner);
    let reader = || {
        move |rng: &mut Rng| {
            let path = rng.pick(&["y/file", "../x/y/file", "y/../../x/y/file", "./y/.//file"]);
            assert_eq!(look(inner, path), Seen::Ino(own), "{path}");
        }
    };
    Race::default()
        .writer(30_000, move |round, _| {
            let (from, to) = if round % 2 == 0 { ("/m/deep", "/n/other") } else { ("/n/other", "/m/deep") };
            context.rename(from, to).unwrap();
        })
        .writer(6_000, move |_, rng| {
            let path = format!("/m/{}", rng.below(20));
            if context.create_dir(&path).is_err() {
                context.remove_dir(&path).unwrap();
            }
        })
        .reader(reader())
        .reader(reader())
        .run();
}

pub(crate) fn a_reverse_path_is_one_that_the_file_had_and_no_mixture(kind: TreeKind) {
    let (_vfs, context) = tree(kind, &["/m/deep/x/y", "/n"]);
    make(&context, &file_in(0));
    let file = File::open(&context, file_in(0)).unwrap();
    let inner = context.fork();
    inner.set_current_dir("/m/deep/x/y").unwrap();
    let history = History::default();
    let (context, history, file, inner) = (&context, &history, &file, &inner);
    let reader = || {
        let mut observer = Observer::new(history);
        move |rng: &mut Rng| match rng.below(3) {
            0 => observer.see(|| file.path(context).display().to_string(), |state, seen| *seen == file_in(state)),
            1 => observer.see(
                || inner.current_dir().unwrap().join("file").display().to_string(),
                |state, seen| *seen == file_in(state),
            ),
            // The walk, and then the way back: the path may be of a later state, but is of one.
            _ => {
                let path = inner.canonicalize("../y/file").unwrap().display().to_string();
                assert!((0..4).any(|state| path == file_in(state)), "{path}");
            }
        }
    };
    Race::default()
        .writer(30_000, move |round, _| move_on(context, history, round))
        .reader(reader())
        .reader(reader())
        .run();
}

pub(crate) fn directories_that_are_renamed_into_one_another_never_make_a_loop(kind: TreeKind) {
    let (vfs, context) = tree(kind, &["/p/a", "/q/b"]);
    let context = &context;
    // Each way alone is right; both at once would take the two out of the tree. No directory is in both ways but those two.
    let mover = |from: &'static str, to: &'static str| {
        move |_: u64, _: &mut Rng| {
            let there = context.rename(from, to);
            let back = context.rename(to, from);
            assert!(there.is_err() || back.is_ok(), "{from} went to {to} and not back: {back:?}");
        }
    };
    Race::default()
        .writer(30_000, mover("/p/a", "/q/b/a"))
        .writer(30_000, mover("/q/b", "/p/a/b"))
        .reader(move |rng| {
            let path = rng.pick(&["/p/a/..", "/q/b/a/../..", "/p/a/b/..", "/q/b"]);
            if let Ok(path) = context.canonicalize(path) {
                let path = path.to_str().unwrap();
                assert!(["/", "/p", "/q", "/p/a", "/q/b", "/p/a/b", "/q/b/a"].contains(&path), "{path}");
            }
        })
        .run();
    assert_eq!((count(context, "/"), vfs.cache_stats().live_dentries), (4, 5));
}

/// Entries below a directory; each directory has as many links as its sub-directories require.
fn count(context: &lightfoot::Context, dir: &str) -> usize {
    let below: Vec<_> = context.read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(context.metadata(dir).unwrap().nlink() as usize, 2 + below.len(), "{dir}");
    below.iter().map(|path| 1 + count(context, path.to_str().unwrap())).sum()
}
