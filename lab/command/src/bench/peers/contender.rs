//! The contenders, and the loop that measures each.

use super::by_table::ByTable;
use super::flat_map::{DashPaths, PapayaPaths};
use super::locked_tree::LockedTree;
use super::memory_fs::MemoryFsPeer;
use super::{OPERATION, files};
use crate::bench::cases::{Case, Site, failed_to_prepare};
use crate::bench::copy::{KernelCopy, RamCopy};
use crate::bench::tree::{Entry, Tree};
use crate::error::Error;
use lightfoot::Metadata;
use std::hint::black_box;

/// A store of files in user space. Paths begin with a slash.
pub(super) trait Peer: Sync {
    /// The result of a lookup.
    type Metadata;

    /// Returns an empty store.
    fn empty() -> Self;

    /// Adds a directory or a file, whose parent is there. Peers that can keep any value keep `metadata`.
    fn add(&mut self, path: &str, metadata: Metadata);

    /// Looks `path` up. This is the operation that is measured.
    fn metadata(&self, path: &str) -> Option<Self::Metadata>;

    /// Returns the length in bytes that `metadata` holds.
    fn len(metadata: &Self::Metadata) -> u64;
}

/// A row of the table.
pub(crate) struct Contender {
    /// The contender's name in cases and in JSON.
    pub(crate) name: &'static str,
    /// The contender's name in the table.
    pub(crate) title: &'static str,
}

/// All contenders, in the order of the table.
pub(crate) const CONTENDERS: [Contender; 8] = [
    Contender { name: "lightfoot", title: "Lightfoot, `Context::metadata`" },
    Contender { name: "by-table", title: "Lightfoot, with a table of whole paths" },
    Contender { name: "papaya", title: "`papaya`, a flat map of full paths, foldhash" },
    Contender { name: "dashmap", title: "`dashmap`, a flat map of full paths, foldhash" },
    Contender { name: "locked-tree", title: "a tree of locked hash maps, foldhash" },
    Contender { name: "vfs-memoryfs", title: "`vfs::MemoryFS`" },
    Contender { name: "kernel", title: "the kernel, `fstatat(2)`" },
    Contender { name: "null-call", title: "a system call that does nothing, `getppid(2)`" },
];

impl Contender {
    /// Returns the contender's loop over the files of `site`.
    pub(super) fn case<'a>(&self, site: &'a Site, ram: &'a RamCopy, peers: &'a Peers) -> Case<'a> {
        match self.name {
            "lightfoot" => site.lightfoot(OPERATION, ram),
            "kernel" => site.kernel(OPERATION),
            "null-call" => site.paths_case(self.name, OPERATION, |_| {
                black_box(rustix::process::getppid());
                true
            }),
            "by-table" => self.peer_case(site, &peers.by_table),
            "papaya" => self.peer_case(site, &peers.papaya),
            "dashmap" => self.peer_case(site, &peers.dashmap),
            "locked-tree" => self.peer_case(site, &peers.tree),
            _ => self.peer_case(site, &peers.memory),
        }
    }

    fn peer_case<'a, P: Peer>(&self, site: &'a Site, peer: &'a P) -> Case<'a> {
        site.paths_case(self.name, OPERATION, |path| black_box(peer.metadata(path)).is_some())
    }
}

/// The published crates and the tree, each with all files.
pub(super) struct Peers {
    by_table: ByTable,
    papaya: PapayaPaths,
    dashmap: DashPaths,
    tree: LockedTree,
    memory: MemoryFsPeer,
}

impl Peers {
    /// Fills each peer with the directories and files of `tree`, with the metadata that `ram` has.
    pub(super) fn of(tree: &Tree, ram: &RamCopy) -> Result<Self, Error> {
        let entries: Vec<(&str, Metadata)> =
            tree.entries.iter().map(|entry| in_memory(entry, ram)).collect::<Result<_, Error>>()?;
        Ok(Self {
            by_table: filled(&entries),
            papaya: filled(&entries),
            dashmap: filled(&entries),
            tree: filled(&entries),
            memory: filled(&entries),
        })
    }

