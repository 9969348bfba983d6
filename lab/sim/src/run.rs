//! One simulation from beginning to end.

use crate::arena;
use crate::config::Config;
use crate::engine::{Engine, Entered, Failure, SLOTS};
use crate::report::Report;
use core::any::Any;
use core::cell::OnceCell;
use rustix::time::{ClockId, clock_gettime};
use std::panic::resume_unwind;
use std::rc::Rc;
use std::sync::{Mutex, Once, PoisonError};

/// Held by the one simulation of the process: all live at the same addresses.
static RUNNING: Mutex<()> = Mutex::new(());

/// Runs `body(&state, thread)` on every thread of a simulated machine, on the state that `set_up` makes.
///
/// `set_up` runs as the first simulated thread and is charged nothing; threads that it starts through the facade are
/// simulated threads too. They do not keep the run alive. When every body has returned, the state is dropped in a last
/// simulated thread, again free of charge. Other simulations of the process wait meanwhile.
///
/// # Panics
/// - If a simulated thread panics: with the message of the first such thread, its name and the
///   virtual time.
/// - If no thread can continue (a deadlock): the message names every thread and the object that it
///   waits for.
/// - If the bodies do not end long after [`crate::running`] has returned `false`.
///
/// The state is then forgotten, not dropped. If a simulated thread had to wait while it unwound
/// from a panic, the host thread counts as panicking for good and runs no further simulation.
pub fn run<S: 'static>(
    config: Config,
    set_up: impl FnOnce() -> S + 'static,
    body: impl Fn(&S, usize) + Clone + 'static,
) -> Report {
    assert!(!std::thread::panicking(), "a simulation cannot run on a host thread that unwinds from a panic");
    let _one = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    prepare_host();
    let started = host_seconds();
    let (cpus, threads) = (config.cpus, config.threads);
    let engine = Box::new(Engine::new(config));
    let entered = Entered::new(&engine);
    let bodies = match run_phases(&entered, cpus, threads, set_up, body) {
        Ok(bodies) => bodies,
        Err(failure) => {
            engine.abandon();
            drop(entered);
            drop(engine);
            rethrow(failure);
        }
    };
    let mut report = engine.report(&bodies);
    engine.abandon();
    drop(entered);
    drop(engine);
    report.host_seconds = host_seconds() - started;
    report
}

/// Returns the CPU time of the calling host thread; other work of the host does not count.
fn host_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Set-up, bodies, teardown. Answers with the threads that ran the bodies.
fn run_phases<S: 'static>(
    entered: &Entered<'_>,
    cpus: usize,
    threads: usize,
    set_up: impl FnOnce() -> S + 'static,
    body: impl Fn(&S, usize) + Clone + 'static,
) -> Result<Vec<u32>, Failure> {
    let engine = entered.engine();
    let state = Rc::new(OnceCell::new());
    let slot = Rc::clone(&state);
    let set_up = move || {
        // Boxed: the state is in the arena, not on a thread's stack.
        let made = slot.set(Box::new(set_up()));
        assert!(made.is_ok(), "the state is made once");
    };
    run_alone(engine, "set-up", Box::new(set_up))?;
    engine.set_charged(true);
    engine.begin_measuring();
    let mut bodies = Vec::new();
    for thread in 0..threads {
        let (state, body) = (Rc::clone(&state), body.clone());
        let run = move || {
            body(state.get().expect("set-up has made it"), thread);
        };
        // Staggered, so that the CPUs do not march in step.
        let delay = engine.stagger();
        bodies.extend(engine.start(&format!("thread {thread}"), thread % cpus, delay, Box::new(run)));
    }
    engine.schedule(&bodies);
    engine.end_measuring();
    if let Some(failure) = engine.take_failure() {
        // Its drop is code for simulated CPUs, and no thread runs any more. Its memory is released
        // with the arena.
        std::mem::forget(state);
        return Err(failure);
    }
    engine.set_charged(false);
    run_alone(engine, "tear-down", Box::new(move || drop(state)))?;
    Ok(bodies)
}

/// Runs `work` as a simulated thread until it has ended.
fn run_alone(engine: &Engine, name: &str, work: Box<dyn FnOnce()>) -> Result<(), Failure> {
    let thread = engine.start(name, 0, 0, work).expect("there is room for a thread more than bodies");
    engine.schedule(&[thread]);
    engine.take_failure().map_or(Ok(()), Err)
}

/// Allocations that the standard library makes once and keeps must not come from an arena that
/// ends.
fn prepare_host() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _host = arena::outside();
            hook(panic);
        }));
    });
    let _ = (std::io::stdout(), std::io::stderr(), std::thread::current().id());
}

fn rethrow(failure: Failure) -> ! {
    let (thread, time, payload) = match failure {
        Failure::Stop(message) => panic!("simulation: {message}"),
        Failure::Panic { thread, time, payload } => (thread, time, payload),
    };
    match message(&*payload) {
        Some(message) => panic!("simulated {thread}, at {:.3} us: {message}", time as f64 / 1e6),
        None => resume_unwind(payload),
    }
}

fn message(payload: &(dyn Any + Send)) -> Option<String> {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
}

impl Engine {
    fn report(&self, bodies: &[u32]) -> Report {
        let span = self.deadline.get().saturating_sub(self.warm.get());
        let operations_per_thread: Vec<[u64; SLOTS]> =
            bodies.iter().map(|&thread| self.operations_of(thread)).collect();
        let mut operations = [0; SLOTS];
        for thread in &operations_per_thread {
            operations.iter_mut().zip(thread).for_each(|(sum, count)| *sum += count);
        }
        let ns = |ps: u64| ps as f64 / 1e3;
        let times = self.times();
        let (locks, callers) = self.meter.take().into_stats();
        Report {
            cpus: times.cpus,
            threads: bodies.len(),
            span_ns: ns(span),
            operations,
            operations_per_thread,
            tag_ns: times.tags.map(ns),
            idle_ns: ns(times.idle),
            interrupt_ns: ns(times.interrupts),
            switch_ns: ns(times.switches),
            stall_ns: ns(times.stalls),
            counters: self.counts.counters(),
            locks,
            callers,
            stalls: self.stalls.take().into_list(),
            arena_bytes: self.arena_bytes(),
            hash: self.hash_of_misses(),
            host_seconds: 0.0,
        }
    }
}
