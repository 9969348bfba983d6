//! Watches of a subtree by users who may not read all of it.

use lightfoot::{Context, Credentials, Event, Permissions, Scope, SetXattr, Vfs, Watch};

const USER: u32 = 1001;

fn as_user(vfs: &Vfs) -> Context {
    vfs.context().with_credentials(Credentials::user(USER, USER, &[]))
}

fn paths(watch: &Watch) -> Vec<String> {
    let events = std::iter::from_fn(|| watch.try_next());
    events.map(|Event { path, .. }| path.into_os_string().into_string().unwrap()).collect()
}

/// Everything that can happen to a name in `dir`, each with an event.
fn change_names(root: &Context, dir: &str) {
    let at = |name: &str| format!("{dir}/{name}");
    root.write(at("secret"), "x").unwrap();
    root.set_permissions(at("secret"), Permissions::from_mode(0o644)).unwrap();
    root.rename(at("secret"), at("moved")).unwrap();
    root.remove_file(at("moved")).unwrap();
}

/// The value of `system.posix_acl_access`: rwx for the owner, nothing for the user 1001, r-x for others.
fn acl_that_denies_the_user() -> Vec<u8> {
    let entries =
        [(0x01_u16, 7_u16, u32::MAX), (0x02, 0, USER), (0x04, 5, u32::MAX), (0x10, 5, u32::MAX), (0x20, 5, u32::MAX)];
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, perm, id) in entries {
        value.extend(tag.to_le_bytes());
        value.extend(perm.to_le_bytes());
        value.extend(id.to_le_bytes());
    }
    value
}

#[test]
fn a_user_gets_no_names_in_a_directory_that_the_user_may_not_list() {
    let vfs = Vfs::ram();
    let root = vfs.context();
    root.create_dir_all("/closed/open").unwrap();
    let (of_root, of_user) =
        (root.watch("/", Scope::Subtree).unwrap(), as_user(&vfs).watch("/", Scope::Subtree).unwrap());
    // The mode of `/closed`, and whether the user gets names in it, and below.
    let cases = [(0o700, false), (0o755, true), (0o711, false), (0o744, false), (0o770, false), (0o755, true)];
    for (mode, is_seen) in cases {
        root.set_permissions("/closed", Permissions::from_mode(mode)).unwrap();
        drop((paths(&of_root), paths(&of_user)));
        for dir in ["/closed", "/closed/open"] {
            change_names(&root, dir);
            let all = paths(&of_root);
            assert!(all.len() == 6 && all.iter().all(|path| path.starts_with("closed/")), "{all:?}");
            assert_eq!(paths(&of_user), if is_seen { all } else { vec![] }, "{mode:o} {dir}");
        }
    }
    let value = acl_that_denies_the_user();
    root.set_xattr("/closed", "system.posix_acl_access", value, SetXattr::Any).unwrap();
    drop((paths(&of_root), paths(&of_user)));
    change_names(&root, "/closed");
    assert_eq!((paths(&of_root).len(), paths(&of_user)), (6, vec![]));
    // The directory's own name is in a directory that the user may list.
    root.rename("/closed", "/renamed").unwrap();
    assert_eq!(paths(&of_user), ["closed", "renamed"]);
}

#[test]
fn a_watch_keeps_the_credentials_that_it_began_with() {
    let vfs = Vfs::ram();
    let (root, user) = (vfs.context(), as_user(&vfs));
    root.create_dir("/closed").unwrap();
    root.set_permissions("/closed", Permissions::from_mode(0o700)).unwrap();
    let watch = user.watch("/", Scope::Subtree).unwrap();
    user.set_credentials(Credentials::root());
    root.write("/closed/secret", "").unwrap();
    assert_eq!(paths(&watch), Vec::<String>::new());
    root.chown("/closed", Some(USER), None).unwrap();
    root.remove_file("/closed/secret").unwrap();
    assert_eq!(paths(&watch), ["closed", "closed/secret"]);
}
