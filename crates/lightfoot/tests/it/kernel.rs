//! Differential tests against the running kernel: the same random operations on both, errno for errno and attribute for
//! attribute. [`run_seeds`] describes how to replay one seed.

use crate::namespace::driver::{Case, Side, run_seeds};
use crate::namespace::generate::Plan;
use crate::namespace::kernel::Kernel;
use crate::namespace::lightfoot::Lightfoot;
use crate::namespace::model::Model;
use crate::namespace::outcome::{Compare, Moved};

const KERNEL: Side = Side { name: "kernel", fresh: &|| Box::new(Kernel::new()) };
const LIGHTFOOT: Side = Side { name: "lightfoot", fresh: &|| Box::new(Lightfoot::new(Kernel::world())) };
const BY_TABLE: Side =
    Side { name: "lightfoot by the table", fresh: &|| Box::new(Lightfoot::with_table(Kernel::world(), 1 << 16)) };
const MODEL: Side = Side { name: "model", fresh: &|| Box::new(Model::new(Kernel::world())) };

fn case(name: &str, compare: Compare) -> Case<'_> {
    let world = Kernel::world();
    let with_lightfoot = name.starts_with("lightfoot");
    let plan = Plan { world, with_lightfoot, extras: with_lightfoot && !world.confined };
    Case { module: "kernel", name, seed: 0, plan, compare, patient: false }
}

#[test]
fn lightfoot_answers_as_the_kernel_does() {
    // Lightfoot takes times from the coarse clock: whether they moved, only a patient run can say.
    let compare = Compare { moved: Moved::Nowhere, ..Compare::ALL };
    let case = case("lightfoot_answers_as_the_kernel_does", compare);
    run_seeds(case, 0..40, 5000, LIGHTFOOT, KERNEL);
}

#[test]
fn lightfoot_by_the_table_of_whole_paths_answers_as_the_kernel_does() {
    let compare = Compare { moved: Moved::Nowhere, ..Compare::ALL };
    let case = case("lightfoot_by_the_table_of_whole_paths_answers_as_the_kernel_does", compare);
    run_seeds(case, 300..310, 3000, BY_TABLE, KERNEL);
}

#[test]
fn lightfoot_moves_times_as_the_kernel_does() {
    let case = Case { patient: true, ..case("lightfoot_moves_times_as_the_kernel_does", Compare::ALL) };
    run_seeds(case, 200..204, 500, LIGHTFOOT, KERNEL);
}

#[test]
fn the_model_answers_as_the_kernel_does() {
    // Without waiting for its clock, the kernel shows that times moved only where it has multigrain timestamps
    // (tmpfs, since Linux 6.13).
    let moved = if Kernel::moves_times_at_once() { Moved::InFiles } else { Moved::Nowhere };
    let case = case("the_model_answers_as_the_kernel_does", Compare { moved, ..Compare::ALL });
    run_seeds(case, 0..20, 1000, MODEL, KERNEL);
}

#[test]
fn the_model_moves_times_as_the_kernel_does() {
    let case = Case { patient: true, ..case("the_model_moves_times_as_the_kernel_does", Compare::ALL) };
    run_seeds(case, 100..104, 500, MODEL, KERNEL);
}
