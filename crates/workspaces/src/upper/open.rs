//! The start with a directory: its format, its lock, and the forks that it has.

use super::event::{Event, Name};
use super::image::{numbers, paths, sync_dir, take, write as write_image};
use super::log::{Log, Rest, read};
use super::replay::{Replay, SavedFork};
use super::slots::Slots;
use super::{Upper, Writing, errno, open_file};
use crate::lower::Lower;
use crate::page::Pages;
use crate::state::{Parent, Shared, State, used_by};
use crate::usage::Usage;
use parking_lot::Mutex;
use prim::atomic::Ordering::Relaxed;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, TryLockError, read_dir, read_to_string, rename};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;
use sync::pages::PAGE;
use vfs::{Errno, Foreign};

/// How often, and how many times, an opening looks for the end of another process: umount(8) does not wait for it.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: usize = 100;

const VERSION: &str = "lightfoot-upper 3";

/// Why a directory cannot keep the forks of a base.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UpperError {
    /// Another process has it open.
    #[error("{}: another mount keeps its forks here (unmount it, or use another directory)", Foreign::of(.0))]
    Used(PathBuf),
    /// It has other files, or forks in a newer format.
    #[error("{}: has other files, or forks of a newer version (use an empty directory)", Foreign::of(.0))]
    NotUpper(PathBuf),
    /// It has the forks of another base.
    #[error(
        "{}: has the forks of another directory (mount that one, or use an empty directory)",
        Foreign::of(.0)
    )]
    OtherBase(PathBuf),
    /// This file is damaged.
    #[error(
        "{}: the forks cannot be read (restore the directory from a copy, or use an empty one)",
        Foreign::of(.0)
    )]
    Damaged(PathBuf),
    /// It cannot be read or written, or the base cannot.
    #[error("{}: {errno} (use a directory that you may write)", Foreign::of(.0), errno = .1)]
    Failed(PathBuf, Errno),
}

/// A directory that is being opened.
struct Opening<'o> {
    dir: &'o Path,
    lower: Lower,
}

/// Opens a directory, which may be missing or empty. Returns the trunk, and the forks.
///
/// # Errors
/// See [`UpperError`].
pub(crate) fn open(dir: &Path, lower: Lower) -> Result<(State, Vec<Arc<State>>), UpperError> {
    let failed = |errno| UpperError::Failed(dir.into(), errno);
    let io = |error| failed(errno(error));
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(io)?;
    let opening = Opening { dir, lower };
    let lock = opening.lock()?;
    let boot = read_to_string("/proc/sys/kernel/random/boot_id").map_err(io)?;
    let format = opening.format().map_err(failed)?;
    let is_same_boot = opening.check(&format, boot.trim())?;
    let pages = open_file(&dir.join("pages"), false).map_err(failed)?;
    let written = pages.metadata().map_err(io)?.len().div_ceil(PAGE as u64);
    let slots = Slots::new(pages);
    let mut replay = Replay::new(&opening.lower, &slots);
    let (number, logs) = opening.read(&mut replay, is_same_boot, written)?;
    let unused = replay.end();
    let Replay { next, forks, .. } = replay;
    let log = Log::create(&paths(dir, number)[1]).map_err(failed)?;
    let log = Mutex::new(Writing { log, number, before: 0, marked: 0, unmarked: logs });
    let (pause, marking, numbers) = Default::default();
    let upper = Upper { dir: dir.into(), slots: slots.clone(), pause, marking, log, numbers, _lock: lock };
    let shared = Arc::new(Shared::new(opening.lower, Pages::Disk(slots.clone()), Some(upper), next));
    let trunk = State::trunk(shared.clone()).map_err(failed)?;
    let forks = restore(&shared, forks).map_err(failed)?;
    // On a full disk the older image and logs stay.
    let marked = shared.upper.as_ref().map_or(Ok(()), |upper| upper.mark_up_to(u64::MAX));
    match write_image(dir, number, &shared, &take(&shared)) {
        Err(Errno::ENOSPC) => marked,
        written => written,
    }
    .map_err(failed)?;
    slots.end_mark(unused, true);
    let format = format!("{format}\nboot {}\n", boot.trim());
    let new = dir.join("format.new");
    let file = open_file(&new, true).map_err(failed)?;
    let written = file.write_all_at(format.as_bytes(), 0).and_then(|()| file.sync_all());
    let named = written.and_then(|()| rename(&new, dir.join("format")));
    named.map_err(errno).and_then(|()| sync_dir(dir)).map_err(failed)?;
    Ok((trunk, forks))
}

