//! READDIRPLUS of a file system that returns attributes with its listings.

use crate::session;
use crate::support::Mount;
use lightfoot_fuse::{MountOptions, Op};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use testkit::{Call, Fault, Faults, Store, StoreOptions};
use vfs::Vfs;

#[test]
fn the_status_of_all_listed_names_takes_one_call_for_each_directory() {
    let store = Store::new(StoreOptions { lists_attributes: true, ..StoreOptions::default() });
    for dir in 0..100 {
        let dir = store.make(Store::ROOT, &format!("d{dir}/"));
        (0..100).for_each(|file| _ = store.make(dir, &format!("f{file}")));
    }
    let calls = Arc::new(AtomicU32::new(0));
    let options = MountOptions { session: session(), ..MountOptions::default() };
    // As if it were far away.
    let (far, plan) = Faults::of(Box::new(store.clone()));
    let is_request = |method| matches!(method, "lookup" | "read_dir" | "attributes");
    plan.set(move |call| is_request(call.method).then_some(Fault::Delay(Duration::from_millis(1))));
    let Some(mount) = Mount::new(&Vfs::new(far), &options) else { return };
    let count = calls.clone();
    store.before(move |call| {
        count.fetch_add(u32::from(matches!(call, Call::Lookup { .. } | Call::ReadDir { .. })), Relaxed);
        Ok(())
    });
    let mut files = 0;
    for dir in fs::read_dir(&mount.at).unwrap() {
        let dir = dir.unwrap();
        assert!(dir.metadata().unwrap().is_dir());
        for file in fs::read_dir(dir.path()).unwrap() {
            let file = file.unwrap();
            let path = file.path();
            let name = path.strip_prefix(&mount.at).unwrap().to_str().unwrap();
            assert_eq!(file.metadata().unwrap().ino(), store.node(name), "{name}");
            files += 1;
        }
    }
    assert_eq!((files, calls.load(Relaxed)), (10_000, 101));
    let ops = mount.mounted().session().metrics().snapshot().ops;
    assert!(ops.iter().any(|op| op.name == Op::Readdirplus.name() && op.count >= 101), "{ops:?}");
}
