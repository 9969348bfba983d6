//! Markers of directories, and changes of metadata alone. Only a bucket of S3 keeps attributes.

use crate::bucket::{Heads, Transport};
use crate::calls::Counted;
use crate::copies::copy_object;
use crate::deadline::Deadline;
use crate::kept::Kept;
use crate::key::Key;
use crate::limits::COPIED_PART;
use crate::meta::{Found, Meta};
use crate::store::{Store, this_second};
use futures::StreamExt;
use opendal::{Error, ErrorKind};
use vfs::Errno;

/// Metadata after a change.
pub(crate) struct Amended {
    pub(crate) kept: Kept,
    /// The object, if it was written.
    pub(crate) meta: Option<Meta>,
}

impl Store {
    /// Returns the transport of a bucket that keeps attributes, after a listing, from which the
    /// transport has the bucket's URL.
    async fn keeper(&self) -> opendal::Result<Option<&Transport>> {
        let Some(transport) = self.transport.as_ref().filter(|_| self.keeps) else { return Ok(None) };
        if transport.uri("").is_none() {
            self.operator.lister_with("/").limit(1).await?.next().await.transpose()?;
        }
        Ok(Some(transport))
    }

    /// Returns a directory with the attributes of its marker.
    pub(crate) async fn find_marker(&self, dir: &Key) -> opendal::Result<Found> {
        let Some(transport) = self.keeper().await? else { return Ok(Found::Dir(Some(Kept::default()))) };
        match transport.heads(&dir.in_bucket(&self.operator)).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::Dir(Some(Kept::default()))),
            heads => Ok(Found::Dir(Some(heads?.kept()))),
        }
    }

    async fn put_marker(&self, dir: &Key, kept: Option<Kept>) -> opendal::Result<()> {
        let Some(transport) = self.keeper().await? else { return self.operator.create_dir(dir.path()).await };
        let pairs = kept.unwrap_or_default().pairs(true);
        transport.put_marker(&dir.in_bucket(&self.operator), &pairs, kept.is_none()).await
    }

    /// Copies a marker, with its attributes.
    pub(crate) async fn copy_marker(&self, from: &Key, to: &Key) -> opendal::Result<()> {
        let Some(transport) = self.transport.as_ref().filter(|_| self.keeps) else {
            return self.operator.create_dir(to.path()).await;
        };
        transport.copy_marker(&from.in_bucket(&self.operator), &to.in_bucket(&self.operator)).await
    }

    /// Changes the attributes of an object, or of a directory, which then has a marker. The contents and
    /// all other metadata stay.
    ///
    /// # Errors
    /// `EEXIST`: another program wrote the object meanwhile.
    pub(crate) fn amend(&self, until: Deadline, key: &Key, change: impl Fn(Kept) -> Kept) -> Result<Amended, Errno> {
        self.calls.count(Counted::Stat);
        let amended = async {
            let Some(transport) = self.keeper().await? else {
                return Err(Error::new(ErrorKind::Unsupported, "the store keeps no attributes"));
            };
            let name = key.in_bucket(&self.operator);
            let heads = match transport.heads(&name).await {
                Err(error) if key.is_dir() && error.kind() == ErrorKind::NotFound => {
                    let kept = change(Kept::default());
                    self.calls.count(Counted::Write);
                    transport.put_marker(&name, &kept.pairs(true), false).await?;
                    return Ok(Amended { kept, meta: None });
                }
                heads => heads?,
            };
            let (old, kept) = (heads.kept(), change(heads.kept()));
            if old == kept {
                return Ok(Amended { kept, meta: None });
            }
            self.calls.count(Counted::Copy);
            self.replace(transport, key, &heads, (old, kept)).await.map(|meta| Amended { kept, meta: Some(meta) })
        };
        self.ask(until, amended)
    }

    /// Replaces the attributes in the metadata of an object.
    async fn replace(
        &self,
        transport: &Transport,
        key: &Key,
        heads: &Heads,
        (old, kept): (Kept, Kept),
    ) -> opendal::Result<Meta> {
        let (size, name) = (heads.len().unwrap_or(0), key.in_bucket(&self.operator));
        let (before, mut pairs) = (old.pairs(key.is_dir()), kept.pairs(key.is_dir()));
        // In the form of the program that wrote them, if it still fits.
        pairs.retain(|name, value| before.get(name) != Some(value));
        let pairs = heads.with(pairs);
        let etag = if size <= COPIED_PART {
            transport.replace_metadata(&name, heads, &pairs).await?
        } else {
            copy_object(self.operator.clone(), key.clone(), key.clone(), size, Some(pairs)).await?
        };
        let tag = etag.as_deref().or(heads.etag()).unwrap_or_default().into();
        Ok(Meta { size, modified: this_second(), tag, has_etag: true, kept: Some(kept) })
    }

    /// Writes the marker of the directory `dir`. `None`: a marker that another program wrote stays, if the
    /// store checks that.
    pub(crate) fn mark(&self, until: Deadline, dir: &Key, kept: Option<Kept>) -> Result<(), Errno> {
        self.calls.count(Counted::Write);
        self.ask(until, self.put_marker(dir, kept))
    }
}
