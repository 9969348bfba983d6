//! The owner of new files. Only a root process has a choice; as another user, these tests print SKIPPED.

use crate::support::{self, Tree};
use lightfoot_hostfs::{HostOptions, Ownership, Revalidate};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use tempfile::TempDir;
use vfs::{Base, Capabilities, Credentials, Errno, OpenFlags, SetAttr};

const USER: u32 = 12_345;
const GROUP: u32 = 23_456;
const SUPPLEMENTARY: u32 = 34_567;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn owner(source: &TempDir, name: &str) -> (u32, u32) {
    let metadata = fs::symlink_metadata(source.path().join(name)).unwrap();
    (metadata.uid(), metadata.gid())
}

/// A tree and a context with an ordinary user's credentials.
fn as_user(source: &TempDir, ownership: Ownership) -> Tree {
    fs::set_permissions(source, fs::Permissions::from_mode(0o777)).unwrap();
    let tree = Tree::new(source, &HostOptions { ownership, policy: Revalidate::Always, ..HostOptions::default() });
    tree.at.set_credentials(Credentials::user(USER, GROUP, &[SUPPLEMENTARY]));
    tree
}

/// Makes one file of each type.
fn make_all(tree: &Tree, dir: &str) {
    let cwd = Base::CWD;
    tree.write(&format!("{dir}/file"), b"text").unwrap();
    tree.mkdir(&format!("{dir}/dir")).unwrap();
    tree.at.symlink(b"body", cwd, format!("{dir}/link").as_bytes()).unwrap();
    tree.at.mknod(cwd, format!("{dir}/fifo").as_bytes(), vfs::S_IFIFO | 0o640, 0).unwrap();
}

const KINDS: [&str; 4] = ["file", "dir", "link", "fifo"];

#[test]
fn a_new_file_belongs_to_the_caller() {
    if !support::is_root_for("a_new_file_belongs_to_the_caller") {
        return;
    }
    let source = support::temp_dir();
    let tree = as_user(&source, Ownership::Caller);
    make_all(&tree, "");
    for name in KINDS {
        assert_eq!(owner(&source, name), (USER, GROUP), "{name}");
        let attr = tree.attr(&format!("/{name}")).unwrap();
        assert_eq!((attr.uid, attr.gid), (USER, GROUP), "{name}");
    }
    // Each call has switched back.
    assert!(is_root());
    let unnamed = tree.open("/", OpenFlags::TMPFILE.union(OpenFlags::RDWR)).unwrap();
    assert_eq!(unnamed.attr().map(|attr| (attr.uid, attr.gid)), Ok((USER, GROUP)));
}

#[test]
fn a_directory_passes_on_its_group() {
    if !support::is_root_for("a_directory_passes_on_its_group") {
        return;
    }
    let source = support::temp_dir();
    fs::create_dir(source.path().join("d")).unwrap();
    chown(source.path().join("d"), Some(0), Some(777)).unwrap();
    fs::set_permissions(source.path().join("d"), fs::Permissions::from_mode(0o2777)).unwrap();
    let tree = as_user(&source, Ownership::Caller);
    make_all(&tree, "/d");
    for name in KINDS {
        assert_eq!(owner(&source, &format!("d/{name}")), (USER, 777), "{name}");
        assert_eq!(tree.attr(&format!("/d/{name}")).unwrap().gid, 777, "{name}");
    }
    assert_eq!(fs::metadata(source.path().join("d/dir")).unwrap().mode() & 0o7777, 0o2755);
}

#[test]
fn a_caller_with_access_by_a_supplementary_group_owns_the_new_file() {
    if !support::is_root_for("a_caller_with_access_by_a_supplementary_group_owns_the_new_file") {
        return;
    }
    let source = support::temp_dir();
    let tree = as_user(&source, Ownership::Caller);
    fs::create_dir(source.path().join("d")).unwrap();
    chown(source.path().join("d"), Some(0), Some(SUPPLEMENTARY)).unwrap();
    fs::set_permissions(source.path().join("d"), fs::Permissions::from_mode(0o770)).unwrap();
    make_all(&tree, "/d");
    for name in KINDS {
        assert_eq!(owner(&source, &format!("d/{name}")), (USER, GROUP), "{name}");
    }
    // A caller without access makes nothing.
    tree.at.set_credentials(Credentials::user(USER, GROUP, &[]));
    assert_eq!(tree.write("/d/other", b""), Err(Errno::EACCES));
    assert!(!source.path().join("d/other").exists());
}

