//! Reports and events as other programs read them: feature `serde`.

use lightfoot::{Budget, MountFlags, Scope, Vfs};
use serde_json::{Value, from_value, json, to_value};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_path_that_is_not_utf_8_is_serialized_as_bytes() {
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    let watch = ctx.watch("/", Scope::Directory).unwrap();
    let created = |name: &[u8]| {
        ctx.create_dir(OsStr::from_bytes(name)).unwrap();
        to_value(watch.try_next().unwrap()).unwrap()
    };
    assert_eq!(created(b"/name"), json!({"kind": "Created", "is_dir": true, "cookie": 0, "path": "name"}));
    assert_eq!(created(b"/\xff")["path"], json!([0xff]));
}

#[test]
fn a_budget_may_name_only_the_limits_that_differ() {
    let budget: Budget = from_value(json!({"negatives": 4096})).unwrap();
    assert_eq!(budget, Budget { negatives: 4096, ..Budget::default() });
    assert_eq!(from_value::<Budget>(to_value(budget).unwrap()).unwrap(), budget);
    assert!(from_value::<Budget>(json!({"negatives": -1})).is_err());
}

#[test]
fn flags_are_names() {
    let flags = MountFlags::RDONLY | MountFlags::NOSUID;
    let value = to_value(flags).unwrap();
    assert_eq!(value, json!("RDONLY | NOSUID"));
    assert_eq!(from_value::<MountFlags>(value).unwrap(), flags);
}

#[test]
fn reports_have_the_names_of_their_fields() {
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    let mount = &to_value(ctx.mounts()).unwrap()[0];
    assert_eq!((&mount["mountpoint"], &mount["type_name"]), (&json!("/"), &json!("lightfoot")));
    assert_eq!(to_value(vfs.cache_stats()).unwrap()["live_dentries"], 1);
    assert_eq!(to_value(vfs.rcu_stats()).unwrap()["stalls"], 0);
    let waits: Vec<Value> = vfs.lock_waits().map(|of| to_value(of).unwrap()).collect();
    assert!(waits.iter().any(|of| of["name"] == "a directory's lock" && of["waits"] == 0), "{waits:?}");
    assert_eq!(to_value(ctx.statvfs("/").unwrap()).unwrap()["flags"], json!(""));
}
