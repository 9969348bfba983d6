//! Lightfoot's side: an instance in memory, seen by a user like the one that runs this process and owns all of it.

use super::{Contents, Side};
use crate::error::Error;
use lightfoot::{Context, Credentials, OpenOptions, Permissions, Vfs};
use std::io::{self, Write};

/// A copy in Lightfoot's hands.
pub(crate) struct RamCopy {
    vfs: Vfs,
    context: Context,
}

impl RamCopy {
    pub(crate) fn new() -> Result<Self, Error> {
        let uid = rustix::process::geteuid().as_raw();
        let gid = rustix::process::getegid().as_raw();
        let vfs = Vfs::ram();
        let context = vfs.context();
        context.chown("/", Some(uid), Some(gid)).map_err(|error| super::failed::<Self>(b"/", error))?;
        context.set_credentials(if uid == 0 { Credentials::root() } else { Credentials::user(uid, gid, &[]) });
        Ok(Self { vfs, context })
    }

    pub(crate) fn vfs(&self) -> &Vfs {
        &self.vfs
    }

    /// Through whose eyes it is seen.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    pub(crate) fn len(&self, path: &[u8]) -> io::Result<u64> {
        Ok(self.context.metadata(path)?.len())
    }

    pub(crate) fn mkdir(&self, path: &[u8]) -> io::Result<()> {
        Side::mkdir(self, path)
    }
}

impl Side for RamCopy {
    const NAME: &'static str = "Lightfoot's side";

    fn mkdir(&self, path: &[u8]) -> io::Result<()> {
        self.context.mkdir(path, 0o700)
    }

    fn make_file(&self, path: &[u8], mode: u32, contents: Contents<'_>) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.context, path)?;
        match contents {
            Contents::Bytes(bytes) => file.write_all(bytes)?,
            Contents::Hole(len) => file.set_len(len)?,
        }
        file.set_permissions(Permissions::from_mode(mode))
    }

    fn symlink(&self, path: &[u8], body: &[u8]) -> io::Result<()> {
        self.context.symlink(body, path)
    }

    fn mknod(&self, path: &[u8], file_type: u32, mode: u32, rdev: u64) -> io::Result<()> {
        self.context.mknod(path, file_type | 0o400, rdev)?;
        Side::chmod(self, path, mode)
    }

    fn chmod(&self, path: &[u8], mode: u32) -> io::Result<()> {
        self.context.set_permissions(path, Permissions::from_mode(mode))
    }
}
