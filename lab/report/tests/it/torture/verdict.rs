//! What must hold when all threads have ended.

use super::Stage;
use super::kept_roles::{LEAST, let_go};
use vfs_sim::{Base, Context, OpenFlags, Vfs};

/// The names in a directory, in order, each as often as it is listed.
pub(crate) fn list(context: &Context, path: &str) -> Vec<String> {
    let flags = OpenFlags::RDONLY.union(OpenFlags::DIRECTORY);
    let dir = context.open(Base::CWD, path.as_bytes(), flags, 0).expect(path);
    let mut names = Vec::new();
    loop {
        let entries = dir.next_entries().expect(path);
        if entries.is_empty() {
            names.sort();
            return names;
        }
        names.extend(entries.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()));
    }
}

/// Directories with what is in them, when every history has come round to its first state.
const LISTINGS: [(&str, &[&str]); 13] = [
    ("/", &["common", "ex", "ey", "left", "mnt", "other", "right", "swap"]),
    ("/common", &["one"]),
    ("/other", &[]),
    ("/swap", &["t"]),
    ("/left", &["m"]),
    ("/left/m", &["deep"]),
    ("/left/m/deep", &["f"]),
    ("/right", &[]),
    ("/ex", &["x"]),
    ("/ex/x", &["owner"]),
    ("/ey", &["y"]),
    ("/ey/y", &["owner"]),
    ("/mnt", &["under"]),
];

pub(crate) fn check(stage: &Stage) {
    let context = stage.context();
    for (path, want) in LISTINGS {
        assert_eq!(list(&context, path), want, "{path}");
        let attr = context.attr(Base::CWD, path.as_bytes(), true).expect(path);
        let is_dir =
            |name: &&&str| context.attr(Base::CWD, format!("{path}/{name}").as_bytes(), true).is_ok_and(|a| a.is_dir());
        let subdirs = want.iter().filter(is_dir).count();
        assert_eq!(attr.nlink as usize, 2 + subdirs, "links of {path}");
    }
    assert_eq!(stage.histories.moved.changes() % 6, 0, "all rounds are whole");
    let names = ["d1", "d2"].map(|dir| stage.store.names(stage.store.node(dir)));
    assert_eq!(names, [vec![], vec!["r".to_owned()]]);
    let_go(&stage.store);
    drop(context);
    settled(&stage.ram);
    settled(&stage.kept);
    // The root, twelve directories and six files.
    assert_eq!(stage.ram.stats().live_dentries, LISTINGS.len() + 6);
    let stats = stage.kept.stats();
    assert!(stats.entry_bytes <= LEAST && stats.negative_bytes <= LEAST, "{stats:?}");
    assert!(stats.evicted > 0, "no eviction ran: {stats:?}");
}

/// Nothing is deferred, and nothing is held.
fn settled(vfs: &Vfs) {
    vfs.barrier();
    let deferred = vfs.rcu_stats().deferred_callbacks;
    assert_eq!(deferred, 0, "callbacks are deferred");
    let stats = vfs.stats();
    assert_eq!(stats.held, 0, "somebody holds something: {stats:?}");
}
