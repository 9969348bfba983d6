//! The cache by itself.

use super::*;
use crate::base::attr::{Attr, S_IFDIR};
use crate::cache::tree::Tree;
use crate::fs::{CachedNames, FileSystem, FsTraits, NameStore, NewInode};
use crate::slots::inode::Inode;
use crate::slots::whole_path::Options;
use prim::atomic::AtomicU32;
use prim::shared::Arc;
use sync::PerCpuOwner;

struct Names;
impl FileSystem for Names {
    fn root(&self) -> NewInode {
        NewInode {
            node: 1,
            attr: Attr { ino: 1, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() },
            ..Default::default()
        }
    }
    fn traits(&self) -> FsTraits {
        FsTraits { names: NameStore::Cache(CachedNames::default()), ..FsTraits::default() }
    }
}

#[test]
fn a_lookup_looks_at_few_entries_on_its_chain() {
    let owner = PerCpuOwner::new(Tree::new(Options::default()), false);
    let tree = SuperBlock::new(owner.share(), Box::new(Names), crate::cache::budget::Budget::default().into(), true);
    let name = |i: u32| {
        let x = i.wrapping_mul(0x9E37_79B1) ^ 0x1ca7_7e76;
        (0..8).map(|k| b"abcdefghijklmnop"[((x >> (4 * k)) & 15) as usize]).collect::<Vec<u8>>()
    };
    let mut dirs = vec![tree.root()];
    let count = 10_000;
    for i in 0..count {
        let dir = dirs[i as usize / 40 % dirs.len()];
        let attr = Attr { ino: i.into(), mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        let made = tree.add_in(
            &tree.domain.read(),
            None,
            tree.slot(SlotKind::Entry).unwrap(),
            dir,
            tree.named(&name(i)),
            &NewInodeArgs::from(&NewInode { attr, ..NewInode::default() }),
        );
        if i % 40 == 0 {
            dirs.push(made);
        }
    }
    let guard = tree.domain.read();
    let (mut looked, mut found) = (0, 0);
    tree.slots().slabs.entries.for_each(|dentry| {
        let Some(dir) = dentry.parent().filter(|_| dentry.object().is_hashed() && !core::ptr::eq(dentry, tree.root()))
        else {
            return;
        };
        let hash = dentry.filed_hash_rcu(dir, tree.key, &guard);
        let at = tree.table().view(&guard).find(
            entry_hash(dir, hash),
            |_| (),
            |entry| {
                looked += 1;
                core::ptr::eq(entry, dentry)
            },
        );
        found += u32::from(at.is_some());
    });
    assert_eq!(found, count);
    let (_, buckets) = tree.table().reserved(&guard);
    let expected = 1.0 + f64::from(count) / buckets as f64 / 2.0;
    let mean = f64::from(looked) / f64::from(count);
    assert!(mean < expected * 1.1, "{mean} entries looked at where a good hash gives {expected}");
}

/// Counts evictions.
struct Evicting(Arc<AtomicU32>);

impl FileSystem for Evicting {
    fn root(&self) -> NewInode {
        Names.root()
    }
    fn traits(&self) -> FsTraits {
        Names.traits()
    }
    fn evict(&self, _: &Inode) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn the_last_count_that_is_put_in_a_read_section_ends_the_inode_after_it() {
    let evicted = Arc::new(AtomicU32::new(0));
    let owner = PerCpuOwner::new(Tree::new(Options::default()), false);
    let fs = Box::new(Evicting(evicted.clone()));
    let sb = SuperBlock::new(owner.share(), fs, crate::cache::budget::Budget::default().into(), true);
    let made = |name: &[u8]| {
        let attr = Attr { ino: 2, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
        let new = NewInode { attr, ..NewInode::default() };
        let named = sb.named(name);
        let made = sb.add_in(
            &sb.domain.read(),
            None,
            sb.slot(SlotKind::Entry).unwrap(),
            sb.root(),
            named,
            &NewInodeArgs::from(&new),
        );
        let held = sb.pin(made).unwrap();
        sb.delete_in(None, None, sb.root(), made, named.hash, 2, 0);
        (made, held)
    };
    let put_inside = |held| {
        let _guard = sb.domain.read();
        sb.unpin(held);
    };
    let now = || evicted.load(Relaxed);
    // Ended by the next put outside.
    let (_, first) = made(b"first");
    put_inside(first);
    assert_eq!(now(), 0);
    let (_, other) = made(b"other");
    sb.unpin(other);
    assert_eq!(now(), 2);
    // Used again meanwhile: by its last user.
    let (dentry, held) = made(b"again");
    put_inside(held);
    let again = sb.pin(dentry).unwrap();
    sb.end_late_puts();
    assert_eq!(now(), 2);
    sb.unpin(again);
    assert_eq!(now(), 3);
    // Ended with the superblock, as the root.
    let (_, held) = made(b"late");
    put_inside(held);
    drop(sb);
    assert_eq!(now(), 5);
}
