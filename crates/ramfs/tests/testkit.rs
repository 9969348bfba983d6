//! The file system in memory, run through the cases for file systems.

use ramfs::{RamFs, RamLimits};
use testkit::Features;

/// Room for so many bytes.
const ROOM: u64 = 16 << 20;

fn small() -> RamFs {
    RamFs::with_limits(RamLimits { bytes: Some(ROOM), inodes: Some(100_000), per_user: None })
}

testkit::suite!(RamFs::new, Features::all());

#[test]
fn with_limits_it_passes_all_cases() {
    let report = testkit::run(small, Features { room: Some(ROOM), ..Features::all() });
    assert!(report.is_ok(), "{report}");
}
