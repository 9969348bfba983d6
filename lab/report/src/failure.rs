//! The error of this crate: why a run has no outcome, or a calibration no result.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a run has no outcome.
#[derive(Clone, Debug, Deserialize, Error, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No era of that name.
    #[error("invalid era {era:?} (use {})", known.join(", "))]
    NoSuchEra {
        /// The requested name.
        era: String,
        /// The valid names.
        known: Vec<String>,
    },
    /// No workload of that name.
    #[error("invalid workload {workload:?} (use {})", known.join(", "))]
    NoSuchWorkload {
        /// The requested name.
        workload: String,
        /// The valid names.
        known: Vec<String>,
    },
    /// A parameter of the workload, or an option of eras, that is unknown or out of bounds.
    #[error("{of}: {reason}")]
    BadValue {
        /// Whose parameter.
        of: String,
        /// Why it is invalid, and the valid values.
        reason: String,
    },
    /// The numbers of threads, CPUs or nanoseconds are invalid.
    #[error("{0}")]
    BadJob(String),
    /// The era lacks an operation.
    #[error("{workload} on {era}: the era lacks an operation of the workload")]
    Unsupported {
        /// The era.
        era: String,
        /// The workload.
        workload: String,
    },
    /// An operation failed.
    #[error("{workload} on {era}: {place}: {error}")]
    Operation {
        /// The era.
        era: String,
        /// The workload.
        workload: String,
        /// Making the tree, or a step of a worker.
        place: String,
        /// The era's error.
        error: String,
    },
    /// The runs were interrupted before this one started.
    #[error("{workload} on {era}: not started")]
    NotBegun {
        /// The era.
        era: String,
        /// The workload.
        workload: String,
    },
    /// The process of the run ended without an outcome.
    #[error("{workload} on {era}: the process ended with {status}: {message}")]
    Died {
        /// The era.
        era: String,
        /// The workload.
        workload: String,
        /// Its exit status, in words.
        status: String,
        /// Its standard error.
        message: String,
    },
    /// A calibration needs two CPUs.
    #[error("calibration needs two CPUs, and this process may use {0}")]
    TooFewCpus(usize),
    /// The named CPUs are equal, or this process may not run on them.
    #[error("invalid CPUs {0} and {1} (use two different CPUs of this process)")]
    UnusableCpus(usize, usize),
    /// Nearly every burst of a calibration was disturbed.
    #[error(
        "this machine is too busy to measure: a thread lost its CPU in nearly all bursts (try again when it is idle)"
    )]
    Busy,
}
