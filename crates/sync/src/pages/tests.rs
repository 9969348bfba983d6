//! The promises of the pool: zeros, distinct pages, and memory that returns to the system.

use super::*;
use std::collections::HashSet;

fn take(pool: &PagePool, count: usize) -> Vec<Page> {
    (0..count).map(|_| pool.page().expect("memory")).collect()
}

#[test]
fn pages_are_distinct_and_hold_zeros_whatever_they_held_before() {
    let pool = PagePool::new();
    for round in 1..=3 {
        let mut pages = take(&pool, 1000);
        let places: HashSet<_> = pages.iter().map(|page| page.as_ptr()).collect();
        assert_eq!(places.len(), 1000);
        for page in &mut pages {
            assert!(page.iter().all(|&byte| byte == 0));
            page.fill(round);
        }
        assert!(pages.iter().all(|page| page.iter().all(|&byte| byte == round)));
        assert_eq!(pool.stats().live, 1000);
    }
}

#[test]
fn what_is_free_goes_back_to_the_system_but_for_a_little() {
    let pool = PagePool::new();
    let mut pages = take(&pool, 20_000);
    assert!(pool.stats().mapped < 20_000 + PARTS * PAGES);
    // In the order in which they were taken, then every second, then the rest.
    drop(pages.drain(..5_000));
    let stats = pool.stats();
    assert_eq!(stats.live, 15_000);
    assert!(stats.used <= 15_000 / 16 + PARTS * KEPT, "{stats:?}");
    let mut number = 0;
    pages.retain(|_| {
        number += 1;
        number % 2 == 0
    });
    let stats = pool.stats();
    assert_eq!(stats.live, 7_500);
    assert!(stats.used <= 7_500 / 16 + PARTS * KEPT, "{stats:?}");
    assert!(pages.iter().all(|page| page.iter().all(|&byte| byte == 0)));
    drop(pages);
    let stats = pool.stats();
    assert!(stats.live == 0 && stats.used <= PARTS * KEPT && stats.mapped <= PARTS * KEPT * PAGES, "{stats:?}");
}

#[test]
fn to_free_a_page_ends_a_few_chunks_at_most() {
    let pool = PagePool::new();
    let mut pages = take(&pool, 64 * PAGES);
    // One page of each chunk is freed last.
    pages.sort_by_key(|page| page.as_ptr().addr() / PAGE % PAGES);
    let mut mapped = pool.stats().mapped;
    while pages.pop().is_some() {
        let now = pool.stats().mapped;
        assert!(mapped - now <= CHUNKS_A_CALL * PAGES, "{mapped} {now}");
        mapped = now;
    }
}

#[test]
fn a_page_outlives_its_pool_and_any_thread_may_drop_it() {
    let pool = PagePool::new();
    let mut pages = take(&pool, 200);
    let part = Arc::downgrade(&pool.parts[prim::cpu::id() % PARTS]);
    pages.truncate(100);
    drop(pool);
    pages.iter_mut().for_each(|page| page.fill(1));
    assert!(part.upgrade().is_some());
    std::thread::spawn(move || drop(pages)).join().expect("it only drops");
    assert!(part.upgrade().is_none(), "the pool's memory ends with its last page");
}

#[test]
fn threads_never_own_one_page_together() {
    let pool = PagePool::new();
    std::thread::scope(|scope| {
        for me in 1..=4 {
            let pool = &pool;
            scope.spawn(move || {
                let mut held = Vec::new();
                for round in 0..20_000_usize {
                    if round * me % 7 < 4 {
                        let mut page = pool.page().expect("memory");
                        assert!(page.iter().all(|&byte| byte == 0));
                        page[round % PAGE] = me as u8;
                        held.push((page, round % PAGE));
                    } else if let Some((page, at)) = held.pop() {
                        assert_eq!(page[at], me as u8);
                    }
                }
            });
        }
    });
    assert_eq!(pool.stats().live, 0);
}
