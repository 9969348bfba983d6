//! Labels of security modules (SELinux, Smack), which the kernel gives with a request that makes a file.
//!
//! # What it is
//! Extended attributes that are set after the file was made, and before the reply. If one cannot be set, the file is removed again,
//! and the request fails. Another user of the tree can see the file without its label meanwhile. The kernel of the mount cannot: it
//! learns of the file by the reply, and no other request for the name comes before.
//!
//! # Where it comes from
//! `FUSE_SECURITY_CTX` in `linux/fuse.h`; `get_security_context` in Linux's `fs/fuse/dir.c`.

use super::{Entry, NameIn, Opened, Session};
use vfs::{Base, Errno, OwnedPlace, SetXattr};

/// The names that labels have.
const NAMESPACE: &[u8] = b"security.";

impl Session {
    /// Sets labels, names and values of extended attributes, of the new file `made`, which has the name `at`. Without
    /// [`SessionOptions::labels`](crate::SessionOptions::labels) it sets none.
    ///
    /// # Errors
    /// `EINVAL`: the name of a label is not in the namespace `security.`; those of [`vfs::Context::set_xattr`]. Then the file is
    /// removed, and its lookup is taken back.
    pub fn label<'l>(
        &self,
        at: NameIn<'_>,
        made: Entry,
        labels: impl Iterator<Item = (&'l [u8], &'l [u8])>,
    ) -> Result<Entry, Errno> {
        if !self.options.labels {
            return Ok(made);
        }
        let held = self.node(made.node)?;
        self.set_labels(&held, made, labels).inspect_err(|_| {
            self.remove_made(at, &held);
            self.forget(made.node, 1);
        })
    }

    /// The same for a new file that is open; `at`: its name, if it has one.
    ///
    /// # Errors
    /// As for [`label`](Self::label). The file is closed, too.
    pub fn label_opened<'l>(
        &self,
        at: Option<NameIn<'_>>,
        (made, opened): (Entry, Opened),
        labels: impl Iterator<Item = (&'l [u8], &'l [u8])>,
    ) -> Result<(Entry, Opened), Errno> {
        if !self.options.labels {
            return Ok((made, opened));
        }
        let held = self.node(made.node)?;
        let labelled = self.set_labels(&held, made, labels).inspect_err(|_| {
            at.into_iter().for_each(|at| self.remove_made(at, &held));
            self.release(opened.handle);
            self.forget(made.node, 1);
        });
        Ok((labelled?, opened))
    }

    fn set_labels<'l>(
        &self,
        held: &OwnedPlace,
        made: Entry,
        labels: impl Iterator<Item = (&'l [u8], &'l [u8])>,
    ) -> Result<Entry, Errno> {
        let mut labels = labels.peekable();
        if labels.peek().is_none() {
            return Ok(made);
        }
        for (name, value) in labels {
            if !name.starts_with(NAMESPACE) {
                return Err(Errno::EINVAL);
            }
            self.callers.everyone().set_xattr_held(held, name, value, SetXattr::Any)?;
        }
        // It has another time of change now.
        let (attr, _) = self.shown_of(made.node, held, held.attr_anew()?);
        Ok(Entry { attr, ..made })
    }

    /// Removes the name of the file `held`, which was just made, unless it leads elsewhere by now.
    fn remove_made(&self, at: NameIn<'_>, held: &OwnedPlace) {
        let context = self.callers.everyone();
        let removed = self.node(at.parent).and_then(|dir| {
            let dir = Base::at(&dir);
            if context.hold(dir, at.name, false)?.identity() != held.identity() {
                return Ok(());
            }
            if held.is_dir() { context.rmdir(dir, at.name) } else { context.unlink(dir, at.name) }
        });
        if let Err(error) = removed {
            tracing::warn!(%error, "a new file whose label could not be stored stays");
        }
    }
}
