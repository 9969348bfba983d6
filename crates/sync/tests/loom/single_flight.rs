//! loom models of `SingleFlight`. The value lies in a tracked cell, so one that is read before it was handed over is a
//! data race for loom; a wake that is lost is a deadlock. (Time does not pass under loom: a deadline that has come runs
//! out at once, others never.)

use lightfoot_sync::single_flight::{Entry, SingleFlight, Waited};
use loom::sync::Arc;
use loom::thread;

type Flights = SingleFlight<u32, u32>;

fn check(model: impl Fn(Arc<Flights>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(move || {
        let flights = Arc::new(Flights::new(1));
        model(flights.clone());
        assert!(matches!(enter(&flights), Entry::Lead(_)), "nothing is in flight");
    });
}

/// Enters with the key of all models.
fn enter(flights: &Flights) -> Entry<'_, u32, u32> {
    flights.enter((1, 1), |&key| key == 1, || 1)
}

/// Does the work, or waits for it. Whether it led, and what came of it.
fn ask(flights: &Flights) -> (bool, Waited<u32>) {
    match enter(flights) {
        Entry::Lead(leader) => {
            leader.finish(7);
            (true, Waited::Done(7))
        }
        Entry::Wait(waiter) => (false, waiter.wait(None)),
    }
}

fn spawn_asker(flights: &Arc<Flights>) -> thread::JoinHandle<(bool, Waited<u32>)> {
    let flights = flights.clone();
    thread::spawn(move || ask(&flights))
}

#[test]
fn two_threads_that_enter_both_get_the_result() {
    check(|flights| {
        let other = spawn_asker(&flights);
        let (led, result) = ask(&flights);
        let (other_led, other_result) = other.join().unwrap();
        assert!(led || other_led);
        assert_eq!((result, other_result), (Waited::Done(7), Waited::Done(7)));
    });
}

#[test]
fn two_sleepers_are_both_woken() {
    check(|flights| {
        let Entry::Lead(leader) = enter(&flights) else { panic!("nobody works on it") };
        let others = [spawn_asker(&flights), spawn_asker(&flights)];
        leader.finish(7);
        for other in others {
            assert_eq!(other.join().unwrap().1, Waited::Done(7));
        }
    });
}

#[test]
fn a_waiter_for_abandoned_work_is_notified_and_leads() {
    check(|flights| {
        let Entry::Lead(leader) = enter(&flights) else { panic!("nobody works on it") };
        let other = {
            let flights = flights.clone();
            thread::spawn(move || {
                let first = ask(&flights);
                if first.1 == Waited::Abandoned { ask(&flights) } else { first }
            })
        };
        drop(leader);
        assert_eq!(other.join().unwrap(), (true, Waited::Done(7)));
    });
}

#[test]
fn a_leader_that_was_given_away_lands_while_others_give_up() {
    check(|flights| {
        let Entry::Lead(leader) = enter(&flights) else { panic!("nobody works on it") };
        let (waiter, leader) = (leader.waiter(), leader.detach());
        let helper = thread::spawn(move || leader.finish(7));
        assert_ne!(waiter.wait(Some(i64::MIN)), Waited::Abandoned);
        assert_eq!(waiter.wait(None), Waited::Done(7));
        helper.join().unwrap();
    });
}
