//! Notices: messages to the kernel that answer no request. Here are their bodies.
//!
//! # Where it comes from
//! `enum fuse_notify_code`; `fuse_notify` in Linux's `fs/fuse/dev.c`.

use super::abi::{NotifyDeleteOut, NotifyInvalEntryOut, NotifyInvalInodeOut, NotifyPruneOut, NotifyRetrieveOut};
use zerocopy::IntoBytes;

/// Attributes, pages and listings of a node are stale: [`inode`].
pub const INVAL_INODE: i32 = 2;
/// A name is stale: [`entry`].
pub const INVAL_ENTRY: i32 = 3;
/// The kernel should send data that it has cached, as a request NOTIFY_REPLY: [`retrieve`].
pub const RETRIEVE: i32 = 5;
/// A file was removed: [`deleted`].
pub const DELETE: i32 = 6;
/// The kernel should forget nodes that nothing uses (Linux 6.18): [`nodes`].
pub const PRUNE: i32 = 9;

/// Flag of [`INVAL_ENTRY`] (Linux 6.2): the kernel looks the name up before it uses it again, and does nothing else.
pub const EXPIRE_ONLY: u32 = 1;

/// Returns the body of [`INVAL_INODE`] for `len` bytes of the data of `ino` from `off` on. `len` 0
/// means all bytes up to the end. A negative `off` means only the attributes.
#[must_use]
pub fn inode(ino: u64, off: i64, len: i64) -> Vec<u8> {
    NotifyInvalInodeOut { ino, off, len }.as_bytes().to_vec()
}

/// Returns the body of [`INVAL_ENTRY`] for `name` in the directory `parent`.
#[must_use]
pub fn entry(parent: u64, name: &[u8], flags: u32) -> Vec<u8> {
    let namelen = u32::try_from(name.len()).unwrap_or(u32::MAX);
    [NotifyInvalEntryOut { parent, namelen, flags }.as_bytes(), name, b"\0"].concat()
}

/// Returns the body of [`DELETE`] for the node `child`, which had the name `name` in the directory
/// `parent`, and no other name. The kernel drops the name, unmounts a mount there, and treats the
/// file as a file without names, so that the watchers of the file are notified.
#[must_use]
pub fn deleted(parent: u64, child: u64, name: &[u8]) -> Vec<u8> {
    let namelen = u32::try_from(name.len()).unwrap_or(u32::MAX);
    [NotifyDeleteOut { parent, child, namelen, padding: 0 }.as_bytes(), name, b"\0"].concat()
}

/// Returns the body of [`RETRIEVE`] that requests none of the data of `node`. The request that the
/// kernel then sends has the number `unique`. This number must be even, and must differ from the
/// number of every other request under way.
#[must_use]
pub fn retrieve(node: u64, unique: u64) -> Vec<u8> {
    NotifyRetrieveOut { notify_unique: unique, nodeid: node, ..NotifyRetrieveOut::default() }.as_bytes().to_vec()
}

/// Returns the body of [`PRUNE`] for the nodes `ids`.
#[must_use]
pub fn nodes(ids: &[u64]) -> Vec<u8> {
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
    [NotifyPruneOut { count, ..NotifyPruneOut::default() }.as_bytes(), ids.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_those_of_linux_fuse_h() {
        let expected = [&7u64.to_ne_bytes()[..], &3u32.to_ne_bytes(), &1u32.to_ne_bytes(), b"abc\0"].concat();
        assert_eq!(entry(7, b"abc", EXPIRE_ONLY), expected);
        let expected = [7u64.to_ne_bytes(), (-1i64).to_ne_bytes(), 5u64.to_ne_bytes()].concat();
        assert_eq!(inode(7, -1, 5), expected);
        let expected = [&7u64.to_ne_bytes()[..], &9u64.to_ne_bytes(), &3u32.to_ne_bytes(), &[0; 4], b"abc\0"].concat();
        assert_eq!(deleted(7, 9, b"abc"), expected);
        let expected = [&2u32.to_ne_bytes()[..], &[0; 12], &5u64.to_ne_bytes(), &6u64.to_ne_bytes()].concat();
        assert_eq!(nodes(&[5, 6]), expected);
        let expected = [8u64.to_ne_bytes(), 1u64.to_ne_bytes(), [0; 8], [0; 8]].concat();
        assert_eq!(retrieve(1, 8), expected);
    }
}
