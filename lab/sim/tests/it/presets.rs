//! What the presets' machines do when the simulator runs them: distances cost what their files say.

use lightfoot_sim::atomic::{AtomicU64, Ordering::Relaxed};
use lightfoot_sim::machine::presets;
use lightfoot_sim::{Config, Machine};
use std::cell::Cell;
use std::rc::Rc;

/// A separate cache line on every machine.
#[derive(Default)]
#[repr(align(256))]
struct Line(AtomicU64);

/// For each distance class a CPU that is so far from CPU 0.
fn far_cpus(machine: &Machine) -> Vec<usize> {
    let node_of = |class| (0..machine.nodes).find(|&node| machine.class_between(0, node) == class);
    let cpu_of = |class: usize| match class {
        0 => 1,
        _ => node_of(class).expect("each class has a node") * machine.cpus_per_node,
    };
    (0..machine.classes()).map(cpu_of).collect()
}

/// Mean virtual nanoseconds of `access` by CPU `far`, each time after CPU 0 has written the line, without contention.
fn access_ns(machine: &Machine, far: usize, access: fn(&AtomicU64)) -> f64 {
    const ROUNDS: u64 = 50;
    const PERIOD_NS: u64 = 20_000;
    let mut config = Config::new(machine.clone(), machine.cpus(), 1);
    (config.warm_ns, config.run_ns) = (0, 2 * ROUNDS * PERIOD_NS);
    let set_up = || (Line::default(), [const { AtomicU64::new(0) }; 2].map(Box::new));
    let total = Rc::new(Cell::new(0));
    let seen = Rc::clone(&total);
    lightfoot_sim::run(config, set_up, move |(line, _), thread| {
        let offset_ns = match thread {
            0 => 0,
            _ if thread == far => PERIOD_NS / 2,
            _ => return,
        };
        for round in 1..=ROUNDS {
            let due_ns = round * PERIOD_NS + offset_ns;
            lightfoot_sim::cost(due_ns - lightfoot_sim::now_ns());
            if thread == 0 {
                line.0.fetch_add(1, Relaxed);
            } else {
                let begin_ns = lightfoot_sim::now_ns();
                access(&line.0);
                seen.set(seen.get() + lightfoot_sim::now_ns() - begin_ns);
            }
        }
    });
    total.get() as f64 / ROUNDS as f64
}

#[test]
fn a_line_that_another_cpu_wrote_costs_what_the_file_says_for_the_distance() {
    let is_near = |found: f64, said: f64| (found / said - 1.0).abs() < 0.02;
    for machine in presets() {
        for (class, far) in far_cpus(&machine).into_iter().enumerate() {
            let load = access_ns(&machine, far, |line| _ = line.load(Relaxed));
            let rmw = access_ns(&machine, far, |line| _ = line.fetch_add(1, Relaxed));
            let said = [machine.miss.load_modified_ns[class], machine.miss.rmw_ns[class]];
            assert!(is_near(load, said[0]), "{} class {class}: load {load} ns, said {}", machine.name, said[0]);
            assert!(is_near(rmw, said[1]), "{} class {class}: rmw {rmw} ns, said {}", machine.name, said[1]);
        }
    }
}

#[test]
fn a_turn_of_ping_pong_is_two_transfers_and_some_spinning() {
    for machine in presets() {
        for (class, far) in far_cpus(&machine).into_iter().enumerate() {
            let turn_ns = turn_ns(&machine, far);
            let miss = &machine.miss;
            let transfers = miss.load_modified_ns[class] + miss.rmw_ns[class];
            let limit = 1.2 * transfers + miss.store_ns[class] + machine.hit.spin_turn_ns;
            let said = format!("{} class {class}: a turn of {turn_ns} ns", machine.name);
            assert!(
                (0.8 * transfers..limit).contains(&turn_ns),
                "{said}, transfers {transfers} ns, at most {limit} ns"
            );
        }
    }
}

/// Virtual nanoseconds from a turn of CPU 0 to one of CPU `far`, which wait for each other with loads.
fn turn_ns(machine: &Machine, far: usize) -> f64 {
    const TURNS: u64 = 200;
    let config = Config::new(machine.clone(), machine.cpus(), 1000);
    let end_ns = Rc::new(Cell::new(0));
    let seen = Rc::clone(&end_ns);
    lightfoot_sim::run(config, Line::default, move |line, thread| {
        let first = match thread {
            0 => 0,
            _ if thread == far => 1,
            _ => return,
        };
        for turn in (first..TURNS).step_by(2) {
            lightfoot_sim::hint::spin_until(|| line.0.load(Relaxed) == turn);
            line.0.fetch_add(1, Relaxed);
            seen.set(lightfoot_sim::now_ns());
        }
    });
    end_ns.get() as f64 / TURNS as f64
}

#[test]
fn more_nodes_make_one_contended_word_slower() {
    for name in ["dl980", "altix64", "nehalem-ex", "epyc192"] {
        let whole = Machine::preset(name).unwrap();
        let rates: Vec<f64> = [1, 2, whole.nodes]
            .map(|nodes| {
                let machine = whole.clone().with_nodes(nodes).unwrap();
                let cpus = machine.cpus();
                let report = lightfoot_sim::run(Config::new(machine, cpus, 100), Line::default, |line, _| {
                    while lightfoot_sim::running() {
                        line.0.fetch_add(1, Relaxed);
                        lightfoot_sim::count_op(0);
                    }
                });
                report.rate(0)
            })
            .into();
        assert!(rates.is_sorted_by(|fewer, more| fewer > more), "{name}: {rates:?} additions a second");
    }
}
