//! Changes by other programs: the thread that reads `inotify(7)` events and invalidates caches.
//!
//! # What it is
//! A directory is watched from before the first lookup, creation or listing in it until the VFS evicts its inode. A
//! thread reads the events and invalidates the names and inodes that they concern ([`vfs::Invalidator`]). So what is
//! cached of a watched directory stays valid until the host reports a change; the invalidation follows a moment later.
//!
//! # What it is not
//! Immediate: between a change and its event the caches still show the old state. Changes by other machines (NFS) and
//! through memory maps (`mmap(2)`) cause no events. A change of a file is reported only in the directory of the name by
//! which it was made, so a file with several names is cached for the time of [`crate::Revalidate::Ttl`] instead.
//! `fanotify(7)` would need no watch for each directory, but privilege, and it reports on the whole file system.
//!
//! # Limits
//! At most [`MAX_WATCHES`](crate::watches::MAX_WATCHES) directories, and at most `fs.inotify.max_user_watches`. Once a
//! directory could not be watched, the thread invalidates everything at each interval of [`crate::Revalidate::Ttl`].
//! It also does so once when the queue of events has overflowed.
//!
//! # Own changes
//! This file system's own changes cause events, too. The thread skips an event if the VFS has the new state already: the
//! name leads to the node that the VFS was given last (remembered for [`RECENT`](crate::watches::RECENT) changed names),
//! and the file has the attributes that the VFS was given last, or is stale. To find out takes one `statx(2)`.
//!
//! # How it is locked
//! As [`crate::watches`]; the thread itself holds no lock.
//!
//! # Where it comes from
//! Own code.

use crate::identity::change_hash;
use crate::node::NameAt;
use crate::options::Revalidate;
use crate::shared::Shared;
use crate::system;
use crate::watches::Watches;
use core::mem::MaybeUninit;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Statx;
use rustix::fs::inotify::ReadFlags;
use rustix::io::Errno as HostErrno;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Instant;
use vfs::{Errno, Invalidator, S_IFDIR, S_IFMT};

/// Events after which a directory has other attributes than before.
const CHANGES_DIR: ReadFlags =
    ReadFlags::CREATE.union(ReadFlags::DELETE).union(ReadFlags::MOVED_FROM).union(ReadFlags::MOVED_TO);

/// How long events gather before they are read.
const GATHERING: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The longest interval.
const MAX_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Bytes of events in one read.
const PIECE: usize = 64 << 10;

/// Starts the thread, if directories are to be watched.
///
/// # Errors
/// Those of a thread that cannot be started.
pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<()> {
    if shared.watches.is_some() {
        let shared = shared.clone();
        std::thread::Builder::new().name("lightfoot-watch".into()).spawn(move || run(&shared))?;
    }
    Ok(())
}

/// The thread's work, until [`Watches::stop`].
fn run(shared: &Shared) {
    let Some(watches) = &shared.watches else { return };
    // With the other policies no answer depends on events (`Shared::valid`).
    let ttl = match shared.options.policy {
        Revalidate::Ttl(ttl) => ttl.clamp(Duration::from_millis(1), MAX_INTERVAL),
        _ => MAX_INTERVAL,
    };
    let interval = Timespec { tv_sec: ttl.as_secs() as i64, tv_nsec: ttl.subsec_nanos().into() };
    let mut refreshed = Instant::now();
    let mut buf = vec![MaybeUninit::<u8>::uninit(); PIECE];
    let mut events = Events::default();
    loop {
        let mut fds = [PollFd::new(&watches.inotify, PollFlags::IN), PollFd::new(&watches.stop, PollFlags::IN)];
        let timeout = if events.names.is_empty() { &interval } else { &GATHERING };
        match system::poll(&mut fds, timeout) {
            Ok(_) | Err(HostErrno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "poll: changes by other programs are no longer seen");
                return;
            }
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        if !fds[0].revents().is_empty() || !events.names.is_empty() {
            let mut stop = [PollFd::new(&watches.stop, PollFlags::IN)];
            if system::poll(&mut stop, &GATHERING) == Ok(1) {
                return;
            }
            read_events(watches, &mut buf, &mut events);
            // Before the file system is mounted, nothing of it is cached.
            events = shared.invalidator.get().map_or_else(Events::default, |invalidator| {
                invalidate(shared, watches, invalidator, core::mem::take(&mut events))
            });
        }
        if let Some(invalidator) = shared.invalidator.get()
            && watches.is_partial()
            && refreshed.elapsed() >= ttl
        {
            refreshed = Instant::now();
            watches.note_invalidation();
            invalidator.all();
        }
    }
}

