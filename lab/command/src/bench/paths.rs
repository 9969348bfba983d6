//! The paths that are looked up, packed in the order of their visits so that reading one is never a cache miss, and how
//! they are chosen.

use crate::bench::tree::Entry;
use std::collections::BTreeMap;
use std::ffi::CStr;

/// Seed of every choice: the same tree gives the same paths.
pub(crate) const SEED: u64 = 0x6c69_6768_7466_6f6f;

/// The benchmark measures a depth of the tree only if at least this many files are at that depth.
const FILES_AT_LEAST: usize = 50;

/// Paths, each with a slash before and a NUL behind.
#[derive(Default)]
pub(crate) struct Paths {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Paths {
    /// Packs paths that begin with a slash and hold no NUL, which no name can.
    pub(crate) fn pack<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut packed = Self::default();
        for path in paths {
            packed.bytes.extend_from_slice(path);
            packed.bytes.push(0);
            packed.ends.push(packed.bytes.len());
        }
        packed
    }

    /// As Lightfoot takes them.
    pub(crate) fn absolute(&self) -> Vec<&[u8]> {
        self.with_nul().map(|path| &path[..path.len() - 1]).collect()
    }

    /// As text, without those that are not UTF-8.
    pub(crate) fn text(&self) -> Vec<&str> {
        self.with_nul().filter_map(|path| std::str::from_utf8(&path[..path.len() - 1]).ok()).collect()
    }

    /// As the kernel takes them, from a descriptor of the root.
    pub(crate) fn relative(&self) -> Vec<&CStr> {
        self.with_nul().filter_map(|path| CStr::from_bytes_with_nul(&path[1..]).ok()).collect()
    }

    fn with_nul(&self) -> impl Iterator<Item = &[u8]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

/// Returns the regular files of a tree by depth, at no more than `classes` depths: of those that
/// have many files (or of all, if none has), the shallowest, the deepest, and some evenly between.
pub(crate) fn by_depth(entries: &[Entry], classes: usize) -> BTreeMap<usize, Vec<&[u8]>> {
    let mut files: BTreeMap<usize, Vec<&[u8]>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.is_file()) {
        files.entry(entry.depth()).or_default().push(&entry.path);
    }
    let is_class = |files: &Vec<&[u8]>| files.len() >= FILES_AT_LEAST;
    if files.values().any(is_class) {
        files.retain(|_, files| is_class(files));
    }
    let depths: Vec<usize> = files.keys().copied().collect();
    let chosen = spread(depths.len(), classes).map(|index| depths[index]).collect::<Vec<usize>>();
    files.retain(|depth, _| chosen.contains(depth));
    files
}

/// `wanted` of the numbers below `count`, evenly from first to last; all of them if there are not
/// more.
fn spread(count: usize, wanted: usize) -> impl Iterator<Item = usize> {
    let steps = wanted.min(count);
    (0..steps).map(move |step| if steps == 1 { 0 } else { step * (count - 1) / (steps - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tree::Kind;

    fn entries(files: &[(usize, usize)]) -> Vec<Entry> {
        let path = |depth: usize, number: usize| format!("{}/{number}", "/d".repeat(depth - 1)).into_bytes().into();
        let entry = |path| Entry { path, mode: 0o644, kind: Kind::File { len: 0 } };
        files.iter().flat_map(|&(depth, count)| (0..count).map(move |number| entry(path(depth, number)))).collect()
    }

    #[test]
    fn depths_with_many_files_are_chosen_from_shallow_to_deep() {
        let check = |files: &[(usize, usize)], classes, expected: &[usize]| {
            let entries = entries(files);
            let depths: Vec<usize> = by_depth(&entries, classes).into_keys().collect();
            assert_eq!(depths, expected, "{files:?}");
        };
        check(&[(1, 3)], 4, &[1]);
        check(&[(1, 3), (2, 100), (5, 49)], 4, &[2]);
        check(&[(1, 100), (2, 100), (3, 100), (4, 100), (5, 100), (6, 100), (7, 100)], 4, &[1, 3, 5, 7]);
        check(&[(1, 100), (2, 100), (3, 100)], 2, &[1, 3]);
        check(&[], 4, &[]);
    }

    #[test]
    fn packed_paths_come_out_as_they_went_in() {
        let paths = Paths::pack([&b"/a"[..], b"/b/\xff"]);
        assert_eq!(paths.absolute(), [&b"/a"[..], b"/b/\xff"]);
        assert_eq!(paths.relative(), [c"a", c"b/\xff"]);
    }
}
