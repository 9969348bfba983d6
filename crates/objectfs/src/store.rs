//! Requests to the store: each blocks its caller until the answer, an error after all retries, or the caller's deadline.
//!
//! # What it is
//! OpenDAL's operator below its layer for retries, and the threads that it runs on. Every request is counted once, whatever its
//! retries and pages are. After [`Ending::begin`] no request takes longer than one try may take, so that a store which does not
//! answer does not keep the process alive.

#[cfg(feature = "s3")]
use crate::bucket::Transport;
use crate::buffer::{Allowance, Buffer as WriteBuffer, Piece};
use crate::calls::{Calls, Counted};
use crate::deadline::Deadline;
use crate::errors::errno_of;
use crate::key::{Key, is_name};
use crate::limits::{COPIED_PART, MAX_KEY, PART, copied_part};
use crate::meta::Meta;
use crate::options::ObjectOptions;
use crate::reader::copy;
use crate::window::{Answer, Reading};
use core::fmt;
use core::future::Future;
use core::ops::Range;
use core::pin::pin;
use core::time::Duration;
use futures::future::{Either, select};
use futures::{FutureExt, StreamExt};
use opendal::layers::{RetryEvent, RetryLayer};
use opendal::options::{ReadOptions, WriteOptions};
use opendal::{Buffer, Capability, EntryMode, Error, ErrorKind, Lister, Metadata, Operator, Writer};
use prim::seed::random_u64;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use vfs::Errno;

/// The user metadata of an object that has the random value of the call which created the object.
const CREATED: &str = "lightfoot-created";

/// How many requests are made at a time when a directory is copied.
const COPIES: usize = 16;

/// An object, or a prefix of some objects.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// An object. `None`: the store listed it without attributes.
    File(Option<Meta>),
    Dir,
}

