//! What `tools/check/count-instructions` runs under callgrind: lookups of one depth, each inside `measured`.
//!
//! Usage: `instructions CASE DEPTH OPERATIONS`; CASE is `metadata`, `metadata_by_table`, `open_close`, `mknod_unlink` or `empty`.

use lightfoot::{Context, RamFs, Vfs};
use std::hint::black_box;

/// Paths that take turns, so that not one path alone is measured.
const PATHS: usize = 256;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, case, depth, operations, ..] = &args[..] else {
        // `cargo bench` and `cargo test --benches` call this without arguments.
        println!("usage: instructions CASE DEPTH OPERATIONS (see tools/check/count-instructions)");
        return;
    };
    let depth: usize = depth.parse().expect("DEPTH is a number");
    let operations: usize = operations.parse().expect("OPERATIONS is a number");
    let table = if case == "metadata_by_table" { 1 << 20 } else { 0 };
    let vfs = Vfs::builder().whole_paths(table).records_every_path(true).build(RamFs::new());
    let ctx = vfs.context();
    let paths = grow(&ctx, depth);
    let mut operation: Box<dyn FnMut(&str)> = match case.as_str() {
        "metadata" | "metadata_by_table" => Box::new(|path| {
            black_box(ctx.metadata(path).expect("found"));
        }),
        "open_close" => Box::new(|path| drop(black_box(ctx.open(path).expect("found")))),
        "mknod_unlink" => Box::new(|path| {
            ctx.remove_file(path).expect("found");
            ctx.mknod(path, 0o100_644, 0).expect("free");
        }),
        _ => Box::new(|path| {
            black_box(path);
        }),
    };
    for path in &paths {
        operation(path);
    }
    for i in 0..operations {
        measured(&mut operation, &paths[i % PATHS]);
    }
    println!("{operations}");
}

/// callgrind counts while inside this.
#[inline(never)]
fn measured(operation: &mut dyn FnMut(&str), path: &str) {
    operation(path);
}

/// 256 files at `depth`, with names of 8 characters, spread over directories; gives their paths.
fn grow(ctx: &Context, depth: usize) -> Vec<String> {
    let name = |level: usize, index: usize| format!("{:08x}", (index * 0x9e37 + level * 0x85eb + 0x1234_5678) as u32);
    (0..PATHS)
        .map(|file| {
            let dirs: String = (1..depth).map(|level| format!("/{}", name(level, file % (2 << (level % 4))))).collect();
            if !dirs.is_empty() {
                ctx.create_dir_all(&dirs).expect("directories");
            }
            let path = format!("{dirs}/{}", name(depth, file));
            ctx.mknod(&path, 0o100_644, 0).expect("file");
            path
        })
        .collect()
}
