//! What the threads of a torture do, and what must hold for one thread's names whatever the others do.
//!
//! The choice of what is done is fixed; how threads meet is the machine's. `super::under_test` is the library, or its
//! twin on the simulated machine.

use super::under_test::{self, Error, Handle, Process};

/// The ways of the directory that moves: each step is one rename, and the last leads to the first. The directory it is in
/// moves only while it is not in there, so that of the places of the file in it no other is ever right.
const MOVES: [(&str, &str); 6] = [
    ("/left/m/deep", "/right/on-the-way"),
    ("/left/m", "/right/moved"),
    ("/right/on-the-way", "/right/moved/deeper"),
    ("/right/moved/deeper", "/left/way-back"),
    ("/right/moved", "/left/m"),
    ("/left/way-back", "/left/m/deep"),
];

/// Where the file in it can be.
const PLACES: [&str; 4] = ["/left/m/deep/f", "/right/on-the-way/f", "/right/moved/deeper/f", "/left/way-back/f"];

/// A file that no thread changes, and its neighbours.
const KEPT: [&str; 3] = ["f", "g", "h"];

pub(crate) type Checked = Result<(), String>;

fn ensure(is_right: bool, wrong: impl FnOnce() -> String) -> Checked {
    if is_right { Ok(()) } else { Err(wrong()) }
}

/// The operation's success, or what failed.
fn done<T>(what: &str, result: under_test::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error:?}"))
}

fn set_up(process: &dyn Process) -> Checked {
    for dir in ["/keep", "/keep/a", "/keep/a/b", "/left", "/right", "/common", "/swap", "/left/m", "/left/m/deep"] {
        done(dir, process.make_directory(dir.as_bytes()))?;
    }
    for file in
        KEPT.map(|name| format!("/keep/a/b/{name}")).iter().map(String::as_str).chain(["/left/m/deep/f", "/swap/t"])
    {
        let handle = done(file, process.create(file.as_bytes()))?;
        process.close(handle);
    }
    Ok(())
}

/// Creates, renames, opens and removes private files in a directory that all threads share.
fn own_names(process: &dyn Process, index: usize, rounds: usize) -> Checked {
    for round in 0..rounds {
        let long = "x".repeat(round % 50);
        let (first, second) =
            (format!("/common/{index}-{round}"), format!("/common/../common/{index}-{round}-{long}-moved"));
        let handle = done("create", process.create(first.as_bytes()))?;
        let made = done("stat", process.stat(first.as_bytes()))?;
        done("rename", process.rename(first.as_bytes(), second.as_bytes()))?;
        let missing = process.stat(first.as_bytes());
        ensure(missing == Err(Error::NoEntry), || format!("{first} was renamed, and is {missing:?}"))?;
        let moved = done("stat after rename", process.stat(second.as_bytes()))?;
        ensure(moved == made, || format!("{second} is {moved:?}, was {made:?}"))?;
        done("hold", process.hold_parent(&handle, 1))?;
        done("unlink", process.unlink(second.as_bytes()))?;
        let missing = process.stat(second.as_bytes());
        ensure(missing == Err(Error::NoEntry), || format!("{second} was removed, and is {missing:?}"))?;
        let mut path = Vec::new();
        done("path", process.reverse_path(&handle, &mut path))?;
        let want = format!("{} (deleted)", second.replace("/common/..", ""));
        ensure(path == want.as_bytes(), || format!("{want} is at {}", String::from_utf8_lossy(&path)))?;
        process.close(handle);
    }
    Ok(())
}

/// Moves a directory with a file in it from place to place.
fn move_directory(process: &dyn Process, rounds: usize) -> Checked {
    for _ in 0..rounds / 2 {
        for (from, to) in MOVES {
            done("move", process.rename(from.as_bytes(), to.as_bytes()))?;
            done("stat where it was moved to", process.stat(to.as_bytes()))?;
            let missing = process.stat(from.as_bytes());
            ensure(missing == Err(Error::NoEntry), || format!("{from} was moved, and is {missing:?}"))?;
            let below = format!("{to}/below");
            let refused = process.rename(to.as_bytes(), below.as_bytes());
            ensure(refused == Err(Error::Invalid), || format!("moved below itself: {refused:?}"))?;
        }
    }
    Ok(())
}

/// Requests the path of the file that moves, and looks for the one that is replaced, which may end while it is found.
fn climb(process: &dyn Process, running: &dyn Fn() -> bool, moving: &Handle) -> Checked {
    let mut path = Vec::new();
    while running() {
        done("path", process.reverse_path(moving, &mut path))?;
        ensure(PLACES.iter().any(|right| right.as_bytes() == path), || {
            format!("the file that moves is at {}", String::from_utf8_lossy(&path))
        })?;
        for _ in 0..4 {
            done("what is replaced", process.stat(b"/swap/t"))?;
        }
    }
    Ok(())
}

/// Replaces one name by a new file again and again.
fn replace(process: &dyn Process, rounds: usize) -> Checked {
    for _ in 0..rounds {
        let handle = done("create", process.create(b"/swap/new"))?;
        done("replace", process.rename(b"/swap/new", b"/swap/t"))?;
        process.close(handle);
    }
    Ok(())
}

