//! The example of an own era runs.

#[path = "../../examples/own_era.rs"]
#[allow(dead_code, reason = "its main is not called")]
mod example;

#[test]
fn the_example_of_an_own_era_measures_it_beside_one_of_the_catalogue() {
    let rate = |name| example::rate(name, 8, 200_000).unwrap_or_else(|failure| panic!("{name}: {failure}"));
    assert!(rate("yours") > 0.0 && rate("rcu-walk") > 0.0);
    assert!(rate("yours") != rate("rcu-walk"), "they differ in their locks");
}