#[test]
fn with_daemon_ownership_new_files_belong_to_the_process() {
    let source = support::temp_dir();
    let tree = as_user(&source, Ownership::Daemon);
    make_all(&tree, "");
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    for name in KINDS {
        assert_eq!(owner(&source, name), own, "{name}");
        let attr = tree.attr(&format!("/{name}")).unwrap();
        assert_eq!((attr.uid, attr.gid), own, "{name}");
    }
}

#[test]
fn modes_are_as_requested() {
    let source = support::temp_dir();
    let tree = Tree::new(&source, &HostOptions::default());
    // Independent of the umask of the process.
    for mode in [0o777, 0o666, 0o640, 0o4755, 0o1777] {
        let (file, dir) = (format!("f{mode:o}"), format!("d{mode:o}"));
        drop(tree.at.open(Base::CWD, format!("/{file}").as_bytes(), OpenFlags::RDWR.union(OpenFlags::CREAT), mode));
        tree.at.mkdir(Base::CWD, format!("/{dir}").as_bytes(), mode).unwrap();
        assert_eq!(fs::metadata(source.path().join(&file)).unwrap().mode() & 0o7777, mode);
        assert_eq!(tree.attr(&format!("/{file}")).unwrap().mode & 0o7777, mode);
        assert_eq!(fs::metadata(source.path().join(&dir)).unwrap().mode() & 0o7777, mode & 0o1777);
    }
}

#[test]
fn a_write_by_another_user_clears_set_id_bits_on_the_host_too() {
    if !support::is_root_for("a_write_by_another_user_clears_set_id_bits_on_the_host_too") {
        return;
    }
    let source = support::temp_dir();
    let tree = as_user(&source, Ownership::Caller);
    for (mode, left) in [(0o6777, 0o0777), (0o2767, 0o2767), (0o4766, 0o0766)] {
        fs::write(source.path().join("x"), b"program").unwrap();
        fs::set_permissions(source.path().join("x"), fs::Permissions::from_mode(mode)).unwrap();
        let file = tree.open("/x", OpenFlags::WRONLY).unwrap();
        file.write_at(0, b"other").unwrap();
        let mask = 0o5777;
        assert_eq!(fs::metadata(source.path().join("x")).unwrap().mode() & mask, left & mask, "{mode:o}");
        assert_eq!(fs::metadata(source.path().join("x")).unwrap().mode() & 0o4000, 0, "{mode:o}");
        drop(file);
        fs::remove_file(source.path().join("x")).unwrap();
    }
}

#[test]
fn a_change_of_owner_reaches_the_host() {
    if !support::is_root_for("a_change_of_owner_reaches_the_host") {
        return;
    }
    let source = support::temp_dir();
    let tree = Tree::new(&source, &HostOptions::default());
    make_all(&tree, "");
    for name in KINDS {
        let set = SetAttr { uid: Some(USER), gid: Some(GROUP), ..SetAttr::default() };
        tree.at.set_attr(Base::CWD, format!("/{name}").as_bytes(), false, &set).unwrap();
        assert_eq!(owner(&source, name), (USER, GROUP), "{name}");
    }
    // Without the capability only the owner may, and only to its groups.
    let mut cred = Credentials::user(USER, GROUP, &[]);
    cred.capabilities = Capabilities::none();
    tree.at.set_credentials(cred);
    let set = SetAttr { uid: Some(0), ..SetAttr::default() };
    assert_eq!(tree.at.set_attr(Base::CWD, b"/file", false, &set), Err(Errno::EPERM));
}

#[test]
fn a_write_clears_a_set_group_id_bit_as_on_the_host() {
    if !support::is_root_for("a_write_clears_a_set_group_id_bit_as_on_the_host") {
        return;
    }
    // Without execution by the group the bit stays if the writer is in the file's group. The process is in group 0.
    for (group, mode) in [(GROUP, 0o2666), (SUPPLEMENTARY, 0o2666), (0, 0o666), (777, 0o666)] {
        for change in ["write", "append", "truncate", "allocate"] {
            let source = support::temp_dir();
            let path = source.path().join("f");
            fs::write(&path, b"text").unwrap();
            chown(&path, Some(0), Some(group)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o2666)).unwrap();
            let tree = as_user(&source, Ownership::Caller);
            let append = if change == "append" { OpenFlags::APPEND } else { OpenFlags::RDONLY };
            let file = tree.open("/f", OpenFlags::WRONLY.union(append)).unwrap();
            match change {
                "truncate" => file.set_len(2).unwrap(),
                "allocate" => file.allocate(vfs::Allocate::Reserve, false, 0, 100).unwrap(),
                _ => drop(file.write_at(0, b"more").unwrap()),
            }
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode, "{change}, group {group}");
            assert_eq!(tree.attr("/f").unwrap().mode & 0o7777, mode, "{change}, group {group}");
        }
    }
}
