//! Two threads that read one file, beside one thread, and beside two threads with a file each.
//!
//! `cargo bench -p lightfoot --bench readers`: prints nanoseconds of a read, and the rate of both threads in units of one thread's.
//! The rows are measured in turns, medians of 15 rounds of 20 ms each. Reads are of 4 KiB. It needs two CPUs that are otherwise idle.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};
use vfs::{Base, Context, OpenFlags, Vfs};

const LEN: usize = 4096;
const ROUNDS: usize = 15;
const ROUND: Duration = Duration::from_millis(20);
/// Reads between two looks at the clock.
const BATCH: u64 = 256;

/// What it is called, and the file of each of its threads.
const CASES: [(&str, &[&str]); 3] =
    [("1 thread", &["/a"]), ("2 threads, one file", &["/a", "/a"]), ("2 threads, a file each", &["/a", "/b"])];

fn read(context: &Context, path: &str, start: &Barrier) -> f64 {
    let file = context.open(Base::CWD, path.as_bytes(), OpenFlags::RDONLY, 0).expect("it is there");
    let mut buf = [0; LEN];
    start.wait();
    let (begun, mut reads) = (Instant::now(), 0);
    while begun.elapsed() < ROUND {
        for _ in 0..BATCH {
            assert_eq!(file.read_at(0, black_box(&mut buf)), Ok(LEN));
        }
        reads += BATCH;
    }
    reads as f64 / begun.elapsed().as_secs_f64()
}

/// Reads a second of all threads.
fn rate(context: &Context, files: &[&str]) -> f64 {
    let start = Barrier::new(files.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = files.iter().map(|path| scope.spawn(|| read(context, path, &start))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let vfs = Vfs::new(ramfs::RamFs::new());
    let context = vfs.context();
    for path in ["/a", "/b"] {
        let file =
            context.open(Base::CWD, path.as_bytes(), OpenFlags::WRONLY | OpenFlags::CREAT, 0o644).expect("a new name");
        assert!(file.write_at(0, &[1; LEN]).is_ok());
    }
    let rounds: Vec<[f64; CASES.len()]> = (0..ROUNDS).map(|_| CASES.map(|(_, files)| rate(&context, files))).collect();
    for (case, (name, files)) in CASES.into_iter().enumerate() {
        let ns = median(rounds.iter().map(|round| files.len() as f64 / round[case] * 1e9).collect());
        let ratio = median(rounds.iter().map(|round| round[case] / round[0]).collect());
        println!("{name:<24} {ns:6.1} ns a read   rate {ratio:.2}");
    }
}
