//! Reads of one file on a simulated machine: threads that share a file, beside threads with a file each.
//!
//! `cargo run --release -p lightfoot-lab-report --example reads`; some seconds. Each thread has the file open and reads 4 KiB of it
//! again and again; in the third row one of a thousand calls is a write. The copy costs 80 ns, as on the hardware of
//! `docs/results.md`.

use sim::{Config, Machine, cost, count_op, running};
use vfs_sim::{Base, Context, OpenFlags, Vfs};

/// Without it, the lines of the heap depend on the host.
#[global_allocator]
static ARENA: sim::Arena = sim::Arena;

const PAGE: usize = 4096;
const COPY_NS: u64 = 80;

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    is_shared: bool,
    /// Calls for each write among them; 0: none.
    write_every: u64,
}

fn path(case: Case, thread: usize) -> String {
    format!("/file{}", if case.is_shared { 0 } else { thread })
}

fn write(context: &Context, path: &str) {
    let flags = OpenFlags::WRONLY | OpenFlags::CREAT;
    let file = context.open(Base::CWD, path.as_bytes(), flags, 0o644).expect("a file");
    assert!(file.write_at(0, &[1; PAGE]).is_ok_and(|(len, _)| len == PAGE));
}

/// Thousand calls a second and CPU.
fn rate(case: Case, cpus: usize) -> f64 {
    let machine = Machine::preset("epyc192").expect("a preset");
    let set_up = move || {
        let vfs = Vfs::new(ramfs_sim::RamFs::new());
        let context = vfs.context();
        (0..cpus).for_each(|thread| write(&context, &path(case, thread)));
        vfs
    };
    let body = move |vfs: &Vfs, thread: usize| {
        let context = vfs.context();
        let file = context.open(Base::CWD, path(case, thread).as_bytes(), OpenFlags::RDWR, 0).expect("a file");
        let mut buf = [0; PAGE];
        let mut calls = thread as u64;
        while running() {
            calls += 1;
            if case.write_every != 0 && calls.is_multiple_of(case.write_every) {
                assert!(file.write_at(0, &buf).is_ok_and(|(len, _)| len == PAGE));
            } else {
                assert_eq!(file.read_at(0, &mut buf), Ok(PAGE));
            }
            cost(COPY_NS);
            count_op(0);
        }
    };
    sim::run(Config::new(machine, cpus, 1_000), set_up, body).rate(0) / 1e3 / cpus as f64
}

fn main() {
    println!("Thousand calls a second and CPU on 1, 2, 64 and 192 CPUs of a simulated epyc192; share of one");
    for case in [
        Case { name: "a file each", is_shared: false, write_every: 0 },
        Case { name: "one file", is_shared: true, write_every: 0 },
        Case { name: "one file, writes", is_shared: true, write_every: 1000 },
    ] {
        let one = rate(case, 1);
        let others = [2, 64, 192].map(|cpus| {
            let rate = rate(case, cpus);
            format!("{rate:>9.1} {:>5.3}", rate / one)
        });
        println!("{:>18}{one:>9.1}{}", case.name, others.concat());
    }
}
