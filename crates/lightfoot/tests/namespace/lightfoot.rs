//! Lightfoot, on its RAM file system, through its public interface.

use super::Namespace;
use super::errno::*;
use super::ops::flags::*;
use super::ops::*;
use super::outcome::{Attr, Outcome, Time};
use lightfoot::{Context, Credentials, File, FileTimes, FileType, Metadata, OpenOptions, Permissions, Vfs};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

type Res<T> = Result<T, Errno>;

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Errno(error.raw_os_error().unwrap_or_else(|| panic!("an error without a number: {error:?}")))
    }
}

/// One process on a Lightfoot tree of its own.
#[derive(Debug)]
pub(crate) struct Lightfoot {
    context: Context,
    slots: [Option<File>; SLOTS],
}

impl Lightfoot {
    /// A fresh tree; its root directory belongs to `owner`, as whom the process acts.
    pub(crate) fn new(owner: (u32, u32)) -> Self {
        let context = Vfs::ram().context();
        if owner != (0, 0) {
            context.chown("/", Some(owner.0), Some(owner.1)).expect("root may do anything");
            context.set_credentials(Credentials::user(owner.0, owner.1, &[]));
        }
        Lightfoot { context, slots: Default::default() }
    }

    fn slot(&self, slot: usize) -> Res<&File> {
        self.slots[slot].as_ref().ok_or(EBADF)
    }

    fn open(&mut self, slot: usize, path: &RawPath, flags: u32, mode: u32) -> Res<()> {
        // Everything but the access mode by number: the options refuse, as std's do, what open(2) allows.
        let mut options = OpenOptions::new();
        options.read(flags & O_ACCMODE != O_WRONLY).write(flags & O_ACCMODE != O_RDONLY);
        let file = options.custom_flags(flags & !O_ACCMODE).mode(mode).open(&self.context, &path.0)?;
        self.slots[slot] = Some(file);
        Ok(())
    }

    fn read_dir(&self, path: &RawPath) -> Res<Vec<(RawPath, u32)>> {
        let mut listing = Vec::new();
        for entry in self.context.read_dir(&path.0)? {
            let entry = entry?;
            listing.push((RawPath(entry.file_name().into_vec()), kind(entry.file_type()?)));
        }
        listing.sort();
        Ok(listing)
    }

    /// The path of the working directory, which `getcwd(2)` gives only up to the longest path.
    fn getcwd(&self) -> Res<RawPath> {
        let path = self.context.current_dir()?.into_os_string().into_vec();
        if path.len() < 4096 { Ok(RawPath(path)) } else { Err(ENAMETOOLONG) }
    }

    fn chown(&self, path: &RawPath, uid: Option<u32>, gid: Option<u32>, follow: bool) -> Res<()> {
        let path = &path.0;
        Ok(if follow { self.context.chown(path, uid, gid) } else { self.context.lchown(path, uid, gid) }?)
    }

    fn truncate(&self, path: &RawPath, len: i64) -> Res<()> {
        // A length below zero cannot be said.
        let len = u64::try_from(len).map_err(|_| EINVAL)?;
        Ok(self.context.truncate(&path.0, len)?)
    }

    fn utimens(&self, path: &RawPath, atime: Option<i64>, mtime: Option<i64>) -> Res<()> {
        let mut times = FileTimes::new();
        if let Some(atime) = atime {
            times = times.set_accessed(system_time(atime));
        }
        if let Some(mtime) = mtime {
            times = times.set_modified(system_time(mtime));
        }
        Ok(self.context.set_times(&path.0, times)?)
    }

    fn read(&self, slot: usize, offset: Option<u64>, len: usize) -> Res<Vec<u8>> {
        let mut file = self.slot(slot)?;
        let mut data = vec![0; len];
        let read = match offset {
            Some(offset) => file.read_at(&mut data, offset)?,
            None => file.read(&mut data)?,
        };
        data.truncate(read);
        Ok(data)
    }

    fn write(&self, slot: usize, offset: Option<u64>, data: &[u8]) -> Res<u64> {
        let mut file = self.slot(slot)?;
        Ok(match offset {
            Some(offset) => file.write_at(data, offset)?,
            None => file.write(data)?,
        } as u64)
    }

    fn lseek(&self, slot: usize, whence: Whence, offset: i64) -> Res<u64> {
        let to = match whence {
            Whence::Start => SeekFrom::Start(offset as u64),
            Whence::Current => SeekFrom::Current(offset),
            Whence::End => SeekFrom::End(offset),
        };
        Ok(self.slot(slot)?.seek(to)?)
    }

