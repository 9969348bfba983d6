//! Contents of files.

use crate::fixture::{Fixture, MAKE, read_all, write_all};
use crate::outcome::{OrFail, Outcome, same};
use vfs::{Errno, OpenFlags};

pub(crate) fn what_is_written_is_read(c: &Fixture) -> Outcome {
    let data: Vec<u8> = (0..20_000u32).map(|number| (number * 7 / 3) as u8).collect();
    c.write("/file", &data)?;
    c.twice(|| {
        same("all of it", c.read("/file"), Ok(data.clone()))?;
        let file = c.open("/file", OpenFlags::RDONLY).or_fail("open")?;
        for (offset, len) in [(0, 1), (1, 4095), (4095, 2), (4096, 4096), (19_999, 1), (12_345, 678)] {
            let mut buf = vec![0; len];
            let read = file.read_at(offset as u64, &mut buf).or_fail("read")?;
            same(format_args!("bytes from {offset}"), &buf[..read], &data[offset..offset + read])?;
            same(format_args!("bytes read of {len} at {offset}, above none"), read > 0, true)?;
        }
        let mut buf = [1; 8];
        same("a read at the end", file.read_at(20_000, &mut buf), Ok(0))?;
        same("a read after the end", file.read_at(1 << 40, &mut buf), Ok(0))?;
        same("a write to what is open for reading", file.write_at(0, b"x"), Err(Errno::EBADF))
    })?;
    let cut = c.open("/file", OpenFlags::RDWR.union(OpenFlags::TRUNC)).or_fail("open with O_TRUNC")?;
    same("contents after O_TRUNC", read_all(&cut), Ok(Vec::new()))?;
    c.twice(|| same("length after O_TRUNC", c.attr("/file").map(|attr| attr.size), Ok(0)))
}

pub(crate) fn a_hole_reads_as_zeros(c: &Fixture) -> Outcome {
    let file = c.open("/file", MAKE).or_fail("making /file")?;
    write_all(&file, 10_000, b"end")?;
    write_all(&file, 5_000, b"middle")?;
    let mut expected = vec![0; 10_003];
    expected[5_000..5_006].copy_from_slice(b"middle");
    expected[10_000..].copy_from_slice(b"end");
    c.twice(|| same("contents", c.read("/file"), Ok(expected.clone())))
}

pub(crate) fn appended_data_goes_to_the_end(c: &Fixture) -> Outcome {
    c.write("/file", b"one ")?;
    let first = c.open("/file", OpenFlags::WRONLY.union(OpenFlags::APPEND)).or_fail("open to append")?;
    let second = c.open("/file", OpenFlags::WRONLY.union(OpenFlags::APPEND)).or_fail("open to append")?;
    same("the first append", first.write_at(0, b"two "), Ok((4, 8)))?;
    same("the second append", second.write_at(2, b"three "), Ok((6, 14)))?;
    same("the third append", first.write_at(0, b"four"), Ok((4, 18)))?;
    c.twice(|| same("contents", c.read("/file"), Ok(b"one two three four".to_vec())))
}

pub(crate) fn a_cut_file_reads_as_zeros_when_it_grows(c: &Fixture) -> Outcome {
    for (len, cut) in [(100, 10), (4096, 4095), (10_000, 4096), (10_000, 5000), (9000, 0)] {
        let file = c.open("/file", MAKE).or_fail("open")?;
        write_all(&file, 0, &vec![9; len])?;
        file.set_len(cut as u64).or_fail("cut")?;
        file.set_len(len as u64 + 100).or_fail("grow")?;
        let mut expected = vec![9; cut];
        expected.resize(len + 100, 0);
        drop(file);
        c.twice(|| same(format_args!("{len} bytes cut to {cut}"), c.read("/file"), Ok(expected.clone())))?;
        c.unlink("/file").or_fail("unlink")?;
    }
    Ok(())
}

pub(crate) fn overlapping_writes_agree_with_a_model(c: &Fixture) -> Outcome {
    const LEN: u64 = 40_000;
    let file = c.open("/file", MAKE).or_fail("making /file")?;
    let (mut model, mut random) = (Vec::new(), fastrand::Rng::with_seed(0x5EED));
    for step in 0..600u32 {
        let (offset, len) = (random.u64(..LEN), random.u64(..9000));
        if random.u8(..8) == 0 {
            file.set_len(offset).or_fail(format_args!("step {step}: set_len {offset}"))?;
            model.resize(offset as usize, 0);
        } else {
            let data = vec![step as u8 | 1; len as usize];
            write_all(&file, offset, &data)?;
            let (start, end) = (offset as usize, (offset + len) as usize);
            if len > 0 && model.len() < end {
                model.resize(end, 0);
            }
            model.get_mut(start..end).unwrap_or_default().copy_from_slice(data.get(..end - start).unwrap_or_default());
        }
        same(format_args!("step {step}: length"), file.attr().map(|attr| attr.size), Ok(model.len() as u64))?;
        if step % 50 == 49 {
            c.mark_stale();
            let contents = read_all(&file).or_fail("read")?;
            let differs = contents.iter().zip(&model).position(|(got, expected)| got != expected);
            same(
                format_args!("step {step}: length read, first difference"),
                (contents.len(), differs),
                (model.len(), None),
            )?;
        }
    }
    Ok(())
}
