//! The sessions and programs in docs/workspaces.md do what it shows.

use super::fixture::Fixture;
use super::workspaces::shell;
use std::fs;
use std::path::Path;
use std::process::Command;

const TEXT: &str = include_str!("../../../../../docs/workspaces.md");

/// Returns the block of a language in the documents.
fn block(language: &str) -> &'static str {
    TEXT.split(&format!("```{language}\n")).nth(1).and_then(|text| text.split("```").next()).expect("a block")
}

/// Returns whether all programs are there.
fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| Command::new(program).arg("--version").output().is_err());
    missing.inspect(|program| println!("SKIPPED: it needs {program}")).is_none()
}

/// The commands of the session in the documents, and their output.
fn session() -> Vec<(String, String)> {
    let block = TEXT.split("## A session").nth(1).and_then(|text| text.split("```").nth(1)).expect("a session");
    let mut steps: Vec<(String, String)> = Vec::new();
    for line in block.trim().lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command.into(), String::new())),
            (None, Some((_, output))) => *output += &format!("{line}\n"),
            (None, None) => panic!("{line}"),
        }
    }
    steps
}

#[test]
fn the_session_of_the_documents_is_as_they_show_it() {
    let Some(fixture) = Fixture::new() else { return };
    if !has(&["make", "gcc"]) {
        return;
    }
    fs::create_dir(fixture.at("project")).expect("a directory");
    shell(
        &fixture.at("project"),
        "printf 'prog: main.c lib.c\\n\\tgcc -o prog main.c lib.c\\n' > Makefile; \
        echo 'int f(void); int main(void) { return f(); }' > main.c; echo 'int f(void) { return 0; }' > lib.c; \
        git init -q . && git add -A && git -c user.name=n -c user.email=e commit -qm first",
    );
    let steps = session();
    let script: String = steps.iter().map(|(command, _)| format!("{command}\nprintf '\\001'\n")).collect();
    let mut command = Command::new("bash");
    let lightfoot = Path::new(env!("CARGO_BIN_EXE_lightfoot")).parent().expect("a directory");
    let path = format!("{}:{}", lightfoot.display(), std::env::var("PATH").unwrap_or_default());
    command.args(["-c", &script]).current_dir(fixture.at("")).env("PATH", path);
    let output = command.output().expect("bash runs");
    let shown = String::from_utf8(output.stdout).expect("text");
    let shown: Vec<&str> = shown.split('\u{1}').collect();
    let errors = String::from_utf8_lossy(&output.stderr);
    for (number, (command, expected)) in steps.iter().enumerate() {
        assert_eq!(shown.get(number), Some(&&**expected), "{command}: {errors}");
    }
}

#[test]
fn the_shell_script_commits_the_first_attempt_that_passes() {
    let Some(fixture) = Fixture::new() else { return };
    if !has(&["make", "jq", "mountpoint"]) || Command::new("socat").arg("-V").output().is_err() {
        return println!("SKIPPED: it needs make, jq, mountpoint and socat");
    }
    fs::create_dir(fixture.at("repo")).expect("a directory");
    let tree = "printf 'check:\n\tgrep -q 2 answer\n' > Makefile; \
        printf '#!/bin/sh\necho $1 > answer\n' > attempt; chmod +x attempt";
    shell(&fixture.at("repo"), tree);
    let _mount = fixture.mount(&["repo", "m", "--workspaces"]);
    let mnt = fixture.at("m");
    let script = block("sh").replace("/mnt/p", mnt.to_str().expect("text"));
    assert_eq!(shell(&fixture.at(""), &script), "A answer\n");
    assert_eq!(fs::read_to_string(fixture.at("repo/answer")).expect("the answer"), "2\n");
    assert!(fixture.ok(&["list", "m"]).starts_with("no forks"));
}

#[test]
fn the_python_program_gets_the_replies_that_the_text_shows() {
    let Some(fixture) = Fixture::new() else { return };
    if !has(&["python3"]) {
        return;
    }
    fs::create_dir_all(fixture.at("tree/src")).expect("a directory");
    let _mount = fixture.mount(&["tree", "m", "--workspaces"]);
    let mnt = fixture.at("m");
    let script = block("python").replace("/mnt/p", mnt.to_str().expect("text"));
    let calls = script.lines().filter(|line| line.starts_with("ask("));
    let mut program: String =
        script.lines().take_while(|line| !line.starts_with("ask(")).map(|line| format!("{line}\n")).collect();
    for call in calls {
        program += &format!("reply = {call}\nassert 'error' not in reply, reply\n");
    }
    fs::write(fixture.at("program.py"), program).expect("a file");
    assert_eq!(shell(&fixture.at(""), "python3 program.py"), "");
    assert!(fixture.ok(&["list", "m"]).contains("\nb "));
}
