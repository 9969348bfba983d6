//! The test cases for any file system, in forks.

use lightfoot_workspaces::{Fork, ForkFs, ForkLimits};
use testkit::Features;

const FEATURES: Features = Features { reflinks: false, ids: false, ..Features::all() };

/// Returns the file system of a fork of a fork of `base`.
fn fork_of(base: impl vfs::FileSystem, is_fixed: bool) -> ForkFs {
    let trunk = Fork::over(vfs::Vfs::new(base).context(), is_fixed).expect("a root");
    let parent = trunk.fork(ForkLimits::default()).expect("a fork");
    parent.fork(ForkLimits::default()).expect("a fork of a fork").file_system()
}

mod of_memory {
    use super::*;
    testkit::suite!(|| fork_of(ramfs::RamFs::with_root(0o777, 0, 0), true), FEATURES);
}

mod of_a_host_directory {
    use super::*;

    /// A file system, and the directory below it, which is removed after it.
    struct Below(ForkFs, #[expect(dead_code, reason = "dropped")] tempfile::TempDir);

    impl vfs::Layer for Below {
        type Inner = ForkFs;

        fn inner(&self) -> &ForkFs {
            &self.0
        }
    }

    fn make() -> Below {
        let dir = tempfile::tempdir().expect("a directory");
        let host = hostfs::HostFs::new(dir.path(), &hostfs::HostOptions::default()).expect("a host directory");
        Below(fork_of(host, false), dir)
    }

    testkit::suite!(make, FEATURES);
}
