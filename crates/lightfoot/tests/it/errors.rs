//! Bad input and what it is answered with, row by row ([`table`]). Every row holds for Lightfoot and (where tests run as root) for
//! the kernel, so the table cannot be wrong.

use crate::namespace::kernel::Kernel;
use crate::namespace::lightfoot::Lightfoot;
use crate::namespace::outcome::Outcome;
use crate::namespace::{Namespace, World, table};

/// Runs every row on a fresh instance and reports all that fail.
fn check(name: &str, fresh: &dyn Fn() -> Box<dyn Namespace>) {
    let mut failures = Vec::new();
    for (what, setup, op, expected) in table::rows() {
        let mut tree = fresh();
        for step in &setup {
            let answer = tree.apply(step);
            if let Outcome::Err(errno) = answer {
                failures.push(format!("{what}: {step:?} answered {errno:?} on the way"));
            }
        }
        let answer = tree.apply(&op);
        let errno = if let Outcome::Err(errno) = answer { Err(errno) } else { Ok(()) };
        if errno != expected {
            failures.push(format!("{what}: {op:?} answered {answer:?}, expected {expected:?}"));
        }
    }
    assert!(failures.is_empty(), "{name}:\n{}", failures.join("\n"));
}

#[test]
fn lightfoot_answers_bad_input_by_the_table() {
    check("lightfoot", &|| Box::new(Lightfoot::new(World::PLAIN)));
}

#[test]
fn a_fork_answers_bad_input_by_the_table() {
    check("fork", &|| Box::new(Lightfoot::forked(World::PLAIN, &[Vec::new(), Vec::new()])));
}

#[test]
fn the_kernel_answers_bad_input_by_the_table() {
    if Kernel::world().confined {
        println!("skipped: needs root");
        return;
    }
    check("kernel", &|| Box::new(Kernel::new()));
}
