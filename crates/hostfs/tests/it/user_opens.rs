//! One user cannot take the descriptors of all. Needs a root process, which acts for several users.

use crate::support::{self, Tree};
use lightfoot_hostfs::HostOptions;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use vfs::{Credentials, Errno, OpenFile, OpenFlags};

const FILES: usize = 300;

#[test]
fn a_user_who_opens_all_files_leaves_some_descriptors_to_the_next() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED a_user_who_opens_all_files_leaves_some_descriptors_to_the_next: needs root");
        return;
    }
    // It lowers the limit of its process.
    if testkit::ran_alone("user_opens::a_user_who_opens_all_files_leaves_some_descriptors_to_the_next") {
        return;
    }
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(256), maximum }).unwrap();
    let source = support::temp_dir();
    for number in 0..FILES {
        fs::write(source.path().join(number.to_string()), b"text").unwrap();
        fs::set_permissions(source.path().join(number.to_string()), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let tree = Tree::new(&source, &HostOptions::default());
    let open_all = |uid: u32, flags: OpenFlags| {
        tree.at.set_credentials(Credentials::user(uid, uid, &[]));
        let opened = (0..FILES).map(|number| tree.open(&format!("/{number}"), flags));
        opened.collect::<Vec<Result<OpenFile, Errno>>>()
    };
    let first = open_all(1001, OpenFlags::RDONLY);
    let count = first.iter().flatten().count();
    assert!(first.iter().all(|file| matches!(file, Ok(_) | Err(Errno::EMFILE))));
    assert_eq!(count, 96, "half of three quarters of the limit");
    // The next user opens half of what is left; root all.
    let second = open_all(1002, OpenFlags::RDONLY);
    assert_eq!(second.iter().flatten().count(), 48);
    let mut buf = [0; 4];
    assert!(second.iter().flatten().all(|file| file.read_at(0, &mut buf) == Ok(4)));
    tree.at.set_credentials(Credentials::root());
    assert!((150..170).all(|number| tree.read(&format!("/{number}")).is_ok()));
    drop((first, second));
    assert_eq!(open_all(1001, OpenFlags::RDONLY).iter().flatten().count(), 96, "all were given back");
}
