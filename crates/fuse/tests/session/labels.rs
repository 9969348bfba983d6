//! Labels of security modules: if a label cannot be stored, the session does not make the file.

use crate::kernel::{DIR, Kernel, PLAIN, RDWR, SUPER, USER};
use lightfoot_fuse::{Entry, NameIn, ROOT_NODE, SessionOptions};
use ramfs::RamFs;
use vfs::{Errno, Inode, Layer, Request, SetXattr};

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

fn kernel(labels: bool) -> Kernel {
    Kernel::over(Refusing(RamFs::new()), SessionOptions { labels, ..SessionOptions::default() })
}

type Labels<'l> = &'l [(&'l [u8], &'l [u8])];

/// Makes a file of each kind with these labels; the results, and whether the name is there then.
fn make(kernel: &Kernel, labels: Labels<'_>) -> Vec<(&'static str, Result<Entry, Errno>)> {
    let labels = || labels.iter().copied();
    let at = |name: &'static str| NameIn::new(ROOT_NODE, name.as_bytes());
    let mknod = kernel.mknod(&USER, ROOT_NODE, b"mknod", PLAIN, 0).unwrap();
    let mkdir = kernel.mkdir(&USER, ROOT_NODE, b"mkdir", DIR).unwrap();
    let symlink = kernel.symlink(&USER, ROOT_NODE, b"symlink", b"x").unwrap();
    let create = kernel.create(&USER, ROOT_NODE, b"create", PLAIN, RDWR).unwrap();
    let tmpfile = kernel.tmpfile(&USER, ROOT_NODE, PLAIN, RDWR).unwrap();
    let opened = |made: Result<(Entry, lightfoot_fuse::Opened), Errno>| {
        made.map(|(made, opened)| {
            kernel.release(opened.handle);
            made
        })
    };
    vec![
        ("mknod", kernel.label(at("mknod"), mknod, labels())),
        ("mkdir", kernel.label(at("mkdir"), mkdir, labels())),
        ("symlink", kernel.label(at("symlink"), symlink, labels())),
        ("create", opened(kernel.label_opened(Some(at("create")), create, labels()))),
        ("", opened(kernel.label_opened(None, tmpfile, labels()))),
    ]
}

#[test]
fn labels_are_extended_attributes_of_the_new_file() {
    for (is_on, labels) in [(true, &[LABEL, OTHER][..]), (true, &[]), (false, &[LABEL])] {
        let kernel = kernel(is_on);
        for (name, made) in make(&kernel, labels) {
            let made = made.unwrap();
            for (label, value) in labels {
                let found = kernel.getxattr(&SUPER, made.node, label);
                assert_eq!(found.as_deref(), if is_on { Ok(*value) } else { Err(&Errno::ENODATA) }, "{name}");
            }
            assert_eq!(made.attr, kernel.getattr(made.node).unwrap().0, "{name}: the attributes after it");
            assert_eq!(made.attr.uid, USER.uid, "{name}");
            kernel.forget(made.node, 1);
        }
        kernel.check_nothing_left("made");
    }
}

#[test]
fn a_file_whose_label_cannot_be_stored_is_not_made() {
    let cases: [(Labels<'_>, Errno); 3] = [
        (&[(LABEL.0, BAD)], Errno::ENOSPC),
        (&[LABEL, (OTHER.0, BAD)], Errno::ENOSPC),
        (&[LABEL, (b"trusted.a", b"x")], Errno::EINVAL),
    ];
    for (labels, errno) in cases {
        let kernel = kernel(true);
        for (name, made) in make(&kernel, labels) {
            assert_eq!(made.map(|made| made.node), Err(errno), "{name}");
            assert!(name.is_empty() || kernel.look(name).is_err(), "{name}");
        }
        kernel.check_nothing_left("refused");
        assert_eq!(kernel.getattr(ROOT_NODE).unwrap().0.nlink, 2);
    }
}

#[test]
fn what_took_the_name_of_a_file_meanwhile_stays() {
    let kernel = kernel(true);
    let made = kernel.mknod(&USER, ROOT_NODE, b"f", PLAIN, 0).unwrap();
    kernel.unlink(&SUPER, ROOT_NODE, b"f").unwrap();
    let other = kernel.file("f");
    let refused = kernel.label(NameIn::new(ROOT_NODE, b"f"), made, [(LABEL.0, BAD)].into_iter());
    assert_eq!(refused.map(|made| made.node), Err(Errno::ENOSPC));
    assert_eq!(kernel.look("f").unwrap().node, other.node);
}
