//! The contents of one file: pages by number, with holes between.

use std::collections::BTreeMap;
use sync::Mutex;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Units of 512 bytes in a page.
const BLOCKS: u64 = (PAGE / 512) as u64;

/// Pages that were written; any other reads as zeros.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pages: Mutex<BTreeMap<u64, Box<[u8; PAGE]>>>,
}

impl Contents {
    /// Reads from `offset` on, where the caller has made sure that all of `buf` lies in the file.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) {
        let pages = self.pages.lock();
        for (number, within, part) in parts(offset, buf.len()) {
            let to = &mut buf[part.clone()];
            match pages.get(&number) {
                Some(page) => to.copy_from_slice(&page[within..within + part.len()]),
                None => to.fill(0),
            }
        }
    }

    /// Writes all of `data` at `offset`; gives the storage taken then, in units of 512 bytes.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> u64 {
        let mut pages = self.pages.lock();
        for (number, within, part) in parts(offset, data.len()) {
            let page = pages.entry(number).or_insert_with(|| Box::new([0; PAGE]));
            page[within..within + part.len()].copy_from_slice(&data[part]);
        }
        pages.len() as u64 * BLOCKS
    }

    /// Forgets all from `len` on; gives the storage taken then, in units of 512 bytes.
    pub(crate) fn cut(&self, len: u64) -> u64 {
        let mut pages = self.pages.lock();
        let (number, within) = place(len);
        drop(pages.split_off(&if within == 0 { number } else { number + 1 }));
        if let Some(page) = pages.get_mut(&number) {
            page[within..].fill(0);
        }
        pages.len() as u64 * BLOCKS
    }
}

/// The page that holds the byte at `offset`, and where in it.
fn place(offset: u64) -> (u64, usize) {
    (offset / PAGE as u64, (offset % PAGE as u64) as usize)
}

/// The pages that `len` bytes from `offset` on touch: number, place in the page, range of the buffer.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, core::ops::Range<usize>)> {
    let mut done = 0;
    core::iter::from_fn(move || {
        let (number, within) = place(offset + done as u64);
        let part = (PAGE - within).min(len - done);
        let range = done..done + part;
        done += part;
        (part > 0).then_some((number, within, range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_what_a_plain_vector_would_hold() {
        let (contents, mut plain) = (Contents::default(), vec![0u8; 40_000]);
        let mut random = 3u64;
        let mut next = move |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        for step in 0..2000 {
            let (at, len) = (next(30_000), next(10_000));
            if step % 10 == 0 {
                contents.cut(at as u64);
                plain[at..].fill(0);
            } else {
                let data = vec![step as u8; len];
                contents.write(at as u64, &data);
                plain[at..at + len].copy_from_slice(&data);
            }
            let (at, len) = (next(30_000), next(10_000));
            let mut buf = vec![1; len];
            contents.read(at as u64, &mut buf);
            assert_eq!(buf, plain[at..at + len], "step {step}");
        }
    }

    #[test]
    fn a_hole_takes_no_storage() {
        let contents = Contents::default();
        assert_eq!(contents.write(1 << 40, b"x"), 8);
        assert_eq!(contents.write(0, b"y"), 16);
        assert_eq!(contents.cut(1 << 20), 8);
        assert_eq!(contents.cut(0), 0);
    }
}
