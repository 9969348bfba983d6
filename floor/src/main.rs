//! Lightfoot beside F, the prototype of `shared/prototypes/floor`: same trees, same paths, slices of both interleaved in one run.
//!
//! Usage: `beside-floor hot|cold|ops [rounds] [slice in ms]`. Prints median nanoseconds of thread CPU time per operation, the
//! median ratio to F of the same round, and the throughput of two threads over one.

use lightfoot::{Context, Vfs};
use perfbase::floor::{Dcache, Dentry, Opt, Ring};
use perfbase::{Case, Paths, Tree, case, median, rng, run};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Operations between two looks at the clock.
const BATCH: usize = 200;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let what = args.get(1).map_or("hot", String::as_str);
    let rounds = args.get(2).map_or(9, |n| n.parse().expect("rounds"));
    let slice = args.get(3).map_or(12.0, |n| n.parse().expect("slice in ms"));
    perfbase::rcu::init();
    println!("core {:.2} GHz", perfbase::core_ghz());
    match what {
        "hot" => [1, 4, 8, 16].into_iter().for_each(|depth| lookups(10_000, depth, true, rounds, slice)),
        "cold" => {
            perfbase::set_warm_ms(100.0);
            [4, 8, 16].into_iter().for_each(|depth| lookups(1_000_000, depth, false, rounds, slice.max(120.0)));
        }
        "ops" => [1, 4, 8, 16].into_iter().for_each(|depth| operations(depth, rounds, slice)),
        other => panic!("hot, cold or ops, not {other}"),
    }
}

/// A Lightfoot instance that holds `tree`.
fn grow(tree: &Tree) -> (Vfs, Context) {
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    let mut path = Vec::new();
    let mut parent = Vec::new();
    for leaf in 0..tree.files {
        path.clear();
        tree.path(leaf, &mut path);
        let end = path.iter().rposition(|&byte| byte == b'/').expect("absolute");
        if path[..end] != parent[..] {
            parent = path[..end].to_vec();
            ctx.create_dir_all(&parent).expect("mkdir");
        }
        ctx.mknod(&path, 0o100_644, 0).expect("mknod");
    }
    (vfs, ctx)
}

fn lookups(entries: usize, depth: usize, hot: bool, rounds: usize, slice: f64) {
    let tree = Tree::new(entries, depth);
    let mut seed = 42;
    let count = if hot { 1000 } else { 1 << 20 };
    let leaves: Vec<u32> = (0..count).map(|_| (rng(&mut seed) % tree.files as u64) as u32).collect();
    let paths = Paths::new(&tree, &leaves);
    let same = Paths::new(&tree, &vec![leaves[0]; 1000]);
    // As many as there are dentries: it sizes F's table, as in F's own harness.
    let nodes = 8 + 1 + (1..=depth).map(|level| tree.fan[..level].iter().product::<usize>()).sum::<usize>();
    let shape = |colo| Opt { huge: true, shuffle: true, colo, bucket_mult: 1.5 };
    let f = {
        let mut f = Dcache::new(nodes, shape(false));
        f.build(&tree, 3);
        f
    };
    let f_colo = {
        let mut f = Dcache::new(nodes, shape(true));
        f.build(&tree, 3);
        f
    };
    let (vfs, ctx) = grow(&tree);
    let (f, f_colo, ctx, paths, same) = (&f, &f_colo, &ctx, &paths, &same);
    // SAFETY: the paths are padded by 64 bytes, as F wants.
    let walk16 = move |i: usize| unsafe { f.stat16(paths.ptr(i), paths.str(i).len()).expect("F finds it").ino };
    // SAFETY: as above.
    let walk16_colo =
        move |i: usize| unsafe { f_colo.stat16_colo(paths.ptr(i), paths.str(i).len()).expect("F finds it").ino };
    let ours = move |i: usize| ctx.metadata(paths.str(i)).expect("found").ino();
    let ours_same = move |i: usize| ctx.metadata(same.str(i)).expect("found").ino();
    let cases = [
        over("F walk16", paths.len(), walk16),
        over("F walk16, inode beside and prefetched", paths.len(), walk16_colo),
        over("lightfoot metadata", paths.len(), ours),
        over("lightfoot metadata, same path", same.len(), ours_same),
    ];
    let stats = vfs.cache_stats();
    let live = stats.live_dentries;
    println!(
        "\n{} {entries} entries, depth {depth}; {:.0} bytes per name ({live} names, {} MiB slots, {} MiB table)",
        if hot { "hot" } else { "cold" },
        (stats.slot_bytes + stats.table_bytes) as f64 / live as f64,
        stats.slot_bytes >> 20,
        stats.table_bytes >> 20,
    );
    report(&cases, rounds, slice);
}

