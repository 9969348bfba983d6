//! The tree's check of itself, for tests: of every count, chain and list in an idle tree.

use super::Tree;
use super::count::Count;
use super::dentry::{Dentry, UNHASHED, USED};
use super::fs_struct::ROOT;
use super::mount::Mounts;
use super::scheme::Scheme;

type Verdict = core::result::Result<(), String>;

fn demand(is_right: bool, wrong: impl FnOnce() -> String) -> Verdict {
    if is_right { Ok(()) } else { Err(wrong()) }
}

/// See the [module documentation](self).
pub(super) fn verify<S: Scheme>(tree: &Tree<S>) -> Verdict {
    tree.settle();
    let used: Vec<u32> = (0..tree.entries.len() as u32).filter(|&number| tree.entry(number).has(USED)).collect();
    let children = children_of_all(tree, &used)?;
    for &number in &used {
        check_entry(tree, number, children[number as usize])?;
        check_directory(tree, number, children[number as usize])?;
        let above = core::iter::successors(Some(number), |&at| (at != ROOT).then(|| tree.entry(at).parent()));
        demand(above.take(used.len()).last() == Some(ROOT), || format!("entry {number} is not below the root"))?;
    }
    let free = tree.free.free();
    demand(used.len() + free == tree.entries.len(), || format!("{} entries used, {free} free", used.len()))?;
    demand(tree.files() == used.len() as u64, || format!("{} files, {} entries", tree.files(), used.len()))?;
    demand(tree.mounts.held() == 0, || format!("the mount is held {} times", tree.mounts.held()))
}

/// Counts the children of each entry, by the lists of children. Fails unless each used entry but
/// the root is on a list.
fn children_of_all<S: Scheme>(tree: &Tree<S>, used: &[u32]) -> core::result::Result<Vec<u32>, String> {
    let mut children = vec![0; tree.entries.len()];
    let mut listed = 0;
    for &dir in used {
        let mut next = tree.next_child(dir, None);
        while let Some(child) = next {
            demand(tree.entry(child).has(USED), || format!("free entry {child} is a child of {dir}"))?;
            demand(tree.entry(child).parent() == dir, || format!("{child} is listed in {dir}, which it is not in"))?;
            listed += 1;
            demand(listed < used.len(), || format!("the list of {dir} has no end"))?;
            children[dir as usize] += 1;
            next = tree.next_child(dir, Some(child));
        }
    }
    demand(listed + 1 == used.len(), || format!("{listed} entries on lists, {} used", used.len()))?;
    Ok(children)
}

fn check_entry<S: Scheme>(tree: &Tree<S>, number: u32, children: u32) -> Verdict {
    let entry = tree.entry(number);
    let own = if number == ROOT { 1 } else { u32::from(tree.options.is_pinned) };
    let (count, want) = (entry.count().value(), own + children);
    demand(count == want, || format!("entry {number} has a count of {count}, should have {want}"))?;
    demand(number == ROOT || !entry.has(UNHASHED), || format!("entry {number} lost its name, and stayed"))?;
    let found = tree.chain(entry.parent(), entry.key().name.hash()).filter(|&at| at == number).count();
    let is_named = usize::from(number != ROOT);
    demand(found == is_named, || format!("entry {number} is on its chain {found} times"))?;
    let seq = entry.state().seq.current();
    demand(seq & 1 == 0, || format!("entry {number} is for ever being written"))
}

/// Checks the records in a directory's inode of its names.
fn check_directory<S: Scheme>(tree: &Tree<S>, number: u32, children: u32) -> Verdict {
    let inode = tree.inode(number);
    let below = core::iter::successors(tree.next_child(number, None), |&child| tree.next_child(number, Some(child)));
    let directories = below.filter(|&child| tree.inode(child).is_directory()).count() as u32;
    let links = if inode.is_directory() { 2 + directories } else { 1 };
    demand(inode.names() == children, || format!("{number} has {children} names, its inode {}", inode.names()))?;
    demand(inode.links() == links, || format!("{number} has {links} links, its inode {}", inode.links()))
}
