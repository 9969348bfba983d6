//! A test that must be alone in its process, in a program that has other tests.

use std::process::Command;

/// The variable that a process has which runs one test alone.
const ALONE: &str = "LIGHTFOOT_TEST_ALONE";

/// Runs the test `name` of this program in a separate process, and returns true. In that process it
/// returns false. For a test that changes, or measures, state that all threads of a process share.
///
/// # Panics
/// If the test fails there, or if no test has that name.
pub fn ran_alone(name: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(program);
    let output = command.args(["--exact", name, "--nocapture"]).env(ALONE, "1").output().expect("a new process");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    println!("{text}");
    assert!(output.status.success() && text.contains("1 passed"), "{name}, alone in a process");
    true
}
