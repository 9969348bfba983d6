//! Labels of security modules (SELinux, Smack), which the kernel gives with a request that makes a file.
//!
//! # What it is
//! Extended attributes that the file has from its beginning on. If the file system cannot store one
//! of them, the file is not made, and the request fails. A file system that stores them by a
//! further call (a host directory) shows the file without them for a moment to others. The kernel
//! of the mount does not see that moment: it receives the file with the reply.
//!
//! # Where it comes from
//! `FUSE_SECURITY_CTX` in `linux/fuse.h`; `get_security_context` in Linux's `fs/fuse/dir.c`.

use super::{Caller, NewMode, Session};
use vfs::{Errno, Labels};

/// The names that labels have.
const NAMESPACE: &[u8] = b"security.";

impl Session {
    /// Returns `new` as `caller` may have it: without special bits that it may not give, and with
    /// the labels that are stored.
    ///
    /// # Errors
    /// `EOVERFLOW`: the caller is unknown, so that the file would have no owner. As for [`labels`](Self::labels).
    pub(super) fn permitted<'l>(&self, caller: &Caller, new: NewMode<'l>) -> Result<NewMode<'l>, Errno> {
        if !self.callers.act_as_one() {
            caller.who.maker()?;
        }
        Ok(NewMode { mode: self.new_mode(caller, new.mode), labels: self.labels(new.labels)?, ..new })
    }

    /// Returns the part of `labels` that a new file gets: all, or none without
    /// [`SessionOptions::labels`](crate::SessionOptions::labels).
    ///
    /// # Errors
    /// `EINVAL`: the name of a label is not in the namespace `security.`. `EPERM`: the credentials with which the session acts may
    /// not set labels.
    pub(super) fn labels<'l>(&self, labels: Labels<'l>) -> Result<Labels<'l>, Errno> {
        if !self.options.labels || labels.is_empty() {
            return Ok(&[]);
        }
        if labels.iter().any(|(name, _)| !name.starts_with(NAMESPACE)) {
            return Err(Errno::EINVAL);
        }
        if self.callers.may_label() { Ok(labels) } else { Err(Errno::EPERM) }
    }
}
