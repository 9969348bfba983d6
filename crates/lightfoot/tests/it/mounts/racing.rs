//! Mounts and unmounts of one place by several threads, beside threads that use it.

use super::counted_fs::counted;
use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How many mounts each of the mounting threads makes.
const MOUNTS: usize = 400;

/// Unmounts the topmost mount at `/m`. Returns whether there was one that was not in use.
fn unmounts(ctx: &Context) -> bool {
    let failed = errno(ctx.unmount("/m", UnmountFlags::default()));
    assert!([None, is(Errno::EBUSY), is(Errno::EINVAL)].contains(&failed), "{failed:?}");
    failed.is_none()
}

#[test]
fn each_mount_is_unmounted_once_and_a_path_leads_to_it_or_to_what_is_below() {
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    let (fs, counts) = counted();
    ctx.create_dir("/src").unwrap();
    ctx.mount(fs, "/src", NONE).unwrap();
    ctx.write("/src/file", "above").unwrap();
    ctx.create_dir("/m").unwrap();
    ctx.write("/m/file", "below").unwrap();
    let (mounting, gone) = (AtomicUsize::new(2), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let ctx = vfs.context();
                for _ in 0..MOUNTS {
                    ctx.bind("/src", "/m", NONE).unwrap();
                }
                mounting.fetch_sub(1, Relaxed);
            });
            scope.spawn(|| {
                let ctx = vfs.context();
                while mounting.load(Relaxed) > 0 {
                    gone.fetch_add(unmounts(&ctx).into(), Relaxed);
                }
            });
        }
        scope.spawn(|| {
            let ctx = vfs.context();
            while mounting.load(Relaxed) > 0 {
                let text = ctx.read_to_string("/m/file").unwrap();
                assert!(["above", "below"].contains(&&*text), "{text}");
            }
        });
    });
    while unmounts(&ctx) {
        gone.fetch_add(1, Relaxed);
    }
    assert_eq!((gone.into_inner(), ctx.mounts().len()), (2 * MOUNTS, 2));
    assert_eq!(ctx.read_to_string("/m/file").unwrap(), "below");
    unmount(&ctx, "/src");
    assert_eq!((counts.evictions(), Arc::strong_count(&counts)), (2, 1));
}
