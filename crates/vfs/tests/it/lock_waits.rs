//! Waits for the locks of a tree are counted, by the rank of the lock.

use lightfoot_vfs::{Base, Vfs};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use testkit::{Call, Gate, Store};

fn waits(vfs: &Vfs) -> Vec<(&'static str, u64)> {
    vfs.lock_waits().filter(|of| of.waits > 0).map(|of| (of.name, of.waits)).collect()
}

#[test]
fn a_thread_that_waits_for_a_directory_is_counted() {
    let store = Store::with_paths(&["dir/"]);
    let dir = store.node("dir");
    let gate = Gate::default();
    let at_gate = gate.clone();
    store.before(move |call| {
        if matches!(call, Call::Unlink { name, .. } if name.starts_with(b"held")) {
            at_gate.pass();
        }
        Ok(())
    });
    let vfs = store.tree();
    let unlink =
        |name: String| vfs.context().unlink(Base::CWD, format!("/dir/{name}").as_bytes()).expect("it is there");
    // A thread that was late, and found the lock free, did not wait: then again.
    for turn in 0.. {
        let names = [format!("held{turn}"), format!("other{turn}")];
        for name in &names {
            store.make(dir, name);
        }
        let [held, other] = names;
        assert_eq!(waits(&vfs), []);
        gate.close();
        let is_late = AtomicBool::new(true);
        thread::scope(|scope| {
            scope.spawn(|| unlink(held));
            // The file system has the call, under the lock of the directory.
            gate.wait_for(1);
            scope.spawn(|| {
                is_late.store(false, Relaxed);
                unlink(other);
            });
            while is_late.load(Relaxed) {
                thread::yield_now();
            }
            (0..100).for_each(|_| thread::yield_now());
            gate.open();
        });
        if !waits(&vfs).is_empty() {
            break;
        }
    }
    assert_eq!(waits(&vfs), [("a directory's lock", 1)]);
    let longest = vfs.lock_waits().map(|of| of.longest_ns).max();
    assert!(longest > Some(0));
}
