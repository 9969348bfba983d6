//! loom model of cancellation: a watch that begins beside it is called.

use lightfoot_vfs::Cancel;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

#[test]
fn a_watch_is_called_once_however_late_it_begins() {
    loom::model(|| {
        let (cancel, calls) = (Cancel::new(), Arc::new(AtomicU32::new(0)));
        let (other, count) = (cancel.clone(), calls.clone());
        let canceller = thread::spawn(move || other.cancel());
        let watch = cancel.watch(move || _ = count.fetch_add(1, Relaxed));
        canceller.join().unwrap();
        assert_eq!(calls.load(Relaxed), 1);
        drop(watch);
        assert_eq!(calls.load(Relaxed), 1);
    });
}
