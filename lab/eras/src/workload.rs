//! The workloads that run on the eras (the directory caches of Linux from several years, and Lightfoot's): the workloads of
//! the published figures, and `FxMark`'s.
//!
//! # What it is
//! A [`Workload`] makes a tree in an era and then hands out workers; one [`step`](Worker::step) of
//! a worker is one operation of the published measure. A workload uses an era only through its
//! trait, so every workload runs on every era. Its settings are [`Parameter`]s: numbers with a name, a unit,
//! bounds and a default; [`catalogue`] lists all.
//!
//! Time that a program spends on its own account is [`prim::cost`] inside a [`User`](prim::profile::Tag::User) scope:
//! nothing on real hardware, virtual time on a simulated machine. So a workload on real hardware is the bare sequence of
//! operations, and its figures are of the directory cache alone.
//!
//! # What it is not
//! A replay of a trace, or a measure of a whole system: there is no disk, no network and no page cache. Where weights
//! or times were chosen here and are not the publication's, the workload's file states that.
//!
//! # Locking
//! None: workers share nothing but the era. Each has its own random numbers.

mod aim7;
mod common_cwd;
mod containers;
mod create_unlink;
mod dbench;
mod file_system_status;
mod find_size;
mod fxmark;
mod git_diff;
mod layout;
mod open_close;
mod open_file;
mod pace;
mod parameter;
mod pread;
mod process_maps;
mod renamer;
mod reverse_path;
mod static_web;
#[cfg(test)]
mod tests;
mod whole_paths;

pub use parameter::{Parameter, Parameters, Refused};

use crate::era::{Era, Result};

/// A load with its parameters set.
pub trait Workload: Send + Sync {
    /// Makes the tree that `workers` workers need, and their shared state. An error is the era's.
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>>;

    /// Returns the most entries, files and directories together, that `workers` workers ever have
    /// in the tree at once.
    fn entries(&self, workers: usize) -> usize;

    /// Returns the roles of workers: the lab counts the steps of each role apart. The figure is of
    /// the first.
    fn roles(&self) -> &'static [&'static str] {
        &["worker"]
    }
}

/// A load whose tree is made: it hands out its workers.
pub trait Stage: Send + Sync {
    /// Returns worker number `index`. One thread makes and steps the worker. The same `seed` makes
    /// the same choices.
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>>;

    /// Returns the place of this worker's role in [`Workload::roles`].
    fn role(&self, _index: usize) -> usize {
        0
    }
}

/// The state of one worker between operations. Dropping the state closes the worker's open files.
pub trait Worker {
    /// Does one operation of the published measure.
    fn step(&mut self) -> Result<()>;
}

impl<F: FnMut() -> Result<()>> Worker for F {
    fn step(&mut self) -> Result<()> {
        self()
    }
}

/// A load whose tree is made in an era, with the shared state of its workers.
struct Made<'era, L, S = ()> {
    load: L,
    era: &'era dyn Era,
    shared: S,
}

/// A workload that can be selected by name.
pub struct WorkloadEntry {
    /// The workload's name on the command line.
    pub name: &'static str,
    /// The work of a worker, in a line.
    pub summary: &'static str,
    /// The published measure that the workload models.
    pub source: &'static str,
    /// The settings.
    pub parameters: &'static [Parameter],
    make: fn(&Parameters) -> Box<dyn Workload>,
}

impl WorkloadEntry {
    /// Returns the workload with these values set and every other at its default.
    ///
    /// # Errors
    /// A name that it has no parameter of, or a value out of bounds.
    pub fn make<'a>(
        &self,
        values: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> core::result::Result<Box<dyn Workload>, Refused> {
        Ok((self.make)(&Parameters::new(self.parameters, values)?))
    }
}

/// Returns every workload, in the order of the years that the workloads model.
#[must_use]
pub fn catalogue() -> &'static [WorkloadEntry] {
    CATALOGUE
}

/// Returns the workload of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static WorkloadEntry> {
    CATALOGUE.iter().find(|entry| entry.name == name)
}

const CATALOGUE: &[WorkloadEntry] = &[
    static_web::ENTRY,
    dbench::ENTRY,
    git_diff::SERIAL,
    git_diff::THREADS,
    open_close::ENTRY,
    open_close::SEPARATE,
    common_cwd::ENTRY,
    file_system_status::ENTRY,
    create_unlink::COMMON,
    create_unlink::SEPARATE,
    find_size::ENTRY,
    reverse_path::ENTRY,
    process_maps::ENTRY,
    aim7::SHORT,
    aim7::mix::ALLTESTS,
    aim7::mix::FIVE_SEC,
    aim7::mix::FSERVER,
    aim7::mix::HIGH_SYSTIME,
    aim7::mix::NEW_FSERVER,
    aim7::mix::SHARED,
    pread::ENTRY,
    containers::START,
    containers::BESIDE,
    fxmark::MRPL,
    fxmark::MRPM,
    fxmark::MRPH,
    fxmark::MRDL,
    fxmark::MRDM,
    fxmark::MWCL,
    fxmark::MWCM,
    fxmark::MWUL,
    fxmark::MWUM,
    fxmark::MWRL,
    fxmark::MWRM,
    whole_paths::ENTRY,
];
