//! Extensions, which the kernel appends to a request that makes a file, after its names.
//!
//! # What it is not
//! Trusted: each length is checked against the bytes that are there. An extension that does not fit
//! makes the request malformed. Unknown kinds are skipped.
//!
//! # Where it comes from
//! `struct fuse_ext_header` in `linux/fuse.h`; `get_create_ext` in Linux's `fs/fuse/dir.c`.

use super::abi::{ExtHeader, Secctx, SuppGroups, ext};
use zerocopy::FromBytes;

/// The extensions of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions<'m> {
    /// The group of the directory, if it is a supplementary group of the caller: with
    /// [`InitFlags::CREATE_SUPP_GROUP`](super::init::InitFlags::CREATE_SUPP_GROUP).
    pub group: Option<u32>,
    /// Extended attributes of the file: with [`InitFlags::SECURITY_CTX`](super::init::InitFlags::SECURITY_CTX).
    pub labels: Labels<'m>,
}

/// The largest kind of an extension that has labels: `FUSE_MAX_NR_SECCTX`.
const MAX_LABELS: u32 = 31;

/// Labels of security modules for a new file, as extended attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels<'m> {
    count: u32,
    bytes: &'m [u8],
}

impl<'m> Labels<'m> {
    /// Returns the `count` labels in `bytes`, or `None` if they do not fit into `bytes`.
    fn parse(count: u32, bytes: &'m [u8]) -> Option<Self> {
        let all = Self { count, bytes };
        (all.iter().count() == count as usize).then_some(all)
    }

    /// Returns the names and values of the labels, one after the other.
    pub fn iter(self) -> impl Iterator<Item = (&'m [u8], &'m [u8])> {
        let mut rest = self.bytes;
        (0..self.count).map_while(move |_| {
            let (label, after) = label(rest)?;
            rest = after;
            Some(label)
        })
    }
}

/// A name and a value.
type Label<'m> = (&'m [u8], &'m [u8]);

/// Returns the first label of `bytes`, and the bytes after this label.
fn label(bytes: &[u8]) -> Option<(Label<'_>, &[u8])> {
    let (head, names) = Secctx::read_from_prefix(bytes).ok()?;
    let end = names.iter().position(|byte| *byte == 0).filter(|end| *end != 0)?;
    let (name, value) = (names.get(..end)?, names.get(end + 1..)?);
    let value = value.get(..usize::try_from(head.size).ok()?)?;
    let len = (size_of::<Secctx>() + end + 1 + value.len()).next_multiple_of(8);
    Some(((name, value), bytes.get(len..)?))
}

impl<'m> Extensions<'m> {
    /// Reads all extensions in `bytes`. Returns `None` if `bytes` are malformed.
    pub(super) fn parse(mut bytes: &'m [u8]) -> Option<Self> {
        let mut all = Self::default();
        while !bytes.is_empty() {
            let (header, _) = ExtHeader::read_from_prefix(bytes).ok()?;
            let size = usize::try_from(header.size).ok().filter(|size| size.is_multiple_of(8))?;
            let (extension, rest) = bytes.split_at_checked(size)?;
            let content = extension.get(size_of::<ExtHeader>()..)?;
            match header.kind {
                ext::GROUPS => all.group = group(content)?,
                count @ ..=MAX_LABELS => all.labels = Labels::parse(count, content)?,
                _ => {}
            }
            bytes = rest;
        }
        Some(all)
    }
}

/// Returns the first group of the list in `content`, if the list is not empty; Linux sends one
/// group.
fn group(content: &[u8]) -> Option<Option<u32>> {
    let (groups, list) = SuppGroups::read_from_prefix(content).ok()?;
    let list = list.get(..usize::try_from(groups.nr_groups).ok()?.checked_mul(size_of::<u32>())?)?;
    Some(u32::read_from_prefix(list).ok().map(|(group, _)| group))
}
