//! What the command line can say after `lightfoot lab`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What `lightfoot lab` is asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Lab {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

/// What the lab can do.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List eras, workloads with what can be set on them, and simulated machines
    List,

    /// Show the simulated machines: nodes, CPUs, latencies
    Machines,

    /// Run eras under a workload, on this machine or on a simulated one
    ///
    /// Each era runs at each number of CPUs (natively, of threads), and the figures stand beside each other. Simulated
    /// runs depend on the seed and on nothing else. Times that a workload spends outside the directory cache pass on
    /// simulated machines only.
    Run(Box<Run>),

    /// Set every published table beside ours: writes docs/lab-report.md and its plots
    ///
    /// Takes a few minutes. The same program writes the same report.
    Report(super::published::Report),

    /// Set lock loops on this machine beside the same loops on a simulated machine with its numbers
    ///
    /// Takes one to two minutes. Needs two CPUs.
    Calibrate(super::calibrate::Calibrate),

    /// Do one job, given as JSON on standard input; for the lab's own use
    #[command(hide = true)]
    Cell,
}

/// What `lightfoot lab run` is asked.
#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    /// Eras by name, or all; see lightfoot lab list
    #[arg(long, value_name = "NAME,NAME..", value_delimiter = ',', default_value = "all")]
    pub(crate) era: Vec<String>,

    /// The workload; see lightfoot lab list
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: String,

    /// native, or sim:MACHINE, or sim:MACHINE:NODES for some of its nodes; MACHINE is a name or a TOML file
    #[arg(long, value_name = "PLACE", default_value = "native")]
    pub(crate) on: String,

    /// Numbers of threads [default: natively 1, 2, 4, ... up to all CPUs; simulated one for each CPU]
    #[arg(long, value_name = "N,N..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) threads: Vec<u32>,

    /// Numbers of CPUs of the simulated machine [default: 1, 2, 4, ... up to all]
    #[arg(long, value_name = "N,N..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus: Vec<u32>,

    /// Take CPUs from all nodes in turn, not one node after the other
    #[arg(long)]
    pub(crate) spread: bool,

    /// What everything random comes from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Set a parameter of the workload
    #[arg(long = "set", value_name = "NAME=N,..", value_delimiter = ',', value_parser = assignment)]
    pub(crate) set: Vec<(String, u64)>,

    /// Set an option of the eras, such as create_ns
    #[arg(long, value_name = "NAME=N,..", value_delimiter = ',', value_parser = assignment)]
    pub(crate) era_set: Vec<(String, u64)>,

    /// Milliseconds that are counted, real or virtual, after a fifth of that to warm up [default: 300 natively, 10
    /// simulated]
    #[arg(long, value_name = "N", value_parser = milliseconds)]
    pub(crate) time_ms: Option<f64>,

    /// Interrupts of the simulated CPUs: mean microseconds between them and of each, or 0 for none; without any, a queue
    /// that has not formed may never form [default: 1000,3]
    #[arg(long, value_name = "EVERY,LENGTH", value_delimiter = ',', num_args = 1)]
    pub(crate) interrupts_us: Vec<u32>,

    /// Nanoseconds that a simulated CPU may run ahead: up to 50 is faster and hardly less exact
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub(crate) slack_ns: u64,

    /// Simulations at a time [default: one for each CPU of this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// Show statistics of the locks too, in Lockmeter's columns
    #[arg(long)]
    pub(crate) lockstat: bool,

    /// Print one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Draw throughput per CPU, and in total, against CPUs into this SVG file
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
}

/// `NAME=N`.
fn assignment(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=N")?;
    let value = value.replace('_', "").parse().map_err(|_| format!("{value:?} is no whole number"))?;
    Ok((name.into(), value))
}

/// A length of time from a microsecond to ten minutes.
fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ms) if (0.001..=600_000.0).contains(&ms) => Ok(ms),
        _ => Err("name a number from 0.001 to 600000".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_has_a_name_and_a_number() {
        assert_eq!(assignment("think_ns=7_000"), Ok(("think_ns".into(), 7000)));
        assert!(assignment("think_ns").is_err());
        assert!(assignment("think_ns=soon").is_err());
    }

    #[test]
    fn a_time_is_a_number_of_sensible_size() {
        assert_eq!(milliseconds("0.5"), Ok(0.5));
        for text in ["0", "-1", "NaN", "inf", "soon", "1e9"] {
            assert!(milliseconds(text).is_err(), "{text}");
        }
    }
}
