//! What an operation costs in a task of tokio, called directly and through `spawn_blocking`. Prints nanoseconds for one
//! operation, the median of several rounds, and how many times longer the second way takes.
//!
//! Run it with `cargo run --release -p lightfoot --example tasks`; about five seconds. The guide for users of async
//! runtimes (`lightfoot::guide::tokio`) has its figures.

use lightfoot::{Context, HostFs, HostOptions, Vfs};
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

/// Rounds of each measurement, and how long one takes.
const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(25);

/// One operation on a tree.
struct Operation {
    name: &'static str,
    run: fn(&Context) -> io::Result<()>,
}

const OPERATIONS: [Operation; 6] = [
    Operation { name: "metadata", run: |ctx| ctx.metadata("/srv/data/part/file").map(keep) },
    Operation { name: "read, 100 bytes", run: |ctx| ctx.read("/srv/data/part/file").map(keep) },
    Operation { name: "read, 64 KiB", run: |ctx| ctx.read("/srv/data/part/large").map(keep) },
    Operation { name: "read, 1 MiB", run: |ctx| ctx.read("/srv/data/part/huge").map(keep) },
    Operation { name: "write, 100 bytes", run: |ctx| ctx.write("/srv/data/part/new", [1; 100]) },
    Operation {
        name: "create and remove",
        run: |ctx| {
            drop(ctx.create_new("/srv/data/part/other")?);
            ctx.remove_file("/srv/data/part/other")
        },
    },
];

fn main() -> io::Result<()> {
    let source = tempfile::tempdir()?;
    let host = HostFs::new(source.path(), &HostOptions::default())?;
    let trees = [("a tree in memory", Vfs::ram()), ("a host directory", Vfs::new(host))];
    // Tasks run on a thread of the runtime, as in a server.
    let runtime = Builder::new_multi_thread().worker_threads(1).build()?;
    for (name, vfs) in trees {
        let ctx = Arc::new(vfs.context());
        ctx.create_dir_all("/srv/data/part")?;
        ctx.write("/srv/data/part/file", [0; 100])?;
        ctx.write("/srv/data/part/large", vec![0; 64 << 10])?;
        ctx.write("/srv/data/part/huge", vec![0; 1 << 20])?;
        println!("{name:<20}  {:>12}  {:>18}  {:>6}", "directly, ns", "spawn_blocking, ns", "ratio");
        for operation in &OPERATIONS {
            let (directly, spawned) =
                runtime.block_on(runtime.spawn(measure(ctx.clone(), operation.run))).map_err(io::Error::other)??;
            println!("{:<20}  {directly:>12.0}  {spawned:>18.0}  {:>6.1}", operation.name, spawned / directly);
        }
        println!();
    }
    Ok(())
}

/// The compiler must make the result.
fn keep<T>(result: T) {
    black_box(result);
}

/// Nanoseconds of an operation, called directly and through `spawn_blocking`. The rounds of both take turns.
async fn measure(ctx: Arc<Context>, run: fn(&Context) -> io::Result<()>) -> io::Result<(f64, f64)> {
    let (mut directly, mut spawned) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (begin, mut count) = (Instant::now(), 0_u32);
        while begin.elapsed() < ROUND {
            for _ in 0..16 {
                run(&ctx)?;
            }
            count += 16;
        }
        directly.push(begin.elapsed().as_nanos() as f64 / f64::from(count));

        let (begin, mut count) = (Instant::now(), 0_u32);
        while begin.elapsed() < ROUND {
            let ctx = ctx.clone();
            spawn_blocking(move || run(&ctx)).await.map_err(io::Error::other)??;
            count += 1;
        }
        spawned.push(begin.elapsed().as_nanos() as f64 / f64::from(count));
    }
    Ok((median(directly), median(spawned)))
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
