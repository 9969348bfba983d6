//! Programs that append to one file, on the host and in a mount of its directory. Prints SKIPPED without root or `/dev/fuse`.

use crate::support::{HostMount, wait_for};
use hostfs::{HostOptions, Revalidate};
use lightfoot_fuse::{Caller, MountOptions, Op, ROOT_NODE, Session, SessionOptions, Ttls};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use testkit::Store;
use vfs::OpenFlags;

/// The length of a record, which is not a part of a page.
const LEN: usize = 1000;
const RECORDS: usize = 2000;

/// A directory that is read again for each request, and one whose changes are reported.
fn mounts() -> Option<[HostMount; 2]> {
    let session = SessionOptions { direct_appends: true, ttls: Ttls::all(Duration::ZERO), ..SessionOptions::default() };
    let watched = SessionOptions { ttls: Ttls::LONG, reports_changes: true, ..session.clone() };
    let mount = |policy, watch, session| {
        let options = MountOptions { session, ..MountOptions::default() };
        HostMount::new(&HostOptions { policy, watch, ..HostOptions::default() }, &options)
    };
    Some([
        mount(Revalidate::Always, false, session)?,
        mount(Revalidate::Ttl(Duration::from_millis(100)), true, watched)?,
    ])
}

fn to_append(path: &Path) -> File {
    File::options().append(true).create(true).open(path).unwrap()
}

#[test]
fn all_of_these_over_io_uring() {
    crate::support::again_over_ring("appends::", "appends::all_of_these_over_io_uring");
}

#[test]
fn each_record_that_the_host_and_a_mount_append_is_whole() {
    for mount in mounts().into_iter().flatten() {
        let file = to_append(&mount.path("log"));
        std::thread::scope(|s| {
            for (mut file, byte) in [(file, b'm'), (to_append(&mount.host("log")), b'h')] {
                s.spawn(move || {
                    (0..RECORDS).for_each(|_| assert_eq!(file.write(&[byte; LEN]).unwrap(), LEN));
                });
            }
        });
        let all = fs::read(mount.host("log")).unwrap();
        let of = |byte| all.chunks(LEN).filter(|record| record.iter().all(|one| *one == byte)).count();
        assert_eq!((all.len(), of(b'm'), of(b'h')), (2 * RECORDS * LEN, RECORDS, RECORDS));
        wait_for("the contents in the mount", || fs::read(mount.path("log")).unwrap() == all);
    }
}

#[test]
fn an_append_is_one_request_and_readers_see_it() {
    for mount in mounts().into_iter().flatten() {
        let metrics = mount.mounted().session().metrics();
        let before = metrics.snapshot();
        let path = mount.path("log");
        let mut all = Vec::new();
        // The first open makes the file.
        for round in 0..20 {
            let mut file = to_append(&path);
            for len in [LEN, 1, 5 * LEN] {
                let record: Vec<_> = (0..len).map(|number| (number + round) as u8).collect();
                assert_eq!(file.write(&record).unwrap(), len);
                all.extend(record);
                // The page in which the file ended is in the kernel's cache.
                assert_eq!(fs::read(&path).unwrap(), all);
            }
        }
        let ops = metrics.snapshot().since(&before).ops;
        assert_eq!(ops.iter().find(|stats| stats.name == Op::Write.name()).unwrap().count, 60);
    }
}

#[test]
fn only_files_that_cannot_be_mapped_have_no_pages() {
    const ROOT: Caller = Caller::of(0, 0);
    let is_direct = |options: SessionOptions, flags: OpenFlags| {
        let session = Session::new(&Store::with_paths(&["f"]).tree(), options).unwrap();
        let node = session.lookup(&ROOT, ROOT_NODE, b"f").unwrap().node;
        session.open(&ROOT, node, flags.bits()).unwrap().is_direct
    };
    let options = SessionOptions { direct_appends: true, ..SessionOptions::default() };
    let append = OpenFlags::APPEND;
    for (flags, expected) in [
        (OpenFlags::WRONLY.union(append), true),
        (OpenFlags::RDWR.union(append), false),
        (OpenFlags::RDONLY.union(append), false),
        (OpenFlags::WRONLY, false),
    ] {
        assert_eq!(is_direct(options.clone(), flags), expected, "{flags:?}");
    }
    let appends = OpenFlags::WRONLY.union(append);
    assert!(!is_direct(SessionOptions { writeback: true, ..options.clone() }, appends));
    assert!(!is_direct(SessionOptions { direct_appends: false, ..options }, appends));
}
