//! Contents of files: opens, reads, the write buffer, and the moment at which it is written to the store.
//!
//! # What it is
//! The first change of a file puts a buffer over its object, which all opens of the file then share. `close(2)`, `fsync(2)` and, of
//! a file that nobody has open for writing, `truncate(2)` write the object anew: from the buffer and, where the buffer has no bytes,
//! from the object itself, inside the store if the store can. The last close by a writer drops the buffer.
//!
//! The store replaces only the version of the object that the buffer lies over. If another program has written the object
//! meanwhile, the call fails with `ESTALE`, and the object stays.

use crate::buffer::{Buffer, Piece};
use crate::deadline::Deadline;
use crate::errors::gone;
use crate::kept::Kept;
use crate::key::Key;
use crate::limits::TRIES;
use crate::listing::DirList;
use crate::meta::{Found, Kind, Meta};
use crate::node::{Local, Node, is_fresh};
use crate::nodes::ROOT;
use crate::object_fs::ObjectFs;
use crate::reader::Reader;
use core::num::NonZeroU64;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;
use vfs::{
    Attr, Errno, Foreign, Inode, Open, OpenFlags, OpenState, Opened, PATH_MAX, Position, Request, SetAttr, Written,
};

/// How old the attributes of an object may be on which a writer begins.
const RECENT: Duration = Duration::from_secs(1);

impl ObjectFs {
    pub(crate) fn begin_open(&self, until: Deadline, node: &Node, flags: OpenFlags) -> Result<Opened, Errno> {
        if node.is_dir {
            return Ok(Opened { state: OpenState::Shared(Arc::new(DirList::default())), ..Opened::default() });
        }
        // 0 is not the version of contents.
        let version = NonZeroU64::new(node.count_open(until, flags.can_write())?.saturating_add(1));
        Ok(Opened { state: OpenState::Shared(Arc::new(Reader::default())), version, ..Opened::default() })
    }

    pub(crate) fn end_open(&self, file: &Open<'_>) {
        let Ok(node) = self.node(file.inode) else { return };
        if node.is_dir {
            return;
        }
        if let Some(reader) = file.state.get::<Reader>() {
            reader.close(self, &node);
        }
        let is_unused = {
            let mut facts = node.facts();
            facts.opens -= 1;
            facts.writers -= u32::from(file.flags.can_write());
            facts.local.is_some() && !facts.keeps_buffer()
        };
        if !is_unused {
            return;
        }
        if let Err(errno) = self.drop_buffer(&node) {
            let key = self.key_of(node.id).map_or_else(|_| "?".into(), |key| key.path().to_owned());
            tracing::error!(key = %Foreign::of(&key), %errno, "a file that was closed cannot be written: its last changes are lost");
        }
        file.inode.mark_stale();
    }

    /// Writes the buffer, if no call has written it, and drops it, unless the file is in use again.
    #[cold]
    fn drop_buffer(&self, node: &Node) -> Result<(), Errno> {
        let _stays = self.moves.read();
        let mut content = node.content(Deadline::NONE)?;
        // A call has returned the error of a refusal.
        let is_refused = content.as_ref().is_some_and(|buffer| buffer.is_refused);
        let saved = if is_refused { Ok(()) } else { self.upload(Deadline::NONE, node, &mut content) };
        self.drop_unused(node, &mut content);
        saved
    }

    /// Drops the buffer, unless the file is in use. If the buffer had changes, the kernel and the cache
    /// must forget them, too.
    fn drop_unused(&self, node: &Node, content: &mut Option<Buffer>) {
        // An open that follows must find neither, or both.
        let mut facts = node.facts();
        if facts.keeps_buffer() {
            return;
        }
        facts.local = None;
        let had_changes = content.take().is_some_and(|buffer| buffer.is_dirty);
        if had_changes && !facts.is_nameless {
            facts.version += 1;
            facts.fetched = None;
            drop(facts);
            if let Some(invalidator) = self.invalidator.get() {
                invalidator.inode(node.id);
            }
        }
    }

