//! The extended attributes of one file: names and values.
//!
//! # What it is not
//! A check of names and permissions: the VFS has done that. An ACL is a value like any other.
//!
//! # How it is locked
//! By the caller.

use std::collections::BTreeMap;
use vfs::{Errno, SetXattr};

/// Bytes that an attribute counts besides its name and its value.
const OVERHEAD: u64 = 64;

/// Names with their values.
#[derive(Debug, Default)]
pub(crate) struct Xattrs {
    values: BTreeMap<Box<[u8]>, Box<[u8]>>,
    /// Bytes that they count together.
    bytes: u64,
}

impl Xattrs {
    /// Returns the bytes for which all attributes are charged.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the value of `name`: `ENODATA`.
    pub(crate) fn get(&self, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.values.get(name).cloned().ok_or(Errno::ENODATA)
    }

    /// Returns the value of [`Xattrs::bytes`] after setting `name`: `EEXIST`, `ENODATA`, depending
    /// on `how`.
    pub(crate) fn bytes_with(&self, name: &[u8], value: &[u8], how: SetXattr) -> Result<u64, Errno> {
        let old = self.values.get(name);
        match (how, old) {
            (SetXattr::Create, Some(_)) => Err(Errno::EEXIST),
            (SetXattr::Replace, None) => Err(Errno::ENODATA),
            _ => Ok(self.bytes - old.map_or(0, |old| cost(name, old)) + cost(name, value)),
        }
    }

    pub(crate) fn set(&mut self, name: &[u8], value: &[u8]) {
        let old = self.values.insert(name.into(), value.into());
        self.bytes = self.bytes - old.map_or(0, |old| cost(name, &old)) + cost(name, value);
    }

    /// Removes `name`: `ENODATA`.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Result<(), Errno> {
        let old = self.values.remove(name).ok_or(Errno::ENODATA)?;
        self.bytes -= cost(name, &old);
        Ok(())
    }

    pub(crate) fn names(&self) -> Vec<Box<[u8]>> {
        self.values.keys().cloned().collect()
    }
}

/// Returns the bytes for which one attribute is charged.
fn cost(name: &[u8], value: &[u8]) -> u64 {
    OVERHEAD + name.len() as u64 + value.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_what_was_set_last() {
        let mut xattrs = Xattrs::default();
        assert_eq!(xattrs.get(b"user.a"), Err(Errno::ENODATA));
        assert_eq!(xattrs.bytes_with(b"user.a", b"1", SetXattr::Replace), Err(Errno::ENODATA));
        for (how, value) in [(SetXattr::Create, &b"one"[..]), (SetXattr::Any, b"thirteen"), (SetXattr::Replace, b"")] {
            let bytes = xattrs.bytes_with(b"user.a", value, how);
            xattrs.set(b"user.a", value);
            assert_eq!(xattrs.get(b"user.a").as_deref(), Ok(value));
            assert_eq!(Ok(xattrs.bytes()), bytes);
        }
        assert_eq!(xattrs.bytes_with(b"user.a", b"1", SetXattr::Create), Err(Errno::EEXIST));
        xattrs.set(b"trusted.b", b"2");
        assert_eq!(xattrs.names(), [b"trusted.b"[..].into(), Box::<[u8]>::from(&b"user.a"[..])]);
    }

    #[test]
    fn a_removed_attribute_counts_nothing() {
        let mut xattrs = Xattrs::default();
        xattrs.set(b"user.a", b"1");
        xattrs.set(b"user.b", &[0; 100]);
        assert_eq!(xattrs.remove(b"user.b"), Ok(()));
        assert_eq!(xattrs.remove(b"user.b"), Err(Errno::ENODATA));
        assert_eq!(xattrs.bytes(), OVERHEAD + 7);
        assert_eq!(xattrs.remove(b"user.a"), Ok(()));
        assert_eq!((xattrs.bytes(), xattrs.names().len()), (0, 0));
    }
}