    fn become_user(&self, user: usize) {
        let (uid, gid, groups) = USERS[user];
        self.context.set_credentials(Credentials::user(uid, gid, groups));
    }

    fn try_apply(&mut self, op: &Op) -> Res<Outcome> {
        let context = &self.context;
        let permissions = |mode: u32| Permissions::from_mode(mode);
        Ok(match op {
            Op::Become(user) => {
                self.become_user(*user);
                Outcome::Done
            }
            Op::Umask(mask) => Outcome::Count(context.set_umask(*mask).into()),
            Op::Mkdir { path, mode } => context.mkdir(&path.0, *mode)?.into(),
            Op::Mknod { path, mode, rdev } => {
                context.mknod(&path.0, *mode, rustix::fs::makedev(rdev.0, rdev.1))?.into()
            }
            Op::Symlink { body, path } => context.symlink(&body.0, &path.0)?.into(),
            Op::Link { from, to } => context.hard_link(&from.0, &to.0)?.into(),
            Op::Unlink { path } => context.remove_file(&path.0)?.into(),
            Op::Rmdir { path } => context.remove_dir(&path.0)?.into(),
            Op::Rename { from, to } => context.rename(&from.0, &to.0)?.into(),
            Op::Open { slot, path, flags, mode } => self.open(*slot, path, *flags, *mode)?.into(),
            Op::Close { slot } => self.slots[*slot].take().map(drop).ok_or(EBADF)?.into(),
            Op::Readlink { path } => RawPath(context.read_link(&path.0)?.into_os_string().into_vec()).into(),
            Op::Stat { path } => attr(&context.metadata(&path.0)?).into(),
            Op::Lstat { path } => attr(&context.symlink_metadata(&path.0)?).into(),
            Op::ReadDir { path } => self.read_dir(path)?.into(),
            Op::Chmod { path, mode } => context.set_permissions(&path.0, permissions(*mode))?.into(),
            Op::Chown { path, uid, gid, follow } => self.chown(path, *uid, *gid, *follow)?.into(),
            Op::Truncate { path, len } => self.truncate(path, *len)?.into(),
            Op::Utimens { path, atime, mtime } => self.utimens(path, *atime, *mtime)?.into(),
            Op::Access { path, bits } => context.access(&path.0, *bits)?.into(),
            Op::Chdir { path } => context.set_current_dir(&path.0)?.into(),
            Op::Getcwd => self.getcwd()?.into(),
            Op::Write { slot, fill, len } => self.write(*slot, None, &vec![*fill; *len])?.into(),
            Op::Pwrite { slot, offset, fill, len } => self.write(*slot, Some(*offset), &vec![*fill; *len])?.into(),
            Op::Read { slot, len } => self.read(*slot, None, *len)?.into(),
            Op::Pread { slot, offset, len } => self.read(*slot, Some(*offset), *len)?.into(),
            Op::Ftruncate { slot, len } => self.slot(*slot)?.set_len(*len)?.into(),
            Op::Fstat { slot } => attr(&self.slot(*slot)?.metadata()?).into(),
            Op::Fchmod { slot, mode } => self.slot(*slot)?.set_permissions(permissions(*mode))?.into(),
            Op::Lseek { slot, whence, offset } => self.lseek(*slot, *whence, *offset)?.into(),
        })
    }
}

impl Namespace for Lightfoot {
    fn apply(&mut self, op: &Op) -> Outcome {
        self.try_apply(op).into()
    }
}

fn system_time(nanos: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
}

fn kind(file_type: FileType) -> u32 {
    let kinds = [
        (file_type.is_dir(), S_IFDIR),
        (file_type.is_file(), S_IFREG),
        (file_type.is_symlink(), S_IFLNK),
        (file_type.is_fifo(), S_IFIFO),
        (file_type.is_socket(), S_IFSOCK),
        (file_type.is_char_device(), S_IFCHR),
        (file_type.is_block_device(), S_IFBLK),
    ];
    kinds.iter().filter(|(is, _)| *is).map(|(_, kind)| kind).sum()
}

fn attr(metadata: &Metadata) -> Attr {
    let rdev = metadata.rdev();
    Attr {
        mode: metadata.mode(),
        nlink: metadata.nlink(),
        uid: metadata.uid(),
        gid: metadata.gid(),
        size: metadata.size(),
        rdev: (rustix::fs::major(rdev), rustix::fs::minor(rdev)),
        blocks: metadata.file_type().is_file().then(|| metadata.blocks()),
        ino: metadata.ino(),
        atime: Time::Raw(metadata.atime_ns()),
        mtime: Time::Raw(metadata.mtime_ns()),
        ctime: Time::Raw(metadata.ctime_ns()),
    }
}
