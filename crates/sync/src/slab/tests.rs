//! The promises of the slab, and memory that its threads must not see.

use super::*;
use core::sync::atomic::AtomicU64;
use std::collections::HashSet;

/// A value that fresh memory does not hold.
const MADE: u64 = 0x1234_5678_9abc_def0;

struct Thing {
    owner: AtomicU64,
    made: u64,
    _pad: [u64; 6],
}

struct Rest {
    link: AtomicPtr<Thing>,
    _pad: [u64; 2],
}

// SAFETY: the link is a word of the side, which nothing else uses.
unsafe impl Item for Thing {
    type Side = Rest;
    fn vacant() -> (Self, Rest) {
        // So that others run while a part is half written.
        std::thread::yield_now();
        (Self { owner: AtomicU64::new(0), made: MADE, _pad: [0; 6] }, Rest { link: AtomicPtr::default(), _pad: [0; 2] })
    }
    fn free_link(rest: &Rest) -> &AtomicPtr<Self> {
        &rest.link
    }
}

/// Returns an item that a test took and does not use any more.
fn free<T: Item>(slab: &Slab<T>, item: &T) {
    std::thread_local!(static DOMAIN: RcuDomain = RcuDomain::without_reclaimer());
    // SAFETY: the tests return each item to the slab once; tests with readers use the domain
    // themselves.
    DOMAIN.with(|domain| unsafe { slab.free(domain, item) });
}

/// An item whose memory returns: four pages for a group.
#[repr(align(64))]
struct Leaf {
    count: AtomicU64,
    _pad: [AtomicU64; 7],
}

#[repr(align(64))]
struct Stem {
    link: AtomicPtr<Leaf>,
    word: AtomicU64,
    _pad: [AtomicU64; 22],
}

// SAFETY: the link is a word of the side, which nothing else uses. Item and side are atomics; their
// vacant values are zeros.
unsafe impl Item for Leaf {
    type Side = Stem;
    const RETURNS: bool = true;
    fn vacant() -> (Self, Stem) {
        let zero = |_| AtomicU64::new(0);
        let leaf = Self { count: AtomicU64::new(0), _pad: core::array::from_fn(zero) };
        (leaf, Stem { link: AtomicPtr::default(), word: AtomicU64::new(0), _pad: core::array::from_fn(zero) })
    }
    fn free_link(stem: &Stem) -> &AtomicPtr<Self> {
        &stem.link
    }
    fn count(&self) -> u32 {
        self.count.load(Relaxed) as u32
    }
    fn raise_above(&self, count: u32) {
        self.count.fetch_max(u64::from(count) + 1, Relaxed);
    }
}

/// Bytes of the memory of `slab` that its process has: the resident pages of its chunks.
fn resident(slab: &Slab<Leaf>) -> usize {
    let page = prim::mem::page_size();
    let depot = slab.depot.0.lock();
    let of_chunk = |place: &depot::Place<Leaf>| {
        let mut pages = vec![0u8; chunk::CHUNK / page];
        // SAFETY: the chunk is mapped, and there is a byte for each of its pages.
        let start = unsafe { place.chunk.as_ref() }.at(0);
        // SAFETY: as above.
        assert_eq!(unsafe { libc::mincore(start.cast(), chunk::CHUNK, pages.as_mut_ptr()) }, 0);
        pages.iter().filter(|&&page| page & 1 != 0).count() * page
    };
    depot.chunks.iter().map(of_chunk).sum()
}

/// Bytes of memory taken from the system for items, used or not.
fn reserved_bytes<T: Item>(slab: &Slab<T>) -> usize {
    slab.depot.0.lock().chunks.len() * chunk::CHUNK
}

/// Takes `count` items, and uses each once.
fn take_leaves(slab: &Slab<Leaf>, count: usize) -> Vec<&Leaf> {
    let leaves: Vec<&Leaf> = (0..count).map(|_| slab.alloc()).collect();
    for leaf in &leaves {
        leaf.count.fetch_add(2, Relaxed);
        // SAFETY: the item is in `slab`.
        unsafe { side(*leaf) }.word.store(1, Relaxed);
    }
    leaves
}

fn free_leaves(slab: &Slab<Leaf>, domain: &RcuDomain, leaves: &[&Leaf]) {
    // SAFETY: the tests return each item to the slab once; readers are in sections of `domain`.
    leaves.iter().for_each(|leaf| unsafe { slab.free(domain, leaf) });
}

