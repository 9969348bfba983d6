//! The command line of `lightfoot-lab`.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "lightfoot-lab",
    version,
    about = "Measure Lightfoot, the kernel, and the generations of the Linux directory cache",
    arg_required_else_help = true
)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure Lightfoot beside the kernel on copies of a directory tree, or beside published crates
    ///
    /// The command copies the tree (names, types, modes, symbolic links, small contents) into a Lightfoot instance in memory
    /// and, for the kernel, into a temporary directory, which it removes at the end. Both then do the same operations on the
    /// same paths, in turn.
    Bench(Box<Bench>),

    /// List the eras, the workloads with their parameters, and the simulated machines
    List(List),

    /// Run eras under a workload, on this machine or on a simulated one
    ///
    /// Each era runs with each number of CPUs (on this machine: of threads). A simulated run depends on its seed and on
    /// nothing else. The time that a workload spends outside the directory cache passes on simulated machines only.
    Run(Box<Run>),

    /// Set published figures beside simulated ones: write lab/docs/lab-report.md and its plots
    ///
    /// Takes about 12 minutes on 2 CPUs. The same program writes the same report. The outcomes are kept in lab/outcomes.
    Report(crate::published::ReportArguments),

    /// Compare lock loops on this machine with the same loops on a simulated machine with its latencies
    ///
    /// Takes one to two minutes. Needs two CPUs.
    Calibrate(crate::calibrate::Calibrate),

    /// Run one job, given as JSON on standard input (for lightfoot-lab itself)
    #[command(hide = true)]
    Cell,
}

/// The arguments of `lightfoot-lab list`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct List {
    /// Only what has one of these in its name or its line
    #[arg(value_name = "PART")]
    pub(crate) parts: Vec<String>,
}

/// The arguments of `lightfoot-lab bench`.
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they are the command's switches")]
pub(crate) struct Bench {
    /// The directory to copy; without one, a synthetic tree of 9,984 files at each of the depths 1, 4, 8 and 16
    #[arg(conflicts_with = "cold")]
    pub(crate) dir: Option<PathBuf>,

    /// Compare lookups of Lightfoot, of published crates and of the kernel, and a system call that does nothing
    ///
    /// Each looks up 1,000 of 9,984 files at each of the depths 1, 4, 8 and 16, with one thread and with two. The table is
    /// Markdown. Takes about a minute.
    #[arg(long, conflicts_with_all = ["dir", "cold", "cases"])]
    pub(crate) peers: bool,

    /// Print one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,

    /// Print also how often the walk left its fast path, by reason
    #[arg(short, long, conflicts_with_all = ["peers", "json"])]
    pub(crate) verbose: bool,

    /// Two depths, 5 rounds, short slices: takes less than 20 seconds, and is less exact
    #[arg(long)]
    pub(crate) quick: bool,

    /// Numbers of threads [default: 1, 2, 4, ... up to all CPUs; with --quick 1 and all]
    #[arg(long, value_name = "N,N..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) threads: Vec<u32>,

    /// Rounds; the result is their median [default: 9; with --quick 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(5..=999))]
    pub(crate) rounds: Option<u32>,

    /// Only the cases whose names contain one of these, such as stat or lightfoot.open
    #[arg(long, value_name = "PART,PART..", value_delimiter = ',', conflicts_with = "cold")]
    pub(crate) cases: Vec<String>,

    /// Where to put the kernel's copy [default: /dev/shm if it is writable, else $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR")]
    pub(crate) scratch: Option<PathBuf>,

    /// Look up every file of a synthetic tree of a million, in random order, with Lightfoot alone
    #[arg(long, conflicts_with = "quick")]
    pub(crate) cold: bool,

    /// With --cold, measure the kernel too (takes about 1 GiB more memory)
    #[arg(long, requires = "cold")]
    pub(crate) cold_kernel: bool,

    /// Length of a slice in microseconds
    #[arg(long, hide = true, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) slice_us: Option<u64>,

    /// Files of the tree for --cold, about
    #[arg(long, hide = true, default_value_t = 1_000_000)]
    pub(crate) cold_files: usize,
}

/// The arguments of `lightfoot-lab run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Run {
    /// Names of eras, or all (see lightfoot-lab list)
    #[arg(long, value_name = "NAME,NAME..", value_delimiter = ',', default_value = "all")]
    pub(crate) era: Vec<String>,

    /// The workload (see lightfoot-lab list)
    #[arg(long, value_name = "NAME")]
    pub(crate) workload: String,

    /// native, sim:MACHINE, or sim:MACHINE:NODES for a part of the machine; MACHINE is a name or a TOML file
    #[arg(long, value_name = "PLACE", default_value = "native")]
    pub(crate) on: String,

    /// Numbers of threads [default: natively 1, 2, 4, ... up to all CPUs; simulated one for each CPU]
    #[arg(long, value_name = "N,N..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) threads: Vec<u32>,

    /// Numbers of CPUs of the simulated machine [default: 1, 2, 4, ... up to all]
    #[arg(long, value_name = "N,N..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cpus: Vec<u32>,

    /// Take CPUs from all nodes in turn instead of one node after the other
    #[arg(long)]
    pub(crate) spread: bool,

    /// The seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Set a parameter of the workload
    #[arg(long = "set", value_name = "NAME=N,..", value_delimiter = ',', value_parser = assignment)]
    pub(crate) set: Vec<(String, u64)>,

    /// Set an option of the eras, such as create_ns
    #[arg(long, value_name = "NAME=N,..", value_delimiter = ',', value_parser = assignment)]
    pub(crate) era_set: Vec<(String, u64)>,

    /// Milliseconds to measure, real or virtual; a fifth of that before is the warm-up [default: 300 on this machine, 10
    /// simulated]
    #[arg(long, value_name = "N", value_parser = milliseconds)]
    pub(crate) time_ms: Option<f64>,

    /// Interrupts of the simulated CPUs: mean microseconds between them, and of each; 0 for none. Without interrupts, a
    /// queue at a lock may never form [default: 1000,3]
    #[arg(long, value_name = "EVERY,LENGTH", value_delimiter = ',', num_args = 1)]
    pub(crate) interrupts_us: Vec<u32>,

    /// Nanoseconds by which a simulated CPU may run ahead of the others: up to 50 is faster and nearly as exact
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub(crate) slack_ns: u64,

    /// Simulations at a time [default: one for each CPU of this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// Show statistics of the locks too, in the columns of Lockmeter
    #[arg(long)]
    pub(crate) lockstat: bool,

    /// Show what simulated CPUs wait for too: the stalls by source line and by cache line, the longest first
    #[arg(long)]
    pub(crate) stalls: bool,

    /// Print one JSON document instead of the table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `NAME=N`.
fn assignment(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("use NAME=N")?;
    let value = value.replace('_', "").parse().map_err(|_| format!("{value:?}: not a whole number"))?;
    Ok((name.into(), value))
}

/// Returns a length of time from a microsecond to ten minutes.
fn milliseconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ms) if (0.001..=600_000.0).contains(&ms) => Ok(ms),
        _ => Err("use a number from 0.001 to 600000".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

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
