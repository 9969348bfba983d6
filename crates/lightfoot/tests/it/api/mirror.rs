//! `std::fs` with the shape of a `Dir`: methods, and paths from a directory of the kernel's that goes when it is
//! dropped.

use lightfoot::{Dir, DirBuilder, FileTimes, OpenOptions, Permissions};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

// So that a text may call them on either.
pub(crate) use std::os::unix::fs::{DirEntryExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};

/// See the module documentation.
pub(crate) struct Std {
    dir: TempDir,
}

macro_rules! one_path {
    ($($name:ident -> $result:ty;)*) => {
        $(pub(crate) fn $name(&self, path: &str) -> io::Result<$result> {
            fs::$name(self.at(path))
        })*
    };
}

macro_rules! two_paths {
    ($($name:ident -> $result:ty;)*) => {
        $(pub(crate) fn $name(&self, from: &str, to: &str) -> io::Result<$result> {
            fs::$name(self.at(from), self.at(to))
        })*
    };
}

impl Std {
    pub(crate) fn new(name: &str) -> Self {
        let shm = Path::new("/dev/shm");
        let above = if shm.is_dir() { shm.to_path_buf() } else { std::env::temp_dir() };
        let above = above.canonicalize().expect("a directory for temporary files");
        let mode = fs::Permissions::from_mode(0o755);
        let dir =
            tempfile::Builder::new().prefix(&format!("lightfoot-api-{name}-")).permissions(mode).tempdir_in(above);
        Self { dir: dir.expect("a directory of the kernel's") }
    }

    /// An empty path stays what it is.
    fn at(&self, path: &str) -> PathBuf {
        if path.is_empty() { PathBuf::new() } else { PathBuf::from(format!("{}/{path}", self.dir.path().display())) }
    }

    one_path! {
        create_dir -> ();
        create_dir_all -> ();
        metadata -> fs::Metadata;
        read -> Vec<u8>;
        read_dir -> fs::ReadDir;
        read_link -> PathBuf;
        read_to_string -> String;
        remove_dir -> ();
        remove_dir_all -> ();
        remove_file -> ();
        symlink_metadata -> fs::Metadata;
    }

    two_paths! {
        copy -> u64;
        hard_link -> ();
        rename -> ();
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    pub(crate) fn try_exists(&self, path: &str) -> io::Result<bool> {
        fs::exists(self.at(path))
    }

    pub(crate) fn canonicalize(&self, path: &str) -> io::Result<PathBuf> {
        fs::canonicalize(self.at(path))
            .map(|path| Path::new("/").join(path.strip_prefix(self.dir.path()).expect("below it")))
    }

    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) -> io::Result<()> {
        fs::write(self.at(path), contents)
    }

    pub(crate) fn symlink(&self, target: &str, path: &str) -> io::Result<()> {
        std::os::unix::fs::symlink(target, self.at(path))
    }

    #[expect(deprecated, reason = "it is compared with")]
    pub(crate) fn soft_link(&self, target: &str, path: &str) -> io::Result<()> {
        fs::soft_link(target, self.at(path))
    }

    pub(crate) fn set_permissions(&self, path: &str, permissions: fs::Permissions) -> io::Result<()> {
        fs::set_permissions(self.at(path), permissions)
    }

    pub(crate) fn open(&self, path: &str) -> io::Result<fs::File> {
        fs::File::open(self.at(path))
    }

    pub(crate) fn create(&self, path: &str) -> io::Result<fs::File> {
        fs::File::create(self.at(path))
    }

    pub(crate) fn create_new(&self, path: &str) -> io::Result<fs::File> {
        fs::File::create_new(self.at(path))
    }

    pub(crate) fn open_with(&self, path: &str, options: &fs::OpenOptions) -> io::Result<fs::File> {
        options.open(self.at(path))
    }
}

/// The types and calls that differ between the two libraries.
pub(crate) trait Mirror {
    type Options;
    type Permissions;
    type Times;

    fn options(&self) -> Self::Options;
    fn permissions(&self, mode: u32) -> Self::Permissions;
    /// A copy, by whatever means the type has.
    fn same(&self, permissions: &Self::Permissions) -> Self::Permissions;
    fn times(&self, accessed: SystemTime, modified: SystemTime) -> Self::Times;
    fn no_times(&self) -> Self::Times;
    fn build_dir(&self, path: &str, recursive: bool, mode: u32) -> io::Result<()>;
    /// A path that a listing gave, from the directory of the test.
    fn relative(&self, path: PathBuf) -> PathBuf;
}

impl Mirror for Std {
    type Options = fs::OpenOptions;
    type Permissions = fs::Permissions;
    type Times = fs::FileTimes;

    fn options(&self) -> fs::OpenOptions {
        fs::File::options()
    }

    fn permissions(&self, mode: u32) -> fs::Permissions {
        fs::Permissions::from_mode(mode)
    }

    fn same(&self, permissions: &fs::Permissions) -> fs::Permissions {
        permissions.clone()
    }

    fn times(&self, accessed: SystemTime, modified: SystemTime) -> fs::FileTimes {
        fs::FileTimes::new().set_accessed(accessed).set_modified(modified)
    }

    fn no_times(&self) -> fs::FileTimes {
        fs::FileTimes::new()
    }

    fn build_dir(&self, path: &str, recursive: bool, mode: u32) -> io::Result<()> {
        fs::DirBuilder::new().recursive(recursive).mode(mode).create(self.at(path))
    }

    fn relative(&self, path: PathBuf) -> PathBuf {
        path.strip_prefix(self.dir.path()).expect("below it").to_path_buf()
    }
}

impl Mirror for Dir {
    type Options = OpenOptions;
    type Permissions = Permissions;
    type Times = FileTimes;

    fn options(&self) -> OpenOptions {
        lightfoot::File::options()
    }

    fn permissions(&self, mode: u32) -> Permissions {
        Permissions::from_mode(mode)
    }

    fn same(&self, permissions: &Permissions) -> Permissions {
        *permissions
    }

    fn times(&self, accessed: SystemTime, modified: SystemTime) -> FileTimes {
        FileTimes::new().set_accessed(accessed).set_modified(modified)
    }

    fn no_times(&self) -> FileTimes {
        FileTimes::new()
    }

    fn build_dir(&self, path: &str, recursive: bool, mode: u32) -> io::Result<()> {
        self.create_dir_with(path, DirBuilder::new().recursive(recursive).mode(mode))
    }

    fn relative(&self, path: PathBuf) -> PathBuf {
        path
    }
}

/// The process's own mask of creation modes.
pub(crate) fn umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}
