//! testkit's cases over host directories: in memory for each policy and with few descriptors, on a disk for one.

use crate::support;
use lightfoot_hostfs::{HostAcls, HostFs, HostOptions, Revalidate};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use testkit::{Features, Outside, Subject};
use vfs::Bounded;

/// Changes the host directory behind the tree's back.
struct Hand(PathBuf);

impl Outside for Hand {
    fn write(&self, path: &[u8], contents: &[u8]) {
        std::fs::write(self.0.join(std::str::from_utf8(path).unwrap()), contents).unwrap();
    }

    fn remove(&self, path: &[u8]) {
        std::fs::remove_file(self.0.join(std::str::from_utf8(path).unwrap())).unwrap();
    }
}

/// Runs all cases over directories below `parent`, inside of a [`Bounded`] if `is_bounded`. Cases with outside changes run only if the
/// policy shows these at once.
fn passes_below(parent: &Path, options: &HostOptions, is_bounded: bool) {
    let dirs = Arc::new(Mutex::new(Vec::new()));
    let make = || {
        let dir = support::dir_in(parent);
        let fs = HostFs::new(&dir, options).unwrap();
        let hand = Hand(dir.path().to_path_buf());
        let again = {
            let (source, options) = (dir.path().to_path_buf(), options.clone());
            move || HostFs::new(&source, &options).unwrap()
        };
        dirs.lock().unwrap().push(dir);
        let subject: Subject = match (is_bounded, options.policy) {
            // No call takes so long.
            (true, _) => Subject::with_outside(Bounded::of(Box::new(fs), Duration::from_secs(3600)), hand),
            (false, Revalidate::Always) => Subject::with_outside(fs, hand),
            (false, _) => fs.into(),
        };
        // That case fills a cache, which takes a second on a disk.
        let is_plain = !is_bounded && *options == self::options(options.policy);
        if is_plain && parent != std::env::temp_dir() { subject.restarting(again) } else { subject }
    };
    // The process must be allowed to open files by handles.
    let ids = rustix::process::geteuid().is_root();
    // Another user's rights need a root process, too.
    let acls = ids && options.acls == HostAcls::Apply;
    let reflinks = has_reflinks(parent);
    let report = testkit::run(make, Features { ids, acls, reflinks, ..Features::all() });
    let mut failed = report.failed();
    // These cases change owners, which needs a root process.
    if !rustix::process::geteuid().is_root() {
        let owners = ["modes_owners_and_times_are_kept", "set_id_bits_go_with_a_change"];
        failed.retain(|name| !owners.contains(name));
    }
    assert!(failed.is_empty(), "{options:?} in {}: {report}", parent.display());
}

/// Whether files below `parent` can share storage.
fn has_reflinks(parent: &Path) -> bool {
    let (from, to) = (tempfile::tempfile_in(parent).unwrap(), tempfile::tempfile_in(parent).unwrap());
    rustix::fs::ioctl_ficlone(&to, &from).is_ok()
}

fn passes(options: &HostOptions) {
    passes_below(&support::memory(), options, false);
}

/// With a budget of descriptors that several trees at once can have: the default is half of those that the process may open.
fn options(policy: Revalidate) -> HostOptions {
    HostOptions { policy, max_fds: 64, ..HostOptions::default() }
}

#[test]
fn a_directory_that_is_always_revalidated_passes_all_cases() {
    passes(&options(Revalidate::Always));
    // On a disk, too: each policy makes the same calls.
    passes_below(&std::env::temp_dir(), &options(Revalidate::Always), false);
}

#[test]
fn a_bounded_directory_passes_all_cases() {
    passes_below(&support::memory(), &options(Revalidate::Always), true);
}

#[test]
fn an_exclusive_directory_passes_all_cases() {
    passes(&options(Revalidate::Exclusive));
}

#[test]
fn a_directory_whose_answers_are_cached_for_a_time_passes_all_cases() {
    passes(&options(Revalidate::Ttl(Duration::from_secs(1))));
    passes(&options(Revalidate::Ttl(Duration::from_micros(10))));
}

#[test]
fn a_watched_directory_passes_all_cases() {
    passes(&HostOptions { watch: true, ..options(HostOptions::default().policy) });
}

#[test]
fn a_directory_with_few_descriptors_passes_all_cases() {
    for policy in [Revalidate::Exclusive, Revalidate::Always] {
        passes(&HostOptions { max_fds: 8, ..options(policy) });
    }
}

#[test]
fn a_directory_whose_acls_do_not_apply_passes_all_cases() {
    for acls in [HostAcls::Store, HostAcls::Refuse] {
        passes(&HostOptions { acls, ..options(Revalidate::Always) });
    }
}
