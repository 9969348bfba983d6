//! Differential tests against the running kernel: the same random operations on both, errno for errno and attribute for
//! attribute. [`run_seeds`] describes how to replay one seed.

use crate::namespace::driver::{Case, Side, run_seeds};
use crate::namespace::kernel::Kernel;
use crate::namespace::lightfoot::Lightfoot;
use std::ops::Range;

const KERNEL: Side = Side { name: "kernel", fresh: &|| Box::new(Kernel::new()) };
const LIGHTFOOT: Side = Side { name: "lightfoot", fresh: &|| Box::new(Lightfoot::new(Kernel::world())) };
const BY_TABLE: Side =
    Side { name: "lightfoot by the table", fresh: &|| Box::new(Lightfoot::with_table(Kernel::world(), 1 << 16)) };
const SPLIT: Side = Side { name: "lightfoot, split", fresh: &|| Box::new(Lightfoot::split(Kernel::world())) };

fn compare(name: &str, seeds: Range<u64>, ops: u64, side: Side<'_>, patient: bool) {
    let case = Case { module: "kernel", name, seed: 0, world: Kernel::world(), patient };
    run_seeds(case, seeds, ops, side, KERNEL);
}

#[test]
fn lightfoot_answers_as_the_kernel_does() {
    compare("lightfoot_answers_as_the_kernel_does", 0..40, 5000, LIGHTFOOT, false);
}

#[test]
fn lightfoot_by_the_table_of_whole_paths_answers_as_the_kernel_does() {
    compare("lightfoot_by_the_table_of_whole_paths_answers_as_the_kernel_does", 300..310, 3000, BY_TABLE, false);
}

#[test]
fn lightfoot_with_every_directory_split_answers_as_the_kernel_does() {
    compare("lightfoot_with_every_directory_split_answers_as_the_kernel_does", 400..410, 3000, SPLIT, false);
}

#[test]
fn lightfoot_moves_times_as_the_kernel_does() {
    compare("lightfoot_moves_times_as_the_kernel_does", 200..204, 500, LIGHTFOOT, true);
}
