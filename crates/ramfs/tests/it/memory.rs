//! Memory of the process after files were written and removed.

use lightfoot_ramfs::RamFs;
use vfs::{Base, Context, OpenFlags, Vfs};

const MIB: usize = 1 << 20;

/// What a removed name may leave behind, in bytes.
const NAME: usize = 700;

/// Bytes of the process that are in memory.
fn resident() -> usize {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux");
    let line = rollup.lines().find_map(|line| line.strip_prefix("Rss:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok()).expect("a number of kB") * 1024
}

fn write(context: &Context, path: &str, chunk: &[u8], times: usize) {
    let flags = OpenFlags::RDWR.union(OpenFlags::CREAT);
    let file = context.open(Base::CWD, path.as_bytes(), flags, 0o644).expect("a new file");
    for time in 0..times {
        file.write_at((time * chunk.len()) as u64, chunk).expect("room");
    }
}

/// Writes files, and returns how much memory they take; then removes them, and returns how much of it stays.
fn grow_and_shrink(context: &Context, dirs: usize, files: usize, bytes: usize) -> (usize, usize) {
    let chunk = vec![7; bytes.min(MIB)];
    let before = resident();
    for dir in 0..dirs {
        context.mkdir(Base::CWD, format!("/{dir}").as_bytes(), 0o755).expect("a new directory");
        (0..files).for_each(|file| write(context, &format!("/{dir}/{file}"), &chunk, bytes / chunk.len()));
    }
    let written = resident() - before;
    for dir in 0..dirs {
        for file in 0..files {
            context.unlink(Base::CWD, format!("/{dir}/{file}").as_bytes()).expect("a file");
        }
        context.rmdir(Base::CWD, format!("/{dir}").as_bytes()).expect("an empty directory");
    }
    (written, resident().saturating_sub(before))
}

#[test]
fn memory_goes_back_to_the_system_when_files_are_removed() {
    // It measures its process.
    if testkit::ran_alone("memory::memory_goes_back_to_the_system_when_files_are_removed") {
        return;
    }
    let vfs = Vfs::new(RamFs::new());
    let context = vfs.context();
    // What the first files of any kind take for good, and this thread's stack.
    grow_and_shrink(&context, 1, 100, 5_000);
    for (name, dirs, files, bytes) in [("large", 1, 4, 64 * MIB), ("small", 50, 1_000, 4_096)] {
        let (written, left) = grow_and_shrink(&context, dirs, files, bytes);
        assert!(written >= dirs * files * bytes, "{name} files take {written} bytes");
        assert!(left <= 4 * MIB + dirs * files * NAME, "of {written} bytes of {name} files {left} stay");
    }
}
