//! Measures forks: `cargo run --release -p lightfoot-workspaces --example forks`.
//!
//! Prints times of the calling thread, medians of many calls, and memory by the process's resident size.

use lightfoot_workspaces::{ForkLimits, Workspaces};
use std::fs;
use std::hint::black_box;
use std::time::Instant;
use vfs::{Base, Context, Errno, OpenFlags, Vfs};

/// Files of the base.
const FILES: usize = 10_000;

fn resident_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Returns the median of the times of `act`, in nanoseconds.
fn median(times: usize, mut act: impl FnMut(usize)) -> u128 {
    let mut all: Vec<u128> = (0..times)
        .map(|number| {
            let begun = Instant::now();
            act(number);
            begun.elapsed().as_nanos()
        })
        .collect();
    all.sort_unstable();
    all[times / 2]
}

fn write(context: &Context, path: &str, bytes: &[u8]) -> Result<(), Errno> {
    let flags = OpenFlags::WRONLY.union(OpenFlags::CREAT);
    context.open(Base::CWD, path.as_bytes(), flags, 0o644)?.write_at(0, bytes).map(drop)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let base = Vfs::new(ramfs::RamFs::new()).context();
    for number in 0..FILES {
        if number % 100 == 0 {
            base.mkdir(Base::CWD, format!("/d{}", number / 100).as_bytes(), 0o755)?;
        }
        write(&base, &format!("/d{}/f{number}", number / 100), b"text")?;
    }
    write(&base, "/large", &vec![1; 100 << 20])?;
    let spaces = Workspaces::over(base, true)?;
    let context = spaces.tree().context();
    let fork = |from: &str, name: &str| spaces.fork(from, name, ForkLimits::default()).expect("a fork");
    let before = resident_kib();
    let first = median(1000, |number| fork("base", &format!("a{number}")));
    println!("fork of a tree of {FILES} files: {first} ns");
    println!("memory of an idle fork: {} B", (resident_kib() - before) * 1024 / 1000);
    fork("base", "g0");
    for depth in 1..=64 {
        write(&context, &format!("/w/g{}/new{depth}", depth - 1), b"x")?;
        fork(&format!("g{}", depth - 1), &format!("g{depth}"));
    }
    let deep = median(1000, |number| fork("g64", &format!("h{number}")));
    println!("fork at depth 64, beside 1,000 others: {deep} ns");
    let begun = Instant::now();
    write(&context, "/w/a0/large", b"x")?;
    println!("first write of 1 byte to 100 MiB: {} ns", begun.elapsed().as_nanos());
    let look = |at: &str| {
        let stat =
            |number: usize| context.attr(Base::CWD, format!("{at}/d{}/f{number}", number / 100).as_bytes(), true);
        let cold = median(FILES, |number| _ = black_box(stat(number)));
        (cold, median(FILES, |number| _ = black_box(stat(number))))
    };
    for at in ["/base", "/w/a1", "/w/g64"] {
        let (cold, warm) = look(at);
        println!("attributes by path in {at}: first {cold} ns, then {warm} ns");
    }
    let changed =
        |name: &str| (0..10_000).try_for_each(|number| write(&context, &format!("/w/{name}/new{number}"), b"x"));
    let begun = Instant::now();
    changed("a2")?;
    println!("10,000 new files: {} ns each", begun.elapsed().as_nanos() / 10_000);
    let begun = Instant::now();
    let changes = spaces.changes("a2")?.len();
    println!("comparison of {changes} changes: {} us", begun.elapsed().as_micros());
    (3..12).try_for_each(|number| changed(&format!("a{number}")))?;
    let discard = |name: &str| spaces.discard(name, false).expect("a fork without open files");
    let returned = median(10, |number| discard(&format!("a{}", number + 2)));
    println!("discard after 10,000 changes, until it returns: {} us", returned / 1000);
    let begun = Instant::now();
    spaces.wait_until_freed();
    println!("until the memory of these 10 is free: {} us more", begun.elapsed().as_micros());
    for others in [1_000, 10_000] {
        (spaces.list().len()..others).for_each(|number| fork("base", &format!("o{number}")));
        let made = median(300, |number| fork("base", &format!("x{number}")));
        let discarded = median(300, |number| spaces.discard(&format!("x{number}"), false).expect("discarded"));
        let count = spaces.list().len();
        println!("fork beside {count} others: {made} ns, discard until it returns: {discarded} ns");
    }
    Ok(())
}
