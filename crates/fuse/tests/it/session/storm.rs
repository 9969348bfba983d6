//! Threads that send random requests and count their lookups: at the end nothing is left.
//!
//! A kernel never uses a node that it has forgotten, so each thread uses only nodes that it has not forgotten.

use crate::session::kernel::{Kernel, SUPER};
use lightfoot_fuse::{Entry, Gauge, NameIn, NewMode, ROOT_NODE, SessionOptions, Unlisted};
use ramfs::RamFs;
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::thread;
use vfs::{Base, Errno, MountFlags, PathAt, SetAttr, Want};

const THREADS: u64 = 3;
const ROUNDS: usize = 12;
const STEPS: usize = 1500;

/// Few names, so that threads meet.
const NAMES: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"m", b"a-name-of-more-than-thirty-two-bytes"];

/// The nodes and handles of one thread.
struct Client<'k> {
    kernel: &'k Kernel,
    random: fastrand::Rng,
    known: BTreeMap<u64, u64>,
    files: Vec<(u64, u64)>,
    directories: Vec<u64>,
}

impl Client<'_> {
    fn name(&mut self) -> &'static [u8] {
        NAMES[self.random.usize(..NAMES.len())]
    }

    /// A node that this thread has looked up, or the root.
    fn node(&mut self) -> u64 {
        let at = self.random.usize(..self.known.len() + 2);
        self.known.keys().nth(at).copied().unwrap_or(ROOT_NODE)
    }

    fn is_told(&mut self, entry: Result<Entry, Errno>) {
        if let Ok(entry) = entry {
            *self.known.entry(entry.node).or_default() += 1;
            assert_eq!(entry.attr.ino, entry.node);
        }
    }

    /// Forgets up to `most` lookups of one node.
    fn forget(&mut self, most: usize) {
        let node = self.node();
        let Some(known) = self.known.get_mut(&node) else { return };
        let lookups = (1 + self.random.usize(..most) as u64).min(*known);
        *known -= lookups;
        if *known == 0 {
            self.known.remove(&node);
        }
        self.kernel.forget(node, lookups);
    }

    fn list(&mut self) {
        let Some(handle) = self.directories.last().copied() else { return };
        let (mut found, mut left) = (Vec::new(), self.random.usize(..10));
        let listed = self.kernel.readdir(handle, 0, Want::ATTRIBUTES, &mut |entry| {
            if left == 0 {
                return false;
            }
            left -= 1;
            if !matches!(entry.name, b"." | b"..") {
                match self.kernel.listed_entry(&SUPER, handle, entry) {
                    Ok(entry) => found.push(entry),
                    Err(Unlisted::NameOnly(node)) => self.kernel.forget(node, 1),
                    Err(Unlisted::Gone) => {}
                }
            }
            true
        });
        listed.unwrap();
        found.into_iter().for_each(|entry| self.is_told(Ok(entry)));
    }

    fn step(&mut self) {
        let (k, node, name) = (self.kernel, self.node(), self.name());
        match self.random.usize(..20) {
            0..4 => self.is_told(k.lookup(&SUPER, node, name)),
            4 => self.is_told(k.mkdir(&SUPER, node, name, NewMode::new(0o755, 0))),
            5 => self.is_told(k.mknod(&SUPER, node, name, NewMode::new(0o644, 0), 0)),
            6 => self.is_told(k.symlink(&SUPER, node, name, b"body", &[])),
            7 => {
                let (dir, other) = (self.node(), self.name());
                self.is_told(k.link(&SUPER, node, dir, other));
            }
            8 | 9 => {
                if let Ok((entry, opened)) = k.create(&SUPER, node, name, NewMode::new(0o644, 0), 2) {
                    self.is_told(Ok(entry));
                    self.files.push((entry.node, opened.handle));
                }
            }
            10 => drop(k.unlink(&SUPER, node, name)),
            11 => drop(k.rmdir(&SUPER, node, name)),
            12 => {
                let (to, new) = (self.node(), self.name());
                let flags = self.random.usize(..3) as u32;
                let _ = k.rename(&SUPER, NameIn::new(node, name), NameIn::new(to, new), flags);
            }
            13 => self.directories.extend(k.opendir(&SUPER, node)),
            14 => self.list(),
            15 => self.forget(5),
            16 => self.forget(1),
            17 => {
                if let Some((node, handle)) = self.files.pop() {
                    assert_eq!(k.write(node, handle, 0, b"x"), Ok(1));
                    k.release(handle);
                } else if let Some(handle) = self.directories.pop() {
                    k.releasedir(handle);
                }
            }
            18 => {
                let set = SetAttr { mode: Some(0o700), ..SetAttr::default() };
                assert_ne!(k.setattr(&SUPER, node, &set, None).map(drop), Err(Errno::ESTALE));
            }
            _ => assert_eq!(k.getattr(node).map(drop), Ok(()), "node {node} is not forgotten"),
        }
    }

    fn end(mut self) {
        self.files.drain(..).for_each(|(_, handle)| self.kernel.release(handle));
        self.directories.drain(..).for_each(|handle| self.kernel.releasedir(handle));
        self.known.into_iter().for_each(|(node, lookups)| self.kernel.forget(node, lookups));
    }
}

