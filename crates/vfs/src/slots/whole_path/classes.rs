//! Classes of credentials: for whom a path through closed directories was recorded.
//!
//! # What it is
//! Whether a walk may search a directory follows from the credentials and from the directory's
//! mode, owner and ACL. So a path that not everyone may walk is recorded for a *class*: all
//! contexts with equal credentials. A class has a secret random number, which is a part of the
//! signatures of its entries; a context of another class computes other signatures and does not
//! find them. To change credentials is to change the class, and makes no entry useless.
//!
//! # How it is locked
//! `known` by its lock, a leaf. A class does not change, but for a flag.
//!
//! # Limitations
//! A tree has [`MAX_SCANNED`] classes that contexts use. Credentials beyond them have none, and
//! their paths through closed directories are walked.
//!
//! # Where it comes from
//! In place of the prefix check cache of Tsai and others (SOSP '15).

use crate::base::access::credentials::Credentials;
use core::ops::Deref;
use prim::atomic::{AtomicBool, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;
use std::collections::BTreeMap;
use sync::Mutex;
use sync::signature_table::Signature;

/// The most classes of a tree.
pub(super) const MAX_SCANNED: usize = if cfg!(test) { 8 } else { 1024 };

/// See the [module documentation](self).
pub(crate) struct Class {
    cred: Credentials,
    secret: u128,
    has_entries: AtomicBool,
    has_followed: AtomicBool,
}

impl Class {
    /// Returns the signature of a path for this class, from that for everyone.
    pub(crate) fn sign(&self, open: Signature) -> Signature {
        open.of_group(self.secret)
    }

    /// Returns whether a path was recorded for this class.
    pub(crate) fn has_entries(&self) -> bool {
        // Relaxed: a hint.
        self.has_entries.load(Relaxed)
    }

    /// Returns whether a path that ends at a link which is followed was recorded for this class.
    pub(crate) fn has_followed(&self) -> bool {
        // Relaxed: a hint.
        self.has_followed.load(Relaxed)
    }

    /// Notes that a path is recorded for this class.
    pub(crate) fn note_entry(&self, is_followed: bool) {
        if !self.has_entries() {
            // Relaxed: a hint.
            self.has_entries.store(true, Relaxed);
        }
        if is_followed && !self.has_followed() {
            // Relaxed: a hint.
            self.has_followed.store(true, Relaxed);
        }
    }
}

/// Credentials with their class. The two cannot be changed apart.
#[derive(Clone)]
pub(crate) struct Classed {
    cred: Credentials,
    class: Option<Arc<Class>>,
}

impl Classed {
    /// `class` is the class of `cred`.
    pub(super) fn new(cred: Credentials, class: Option<Arc<Class>>) -> Self {
        debug_assert!(class.as_ref().is_none_or(|class| class.cred == cred));
        Self { cred, class }
    }

    pub(crate) fn class(&self) -> Option<&Class> {
        self.class.as_deref()
    }
}

impl Deref for Classed {
    type Target = Credentials;

    #[inline(always)]
    fn deref(&self) -> &Credentials {
        &self.cred
    }
}

/// Returns a random number that is added to the signatures of some paths.
pub(super) fn secret() -> u128 {
    u128::from(prim::seed::random_u64()) << 64 | u128::from(prim::seed::random_u64())
}

/// The classes of a tree.
#[derive(Default)]
pub(super) struct Classes {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    len: usize,
    /// By user and group.
    classes: BTreeMap<(u32, u32), Vec<Arc<Class>>>,
}

impl Classes {
    /// Returns the class of `cred`. `None`: there are too many.
    pub(super) fn of(&self, cred: &Credentials) -> Option<Arc<Class>> {
        let mut known = self.known.lock();
        let alike = known.classes.get(&(cred.uid, cred.gid));
        if let Some(class) = alike.and_then(|alike| alike.iter().find(|class| class.cred == *cred)) {
            return Some(class.clone());
        }
        if known.len >= MAX_SCANNED {
            known.forget_unused();
        }
        if known.len >= MAX_SCANNED {
            return None;
        }
        let class = Arc::new(Class {
            cred: cred.clone(),
            secret: secret(),
            has_entries: AtomicBool::new(false),
            has_followed: AtomicBool::new(false),
        });
        known.len += 1;
        known.classes.entry((cred.uid, cred.gid)).or_default().push(class.clone());
        Some(class)
    }

    pub(super) fn len(&self) -> usize {
        self.known.lock().len
    }
}

impl Known {
    /// Removes the classes that no context has. (Their entries are never found again: the next
    /// class of the same credentials has another secret.)
    fn forget_unused(&mut self) {
        // A count of one is this table's own; only `Classes::of`, which has the lock, makes another from it.
        self.classes.values_mut().for_each(|alike| alike.retain(|class| Arc::strong_count(class) > 1));
        self.classes.retain(|_, alike| !alike.is_empty());
        self.len = self.classes.values().map(Vec::len).sum();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::access::credentials::Capabilities;
    use sync::SignatureTable;

    fn user(uid: u32, groups: &[u32]) -> Credentials {
        Credentials::user(uid, 100, groups)
    }

    #[test]
    fn equal_credentials_have_one_class_and_all_others_another() {
        let classes = Classes::default();
        let mut capable = user(1, &[]);
        capable.capabilities = Capabilities::DAC_READ_SEARCH;
        let other_group = Credentials::user(1, 101, &[]);
        let all = [user(1, &[]), user(2, &[]), user(1, &[7]), user(1, &[7, 8]), capable, other_group];
        let table = SignatureTable::new(128).unwrap();
        let open = table.sign(64, b"a/b").unwrap();
        let sign = |cred: &Credentials| classes.of(cred).unwrap().sign(open);
        for (number, cred) in all.iter().enumerate() {
            for (other, cred_of_other) in all.iter().enumerate() {
                assert_eq!(sign(cred) == sign(cred_of_other), number == other, "{cred:?} {cred_of_other:?}");
            }
            assert!(sign(cred) != open);
        }
        assert_eq!(classes.len(), all.len());
    }

    #[test]
    fn too_many_credentials_have_no_class_until_others_end() {
        let classes = Classes::default();
        let mut used: Vec<_> = (0..MAX_SCANNED as u32).map(|uid| classes.of(&user(uid, &[])).unwrap()).collect();
        assert!(classes.of(&user(5000, &[])).is_none());
        assert!(Arc::ptr_eq(&classes.of(&user(3, &[])).unwrap(), &used[3]));
        let old = used.remove(0).secret;
        assert!(classes.of(&user(5000, &[])).is_some());
        assert_eq!(classes.len(), MAX_SCANNED);
        assert!(classes.of(&user(0, &[])).is_some_and(|class| class.secret != old));
    }
}