impl Found {
    pub(crate) fn is_dir(&self) -> bool {
        matches!(self, Self::Dir)
    }
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
    operator: Operator,
    can: Capability,
    runtime: Runtime,
    /// The most bytes of a file: [`ObjectOptions::max_file`].
    max_file: u64,
    allowance: Allowance,
    timeout: Duration,
    ending: watch::Sender<Option<Instant>>,
    pub(crate) calls: Calls,
    /// Of a bucket.
    #[cfg(feature = "s3")]
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
        let runtime = Builder::new_multi_thread().worker_threads(2).max_blocking_threads(16).enable_all().build()?;
        let (counts, can) = (calls.clone(), operator.info().capability());
        let note = move |event: RetryEvent<'_>| {
            counts.count(Counted::Retry);
            tracing::debug!(error = %event.err, "a request to the store is repeated");
        };
        let retry = RetryLayer::new().with_max_times(options.retries).with_jitter().with_notify(note);
        let retry = retry.with_min_delay(Duration::from_millis(100)).with_max_delay(Duration::from_secs(2));
        let (operator, ending) = (operator.layer(retry), watch::Sender::new(None));
        let (max_file, timeout) = (options.max_file, options.timeout);
        let allowance = Allowance::new(options.buffer_bytes.map_or_else(half_of_free, Ok)?);
        Ok(Self {
            operator,
            can,
            runtime,
            max_file,
            allowance,
            timeout,
            ending,
            calls,
            #[cfg(feature = "s3")]
            transport: None,
        })
    }

    pub(crate) fn ending(&self) -> Ending {
        Ending(self.ending.clone())
    }

    /// Waits for `call`, as long as its caller waits.
    fn wait<T>(&self, until: Deadline, call: impl Future<Output = T>) -> Result<T, Errno> {
        let began = Instant::now();
        let ended = async {
            let mut ending = self.ending.subscribe();
            // The sender lives as long as `self`.
            let since = ending.wait_for(Option::is_some).await.ok().and_then(|since| *since);
            tokio::time::sleep_until(since.unwrap_or(began).max(began) + self.timeout).await;
            Errno::ETIMEDOUT
        };
        self.runtime.block_on(async {
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

    fn ask<T>(&self, until: Deadline, call: impl Future<Output = opendal::Result<T>>) -> Result<T, Errno> {
        self.wait(until, call)?.map_err(|error| note(&self.calls, &error))
    }

    /// Lists some names. If this fails, returns the store's error in its own words.
    pub(crate) fn check(&self) -> opendal::Result<()> {
        self.calls.count(Counted::List);
        let first = async { self.operator.lister_with("/").limit(1).await?.next().await.transpose().map(drop) };
        let late = |errno| Error::new(ErrorKind::Unexpected, format!("the store did not answer in time ({errno})"));
        self.wait(Deadline::within(self.timeout), first).map_err(late)?
    }

    /// Returns the object `key`, or `None` if there is none.
    pub(crate) fn stat(&self, until: Deadline, key: &Key) -> Result<Option<Found>, Errno> {
        self.calls.count(Counted::Stat);
        match self.ask(until, self.operator.stat(key.path())) {
            Ok(metadata) if metadata.is_dir() => Ok(Some(Found::Dir)),
            Ok(metadata) => Ok(Some(Found::File(Some(meta_of(&metadata, metadata.content_length()))))),
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Returns whether anything is below the prefix `dir`. With `beside_marker`, the marker of `dir`
    /// does not count.
    pub(crate) fn has_names(&self, until: Deadline, dir: &Key, beside_marker: bool) -> Result<bool, Errno> {
        self.calls.count(Counted::List);
        let first = async {
            let mut list = self.operator.lister_with(dir.path()).limit(2).await?;
            while let Some(entry) = list.next().await {
                if !(beside_marker && is_same(entry?.path(), dir.path())) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        match self.ask(until, first) {
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(false),
            has => has,
        }
    }

    /// Returns at most about `limit` names in the directory `dir`.
    pub(crate) fn list(&self, until: Deadline, dir: &Key, limit: usize) -> Result<Names, Errno> {
        self.calls.count(Counted::List);
        let all = async {
            let mut list = self.operator.lister(dir.path()).await?;
            self.gather(&mut list, dir, limit).await
        };
        match self.ask(until, all) {
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
        let reading = self.runtime.spawn(async move {
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
        });
        let abort = reading.abort_handle();
        let answer = reading.map(|ended| ended.unwrap_or(Err(Errno::EIO))).boxed().shared();
        Reading { answer, abort }
    }

    /// Waits for the answer to [`Store::start`].
    pub(crate) fn finish(&self, until: Deadline, reading: &Reading) -> Answer {
        self.wait(until, reading.answer.clone())?
    }

    /// Returns a buffer over the first `base` bytes of an object.
    pub(crate) fn buffer(&self, base: u64) -> WriteBuffer {
        WriteBuffer::new(base, self.max_file, self.allowance.clone())
    }

    /// Returns a buffer over an object. Where ranges of one version of the object can be requested, this
    /// needs no request; otherwise the buffer has all contents. Returns `Ok(None)` if another program has
    /// replaced the object.
    ///
    /// # Errors
    /// `EFBIG`, `ENOSPC`: the object is larger than a file, or all buffers, may be.
    pub(crate) fn load(
        &self,
        until: Deadline,
        key: &Key,
        (meta, version): (&Meta, u64),
    ) -> Result<Option<WriteBuffer>, Errno> {
        if meta.size > self.max_file {
            return Err(Errno::EFBIG);
        }
        let mut buffer = self.buffer(meta.size);
        if self.checks_versions(meta) {
            buffer.origin = Some((meta.clone(), version));
            return Ok(Some(buffer));
        }
        Ok(self.fill(until, key, meta, &mut buffer)?.then_some(buffer))
    }

    /// Reads all bytes of the base into a buffer. Returns false if another program has replaced the
    /// object.
    ///
    /// # Errors
    /// `ENOSPC`: then no byte was read.
    pub(crate) fn fill(
        &self,
        until: Deadline,
        key: &Key,
        meta: &Meta,
        buffer: &mut WriteBuffer,
    ) -> Result<bool, Errno> {
        for range in buffer.missing()? {
            let mut at = range.start;
            while at < range.end {
                let part = at..range.end.min(at + PART as u64);
                let Some(bytes) = self.read(until, key, meta, part)? else { return Ok(false) };
                for chunk in bytes {
                    buffer.keep(at, &chunk)?;
                    at += chunk.len() as u64;
                }
            }
        }
        buffer.forget_base();
        Ok(true)
    }

    /// Reads a range of an object. Returns `Ok(None)` if another program has replaced the object.
    fn read(&self, until: Deadline, key: &Key, meta: &Meta, range: Range<u64>) -> Result<Option<Buffer>, Errno> {
        let reading = self.start(key, meta, range);
        self.finish(until, &reading).inspect_err(|_| reading.abort.abort())
    }

    /// Writes the whole object `key`: the contents of a buffer, whose base is the object `from`. Returns
    /// the attributes of the new object. With `is_same`, replaces only the version that is the base.
    ///
    /// # Errors
    /// `ESTALE`: another program has replaced the object.
    pub(crate) fn put(
        &self,
        until: Deadline,
        (from, key): (&Key, &Key),
        buffer: &mut WriteBuffer,
        is_same: bool,
    ) -> Result<Meta, Errno> {
        self.calls.count(Counted::Write);
        let len = buffer.len();
        let base = buffer.origin.as_ref().map(|(meta, _)| meta.clone());
        let condition =
            base.as_ref().filter(|_| is_same && self.can.write_with_if_match).map(|meta| meta.tag.to_string());
        let options = || WriteOptions { if_match: condition.clone(), concurrent: 4, ..WriteOptions::default() };
        let written = if len <= PART as u64 {
            let mut bytes = vec![0; usize::try_from(len).map_err(|_| Errno::EFBIG)?];
            for piece in buffer.pieces(0..len) {
                match (piece, &base) {
                    (Piece::Base(range), Some(base)) => {
                        let read = self.read(until, from, base, range.clone())?.ok_or(Errno::ESTALE)?;
                        copy(&read, &mut bytes[range.start as usize..range.end as usize]);
                    }
                    (Piece::Base(range) | Piece::Own(range), _) => {
                        buffer.read_own(range.start, &mut bytes[range.start as usize..range.end as usize])?;
                    }
                }
            }
            self.ask(until, self.operator.write_options(key.path(), bytes, options()))
        } else {
            let mut writer = self.ask(until, self.operator.writer_options(key.path(), options()))?;
            self.put_parts(until, from, base.as_ref(), buffer, &mut writer)
                .inspect_err(|_| self.abandon(key, Some(writer)))
        };
        match written {
            Ok(written) => Ok(written_meta(&written, len)),
            // Of the PUT, or of a copy of the base.
            Err(Errno::EEXIST) => Err(Errno::ESTALE),
            Err(errno) => Err(errno),
        }
    }

    fn put_parts(
        &self,
        until: Deadline,
        from: &Key,
        base: Option<&Meta>,
        buffer: &mut WriteBuffer,
        writer: &mut Writer,
    ) -> Result<Metadata, Errno> {
        let most = copied_part(buffer.len());
        for piece in buffer.pieces(0..buffer.len()) {
            match (piece, base) {
                (Piece::Base(range), Some(base)) => {
                    for part in parts(range, most) {
                        let if_match = self.checks_versions(base).then(|| base.tag.to_string());
                        let source = ReadOptions { range: part.into(), if_match, ..ReadOptions::default() };
                        self.ask(until, writer.copy_from_options(from.path(), source))?;
                    }
                }
                (Piece::Base(range) | Piece::Own(range), _) => {
                    for part in parts(range, PART as u64) {
                        let mut bytes = vec![0; (part.end - part.start) as usize];
                        buffer.read_own(part.start, &mut bytes)?;
                        self.ask(until, writer.write(bytes))?;
                    }
                }
            }
        }
        self.ask(until, writer.close())
    }

    /// Discards the parts that arrived of an object, or of objects below a prefix, that could not be
    /// written: they cost storage until then. The caller does not wait for that.
    #[cold]
    fn abandon(&self, key: &Key, writer: Option<Writer>) {
        #[cfg(feature = "s3")]
        if let Some(transport) = self.transport.clone() {
            let key = key.in_bucket(&self.operator);
            self.runtime.spawn(async move { transport.abort(&key).await });
            return;
        }
        let key = key.clone();
        self.runtime.spawn(async move {
            let Some(mut writer) = writer else { return };
            if let Err(error) = writer.abort().await {
                tracing::warn!(?key, %error, "the parts of an object that could not be written remain in the store");
            }
        });
    }

    /// See [`ObjectFs::abort_old_uploads`](crate::ObjectFs::abort_old_uploads).
    pub(crate) fn abort_old(&self) {
        #[cfg(feature = "s3")]
        if let Some(transport) = self.transport.clone() {
            let prefix = Key::default().in_bucket(&self.operator);
            self.runtime.spawn(async move {
                if let Err(error) = transport.abort_old(&prefix).await {
                    tracing::debug!(%error, "cannot look for unfinished uploads");
                }
            });
        }
    }

    /// Creates the empty object `key`. Fails with `EEXIST` if there is one, where the store checks
    /// that.
    pub(crate) fn create(&self, until: Deadline, key: &Key) -> Result<Meta, Errno> {
        self.calls.count(Counted::Write);
        // A repeated request finds the object that the first one made, if the first reply was lost.
        let mark = format!("{:016x}{:016x}", random_u64(), random_u64());
        let marks = self.can.write_with_user_metadata.then(|| HashMap::from([(CREATED.to_owned(), mark.clone())]));
        let if_not_exists = self.can.write_with_if_not_exists;
        let options = WriteOptions { if_not_exists, user_metadata: marks, ..WriteOptions::default() };
        match self.ask(until, self.operator.write_options(key.path(), Buffer::new(), options)) {
            Ok(written) => Ok(written_meta(&written, 0)),
            Err(Errno::EEXIST) if if_not_exists => {
                let found = self.ask(until, self.operator.stat(key.path()))?;
                let is_ours = found.user_metadata().and_then(|of| of.get(CREATED)) == Some(&mark);
                if is_ours { Ok(meta_of(&found, found.content_length())) } else { Err(Errno::EEXIST) }
            }
            Err(errno) => Err(errno),
        }
    }

    /// Creates the marker of the directory `dir`.
    pub(crate) fn mark(&self, until: Deadline, dir: &Key) -> Result<(), Errno> {
        self.calls.count(Counted::Write);
        self.ask(until, self.operator.create_dir(dir.path()))
    }

    /// Removes the object, or the marker, `key`.
    pub(crate) fn delete(&self, until: Deadline, key: &Key) -> Result<(), Errno> {
        self.calls.count(Counted::Delete);
        self.ask(until, self.operator.delete(key.path()))
    }

    /// Copies an object of `size` bytes inside the store. Fails with `EOPNOTSUPP` if the store cannot.
    pub(crate) fn copy(&self, until: Deadline, from: &Key, to: &Key, size: u64) -> Result<(), Errno> {
        if !self.can.copy {
            return Err(Errno::EOPNOTSUPP);
        }
        self.calls.count(Counted::Copy);
        let copy = copy_object(self.operator.clone(), from.clone(), to.clone(), size);
        self.ask(until, copy).inspect_err(|_| self.abandon(to, None))
    }

    /// Copies all objects below the prefix `from` to the prefix `to`. Returns their keys.
    ///
    /// # Errors
    /// `EINVAL` if an object has a key that no request can name: then nothing was copied.
    pub(crate) fn copy_prefix(&self, until: Deadline, from: &Key, to: &Key) -> Result<Vec<Key>, Errno> {
        self.calls.count(Counted::List);
        let paths = async {
            let mut list = self.operator.lister_with(from.path()).recursive(true).await?;
            let mut paths = Vec::new();
            while let Some(entry) = list.next().await {
                let (path, metadata) = entry?.into_parts();
                paths.push((path, metadata.content_length()));
            }
            Ok(paths)
        };
        let pair = |(path, size)| {
            let key = self.key(path)?;
            let moved = Key::new(format!("{}{}", to.path(), key.below(from)?))?;
            Some((key, moved, size))
        };
        let pairs: Option<Vec<_>> = self.ask(until, paths)?.into_iter().map(pair).collect();
        let pairs = pairs.ok_or(Errno::EINVAL)?;
        let keys = pairs.iter().map(|(key, ..)| key.clone()).collect();
        let can_copy = self.can.copy;
        self.each(until, pairs, Counted::Copy, |operator, (from, to, size)| async move {
            match (from.is_dir(), can_copy) {
                (true, _) => operator.create_dir(to.path()).await,
                (false, true) => copy_object(operator, from, to, size).await,
                (false, false) => operator.write(to.path(), operator.read(from.path()).await?).await.map(drop),
            }
        })
        .inspect_err(|_| self.abandon(to, None))?;
        Ok(keys)
    }

    /// Removes the objects with these keys.
    pub(crate) fn remove_all(&self, until: Deadline, keys: Vec<Key>) -> Result<(), Errno> {
        // From below: a service with real directories removes only empty ones.
        let (mut dirs, files): (Vec<_>, Vec<_>) = keys.into_iter().partition(Key::is_dir);
        self.each(until, files, Counted::Delete, |operator, key| async move { operator.delete(key.path()).await })?;
        dirs.sort_unstable_by(|a, b| b.cmp(a));
        dirs.iter().try_for_each(|key| self.delete(until, key))
    }

    /// Makes a request for each item, some requests at a time. Stops after an error.
    fn each<T, F: Future<Output = opendal::Result<()>> + Send + 'static>(
        &self,
        until: Deadline,
        items: Vec<T>,
        kind: Counted,
        request: impl Fn(Operator, T) -> F,
    ) -> Result<(), Errno> {
        let all = async {
            let mut running = JoinSet::new();
            for item in items {
                if running.len() == COPIES {
                    joined(running.join_next().await)?;
                }
                self.calls.count(kind);
                running.spawn(request(self.operator.clone(), item));
            }
            while !running.is_empty() {
                joined(running.join_next().await)?;
            }
            Ok(())
        };
        self.ask(until, all)
    }

    /// Returns the key of an object that the store listed. `None`: no request can name it.
    fn key(&self, path: String) -> Option<Key> {
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
            if is_name(name) {
                names.names.push(ListedName { name: name.into(), found: found(&metadata) });
            }
        }
        Ok(names)
    }
}

/// Copies an object inside the store: in parts, if one request could take too long.
async fn copy_object(operator: Operator, from: Key, to: Key, size: u64) -> opendal::Result<()> {
    if size <= COPIED_PART || !operator.info().capability().write_can_copy_from {
        return operator.copy(from.path(), to.path()).await.map(drop);
    }
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    // All parts are of one version, and the copy has what programs have noted at the object.
    let found = operator.stat(from.path()).await?;
    let user_metadata = found.user_metadata().map(|of| of.into_iter().map(owned).collect());
    let options = WriteOptions { user_metadata, concurrent: 4, ..WriteOptions::default() };
    let mut writer = operator.writer_options(to.path(), options).await?;
    let all = async {
        for part in parts(0..found.content_length(), copied_part(found.content_length())) {
            let if_match = found.etag().map(str::to_owned);
            let source = ReadOptions { range: part.into(), if_match, ..ReadOptions::default() };
            writer.copy_from_options(from.path(), source).await?;
        }
        writer.close().await.map(drop)
    };
    all.await
}

/// Counts and logs an error. Returns its errno.
fn note(calls: &Calls, error: &Error) -> Errno {
    if error.kind() != ErrorKind::NotFound {
        calls.count(Counted::Failure);
        tracing::debug!(%error, "the store reports an error");
    }
    errno_of(error)
}

fn joined(ended: Option<Result<opendal::Result<()>, tokio::task::JoinError>>) -> opendal::Result<()> {
    match ended {
        Some(Ok(done)) => done,
        Some(Err(_)) => Err(Error::new(ErrorKind::Unexpected, "a request was cut off")),
        None => Ok(()),
    }
}

/// Returns half of the free bytes in the directory for temporary files.
fn half_of_free() -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(std::env::temp_dir())?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize) / 2)
}

/// Returns a range in parts of at most `most` bytes.
fn parts(range: Range<u64>, most: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(usize::try_from(most).unwrap_or(usize::MAX)).map(move |start| start..end.min(start + most))
}

/// Returns whether two paths are the same but for a slash at the end.
fn is_same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

fn found(metadata: &Metadata) -> Found {
    match metadata.mode() {
        EntryMode::DIR => Found::Dir,
        _ => Found::File(metadata.last_modified().is_some().then(|| meta_of(metadata, metadata.content_length()))),
    }
}

fn meta_of(metadata: &Metadata, size: u64) -> Meta {
    let modified = metadata.last_modified().map(std::time::SystemTime::from);
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
    // Listings have milliseconds, attributes of one object seconds: a file must have one time.
    let mtime = i64::try_from(since.as_secs()).unwrap_or(0).saturating_mul(1_000_000_000);
    let etag = metadata.etag();
    let tag = etag.map_or_else(|| format!("{} {}", since.as_nanos(), size), str::to_owned);
    Meta { size, mtime, tag: tag.into(), has_etag: etag.is_some() }
}

/// Returns the attributes of an object that was just written. The store returns at most the tag of
/// the object, not its time.
fn written_meta(metadata: &Metadata, size: u64) -> Meta {
    let now = prim::clock::now_ns();
    let meta = meta_of(metadata, size);
    Meta { mtime: now - now.rem_euclid(1_000_000_000), ..meta }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("operator", &self.operator.info())
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}
