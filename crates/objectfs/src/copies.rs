//! Copies inside the store, and removals, of one object or of all below a prefix.

use crate::calls::Counted;
use crate::deadline::Deadline;
use crate::key::Key;
use crate::limits::{COPIED_PART, copied_part};
use crate::store::Store;
use crate::upload::{copy_parts, parts};
use core::future::Future;
use futures::{StreamExt, TryStreamExt, stream};
use opendal::Operator;
use opendal::options::WriteOptions;
use std::collections::HashMap;
use vfs::Errno;

/// How many requests are made at a time when a directory is copied.
const COPIES: usize = 16;

impl Store {
    /// Copies an object of `size` bytes inside the store. Fails with `EOPNOTSUPP` if the store cannot.
    pub(crate) fn copy(&self, until: Deadline, from: &Key, to: &Key, size: u64) -> Result<(), Errno> {
        if !self.can.copy {
            return Err(Errno::EOPNOTSUPP);
        }
        self.calls.count(Counted::Copy);
        let copy = copy_object(self.operator.clone(), from.clone(), to.clone(), size, None);
        self.ask(until, copy).map(drop).inspect_err(|_| self.abandon(to, None))
    }

    /// Copies all objects below the prefix `from` to the prefix `to`, which gets a marker. Returns their
    /// keys.
    ///
    /// # Errors
    /// `EINVAL` if an object has a key that no request can name: then nothing was changed.
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
        // The marker of `from`, if there is one, is copied over this one.
        self.mark(until, to, None)?;
        let (markers, objects): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(from, ..)| from.is_dir());
        let copy_marker = |(from, to, _): (Key, Key, u64)| async move { self.copy_marker(&from, &to).await };
        self.each(until, markers, Counted::Copy, copy_marker)?;
        let copy = |(from, to, size): (Key, Key, u64)| async move {
            if self.can.copy {
                return copy_object(self.operator.clone(), from, to, size, None).await.map(drop);
            }
            self.operator.write(to.path(), self.operator.read(from.path()).await?).await.map(drop)
        };
        self.each(until, objects, Counted::Copy, copy).inspect_err(|_| self.abandon(to, None))?;
        Ok(keys)
    }

    /// Removes the objects with these keys.
    pub(crate) fn remove_all(&self, until: Deadline, keys: Vec<Key>) -> Result<(), Errno> {
        // From below: a service with real directories removes only empty ones.
        let (mut dirs, files): (Vec<_>, Vec<_>) = keys.into_iter().partition(Key::is_dir);
        let delete = |key: Key| async move { self.operator.delete(key.path()).await };
        self.each(until, files, Counted::Delete, delete)?;
        dirs.sort_unstable_by(|a, b| b.cmp(a));
        dirs.iter().try_for_each(|key| self.delete(until, key))
    }

    /// Makes a request for each item, some requests at a time. Stops after an error.
    fn each<T, F: Future<Output = opendal::Result<()>>>(
        &self,
        until: Deadline,
        items: Vec<T>,
        kind: Counted,
        request: impl Fn(T) -> F,
    ) -> Result<(), Errno> {
        let all = stream::iter(items).map(Ok).try_for_each_concurrent(COPIES, |item| {
            self.calls.count(kind);
            request(item)
        });
        self.ask(until, all)
    }
}

/// Copies an object inside the store, perhaps with other metadata: in parts, if one request could take
/// too long. Returns the ETag of a copy in parts.
pub(crate) async fn copy_object(
    operator: Operator,
    from: Key,
    to: Key,
    size: u64,
    metadata: Option<HashMap<String, String>>,
) -> opendal::Result<Option<String>> {
    if size <= COPIED_PART || !operator.info().capability().write_can_copy_from {
        return operator.copy(from.path(), to.path()).await.map(|_| None);
    }
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    // All parts are of one version, and the copy has what programs have noted at the object.
    let found = operator.stat(from.path()).await?;
    let text = |text: Option<&str>| text.map(str::to_owned);
    let options = WriteOptions {
        user_metadata: metadata.or_else(|| found.user_metadata().map(|of| of.into_iter().map(owned).collect())),
        content_type: text(found.content_type()),
        content_disposition: text(found.content_disposition()),
        content_encoding: text(found.content_encoding()),
        cache_control: text(found.cache_control()),
        concurrent: 4,
        ..WriteOptions::default()
    };
    let mut writer = operator.writer_options(to.path(), options).await?;
    let len = found.content_length();
    copy_parts(&mut writer, &from, parts(0..len, copied_part(len)), found.etag()).await?;
    writer.close().await.map(|written| written.etag().map(str::to_owned))
}
