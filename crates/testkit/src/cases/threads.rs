//! Many threads at once, with operations that have one possible final result.

use crate::fixture::{Fixture, MAKE, read_all, write_all};
use crate::outcome::{Failure, OrFail, Outcome, needs, same};
use vfs::{Errno, OpenFlags};

const THREADS: usize = 4;
const ROUNDS: usize = 200;

/// Runs `work` on some threads; returns the first failure.
pub(crate) fn on_threads(work: impl Fn(usize) -> Outcome + Sync) -> Outcome {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        let outcomes = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(Failure::new("a panic"))));
        outcomes.collect::<Vec<_>>().into_iter().collect()
    })
}

pub(crate) fn threads_make_and_remove_different_names(c: &Fixture) -> Outcome {
    c.mkdir("/d").or_fail("mkdir /d")?;
    on_threads(|thread| {
        for round in 0..ROUNDS {
            let (file, dir) = (format!("/d/f{thread}-{round}"), format!("/d/d{thread}-{round}"));
            c.write(&file, file.as_bytes())?;
            c.mkdir(&dir).or_fail(&dir)?;
            same(&file, c.read(&file), Ok(file.clone().into_bytes()))?;
            if round % 2 == 0 {
                c.unlink(&file).or_fail(&file)?;
                c.rmdir(&dir).or_fail(&dir)?;
            }
        }
        Ok(())
    })?;
    c.twice(|| {
        same("remaining names", c.names("/d").map(|names| names.len()), Ok(THREADS * ROUNDS))?;
        let links = [c.attr("/d").map(|attr| attr.nlink)];
        same("links of the directory", links, c.links([2 + (THREADS * ROUNDS / 2) as u32]))
    })
}

pub(crate) fn threads_move_different_names(c: &Fixture) -> Outcome {
    needs!(c.features().rename);
    c.make_dirs(["/a", "/b"])?;
    for thread in 0..THREADS {
        c.write(format!("/a/f{thread}"), format!("f{thread}").as_bytes())?;
        c.mkdir(format!("/a/d{thread}")).or_fail("mkdir")?;
        c.write(format!("/a/d{thread}/below"), format!("d{thread}").as_bytes())?;
    }
    on_threads(|thread| {
        for round in 0..ROUNDS {
            let (from, to) = if round % 2 == 0 { ("/a", "/b") } else { ("/b", "/a") };
            for name in [format!("f{thread}"), format!("d{thread}")] {
                let (from, to) = (format!("{from}/{name}"), format!("{to}/{name}"));
                c.rename(&from, &to).or_fail(format_args!("rename {from} to {to}"))?;
                let read = if name.starts_with('d') { c.read(format!("{to}/below")) } else { c.read(&to) };
                same(format_args!("contents of {to}"), read, Ok(name.into_bytes()))?;
            }
        }
        Ok(())
    })?;
    c.twice(|| {
        same("names in /a", c.names("/a").map(|names| names.len()), Ok(2 * THREADS))?;
        same("names in /b", c.names("/b"), Ok(Vec::new()))?;
        let links = ["/a", "/b"].map(|path| c.attr(path).map(|attr| attr.nlink));
        same("links of /a and /b", links, c.links([2 + THREADS as u32, 2]))
    })
}

pub(crate) fn threads_write_different_ranges(c: &Fixture) -> Outcome {
    const RANGE: usize = 10_000;
    let file = c.open("/file", MAKE).or_fail("making /file")?;
    on_threads(|thread| {
        for round in 0..ROUNDS / 4 {
            let own = vec![(thread * 50 + round % 50 + 1) as u8; RANGE];
            let offset = (thread * RANGE) as u64;
            write_all(&file, offset, &own)?;
            let mut buf = vec![0; RANGE];
            let read = file.read_at(offset, &mut buf).or_fail("read")?;
            same("bytes of the thread's range", &buf[..read], &own[..read])?;
        }
        Ok(())
    })?;
    let all = read_all(&file).or_fail("read")?;
    same("length", all.len(), THREADS * RANGE)?;
    let is_whole = all.chunks(RANGE).all(|range| range.iter().all(|byte| *byte == range[0]));
    same("each range is of one write", is_whole, true)
}

pub(crate) fn threads_that_make_one_name_make_it_once(c: &Fixture) -> Outcome {
    for round in 0..ROUNDS / 2 {
        let path = format!("/x{round}");
        let made = std::sync::atomic::AtomicUsize::new(0);
        on_threads(|_| match c.open(&path, MAKE.union(OpenFlags::EXCL)) {
            Ok(_) => {
                made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Ok(())
            }
            Err(Errno::EEXIST) => Ok(()),
            Err(errno) => Err(Failure::new(format!("O_EXCL: expected success or EEXIST, got {}", errno.name()))),
        })?;
        same(format_args!("threads that made {path}"), made.into_inner(), 1)?;
    }
    c.twice(|| same("names", c.names("/").map(|names| names.len()), Ok(ROUNDS / 2)))
}
