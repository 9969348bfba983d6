//! The same random operations on Lightfoot and on a plain reference model. [`run_seeds`] describes how
//! to replay one seed.

use crate::namespace::World;
use crate::namespace::driver::{Case, Side, run_seeds};
use crate::namespace::generate::Plan;
use crate::namespace::lightfoot::Lightfoot;
use crate::namespace::model::Model;
use crate::namespace::outcome::{Compare, Moved};

const LIGHTFOOT: Side = Side { name: "lightfoot", fresh: &|| Box::new(Lightfoot::new(World::PLAIN)) };
const BY_TABLE: Side =
    Side { name: "lightfoot by the table", fresh: &|| Box::new(Lightfoot::with_table(World::PLAIN, 1 << 16)) };
const SPLIT: Side = Side { name: "lightfoot, split", fresh: &|| Box::new(Lightfoot::split(World::PLAIN)) };
const MODEL: Side = Side { name: "model", fresh: &|| Box::new(Model::new(World::PLAIN)) };
const PLAN: Plan = Plan { world: World::PLAIN, with_lightfoot: true, extras: false };

fn case(name: &str, compare: Compare) -> Case<'_> {
    Case { module: "model", name, seed: 0, plan: PLAN, compare, patient: false }
}

#[test]
fn lightfoot_answers_as_the_model_does() {
    // Lightfoot takes times from the coarse clock: whether they moved, only a patient run can say.
    let compare = Compare { moved: Moved::Nowhere, ..Compare::ALL };
    run_seeds(case("lightfoot_answers_as_the_model_does", compare), 1000..1050, 1000, LIGHTFOOT, MODEL);
}

#[test]
fn by_the_table_of_whole_paths_it_answers_as_the_model_does() {
    let compare = Compare { moved: Moved::Nowhere, ..Compare::ALL };
    let case = case("by_the_table_of_whole_paths_it_answers_as_the_model_does", compare);
    run_seeds(case, 3000..3025, 1000, BY_TABLE, MODEL);
}

#[test]
fn with_every_directory_split_it_answers_as_the_model_does() {
    let compare = Compare { moved: Moved::Nowhere, ..Compare::ALL };
    let case = case("with_every_directory_split_it_answers_as_the_model_does", compare);
    run_seeds(case, 4000..4025, 1000, SPLIT, MODEL);
}

#[test]
fn lightfoot_moves_times_as_the_model_does() {
    let case = Case { patient: true, ..case("lightfoot_moves_times_as_the_model_does", Compare::ALL) };
    run_seeds(case, 2000..2004, 500, LIGHTFOOT, MODEL);
}
