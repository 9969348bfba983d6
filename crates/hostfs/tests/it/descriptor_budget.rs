//! The budget of descriptors.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostOptions, Revalidate};
use std::fs;
use tempfile::TempDir;
use vfs::OpenFlags;

const FILES: usize = 3000;
const DIRS: usize = 100;
const BUDGET: usize = 32;

/// Nested directories with files.
fn many(source: &TempDir) -> Vec<String> {
    let mut paths = Vec::new();
    for number in 0..FILES {
        let dir = number % DIRS;
        let path = format!("/{}/{}/f{number}", dir % 10, dir / 10);
        let on_host = source.path().join(&path[1..]);
        fs::create_dir_all(on_host.parent().unwrap()).unwrap();
        fs::write(on_host, number.to_string()).unwrap();
        paths.push(path);
    }
    paths
}

#[test]
fn thousands_of_files_are_used_with_few_descriptors() {
    let source = support::temp_dir();
    let paths = many(&source);
    for policy in [Revalidate::Exclusive, Revalidate::Always] {
        let tree = Tree::new(&source, &HostOptions { policy, max_fds: BUDGET, ..HostOptions::default() });
        for _ in 0..2 {
            for (number, path) in paths.iter().enumerate() {
                assert_eq!(tree.read(path).unwrap(), number.to_string().as_bytes(), "{path}");
                let open = tree.host.stats().open_fds;
                assert!(open <= BUDGET + 1, "{open}");
            }
        }
        for dir in 0..DIRS {
            assert_eq!(tree.names(&format!("/{}/{}", dir % 10, dir / 10)).unwrap().len(), FILES / DIRS);
        }
        let stats = tree.host.stats();
        assert!(stats.evicted_fds > 2 * FILES as u64 - 2 * BUDGET as u64, "{stats:?}");
        assert!(stats.reopened > FILES as u64, "{stats:?}");
        assert!(stats.open_fds <= BUDGET + BUDGET / 4, "{stats:?}");
    }
}

#[test]
fn open_files_stay_open_whatever_the_budget() {
    let source = support::temp_dir();
    let paths = many(&source);
    let tree = Tree::new(&source, &HostOptions { max_fds: BUDGET, ..HostOptions::default() });
    let files: Vec<_> = paths.iter().take(200).map(|path| tree.open(path, OpenFlags::RDWR).unwrap()).collect();
    for path in paths.iter().skip(200).take(500) {
        tree.read(path).unwrap();
    }
    for path in paths.iter().take(200) {
        tree.unlink(path).unwrap();
    }
    for (number, file) in files.iter().enumerate() {
        assert_eq!(support::read_all(file).unwrap(), number.to_string().as_bytes());
    }
    assert!(tree.host.stats().open_fds >= 200);
    drop(files);
    tree.vfs.barrier();
    let stats = tree.host.stats();
    assert!(stats.open_fds <= BUDGET + 2, "{stats:?}");
}

#[test]
fn threads_share_a_small_budget() {
    let source = support::temp_dir();
    let paths = many(&source);
    let tree = Tree::new(&source, &HostOptions { policy: Revalidate::Always, max_fds: 8, ..HostOptions::default() });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (tree, paths) = (&tree, &paths);
            scope.spawn(move || {
                for round in 0..2000 {
                    let number = (round * 7 + thread * 131) % FILES;
                    assert_eq!(tree.read(&paths[number]).unwrap(), number.to_string().as_bytes());
                }
            });
        }
    });
    let stats = tree.host.stats();
    assert!(stats.open_fds <= 8 + 4, "{stats:?}");
}
