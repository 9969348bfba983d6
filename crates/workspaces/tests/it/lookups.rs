//! The calls of the base that forks make.

use crate::tree::{fill, walk};
use lightfoot_workspaces::{Fork, ForkLimits};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vfs::{Attr, Errno, FileSystem, Inode, Layer, NewInode, NextNames, Request, Vfs};

/// A base that counts the calls that a lookup in a fork may make.
struct Counted(hostfs::HostFs, Arc<AtomicUsize>);

impl Layer for Counted {
    type Inner = hostfs::HostFs;

    fn inner(&self) -> &hostfs::HostFs {
        &self.0
    }

    fn lookup(&self, request: &Request, dir: &Inode, name: &[u8], next: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        self.1.fetch_add(1, Relaxed);
        self.0.lookup(request, dir, name, next)
    }

    fn attributes(&self, request: &Request, inode: &Inode) -> Result<Attr, Errno> {
        self.1.fetch_add(1, Relaxed);
        self.0.attributes(request, inode)
    }

    fn birth(&self, request: &Request, inode: &Inode) -> Result<Option<i64>, Errno> {
        self.1.fetch_add(1, Relaxed);
        self.0.birth(request, inode)
    }

    fn get_xattr(&self, request: &Request, inode: &Inode, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.1.fetch_add(1, Relaxed);
        self.0.get_xattr(request, inode, name)
    }
}

/// Returns the number of calls of the base while all names are looked up in a new fork.
fn calls(trunk: &Fork, count: &AtomicUsize) -> usize {
    let before = count.load(Relaxed);
    let fork = Vfs::new(trunk.fork(ForkLimits::default()).expect("a fork").file_system());
    assert!(walk(&fork.context()).len() > 5);
    count.load(Relaxed) - before
}

#[test]
fn a_lookup_in_a_second_fork_makes_no_call_of_the_base() {
    let dir = tempfile::tempdir().expect("a directory");
    fill(&Vfs::new(hostfs::HostFs::new(dir.path(), &hostfs::HostOptions::default()).expect("a tree")).context());
    let options = hostfs::HostOptions { policy: hostfs::Revalidate::Exclusive, ..hostfs::HostOptions::default() };
    let host = hostfs::HostFs::new(dir.path(), &options).expect("a host directory");
    let count = Arc::new(AtomicUsize::new(0));
    let trunk = Fork::over(Vfs::new(Counted(host, count.clone())).context(), true).expect("a root");
    assert!(calls(&trunk, &count) > 5);
    assert_eq!(calls(&trunk, &count), 0);
}
