//! Test cases for file systems: the contract of [`vfs::FileSystem`] as calls, and file systems for tests.
//!
//! # What it is
//! Each case is a function over a [`Fixture`]. A case gets a fresh file system in its own tree,
//! works through paths as a program would, and returns the expected and the returned value.
//! [`Features`] lists the features that the file system lacks. [`Store`] is a file system in memory
//! with hooks, and [`Gate`] holds a request inside of it. Around any file system, [`Counting`]
//! counts requests, [`Ledger`] checks the states of opens, and [`Faults`] injects errors, short
//! transfers and hangs. [`ran_alone`] runs a test in a separate process.
//!
//! # What it is not
//! A comparison with a kernel, nor a test of the VFS itself: `crates/lightfoot/tests` has those.
//!
//! # How it is locked
//! [`Counting`], [`Ledger`], [`Faults`], [`Store`] and [`Gate`] have a mutex each.
//!
//! # Where it comes from
//! The idea of pjdfstest and xfstests' `generic` group.
//!
//! ```
//! # struct Empty;
//! # impl vfs::FileSystem for Empty {
//! #     fn root(&self) -> vfs::NewInode {
//! #         let attr = vfs::Attr { ino: 1, mode: vfs::S_IFDIR | 0o755, nlink: 2, ..Default::default() };
//! #         vfs::NewInode { node: 1, attr, ..Default::default() }
//! #     }
//! # }
//! let report = lightfoot_testkit::run(|| Empty, lightfoot_testkit::Features::all());
//! assert!(!report.is_ok()); // It refuses every name.
//! ```

#![forbid(unsafe_code)]

mod alone;
mod cases;
mod counting;
mod faults;
mod features;
mod fixture;
mod gate;
mod ledger;
mod outcome;
mod report;
mod store;
mod subject;

pub use alone::ran_alone;
pub use counting::{Counting, Counts};
pub use faults::{Fault, Faults, FaultyCall, Plan};
pub use features::{Features, Quota};
pub use fixture::Fixture;
pub use gate::Gate;
pub use ledger::{Ledger, Opens};
pub use outcome::{Failure, Outcome};
pub use report::Report;
pub use store::{Call, Store, StoreOptions, StoreQuota};
pub use subject::{Outside, Subject};

/// A case: its work with a fresh file system, and its result.
pub type Case = fn(&Fixture) -> Outcome;

macro_rules! cases {
    ($dollar:tt $($module:ident: $($case:ident),+;)+) => {
        /// All cases by name.
        pub const CASES: &[(&str, Case)] = &[$($((stringify!($case), cases::$module::$case),)+)+];

        /// One `#[test]` for each case: `testkit::suite!(make, features)`, where `make` is as for [`run`].
        #[macro_export]
        macro_rules! suite {
            ($dollar make:expr, $dollar features:expr) => {
                $($(#[test]
                fn $case() {
                    if let Err(failure) = $dollar crate::run_one(stringify!($case), $dollar make, $dollar features) {
                        panic!("{failure}");
                    }
                })+)+
            };
        }
    };
}

cases! { $
    names: a_name_that_was_made_is_found_and_others_are_not, names_may_be_long_and_have_any_byte,
        each_type_of_file_is_made_or_refused, an_existing_name_is_not_made_again,
        unlink_and_rmdir_check_the_type,
        a_removed_name_can_be_made_again, a_symbolic_link_keeps_its_body, a_hard_link_is_a_further_name;
    moves: a_file_moves_with_its_contents, a_rename_replaces_files_and_empty_directories, noreplace_replaces_nothing,
        exchanged_names_change_places, a_directory_moves_with_its_contents;
    attributes: modes_owners_and_times_are_kept, directories_count_their_subdirectories,
        a_write_changes_length_and_times;
    contents: what_is_written_is_read, a_hole_reads_as_zeros, appended_data_goes_to_the_end,
        a_cut_file_reads_as_zeros_when_it_grows, overlapping_writes_agree_with_a_model;
    listing: a_listing_has_each_of_many_names_once, a_listing_beside_changes_has_each_name_once,
        a_listing_can_begin_again, a_listing_has_types_and_inode_numbers;
    open: an_open_file_outlives_its_name, an_open_file_moves_with_its_name, a_replaced_file_stays_open,
        a_file_can_be_made_without_a_name;
    handles: each_open_is_released_once, an_open_that_fails_is_not_released,
        each_open_of_a_directory_has_its_own_listing, data_of_several_writers_are_appended,
        an_error_of_writing_is_reported_once_by_each_open;
    xattrs: extended_attributes_are_kept, extended_attributes_are_made_or_replaced_as_requested;
    storage: statfs_reports_free_space, a_full_file_system_refuses_and_recovers,
        storage_is_reserved_and_freed,
        data_and_holes_are_found, ranges_are_copied_between_files;
    quotas: a_user_stores_up_to_the_quota_and_again_after_a_removal, what_a_quota_refuses_changes_nothing,
        a_quota_of_files_refuses_new_ones, a_file_counts_for_its_owner;
    clones: files_share_storage_until_one_changes, a_reflink_of_a_wrong_range_is_refused,
        threads_write_files_that_share_storage;
    threads: threads_make_and_remove_different_names, threads_move_different_names,
        threads_write_different_ranges, threads_that_make_one_name_make_it_once;
    rights: an_acl_is_kept_and_obeyed, a_default_acl_is_inherited, set_id_bits_go_with_a_change;
    races: a_name_that_is_renamed_over_is_never_missed, a_listing_beside_renames_has_each_other_name_once;
    storing: what_was_synced_is_there_after_a_restart, an_offset_beyond_all_storage_is_refused_or_makes_a_hole;
    outside: a_file_made_outside_is_found, a_file_removed_outside_is_gone, a_change_outside_is_seen;
    ids: each_file_of_a_random_tree_is_found_by_its_handle, a_handle_needs_the_capability_and_its_own_bytes;
    end: each_inode_is_evicted_once;
}

/// Runs all cases, each over a file system that `make` returns: a [`vfs::FileSystem`] or a [`Subject`].
pub fn run<S: Into<Subject>>(make: impl Fn() -> S, features: Features) -> Report {
    Report { outcomes: CASES.iter().map(|(name, case)| (*name, run_on(*case, make().into(), features))).collect() }
}

/// Runs one case.
///
/// # Errors
/// The expected and the returned value; an unknown name.
pub fn run_one<S: Into<Subject>>(name: &str, make: impl Fn() -> S, features: Features) -> Outcome {
    match CASES.iter().find(|(case, _)| *case == name) {
        Some((_, case)) => run_on(*case, make().into(), features),
        None => Err(Failure::new(format!("{name}: no such case"))),
    }
}

/// Runs a case and ends its tree.
fn run_on(case: Case, subject: Subject, features: Features) -> Outcome {
    let context = Fixture::new(subject, features);
    let outcome = case(&context);
    outcome.and(context.finish())
}
