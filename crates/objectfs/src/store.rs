//! Requests to the store: each blocks its caller until the answer, an error after all retries, or the caller's deadline.
//!
//! # What it is
//! OpenDAL's operator below its layer for retries, and the threads that it runs on. Every request is counted once, whatever its
//! retries and pages are. After [`Ending::begin`] no request takes longer than one try may take, and requests that change nothing
//! have that time together, so that a store which does not answer does not keep the process alive.

use crate::bucket::Transport;
use crate::buffer::Allowance;
use crate::calls::{Calls, Counted};
use crate::deadline::Deadline;
use crate::errors::errno_of;
use crate::kept::Kept;
use crate::key::{Key, LINK, is_name};
use crate::limits::{MAX_DELAY, MAX_KEY, MIN_DELAY, SLOWEST};
use crate::meta::{Found, Meta};
use crate::options::ObjectOptions;
use crate::waiting::block_on;
use crate::window::{Answer, Reading};
use core::fmt;
use core::future::Future;
use core::ops::Range;
use core::pin::pin;
use core::time::Duration;
use futures::future::{Either, select};
use futures::{FutureExt, StreamExt};
use opendal::layers::{RetryEvent, RetryLayer};
use opendal::options::WriteOptions;
use opendal::{Capability, EntryMode, Error, ErrorKind, Lister, Metadata, Operator};
use prim::seed::random_u64;
use std::panic::AssertUnwindSafe;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::Instant;
use vfs::{Errno, Foreign};

/// The user metadata of an object that has the random value of the call which created the object.
const CREATED: &str = "lightfoot-created";

/// How many requests for attributes are made at a time.
pub(crate) const STATS: usize = 32;

/// The beginning of a listing of a directory.
#[derive(Clone, Copy, Default)]
pub(crate) struct Below {
    pub(crate) has_marker: bool,
    /// Whether anything but the marker is below the directory.
    pub(crate) has_names: bool,
}

/// A name in a listing.
pub(crate) struct ListedName {
    pub(crate) name: Box<str>,
    pub(crate) found: Found,
}

/// All names of a directory.
pub(crate) struct Names {
    pub(crate) names: Vec<ListedName>,
    /// Whether the directory has a marker.
    pub(crate) has_marker: bool,
    /// Whether the listing has all names of the directory.
    pub(crate) is_complete: bool,
}

/// See the [module documentation](self).
pub(crate) struct Store {
    pub(crate) operator: Operator,
    pub(crate) can: Capability,
    /// Whether objects keep the attributes of files in their metadata.
    pub(crate) keeps: bool,
    /// Whether some objects stand for symbolic links.
    hinto_links: bool,
    pub(crate) runtime: Runtime,
    /// The most bytes of a file: [`ObjectOptions::max_file`].
    pub(crate) max_file: u64,
    pub(crate) allowance: Allowance,
    timeout: Duration,
    /// How long all tries of a request without contents may take.
    patience: Duration,
    ending: watch::Sender<Option<Instant>>,
    pub(crate) calls: Calls,
    /// Of a bucket.
    pub(crate) transport: Option<Transport>,
}

/// Ends a file system whose process wants to end, from another thread.
#[derive(Clone, Debug)]
pub struct Ending(watch::Sender<Option<Instant>>);

impl Ending {
    /// Lets each request to the store take at most [`ObjectOptions::timeout`], with all its tries. A
    /// caller that waits longer gets `ETIMEDOUT`.
    pub fn begin(&self) {
        self.0.send_modify(|since| _ = since.get_or_insert_with(Instant::now));
    }
}

