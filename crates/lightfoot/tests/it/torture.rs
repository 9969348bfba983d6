//! All processors change one tree at once, with everything that it can do; a bounded number of operations, a seed printed.
//!
//! What must hold meanwhile: a name that one thread alone makes and takes away is there when it should be, wherever its directory
//! has been moved; a reverse path is one that the file had at one moment; a name that one thread takes through
//! states is seen in their order. What must hold afterwards: as many links as names, no count held, nothing deferred.

mod caching;
mod everything;
mod own;
mod whole;

use crate::tree_kind::{TreeKind, test_each_kind};
use vfs::{FileSystem, Vfs};

/// The tree of each test.
fn new_tree(kind: TreeKind, fs: impl FileSystem) -> Vfs {
    match kind {
        TreeKind::Plain => Vfs::new(fs),
        TreeKind::ByTable => Vfs::builder().whole_paths(1 << 20).records_every_path(true).build(fs),
        TreeKind::Split => Vfs::builder().shards_every_directory(true).build(fs),
    }
}

test_each_kind!([plain: Plain, by_table: ByTable, split: Split] [
    caching::no_name_is_lost_while_all_that_is_cached_is_in_doubt,
    everything::all_operations_at_once_lose_no_name_and_leave_nothing_held,
    everything::a_path_that_is_asked_back_is_of_one_moment_however_long_the_way_is,
]);
