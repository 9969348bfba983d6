//! Threads that change a tree while others look at it. Each change is a step of a [`race::History`], and what a reader sees
//! must fit one of the states that the tree was in while it looked, and none before the state that it saw last.
//!
//! Rounds are bounded. The order of threads is the machine's; all else follows from the seed that each test prints.

mod listing;
mod moving;
mod names;
pub(crate) mod race;
mod rename;
mod storm;
mod view;

use crate::tree_kind::{TreeKind, test_each_kind};
use lightfoot::{RamFs, Vfs};

/// The tree of each test.
fn new_tree(kind: TreeKind) -> Vfs {
    match kind {
        TreeKind::ByTable => Vfs::builder().whole_paths(1 << 20).records_every_path(true).build(RamFs::new()),
        TreeKind::Plain | TreeKind::Split => Vfs::ram(),
    }
}

test_each_kind!([plain: Plain, by_table: ByTable] [
    listing::a_listing_gives_what_stays_exactly_once_and_no_name_that_never_was,
    moving::a_path_through_a_directory_that_moves_leads_to_its_file_or_to_nothing,
    moving::what_lies_below_a_working_directory_is_found_wherever_that_is_moved,
    moving::a_reverse_path_is_one_that_the_file_had_and_no_mixture,
    moving::directories_that_are_renamed_into_one_another_never_make_a_loop,
    rename::a_file_that_is_renamed_has_one_of_its_names_at_every_moment,
    rename::a_name_that_is_renamed_over_is_never_absent_and_leads_to_the_old_or_the_new,
    rename::a_name_that_is_removed_and_made_again_leads_to_a_file_that_was_there_meanwhile,
    rename::a_path_does_not_lead_into_a_directory_that_took_the_memory_of_one_on_the_way,
    storm::of_those_who_make_or_remove_one_name_each_time_one_succeeds,
    storm::an_open_file_keeps_its_contents_when_its_name_goes_and_comes_back,
    storm::names_are_found_while_the_table_grows_and_shrinks_again,
    storm::a_name_that_stays_is_found_while_its_neighbours_on_the_chain_come_and_go,
    view::a_relative_path_starts_at_a_working_directory_of_one_moment,
    view::a_walk_has_the_credentials_of_one_moment,
    view::a_walk_that_is_disturbed_keeps_the_credentials_that_it_began_with,
    view::attributes_are_those_of_one_moment,
]);
