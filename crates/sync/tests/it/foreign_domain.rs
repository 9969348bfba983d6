//! A guard or a domain that does not belong to a structure: refused, since memory would be freed under the reader.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::rcu::{Rcu, RcuDomain, RcuOption, ReadGuard};
use lightfoot_sync::{HashNode, HashTable};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;

struct Node(AtomicUsize);

// SAFETY: the word is a field that only the table writes.
unsafe impl HashNode for Node {
    type Key = ();

    fn next(&self) -> &AtomicUsize {
        &self.0
    }

    fn hash(&self, (): &(), _guard: &ReadGuard<'_>) -> u64 {
        0
    }
}

/// `f` panics because of the domain.
fn is_refused<R>(what: &str, f: impl FnOnce() -> R) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else { panic!("{what}: granted") };
    let message = payload.downcast_ref::<&str>().copied().unwrap_or_default();
    assert!(message.contains("not its own"), "{what}: {message}");
}

#[test]
fn a_table_refuses_guards_and_domains_that_are_not_its_own() {
    let (own, other) = (RcuDomain::new(), RcuDomain::new());
    let node = Node(AtomicUsize::new(0));
    let table = HashTable::<Node>::new(&own, 4, ());
    let (guard, foreign) = (own.read(), other.read());
    let insert = |domain: &RcuDomain, guard: &ReadGuard<'_>| {
        // SAFETY: the node is on no chain and outlives the table's last use; its hash is 0.
        unsafe { table.insert(domain, guard, &node, 0) };
    };
    is_refused("insert, guard", || insert(&own, &foreign));
    is_refused("insert, domain", || insert(&other, &guard));
    insert(&own, &guard);
    is_refused("view", || table.view(&foreign).find(0, |_| (), |_| true).is_some());
    is_refused("find_slow", || table.find_slow(&foreign, 0, |_| true).is_some());
    is_refused("reserved", || table.reserved(&foreign));
    is_refused("remove, guard", || table.remove(&own, &foreign, &node, 0));
    is_refused("remove, domain", || table.remove(&other, &guard, &node, 0));
    assert!(table.view(&guard).find(0, |_| (), |_| true).is_some());
    assert!(table.remove(&own, &guard, &node, 0));
    assert!(table.find_slow(&guard, 0, |_| true).is_none());
}

#[test]
fn a_cell_refuses_guards_and_domains_that_are_not_its_own() {
    let (own, other) = (RcuDomain::new(), RcuDomain::new());
    let (value, option) = (Rcu::new(&own, 1), RcuOption::some(&own, 1));
    let foreign = other.read();
    is_refused("load", || assert_eq!(*value.load(&foreign), 1));
    is_refused("load of an option", || assert_eq!(option.load(&foreign), Some(&1)));
    is_refused("replace", || value.replace(&other, 2));
    is_refused("set", || option.set(&other, None));
    is_refused("set_sized", || option.set_sized(&other, None, |_| 0));
}

/// What the refusal is for: a table that grows frees its buckets after a grace period of the table's domain, for which a
/// reader in another domain does not count.
#[test]
fn a_view_under_the_tables_own_guard_outlives_the_tables_growth() {
    let own = RcuDomain::without_reclaimer();
    let nodes: Vec<Node> = (0..256).map(|_| Node(AtomicUsize::new(0))).collect();
    let table = HashTable::<Node>::new(&own, 1, ());
    let guard = own.read();
    let view = table.view(&guard);
    for node in &nodes {
        // SAFETY: the node is on no chain and outlives the table's last use; its hash is 0.
        unsafe { table.insert(&own, &guard, node, 0) };
        own.flush();
    }
    assert!(table.reserved(&guard).1 > 1, "it grew");
    assert!(own.stats().deferred_callbacks > 0, "what the view reads is kept");
    assert!(view.find(0, |_| (), |_| true).is_none(), "its bucket was moved");
}