/// A case that calls `f` with 0, 1, 2... below `len`, over and over; each thread from a place of its own.
fn over<'a>(name: &str, len: usize, f: impl Fn(usize) -> u64 + Sync + 'a) -> Case<'a> {
    case(name, move |thread, at| {
        if *at == usize::MAX {
            *at = thread * len / 2;
        }
        for _ in 0..BATCH {
            *at = if *at + 1 >= len { 0 } else { *at + 1 };
            black_box(f(*at));
        }
        BATCH as u64
    })
}

/// F's per-thread descriptor range, as in its own harness: a bitmap, slots, and a counted file.
#[repr(align(128))]
#[derive(Default)]
struct FdRange {
    bits: AtomicU64,
    slots: [AtomicU64; 8],
    dentry: AtomicU64,
    inode: AtomicU64,
    position: AtomicU64,
    flags: AtomicU64,
    refs: AtomicU64,
}

impl FdRange {
    fn open(&self, dentry: &Dentry, inode: u64) -> usize {
        self.dentry.store(std::ptr::from_ref(dentry) as u64, Relaxed);
        self.inode.store(inode, Relaxed);
        self.position.store(0, Relaxed);
        self.flags.store(0, Relaxed);
        self.refs.store(1, Relaxed);
        let bits = self.bits.load(Relaxed);
        let fd = (!bits).trailing_zeros() as usize;
        self.bits.compare_exchange(bits, bits | 1 << fd, Acquire, Relaxed).expect("one thread");
        self.slots[fd].store(std::ptr::from_ref(self) as u64, Release);
        fd
    }

    fn close(&self, fd: usize) -> Option<&'static Dentry> {
        assert_ne!(self.slots[fd].swap(0, AcqRel), 0);
        self.bits.fetch_and(!(1 << fd), Release);
        // SAFETY: `open` stored it, and F's dentries live as long as the process.
        (self.refs.fetch_sub(1, AcqRel) == 1).then(|| unsafe { &*(self.dentry.load(Relaxed) as *const Dentry) })
    }
}

struct Own(UnsafeCell<Ring>);
// SAFETY: each thread uses the ring of its own number.
unsafe impl Sync for Own {}

