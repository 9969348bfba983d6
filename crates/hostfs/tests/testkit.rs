//! Host directories, run through the cases for file systems: on the disk and in memory, for each policy, with few
//! descriptors.

mod support;

use hostfs::{HostFs, HostOptions, Revalidate};
use std::path::Path;
use std::sync::Mutex;
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

/// All cases, on the disk and in memory; those of changes from outside have nothing to do.
fn passes_alone(options: &HostOptions) {
    for parent in [std::env::temp_dir().as_path(), Path::new("/dev/shm")] {
        let dirs = Mutex::new(Vec::new());
        let make = || {
            let dir = TempDir::under(parent);
            let fs = HostFs::new(&*dir, options).unwrap();
            dirs.lock().unwrap().push(dir);
            fs
        };
        let report = testkit::run(make, Features::all());
        assert!(report.is_ok(), "{options:?} in {}: {report}", parent.display());
    }
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
