//! loom models of deferred callbacks, the reclaimer and the barrier. Under loom a batch is full with two callbacks.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::rcu::RcuDomain;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// A cell that the deferring thread writes, then the callback, and that is read after the barrier.
struct Parcel {
    content: UnsafeCell<u32>,
    runs: AtomicUsize,
}

// SAFETY: one thread at a time has it; loom checks that.
unsafe impl Sync for Parcel {}

impl Parcel {
    fn new() -> Arc<Self> {
        Arc::new(Self { content: UnsafeCell::new(0), runs: AtomicUsize::new(0) })
    }

    fn send(parcel: &Arc<Self>, domain: &RcuDomain) {
        // SAFETY: see `Sync` above.
        parcel.content.with_mut(|content| unsafe { *content = 1 });
        let parcel = parcel.clone();
        domain.defer(1, move || {
            // SAFETY: see `Sync` above.
            parcel.content.with_mut(|content| unsafe { *content += 1 });
            parcel.runs.fetch_add(1, Relaxed);
        });
    }

    fn check_run(&self) {
        assert_eq!(self.runs.load(Relaxed), 1);
        // SAFETY: see `Sync` above.
        assert_eq!(self.content.with(|content| unsafe { *content }), 2);
    }
}

#[test]
fn a_barrier_runs_what_was_deferred_before() {
    for domain in [RcuDomain::without_reclaimer, RcuDomain::new] {
        check(move || {
            let domain = domain();
            let parcel = Parcel::new();
            Parcel::send(&parcel, &domain);
            domain.barrier();
            parcel.check_run();
        });
    }
}

#[test]
fn a_barrier_collects_the_batches_of_other_cpus() {
    check(|| {
        let domain = Arc::new(RcuDomain::without_reclaimer());
        let parcels = [Parcel::new(), Parcel::new()];
        let other = {
            let (domain, parcel) = (domain.clone(), parcels[0].clone());
            thread::spawn(move || Parcel::send(&parcel, &domain))
        };
        Parcel::send(&parcels[1], &domain);
        domain.barrier();
        parcels[1].check_run();
        other.join().unwrap();
        domain.barrier();
        parcels[0].check_run();
        assert_eq!(domain.stats().deferred_bytes, 0);
    });
}

#[test]
fn two_threads_hand_batches_over_and_either_runs_them() {
    check(|| {
        let domain = Arc::new(RcuDomain::without_reclaimer());
        let parcels = [const { Parcel::new }; 4].map(|new| new());
        let other = {
            let (domain, parcels) = (domain.clone(), [parcels[0].clone(), parcels[1].clone()]);
            thread::spawn(move || parcels.iter().for_each(|parcel| Parcel::send(parcel, &domain)))
        };
        parcels[2..].iter().for_each(|parcel| Parcel::send(parcel, &domain));
        other.join().unwrap();
        drop(domain);
        parcels.iter().for_each(|parcel| parcel.check_run());
    });
}

#[test]
fn the_reclaimer_takes_batches_while_it_runs() {
    check(|| {
        let domain = RcuDomain::new();
        let parcels = [const { Parcel::new }; 4].map(|new| new());
        parcels.iter().for_each(|parcel| Parcel::send(parcel, &domain));
        drop(domain);
        parcels.iter().for_each(|parcel| parcel.check_run());
    });
}

#[test]
fn two_barriers_at_once_both_end() {
    check(|| {
        let domain = Arc::new(RcuDomain::without_reclaimer());
        let other = {
            let domain = domain.clone();
            thread::spawn(move || {
                let parcel = Parcel::new();
                Parcel::send(&parcel, &domain);
                domain.barrier();
                parcel.check_run();
            })
        };
        domain.barrier();
        other.join().unwrap();
    });
}

#[test]
fn a_domain_dropped_by_its_own_callback_runs_the_rest() {
    check(|| {
        let domain = Arc::new(RcuDomain::new());
        let parcel = Parcel::new();
        let last = domain.clone();
        domain.defer(1, move || drop(last));
        Parcel::send(&parcel, &domain);
        drop(domain);
        while parcel.runs.load(Relaxed) == 0 {
            thread::yield_now();
        }
    });
}
