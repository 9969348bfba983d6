//! How a simulation ends that cannot go on; and that the next one is not disturbed.

use super::small::{config, machine, wait_until};
use lightfoot_sim::atomic::{AtomicU32, Ordering::Relaxed};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The message with which a run of `body` ends; then a run that must go well.
fn message(body: impl Fn(&AtomicU32, usize) + Clone + 'static) -> String {
    let run = move || lightfoot_sim::run(config(machine()), || AtomicU32::new(0), body);
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("the run fails");
    let report = lightfoot_sim::run(
        config(machine()),
        || AtomicU32::new(0),
        |word, _| {
            word.fetch_add(1, Relaxed);
            lightfoot_sim::count_op(0);
        },
    );
    assert_eq!(report.operations[0], 8, "a later run is not disturbed");
    panic.downcast::<String>().map_or_else(|_| "no text".into(), |text| *text)
}

fn check(parts: &[&str], body: impl Fn(&AtomicU32, usize) + Clone + 'static) {
    let message = message(body);
    assert!(parts.iter().all(|part| message.contains(part)), "{parts:?} in: {message}");
}

#[test]
fn a_panic_ends_the_run_with_its_thread_time_and_message() {
    check(&["thread 3", "7.000 us", "seven: "], |word, thread| {
        if thread == 3 {
            wait_until(7_000);
            lightfoot_sim::uncharged(|| panic!("seven: {}", word.load(Relaxed)));
        }
        while lightfoot_sim::running() {
            word.fetch_add(1, Relaxed);
        }
    });
}

#[test]
fn a_panic_in_a_condition_that_the_scheduler_evaluates_ends_the_run() {
    check(&["thread 3", "too far"], |word, thread| {
        wait_until(5_000);
        if thread == 3 {
            lightfoot_sim::hint::spin_until(|| {
                assert!(word.load(Relaxed) < 5, "too far");
                false
            });
        }
        lightfoot_sim::cost(1_000 * thread as u64);
        word.fetch_add(1, Relaxed);
    });
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    check(
        &[
            "deadlock",
            "thread 0 (CPU 0, Mutex): parked on the word",
            "which holds 0x0",
            "thread 1 (CPU 1, Other): spinning on the line",
        ],
        |word, thread| {
            let _tag = lightfoot_sim::profile::scope(if thread == 0 {
                lightfoot_sim::profile::Tag::Mutex
            } else {
                lightfoot_sim::profile::Tag::Other
            });
            match thread {
                0 => lightfoot_sim::park::park(word, 0),
                1 => lightfoot_sim::hint::spin_until(|| word.load(Relaxed) == 1),
                _ => {}
            }
        },
    );
}

#[test]
fn a_body_that_does_not_end_is_ended() {
    check(&["not over"], |_, _| {
        loop {
            lightfoot_sim::cost(1_000_000);
        }
    });
}

#[test]
fn a_thread_that_waits_while_it_unwinds_does_not_hang() {
    struct Waits<'a>(&'a AtomicU32);
    impl Drop for Waits<'_> {
        fn drop(&mut self) {
            lightfoot_sim::hint::spin_until(|| self.0.load(Relaxed) == 1);
        }
    }
    // On a separate host thread, which is left unwinding.
    let run = || {
        let body = |word: &AtomicU32, thread| {
            let _waits = (thread == 2).then(|| Waits(word));
            assert_ne!(thread, 2);
            lightfoot_sim::cost(10_000);
        };
        lightfoot_sim::run(config(machine()), || AtomicU32::new(0), body)
    };
    let panic = std::thread::spawn(run).join().expect_err("the run fails");
    let message = panic.downcast::<String>().expect("a text");
    assert!(message.contains("thread 2 waits for another thread while it unwinds"), "{message}");
}

#[test]
fn a_panic_while_the_state_is_made_or_dropped_ends_the_run() {
    struct Fails;
    impl Drop for Fails {
        fn drop(&mut self) {
            panic!("no drop");
        }
    }
    let text = |panic: Box<dyn std::any::Any + Send>| *panic.downcast::<String>().expect("a text");
    let panic = catch_unwind(|| lightfoot_sim::run(config(machine()), || panic!("no state"), |_: &u8, _| {}));
    assert!(text(panic.expect_err("fails")).contains("set-up"));
    let panic = catch_unwind(|| lightfoot_sim::run(config(machine()), || Fails, |_, _| {}));
    assert!(text(panic.expect_err("fails")).contains("tear-down"));
}
