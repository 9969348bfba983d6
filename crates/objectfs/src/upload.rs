//! Objects that are written from buffers, and buffers that are put over objects.

use crate::buffer::{Buffer as WriteBuffer, Piece};
use crate::calls::Counted;
use crate::deadline::Deadline;
use crate::kept::Kept;
use crate::key::Key;
use crate::limits::{PART, copied_part};
use crate::meta::Meta;
use crate::store::{Store, written_meta};
use crate::window::copy;
use core::ops::Range;
use opendal::options::{ReadOptions, WriteOptions};
use opendal::{Buffer, Metadata, Writer};
use vfs::{Errno, Foreign};

impl Store {
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
    pub(crate) fn read(
        &self,
        until: Deadline,
        key: &Key,
        meta: &Meta,
        range: Range<u64>,
    ) -> Result<Option<Buffer>, Errno> {
        let reading = self.start(key, meta, range);
        self.finish(until, &reading).inspect_err(|_| reading.abort.abort())
    }

    /// Writes the whole object `key`: the contents of a buffer, whose base is the object `from`. Returns
    /// the report of the new object, with the attributes `kept`. If both are one object, replaces only the version that is the base.
    ///
    /// # Errors
    /// `ESTALE`: another program has replaced the object.
    pub(crate) fn put(
        &self,
        until: Deadline,
        (from, key): (&Key, &Key),
        buffer: &mut WriteBuffer,
        kept: Kept,
    ) -> Result<Meta, Errno> {
        self.calls.count(Counted::Write);
        let len = buffer.len();
        let base = buffer.origin.as_ref().map(|(meta, _)| meta.clone());
        let condition =
            base.as_ref().filter(|_| from == key && self.can.write_with_if_match).map(|meta| meta.tag.to_string());
        let kept = self.storable(kept);
        let user_metadata = self.keeps.then(|| kept.pairs(false));
        let options = WriteOptions { if_match: condition, user_metadata, concurrent: 4, ..WriteOptions::default() };
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
            self.ask(until, self.operator.write_options(key.path(), bytes, options))
        } else {
            let mut writer = self.ask(until, self.operator.writer_options(key.path(), options))?;
            self.put_parts(until, from, base.as_ref(), buffer, &mut writer)
                .inspect_err(|_| self.abandon(key, Some(writer)))
        };
        // `EEXIST` of the PUT, or of a copy of the base.
        let stale = |errno| if errno == Errno::EEXIST { Errno::ESTALE } else { errno };
        written.map(|written| written_meta(&written, len, kept)).map_err(stale)
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
                    let tag = self.checks_versions(base).then_some(&*base.tag);
                    self.ask(until, copy_parts(writer, from, parts(range, most), tag))?;
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
    /// written: until they are discarded they cost storage. The caller does not wait.
    #[cold]
    pub(crate) fn abandon(&self, key: &Key, writer: Option<Writer>) {
        if let Some(transport) = self.transport.clone() {
            let key = key.in_bucket(&self.operator);
            self.runtime.spawn(async move { transport.abort(&key).await });
            return;
        }
        let key = key.clone();
        self.runtime.spawn(async move {
            let Some(mut writer) = writer else { return };
            if let Err(error) = writer.abort().await {
                tracing::warn!(key = %Foreign::of(key.path()), error = %Foreign::text(error), "the parts of an object that could not be written remain in the store");
            }
        });
    }
}

/// Copies parts of the object `from` inside the store: of the version with this tag, if there is one.
pub(crate) async fn copy_parts(
    writer: &mut Writer,
    from: &Key,
    parts: impl Iterator<Item = Range<u64>>,
    tag: Option<&str>,
) -> opendal::Result<()> {
    for part in parts {
        let source = ReadOptions { range: part.into(), if_match: tag.map(str::to_owned), ..ReadOptions::default() };
        writer.copy_from_options(from.path(), source).await?;
    }
    Ok(())
}

/// Returns a range in parts of at most `most` bytes.
pub(crate) fn parts(range: Range<u64>, most: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(usize::try_from(most).unwrap_or(usize::MAX)).map(move |start| start..end.min(start + most))
}
