//! Copies of files that are open with `O_DIRECT`, which takes only aligned memory, where the file system leaves the copy to the VFS.

use crate::support;
use lightfoot_hostfs::{HostFs, HostOptions};
use std::path::Path;
use vfs::{Base, Copying, Errno, Layer, Open, OpenFlags, Request, Vfs, Written};

/// A host directory that copies nothing by itself.
struct NoCopies(HostFs);

impl Layer for NoCopies {
    type Inner = HostFs;

    fn inner(&self) -> &HostFs {
        &self.0
    }

    fn copy_range(
        &self,
        _: &Request,
        _: (&Open<'_>, u64),
        _: (&Open<'_>, u64),
        _: u64,
        _: Copying,
    ) -> Result<Written, Errno> {
        Err(Errno::EOPNOTSUPP)
    }
}

#[test]
fn a_copy_of_files_that_are_open_with_o_direct_uses_aligned_memory() {
    // A tmpfs accepts any memory.
    let dir = support::dir_in(Path::new("/var/tmp"));
    let data: Vec<u8> = (0..200 << 10).map(|at: u32| (at / 7 % 256) as u8).collect();
    std::fs::write(dir.path().join("from"), &data).unwrap();
    let at = Vfs::new(NoCopies(HostFs::new(dir.path(), &HostOptions::default()).unwrap())).context();
    let open = |path: &[u8], flags: OpenFlags| at.open(Base::CWD, path, flags.union(OpenFlags::DIRECT), 0o644);
    let from = match open(b"/from", OpenFlags::RDONLY) {
        Ok(from) => from,
        Err(errno) => return eprintln!("skipped: no O_DIRECT in /var/tmp: {errno}"),
    };
    if from.read_at(0, &mut vec![0; 4097][1..]).is_ok() {
        return eprintln!("skipped: the file system of /var/tmp accepts unaligned memory");
    }
    let to = open(b"/to", OpenFlags::RDWR.union(OpenFlags::CREAT)).unwrap();
    assert_eq!(from.copy_to(0, &to, 0, 200 << 10), Ok(200 << 10));
    assert_eq!(std::fs::read(dir.path().join("to")).unwrap(), data);
}
