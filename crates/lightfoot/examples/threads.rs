//! Threads that resolve paths in one tree: prints lookups per second for 1, 2, 4, ... threads, once with each thread at
//! files that it chooses and once with all at one single file.
//!
//! The figures are for a first look: threads are not pinned and other processes count. `lightfoot-lab bench` measures with
//! care. Run it with `cargo run --release -p lightfoot --example threads`; an argument is the most threads to use.

use lightfoot::{Context, Fallback, Vfs};
use std::hint::black_box;
use std::io;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const DIRECTORIES: usize = 64;
const FILES: usize = 64;
const RUN: Duration = Duration::from_millis(300);

fn main() -> io::Result<()> {
    let cpus = thread::available_parallelism()?.get();
    let most = std::env::args().nth(1).map_or(Ok(cpus), |text| text.parse());
    let most = most.map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the argument is a number of threads"))?;
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    let mut paths = Vec::new();
    for dir in 0..DIRECTORIES {
        let dir = format!("/srv/data/part{dir:02}");
        ctx.create_dir_all(&dir)?;
        for file in 0..FILES {
            let path = format!("{dir}/file{file:02}");
            ctx.write(&path, "")?;
            paths.push(path);
        }
    }
    println!("{:>7}  {:>26}  {:>26}", "threads", "own files, lookups per s", "one file, lookups per s");
    let mut threads = 1;
    while threads <= most.max(1) {
        let (own, one) = (lookups(&ctx, &paths, threads)?, lookups(&ctx, &paths[..1], threads)?);
        println!("{threads:>7}  {own:>26.0}  {one:>26.0}");
        threads *= 2;
    }
    let left: u64 = Fallback::ALL.iter().map(|&reason| vfs.fallbacks(reason)).sum();
    println!("walks that left the store-free mode: {left}");
    Ok(())
}

/// Lookups per second of `threads` threads together, each going round `paths` from another place.
fn lookups(ctx: &Context, paths: &[String], threads: usize) -> io::Result<f64> {
    let (start, stop) = (Barrier::new(threads + 1), AtomicBool::new(false));
    let work = |number: usize| {
        let mut at = number * paths.len() / threads;
        let mut done = 0u64;
        start.wait();
        while !stop.load(Relaxed) {
            for _ in 0..100 {
                black_box(ctx.metadata(&paths[at % paths.len()])?);
                at += 1;
            }
            done += 100;
        }
        io::Result::Ok(done)
    };
    let work = &work;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|number| scope.spawn(move || work(number))).collect();
        start.wait();
        let begin = Instant::now();
        thread::sleep(RUN);
        stop.store(true, Relaxed);
        let mut total = 0;
        for worker in workers {
            total += worker.join().expect("a worker does not panic")?;
        }
        Ok(total as f64 / begin.elapsed().as_secs_f64())
    })
}