/// Removes the directory that a process, shared with [`leave`], stands in, and leaves it.
fn enter(process: &dyn Process, rounds: usize) -> Checked {
    for _ in 0..4 * rounds {
        done("mkdir", process.make_directory(b"/swap/stand"))?;
        done("mkdir", process.make_directory(b"/swap/other"))?;
        done("cd", process.change_directory(b"/swap/stand"))?;
        done("replace", process.rename(b"/swap/other", b"/swap/stand"))?;
        let refused = process.create(b"new").map(|handle| process.close(handle));
        ensure(refused == Err(Error::NoEntry), || format!("made in a directory that was removed: {refused:?}"))?;
        done("cd", process.change_directory(b"/"))?;
        done("replace what is left", process.rename(b"/swap/stand", b"/right/only"))?;
    }
    Ok(())
}

/// Moves its own directory into another thread's, which does the same the other way round, and back: of two such moves at
/// once one must be refused, or both would be below each other and nowhere else. The four directories are different, so
/// that no mutex of one keeps the two apart.
fn entangle(process: &dyn Process, own: &str, other: &str, rounds: usize) -> Checked {
    let (home, away) = (format!("/of-{own}/{own}"), format!("/of-{other}/{other}/{own}"));
    for _ in 0..2 * rounds {
        match process.rename(home.as_bytes(), away.as_bytes()) {
            Ok(()) => done("back", process.rename(away.as_bytes(), home.as_bytes()))?,
            // The other one is in ours, or was on its way there.
            refused => ensure(matches!(refused, Err(Error::Invalid | Error::NoEntry)), || format!("in: {refused:?}"))?,
        }
    }
    Ok(())
}

/// Looks at what a shared process stands in, removed or not.
fn leave(process: &dyn Process, running: &dyn Fn() -> bool) -> Checked {
    while running() {
        let at = done("stat .", process.stat(b"."))?;
        ensure(at.is_directory, || format!("the working directory is {at:?}"))?;
        let above = done("stat ..", process.stat(b".."))?;
        ensure(above.is_directory, || format!("its parent is {above:?}"))?;
        let missing = process.stat(b"none");
        ensure(missing == Err(Error::NoEntry), || format!("a name that was never there is {missing:?}"))?;
    }
    Ok(())
}

/// Looks at what stays and at what moves.
fn look(process: &dyn Process, running: &dyn Fn() -> bool, moving: &Handle) -> Checked {
    while running() {
        for name in KEPT {
            let path = format!("/keep/./a/../a/b/{name}");
            let found = done(&path, process.stat(path.as_bytes()))?;
            ensure(found.links == 1 && !found.is_directory, || format!("{path} is {found:?}"))?;
            let handle = done(&path, process.open(path.as_bytes()))?;
            done("read", process.read(&handle, 1))?;
            process.close(handle);
        }
        let missing = process.stat(b"/keep/a/b/none");
        ensure(missing == Err(Error::NoEntry), || format!("a name that was never there is {missing:?}"))?;
        let through = process.stat(b"/keep/a/b/f/x");
        ensure(through == Err(Error::NotDirectory), || format!("through a file: {through:?}"))?;
        done("what is replaced", process.stat(b"/swap/t"))?;
        let mut names = Vec::new();
        done("list", process.list(b"/keep/a/b", &mut |name| names.push(name.to_vec())))?;
        names.sort();
        ensure(names == KEPT.map(|name| name.as_bytes().to_vec()), || format!("/keep/a/b has {names:?}"))?;
        let mut names = Vec::new();
        done("list", process.list(b"/common", &mut |name| names.push(name.to_vec())))?;
        let all = names.len();
        names.sort();
        names.dedup();
        let are_whole = names.iter().all(|name| name.contains(&b'-'));
        ensure(names.len() == all && are_whole, || format!("/common has {names:?}"))?;
        done("status", process.status(b"/keep"))?;
        done("write", process.write(moving, 1))?;
    }
    Ok(())
}

/// How many threads there are, how many of them end by themselves (those come first), and how many processes they share.
pub(crate) const THREADS: usize = 10;
pub(crate) const CHANGERS: usize = 7;
pub(crate) const PROCESSES: usize = 3;

/// What thread `index` does. The changers go through `rounds`; the others go on as long as `running` returns true.
pub(crate) fn play(
    index: usize,
    processes: &[Box<dyn Process + '_>],
    moving: &Handle,
    rounds: usize,
    running: &dyn Fn() -> bool,
) -> Checked {
    let [first, second, wanderer] = processes else { return Err("three processes are needed".into()) };
    match index {
        0 => own_names(&**first, 0, rounds),
        1 => own_names(&**second, 1, rounds),
        2 => move_directory(&**second, rounds),
        3 => replace(&**first, rounds),
        4 => enter(&**wanderer, rounds),
        5 => entangle(&**first, "a", "b", rounds),
        6 => entangle(&**second, "b", "a", rounds),
        7 => leave(&**wanderer, running),
        8 => look(&**first, running, moving),
        _ => climb(&**second, running, moving),
    }
}

/// The tree that the threads need, and the file that moves.
pub(crate) fn prepare(process: &dyn Process) -> Result<Handle, String> {
    set_up(process)?;
    for dir in ["/right/only", "/of-a", "/of-b", "/of-a/a", "/of-b/b"] {
        done("mkdir", process.make_directory(dir.as_bytes()))?;
    }
    done("open", process.open(b"/left/m/deep/f"))
}
