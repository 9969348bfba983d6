//! testkit's cases over the file system in memory.

use lightfoot_ramfs::{RamFs, RamLimits, UserLimits};
use testkit::{Features, Quota};

/// Bytes that there is room for.
const ROOM: u64 = 16 << 20;

fn small() -> RamFs {
    RamFs::with_limits(RamLimits { bytes: Some(ROOM), inodes: Some(100_000), per_user: None })
}

testkit::suite!(RamFs::new, Features::all());

#[test]
fn with_every_directory_split_it_passes_all_cases() {
    let report = testkit::run(|| testkit::Subject::split(RamFs::new()), Features::all());
    assert!(report.is_ok(), "{report}");
}

#[test]
fn with_limits_it_passes_all_cases() {
    let report = testkit::run(small, Features { room: Some(ROOM), ..Features::all() });
    assert!(report.is_ok(), "{report}");
}

#[test]
fn with_quotas_it_passes_all_cases() {
    let (bytes, files) = (256 << 10, Some(20));
    let per_user = Some(UserLimits { bytes: Some(bytes), inodes: files });
    let quota = Some(Quota { user: 1001, other: 1002, bytes, files, follows_owner: true });
    let make = || RamFs::with_limits(RamLimits { per_user, ..RamLimits::none() });
    let report = testkit::run(make, Features { quota, ..Features::all() });
    assert!(report.is_ok(), "{report}");
}
