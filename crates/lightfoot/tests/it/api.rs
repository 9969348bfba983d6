//! The mirror of `std::fs`: each method is used once, by one text that runs over the kernel's files and over
//! Lightfoot's and must have the same results; and what `std` does not have, against what Linux returns. `docs/std-fs.md` is
//! the table.

mod beyond;
mod mirror;

use lightfoot::{Dir, Vfs};
use mirror::*;
use std::fmt::Debug;
use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::time::{Duration, UNIX_EPOCH};

/// What came of a call: the value, or the error's number, or if it has none its kind. What std refuses by itself,
/// without a number, has one here.
fn said<T: Debug>(result: io::Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(failed) if failed.kind() == io::ErrorKind::InvalidInput => "errno 22".into(),
        Err(failed) => failed.raw_os_error().map_or(format!("{:?}", failed.kind()), |errno| format!("errno {errno}")),
    }
}

/// Runs a text over both, and compares what it pushed onto its story line by line.
macro_rules! mirror {
    ($name:ident, |$fs:ident, $story:ident| $text:block) => {
        #[test]
        fn $name() {
            let (std, ours) = (Std::new(stringify!($name)), Vfs::ram());
            let run_std = |$fs: &Std, $story: &mut Vec<String>| -> io::Result<()> {
                $text
                Ok(())
            };
            let run_ours = |$fs: &Dir, $story: &mut Vec<String>| -> io::Result<()> {
                $text
                Ok(())
            };
            let (mut expected, mut told) = (Vec::new(), Vec::new());
            run_std(&std, &mut expected).expect("std can");
            let context = ours.context();
            context.set_umask(mirror::umask());
            run_ours(&context.root_dir().expect("there is one"), &mut told).expect("lightfoot can");
            assert!(expected.len() > 3, "nothing was compared");
            for (line, (expected, told)) in expected.iter().zip(&told).enumerate() {
                assert_eq!(told, expected, "line {line} of the story");
            }
            assert_eq!(told.len(), expected.len());
        }
    };
}

mirror!(free_functions_answer_as_std, |fs, story| {
    story.push(said(fs.create_dir("a")));
    story.push(said(fs.create_dir("a")));
    story.push(said(fs.create_dir_all("a/b/c")));
    story.push(said(fs.create_dir_all("a/b/c")));
    story.push(said(fs.create_dir_all("")));
    story.push(said(fs.write("a/file", "text")));
    story.push(said(fs.create_dir_all("a/file")));
    story.push(said(fs.create_dir_all("a/file/below")));
    story.push(said(fs.create_dir_all("a/./new/../new/x/")));
    story.push(said(fs.read("a/file")));
    story.push(said(fs.read_to_string("a/file")));
    fs.write("a/not-text", [0xff, 0xfe])?;
    story.push(said(fs.read_to_string("a/not-text")));
    story.push(said(fs.read("a")));
    story.push(said(fs.copy("a/file", "a/copy")));
    story.push(said(fs.copy("a", "a/copy-of-dir").map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))));
    story.push(said(fs.copy("a/none", "a/copy")));
    story.push(said(fs.copy("a/copy", "a/copy")));
    story.push(said(fs.hard_link("a/file", "a/link")));
    story.push(said(fs.hard_link("a", "dir-link")));
    story.push(said(fs.metadata("a/file").map(|of| (of.len(), of.is_file(), of.nlink()))));
    story.push(said(fs.symlink("file", "a/symlink")));
    story.push(said(fs.soft_link("none", "a/dangling")));
    story.push(said(fs.read_link("a/symlink")));
    story.push(said(fs.read_link("a/file")));
    story.push(said(fs.symlink_metadata("a/symlink").map(|of| (of.is_symlink(), of.len()))));
    for path in ["a/symlink", "a/dangling", "a/file/x", "none", "", "a"] {
        story.push(format!("{} {}", said(fs.try_exists(path)), fs.exists(path)));
        story.push(said(fs.metadata(path).map(|of| (of.is_dir(), of.is_file(), of.is_symlink()))));
    }
    story.push(said(fs.canonicalize("a/./b/../symlink")));
    story.push(said(fs.canonicalize("a/dangling")));
    story.push(said(fs.rename("a/link", "a/renamed")));
    story.push(said(fs.rename("a", "a/b")));
    story.push(said(fs.set_permissions("a/file", fs.permissions(0o640))));
    story.push(said(fs.metadata("a/file").map(|of| of.permissions().mode() & 0o7777)));
    let mut names: Vec<_> =
        fs.read_dir("a")?.map(|entry| entry.map(|entry| entry.file_name())).collect::<Result<_, _>>()?;
    names.sort();
    story.push(format!("{names:?}"));
    story.push(said(fs.remove_dir("a")));
    story.push(said(fs.remove_dir("a/file")));
    story.push(said(fs.remove_file("a/b")));
    story.push(said(fs.remove_file("a/file")));
    fs.symlink("a", "to-a")?;
    story.push(said(fs.remove_dir_all("a/renamed")));
    story.push(said(fs.remove_dir_all("to-a")));
    story.push(said(fs.remove_dir_all("a")));
    story.push(said(fs.remove_dir_all("a")));
});

