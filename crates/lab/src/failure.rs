//! Why a run has no outcome: a sentence for people, and whether it is the era that cannot do it.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a run has no outcome.
#[derive(Clone, Debug, Deserialize, Error, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No era of that name.
    #[error("there is no era {era:?}; there are {}", known.join(", "))]
    NoSuchEra {
        /// The name asked for.
        era: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// No workload of that name.
    #[error("there is no workload {workload:?}; there are {}", known.join(", "))]
    NoSuchWorkload {
        /// The name asked for.
        workload: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A parameter of the workload, or an option of eras, that is unknown or out of bounds.
    #[error("{of}: {reason}")]
    BadValue {
        /// Whose parameter.
        of: String,
        /// A sentence that says what there is.
        reason: String,
    },
    /// The numbers of threads, CPUs or nanoseconds make no sense.
    #[error("{0}")]
    BadJob(String),
    /// The era has no such operation.
    #[error("the era {era} has an operation too few for the workload {workload}")]
    Unsupported {
        /// The era.
        era: String,
        /// The workload.
        workload: String,
    },
    /// An operation failed.
    #[error("{workload} on {era}: {place} failed with {error}")]
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
    /// The runs were broken off before this one began.
    #[error("{workload} on {era} was not begun")]
    NotBegun {
        /// The era.
        era: String,
        /// The workload.
        workload: String,
    },
    /// The process that ran it ended without an outcome.
    #[error("{workload} on {era}: its process ended with {status}: {message}")]
    Died {
        /// The era.
        era: String,
        /// The workload.
        workload: String,
        /// As the system puts it.
        status: String,
        /// What it wrote to standard error, or that it wrote none.
        message: String,
    },
}