/// Events, each change once.
#[derive(Default)]
struct Events {
    /// Directories that changed themselves.
    dirs: BTreeSet<u64>,
    /// Names, and whether they appeared or disappeared.
    names: BTreeMap<(u64, Box<[u8]>), bool>,
    /// The queue has overflowed.
    are_lost: bool,
}

/// Reads the events that the host has, and adds them to those that wait.
fn read_events(watches: &Watches, buf: &mut [MaybeUninit<u8>], events: &mut Events) {
    system::read_events(&watches.inotify, buf, |event| {
        let mask = event.events();
        if mask.contains(ReadFlags::QUEUE_OVERFLOW) {
            events.are_lost = true;
        } else if mask.contains(ReadFlags::IGNORED) {
            watches.forget(event.wd());
        } else if let Some(dir) = watches.dir(event.wd()) {
            match event.file_name() {
                None => drop(events.dirs.insert(dir)),
                Some(name) => {
                    let comes_or_goes = mask.intersects(CHANGES_DIR);
                    *events.names.entry((dir, name.to_bytes().into())).or_default() |= comes_or_goes;
                }
            }
        }
    });
}

/// Invalidates everything whose new state the VFS does not have. Returns the events of names that threads are changing.
fn invalidate(shared: &Shared, watches: &Watches, invalidator: &Invalidator, events: Events) -> Events {
    let mut waiting = Events::default();
    if events.are_lost {
        watches.note_invalidation();
        tracing::warn!("events of the host were lost: all caches are invalidated");
        invalidator.all();
        return waiting;
    }
    let mut inodes = events.dirs;
    for (key, comes_or_goes) in &events.names {
        let at = NameAt { dir: key.0, name: &key.1 };
        if watches.is_changing(at) {
            waiting.names.insert(key.clone(), *comes_or_goes);
            continue;
        }
        let stat = stat_in(shared, at);
        let node = stat.as_ref().ok().map(|stat| shared.identities.node(stat));
        let is_current = is_certain(&stat) && watches.was_reported(at, node);
        // The VFS caches what it created until it is notified, but not all files are watched.
        let is_watched = stat.as_ref().map_or(true, |stat| shared.is_watched(node.unwrap_or(0), stat));
        if *comes_or_goes && !(is_current && is_watched) {
            watches.note_invalidation();
            invalidator.entry(at.dir, at.name);
        }
        if *comes_or_goes && !is_current {
            inodes.insert(at.dir);
        }
        if let (Ok(stat), Some(node)) = (&stat, node)
            && (has_several_names(stat) || !has_current(shared, node, stat))
        {
            watches.note_invalidation();
            invalidator.inode(node);
        }
    }
    for dir in inodes {
        let record = shared.table.get(dir);
        if !record.is_some_and(|node| shared.stat(&node).is_ok_and(|stat| has_current(shared, dir, &stat))) {
            watches.note_invalidation();
            invalidator.inode(dir);
        }
    }
    waiting
}

/// Whether a file may have changed by another name, whose answer the VFS has not kept.
fn has_several_names(stat: &Statx) -> bool {
    stat.stx_nlink > 1 && u32::from(stat.stx_mode) & S_IFMT != S_IFDIR
}

/// Whether the host's answer is about the name: what it leads to, or that there is none.
fn is_certain(stat: &Result<Statx, Errno>) -> bool {
    matches!(stat, Ok(_) | Err(Errno::ENOENT))
}

/// The attributes of a name now.
fn stat_in(shared: &Shared, at: NameAt<'_>) -> Result<Statx, Errno> {
    let dir = shared.table.get(at.dir).ok_or(Errno::ESTALE)?;
    let fd = shared.path_fd(&dir)?;
    shared.stat_at(fd.as_fd(), at.name)
}