#[test]
fn a_reader_that_stays_keeps_half_of_the_memory_from_its_next_use() {
    let (slab, domain) = (Slab::<Leaf>::new(), RcuDomain::new());
    let guard = domain.read();
    for _ in 0..10 {
        let leaves = take_leaves(&slab, 50_000);
        free_leaves(&slab, &domain, &leaves);
    }
    assert!(reserved_bytes(&slab) <= 50_000 * 256 * 5 / 2, "{}", reserved_bytes(&slab));
    drop(guard);
}

/// As `free_leaves`, but with grace periods in between, so that no surplus memory must wait for a
/// later call.
fn free_in_parts(slab: &Slab<Leaf>, domain: &RcuDomain, leaves: &[&Leaf]) {
    for leaves in leaves.chunks(500) {
        free_leaves(slab, domain, leaves);
        domain.barrier();
    }
}

/// The most that a slab without items in use keeps, when so many threads used it: for each, the
/// free groups that may stay, and the groups of the items in its magazine.
fn most_kept_by(slab: &Slab<Leaf>, threads: usize) -> usize {
    (free::KEPT + slab.full.load(Relaxed)) * 4 * 4096 * threads
}

#[test]
fn the_memory_of_free_items_goes_back_to_the_system_after_a_grace_period() {
    let (slab, domain) = (Slab::<Leaf>::new(), RcuDomain::new());
    let orders: [fn(&mut Vec<&Leaf>); 3] = [
        |_| (),
        |leaves| leaves.reverse(),
        // Each group loses its last item near the end.
        |leaves| leaves.sort_by_key(|leaf| core::ptr::from_ref(*leaf).addr().wrapping_mul(0x9E37_79B9_7F4A_7C15)),
    ];
    for order in orders {
        let mut leaves = take_leaves(&slab, 100_000);
        let full = resident(&slab);
        assert!(full >= 100_000 * 256, "{full}");
        order(&mut leaves);
        for leaves in leaves.chunks(500) {
            let before = resident(&slab);
            let guard = domain.read();
            free_leaves(&slab, &domain, leaves);
            assert!(resident(&slab) >= before, "a reader is in a section");
            drop(guard);
            domain.barrier();
        }
        let left = resident(&slab);
        assert!(left <= most_kept_by(&slab, 1), "{left} bytes");
        assert!(slab.touched_bytes() <= left + chunk::CHUNK, "{}", slab.touched_bytes());
    }
}

#[test]
fn a_slab_of_few_items_takes_a_page_of_items_and_one_of_sides() {
    let page = prim::mem::page_size();
    let pages = |items: usize| (items * 64).div_ceil(page) + (items * 192).div_ceil(page);
    for (items, made) in [(1, 16), (16, 16), (17, 48), (49, 80)] {
        let slab = &Slab::<Leaf>::small();
        take_leaves(slab, items);
        assert_eq!(resident(slab), pages(made) * page, "{items} items");
        assert_eq!(slab.touched_bytes(), made * 256);
    }
}

#[test]
fn an_item_whose_memory_was_returned_is_vacant_and_its_count_does_not_go_back() {
    let (slab, domain) = (Slab::<Leaf>::new(), RcuDomain::new());
    let mut last = std::collections::HashMap::new();
    for round in 0..4 {
        let leaves = take_leaves(&slab, 20_000);
        for &leaf in &leaves {
            let now = leaf.count.load(Relaxed);
            let before = last.insert(core::ptr::from_ref(leaf), now);
            assert!(before.is_none_or(|before| before < now), "{round}: {before:?}, then {now}");
        }
        free_in_parts(&slab, &domain, &leaves);
        let mut bare = 0;
        slab.for_each(|leaf| {
            // SAFETY: the item is in `slab`.
            let stem = unsafe { side(leaf) };
            let is_zero = leaf.count.load(Relaxed) == 0 && stem.word.load(Relaxed) == 0;
            bare += usize::from(is_zero && stem.link.load(Relaxed).is_null());
        });
        assert!(bare >= 20_000 - most_kept_by(&slab, 1) / 256, "{bare}");
    }
}

#[test]
fn items_in_use_keep_their_memory_when_their_neighbours_go() {
    let (slab, domain) = (Slab::<Leaf>::new(), RcuDomain::new());
    let leaves = take_leaves(&slab, 50_000);
    leaves.iter().enumerate().for_each(|(mark, leaf)| leaf.count.store(mark as u64, Relaxed));
    let (kept, freed): (Vec<_>, Vec<_>) = leaves.iter().enumerate().partition(|(mark, _)| mark % 1000 < 100);
    let freed: Vec<&Leaf> = freed.into_iter().map(|(_, &leaf)| leaf).collect();
    free_in_parts(&slab, &domain, &freed);
    assert!(kept.iter().all(|&(mark, leaf)| leaf.count.load(Relaxed) == mark as u64));
    // Of each thousand, 900 in a row were freed: at least 12 groups of 64 items.
    assert!(resident(&slab) <= 50_000 * 256 * 3 / 10 + most_kept_by(&slab, 1), "{}", resident(&slab));
}

