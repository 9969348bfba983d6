//! Metadata of listed entries, of a file system that returns it with its listings.

use lightfoot::Vfs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use testkit::{Call, Store, StoreOptions};

/// 100 directories of 100 files, and the count of calls.
fn tree() -> (Vfs, Arc<AtomicU32>) {
    let store = Store::new(StoreOptions { lists_attributes: true, ..StoreOptions::default() });
    for dir in 0..100 {
        let dir = store.make(Store::ROOT, &format!("d{dir}/"));
        (0..100).for_each(|file| _ = store.make(dir, &format!("f{file}")));
    }
    let calls = Arc::new(AtomicU32::new(0));
    let count = calls.clone();
    store.before(move |call| {
        count.fetch_add(u32::from(!matches!(call, Call::Open { .. } | Call::Release { .. })), Relaxed);
        Ok(())
    });
    (Vfs::new(store), calls)
}

#[test]
fn the_metadata_of_all_entries_takes_one_call_for_each_directory() -> io::Result<()> {
    for (wants, expected) in [(true, 101), (false, 101 + 10_100)] {
        let (vfs, calls) = tree();
        let ctx = vfs.context();
        let list = |path: &str| ctx.read_dir(path).map(|listed| if wants { listed.with_metadata() } else { listed });
        let mut files = 0;
        for dir in list("/")? {
            let dir = dir?;
            assert!(dir.metadata()?.is_dir());
            for file in list(dir.path().to_str().unwrap())? {
                assert!(file?.metadata()?.is_file());
                files += 1;
            }
        }
        assert_eq!((files, calls.load(Relaxed)), (10_000, expected), "{wants}");
    }
    Ok(())
}
