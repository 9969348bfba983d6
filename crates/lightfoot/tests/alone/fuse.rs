//! Mounts of a tree on the host, used through the kernel. They need root and `/dev/fuse`.

use lightfoot::fuse::{Mount, MountError, MountOptions, Ttls};
use lightfoot::{Context, Credentials, Errno, Permissions, Resolve, Vfs};
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A directory to mount on, which goes with it.
struct Place(PathBuf);

impl Place {
    /// `None`, with a line about it, where a process cannot mount.
    fn new(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() || !Path::new("/dev/fuse").exists() {
            println!("SKIPPED: no root, or no /dev/fuse");
            return None;
        }
        let place = Self(std::env::temp_dir().join(format!("lightfoot-api-{name}-{}", std::process::id())));
        fs::create_dir(&place.0).unwrap();
        Some(place)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir(&self.0).unwrap_or_else(|error| panic!("{}: {error}", self.0.display()));
    }
}

/// The kernel keeps what it learns for an hour.
fn for_long() -> MountOptions {
    let mut options = MountOptions::default();
    options.session.ttls = Ttls::all(Duration::from_secs(3600));
    options
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What the kernel sees after each change that `change` makes.
fn changes_are_seen(ctx: &Context, place: &Place, flush: &dyn Fn()) {
    let (dir, file) = (place.at("dir"), place.at("dir/file"));
    assert_eq!(fs::metadata(&dir).unwrap_err().kind(), io::ErrorKind::NotFound);
    ctx.create_dir("/dir").unwrap();
    flush();
    assert!(fs::metadata(&dir).unwrap().is_dir(), "the kernel knew that there was no such name");
    assert_eq!(names(&dir), [""; 0]);
    ctx.write("/dir/file", "one").unwrap();
    flush();
    assert_eq!(names(&dir), ["file"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "one");
    ctx.write("/dir/file", "another").unwrap();
    flush();
    assert_eq!(fs::read_to_string(&file).unwrap(), "another");
    ctx.set_permissions("/dir/file", Permissions::from_mode(0o600)).unwrap();
    flush();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    ctx.hard_link("/dir/file", "/dir/link").unwrap();
    flush();
    assert_eq!(fs::metadata(&file).unwrap().nlink(), 2);
    ctx.remove_file("/dir/link").unwrap();
    flush();
    assert_eq!((fs::metadata(&file).unwrap().nlink(), place.at("dir/link").exists()), (1, false));
    ctx.rename("/dir/file", "/moved").unwrap();
    flush();
    assert!(!file.exists() && names(&dir).is_empty());
    assert_eq!(fs::read_to_string(place.at("moved")).unwrap(), "another");
    ctx.remove_file("/moved").unwrap();
    ctx.remove_dir("/dir").unwrap();
    flush();
    assert_eq!(names(&place.0), [""; 0]);
    assert!(!dir.exists());
}

#[test]
fn the_kernel_sees_at_once_what_the_program_changes() {
    let Some(place) = Place::new("program") else { return };
    let vfs = Vfs::ram();
    let mount = vfs.mount(&place.0, &for_long()).unwrap();
    changes_are_seen(&vfs.context(), &place, &|| mount.flush());
    // And the program sees at once what comes through the mount.
    fs::write(place.at("here"), "by the kernel").unwrap();
    assert_eq!(vfs.context().read_to_string("/here").unwrap(), "by the kernel");
    drop(mount);
    assert_eq!(names(&place.0), [""; 0], "unmounted");
    assert_eq!(vfs.context().read_to_string("/here").unwrap(), "by the kernel");
}

#[test]
fn a_mount_sees_at_once_what_comes_through_another_one_of_its_tree() {
    let (Some(place), Some(other)) = (Place::new("one"), Place::new("other")) else { return };
    let vfs = Vfs::ram();
    let mounts = [&place, &other].map(|place| vfs.mount(&place.0, &for_long()).unwrap());
    let flush = || mounts.iter().for_each(Mount::flush);
    for n in 0..20 {
        let name = n.to_string();
        assert!(!other.at(&name).exists());
        fs::write(place.at(&name), &name).unwrap();
        flush();
        assert_eq!(fs::read_to_string(other.at(&name)).unwrap(), name);
        fs::rename(other.at(&name), other.at("moved")).unwrap();
        flush();
        assert!(!place.at(&name).exists() && place.at("moved").exists());
        fs::remove_file(place.at("moved")).unwrap();
        flush();
        assert_eq!((names(&place.0), names(&other.0)), (vec![], vec![]));
    }
}

#[test]
fn a_directory_is_mounted_with_the_credentials_of_its_handle_and_cannot_be_left() {
    let Some(place) = Place::new("dir") else { return };
    let vfs = Vfs::ram();
    let ctx = vfs.context();
    ctx.create_dir_all("/home/ann/locked").unwrap();
    ctx.write("/home/secret", "of others").unwrap();
    ctx.write("/home/ann/locked/file", "").unwrap();
    ctx.chown("/home/ann", Some(1000), Some(1000)).unwrap();
    ctx.set_permissions("/home/ann/locked", Permissions::from_mode(0o700)).unwrap();
    let ann = ctx.with_credentials(Credentials::user(1000, 1000, &[]));
    let home = ann.open_dir("/home/ann").unwrap().confined();
    let mount = vfs.mount_view(&home, &place.0, &MountOptions::default()).unwrap();

    // This process is root; through the mount it is the user 1000.
    fs::write(place.at("made"), "by root").unwrap();
    assert_eq!((fs::metadata(place.at("made")).unwrap().uid(), home.metadata("made").unwrap().uid()), (1000, 1000));
    assert_eq!(fs::read_to_string(place.at("locked/file")).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert!(fs::remove_file(place.at("locked/file")).is_err());
    assert!(std::os::unix::fs::chown(place.at("made"), Some(0), None).is_err());
    // The tree's link is one of the host for the kernel.
    symlink("/home/secret", place.at("out")).unwrap();
    assert!(fs::read_to_string(place.at("out")).is_err());
    assert!(!place.at("../secret").exists() && !place.at("made/../../secret").exists());
    assert_eq!(names(&place.0), ["locked", "made", "out"]);
    ctx.rename("/home/ann", "/home/moved").unwrap();
    mount.flush();
    assert_eq!(names(&place.0), ["locked", "made", "out"], "the handle refers to the directory");
}

#[test]
fn a_context_is_mounted_from_its_root() {
    let Some(place) = Place::new("context") else { return };
    let vfs = Vfs::ram();
    let jail = vfs.context();
    jail.create_dir_all("/jail/sub").unwrap();
    jail.chroot("/jail").unwrap();
    let mount = vfs.mount_view(&jail, &place.0, &MountOptions::default()).unwrap();
    assert_eq!(names(&place.0), ["sub"]);
    mount.unmount().unwrap();
    assert_eq!(names(&place.0), [""; 0]);
    assert!(mount.wait().is_ok());
}

#[test]
fn what_cannot_be_mounted_is_refused() {
    let Some(place) = Place::new("refused") else { return };
    let (vfs, other) = (Vfs::ram(), Vfs::ram());
    let errno = |mounted: Result<Mount, MountError>| match mounted {
        Err(MountError::NoRoot(errno)) => errno,
        other => panic!("{other:?}"),
    };
    let options = MountOptions::default();
    assert_eq!(errno(vfs.mount_view(&other.context(), &place.0, &options)), Errno::EXDEV);
    let limited = vfs.context().root_dir().unwrap().within(Resolve::NO_XDEV).unwrap();
    assert_eq!(errno(vfs.mount_view(&limited, &place.0, &options)), Errno::EINVAL);
    let missing = vfs.mount(place.at("missing"), &options).unwrap_err();
    assert!(matches!(missing, MountError::NoMountpoint { .. }), "{missing}");
    assert!(names(&place.0).is_empty());
}