#[test]
fn a_slab_that_is_used_at_a_steady_size_keeps_its_memory() {
    let (slab, domain) = (Slab::<Leaf>::new(), RcuDomain::new());
    let mut leaves = take_leaves(&slab, 64_000);
    for _ in 0..100 {
        let freed = leaves.split_off(64_000 - 1024);
        free_leaves(&slab, &domain, &freed);
        leaves.extend(take_leaves(&slab, 1024));
    }
    assert_eq!(domain.stats().freed_callbacks + domain.stats().deferred_callbacks, 0);
}

#[test]
fn a_slab_may_be_dropped_while_its_memory_returns() {
    let domain = RcuDomain::new();
    let guard = domain.read();
    let slab = Slab::<Leaf>::small();
    let leaves = take_leaves(&slab, 20_000);
    free_leaves(&slab, &domain, &leaves);
    assert_ne!(domain.stats().deferred_callbacks, 0);
    drop(slab);
    drop(guard);
    domain.barrier();
}

#[test]
fn a_slab_with_a_limit_returns_nothing() {
    let (slab, domain) = (Slab::<Leaf>::new(), RcuDomain::new());
    slab.set_limit(20_000);
    let leaves = take_leaves(&slab, 20_000);
    free_leaves(&slab, &domain, &leaves);
    assert_eq!(domain.stats().deferred_callbacks, 0);
    assert_eq!(take_leaves(&slab, 20_000).len(), 20_000);
}

#[test]
fn threads_that_allocate_and_free_lose_no_item_while_memory_returns() {
    let (slab, domain) = (Slab::<Leaf>::new(), RcuDomain::new());
    std::thread::scope(|s| {
        for me in 1..=3u64 {
            let (slab, domain) = (&slab, &domain);
            s.spawn(move || {
                for round in 0..30 {
                    let leaves: Vec<&Leaf> = (0..(me * 1000 + round * 100)).map(|_| slab.alloc()).collect();
                    for leaf in &leaves {
                        // SAFETY: the item is in `slab`.
                        assert_eq!(unsafe { side(*leaf) }.word.swap(me, Relaxed), 0);
                    }
                    for leaf in &leaves {
                        // SAFETY: as above.
                        assert_eq!(unsafe { side(*leaf) }.word.swap(0, Relaxed), me);
                    }
                    free_leaves(slab, domain, &leaves);
                }
            });
        }
    });
    domain.barrier();
    // Now one thread frees everything, so that the surplus of the others is returned.
    let all = take_leaves(&slab, 12_000);
    free_in_parts(&slab, &domain, &all);
    let (left, threads) = (resident(&slab), prim::cpu::count());
    assert!(left <= most_kept_by(&slab, threads), "{left} bytes, {threads} threads");
}

#[test]
fn magazines_trade_more_where_threads_often_wait_for_the_depot() {
    let full_after = |slab: &Slab<Leaf>, waits: usize, others: usize| {
        for visit in 0..waits + others {
            slab.note_visit(&mut slab.depot.0.lock(), visit < waits);
        }
        slab.full.load(Relaxed)
    };
    let slab = Slab::<Leaf>::new();
    for (waits, others, full) in [(63, 0, 64), (1, 0, 128), (32, 0, 128), (0, 1000, 128), (32, 1000, 128)] {
        assert_eq!(full_after(&slab, waits, others), full, "{waits} waits, {others} not");
    }
    assert_eq!(full_after(&slab, 10_000, 0), 512, "the most");
    slab.set_limit(BATCH);
    assert_eq!(full_after(&slab, 10_000, 0), 32);
}

#[test]
fn large_magazines_take_each_item_once_and_give_all_back() {
    let (slab, domain) = (Slab::<Leaf>::new(), RcuDomain::new());
    slab.full.store(2 * MAX_BATCH, Relaxed);
    // Not a multiple of what one visit reserves, so that a chunk ends inside one.
    let items = 3 * const { used::<Leaf>() } + 1000;
    for _ in 0..2 {
        let leaves = take_leaves(&slab, items);
        let addresses: HashSet<_> = leaves.iter().map(|&leaf| core::ptr::from_ref(leaf)).collect();
        assert_eq!(addresses.len(), items);
        free_in_parts(&slab, &domain, &leaves);
        let mut visited = 0;
        slab.for_each(|_| visited += 1);
        assert!((items..items + MAX_BATCH).contains(&visited), "{visited} items");
    }
    assert!(resident(&slab) <= most_kept_by(&slab, 1));
}

