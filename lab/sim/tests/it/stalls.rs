//! Stalls: what is waited for, by cache line and by place in the source.

use super::small::{config, machine};
use lightfoot_sim::atomic::{AtomicU64, Ordering::Relaxed};
use lightfoot_sim::stall::{by_cache_line, by_place};
use lightfoot_sim::{Config, Report};

#[repr(align(64))]
#[derive(Default)]
struct Line(AtomicU64);

/// All threads add to one line, in two places, and each to its own line.
fn run(stalls: bool) -> Report {
    let config = Config { stalls, ..config(machine()) };
    lightfoot_sim::run(config, <[Line; 9]>::default, |lines, thread| {
        for round in 0..100 {
            if round % 4 == 0 {
                lines[0].0.fetch_add(1, Relaxed);
            } else {
                lines[0].0.fetch_add(2, Relaxed);
            }
            lines[thread + 1].0.fetch_add(1, Relaxed);
        }
    })
}

#[test]
fn stalls_add_up_to_all_time_that_threads_waited_and_name_line_and_places() {
    let report = run(true);
    let sum: f64 = report.stalls.iter().map(|stall| stall.ns).sum();
    assert!((sum - report.stall_ns).abs() < 1.0, "{sum} {}", report.stall_ns);
    let lines = by_cache_line(&report.stalls);
    assert_eq!((lines.len(), lines[0].cache_lines, lines[0].places.len()), (9, 1, 2));
    assert!(lines[0].ns > 0.9 * sum && lines[0].misses > lines[1].misses, "{lines:?}");
    // The shared line is waited for in two places, the others in a third one.
    let places = by_place(&report.stalls);
    assert_eq!(places.iter().map(|place| place.cache_lines).collect::<Vec<_>>(), [1, 1, 8]);
    assert!(places.iter().all(|place| place.places[0].starts_with("stalls.rs:")), "{places:?}");
    let misses = |sums: &[lightfoot_sim::stall::StallSum]| sums.iter().map(|sum| sum.misses).sum::<u64>();
    assert_eq!(misses(&places), misses(&lines));
}

#[test]
fn a_simulation_is_the_same_with_stalls_and_has_none_without() {
    let (with, without) = (run(true), run(false));
    assert_eq!(with.hash, without.hash);
    assert!(without.stalls.is_empty() && !with.stalls.is_empty());
}
