//! The memory of forks.

use lightfoot_workspaces::{ForkLimits, Workspaces};
use std::fs;
use vfs::Vfs;

/// Bytes of memory of this process.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// It measures the memory of its process.
#[test]
fn an_idle_fork_with_its_mount_takes_less_than_18_kib() {
    const FORKS: usize = 1000;
    if testkit::ran_alone("memory::an_idle_fork_with_its_mount_takes_less_than_18_kib") {
        return;
    }
    let spaces = Workspaces::over(Vfs::new(ramfs::RamFs::new()).context(), true).unwrap();
    let fork = |number: usize| spaces.fork("base", &number.to_string(), ForkLimits::default()).unwrap();
    fork(0);
    let before = resident();
    (1..=FORKS).for_each(fork);
    let each = (resident() - before) / FORKS;
    assert!(each < 18 << 10, "{each} bytes a fork");
}
