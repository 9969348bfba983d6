//! Attributes that a change returned.
//!
//! # What it is
//! A file system that reports attributes may return, with a change, the attributes after it
//! ([`After`]): then the VFS does not request them. Before the call the VFS takes a sample of each
//! inode ([`SuperBlock::watch`]). It changes its copies of the attributes as after any change,
//! which marks the copies stale. At the end it replaces the copies by the call's result
//! ([`PreAttrs::post_attrs`]), if only this operation has marked the inode since the sample.
//! Otherwise another change or answer came meanwhile, in unknown order: the mark stays, and the
//! next reader requests the attributes.
//!
//! # How it is locked
//! No lock but the sequence lock of the inode. Each mark and each answer counts up a number in its
//! mode, under that lock. The number of marks that an operation makes is fixed.
//!
//! # Where it comes from
//! The attributes before and after an operation of NFS (`wcc_data`, RFC 1813).

use crate::cache::superblock::SuperBlock;
use crate::fs::{After, Returned};
use crate::slots::inode::{AttrSample, Inode, InodeRef};

/// A file of a change, and how many marks the operation makes on it.
pub(crate) type Part<'i> = Option<(&'i Inode, u32)>;

/// The files of a change.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Files<'i> {
    pub(crate) file: Part<'i>,
    pub(crate) dir: Part<'i>,
    pub(crate) new_dir: Part<'i>,
    pub(crate) target: Part<'i>,
}

/// Samples of the files of a change, if the file system returns attributes.
pub(crate) struct PreAttrs<'s>(Option<Box<Samples<'s>>>);

/// Samples in the order of [`Files`]. They keep the inodes alive.
struct Samples<'s> {
    sb: &'s SuperBlock,
    invalidations: u64,
    samples: [Option<Sample<'s>>; 4],
}

struct Sample<'s> {
    inode: InodeRef<'s>,
    before: AttrSample,
    marks: u32,
}

impl SuperBlock {
    /// Samples the files of a change before the call of the file system.
    #[inline(always)]
    pub(crate) fn pre_attrs<'s>(&'s self, files: Files<'s>) -> PreAttrs<'s> {
        if !self.fs_returns_attributes {
            return PreAttrs(None);
        }
        self.samples(files)
    }

    #[cold]
    #[inline(never)]
    fn samples<'s>(&'s self, files: Files<'s>) -> PreAttrs<'s> {
        let sample = |(inode, marks): (&'s Inode, u32)| Sample {
            inode: InodeRef::again(inode),
            before: inode.before_request(),
            marks,
        };
        let Files { file, dir, new_dir, target } = files;
        let samples = [file, dir, new_dir, target].map(|part| part.map(sample));
        PreAttrs(Some(Box::new(Samples { sb: self, invalidations: self.invalidations(), samples })))
    }
}

impl PreAttrs<'_> {
    /// No samples.
    pub(crate) const NONE: Self = Self(None);

    /// Notes the attributes that the change returned, after the operation has changed the VFS's copies.
    #[inline(always)]
    pub(crate) fn post_attrs(self, after: &After) {
        if let Some(samples) = self.0 {
            samples.post_attrs(after);
        }
    }
}

impl Samples<'_> {
    #[cold]
    #[inline(never)]
    fn post_attrs(&self, after: &After) {
        let Some(Returned { file, dir, new_dir, target }) = after.returned() else { return };
        for (sample, attr) in self.samples.iter().zip([file, dir, new_dir, target]) {
            if let (Some(Sample { inode, before, marks }), Some(attr)) = (sample, attr) {
                self.sb.learn_after(inode, attr, before, *marks, self.invalidations);
            }
        }
    }
}

impl Drop for Samples<'_> {
    fn drop(&mut self) {
        core::mem::take(&mut self.samples).into_iter().flatten().for_each(|sample| self.sb.put_inode(sample.inode));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::base::attr::{Attr, S_IFDIR, SetAttr};
    use crate::base::errno::Errno;
    use crate::fs::{After, Attributes, FileSystem, FsTraits, NameStore, NewInode, OwnNames, Request, Valid};
    use crate::mount::place::Base;
    use crate::slots::inode::Inode;
    use crate::{Context, Vfs};

    fn attr() -> Attr {
        Attr { mode: S_IFDIR | 0o755, ino: 1, nlink: 2, ..Attr::default() }
    }

    /// The time of validity of its root's attributes ends in each change.
    struct Aging {
        returns: bool,
    }

    impl FileSystem for Aging {
        fn root(&self) -> NewInode {
            NewInode { node: 1, attr: attr(), valid: Valid::For(3_600_000_000_000), ..NewInode::default() }
        }

        fn traits(&self) -> FsTraits {
            let attributes = Attributes::FileSystem { with_changes: true };
            FsTraits {
                names: NameStore::FileSystem(OwnNames { attributes, ..OwnNames::default() }),
                ..FsTraits::default()
            }
        }

        fn set_attr(&self, _: &Request, inode: &Inode, _: &SetAttr) -> Result<After, Errno> {
            inode.age();
            Ok(if self.returns { After::NONE.file(attr()) } else { After::NONE })
        }
    }

    #[test]
    fn attributes_that_were_returned_are_valid_from_then_on() {
        for returns in [true, false] {
            let context: Context = Vfs::new(Aging { returns }).context();
            let mode = SetAttr { mode: Some(0o755), ..SetAttr::default() };
            let root = context.hold(Base::CWD, b"/", true).unwrap();
            assert_eq!(context.set_attr(Base::CWD, b"/", true, &mode), Ok(()));
            assert_eq!(root.dentry().inode().unwrap().is_old(), !returns);
        }
    }

    #[test]
    fn a_reply_that_may_be_old_does_not_lengthen_the_time_of_newer_attributes() {
        let context: Context = Vfs::new(Aging { returns: false }).context();
        let root = context.hold(Base::CWD, b"/", true).unwrap();
        let (inode, paths) = (root.dentry().inode().unwrap(), &root.sb().paths);
        let before = inode.before_request();
        inode.mark_stale();
        inode.learn_reply(paths, &attr(), Some(&before), Valid::UntilInvalidated);
        assert!(inode.has_ttl());
        inode.learn_reply(paths, &attr(), Some(&inode.before_request()), Valid::UntilInvalidated);
        assert!(!inode.has_ttl());
    }
}