impl Store {
    pub(crate) fn new(operator: Operator, options: &ObjectOptions, calls: Calls) -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(4).max_blocking_threads(16).enable_all().build()?;
        let (counts, can) = (calls.clone(), operator.info().capability());
        let note = move |event: RetryEvent<'_>| {
            counts.count(Counted::Retry);
            tracing::debug!(error = %Foreign::text(event.err), "a request to the store is repeated");
        };
        let retry = RetryLayer::new().with_max_times(options.retries).with_jitter().with_notify(note);
        let retry = retry.with_min_delay(MIN_DELAY).with_max_delay(MAX_DELAY);
        let (operator, ending) = (operator.layer(retry), watch::Sender::new(None));
        let (max_file, timeout) = (options.max_file, options.timeout);
        let tries = u32::try_from(options.retries).unwrap_or(u32::MAX).saturating_add(1);
        let patience = timeout.saturating_add(MAX_DELAY).saturating_mul(tries);
        let allowance = Allowance::new(options.buffer_bytes.map_or_else(half_of_free, Ok)?);
        Ok(Self {
            operator,
            can,
            keeps: false,
            hinto_links: options.symlinks,
            runtime,
            max_file,
            allowance,
            timeout,
            patience,
            ending,
            calls,
            transport: None,
        })
    }

    pub(crate) fn ending(&self) -> Ending {
        Ending(self.ending.clone())
    }

    /// Waits for `call`, as long as its caller waits. After the end has begun, `call` has the time of one
    /// try. With `is_read`, all such calls together have that time.
    fn wait<T>(&self, until: Deadline, is_read: bool, call: impl Future<Output = T>) -> Result<T, Errno> {
        let began = Instant::now();
        let last = |since: Instant| if is_read { since } else { since.max(began) } + self.timeout;
        if self.ending.borrow().is_some_and(|since| last(since) <= began) {
            return Err(Errno::ETIMEDOUT);
        }
        let ended = async {
            let mut ending = self.ending.subscribe();
            // The sender lives as long as `self`.
            let since = ending.wait_for(Option::is_some).await.ok().and_then(|since| *since);
            tokio::time::sleep_until(last(since.unwrap_or(began))).await;
            Errno::ETIMEDOUT
        };
        block_on(&self.runtime, async {
            let left = async { select(pin!(until.leave()), pin!(ended)).await.factor_first().0 };
            // OpenDAL must not end this process, whatever a store sends.
            let call = AssertUnwindSafe(call).catch_unwind();
            match select(pin!(call), pin!(left)).await {
                Either::Left((done, _)) => done.map_err(|_| Errno::EIO),
                Either::Right((errno, _)) => Err(errno),
            }
        })
    }

    /// Returns whether the store takes a key of this length.
    pub(crate) fn takes(&self, key: &Key) -> bool {
        self.operator.info().scheme() != "s3" || key.in_bucket(&self.operator).len() <= MAX_KEY
    }

    pub(crate) fn ask<T>(&self, until: Deadline, call: impl Future<Output = opendal::Result<T>>) -> Result<T, Errno> {
        self.wait(until, false, call)?.map_err(|error| note(&self.calls, &error))
    }

    /// Makes a request that changes nothing.
    fn look<T>(&self, until: Deadline, call: impl Future<Output = opendal::Result<T>>) -> Result<T, Errno> {
        self.wait(until, true, call)?.map_err(|error| note(&self.calls, &error))
    }

    /// Lists some names. If this fails, returns the store's error in its own words.
    pub(crate) fn check(&self) -> opendal::Result<()> {
        self.calls.count(Counted::List);
        let first = async { self.operator.lister_with("/").limit(1).await?.next().await.transpose().map(drop) };
        let late = |errno| Error::new(ErrorKind::Unexpected, format!("the store did not answer in time ({errno})"));
        self.wait(Deadline::within(self.timeout), true, first).map_err(late)?
    }

    /// Returns the object `key`, or `None` if there is none.
    pub(crate) fn stat(&self, until: Deadline, key: &Key) -> Result<Option<Found>, Errno> {
        self.stat_many(until, vec![key.clone()])?.pop().unwrap_or(Ok(None))
    }

    /// Returns the objects with these keys, as [`Store::stat`], some at a time. The key of a directory is
    /// the one of its marker: the directory need not have one.
    ///
    /// # Errors
    /// The caller left, before all answers arrived.
    pub(crate) fn stat_many(
        &self,
        until: Deadline,
        keys: Vec<Key>,
    ) -> Result<Vec<Result<Option<Found>, Errno>>, Errno> {
        self.calls.add(Counted::Stat, keys.len() as u64);
        let all = futures::stream::iter(keys).map(|key| async move {
            let found = if key.is_dir() { self.find_marker(&key).await } else { self.find_object(&key).await };
            match found.map_err(|error| note(&self.calls, &error)) {
                Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
                found => found.map(Some),
            }
        });
        self.wait(until, true, all.buffered(STATS).collect())
    }

    async fn find_object(&self, key: &Key) -> opendal::Result<Found> {
        let metadata = self.operator.stat(key.path()).await?;
        let kept = if self.keeps { Kept::of(&metadata) } else { Kept::default() };
        let meta = Meta { kept: Some(kept), ..meta_of(&metadata, metadata.content_length()) };
        Ok(if metadata.is_dir() { Found::Dir(None) } else { Found::File(Some(meta)) })
    }

    /// Returns what is below the prefix `dir`, as far as two names show that.
    pub(crate) fn below(&self, until: Deadline, dir: &Key) -> Result<Below, Errno> {
        self.calls.count(Counted::List);
        let first = async {
            let mut list = self.operator.lister_with(dir.path()).limit(2).await?;
            let mut below = Below::default();
            // The marker is on the first page, but OpenDAL returns prefixes before objects.
            for _ in 0..2 {
                let Some(entry) = list.next().await else { break };
                let is_marker = is_same(entry?.path(), dir.path());
                (below.has_marker, below.has_names) = (below.has_marker | is_marker, below.has_names | !is_marker);
            }
            Ok(below)
        };
        match self.look(until, first) {
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(Below::default()),
            below => below,
        }
    }

    /// Returns at most about `limit` names in the directory `dir`.
    pub(crate) fn list(&self, until: Deadline, dir: &Key, limit: usize) -> Result<Names, Errno> {
        self.calls.count(Counted::List);
        let all = async {
            let mut list = self.operator.lister(dir.path()).await?;
            self.gather(&mut list, dir, limit).await
        };
        match self.look(until, all) {
            Err(Errno::ENOENT) => Ok(Names { names: Vec::new(), has_marker: false, is_complete: true }),
            names => names,
        }
    }

    /// Returns whether ranges can be requested of one version of an object only.
    pub(crate) fn checks_versions(&self, meta: &Meta) -> bool {
        self.can.read_with_if_match && meta.has_etag
    }

    /// Starts to read a range of the object `key`, in the background.
    pub(crate) fn start(&self, key: &Key, meta: &Meta, range: Range<u64>) -> Reading {
        self.calls.count(Counted::Read);
        let (operator, key, meta, calls) = (self.operator.clone(), key.clone(), meta.clone(), self.calls.clone());
        let is_checked = self.checks_versions(&meta);
        // OpenDAL begins to count its tries anew with each byte that has arrived.
        let longest = self.patience.saturating_add(Duration::from_secs((range.end - range.start) / SLOWEST));
        let late = calls.clone();
        let all = async move {
            let mut read = operator.read_with(key.path()).range(range.clone());
            if is_checked {
                read = read.if_match(&meta.tag);
            }
            let read = match read.await {
                Ok(bytes) if bytes.len() as u64 == range.end - range.start => return Ok(Some(bytes)),
                // OpenDAL reports a range that is not all there as such an error, too.
                Err(error) if is_checked || error.kind() != ErrorKind::Unexpected => Err(error),
                short => match operator.stat(key.path()).await {
                    Ok(found) if found.content_length() == meta.size => {
                        short.and_then(|_| Err(Error::new(ErrorKind::Unexpected, "the store sent too few bytes")))
                    }
                    Ok(_) => return Ok(None),
                    Err(error) => Err(error),
                },
            };
            match read {
                Err(error) if matches!(error.kind(), ErrorKind::ConditionNotMatch | ErrorKind::RangeNotSatisfied) => {
                    Ok(None)
                }
                read => read.map(Some).map_err(|error| note(&calls, &error)),
            }
        };
        let reading = self.runtime.spawn(async move {
            tokio::time::timeout(longest, all).await.unwrap_or_else(|_| {
                late.count(Counted::Failure);
                Err(Errno::ETIMEDOUT)
            })
        });
        let abort = reading.abort_handle();
        let answer = reading.map(|ended| ended.unwrap_or(Err(Errno::EIO))).boxed().shared();
        Reading { answer, abort }
    }

    /// Waits for the answer to [`Store::start`].
    pub(crate) fn finish(&self, until: Deadline, reading: &Reading) -> Answer {
        self.wait(until, true, reading.answer.clone())?
    }

    /// See [`ObjectFs::abort_old_uploads`](crate::ObjectFs::abort_old_uploads).
    pub(crate) fn abort_old(&self) {
        if let Some(transport) = self.transport.clone() {
            let prefix = Key::default().in_bucket(&self.operator);
            self.runtime.spawn(async move {
                if let Err(error) = transport.abort_old(&prefix).await {
                    tracing::debug!(error = %Foreign::text(error), "cannot look for unfinished uploads");
                }
            });
        }
    }

    /// Creates the object `key`. Fails with `EEXIST` if there is one, where the store checks that.
    pub(crate) fn create(&self, until: Deadline, key: &Key, contents: &[u8], kept: Kept) -> Result<Meta, Errno> {
        self.calls.count(Counted::Write);
        // A repeated request finds the object that the first one made, if the first reply was lost.
        let mark = format!("{:016x}{:016x}", random_u64(), random_u64());
        let kept = self.storable(kept);
        let marks = || kept.pairs(false).into_iter().chain([(CREATED.to_owned(), mark.clone())]).collect();
        let user_metadata = self.can.write_with_user_metadata.then(marks);
        let if_not_exists = self.can.write_with_if_not_exists;
        let options = WriteOptions { if_not_exists, user_metadata, ..WriteOptions::default() };
        let size = contents.len() as u64;
        match self.ask(until, self.operator.write_options(key.path(), contents.to_vec(), options)) {
            Ok(written) => Ok(written_meta(&written, size, kept)),
            Err(Errno::EEXIST) if if_not_exists => {
                let found = self.ask(until, self.operator.stat(key.path()))?;
                let is_ours = found.user_metadata().and_then(|of| of.get(CREATED)) == Some(&mark);
                let meta = || Meta { kept: Some(kept), ..meta_of(&found, found.content_length()) };
                if is_ours { Ok(meta()) } else { Err(Errno::EEXIST) }
            }
            Err(errno) => Err(errno),
        }
    }

    /// Returns the attributes as far as the metadata of objects keep them.
    pub(crate) fn storable(&self, kept: Kept) -> Kept {
        if self.keeps { kept } else { Kept::default() }
    }

    /// Removes the object, or the marker, `key`.
    pub(crate) fn delete(&self, until: Deadline, key: &Key) -> Result<(), Errno> {
        self.calls.count(Counted::Delete);
        self.ask(until, self.operator.delete(key.path()))
    }

    /// Returns the name of the symbolic link for which an object of this name stands.
    pub(crate) fn link_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        name.strip_suffix(LINK).filter(|_| self.hinto_links)
    }

    /// Returns the symbolic link `path` in `dir`.
    pub(crate) fn find_link(&self, until: Deadline, dir: &Key, path: &str) -> Result<Option<Found>, Errno> {
        let key = dir.link(path).filter(|_| self.hinto_links);
        let found = key.map_or(Ok(None), |key| self.stat(until, &key))?;
        Ok(found.map(Found::into_link))
    }

    /// Returns the key of an object that the store listed. `None`: no request can name it.
    pub(crate) fn key(&self, path: String) -> Option<Key> {
        let key = Key::new(path);
        if key.is_none() && self.calls.count(Counted::Hidden) == 0 {
            tracing::warn!(
                "objects whose names begin or end with white space, or whose keys are not paths, cannot be requested and are not shown"
            );
        }
        key
    }

    /// Returns the names of a listing of the prefix `dir`. Names that no file can have, or no request
    /// can name, are left out.
    async fn gather(&self, list: &mut Lister, dir: &Key, limit: usize) -> opendal::Result<Names> {
        let mut names = Names { names: Vec::new(), has_marker: false, is_complete: true };
        while let Some(entry) = list.next().await {
            let (path, metadata) = entry?.into_parts();
            if is_same(&path, dir.path()) {
                names.has_marker = true;
                continue;
            }
            if names.names.len() >= limit {
                names.is_complete = false;
                break;
            }
            let Some(key) = self.key(path) else { continue };
            let name = key.below(dir).unwrap_or_default().trim_end_matches('/');
            let found = found(&metadata);
            let (name, found) = match self.link_name(name) {
                Some(link) if !found.is_dir() => (link, found.into_link()),
                _ => (name, found),
            };
            if is_name(name) {
                names.names.push(ListedName { name: name.into(), found });
            }
        }
        Ok(names)
    }
}