impl Opening<'_> {
    fn failed(&self, errno: Errno) -> UpperError {
        UpperError::Failed(self.dir.into(), errno)
    }

    fn lock(&self) -> Result<File, UpperError> {
        let lock = open_file(&self.dir.join("lock"), false).map_err(|errno| self.failed(errno))?;
        for _ in 0..LOOKS {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
                Err(TryLockError::Error(error)) => return Err(self.failed(errno(error))),
            }
        }
        Err(UpperError::Used(self.dir.into()))
    }

    /// Returns the format of this version, for this base.
    fn format(&self) -> Result<String, Errno> {
        let root = &self.lower.root;
        Ok(format!("{VERSION}\nbase {} {}", root.attr()?.ino, root.birth()?.unwrap_or(0)))
    }

    /// Returns whether the machine has run since the directory was last open.
    fn check(&self, format: &str, boot: &str) -> Result<bool, UpperError> {
        let Ok(found) = read_to_string(self.dir.join("format")) else {
            // An earlier start may have been cut off.
            let is_ours = |name: &std::ffi::OsStr| {
                ["lock", "format.new", "pages", "image.new", "image-1", "log-1"].iter().any(|our| name == *our)
            };
            let mut names = read_dir(self.dir).map_err(|error| self.failed(errno(error)))?.flatten();
            return if names.all(|entry| is_ours(&entry.file_name())) {
                Ok(true)
            } else {
                Err(UpperError::NotUpper(self.dir.into()))
            };
        };
        if found.lines().next() != Some(VERSION) {
            return Err(UpperError::NotUpper(self.dir.into()));
        }
        let Some(rest) = found.strip_prefix(format) else { return Err(UpperError::OtherBase(self.dir.into())) };
        Ok(rest.trim() == format!("boot {boot}"))
    }

    /// Reads the last image, and the logs since. Returns the number of the next, and these logs.
    fn read(
        &self,
        replay: &mut Replay<'_>,
        is_same_boot: bool,
        slots: u64,
    ) -> Result<(u64, Vec<Arc<File>>), UpperError> {
        let failed = |errno| self.failed(errno);
        let mut events = Vec::new();
        let image = numbers(self.dir, "image-").map_err(failed)?.into_iter().max();
        if let Some(number) = image {
            let path = paths(self.dir, number)[0].clone();
            let (batches, rest) = read(&path).map_err(failed)?;
            let is_complete = batches.last().is_some_and(|batch| matches!(batch.events[..], [Event::Mark { .. }]));
            if rest != Rest::Nothing || !is_complete {
                return Err(UpperError::Damaged(path));
            }
            events.extend(batches.into_iter().flat_map(|batch| batch.events));
        }
        let mut logs = numbers(self.dir, "log-").map_err(failed)?;
        logs.retain(|number| image.is_some_and(|image| *number >= image));
        logs.sort_unstable();
        let (mut read_logs, mut rests) = (BTreeMap::new(), Vec::new());
        for number in &logs {
            let (batches, rest) = read(&paths(self.dir, *number)[1]).map_err(failed)?;
            read_logs.insert(*number, batches);
            rests.push((*number, rest));
        }
        let last_mark = read_logs.iter().rev().find_map(|(number, batches)| {
            let mark = |event: &Event| if let Event::Mark { upto } = event { Some((*number, *upto)) } else { None };
            batches.iter().rev().flat_map(|batch| &batch.events).find_map(mark)
        });
        let last = if is_same_boot { (u64::MAX, u64::MAX) } else { last_mark.unwrap_or((0, 0)) };
        let last_log = if is_same_boot { logs.last().copied().unwrap_or(0) } else { last.0 };
        let is_damage = |(number, rest): &(u64, Rest)| match rest {
            Rest::Wrong { marked } if *marked || is_same_boot => true,
            rest => *rest != Rest::Nothing && *number < last_log,
        };
        if let Some((number, _)) = rests.into_iter().find(is_damage) {
            return Err(UpperError::Damaged(paths(self.dir, number)[1].clone()));
        }
        let mut files = Vec::new();
        for (number, batches) in read_logs {
            let durable = batches.into_iter().filter(|batch| (number, batch.end) <= last).collect::<Vec<_>>();
            let file = open_file(&paths(self.dir, number)[1], false).map_err(failed)?;
            // The next start must not find the others.
            file.set_len(durable.last().map_or(0, |batch| batch.end)).map_err(|error| failed(errno(error)))?;
            files.push(Arc::new(file));
            events.extend(durable.into_iter().flat_map(|batch| batch.events));
        }
        if !events.iter().all(|event| event.is_sound(slots)) {
            return Err(UpperError::Damaged(self.dir.into()));
        }
        replay.run(events);
        Ok((logs.last().copied().max(image).unwrap_or(0) + 1, files))
    }
}

/// Returns the forks of the directory as states.
fn restore(shared: &Arc<Shared>, forks: BTreeMap<u64, SavedFork>) -> Result<Vec<Arc<State>>, Errno> {
    let mut opened: Vec<Arc<State>> = Vec::new();
    for (id, fork) in forks.into_iter().filter(|(id, _)| *id > 0) {
        let parent = opened.iter().find(|state| state.id == fork.from).map(Arc::downgrade);
        let parent = if fork.from == 0 { Parent::Trunk } else { Parent::Fork(parent.unwrap_or_else(Weak::new)) };
        let usage = Usage::new(fork.limits, used_by(&fork.tree));
        let mut state = State::new(shared.clone(), fork.tree, usage, parent, (id, fork.from))?;
        let is_shown = fork.name.as_ref().is_none_or(|name| state.show(&name.dir).is_ok());
        let used = used_by(&fork.origin);
        *state.origin.lock() = (fork.origin, used);
        state.settled.store(fork.settled, Relaxed);
        *state.name.lock() = fork.name.map(|name| Name { is_lost: fork.is_lost || !is_shown, ..name });
        let state = Arc::new(state);
        shared.add(&state);
        opened.push(state);
    }
    Ok(opened)
}
