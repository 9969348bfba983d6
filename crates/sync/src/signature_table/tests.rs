//! Tests of the table of signatures.

use super::nh::MAX;
use super::*;
use std::collections::HashSet;

fn table(entries: usize) -> SignatureTable {
    SignatureTable::new(entries * 32).unwrap()
}

fn address(address: usize) -> NonZeroUsize {
    NonZeroUsize::new(address).unwrap()
}

#[test]
fn different_keys_have_different_signatures() {
    let table = table(4);
    let mut seen = HashSet::new();
    let text: Vec<u8> = (0..=255).collect();
    for beside in [0, 1, 64, u64::MAX] {
        for len in 0..=MAX {
            let signature = table.sign(beside, &text[..len]).unwrap();
            assert!(seen.insert((signature.low, signature.high)), "{beside} {len}");
            // Each byte matters.
            for at in 0..len {
                let mut other = text.clone();
                other[at] ^= 0x20;
                let changed = table.sign(beside, &other[..len]).unwrap();
                assert_ne!(changed, signature, "{beside} {len} {at}");
            }
        }
    }
    assert_eq!(table.sign(0, &[0; MAX + 1]), None);
    // Zeros count.
    assert_ne!(table.sign(0, &[0; 3]), table.sign(0, &[0; 4]));
}

#[test]
fn a_lookup_finds_what_was_put_last() {
    let table = table(64);
    let signature = table.sign(1, b"a").unwrap();
    assert_eq!(table.find(signature), None);
    table.put(signature, 64, 10, |_| Worth::Current);
    table.put(signature, 128, 11, |_| Worth::Current);
    let found = Found { address: address(128), check: 11 };
    assert_eq!(table.find(signature), Some(found));
    assert_eq!(table.count(|_| true), 1, "one entry a signature");
    table.update(signature, Found { address: address(64), check: 10 }, 12);
    assert_eq!(table.find(signature), Some(found), "an update of an entry that is another one by now");
    table.update(signature, found, 12);
    assert_eq!(table.find(signature), Some(Found { address: address(128), check: 12 }));
    let highest = (1 << ADDRESS_BITS) - 64;
    table.put(signature, highest, u64::MAX, |_| Worth::Current);
    assert_eq!(table.find(signature), Some(Found { address: address(highest), check: u64::MAX }));
    table.clear();
    assert_eq!((table.find(signature), table.count(|_| true)), (None, 0));
}

#[test]
fn a_full_set_gives_up_a_stale_entry_first() {
    // Two lines: every signature has all four ways.
    let table = table(4);
    let sign = |n: u64| table.sign(n, b"x").unwrap();
    for n in 0..4 {
        table.put(sign(n), 64, n, |_| Worth::Current);
    }
    assert!(table.count(|_| true) == 4 && !table.has_room(sign(9)));
    table.put(sign(9), 64, 9, |check| if check == 2 { Worth::Old } else { Worth::Current });
    assert_eq!(table.find(sign(2)), None, "the stale one went");
    for n in [0, 1, 3, 9] {
        assert_eq!(table.find(sign(n)).map(|found| found.check), Some(n));
    }
    table.put(sign(10), 64, 10, |_| Worth::Current);
    assert_eq!(table.find(sign(10)).map(|found| found.check), Some(10), "there is always room for a new one");
    assert_eq!(table.count(|_| true), 4);
}

#[test]
fn of_two_entries_of_one_signature_a_put_changes_the_one_that_lookups_find() {
    for n in 0..64 {
        for (first, second) in [((0, 0), (0, 1)), ((0, 0), (1, 1)), ((0, 1), (1, 0)), ((1, 0), (1, 1))] {
            let table = table(4);
            let signature = table.sign(n, b"x").unwrap();
            let at = table.line_of(signature);
            let line = |line| &table.lines.get()[if line == 0 { at } else { table.other_line(signature, at) }];
            // Puts of one thread do not do this; puts of two threads can.
            for (number, (at, way)) in [first, second].into_iter().enumerate() {
                line(at).0[way].write(signature, 64, number as u64);
            }
            assert_eq!(table.find(signature).map(|found| found.check), Some(0));
            table.put(signature, 64, 7, |_| Worth::Current);
            assert_eq!(table.find(signature).map(|found| found.check), Some(7), "{n} {first:?} {second:?}");
        }
    }
}

#[test]
fn nearly_all_entries_are_used_before_one_makes_room() {
    let entries = 1 << 16;
    for (percent, kept_percent) in [(50, 99.99), (75, 99.5), (85, 97.0)] {
        let (table, count) = (table(entries), entries as u64 * percent / 100);
        for n in 0..count {
            table.put(table.sign(n, b"path").unwrap(), 64 * (n as usize + 1), n, |_| Worth::Current);
        }
        let found = |n| table.find(table.sign(n, b"path").unwrap());
        let kept: Vec<_> = (0..count).filter_map(|n| Some((n, found(n)?))).collect();
        // A moved entry is the entry that was put.
        assert!(kept.iter().all(|&(n, found)| (found.address.get(), found.check) == (64 * (n as usize + 1), n)));
        assert_eq!(
            table.count(|_| true),
            kept.len(),
            "{percent} %: an entry for each, and none that a lookup does not find"
        );
        let kept = 100.0 * kept.len() as f64 / count as f64;
        assert!(kept >= kept_percent, "{percent} %: {kept} % are there");
    }
}

#[test]
fn entries_move_beside_threads_that_look_them_up() {
    let table = table(1 << 10);
    let sign = |n: u64| table.sign(n, b"name").unwrap();
    let (stay, others) = (400, 300);
    for n in 0..stay {
        table.put(sign(n), 64, n, |_| Worth::Current);
    }
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..200 {
                for n in 0..others {
                    table.put(sign(stay + n + round % 2 * others), 64, 1000, |check| match check {
                        1000 => Worth::Useless,
                        _ => Worth::Current,
                    });
                }
            }
            is_over.store(true, Relaxed);
        });
        while !is_over.load(Relaxed) {
            for n in 0..stay {
                // An entry that moves is not found for a moment. It never has the words of another one.
                assert!(table.find(sign(n)).is_none_or(|found| found.check == n));
            }
        }
    });
    let kept = (0..stay).filter(|&n| table.find(sign(n)).is_some()).count();
    assert!(kept as u64 > stay * 99 / 100, "{kept}");
}

#[test]
fn it_takes_the_memory_that_it_was_given() {
    for bytes in [0, 100, 1 << 20, (1 << 20) + 77] {
        let table = SignatureTable::new(bytes).unwrap();
        assert!(table.bytes() <= bytes.max(128) && table.bytes() + 128 > bytes, "{bytes} {}", table.bytes());
    }
}

#[test]
fn threads_that_write_one_set_never_show_words_of_two_entries() {
    let table = table(4);
    let rounds = 30_000;
    std::thread::scope(|scope| {
        for thread in 0..2_u64 {
            let table = &table;
            scope.spawn(move || {
                for round in 0..rounds {
                    let n = round % 7 + thread;
                    let key = table.sign(n, b"name").unwrap();
                    // The check word names the key and the address that it belongs to.
                    let address = 64 * (1 + (round % 1000) as usize);
                    table.put(key, address, n << 32 | address as u64, |_| Worth::Current);
                    for n in 0..8 {
                        if let Some(found) = table.find(table.sign(n, b"name").unwrap()) {
                            assert_eq!(found.check, n << 32 | found.address.get() as u64);
                        }
                    }
                }
            });
        }
    });
}
