//! Host directories, run through the cases for file systems: on the disk and in memory, for each policy, with few descriptors.

mod support;

use hostfs::{HostFs, HostOptions, Revalidate};
use std::path::Path;
use std::time::Duration;
use support::TempDir;
use testkit::{Features, Outside, Subject};

/// Changes the host directory, and takes it away in the end.
struct Hand(TempDir);

impl Outside for Hand {
    fn write(&self, path: &[u8], contents: &[u8]) {
        std::fs::write(self.0.join(std::str::from_utf8(path).unwrap()), contents).unwrap();
    }

    fn remove(&self, path: &[u8]) {
        std::fs::remove_file(self.0.join(std::str::from_utf8(path).unwrap())).unwrap();
    }
}

/// A directory that nobody looks at.
struct Keeper(TempDir);

impl Drop for Keeper {
    fn drop(&mut self) {
        let _ = &self.0;
    }
}

fn subject(parent: &Path, options: &HostOptions) -> Subject {
    let dir = TempDir::under(parent);
    let fs = HostFs::new(&*dir, options).unwrap();
    Subject::with_outside(fs, Hand(dir))
}

fn always() -> HostOptions {
    HostOptions { policy: Revalidate::Always, ..HostOptions::default() }
}

mod on_the_disk {
    use super::*;

    testkit::suite!(|| subject(&std::env::temp_dir(), &always()), Features::all());
}

mod in_memory {
    use super::*;

    testkit::suite!(|| subject(Path::new("/dev/shm"), &always()), Features::all());
}

/// All cases but those of changes from outside, which other policies do not see at once.
fn passes_alone(options: &HostOptions) {
    for parent in [std::env::temp_dir().as_path(), Path::new("/dev/shm")] {
        let report = testkit::run(
            || {
                let dir = TempDir::under(parent);
                let fs = HostFs::new(&*dir, options).unwrap();
                // What is open below a directory stays when its name goes.
                Subject::with_outside(fs, Idle(Keeper(dir)))
            },
            Features::all(),
        );
        let failed: Vec<_> = report.failed().into_iter().filter(|name| !name.ends_with("outside_is_found")).collect();
        let failed: Vec<_> = failed.into_iter().filter(|name| !name.contains("_outside_")).collect();
        assert!(failed.is_empty(), "{options:?}: {report}");
    }
}

/// Changes nothing.
struct Idle(#[allow(dead_code, reason = "kept until the case is over")] Keeper);

impl Outside for Idle {
    fn write(&self, _path: &[u8], _contents: &[u8]) {}

    fn remove(&self, _path: &[u8]) {}
}

#[test]
fn an_exclusive_directory_passes_all_cases() {
    passes_alone(&HostOptions { policy: Revalidate::Exclusive, ..HostOptions::default() });
}

#[test]
fn a_directory_whose_answers_are_good_for_a_time_passes_all_cases() {
    passes_alone(&HostOptions::default());
    passes_alone(&HostOptions { policy: Revalidate::Ttl(Duration::from_micros(10)), ..HostOptions::default() });
}

#[test]
fn a_watched_directory_passes_all_cases() {
    passes_alone(&HostOptions { watch: true, ..HostOptions::default() });
}

#[test]
fn a_directory_with_few_descriptors_passes_all_cases() {
    for policy in [Revalidate::Exclusive, Revalidate::Always] {
        passes_alone(&HostOptions { policy, max_fds: 8, ..HostOptions::default() });
    }
}