fn operations(depth: usize, rounds: usize, slice: f64) {
    let tree = Tree::new(10_000, depth);
    let leaf = |i: usize| {
        let mut path = Vec::new();
        tree.path(i, &mut path);
        String::from_utf8(path).expect("letters")
    };
    let leaves = [leaf(5), leaf(tree.files / 2 + 5)];
    let dirs: Vec<String> = leaves.iter().map(|path| path.rsplit_once('/').expect("absolute").0.to_string()).collect();
    let names: Vec<String> = (0..2).map(|k| format!("newfile{k}")).collect();
    let padded = |text: &str| [text.as_bytes(), &[0; 128]].concat();
    let f_leaves: Vec<Vec<u8>> = leaves.iter().map(|path| padded(path)).collect();
    let f_dirs: Vec<Vec<u8>> = dirs.iter().map(|path| padded(path)).collect();
    let f_names: Vec<Vec<u8>> = names.iter().map(|name| padded(name)).collect();
    let mut f = Dcache::new(60_000, Opt { huge: true, shuffle: true, colo: false, bucket_mult: 1.5 });
    f.build(&tree, 2);
    let rings: Vec<Own> = (0..2).map(|_| Own(UnsafeCell::new(f.ring(2048)))).collect();
    let (vfs, ctx) = grow(&tree);
    let own: Vec<String> = (0..2).map(|k| format!("{}/{}", dirs[k], names[k])).collect();
    let one: Vec<String> = (0..2).map(|k| format!("{}/{}", dirs[0], names[k])).collect();
    let (f, ctx, rings, f_leaves, f_dirs, f_names) = (&f, &ctx, &rings, &f_leaves, &f_dirs, &f_names);
    let dir = move |t: usize| &f_dirs[if depth == 1 { 0 } else { t }];
    let tables: Vec<FdRange> = (0..2).map(|_| FdRange::default()).collect();
    let tables = &tables;
    let f_open = move |t: usize| {
        let table = &tables[t];
        let fd = {
            let _guard = perfbase::rcu::pin();
            let path = &f_leaves[t];
            // SAFETY: padded.
            let (dentry, seq, inode) = unsafe { f.walk_mask(path.as_ptr(), path.len() - 128) }.expect("found");
            while !Dcache::get(dentry) {}
            assert_eq!(dentry.seq.load(Acquire), seq);
            table.open(dentry, inode)
        };
        if let Some(dentry) = table.close(black_box(fd)) {
            Dcache::put(dentry);
        }
    };
    let f_pair = move |t: usize, dir: &[u8]| {
        // SAFETY: thread `t` alone uses ring `t`; paths are padded.
        unsafe {
            let ring = &mut *rings[t].0.get();
            let at =
                || if dir.len() == 128 { f.root } else { f.walk_mask(dir.as_ptr(), dir.len() - 128).expect("found").0 };
            {
                let _guard = perfbase::rcu::pin();
                assert!(f.create(at(), f_names[t].as_ptr(), ring, 77));
            }
            let _guard = perfbase::rcu::pin();
            assert!(f.unlink(at(), f_names[t].as_ptr(), ring, 78));
        }
    };
    let pair = move |path: &str| {
        ctx.mknod(path, 0o100_644, 0).expect("mknod");
        ctx.remove_file(path).expect("unlink");
    };
    let create = move |path: &str| {
        drop(lightfoot::OpenOptions::new().write(true).create_new(true).open(ctx, path).expect("create"));
        ctx.remove_file(path).expect("unlink");
    };
    let (leaves, own, one) = (&leaves, &own, &one);
    let cases = [
        each("F open+close, own file", f_open),
        each("lightfoot open+close, own file", move |t| drop(black_box(ctx.open(&leaves[t]).expect("open")))),
        each("lightfoot open+close, same file", move |_| drop(black_box(ctx.open(&leaves[0]).expect("open")))),
        each("F create+unlink, separate directories", move |t| f_pair(t, dir(t))),
        each("lightfoot mknod+unlink, separate directories", move |t| pair(&own[t])),
        each("lightfoot create+close+unlink, separate", move |t| create(&own[t])),
        each("F create+unlink, one directory", move |t| f_pair(t, &f_dirs[0])),
        each("lightfoot mknod+unlink, one directory", move |t| pair(&one[t])),
    ];
    println!("\noperations, depth {depth}");
    report(&cases, rounds, slice);
    drop(vfs);
}

fn each<'a>(name: &str, f: impl Fn(usize) + Sync + 'a) -> Case<'a> {
    case(name, move |thread, _| {
        for _ in 0..BATCH {
            f(thread);
        }
        BATCH as u64
    })
}

/// Runs the cases, one and two threads back to back, in rounds whose order turns round; prints medians, the
/// ratio to F as the median of the rounds' ratios.
fn report(cases: &[Case<'_>], rounds: usize, slice: f64) {
    let mut places: Vec<Vec<usize>> = cases.iter().map(|_| vec![usize::MAX; 2]).collect();
    let mut results = vec![[vec![], vec![]]; cases.len()];
    for round in 0..rounds {
        for k in 0..cases.len() {
            let i = if round % 2 == 0 { k } else { cases.len() - 1 - k };
            for threads in [1, 2] {
                results[i][threads - 1].push(run(&cases[i], threads, slice, &mut places[i]));
            }
        }
    }
    println!("{:<48} {:>8} {:>6} {:>16} {:>7}", "case", "ns 1T", "/ F", "min .. max", "2T/1T");
    let mut reference: &[f64] = &[];
    let ns: Vec<[Vec<f64>; 2]> = results.iter().map(|r| [0, 1].map(|t| r[t].iter().map(|x| x.0).collect())).collect();
    for ((case, result), ns) in cases.iter().zip(&results).zip(&ns) {
        // The first F of a kind is the reference; its variant with the inode beside the dentry is shown against it.
        if case.name.starts_with('F') && !case.name.contains("beside") {
            reference = &ns[0];
        }
        // Of the same round, so that a slow minute counts on both sides.
        let ratios: Vec<f64> = ns[0].iter().zip(reference).map(|(own, f)| own / f).collect();
        let scaling: Vec<f64> = result[1].iter().zip(&result[0]).map(|(two, one)| two.1 / one.1).collect();
        let (low, high) = ns[0].iter().fold((f64::MAX, 0f64), |(low, high), &n| (low.min(n), high.max(n)));
        println!(
            "{:<48} {:>8.1} {:>6.2} {:>7.1} .. {:<6.1} {:>7.2}",
            case.name,
            median(&ns[0]),
            median(&ratios),
            low,
            high,
            median(&scaling)
        );
    }
}