/// Whether the VFS has these attributes of a file, or will request them. (A file without a record is not cached.)
fn has_current(shared: &Shared, node: u64, stat: &Statx) -> bool {
    // The table, this function and the inode. If there is a second inode, it is unknown which one has which attributes.
    shared.table.get(node).is_none_or(|node| Arc::strong_count(&node) <= 3 && node.is_current(change_hash(stat)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostFs;
    use crate::options::HostOptions;
    use crate::shared::Shared;
    use std::fs;
    use vfs::{Base, Context, OpenFlags, PathAt, RenameFlags, Vfs};

    /// A watched directory and its tree, without the thread: the test reads the events when it wants to.
    struct Watched {
        source: tempfile::TempDir,
        shared: Arc<Shared>,
        context: Context,
        _vfs: Vfs,
    }

    impl Watched {
        fn new() -> Self {
            let source = tempfile::tempdir().unwrap();
            let policy = Revalidate::Ttl(Duration::from_secs(100_000));
            let options = HostOptions { policy, watch: true, ..HostOptions::default() };
            let shared = Arc::new(Shared::new(source.path(), &options).unwrap());
            let vfs = Vfs::new(HostFs { shared: shared.clone() });
            Self { source, shared, context: vfs.context(), _vfs: vfs }
        }

        /// Does what the thread does with all events so far; returns the number of invalidations since the beginning.
        fn turn(&self) -> u64 {
            let watches = self.shared.watches.as_ref().unwrap();
            let mut buf = vec![MaybeUninit::<u8>::uninit(); PIECE];
            loop {
                let mut events = Events::default();
                read_events(watches, &mut buf, &mut events);
                if events.dirs.is_empty() && events.names.is_empty() {
                    return watches.invalidations();
                }
                invalidate(&self.shared, watches, self.shared.invalidator.get().unwrap(), events);
            }
        }

        fn write(&self, path: &str) {
            let flags = OpenFlags::RDWR.union(OpenFlags::CREAT).union(OpenFlags::TRUNC);
            let file = self.context.open(Base::CWD, path.as_bytes(), flags, 0o644).unwrap();
            file.write_at(0, b"text").unwrap();
        }

        fn size(&self, path: &str) -> u64 {
            self.context.attr(Base::CWD, path.as_bytes(), false).unwrap().size
        }
    }

    #[test]
    fn own_changes_cause_no_invalidations() {
        let watched = Watched::new();
        let at = &watched.context;
        fs::write(watched.source.path().join("last"), b"old").unwrap();
        assert_eq!(watched.size("/last"), 3);
        for number in 0..300 {
            let (file, other, dir) = (format!("/f{number}"), format!("/g{number}"), format!("/d{number}"));
            watched.write(&file);
            let (old, new) = (PathAt::cwd(file.as_bytes()), PathAt::cwd(other.as_bytes()));
            at.rename(old, new, RenameFlags::default()).unwrap();
            at.mkdir(Base::CWD, dir.as_bytes(), 0o755).unwrap();
            watched.write(&format!("{dir}/h"));
            assert_eq!(watched.size(&other), 4);
            if number % 2 == 0 {
                at.unlink(Base::CWD, other.as_bytes()).unwrap();
            }
            // Sometimes after each change, sometimes after several.
            if number % 3 == 0 {
                assert_eq!(watched.turn(), 0, "round {number}");
            }
        }
        assert_eq!(watched.turn(), 0);
        fs::write(watched.source.path().join("last"), b"longer").unwrap();
        assert_eq!(watched.size("/last"), 3, "the events of other programs' changes are not read yet");
        assert!(watched.turn() > 0);
        assert_eq!(watched.size("/last"), 6);
    }

    #[test]
    fn a_name_that_goes_is_counted_in_the_file_s_other_names() {
        let watched = Watched::new();
        let host = |path: &str| watched.source.path().join(path);
        let links = |path: &str| watched.context.attr(Base::CWD, path.as_bytes(), false).unwrap().nlink;
        fs::write(host("file"), b"text").unwrap();
        fs::create_dir(host("dir")).unwrap();
        assert_eq!(links("/file"), 1);
        // No event: the directory is not watched yet.
        fs::hard_link(host("file"), host("dir/other")).unwrap();
        assert_eq!(links("/dir/other"), 2);
        fs::remove_file(host("dir/other")).unwrap();
        watched.turn();
        assert_eq!(links("/file"), 1);
    }
}
