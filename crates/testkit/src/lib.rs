//! Cases that any file system can be run through: the contract of [`vfs::FileSystem`] in calls.
//!
//! # What it is
//! Functions over a [`Context`]: each gets a fresh file system in a tree of its own, works through paths as a program
//! would, and answers what it expected and what came. [`Features`] says what the file system does not have.
//!
//! # What it is not
//! A comparison with a kernel, nor a test of the VFS itself: `crates/lightfoot/tests` has those.
//!
//! # How it is locked
//! Not at all; [`Counting`] has a mutex around its counts.
//!
//! # Where it comes from
//! The idea of pjdfstest and xfstests' `generic` group; own code.
//!
//! ```
//! # struct Empty;
//! # impl vfs::FileSystem for Empty {
//! #     fn root(&self) -> vfs::NewInode {
//! #         let attr = vfs::Attr { ino: 1, mode: vfs::S_IFDIR | 0o755, nlink: 2, ..Default::default() };
//! #         vfs::NewInode { node: 1, attr, ..Default::default() }
//! #     }
//! # }
//! let report = testkit::run(|| Empty, testkit::Features::all());
//! assert!(!report.is_ok()); // It has no names at all.
//! ```

#![forbid(unsafe_code)]

mod cases;
mod context;
mod counting;
mod features;
mod report;
mod subject;

pub use context::{Context, Failure, Outcome};
pub use counting::{Counting, Counts};
pub use features::Features;
pub use report::Report;
pub use subject::{Outside, Subject};

/// A case: what it does with a fresh file system, and what it says in the end.
pub type Case = fn(&Context) -> Outcome;

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
        each_kind_of_file_is_made_or_refused, what_is_there_is_not_made_again,
        removing_refuses_what_is_not_its_to_remove,
        a_removed_name_can_be_made_again, a_symbolic_link_says_what_it_was_made_with, a_hard_link_is_a_further_name;
    moves: a_file_moves_with_its_contents, a_rename_replaces_what_may_be_replaced, noreplace_replaces_nothing,
        exchanged_names_change_places, a_directory_that_moves_takes_along_what_is_below_it;
    attributes: modes_owners_and_times_are_kept, directories_count_their_subdirectories,
        a_write_changes_length_and_times;
    contents: what_is_written_is_read, a_hole_reads_as_zeros, appended_data_goes_to_the_end,
        a_cut_file_reads_as_zeros_when_it_grows, overlapping_writes_agree_with_a_model;
    listing: a_listing_has_each_of_many_names_once, a_listing_under_change_loses_and_doubles_nothing,
        a_listing_can_begin_again, a_listing_says_kinds_and_numbers;
    open: an_open_file_outlives_its_name, an_open_file_goes_with_its_name, a_replaced_file_stays_open,
        a_file_can_be_made_without_a_name;
    xattrs: extended_attributes_are_kept, extended_attributes_are_made_or_replaced_as_asked;
    storage: a_file_system_says_what_it_has_left, a_full_file_system_refuses_and_recovers,
        storage_is_reserved_and_given_back,
        data_and_holes_are_found;
    threads: threads_make_and_remove_names_of_their_own, threads_move_names_of_their_own,
        threads_write_ranges_of_their_own, threads_that_make_one_name_make_it_once;
    outside: what_appears_outside_is_found, what_vanishes_outside_is_gone, what_changes_outside_is_seen;
    end: each_inode_comes_to_one_end;
}

/// Runs all cases, each over a file system that `make` gives: a [`vfs::FileSystem`], or a [`Subject`].
pub fn run<S: Into<Subject>>(make: impl Fn() -> S, features: Features) -> Report {
    Report::new(CASES.iter().map(|(name, case)| (*name, run_on(*case, make().into(), features))).collect())
}

/// Runs one case.
///
/// # Errors
/// What was expected and what came; that there is no such case.
pub fn run_one<S: Into<Subject>>(name: &str, make: impl Fn() -> S, features: Features) -> Outcome {
    match CASES.iter().find(|(case, _)| *case == name) {
        Some((_, case)) => run_on(*case, make().into(), features),
        None => Err(Failure::new(format!("there is no case {name}"))),
    }
}

/// Runs a case and takes its tree down.
fn run_on(case: Case, subject: Subject, features: Features) -> Outcome {
    let context = Context::new(subject, features);
    let outcome = case(&context);
    outcome.and(context.finish())
}
