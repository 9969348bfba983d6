//! The example of an own workload runs.

#[path = "../../examples/own_workload.rs"]
#[allow(dead_code, reason = "its main is not called")]
mod example;

#[test]
fn the_example_of_an_own_workload_runs_on_each_era() {
    for era in eras::catalogue() {
        let rate = example::rate(era.name, 4, 20_000).unwrap_or_else(|failure| panic!("{}: {failure}", era.name));
        assert!(rate > 0.0, "{}", era.name);
    }
}
