//! Trees of a given shape: all files at one depth, names of 8 characters, equal fan-out at each
//! level.

use super::{Entry, Kind, Omitted, Tree};

/// The depths of the hot tree.
const HOT_DEPTHS: [usize; 4] = [1, 4, 8, 16];

/// The depth of the cold tree.
const COLD_DEPTH: usize = 8;

/// One shape: the fan-out of each level, from the root to the files.
struct Shape {
    fan_out: Vec<usize>,
    /// Distinguishes the names of this shape from the names of others under the same root.
    salt: u32,
}

/// Returns four trees under one root, with 9,984 files each at the depths 1, 4, 8 and 16. Each
/// directory has 39 files, but for depth 1.
pub(crate) fn hot() -> Tree {
    let shapes = HOT_DEPTHS.map(|depth| Shape::new(8, 39, depth));
    tree("synthetic (9,984 files at each of the depths 1, 4, 8, 16; 8-character names)", &shapes)
}

/// Returns one tree with files at depth 8, 32 in each directory. The tree has 2^20 files by
/// default, or the next power of two that holds `files`.
pub(crate) fn cold(files: usize) -> Tree {
    let bits = files.div_ceil(32).max(2).next_power_of_two().trailing_zeros() as usize;
    let shape = Shape::new(bits, 32, COLD_DEPTH);
    let name = format!("synthetic ({} files at depth {COLD_DEPTH}; 8-character names)", shape.files());
    tree(&name, &[shape])
}

impl Shape {
    /// Returns a shape with 2^`bits` directories at the last level but one. Each of these
    /// directories has `files` files, and the files are at `depth`.
    fn new(bits: usize, files: usize, depth: usize) -> Self {
        let levels = depth - 1;
        let fan_out = if levels == 0 {
            vec![files << bits]
        } else {
            // Bits that the levels cannot share evenly are added to the deepest ones.
            let bits_of = |level| bits / levels + usize::from(level >= levels - bits % levels);
            (0..levels).map(|level| 1 << bits_of(level)).chain([files]).collect()
        };
        Self { fan_out, salt: (depth as u32).wrapping_mul(0xC2B2_AE35) }
    }

    fn files(&self) -> usize {
        self.fan_out.iter().product()
    }

    /// Adds all entries below `parent`, which is at `level`.
    fn grow(&self, parent: &[u8], level: usize, entries: &mut Vec<Entry>) {
        let is_last = level + 1 == self.fan_out.len();
        for index in 0..self.fan_out[level] {
            let path = [parent, b"/", &self.name(level, index)].concat().into_boxed_slice();
            if is_last {
                entries.push(Entry { path, mode: 0o644, kind: Kind::File { len: 0 } });
            } else {
                entries.push(Entry { path: path.clone(), mode: 0o755, kind: Kind::Directory });
                self.grow(&path, level + 1, entries);
            }
        }
    }

    /// 8 lower-case letters, one to one with `index` within a level.
    fn name(&self, level: usize, index: usize) -> [u8; 8] {
        let mixed = (index as u32).wrapping_mul(0x9E37_79B1) ^ (level as u32).wrapping_mul(0x85EB_CA6B) ^ self.salt;
        std::array::from_fn(|place| b'a' + (mixed >> (4 * place) & 15) as u8)
    }
}

fn tree(name: &str, shapes: &[Shape]) -> Tree {
    let mut entries = Vec::new();
    for shape in shapes {
        shape.grow(b"", 0, &mut entries);
    }
    Tree { name: name.into(), origin: None, root_mode: 0o755, entries, omitted: Omitted::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn files_by_depth(tree: &Tree) -> BTreeMap<usize, usize> {
        let mut count = BTreeMap::new();
        for entry in tree.entries.iter().filter(|entry| entry.is_file()) {
            *count.entry(entry.depth()).or_default() += 1;
        }
        count
    }

    #[test]
    fn the_hot_tree_has_9984_files_at_each_depth_and_no_path_twice() {
        let tree = hot();
        assert_eq!(files_by_depth(&tree), HOT_DEPTHS.map(|depth| (depth, 9984)).into());
        let paths: BTreeSet<&[u8]> = tree.entries.iter().map(|entry| &*entry.path).collect();
        assert_eq!(paths.len(), tree.entries.len());
    }

    #[test]
    fn the_cold_tree_has_at_least_the_files_asked_for() {
        for (asked, given) in [(1, 64), (1000, 1024), (1_000_000, 1 << 20)] {
            assert_eq!(files_by_depth(&cold(asked)), [(8, given)].into(), "{asked}");
        }
    }
}
