//! A [`testkit::Store`] that logs its requests.

use core::ops::Deref;
use lightfoot_vfs::{Errno, Inode, OpenFlags};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use testkit::{Call, StoreOptions};

/// The root's node.
pub(crate) const ROOT: u64 = testkit::Store::ROOT;

/// A request about an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileRequest {
    Opened(u64, OpenFlags),
    Released(u64, OpenFlags),
}

#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Calls of `attributes`.
    pub(crate) attribute_requests: u32,
    /// Calls of `read_dir`.
    pub(crate) listings: u32,
    /// The error that `attributes` fails with.
    pub(crate) attributes_error: Option<Errno>,
    /// The error that `open` fails with.
    pub(crate) open_error: Option<Errno>,
    /// The error that `set_len` fails with.
    pub(crate) set_len_error: Option<Errno>,
    /// Nodes that `open` finds gone.
    pub(crate) stale: Vec<u64>,
    pub(crate) file_requests: Vec<FileRequest>,
    /// Modes that `set_attr` was called with, with the node.
    pub(crate) modes: Vec<(u64, u32)>,
}

impl Log {
    fn enter(&mut self, call: &Call<'_>) -> Result<(), Errno> {
        let error = match *call {
            Call::Attributes { .. } => {
                self.attribute_requests += 1;
                self.attributes_error
            }
            Call::ReadDir { .. } => {
                self.listings += 1;
                None
            }
            Call::SetAttr { inode, set } => {
                self.modes.extend(set.mode.map(|mode| (inode.node(), mode)));
                None
            }
            Call::SetLen { .. } => self.set_len_error,
            Call::Open { inode, flags } => {
                if self.open_error.is_none() {
                    self.file_requests.push(FileRequest::Opened(inode.node(), flags));
                }
                self.open_error.or(self.stale.contains(&inode.node()).then_some(Errno::ESTALE))
            }
            Call::Release { inode, flags } => {
                self.file_requests.push(FileRequest::Released(inode.node(), flags));
                None
            }
            _ => None,
        };
        error.map_or(Ok(()), Err)
    }
}

/// A handle.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    store: testkit::Store,
    log: Arc<Mutex<Log>>,
}

impl Deref for Store {
    type Target = testkit::Store;

    fn deref(&self) -> &testkit::Store {
        &self.store
    }
}

impl Store {
    pub(crate) fn new(options: StoreOptions) -> Self {
        let this = Self { store: testkit::Store::new(options), log: Arc::default() };
        let log = this.log.clone();
        this.store.before(move |call| {
            // `sync` marks the attributes stale, so that a test can do so.
            if let Call::Sync { inode } = call {
                inode.mark_stale();
            }
            log.lock().unwrap().enter(call)
        });
        this
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }

    /// Has `during` done inside of the next request for attributes, after its answer was determined.
    pub(crate) fn once_during(&self, during: impl FnOnce(&Inode) + Send + 'static) {
        let during = Mutex::new(Some(during));
        self.store.after(move |call| {
            if let Call::Attributes { inode } = call {
                let during = during.lock().unwrap().take();
                during.into_iter().for_each(|during| during(inode));
            }
            Ok(())
        });
    }

    /// The requests about open files since the last call.
    pub(crate) fn take_file_requests(&self) -> Vec<FileRequest> {
        core::mem::take(&mut self.log().file_requests)
    }
}

/// Has `during` done inside of the first request that `is_wanted`, after its answer was determined.
pub(crate) fn once(
    store: &testkit::Store,
    is_wanted: impl Fn(&Call<'_>) -> bool + Send + Sync + 'static,
    during: impl Fn() + Send + Sync + 'static,
) {
    let is_done = AtomicBool::new(false);
    store.after(move |call| {
        if is_wanted(call) && !is_done.swap(true, Relaxed) {
            during();
        }
        Ok(())
    });
}
