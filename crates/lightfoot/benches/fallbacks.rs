//! Why walks leave rcu-walk, counted: a `git status`, a build, clients of a file server and a storm of renames, in
//! memory and on a file system that keeps its own names. And what a name takes.
//!
//! `cargo bench -p lightfoot --bench fallbacks`: prints a table in Markdown; some seconds. The first argument that is a
//! number is that of the walks in the storm (4000000). `tests/it/fallbacks.rs` checks the same workloads, smaller.

#[path = "../tests/it/fallbacks/workload.rs"]
mod workload;

use lightfoot::{Context, Fallback, Vfs};
use std::cell::RefCell;
use testkit::{Store, StoreOptions};
use workload::{Copy, Counts};

const SOURCES: usize = 500;
const ROUNDS: usize = 20_000;
const NAMES: usize = 1_000_000;

/// Prints a row for ramfs and one for names that the file system keeps, for each of `passes` over a tree that `grow`
/// has grown.
fn rows(passes: &[&str], grow: impl Fn(&Context), work: impl Fn(&Vfs) -> u64) {
    let ram = Vfs::ram();
    grow(&ram.context());
    let names = Store::new(StoreOptions::default());
    grow(&Vfs::new(names.clone()).context());
    for (fs, vfs) in [("ramfs", ram), ("own names", Vfs::new(names.clone()))] {
        for pass in passes {
            let counts = Counts::of(&vfs, &work);
            let reasons: Vec<String> = counts.reasons.iter().map(u64::to_string).collect();
            let (walks, percent) = (counts.walks, counts.restarted_percent());
            println!("| {pass} | {fs} | {walks} | {} | {percent:.4} |", reasons.join(" | "));
        }
    }
}

fn main() {
    let walks = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(4_000_000);
    let reasons: Vec<&str> = Fallback::ALL.iter().map(|reason| reason.name()).collect();
    println!("| workload | names | walks | {} | % restarted |", reasons.join(" | "));
    println!("|---|---|{}", "---|".repeat(reasons.len() + 2));
    let copy = Copy::new(10_000, 700);
    let status = |vfs: &Vfs| copy.status(vfs);
    rows(&["lstat storm, first", "lstat storm, warm"], |context| copy.grow(context), status);
    let sources = |context: &Context| workload::grow_sources(context, SOURCES);
    rows(&["build, first", "build, again"], sources, |vfs| workload::build(vfs, SOURCES));
    rows(&["clients"], workload::grow_clients, |vfs| workload::serve(vfs, ROUNDS));
    let notes = RefCell::new(Vec::new());
    for lanes in [16, 4] {
        let name = format!("rename storm, {lanes} paths");
        rows(
            &[&name],
            |context| workload::grow_lanes(context, lanes),
            |vfs| {
                let (walks, renames) = workload::storm(vfs, lanes, walks);
                notes.borrow_mut().push(format!("{name}: {walks} walks of depth 8 beside {} renames", renames / 2));
                walks + renames
            },
        );
    }
    println!("\n{}", notes.take().join("\n"));
    println!("{NAMES} names: {:.1} bytes a name", workload::bytes_per_name(NAMES));
}
