//! Files without a name (`O_TMPFILE`): when they can get one.

use lightfoot_ramfs::RamFs;
use vfs::{Base, Errno, OpenFlags, PathAt, Vfs};

/// As Linux, which clears `I_LINKABLE` at the first link of an `O_TMPFILE` file.
#[test]
fn a_file_made_without_a_name_gets_no_other_after_its_last_one() {
    let context = Vfs::new(RamFs::new()).context();
    let file = context.open(Base::CWD, b"/", OpenFlags::TMPFILE.union(OpenFlags::RDWR), 0o644).unwrap();
    let link = || context.link(PathAt::new(Base::at(file.held()), b""), PathAt::cwd(b"/name"), false);
    assert_eq!(link(), Ok(()));
    assert_eq!(context.unlink(Base::CWD, b"/name"), Ok(()));
    assert_eq!(link(), Err(Errno::ENOENT));
}
