//! Errors that the administrator must hear of, each logged once with its cure.
//!
//! # What it is
//! A program that gets `ENOSPC` or `EMFILE` reports a number; the administrator can remove the
//! cause. So the first reply with such an error writes a line to the log. Later ones are only
//! counted ([`crate::Metrics`]).
//!
//! # What it is not
//! A log of all errors: most are answers (`ENOENT`), or about one file (`EACCES`).
//!
//! # Where it comes from
//! `printk_once` of Linux.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use vfs::Errno;

/// The errors: the event, and the cure.
const CURES: [(Errno, &str, &str); 6] = [
    (
        Errno::ENOSPC,
        "the storage is full",
        "free space or inodes on the source; for a tree in memory, mount with a larger size or nr_inodes",
    ),
    (
        Errno::EDQUOT,
        "a quota is used up",
        "free space, or raise the quota of the user or the group on the source; for a tree in memory, mount with a larger \
         usrquota_block_hardlimit or usrquota_inode_hardlimit",
    ),
    (
        Errno::EMFILE,
        "the descriptors of this process, or the share of one user, are in use",
        "close files, or raise the limit: LimitNOFILE= in a systemd unit, ulimit -n in a shell",
    ),
    (Errno::ENFILE, "the descriptors of the machine are in use", "close files, or raise the sysctl fs.file-max"),
    (Errno::ENOMEM, "memory is used up, or the cache is full of names in use", "free memory, or raise max_names"),
    (Errno::EIO, "the source could not be read or written", "look for errors of its disk or server: dmesg"),
];

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Cures {
    /// The errors that were logged, by their place in [`CURES`].
    logged: AtomicU32,
}

impl Cures {
    /// Notes that a request failed.
    pub(crate) fn note(&self, request: &str, errno: Errno) {
        let Some(place) = CURES.iter().position(|(known, ..)| *known == errno) else { return };
        let bit = 1 << place;
        // Relaxed: of two threads, one sets the bit.
        if self.logged.load(Relaxed) & bit == 0 && self.logged.fetch_or(bit, Relaxed) & bit == 0 {
            let (_, what, cure) = CURES[place];
            tracing::error!(request, errno = errno.name(), "{what} ({cure}); logged once");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;
    use tracing::field::{Field, Visit};
    use tracing::{Event, Metadata, Subscriber, span};

    /// Keeps the messages.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl Visit for Log {
        fn record_debug(&mut self, field: &Field, value: &dyn core::fmt::Debug) {
            if field.name() == "message" {
                self.0.lock().push(format!("{value:?}"));
            }
        }
    }

    impl Subscriber for Log {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    #[test]
    fn an_error_with_a_cure_is_logged_once() {
        let log = Log::default();
        let cures = Cures::default();
        tracing::subscriber::with_default(log.clone(), || {
            for errno in [Errno::ENOENT, Errno::ENOSPC, Errno::EMFILE, Errno::ENOSPC, Errno::EACCES, Errno::EMFILE] {
                cures.note("write", errno);
            }
        });
        let lines = log.0.lock();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].contains("storage is full (free space") && lines[1].contains("LimitNOFILE="), "{lines:?}");
    }
}
