//! Extensions: what the kernel appends to a request that makes a file, after its names.
//!
//! # What it is not
//! Trusted: each length is checked against the bytes that are there. What does not fit makes the request malformed. Kinds that
//! are not known here are skipped.
//!
//! # Where it comes from
//! `struct fuse_ext_header` in `linux/fuse.h`; `get_create_ext` in Linux's `fs/fuse/dir.c`.

use super::abi::{ExtHeader, SuppGroups, ext};
use zerocopy::FromBytes;

/// The extensions of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extensions {
    /// The group of the directory, if it is a supplementary group of the caller: with
    /// [`InitFlags::CREATE_SUPP_GROUP`](super::init::InitFlags::CREATE_SUPP_GROUP).
    pub group: Option<u32>,
}

impl Extensions {
    /// Reads all of `bytes`. `None`: they are malformed.
    pub(super) fn parse(mut bytes: &[u8]) -> Option<Self> {
        let mut all = Self::default();
        while !bytes.is_empty() {
            let (header, _) = ExtHeader::read_from_prefix(bytes).ok()?;
            let size = usize::try_from(header.size).ok().filter(|size| size.is_multiple_of(8))?;
            let (extension, rest) = bytes.split_at_checked(size)?;
            let content = extension.get(size_of::<ExtHeader>()..)?;
            if header.kind == ext::GROUPS {
                all.group = group(content)?;
            }
            bytes = rest;
        }
        Some(all)
    }
}

/// The first of the groups; Linux sends one.
fn group(content: &[u8]) -> Option<Option<u32>> {
    let (groups, list) = SuppGroups::read_from_prefix(content).ok()?;
    let list = list.get(..usize::try_from(groups.nr_groups).ok()?.checked_mul(size_of::<u32>())?)?;
    Some(u32::read_from_prefix(list).ok().map(|(group, _)| group))
}
