//! Lookups by the table of whole paths beside a thread that renames directories. About 15 seconds.
//!
//! Prints, for a tree of 10,000 files at depth 8: nanoseconds of CPU time for a lookup by the walk and by the table while
//! another thread renames a directory at some rate: one that no recorded path passes, one that some pass, one that half
//! of the paths pass. And bytes for each path in the table.

use lightfoot::{Context, RamFs, Vfs};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const FILES: usize = 10_000;
const HOT: usize = 1000;
const DEPTH: usize = 8;

fn main() {
    if !std::env::args().any(|argument| argument == "--bench") {
        // `cargo test --benches` calls this without arguments.
        return println!("usage: cargo bench -p lightfoot --bench whole_paths");
    }
    println!("{:<44} {:>8} {:>8} {:>8}", "renames a second, of a directory that", "walk ns", "table ns", "renames");
    for (rate, dir, what) in [
        (0, "/spare", "is quiet"),
        (10_000, "/spare", "no path passes"),
        (10_000, "/side/a", "one path in a thousand passes"),
        (10_000, "/half", "half of the paths pass"),
        (u32::MAX, "/spare", "no path passes, as fast as it can"),
        (u32::MAX, "/side/a", "one path passes, as fast as it can"),
        (u32::MAX, "/half", "half of the paths pass, as fast as it can"),
    ] {
        let mut found = [(0.0, 0); 2];
        for (table, out) in [0, 1 << 20].into_iter().zip(&mut found) {
            let mut rounds: Vec<_> = (0..5).map(|_| beside(table, rate, dir)).collect();
            rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
            *out = rounds[2];
        }
        let rate = if rate == u32::MAX { String::new() } else { format!("{rate}: ") };
        println!("{:<44} {:>8.1} {:>8.1} {:>8}", rate + what, found[0].0, found[1].0, found[1].1);
    }
    let vfs = Vfs::builder().whole_paths(1 << 20).records_every_path(true).build(RamFs::new());
    let context = vfs.context();
    // Three quarters of the entries, four fifths of the bytes.
    let paths = grow(&context, (1 << 20) / 5 * 4 / 32 * 3 / 4);
    for path in paths.iter().chain(&paths) {
        context.metadata(path).expect("it is there");
    }
    let before = vfs.whole_path_stats().misses;
    paths.iter().for_each(|path| assert!(context.metadata(path).is_ok()));
    let stats = vfs.whole_path_stats();
    let misses = (stats.misses - before) as f64 / paths.len() as f64;
    println!(
        "{} paths, {} in the table, {:.1} bytes each; {:.1} % of the lookups miss",
        paths.len(),
        stats.entries,
        stats.bytes as f64 / stats.entries as f64,
        misses * 100.0
    );
}

/// CPU nanoseconds of a lookup with a table of so many bytes, beside so many renames of `dir` a second; and the renames.
fn beside(table: usize, rate: u32, dir: &str) -> (f64, u64) {
    let vfs = Vfs::builder().whole_paths(table).build(RamFs::new());
    let context = vfs.context();
    let mut paths = grow(&context, FILES);
    for path in ["/spare", "/side", "/side/a", "/half"] {
        context.create_dir(path).expect("a new name");
    }
    context.create("/side/a/f").expect("a new name");
    paths.truncate(HOT);
    if dir == "/half" {
        for path in &mut paths[..HOT / 2] {
            let below = format!("/half{path}");
            context.create_dir_all(below.rsplit_once('/').expect("a directory").0).expect("directories");
            context.create(&below).expect("a new name");
            *path = below;
        }
    }
    paths[HOT / 2 + 1] = "/side/a/f".into();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let renamer = scope.spawn(|| rename(&vfs.context(), dir, rate, &stop));
        let look_up = |rounds: usize| {
            let mut at = 0;
            for _ in 0..rounds * HOT {
                at = (at + 389) % HOT;
                let _ = black_box(context.metadata(&paths[at]));
            }
        };
        look_up(20);
        let started = cpu_time();
        look_up(400);
        let each = (cpu_time() - started).as_nanos() as f64 / (400 * HOT) as f64;
        stop.store(true, Relaxed);
        (each, renamer.join().expect("it does not panic"))
    })
}

/// Gives `dir` another name and its own again, so many times a second, until `stop`.
fn rename(context: &Context, dir: &str, rate: u32, stop: &AtomicBool) -> u64 {
    let other = format!("{dir}.other");
    let started = Instant::now();
    let mut renames = 0;
    while rate != 0 && !stop.load(Relaxed) {
        if rate != u32::MAX && started.elapsed() < Duration::from_secs(1) / rate * renames as u32 {
            std::hint::spin_loop();
            continue;
        }
        let (from, to) = if renames % 2 == 0 { (dir, other.as_str()) } else { (other.as_str(), dir) };
        context.rename(from, to).expect("a free name");
        renames += 1;
    }
    renames
}

/// Files at [`DEPTH`], ten in each directory.
fn grow(context: &Context, files: usize) -> Vec<String> {
    (0..files)
        .map(|file| {
            let dir: String = (1..DEPTH).map(|level| format!("/d{level}{}", (file / 10) >> (DEPTH - level))).collect();
            context.create_dir_all(&dir).expect("directories");
            let path = format!("{dir}/file{file}");
            context.create(&path).expect("a new name");
            path
        })
        .collect()
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
