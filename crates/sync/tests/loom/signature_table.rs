//! loom models of `SignatureTable`: one entry, which is a sequence lock.

use lightfoot_sync::SignatureTable;
use lightfoot_sync::signature_table::{Found, Signature, Worth};
use loom::sync::Arc;
use loom::thread;
use std::num::NonZeroUsize;

/// A table of two lines: its four ways are those of every signature.
fn table() -> Arc<SignatureTable> {
    Arc::new(SignatureTable::new(1).unwrap())
}

fn sign(table: &SignatureTable, number: u64) -> Signature {
    table.sign(number, b"name").unwrap()
}

fn found(address: usize, check: u64) -> Option<Found> {
    NonZeroUsize::new(address).map(|address| Found { address, check })
}

fn put(table: &SignatureTable, number: u64, address: usize, check: u64) {
    table.put(sign(table, number), address, check, |_| Worth::Current);
}

#[test]
fn a_lookup_beside_two_writers_of_its_entry_finds_the_words_of_one_of_them() {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(|| {
        let table = table();
        put(&table, 1, 64, 1);
        let writers = [(128, 2), (192, 3)].map(|(address, check)| {
            let table = table.clone();
            thread::spawn(move || put(&table, 1, address, check))
        });
        let seen = table.find(sign(&table, 1));
        assert!([None, found(64, 1), found(128, 2), found(192, 3)].contains(&seen), "{seen:?}");
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let last = table.find(sign(&table, 1));
        assert!([found(128, 2), found(192, 3)].contains(&last), "{last:?}");
    });
}

#[test]
fn a_lookup_beside_a_writer_that_needs_the_room_finds_its_own_words_or_none() {
    for wanted in [1, 9] {
        loom::model(move || {
            let table = table();
            (1..=4).for_each(|number| put(&table, number, 64 * number as usize, number));
            let writer = {
                let table = table.clone();
                // In place of the first one.
                thread::spawn(move || {
                    table.put(sign(&table, 9), 640, 9, |check| if check == 1 { Worth::Old } else { Worth::Current })
                })
            };
            let seen = table.find(sign(&table, wanted));
            assert!([None, found(if wanted == 9 { 640 } else { 64 }, wanted)].contains(&seen), "{seen:?}");
            writer.join().unwrap();
            assert_eq!((table.find(sign(&table, 1)), table.find(sign(&table, 9))), (None, found(640, 9)));
        });
    }
}

#[test]
fn a_lookup_beside_a_writer_that_moves_its_entry_finds_its_words_or_none() {
    loom::model(|| {
        let table = table();
        (1..=3).for_each(|number| put(&table, number, 64 * number as usize, number));
        let mover = {
            let table = table.clone();
            thread::spawn(move || assert!(table.move_entry(sign(&table, 1))))
        };
        let seen = table.find(sign(&table, 1));
        assert!([None, found(64, 1)].contains(&seen), "{seen:?}");
        mover.join().unwrap();
        assert_eq!(table.find(sign(&table, 1)), found(64, 1));
    });
}

#[test]
fn an_entry_that_moves_while_another_thread_puts_one_has_the_words_of_one_put() {
    // A put of the same signature, and one that may need the same room.
    for (number, words) in [(1, (640, 10)), (4, (256, 4))] {
        loom::model(move || {
            let table = table();
            (1..=3).for_each(|number| put(&table, number, 64 * number as usize, number));
            let mover = {
                let table = table.clone();
                thread::spawn(move || table.move_entry(sign(&table, 1)))
            };
            put(&table, number, words.0, words.1);
            mover.join().unwrap();
            let [first, second, third, fourth] = [1, 2, 3, 4].map(|number| table.find(sign(&table, number)));
            // The other put may take the room that the entry moved to: any entry may go.
            let expected = if number == 1 { found(640, 10) } else { None };
            assert!(first == found(64, 1) || first == expected, "{first:?}");
            assert_eq!((second, third), (found(128, 2), found(192, 3)));
            assert!(fourth.is_none() || number == 4 && fourth == found(256, 4), "{fourth:?}");
        });
    }
}

#[test]
fn two_changes_of_one_word_of_checks_are_not_lost_in_one_another() {
    loom::model(|| {
        let table = table();
        put(&table, 1, 64, 1);
        let old = table.find(sign(&table, 1)).unwrap();
        let updater = {
            let table = table.clone();
            thread::spawn(move || table.update(sign(&table, 1), old, 9))
        };
        // The same address: only the word of checks shows the update that it is too late.
        put(&table, 1, 64, 2);
        let was_put = table.find(sign(&table, 1)) == found(64, 2);
        updater.join().unwrap();
        let last = table.find(sign(&table, 1));
        assert!(last == found(64, 2) || !was_put && last == found(64, 9), "{last:?} {was_put}");
    });
}

#[test]
fn an_entry_that_was_removed_is_not_found() {
    loom::model(|| {
        let table = table();
        put(&table, 1, 64, 1);
        let writer = {
            let table = table.clone();
            thread::spawn(move || put(&table, 1, 128, 2))
        };
        table.clear();
        let seen = table.find(sign(&table, 1));
        assert!([None, found(128, 2)].contains(&seen), "{seen:?}");
        writer.join().unwrap();
    });
}