#[test]
fn an_item_and_its_side_lead_to_each_other() {
    let slab = Slab::<Thing>::new();
    for _ in 0..50_000 {
        let thing = slab.alloc();
        // SAFETY: both are in `slab`.
        let rest = unsafe { side(thing) };
        // SAFETY: as above.
        assert!(core::ptr::eq(unsafe { item::<Thing>(rest) }, thing));
    }
}

#[test]
fn live_items_are_distinct_and_freed_ones_come_back() {
    let slab = Slab::<Thing>::new();
    let items: Vec<&Thing> = (0..100_000).map(|_| slab.alloc()).collect();
    let addresses: HashSet<_> = items.iter().map(|&item| core::ptr::from_ref(item)).collect();
    assert_eq!(addresses.len(), items.len());
    let reserved = reserved_bytes(&slab);
    items.iter().for_each(|item| free(&slab, item));
    for _ in 0..100_000 {
        assert!(addresses.contains(&core::ptr::from_ref(slab.alloc())));
    }
    assert_eq!(reserved_bytes(&slab), reserved);
}

#[test]
fn the_item_freed_last_is_handed_out_first() {
    let slab = Slab::<Thing>::new();
    let item = slab.alloc();
    free(&slab, item);
    assert!(core::ptr::eq(item, slab.alloc()));
}

#[test]
fn threads_never_own_one_item_together() {
    let slab = Slab::<Thing>::new();
    std::thread::scope(|s| {
        for me in 1..=3u64 {
            let slab = &slab;
            s.spawn(move || {
                let mut held = Vec::new();
                for round in 0..50_000u64 {
                    if (round * me) % 7 < 4 {
                        let item = slab.alloc();
                        assert_eq!(item.owner.swap(me, Relaxed), 0);
                        held.push(item);
                    } else if let Some(item) = held.pop() {
                        assert_eq!(item.owner.swap(0, Relaxed), me);
                        free(slab, item);
                    }
                }
            });
        }
    });
    let mut carved = 0;
    slab.for_each(|_| carved += 1);
    assert!(carved > 0);
}

#[test]
fn a_visitor_of_all_items_sees_only_written_ones() {
    let slab = Slab::<Thing>::new();
    let (hand, makers) = (SlabCursor::default(), AtomicU64::new(2));
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                for _ in 0..2 * const { used::<Thing>() } {
                    slab.alloc();
                }
                makers.fetch_sub(1, Relaxed);
            });
        }
        while makers.load(Relaxed) > 0 {
            slab.for_each(|thing| assert_eq!(thing.made, MADE));
            slab.scan(&hand, 1000, |thing| assert_eq!(thing.made, MADE));
        }
    });
    let mut items = 0;
    slab.for_each(|_| items += 1);
    assert_eq!(items * size_of::<(Thing, Rest)>(), slab.touched_bytes());
}

#[test]
fn a_part_whose_making_panicked_is_passed_over() {
    struct Fuse(AtomicPtr<Fuse>);
    // SAFETY: the side is the link, which nothing else uses.
    unsafe impl Item for Fuse {
        type Side = AtomicPtr<Fuse>;
        fn vacant() -> (Self, AtomicPtr<Fuse>) {
            assert!(!BURNT.replace(false), "on purpose");
            (Self(AtomicPtr::default()), AtomicPtr::default())
        }
        fn free_link(side: &AtomicPtr<Self>) -> &AtomicPtr<Self> {
            side
        }
    }
    std::thread_local!(static BURNT: core::cell::Cell<bool> = const { core::cell::Cell::new(true) });

    let slab = Slab::<Fuse>::new();
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| slab.alloc().0.load(Relaxed)));
    assert!(unwound.is_err());
    let mut visited = 0;
    slab.for_each(|_| visited += 1);
    assert_eq!((visited, slab.scan(&SlabCursor::default(), 100, |_| ())), (0, 0));
    slab.alloc();
    slab.for_each(|_| visited += 1);
    assert_eq!((visited, slab.scan(&SlabCursor::default(), 100, |_| ())), (BATCH, BATCH));
}

