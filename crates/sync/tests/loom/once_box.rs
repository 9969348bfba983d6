//! loom models of `OnceBox`: threads that make the value at the same time, and one that only reads it. To loom, a read of a value
//! that was not seen is a data race.
#![allow(unsafe_code, reason = "the cell of a value is read without a lock")]

use lightfoot_sync::OnceBox;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

struct Value(UnsafeCell<u32>);

// SAFETY: the cell is written when the value is made only.
unsafe impl Sync for Value {}

fn made(number: u32) -> Value {
    let value = Value(UnsafeCell::new(0));
    // SAFETY: no other thread has it yet.
    value.0.with_mut(|cell| unsafe { *cell = number });
    value
}

fn read(value: &Value) -> u32 {
    // SAFETY: see `Sync` above.
    value.0.with(|cell| unsafe { *cell })
}

#[test]
fn threads_that_make_a_value_at_once_get_the_same_one() {
    loom::model(|| {
        let once = Arc::new(OnceBox::none());
        let other = {
            let once = once.clone();
            thread::spawn(move || read(once.get_or_make(|| made(1))))
        };
        let own = read(once.get_or_make(|| made(2)));
        assert_eq!(own, other.join().unwrap());
        assert_eq!(once.get().map(read), Some(own));
    });
}

#[test]
fn a_reader_sees_the_value_as_it_was_made() {
    loom::model(|| {
        let once = Arc::new(OnceBox::none());
        let maker = {
            let once = once.clone();
            thread::spawn(move || read(once.get_or_make(|| made(3))))
        };
        assert!(once.get().is_none_or(|value| read(value) == 3));
        maker.join().unwrap();
    });
}
