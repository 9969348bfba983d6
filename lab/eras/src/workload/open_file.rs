//! A process with one file open, which it closes when it ends.

use crate::era::{Era, Handle, Process, Result};

/// A private process and its one open file.
pub(super) struct OpenFile<'era> {
    process: Box<dyn Process + 'era>,
    /// There until the drop.
    handle: Option<Handle>,
}

impl<'era> OpenFile<'era> {
    /// Returns a new process of `era` that opens `path`.
    pub(super) fn new(era: &'era dyn Era, path: &str) -> Result<Self> {
        let process = era.process();
        let handle = process.open(path.as_bytes())?;
        Ok(Self { process, handle: Some(handle) })
    }

    /// `process` with its open file `handle`.
    pub(super) fn of(process: Box<dyn Process + 'era>, handle: Handle) -> Self {
        Self { process, handle: Some(handle) }
    }

    pub(super) fn process(&self) -> &dyn Process {
        &*self.process
    }

    /// Does something to the open file.
    pub(super) fn with<T>(&self, act: impl FnOnce(&dyn Process, &Handle) -> Result<T>) -> Result<T> {
        match &self.handle {
            Some(handle) => act(&*self.process, handle),
            None => Err(crate::era::Error::NoEntry),
        }
    }
}

impl Drop for OpenFile<'_> {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.process.close(handle);
        }
    }
}
