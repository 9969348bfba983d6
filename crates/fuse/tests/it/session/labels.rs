//! Labels of security modules: if a label cannot be stored, the session does not make the file.

use crate::session::kernel::{DIR, Kernel, PLAIN, RDWR, SUPER, USER};
use lightfoot_fuse::{Entry, Opened, ROOT_NODE, SessionOptions};
use ramfs::{RamFs, RamLimits};
use vfs::{Errno, Inode, Layer, NewNode, Request, SetXattr};

const LABEL: (&[u8], &[u8]) = (b"security.selinux", b"system_u:object_r:tmp_t:s0\0");
const OTHER: (&[u8], &[u8]) = (b"security.SMACK64", b"_");

/// Refuses attributes with this value.
struct Refusing(RamFs);

const BAD: &[u8] = b"bad";

impl Layer for Refusing {
    type Inner = RamFs;

    fn inner(&self) -> &RamFs {
        &self.0
    }

    /// Leaves the attributes to the VFS.
    fn create(&self, request: &Request, dir: &Inode, name: Option<&[u8]>, new: &mut NewNode<'_>) -> Result<u64, Errno> {
        let mut plain = NewNode::new(new.attr);
        plain.link_body = new.link_body;
        let node = vfs::FileSystem::create(&self.0, request, dir, name, &mut plain)?;
        new.attr = plain.attr;
        Ok(node)
    }

    fn set_xattr(
        &self,
        request: &Request,
        inode: &Inode,
        name: &[u8],
        value: &[u8],
        how: SetXattr,
    ) -> Result<(), Errno> {
        if value == BAD {
            return Err(Errno::ENOSPC);
        }
        vfs::FileSystem::set_xattr(&self.0, request, inode, name, value, how)
    }
}

/// Sessions over a file system that stores labels with the file, and over one that does not. The first has room for one page of
/// attributes.
fn kernels(labels: bool) -> [Kernel; 2] {
    let options = || SessionOptions { labels, ..SessionOptions::default() };
    let limits = RamLimits { bytes: Some(4096), ..RamLimits::default() };
    [Kernel::over(RamFs::with_limits(limits), options()), Kernel::over(Refusing(RamFs::new()), options())]
}

type Labels<'l> = &'l [(&'l [u8], &'l [u8])];

/// Makes a file of each kind with these labels; the results, and the names that the files should have then.
fn make(kernel: &Kernel, labels: Labels<'_>) -> Vec<(&'static str, Result<Entry, Errno>)> {
    let (file, dir) = (PLAIN.labelled(labels), DIR.labelled(labels));
    let opened = |made: Result<(Entry, Opened), Errno>| {
        made.map(|(made, opened)| {
            kernel.release(opened.handle);
            made
        })
    };
    vec![
        ("mknod", kernel.mknod(&USER, ROOT_NODE, b"mknod", file, 0)),
        ("mkdir", kernel.mkdir(&USER, ROOT_NODE, b"mkdir", dir)),
        ("symlink", kernel.symlink(&USER, ROOT_NODE, b"symlink", b"x", labels)),
        ("create", opened(kernel.create(&USER, ROOT_NODE, b"create", file, RDWR))),
        ("", opened(kernel.tmpfile(&USER, ROOT_NODE, file, RDWR))),
    ]
}

#[test]
fn labels_are_extended_attributes_of_the_new_file() {
    for (is_on, labels) in [(true, &[LABEL, OTHER][..]), (true, &[]), (false, &[LABEL])] {
        for kernel in kernels(is_on) {
            for (name, made) in make(&kernel, labels) {
                let made = made.unwrap();
                for (label, value) in labels {
                    let found = kernel.getxattr(&SUPER, made.node, label);
                    assert_eq!(found.as_deref(), if is_on { Ok(*value) } else { Err(&Errno::ENODATA) }, "{name}");
                }
                assert_eq!(made.attr, kernel.getattr(made.node).unwrap().0, "{name}: the attributes after it");
                assert_eq!(made.attr.uid, 5, "{name}");
                kernel.forget(made.node, 1);
            }
            kernel.check_nothing_left("made");
        }
    }
}

#[test]
fn a_file_whose_label_cannot_be_stored_is_not_made() {
    // More than the first file system has room for, and what the second refuses.
    let large = vec![b'x'; 5000];
    let bad = [&*large, BAD];
    let foreign: (&[u8], &[u8]) = (b"trusted.a", b"x");
    for (at, bad) in bad.into_iter().enumerate() {
        let cases: [(Labels<'_>, Errno); 3] = [
            (&[(LABEL.0, bad)], Errno::ENOSPC),
            (&[LABEL, (OTHER.0, bad)], Errno::ENOSPC),
            (&[LABEL, foreign], Errno::EINVAL),
        ];
        for (labels, errno) in cases {
            let [with, apart] = kernels(true);
            let kernel = if at == 0 { with } else { apart };
            let before = kernel.getattr(ROOT_NODE).unwrap().0;
            for (name, made) in make(&kernel, labels) {
                assert_eq!(made.map(|made| made.node), Err(errno), "{name}");
                assert!(name.is_empty() || kernel.look(name).is_err(), "{name}");
            }
            kernel.check_nothing_left("refused");
            let after = kernel.getattr(ROOT_NODE).unwrap().0;
            assert_eq!((after.nlink, after.size), (before.nlink, before.size), "the directory is as it was");
        }
    }
}
