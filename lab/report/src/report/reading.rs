//! The quantities of the published figures, by name, read from an outcome of the simulated machine.

use super::experiment::MIN_OPERATIONS;
use crate::lock_row::LockRow;
use crate::outcome::Outcome;

impl Outcome {
    /// Percent of the CPUs' time that was neither the program's nor idle: the system time of `time`
    /// and `top`.
    #[must_use]
    pub fn system_percent(&self) -> f64 {
        100.0 - self.share("User") - self.share("Idle")
    }

    /// Percent of the CPUs' time spent taking spinlocks, as a profile shows it under
    /// `_raw_spin_lock`.
    #[must_use]
    pub fn spin_percent(&self) -> f64 {
        self.share("SpinLock")
    }

    /// As [`spin_percent`](Self::spin_percent), of the system time alone.
    #[must_use]
    pub fn spin_percent_of_system(&self) -> f64 {
        100.0 * self.spin_percent() / self.system_percent()
    }

    /// Steps a second of the workers of `role`; 0 if the workload does not have the role.
    #[must_use]
    pub fn rate_of_role(&self, role: &str) -> f64 {
        self.roles.iter().find(|rate| rate.role == role).map_or(0.0, |rate| rate.ops_per_second)
    }

    /// Returns whether the workers of the first role took too few steps for a figure.
    #[must_use]
    pub fn is_thin(&self) -> bool {
        self.roles.first().is_none_or(|role| role.ops < MIN_OPERATIONS)
    }

    /// Percent of the system time spent taking spinning locks of any kind, or reading again after a
    /// sequence lock's writer.
    #[must_use]
    pub fn all_spinning_of_system(&self) -> f64 {
        let spinning: f64 = ["SpinLock", "RwLock", "SeqLock"].iter().map(|tag| self.share(tag)).sum();
        100.0 * spinning / self.system_percent()
    }

    /// Percent of the system time spent on locks and counts of any kind, which a profile adds up as
    /// locking.
    #[must_use]
    pub fn locking_percent_of_system(&self) -> f64 {
        let locking = ["SpinLock", "RwLock", "SeqLock", "Mutex", "RwSem", "Ref"];
        100.0 * locking.iter().map(|tag| self.share(tag)).sum::<f64>() / self.system_percent()
    }

    /// Percent of the time in spinning locks that the function `name` spun.
    #[must_use]
    pub fn spun_by(&self, name: &str) -> f64 {
        self.callers.iter().find(|share| share.tag == name).map_or(0.0, |share| share.percent)
    }

    /// Steps of all workers.
    #[must_use]
    pub fn operations(&self) -> f64 {
        self.per_worker.iter().sum::<u64>() as f64
    }

    /// Returns the count of the machine or the era under this name; 0 without one.
    #[must_use]
    pub fn counter(&self, name: &str) -> f64 {
        self.counters.get(name).copied().unwrap_or(0) as f64
    }

    /// Returns the statistics of the class `name`.
    ///
    /// # Panics
    /// If the era has no lock of that class: a mistake of the caller.
    #[must_use]
    pub fn lock(&self, name: &str) -> &LockRow {
        let row = self.locks.iter().find(|row| row.name == name);
        row.unwrap_or_else(|| panic!("{} has no lock of the class {name}", self.job.era))
    }
}
