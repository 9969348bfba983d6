//! Misses on a simulated machine: names that the cache does not have, of a file system that keeps its own names.
//!
//! `cargo run --release -p lightfoot-lab-report --example misses`; some ten seconds. Each thread looks up new names in a
//! private directory, or in one. The file system has no state, so it takes 0.5 us and writes to nothing. Rows: names that exist,
//! names that do not, and names that exist in a cache that is full, so that each takes the slot of another one. Then come
//! the cache lines that one thread's miss writes and another's touches, by the source files of the accesses.

use sim::footprint::{Footprint, record};
use sim::stall::{by_cache_line, by_place};
use sim::{Config, Machine, Report, cost, count_op, running};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use vfs_sim::{
    Attr, Base, Budget, Context, Errno, FileSystem, FsTraits, Inode, NewInode, NextNames, Request, S_IFDIR, S_IFREG,
    Vfs,
};

/// Without it, the lines of the heap depend on the host.
#[global_allocator]
static ARENA: sim::Arena = sim::Arena;

/// Directories `d0`, `d1` and so on in the root; in each, a file for each name `f0`, `f1` and so on.
struct Numbers;

fn number(name: &[u8], first: u8) -> Option<u64> {
    let digits = name.strip_prefix(&[first])?;
    core::str::from_utf8(digits).ok()?.parse().ok()
}

fn found(node: u64, mode: u32) -> NewInode {
    NewInode { node, attr: Attr { ino: node, mode, nlink: 1, ..Attr::default() }, ..NewInode::default() }
}

impl FileSystem for Numbers {
    fn traits(&self) -> FsTraits {
        FsTraits::default()
    }

    fn root(&self) -> NewInode {
        found(1, S_IFDIR | 0o755)
    }

    fn lookup(&self, _: &Request, dir: &Inode, name: &[u8], _: &mut NextNames<'_>) -> Result<NewInode, Errno> {
        cost(500);
        match dir.node() {
            1 => number(name, b'd').map(|dir| found((dir + 1) << 32, S_IFDIR | 0o755)),
            dir => number(name, b'f').map(|file| found(dir + file + 1, S_IFREG | 0o644)),
        }
        .ok_or(Errno::ENOENT)
    }
}

/// What is looked up, in how large a cache.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    prefix: char,
    budget: Budget,
    /// Whether all threads look in one directory.
    common: bool,
}

fn look_up(context: &Context, case: Case, thread: usize, mut next: impl FnMut() -> bool) {
    let mut file = 0;
    let (dir, first) = if case.common { (0, thread << 20) } else { (thread, 0) };
    while next() {
        let path = format!("/d{dir}/{}{}", case.prefix, first + file);
        assert_eq!(context.attr(Base::CWD, path.as_bytes(), true).is_ok(), case.prefix == 'f', "{path}");
        file += 1;
    }
}

/// Looks names up on so many CPUs.
fn run(case: Case, cpus: usize, stalls: bool) -> Report {
    let machine = Machine::preset("epyc192").expect("a preset");
    let config = Config { stalls, ..Config::new(machine, cpus, 4_000) };
    let body = move |vfs: &Vfs, thread| {
        look_up(&vfs.context(), case, thread, || {
            count_op(0);
            running()
        });
    };
    sim::run(config, move || Vfs::with_budget(Numbers, case.budget), body)
}

/// Thousand misses a second and CPU.
fn rate(case: Case, cpus: usize) -> f64 {
    run(case, cpus, false).rate(0) / 1e3 / cpus as f64
}

/// What the time of a miss goes to, in nanoseconds: the longest stalls by place and by cache line.
fn show_stalls(case: Case, cpus: usize) {
    let report = run(case, cpus, true);
    let misses = report.operations[0] as f64;
    let each = |ns: f64| ns / misses;
    let whole = report.span_ns * report.cpus as f64;
    println!(
        "{} with {cpus} CPUs: {:.0} ns a miss, of them idle {:.0}, stalls {:.0}",
        case.name,
        each(whole),
        each(report.idle_ns),
        each(report.stall_ns)
    );
    for (title, sums) in [("place", by_place(&report.stalls)), ("cache line", by_cache_line(&report.stalls))] {
        println!("   ns  misses   lines  by {title}");
        for sum in sums.iter().take(24) {
            let places: Vec<&str> = sum.places.iter().take(6).map(String::as_str).collect();
            let count = sum.misses as f64 / misses;
            println!("{:>5.0} {count:>7.3} {:>7}  {}", each(sum.ns), sum.cache_lines, places.join(" "));
        }
    }
    let mut locks = report.locks.clone();
    locks.sort_by(|one, other| other.wait_ns.total_cmp(&one.wait_ns));
    println!("   ns  contended  taken  by lock");
    for lock in locks.iter().filter(|lock| lock.contended > 0).take(8) {
        let per = |count: u64| count as f64 / misses;
        println!(
            "{:>5.0}    {:>7.3} {:>6.2}  {}",
            each(lock.wait_ns),
            per(lock.contended),
            per(lock.acquisitions),
            lock.class
        );
    }
}

/// The lines of a thread's miss that another thread's miss conflicts with.
fn conflicts(case: Case) -> Vec<String> {
    const MISSES: usize = 20;
    let config = Config::new(Machine::preset("epyc192").expect("a preset"), 2, 1_000_000);
    let prints: Rc<RefCell<Vec<Footprint>>> = Rc::default();
    let kept = prints.clone();
    let body = move |vfs: &Vfs, thread: usize| {
        let (context, mut misses) = (vfs.context(), 0);
        let ((), print) = record(|| {
            look_up(&context, case, thread, || {
                misses += 1;
                misses <= MISSES
            });
        });
        kept.borrow_mut().push(print);
    };
    sim::run(config, move || Vfs::with_budget(Numbers, case.budget), body);
    let prints = prints.take();
    let conflicts = prints[0].conflicts(&prints[1]);
    let places = conflicts.iter().map(|conflict| {
        let touches = conflict.ours.iter().chain(&conflict.theirs);
        let places: BTreeSet<String> = touches
            .map(|touch| format!("{}:{}", touch.file.rsplit('/').next().unwrap_or_default(), touch.line))
            .collect();
        places.into_iter().collect::<Vec<String>>().join(" ")
    });
    places.collect()
}

fn main() {
    let small = Budget { entries: 20_000 * 256, ..Budget::default() };
    let cases = [
        Case { name: "there", prefix: 'f', budget: Budget::default(), common: false },
        Case { name: "not there", prefix: 'g', budget: Budget::default(), common: false },
        Case { name: "there, full cache", prefix: 'f', budget: small, common: false },
        Case { name: "there, one directory", prefix: 'f', budget: Budget::default(), common: true },
        Case { name: "not there, one directory", prefix: 'g', budget: Budget::default(), common: true },
    ];
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [option, number, cpus] = &arguments[..]
        && option == "--stalls"
    {
        let number: usize = number.parse().expect("the number of a case, from 0");
        return show_stalls(cases[number], cpus.parse().expect("a number of CPUs"));
    }
    println!(
        "Thousand misses a second and CPU, own directories, on 1 to 192 CPUs of a simulated epyc192; share of one"
    );
    for case in cases {
        let one = rate(case, 1);
        let others = [8, 48, 192].map(|cpus| {
            let rate = rate(case, cpus);
            format!("{rate:>9.1} {:>5.3}", rate / one)
        });
        println!("{:>25}{one:>9.1}{}", case.name, others.concat());
    }
    for case in cases {
        println!("Lines in common, {}:", case.name);
        conflicts(case).iter().for_each(|line| println!("  {line}"));
    }
}
