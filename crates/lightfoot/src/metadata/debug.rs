//! Attributes as `{:?}` shows them: for a person.

use super::{FileType, Metadata, Permissions};
use std::fmt::{Debug, Formatter, Result};
use vfs::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK};

impl Debug for FileType {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self.kind {
            S_IFDIR => "Directory",
            S_IFREG => "File",
            S_IFLNK => "SymbolicLink",
            S_IFIFO => "Fifo",
            S_IFSOCK => "Socket",
            S_IFCHR => "CharDevice",
            S_IFBLK => "BlockDevice",
            _ => "Unknown",
        })
    }
}

impl Debug for Permissions {
    /// As `std`'s: the mode in octal, and as `ls -l` shows it.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mode = self.mode;
        f.debug_struct("Permissions").field("mode", &format_args!("{mode:#o} ({})", as_ls(mode))).finish()
    }
}

impl Debug for Metadata {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let attr = self.attr.unpack();
        f.debug_struct("Metadata")
            .field("file_type", &self.file_type())
            .field("permissions", &self.permissions())
            .field("len", &attr.size)
            .field("nlink", &attr.nlink)
            .field("uid", &attr.uid)
            .field("gid", &attr.gid)
            .field("dev", &self.dev)
            .field("ino", &attr.ino)
            .field("modified", &self.modified())
            .finish_non_exhaustive()
    }
}

/// Type and permissions, as `ls -l` shows them.
fn as_ls(mode: u32) -> String {
    let kind = match mode & S_IFMT {
        S_IFDIR => 'd',
        S_IFLNK => 'l',
        S_IFIFO => 'p',
        S_IFSOCK => 's',
        S_IFCHR => 'c',
        S_IFBLK => 'b',
        S_IFREG => '-',
        _ => '?',
    };
    let class = |shift: u32, special: u32, marks: [char; 2]| {
        let bit = |bit: u32, letter: char| if mode >> shift & bit == 0 { '-' } else { letter };
        let last = match (mode & special != 0, mode >> shift & 1 != 0) {
            (false, _) => bit(1, 'x'),
            (true, runs) => marks[usize::from(runs)],
        };
        [bit(4, 'r'), bit(2, 'w'), last]
    };
    let classes = [class(6, 0o4000, ['S', 's']), class(3, 0o2000, ['S', 's']), class(0, 0o1000, ['T', 't'])];
    [kind].into_iter().chain(classes.into_iter().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_shown_as_ls_shows_them() {
        let shown = [
            (0o100_644, "-rw-r--r--"),
            (0o041_777, "drwxrwxrwt"),
            (0o041_776, "drwxrwxrwT"),
            (0o104_755, "-rwsr-xr-x"),
            (0o102_640, "-rw-r-S---"),
            (0o120_777, "lrwxrwxrwx"),
            (0o020_600, "crw-------"),
            (0o755, "?rwxr-xr-x"),
        ];
        for (mode, text) in shown {
            assert_eq!(as_ls(mode), text, "{mode:o}");
        }
        assert_eq!(format!("{:?}", Permissions::from_mode(0o100_640)), "Permissions { mode: 0o100640 (-rw-r-----) }");
    }
}
