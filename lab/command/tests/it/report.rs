//! `lightfoot-lab report`: the committed text and plots are what the generator makes of the committed outcomes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn lab(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot-lab"));
    command.arg("report").args(arguments).current_dir(root()).output().expect("the command runs")
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_report_and_its_plots_are_what_the_generator_makes_of_the_kept_outcomes() {
    let made = tempfile::tempdir().expect("a directory for the test");
    let output = lab(&["--from-outcomes", "--out", made.path().to_str().expect("a path that is UTF-8")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let committed = root().join("lab/docs");
    assert_eq!(names(&made.path().join("plots")), names(&committed.join("plots")));
    let plots = names(&made.path().join("plots")).into_iter().map(|name| format!("plots/{name}"));
    for name in plots.chain(["lab-report.md".into()]) {
        let read = |dir: &Path| fs::read_to_string(dir.join(&name)).expect("a file of the report");
        let (made, committed) = (read(made.path()), read(&committed));
        if made != committed {
            let differs = made.lines().zip(committed.lines()).find(|(made, committed)| made != committed);
            panic!(
                "lab/docs/{name} is not made of lab/outcomes (run `lightfoot-lab report --from-outcomes`): {differs:?}"
            );
        }
    }
}

#[test]
fn outcomes_that_cannot_be_used_are_named() {
    let empty = tempfile::tempdir().expect("a directory for the test");
    let dir = empty.path().to_str().expect("a path that is UTF-8");
    let output = lab(&["--from-outcomes", "--out", dir, "--outcomes", dir]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("web.json") && text.contains("no such file"), "{text}");
    assert_eq!(names(empty.path()), BTreeSet::new());
}