fn check(seed: u64) {
    println!("seed {seed:#x}");
    let kernel = Kernel::with(SessionOptions::default());
    // A second file system with the same inode numbers, bound to a second place.
    let context = kernel.vfs.context();
    for dir in ["/m", "/d", "/d/m"] {
        context.mkdir(Base::CWD, dir.as_bytes(), 0o755).unwrap();
    }
    context.mount(RamFs::new(), Base::CWD, b"/m", MountFlags::default()).unwrap();
    context.bind(PathAt::cwd(b"/m"), PathAt::cwd(b"/d/m"), MountFlags::default(), false).unwrap();
    let held = kernel.held().len();
    let meet = Barrier::new(THREADS as usize);
    let sums: Vec<u64> = thread::scope(|scope| {
        let clients: Vec<_> = (1..=THREADS)
            .map(|number| {
                let (kernel, meet) = (&kernel, &meet);
                let random = fastrand::Rng::with_seed(seed.wrapping_add(number));
                scope.spawn(move || {
                    let (known, files, directories) = (BTreeMap::new(), Vec::new(), Vec::new());
                    let mut client = Client { kernel, random, known, files, directories };
                    (0..STEPS).for_each(|_| client.step());
                    meet.wait();
                    let sum = client.known.values().sum();
                    let total = kernel.gauge(Gauge::Lookups);
                    meet.wait();
                    client.end();
                    (sum, total)
                })
            })
            .collect();
        let ends: Vec<(u64, u64)> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        let sum: u64 = ends.iter().map(|(sum, _)| sum).sum();
        assert!(ends.iter().all(|(_, total)| *total == sum), "seed {seed:#x}: {sum} lookups, {ends:?}");
        ends.iter().map(|(sum, _)| *sum).collect()
    });
    assert!(sums.iter().sum::<u64>() > 0);
    let known = (kernel.known_nodes(), kernel.gauge(Gauge::Lookups), kernel.open_handles());
    assert_eq!(known, (1, 0, 0), "seed {seed:#x}");
    assert_eq!(kernel.gauge(Gauge::ExcessForgets), 0, "seed {seed:#x}");
    // The places that mounts cover are held, wherever they are now.
    assert_eq!(kernel.held().len(), held, "seed {seed:#x}");
}

#[test]
fn threads_that_forget_what_they_looked_up_leave_nothing_behind() {
    let seed = std::env::var("SEED").ok().and_then(|seed| u64::from_str_radix(seed.trim_start_matches("0x"), 16).ok());
    if let Some(seed) = seed {
        return check(seed);
    }
    (0..ROUNDS).for_each(|_| check(fastrand::u64(..)));
}
