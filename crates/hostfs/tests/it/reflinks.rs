//! Random reflinks on a host directory, where the kernel decides about each, and in a `RamFs`: the results and the contents are the
//! same. Skipped where the host has no reflinks; `TMPDIR` chooses another place, such as a Btrfs or XFS.

use crate::support;
use lightfoot_hostfs::{HostFs, HostOptions};
use vfs::{Base, OpenFile, OpenFlags, Vfs};

const BLOCK: u64 = 4096;
const STEPS: usize = 4000;

fn has_reflinks() -> bool {
    let file = || tempfile::tempfile_in(std::env::temp_dir()).unwrap();
    rustix::fs::ioctl_ficlone(file(), file()).is_ok()
}

fn files(vfs: &Vfs) -> [OpenFile; 2] {
    let flags = OpenFlags::RDWR.union(OpenFlags::CREAT);
    [b"/a", b"/b"].map(|name| vfs.context().open(Base::CWD, name, flags, 0o644).unwrap())
}

fn contents(file: &OpenFile) -> Vec<u8> {
    let mut all = vec![0; file.attr().unwrap().size as usize];
    assert_eq!(file.read_at(0, &mut all), Ok(all.len()));
    all
}

#[test]
fn the_kernel_and_a_file_system_in_memory_agree_about_reflinks() {
    if !has_reflinks() {
        return eprintln!("skipped: no reflinks in {}", std::env::temp_dir().display());
    }
    let dir = support::temp_dir();
    let host = Vfs::new(HostFs::new(dir.path(), &HostOptions::default()).unwrap());
    let trees = [files(&host), files(&Vfs::new(ramfs::RamFs::new()))];
    let seed = support::seed();
    println!("LIGHTFOOT_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut place = |most: u64| {
        let at = random.u64(..most * BLOCK);
        if random.u8(..4) == 0 { at } else { at / BLOCK * BLOCK }
    };
    let mut done = 0;
    for step in 0..STEPS {
        let (kind, from, to) = (place(16) / BLOCK, place(2) / BLOCK, place(2) / BLOCK);
        let (offset, at, len) = (place(8), place(8), place(8));
        let results = trees.each_ref().map(|files| {
            let (from, to) = (&files[from as usize], &files[to as usize]);
            match kind {
                0..4 => to.write_at(at, &vec![step as u8; len as usize]).map(|(written, _)| written as u64),
                4 => to.set_len(at).map(|()| 0),
                5..8 => from.clone_to(0, to, 0, 0).map(|()| 0),
                _ => from.clone_to(offset, to, at, len).map(|()| 1),
            }
        });
        assert_eq!(results[0], results[1], "step {step}: {kind} {from} {offset} {to} {at} {len}");
        done += usize::from(results[0] == Ok(1));
        let [of_host, of_ram] = trees.each_ref().map(|files| files.each_ref().map(contents));
        assert!(of_host == of_ram, "step {step}: the contents");
    }
    assert!(done > STEPS / 100, "{done} reflinks of a range were made");
}
