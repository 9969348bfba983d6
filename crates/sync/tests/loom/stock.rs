//! loom models of [`Stock`]: threads that take, owe and give near the bound.
//!
//! All orderings of the stock are relaxed: its words are changed by read-modify-writes, and the mutex orders the rest. So the models
//! show that these must be what they are. They fail with a load and a store in the place of the exchange in `take_own`, in
//! `give` or in `close`, and with a store that is emptied and not closed.

use lightfoot_sync::Stock;
use loom::sync::Arc;
use loom::thread;

/// Six units: one is taken, two are in the store of the calling thread, three are the rest.
fn one_taken() -> Arc<Stock> {
    let stock = Arc::new(Stock::new(6, 2));
    assert!(stock.take(1));
    assert_eq!((stock.rest_seen(), stock.free()), (3, 5));
    stock
}

/// One thread takes from its store, one collects.
#[test]
fn of_two_threads_one_takes_the_last_units() {
    loom::model(|| {
        let stock = one_taken();
        let other = {
            let stock = stock.clone();
            thread::spawn(move || stock.take(4))
        };
        let own = stock.take(2);
        assert_ne!(own, other.join().unwrap(), "five units are there");
        assert_eq!(stock.used(), if own { 3 } else { 5 });
    });
}

/// One thread gives to its store, one collects.
#[test]
fn no_unit_is_lost_or_made() {
    loom::model(|| {
        let stock = one_taken();
        let other = {
            let stock = stock.clone();
            thread::spawn(move || stock.take(5))
        };
        stock.give(1);
        assert!(other.join().unwrap(), "five units were there all the time");
        assert_eq!((stock.used(), stock.free()), (5, 1));
        assert!(stock.take(1) && !stock.take(1));
    });
}

/// One thread gives to its store and takes from it, one makes a debt: then nothing can be taken.
#[test]
fn a_debt_is_paid_first() {
    loom::model(|| {
        let stock = one_taken();
        let other = {
            let stock = stock.clone();
            thread::spawn(move || stock.take_anyway(8))
        };
        stock.give(1);
        let early = u64::from(stock.take(1));
        other.join().unwrap();
        assert_eq!((stock.used(), stock.free()), (8 + early, 0));
        assert!(!stock.take(1));
        stock.give(1);
        stock.give(1 + early);
        assert!(!stock.take(1));
        stock.give(1);
        assert!(stock.take(1) && !stock.take(1));
    });
}