    /// Fails unless every contender returns the same length for each file of `tree`, so that a lookup that finds the wrong
    /// file cannot win.
    pub(super) fn check(&self, tree: &Tree, ram: &RamCopy, kernel: &KernelCopy) -> Result<(), Error> {
        for (entry, len) in files(tree) {
            let path = text(&entry.path);
            let found = [
                ("lightfoot", ram.len(&entry.path).ok()),
                ("by-table", length(&self.by_table, path)),
                ("papaya", length(&self.papaya, path)),
                ("dashmap", length(&self.dashmap, path)),
                ("locked-tree", length(&self.tree, path)),
                ("vfs-memoryfs", length(&self.memory, path)),
                ("kernel", kernel.len(&entry.path).ok()),
            ];
            if let Some((contender, found)) = found.into_iter().find(|(_, found)| *found != Some(len)) {
                return Err(Error::Disagreement { contender, path: path.into(), len, found });
            }
        }
        Ok(())
    }
}

fn length<P: Peer>(peer: &P, path: &str) -> Option<u64> {
    peer.metadata(path).as_ref().map(P::len)
}

/// Returns the path of `entry`, and its metadata in Lightfoot's copy.
fn in_memory<'a>(entry: &'a Entry, ram: &RamCopy) -> Result<(&'a str, Metadata), Error> {
    let metadata = ram.context().metadata(&*entry.path);
    Ok((text(&entry.path), metadata.map_err(|error| failed_to_prepare(&entry.path, error))?))
}

fn filled<P: Peer>(entries: &[(&str, Metadata)]) -> P {
    let mut peer = P::empty();
    for (path, metadata) in entries {
        peer.add(path, *metadata);
    }
    peer
}

/// Returns a path of the synthetic tree, whose names are letters.
fn text(path: &[u8]) -> &str {
    std::str::from_utf8(path).expect("the names of the synthetic tree are letters")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::copy::copy;
    use crate::bench::peers::with_lengths;
    use crate::bench::scratch::Scratch;
    use crate::bench::tree::{Kind, cold};
    use crate::interrupt::Interrupt;

    /// Fills all contenders with a tree, gives one file of `tree` another length, and checks.
    fn check_after(change: impl FnOnce(&mut Tree)) -> Result<(), Error> {
        let mut tree = with_lengths(cold(200));
        let kernel = KernelCopy::new(Scratch::make(None)?)?;
        let ram = RamCopy::new()?;
        copy(&mut tree, &ram, Some(&kernel), 0, &Interrupt::never())?;
        let peers = Peers::of(&tree, &ram)?;
        change(&mut tree);
        peers.check(&tree, &ram, &kernel)
    }

    #[test]
    fn all_contenders_return_the_same_length_for_the_same_path() {
        check_after(|_| {}).expect("they agree");
    }

    #[test]
    fn a_contender_with_another_length_or_without_the_file_is_named() {
        let change = |tree: &mut Tree| {
            let file = tree.entries.iter_mut().find(|entry| entry.is_file()).expect("a file");
            file.kind = Kind::File { len: 1_000_000 };
        };
        let error = check_after(change).expect_err("they disagree").to_string();
        assert!(error.contains("lightfoot") && error.contains("1000000"), "{error}");
        let gone = |tree: &mut Tree| tree.entries.last_mut().expect("a file").path = (*b"/gone").into();
        assert!(check_after(gone).is_err());
    }

    #[test]
    fn a_missing_name_is_missing_in_every_peer() {
        fn check<P: Peer>() {
            let context = lightfoot::Vfs::ram().context();
            context.create_dir("/a").expect("a directory");
            context.write("/a/b", "seven b").expect("a file");
            let entries = ["/a", "/a/b"].map(|path| (path, context.metadata(path).expect("it is there")));
            let peer: P = filled(&entries);
            assert_eq!(["/a/b", "/a/c", "/b", "/a/b/c"].map(|path| length(&peer, path)), [Some(7), None, None, None]);
        }
        check::<ByTable>();
        check::<PapayaPaths>();
        check::<DashPaths>();
        check::<LockedTree>();
        check::<MemoryFsPeer>();
    }
}