    /// Writes the buffer to the store, if it has changes.
    pub(crate) fn save(&self, until: Deadline, inode: &Inode) -> Result<(), Errno> {
        let node = self.node(inode)?;
        if node.is_dir || node.facts().local.is_none() {
            return Ok(());
        }
        let _stays = self.stay(until)?;
        let mut content = node.content(until)?;
        self.upload(until, &node, &mut content)?;
        inode.mark_stale();
        Ok(())
    }

    /// Holds off renames of directories.
    pub(crate) fn stay(&self, until: Deadline) -> Result<parking_lot::RwLockReadGuard<'_, ()>, Errno> {
        until.lock(|| self.moves.read(), |left| self.moves.try_read_for(left))
    }

    fn upload(&self, until: Deadline, node: &Node, content: &mut Option<Buffer>) -> Result<(), Errno> {
        let Some(buffer) = content.as_mut().filter(|buffer| buffer.is_dirty) else { return Ok(()) };
        if node.facts().is_nameless {
            return Ok(());
        }
        let key = self.key_of(node.id)?;
        self.put(until, node, (&key, &key), buffer)
    }

    /// Writes the contents of a buffer over the object `from` as the object `to`.
    pub(crate) fn put(
        &self,
        until: Deadline,
        node: &Node,
        (from, to): (&Key, &Key),
        buffer: &mut Buffer,
    ) -> Result<(), Errno> {
        let kept = node.facts().local.map_or_else(Kept::default, |local| local.kept);
        let put = self.store.put(until, (from, to), buffer, kept);
        let passes = |errno: &Errno| matches!(*errno, Errno::EIO | Errno::EAGAIN | Errno::ETIMEDOUT | Errno::EINTR);
        let meta = put.inspect_err(|errno| buffer.is_refused = !passes(errno))?;
        let version = {
            let mut facts = node.facts();
            facts.changed_to(meta.clone());
            facts.version
        };
        buffer.stored(self.store.checks_versions(&meta).then_some((meta, version)))
    }

    /// Puts a buffer over the object, if there is none.
    pub(crate) fn load<'c>(
        &self,
        until: Deadline,
        node: &Node,
        content: &'c mut Option<Buffer>,
    ) -> Result<&'c mut Buffer, Errno> {
        if content.is_none() {
            let is_recent = {
                let facts = node.facts();
                facts.is_nameless || is_fresh(facts.fetched, self.ttl.min(RECENT)) && self.is_known(&facts)
            };
            if !is_recent {
                self.fetch(until, node)?;
            }
            for _ in 0..TRIES {
                let (meta, version) = self.known_meta(until, node)?;
                let key = self.key_of(node.id)?;
                let loaded = match self.store.load(until, &key, (&meta, version)) {
                    Err(Errno::ENOENT) if self.has_moved(node, &key)? => continue,
                    loaded => loaded.map_err(gone)?,
                };
                if let Some(buffer) = loaded {
                    let mut facts = node.facts();
                    let mtime = facts.kept.mtime.or(Some(meta.modified));
                    let ctime = facts.kept.ctime.or(Some(meta.modified));
                    facts.local = Some(Local { size: meta.size, kept: Kept { mtime, ctime, ..facts.kept } });
                    drop(facts);
                    *content = Some(buffer);
                    break;
                }
                node.facts().fetched = None;
                self.fetch(until, node)?;
            }
        }
        content.as_mut().ok_or(Errno::EAGAIN)
    }

    /// Reads all contents of a file into its buffer: its object is about to be removed.
    pub(crate) fn fill(&self, until: Deadline, node: &Node, content: &mut Option<Buffer>) -> Result<(), Errno> {
        let buffer = self.load(until, node, content)?;
        let Some((meta, _)) = buffer.origin.clone() else { return Ok(()) };
        let key = self.key_of(node.id)?;
        if self.store.fill(until, &key, &meta, buffer).map_err(gone)? { Ok(()) } else { Err(Errno::ESTALE) }
    }

    /// Returns the attributes that the store reported last, or reports now, and the version of the
    /// contents with these attributes.
    fn known_meta(&self, until: Deadline, node: &Node) -> Result<(Meta, u64), Errno> {
        let known = || {
            let facts = node.facts();
            facts.meta.clone().map(|meta| (meta, facts.version))
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        self.fetch(until, node)?;
        known().ok_or(Errno::EAGAIN)
    }

    /// Returns the body of a symbolic link.
    ///
    /// # Errors
    /// `EIO`: the object cannot be the body of a link.
    pub(crate) fn link_body(&self, until: Deadline, node: &Node) -> Result<Box<[u8]>, Errno> {
        let (meta, _) = self.known_meta(until, node)?;
        if !(1..=PATH_MAX as u64).contains(&meta.size) {
            return Err(Errno::EIO);
        }
        let body = self.store.read(until, &self.key_of(node.id)?, &meta, 0..meta.size).map_err(gone)?;
        let body = body.ok_or(Errno::ESTALE)?.to_vec();
        if body.contains(&0) { Err(Errno::EIO) } else { Ok(body.into()) }
    }

    /// Returns whether a rename has moved a file away from `key`: a request for `key` then fails
    /// with `ENOENT`.
    fn has_moved(&self, node: &Node, key: &Key) -> Result<bool, Errno> {
        Ok(self.key_of(node.id)? != *key)
    }

    /// Requests the attributes of a file's object.
    fn fetch(&self, until: Deadline, node: &Node) -> Result<(), Errno> {
        let key = self.key_of(node.id)?;
        let began = Instant::now();
        let is_it = |found: &Found| node.is_dir || matches!(found, Found::File(Some(_)));
        if let Some(found) = self.store.stat(until, &key)?.filter(is_it) {
            // A link may be another one.
            if node.kind == Kind::Link && node.facts().is_other(&found) {
                return Err(Errno::ESTALE);
            }
            node.learn(&found, began);
            return Ok(());
        }
        if self.has_moved(node, &key)? {
            return self.fetch(until, node);
        }
        node.facts().lost(began);
        Err(Errno::ESTALE)
    }

    /// Returns the attributes of a node. Requests them if they are not valid.
    pub(crate) fn current_attr(&self, until: Deadline, node: &Node) -> Result<Attr, Errno> {
        let is_known = {
            let facts = node.facts();
            let is_fixed = node.is_dir && (node.id == ROOT || !self.store.keeps);
            is_fixed || facts.is_nameless || self.is_known(&facts)
        };
        if !is_known && let Err(errno) = self.fetch(until, node) {
            // If it lost its name meanwhile, the node has its last attributes.
            if !node.facts().is_nameless {
                return Err(errno);
            }
        }
        let facts = node.facts();
        Ok(self.attr(node, &facts))
    }

    pub(crate) fn read_at(
        &self,
        until: Deadline,
        file: &Open<'_>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize, Errno> {
        let node = self.node(file.inode)?;
        for _ in 0..TRIES {
            if node.facts().local.is_some()
                && let Some(buffer) = node.content(until)?.as_mut()
            {
                return self.read_buffer(until, &node, file, buffer, offset, buf);
            }
            match self.read_object(until, &node, file, offset, buf) {
                Ok(Some(read)) => return Ok(read),
                Ok(None) => {}
                // It lost its name meanwhile, and has its contents in the buffer.
                Err(_) if node.facts().local.is_some() => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::EAGAIN)
    }

    /// Reads from a buffer and, where the stored object shows through, from the object.
    fn read_buffer(
        &self,
        until: Deadline,
        node: &Node,
        file: &Open<'_>,
        buffer: &mut Buffer,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<usize, Errno> {
        let mut done = 0;
        for piece in buffer.pieces(offset..offset.saturating_add(buf.len() as u64)) {
            let (Piece::Own(range) | Piece::Base(range)) = &piece;
            let into = &mut buf[done..][..(range.end - range.start) as usize];
            done += into.len();
            match (&piece, &buffer.origin) {
                (Piece::Base(range), Some((meta, version))) => {
                    let key = self.key_of(node.id)?;
                    let own = Reader::default();
                    let reader = file.state.get::<Reader>().unwrap_or(&own);
                    let read = reader.read(self, until, node, (&key, meta, *version), range.start, into);
                    read.map_err(gone)?.ok_or(Errno::ESTALE)?;
                }
                _ => buffer.read_own(range.start, into)?,
            }
        }
        Ok(done)
    }

    /// Reads from the object. Returns `Ok(None)` if the object has changed, or has moved.
    fn read_object(
        &self,
        until: Deadline,
        node: &Node,
        file: &Open<'_>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>, Errno> {
        let (meta, version) = self.known_meta(until, node)?;
        let key = self.key_of(node.id)?;
        let own = Reader::default();
        let reader = file.state.get::<Reader>().unwrap_or(&own);
        match reader.read(self, until, node, (&key, &meta, version), offset, buf) {
            Ok(None) => {
                // Another program replaced the object.
                node.facts().fetched = None;
                file.inode.mark_stale();
                self.fetch(until, node)?;
                Ok(None)
            }
            Err(Errno::ENOENT) if self.has_moved(node, &key)? => Ok(None),
            read => read.map_err(gone),
        }
    }

    pub(crate) fn write_at(
        &self,
        request: &Request,
        inode: &Inode,
        at: Position,
        data: &[u8],
    ) -> Result<Written, Errno> {
        let (node, until) = (self.node(inode)?, Deadline::of(request));
        let mut content = node.content(until)?;
        let buffer = self.load(until, &node, &mut content)?;
        let offset = if let Position::End(_) = at { buffer.len() } else { at.offset() };
        buffer.write(offset, data)?;
        let size = buffer.len();
        let mut facts = node.facts();
        let kept = facts.local.map_or(facts.kept, |local| local.kept).written(request.now());
        facts.local = Some(Local { size, kept });
        drop(facts);
        let end = matches!(at, Position::End(_)).then_some(offset + data.len() as u64);
        Ok(Written { end, ..Written::new(data.len(), size.div_ceil(512)) })
    }

    pub(crate) fn resize(&self, request: &Request, inode: &Inode, len: u64) -> Result<u64, Errno> {
        self.change(request, inode, len == 0, |buffer, kept| {
            buffer.set_len(len)?;
            Ok(kept.written(request.now()))
        })?;
        Ok(len.div_ceil(512))
    }

    /// Changes the buffer of a file, and writes the buffer if no open of the file writes. With
    /// `is_new`, does not load the old contents.
    fn change(
        &self,
        request: &Request,
        inode: &Inode,
        is_new: bool,
        act: impl FnOnce(&mut Buffer, Kept) -> Result<Kept, Errno>,
    ) -> Result<(), Errno> {
        let (node, until) = (self.node(inode)?, Deadline::of(request));
        let _stays = self.stay(until)?;
        let mut content = node.content(until)?;
        if is_new && content.is_none() {
            let is_known = {
                let facts = node.facts();
                facts.is_nameless || !self.store.keeps || self.is_known(&facts)
            };
            if !is_known {
                self.fetch(until, &node)?;
            }
            let mut empty = self.store.buffer(0);
            // A file that was just made is empty in the store, too.
            empty.is_dirty = node.facts().meta.as_ref().is_none_or(|meta| meta.size > 0);
            *content = Some(empty);
        }
        let done = self.load(until, &node, &mut content).and_then(|buffer| {
            let mut facts = node.facts();
            let kept = act(buffer, facts.local.map_or(facts.kept, |local| local.kept))?;
            facts.local = Some(Local { size: buffer.len(), kept });
            Ok(facts.writers > 0 || facts.is_nameless)
        });
        match done {
            Ok(true) => Ok(()),
            done => {
                let saved = done.and_then(|_| self.upload(until, &node, &mut content));
                self.drop_unused(&node, &mut content);
                inode.mark_stale();
                saved
            }
        }
    }

    /// Writes the object of a file once more, with new attributes.
    pub(crate) fn rewrite(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<(), Errno> {
        self.change(request, inode, false, |buffer, kept| {
            buffer.is_dirty = true;
            Ok(kept.changed(set, request.now()))
        })
    }
}
