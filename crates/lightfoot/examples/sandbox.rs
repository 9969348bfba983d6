//! One tree seen by three parties: root, and two users with a context each. Shows permission bits, a
//! sticky directory, and a context that is locked into a part of the tree by `chroot`.
//!
//! Run it with `cargo run --release -p lightfoot --example sandbox`.

use lightfoot::{Context, Credentials, Errno, Permissions, Vfs};
use std::io;

fn main() -> io::Result<()> {
    let vfs = Vfs::ram();
    let root = vfs.context();
    root.create_dir_all("/home/ann")?;
    root.chown("/home/ann", Some(1000), Some(1000))?;
    root.set_permissions("/home/ann", Permissions::from_mode(0o700))?;
    root.create_dir("/tmp")?;
    root.set_permissions("/tmp", Permissions::from_mode(0o1777))?;

    let ann = root.with_credentials(Credentials::user(1000, 1000, &[]));
    let bob = root.with_credentials(Credentials::user(1001, 1001, &[]));

    ann.write("/home/ann/diary", "nobody reads this")?;
    ann.write("/tmp/note", "for everyone")?;
    report("ann reads her diary", ann.read_to_string("/home/ann/diary"), None);
    report("bob reads ann's diary", bob.read_to_string("/home/ann/diary"), Some(Errno::EACCES));
    report("bob asks whether it is there", bob.try_exists("/home/ann/diary"), Some(Errno::EACCES));
    report("bob reads ann's note", bob.read_to_string("/tmp/note"), None);
    report("bob removes ann's note", bob.remove_file("/tmp/note"), Some(Errno::EPERM));
    report("bob takes ann's note over", bob.chown("/tmp/note", Some(1001), None), Some(Errno::EPERM));
    report("bob makes a directory beside /tmp", bob.create_dir("/bob"), Some(Errno::EACCES));

    // A context that cannot name anything outside of /home/ann. `chroot` leaves the working directory where it is, as
    // chroot(2) does, so the second line is needed: without it, relative paths would still start outside.
    // Changing the root wants a capability, so root does it before it hands the context over to ann.
    let jail: Context = root.fork();
    jail.chroot("/home/ann")?;
    jail.set_current_dir("/")?;
    jail.set_credentials(ann.credentials());
    jail.symlink("/../../tmp/note", "/way-out")?;
    report("in the jail, the diary", jail.read_to_string("/diary"), None);
    report("in the jail, /tmp", jail.metadata("/tmp"), Some(Errno::ENOENT));
    report("in the jail, two dots too many", jail.metadata("/../../tmp/note"), Some(Errno::ENOENT));
    report("in the jail, a link that points out", jail.metadata("/way-out"), Some(Errno::ENOENT));
    report("in the jail, where am I", jail.current_dir(), None);
    Ok(())
}

/// Prints what came of an attempt, which must have ended as `expected`.
fn report<T: std::fmt::Debug>(what: &str, result: io::Result<T>, expected: Option<Errno>) {
    match &result {
        Ok(value) => println!("{what}: {value:?}"),
        Err(error) => println!("{what}: {error}"),
    }
    assert_eq!(result.err().and_then(|error| error.raw_os_error()), expected.map(Errno::raw), "{what}");
}