mirror!(files_read_write_and_seek_as_std, |fs, story| {
    story.push(said(fs.open("none").map(drop)));
    let mut file = fs.create_new("file")?;
    story.push(said(fs.create_new("file").map(drop)));
    story.push(said(file.write(b"0123456789")));
    story.push(said(file.stream_position()));
    story.push(said(file.seek(SeekFrom::Start(2))));
    story.push(said(file.seek(SeekFrom::Current(-3))));
    story.push(said(file.seek(SeekFrom::End(-1))));
    let mut clone = file.try_clone()?;
    let mut text = String::new();
    story.push(said(clone.read_to_string(&mut text)));
    story.push(format!("{text} {}", said(file.stream_position())));
    story.push(said(clone.rewind()));
    let (mut a, mut b, mut c) = ([0; 3], [0; 0], [0; 4]);
    let mut bufs = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut b), IoSliceMut::new(&mut c)];
    story.push(said(file.read_vectored(&mut bufs)));
    story.push(format!("{a:?} {c:?} {}", said(clone.stream_position())));
    let mut bufs = [IoSliceMut::new(&mut a), IoSliceMut::new(&mut c)];
    story.push(said(file.read_vectored(&mut bufs)));
    story.push(format!("{a:?} {c:?}"));
    story.push(said(file.write_vectored(&[IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cde")])));
    story.push(said(file.write_vectored(&[])));
    story.push(said(fs.read_to_string("file")));
    story.push(said(file.read_at(&mut c, 1)));
    story.push(said(file.write_at(b"xy", 20)));
    story.push(said(file.read_exact_at(&mut a, 20).map_err(|failed| failed.kind().into())));
    story.push(said(file.write_all_at(b"xyz", 20)));
    story.push(said(file.read_exact_at(&mut a, 20)));
    story.push(format!("{a:?} {}", said(fs.metadata("file").map(|of| of.len()))));
    story.push(said(file.set_len(4)));
    story.push(said(file.set_len(u64::MAX)));
    story.push(said(file.flush()));
    story.push(said(file.sync_all()));
    story.push(said(file.sync_data()));
    story.push(said(file.metadata().map(|of| (of.len(), of.is_file()))));
    story.push(said(file.set_permissions(fs.permissions(0o604))));
    story.push(said(file.metadata().map(|of| of.mode())));
    let mut read_only = fs.open("file")?;
    story.push(said(read_only.write(b"x")));
    story.push(said(read_only.set_len(0)));
    let mut shared = &read_only;
    story.push(said(shared.read(&mut a[..1])));
    story.push(said(fs.create("file").and_then(|mut file| file.read(&mut [0; 1]))));
    story.push(said(fs.metadata("file").map(|of| of.len())));
});

mirror!(options_open_as_std, |fs, story| {
    fs.create_dir("dir")?;
    fs.symlink("file", "link")?;
    for bits in 0..64 {
        let on = |bit: u32| bits >> bit & 1 != 0;
        let mut options = fs.options();
        options.read(on(0)).write(on(1)).append(on(2)).truncate(on(3)).create(on(4)).create_new(on(5)).mode(0o600);
        for path in ["file", "dir", "none", "link"] {
            fs.write("file", "0123")?;
            let opened = fs.open_with(path, &options).map(|mut file| {
                let written = said(file.write(b"ab"));
                let read = said(file.read(&mut [0; 8]));
                (written, read)
            });
            story.push(format!("{bits:#b} {path}: {} {}", said(opened), said(fs.metadata("file").map(|of| of.len()))));
            if path == "none" {
                let _ = fs.remove_file(path);
            }
        }
    }
    let (directory, nofollow) = (0o200_000, 0o400_000);
    for (flags, path) in [(directory, "dir"), (directory, "file"), (nofollow, "link"), (nofollow, "file"), (0, "dir")] {
        let mut options = fs.options();
        options.read(true).custom_flags(flags);
        story.push(format!("{flags:#o} {path}: {}", said(fs.open_with(path, &options).map(drop))));
    }
});

mirror!(metadata_says_what_std_says, |fs, story| {
    fs.create_dir("dir")?;
    fs.write("dir/file", vec![7; 5000])?;
    fs.symlink("none", "dir/link")?;
    let file = fs.open("dir/file")?;
    let moment = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    story.push(said(file.set_modified(moment)));
    story.push(said(file.set_times(fs.times(moment - Duration::from_secs(2_000_000_000), moment))));
    story.push(said(file.set_times(fs.no_times())));
    for path in ["dir/file", "dir", "dir/link"] {
        let of = fs.symlink_metadata(path)?;
        let kind = of.file_type();
        story.push(format!("{} {} {}", kind.is_dir(), kind.is_file(), kind.is_symlink()));
        story.push(format!("{} {}", kind.is_fifo(), kind.is_socket()));
        story.push(format!("{} {}", kind.is_block_device(), kind.is_char_device()));
        story.push(format!("{:o} {} {} {}", of.mode(), of.nlink(), of.rdev(), of.permissions().readonly()));
        story.push(format!("{} {}", of.is_dir(), of.blksize()));
        story.push(format!("{}", of.dev() == fs.metadata(".")?.dev() && of.ino() != fs.metadata(".")?.ino()));
        if !of.is_dir() {
            story.push(format!("{} {} {}", of.len(), of.size(), of.blocks()));
        }
        story.push(format!("{}", of.modified()?.duration_since(UNIX_EPOCH).is_ok() && of.ctime_nsec() < 1_000_000_000));
        story.push(format!("{}", of.ctime() > 1_000_000_000));
    }
    let of = file.metadata()?;
    story.push(format!("{:?} {:?}", of.modified()?, of.accessed()?));
    story.push(format!("{} {} {} {}", of.atime(), of.atime_nsec(), of.mtime(), of.mtime_nsec()));
    let mut permissions = of.permissions();
    permissions.set_readonly(true);
    story.push(said(fs.set_permissions("dir/file", fs.same(&permissions))));
    permissions.set_mode(0o755);
    story.push(format!("{:o} {:o}", fs.metadata("dir/file")?.mode(), permissions.mode()));
});

mirror!(listings_and_builders_are_those_of_std, |fs, story| {
    for (path, recursive, mode) in [
        ("a/b", false, 0o700),
        ("a/b", true, 0o750),
        ("a/b", true, 0o700),
        ("a/b", false, 0o700),
        ("a/c", false, 0o711),
    ] {
        story.push(said(fs.build_dir(path, recursive, mode)));
    }
    story.push(said(fs.metadata("a").map(|of| of.mode())));
    story.push(said(fs.metadata("a/c").map(|of| of.mode())));
    fs.write("a/file", "1234")?;
    fs.symlink("none", "a/link")?;
    let mut entries: Vec<_> = fs.read_dir("a")?.collect::<Result<_, _>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    // The path of a listing goes on to be the name in the directory that was listed.
    for entry in &entries {
        let of = entry.metadata()?;
        story.push(format!("{:?} {:?}", entry.file_name(), fs.relative(entry.path())));
        story.push(format!("{:?} {}", entry.file_type()?.is_dir(), of.is_symlink()));
        story.push(format!("{}", entry.ino() == of.ino()));
    }
    story.push(said(fs.read_dir("a/file").map(drop)));
    story.push(said(fs.read_dir("none").map(drop)));
});

mirror!(locks_of_whole_files_are_those_of_std, |fs, story| {
    fs.write("file", "")?;
    let (a, b) = (fs.open("file")?, fs.open("file")?);
    let a_again = a.try_clone()?;
    story.push(said(a.lock_shared()));
    story.push(format!("{:?}", b.try_lock_shared().is_ok()));
    story.push(format!("{}", matches!(b.try_lock(), Err(std::fs::TryLockError::WouldBlock))));
    story.push(said(b.unlock()));
    story.push(format!("{:?}", a_again.try_lock().is_ok()));
    story.push(format!("{:?}", b.try_lock_shared().is_ok()));
    drop(a);
    story.push(format!("{:?}", b.try_lock_shared().is_ok()));
    drop(a_again);
    story.push(said(b.lock()));
    story.push(said(b.unlock()));
    story.push(said(b.unlock()));
});
