//! loom models of [`PerCpuCredits`]: threads that take, owe and give near the bound.
//!
//! All orderings of the credits are relaxed: its words are changed by read-modify-writes, and the mutex orders the rest. So the models
//! show that these must be what they are. They fail with a load and a store in the place of the exchange in `take_own`, in
//! `give` or in `close`, and with a store that is emptied and not closed.

use lightfoot_sync::PerCpuCredits;
use loom::sync::Arc;
use loom::thread;

/// Six units: one is taken, two are in the store of the calling thread, three are the rest.
fn one_taken() -> Arc<PerCpuCredits> {
    let credits = Arc::new(PerCpuCredits::new(6, 2));
    assert!(credits.take(1));
    assert_eq!((credits.rest_seen(), credits.free()), (3, 5));
    credits
}

/// One thread takes from its store, one collects.
#[test]
fn of_two_threads_one_takes_the_last_units() {
    loom::model(|| {
        let credits = one_taken();
        let other = {
            let credits = credits.clone();
            thread::spawn(move || credits.take(4))
        };
        let own = credits.take(2);
        assert_ne!(own, other.join().unwrap(), "five units are there");
        assert_eq!(credits.used(), if own { 3 } else { 5 });
    });
}

/// One thread gives to its store, one collects.
#[test]
fn no_unit_is_lost_or_made() {
    loom::model(|| {
        let credits = one_taken();
        let other = {
            let credits = credits.clone();
            thread::spawn(move || credits.take(5))
        };
        credits.give(1);
        assert!(other.join().unwrap(), "five units were there all the time");
        assert_eq!((credits.used(), credits.free()), (5, 1));
        assert!(credits.take(1) && !credits.take(1));
    });
}

/// One thread gives to its store and takes from it, one makes a debt: then nothing can be taken.
#[test]
fn a_debt_is_paid_first() {
    loom::model(|| {
        let credits = one_taken();
        let other = {
            let credits = credits.clone();
            thread::spawn(move || credits.take_anyway(8))
        };
        credits.give(1);
        let early = u64::from(credits.take(1));
        other.join().unwrap();
        assert_eq!((credits.used(), credits.free()), (8 + early, 0));
        assert!(!credits.take(1));
        credits.give(1);
        credits.give(1 + early);
        assert!(!credits.take(1));
        credits.give(1);
        assert!(credits.take(1) && !credits.take(1));
    });
}
