//! Lookups by the table of whole paths: what becomes an entry, and what makes entries useless.

mod absent;
mod attack;
mod attack_mounts;
mod attack_names;
mod attack_rights;
mod classes;
mod limits;
mod links;
mod mounts;
mod operations;
mod pace;
mod starts;

use crate::names::Names;
use lightfoot_vfs::{Base, Context, Errno, PathAt, RenameFlags, S_IFREG, Vfs, WholePathStats};

/// `/a/b/c/f`, `/a/other/`, `/quiet/`.
fn tree(records_every_path: bool) -> (Vfs, Context) {
    let vfs = Vfs::builder().whole_paths(1 << 16).records_every_path(records_every_path).build(Names);
    let context = vfs.context();
    for dir in ["/a", "/a/b", "/a/b/c", "/a/other", "/quiet"] {
        context.mkdir(Base::CWD, dir.as_bytes(), 0o755).unwrap();
    }
    context.mknod(Base::CWD, b"/a/b/c/f", S_IFREG | 0o644, 0).unwrap();
    (vfs, context)
}

fn ino(context: &Context, path: &str) -> Result<u64, Errno> {
    context.attr(Base::CWD, path.as_bytes(), true).map(|attr| attr.ino)
}

/// Whether `path` is found by the table.
fn is_hit(vfs: &Vfs, context: &Context, path: &str) -> bool {
    let before = vfs.whole_path_stats().misses;
    let _ = ino(context, path);
    vfs.whole_path_stats().misses == before
}

#[test]
fn a_path_is_found_by_the_table_from_its_third_use_on() {
    let (vfs, context) = tree(false);
    let uses = || is_hit(&vfs, &context, "/a/b/c/f");
    assert_eq!([uses(), uses(), uses(), uses()], [false, false, true, true]);
    let stats = vfs.whole_path_stats();
    assert!(stats.recorded >= 1 && stats.current >= 1 && (60_000..=1 << 16).contains(&stats.bytes), "{stats:?}");
}

#[test]
fn a_set_of_paths_larger_than_the_filter_is_recorded_if_the_table_has_room() {
    let (files, passes) = (20_000, 48);
    let paths: Vec<String> = (0..files).map(|n| format!("/d/{n}")).collect();
    let vfs = Vfs::builder().whole_paths(2 << 20).build(Names);
    let context = vfs.context();
    context.mkdir(Base::CWD, b"/d", 0o755).unwrap();
    for path in &paths {
        context.mknod(Base::CWD, path.as_bytes(), S_IFREG | 0o644, 0).unwrap();
    }
    // Each path in turn, so that the filter has forgotten it at its next use.
    for _ in 0..passes {
        assert!(paths.iter().all(|path| ino(&context, path).is_ok()));
    }
    let stats = vfs.whole_path_stats();
    assert!(stats.entries > files * 9 / 10, "{stats:?}");
}

#[test]
fn a_tree_without_options_has_no_table() {
    let vfs = Vfs::new(Names);
    let context = vfs.context();
    context.mkdir(Base::CWD, b"/a", 0o755).unwrap();
    assert!((0..3).all(|_| ino(&context, "/a").is_ok()));
    assert_eq!(vfs.whole_path_stats(), WholePathStats::default());
}

#[test]
fn only_directories_on_recorded_paths_count_as_changed() {
    let (vfs, context) = tree(true);
    let rename = |from: &str, to: &str| {
        let (from, to) = (PathAt::cwd(from.as_bytes()), PathAt::cwd(to.as_bytes()));
        context.rename(from, to, RenameFlags::default()).unwrap();
    };
    assert!(!is_hit(&vfs, &context, "/a/b/c/f") && is_hit(&vfs, &context, "/a/b/c/f"));
    let changes = || vfs.whole_path_stats().changes;
    let before = changes();
    rename("/a/other", "/a/moved");
    rename("/quiet", "/a/quiet");
    assert_eq!(changes(), before);
    assert!(is_hit(&vfs, &context, "/a/b/c/f"));
    rename("/a/b", "/a/d");
    assert_eq!(changes(), before + 1);
    assert_eq!(ino(&context, "/a/b/c/f"), Err(Errno::ENOENT));
    assert!(ino(&context, "/a/d/c/f").is_ok());
}
