//! The example of an own lock runs, and its lock excludes.

#[path = "../../examples/own_lock.rs"]
#[allow(dead_code, reason = "its main is not called")]
mod example;

#[test]
fn the_example_of_an_own_lock_measures_its_lock_and_a_known_one() {
    let (alone, eight) = (example::rate::<example::BackOff>(1, 50), example::rate::<example::BackOff>(8, 50));
    assert!(alone > 0.5 && alone < 1.0, "{alone}: a section takes a microsecond and the lock");
    assert!(eight > 2.0 * alone, "{eight} {alone}");
    assert!(example::line::<locks_sim::TicketLock>("ticket").chars().count() <= 80);
}
