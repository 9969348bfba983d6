//! Batched resolution beside single calls: cold random paths of depth 8 in a tree of a million files, and a listing in order.
//!
//! `cargo bench -p lightfoot --bench batch`: prints nanoseconds a path and the ratio of both, measured in turns in one run. The
//! first argument that is a number is the number of files (1000000).

use std::hint::black_box;
use std::time::Instant;
use vfs::{Base, Context, S_IFREG, Vfs};

/// Files in one directory.
const FANOUT: usize = 40;

/// Paths that one call resolves.
const BATCH: usize = 512;

fn grow(context: &Context, files: usize) -> Vec<String> {
    let dirs = files / FANOUT;
    let mut paths = Vec::with_capacity(files);
    for dir in 0..dirs {
        let mut path = String::new();
        // Seven levels: the digits of the number in base 8, which share their upper levels.
        for level in (0..7).rev() {
            path = format!("{path}/dir-{:02}", dir >> (3 * level) & 7 | (level << 3));
            match context.mkdir(Base::CWD, path.as_bytes(), 0o755) {
                Ok(()) | Err(vfs::Errno::EEXIST) => {}
                Err(errno) => panic!("{path}: {errno:?}"),
            }
        }
        for file in 0..FANOUT {
            let path = format!("{path}/file-{file}");
            context.mknod(Base::CWD, path.as_bytes(), S_IFREG | 0o644, 0).expect("a new name");
            paths.push(path);
        }
    }
    paths
}

fn shuffle(paths: &mut [String], mut seed: u64) {
    for last in (1..paths.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        paths.swap(last, (seed >> 33) as usize % (last + 1));
    }
}

/// Nanoseconds a path.
fn time(paths: usize, f: impl FnOnce() -> u64) -> f64 {
    let begun = Instant::now();
    black_box(f());
    begun.elapsed().as_nanos() as f64 / paths as f64
}

fn single(context: &Context, paths: &[&[u8]]) -> u64 {
    paths.iter().map(|path| context.attr(Base::CWD, path, true).expect("it is there").ino).sum()
}

fn batched(context: &Context, paths: &[&[u8]]) -> u64 {
    let mut sum = 0;
    for some in paths.chunks(BATCH) {
        context.attr_many(Base::CWD, some, true, |_, found| sum += found.expect("it is there").0.unpack().ino);
    }
    sum
}

fn compare(what: &str, context: &Context, paths: &[&[u8]]) {
    let mut ratios: Vec<f64> = Vec::new();
    let (mut one, mut many) = (f64::MAX, f64::MAX);
    // In turns over slices of the paths, so that neither finds what the other has brought into the caches.
    for slice in paths.chunks(paths.len() / 20).collect::<Vec<_>>().chunks_exact(2) {
        let a = time(slice[0].len(), || single(context, slice[0]));
        let b = time(slice[1].len(), || batched(context, slice[1]));
        ratios.push(a / b);
        (one, many) = (one.min(a), many.min(b));
    }
    ratios.sort_by(f64::total_cmp);
    println!("{what:<28} single {one:7.0} ns   batched {many:7.0} ns   ratio {:.2}", ratios[ratios.len() / 2]);
}

fn main() {
    let files = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1_000_000);
    let vfs = Vfs::new(ramfs::RamFs::new());
    let context = vfs.context();
    let mut paths = grow(&context, files);
    println!("{} files, depth 8, {BATCH} paths a call", paths.len());
    let in_order: Vec<String> = paths.clone();
    shuffle(&mut paths, 7);
    let bytes = |paths: &'static [String]| paths.iter().map(String::as_bytes).collect::<Vec<_>>();
    let random = bytes(paths.leak());
    compare("random, cold", &context, &random);
    let sorted = bytes(in_order.leak());
    compare("in order of directories", &context, &sorted);
}