#[test]
fn no_more_items_are_made_than_the_limit_allows() {
    let bounded = [(0, 0), (1, BATCH), (BATCH, BATCH), (10_000, 10_016)];
    for (limit, items) in bounded.into_iter().chain([usize::MAX - 1, usize::MAX].map(|limit| (limit, 100_000))) {
        let slab = Slab::<Thing>::new();
        slab.set_limit(limit);
        let held: Vec<&Thing> = core::iter::from_fn(|| slab.try_alloc()).take(100_000).collect();
        assert_eq!(held.len(), items, "limit {limit}");
        assert!(items == 100_000 || slab.try_alloc().is_none());
        if let Some(&last) = held.last() {
            free(&slab, last);
            assert!(slab.try_alloc().is_some_and(|item| core::ptr::eq(item, last)));
        }
    }
}

#[test]
fn a_limit_may_change_and_is_not_for_those_who_must_have_an_item() {
    let slab = Slab::<Thing>::small();
    slab.set_limit(BATCH);
    let held: Vec<&Thing> = core::iter::from_fn(|| slab.try_alloc()).collect();
    let more: Vec<&Thing> = (0..BATCH).map(|_| slab.alloc()).collect();
    assert!(slab.try_alloc().is_none());
    slab.set_limit(3 * BATCH);
    assert_eq!(core::iter::from_fn(|| slab.try_alloc()).count(), BATCH);
    slab.set_limit(0);
    assert!(slab.try_alloc().is_none());
    held.iter().chain(&more).for_each(|item| free(&slab, item));
    assert_eq!(core::iter::from_fn(|| slab.try_alloc()).count(), 2 * BATCH);
}

#[test]
fn under_a_limit_a_magazine_keeps_less_than_a_batch_from_the_others() {
    let slab = Slab::<Thing>::new();
    slab.set_limit(20 * BATCH);
    let held: Vec<&Thing> = core::iter::from_fn(|| slab.try_alloc()).collect();
    assert_eq!(held.len(), 20 * BATCH);
    held.iter().for_each(|item| free(&slab, item));
    let others = std::thread::scope(|s| s.spawn(|| core::iter::from_fn(|| slab.try_alloc()).count()).join().unwrap());
    assert!(others > 19 * BATCH, "{others}");
    assert_eq!(others + core::iter::from_fn(|| slab.try_alloc()).count(), 20 * BATCH);
}

#[test]
fn the_hand_goes_round_all_items() {
    let slab = Slab::<Thing>::new();
    let hand = SlabCursor::default();
    assert_eq!(slab.scan(&hand, 10, |_| panic!("there is none")), 0);
    let items = 2 * const { used::<Thing>() } + 2 * BATCH;
    for _ in 0..items {
        slab.alloc();
    }
    for count in [1, 7, BATCH, BATCH + 1, 1000, items] {
        let (mut seen, hand) = (Vec::new(), SlabCursor::default());
        while seen.len() < items {
            let left = count.min(items - seen.len());
            assert_eq!(slab.scan(&hand, left, |item| seen.push(core::ptr::from_ref(item))), left);
        }
        let mut all = Vec::new();
        slab.for_each(|item| all.push(core::ptr::from_ref(item)));
        assert_eq!(seen, all, "{count} at a time");
        slab.scan(&hand, 1, |item| assert!(core::ptr::eq(item, all[0])));
    }
    assert_eq!(slab.scan(&hand, usize::MAX, |_| ()), items);
    assert_eq!(slab.scan(&hand, 0, |_| panic!("none was asked for")), 0);
    // A hand that has been round a larger slab.
    slab.scan(&hand, items - 1, |_| ());
    let small = Slab::<Thing>::small();
    small.alloc();
    assert_eq!(small.scan(&hand, 100, |_| ()), PART);
}

#[test]
fn threads_that_share_a_hand_visit_different_items() {
    let slab = Slab::<Thing>::new();
    let hand = SlabCursor::default();
    let items = const { used::<Thing>() } + 3 * BATCH;
    for _ in 0..items {
        slab.alloc();
    }
    let left = AtomicU64::new(items as u64 / 10);
    std::thread::scope(|s| {
        for _ in 0..3 {
            s.spawn(|| {
                while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
                    slab.scan(&hand, 10, |item| assert_eq!(item.owner.fetch_add(1, Relaxed), 0));
                }
            });
        }
    });
    let mut visited = 0;
    slab.for_each(|item| visited += item.owner.load(Relaxed));
    assert_eq!(visited, items as u64 / 10 * 10);
}
