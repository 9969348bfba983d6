//! `metadata_many` beside `metadata`.

use lightfoot::{Context, Credentials, Resolve, Vfs, View};
use std::io;

/// A tree with links, a mount of names that are missing, and a directory that only root may search.
fn context() -> Context {
    let ctx = Vfs::ram().context();
    ctx.create_dir_all("/a/b/c").unwrap();
    ctx.create_dir("/closed").unwrap();
    for number in 0..100 {
        ctx.write(format!("/a/b/f{number}"), vec![b'x'; number]).unwrap();
    }
    ctx.write("/closed/file", "x").unwrap();
    ctx.symlink("a/b", "/link").unwrap();
    ctx.symlink("loop", "/loop").unwrap();
    ctx.symlink("/a", "/a/out").unwrap();
    ctx.set_permissions("/closed", lightfoot::Permissions::from_mode(0o700)).unwrap();
    ctx
}

fn paths() -> Vec<String> {
    let files = (0..120).map(|number| format!("/a/b/f{number}"));
    let odd = [
        "",
        "/",
        "a/b/f7",
        "/link/f3",
        "/loop",
        "/closed/file",
        "/a/b/f1/x",
        "/a/../a/b/./f2",
        "/a/b/",
        "b/f4",
        "out/b",
    ];
    files.chain(odd.map(String::from)).chain([format!("/{}", "x".repeat(256))]).collect()
}

fn check(view: &View) {
    let paths = paths();
    let number = |result: io::Result<lightfoot::Metadata>| match result {
        Ok(meta) => Ok((meta.ino(), meta.len())),
        Err(error) => Err(error.raw_os_error()),
    };
    let many: Vec<_> = view.metadata_many(&paths).into_iter().map(number).collect();
    let one: Vec<_> = paths.iter().map(|path| number(view.metadata(path))).collect();
    assert_eq!(many, one);
}

#[test]
fn a_context_reports_for_many_paths_what_it_reports_for_each() {
    let ctx = context();
    check(&ctx);
    ctx.set_credentials(Credentials::user(1000, 1000, &[]));
    assert!(ctx.metadata("/closed/file").is_err());
    check(&ctx);
    assert!(ctx.metadata_many(&[""; 0]).is_empty());
}

#[test]
fn a_directory_handle_keeps_its_limits_for_many_paths() {
    let ctx = context();
    let dir = ctx.open_dir("/a").unwrap();
    check(&dir);
    check(&dir.within(Resolve::BENEATH).unwrap());
}
