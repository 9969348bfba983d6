//! Processes that get signals while the file system hangs behind `Bounded`: their calls end, and the mount goes on.

use crate::lock_waits::ended;
use crate::session;
use crate::support::{Mount, wait_for};
use lightfoot_fuse::MountOptions;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use testkit::{Fault, Faults, Plan, Store};
use vfs::{Bounded, Vfs};

/// The mount and the call for the process that [`spawn`] starts.
const MOUNT: &str = "LIGHTFOOT_TEST_INTERRUPT_MOUNT";
const CALL: &str = "LIGHTFOOT_TEST_INTERRUPT_CALL";

/// Methods of the file system, and calls that lead to them.
type Act = fn(&Path) -> std::io::Result<()>;
const CALLS: [(&str, Act); 8] = [
    ("lookup", |at| fs::metadata(at.join("unseen")).map(drop)),
    ("open", |at| fs::File::open(at.join("file")).map(drop)),
    ("read", |at| fs::read(at.join("file")).map(drop)),
    ("write", |at| fs::write(at.join("file"), b"written")),
    ("read_dir", |at| fs::read_dir(at)?.try_for_each(|entry| entry.map(drop))),
    ("create", |at| fs::create_dir(at.join("new"))),
    ("rename", |at| fs::rename(at.join("old"), at.join("moved"))),
    ("sync", |at| fs::File::options().write(true).open(at.join("file"))?.sync_all()),
];

/// Calls, in a process that [`spawn`] starts. As a test it does nothing.
#[test]
fn process_that_calls() {
    let (Some(at), Ok(call)) = (std::env::var_os(MOUNT), std::env::var(CALL)) else { return };
    let (_, act) = CALLS.iter().find(|(name, _)| *name == call).unwrap();
    act(Path::new(&at)).unwrap();
}

fn spawn(at: &Path, call: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "interrupts::process_that_calls"]).env(MOUNT, at).env(CALL, call);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A tree that may hang, and its plan, mounted. `None`: this machine has no mounts.
fn mounted() -> Option<(Arc<Plan>, Vfs, Mount)> {
    let store = Store::with_paths(&["file", "unseen", "old"]);
    store.write(store.node("file"), b"contents");
    let (faults, plan) = Faults::of(Box::new(store));
    let vfs = Vfs::new(Bounded::of(Box::new(faults), Duration::from_secs(3600)));
    let options = MountOptions { session: session(), threads: Some(2), ..MountOptions::default() };
    let mount = Mount::new(&vfs, &options)?;
    Some((plan, vfs, mount))
}

#[test]
fn a_process_that_handles_a_signal_goes_on_while_the_file_system_hangs() {
    let Some((plan, _vfs, mount)) = mounted() else { return };
    plan.set(|call| (call.method == "lookup").then_some(Fault::Hang));
    let script = r#"trap 'echo caught' USR1; read -r line < "$1"; echo goes on"#;
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(mount.path("unseen"));
    let process = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for("the call hangs", || plan.hanging() > 0);
    kill_process(Pid::from_child(&process), Signal::USR1).unwrap();
    let Output { stdout, stderr, .. } = process.wait_with_output().unwrap();
    assert!(plan.hanging() > 0, "the file system still hangs");
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!(stdout, "caught\ngoes on\n", "{stderr}");
    assert!(stderr.contains("Interrupted system call"), "{stderr}");
    plan.release();
}

#[test]
fn a_process_can_be_killed_while_the_file_system_hangs() {
    for (method, _) in CALLS {
        let Some((plan, vfs, mount)) = mounted() else { return };
        plan.set(move |call| (call.method == method).then_some(Fault::Hang));
        let mut process = spawn(&mount.at, method);
        wait_for("the call hangs", || plan.hanging() > 0);
        process.kill().unwrap();
        assert!(!ended(&mut process), "{method}");
        assert!(plan.hanging() > 0, "{method}: the file system still hangs");
        plan.release();
        // In the same places too. (A late change may come before these, after them or, a rename, during the listing, which may
        // then have neither name.)
        fs::write(mount.path("file"), b"last").unwrap();
        fs::create_dir(mount.path("another")).unwrap();
        wait_for("all names are listed", || fs::read_dir(&mount.at).unwrap().count() >= 4);
        assert_eq!(vfs.callback_panics(), 0);
    }
}