/// Counts and logs an error. Returns its errno.
fn note(calls: &Calls, error: &Error) -> Errno {
    if error.kind() != ErrorKind::NotFound {
        calls.count(Counted::Failure);
        tracing::debug!(error = %Foreign::text(error), "the store reports an error");
    }
    errno_of(error)
}

/// Returns half of the free bytes in the directory for temporary files.
fn half_of_free() -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(std::env::temp_dir())?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize) / 2)
}

/// Returns whether two paths are the same but for a slash at the end.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

fn found(metadata: &Metadata) -> Found {
    match metadata.mode() {
        EntryMode::DIR => Found::Dir(None),
        _ => Found::File(metadata.last_modified().is_some().then(|| meta_of(metadata, metadata.content_length()))),
    }
}

fn meta_of(metadata: &Metadata, size: u64) -> Meta {
    let modified = metadata.last_modified().map(std::time::SystemTime::from);
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    // Listings have milliseconds, attributes of one object seconds: a file must have one time.
    let modified = i64::try_from(since.as_secs()).unwrap_or(0).saturating_mul(1_000_000_000);
    let etag = metadata.etag();
    let tag = etag.map_or_else(|| format!("{} {}", since.as_nanos(), size), str::to_owned);
    Meta { size, modified, tag: tag.into(), has_etag: etag.is_some(), kept: None }
}

/// Returns the time as a store reports it: in nanoseconds since the epoch, in whole seconds.
pub(crate) fn this_second() -> i64 {
    let now = prim::clock::now_ns();
    now - now.rem_euclid(1_000_000_000)
}

/// Returns the attributes of an object that was just written. The store returns at most the tag of
/// the object, not its time.
pub(crate) fn written_meta(metadata: &Metadata, size: u64, kept: Kept) -> Meta {
    Meta { modified: this_second(), kept: Some(kept), ..meta_of(metadata, size) }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("operator", &self.operator.info())
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}
