//! Answers that contradict the request or one another: an error, and never other bytes or names.

use super::hostile::{TIMEOUT, mount, tree, tree_with};
use super::server::Server;
use super::stranger::{Stranger, answer, entry, page};
use super::{LONG, mount_with, pattern, pattern_at};
use lightfoot_objectfs::{Counted, ObjectOptions};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use vfs::{Errno, OpenFlags};

/// One block, and a part of a block.
const LEN: usize = 200_000;
const BLOCK: usize = 128 << 10;

/// The heads of an answer with the version `tag`.
fn version(tag: &str) -> String {
    format!("ETag: \"{tag}\"\r\nLast-Modified: Fri, 02 Jan 2026 03:04:05 GMT\r\n")
}

fn head(len: usize) -> Vec<u8> {
    format!("HTTP/1.1 200 Any\r\nContent-Length: {len}\r\nConnection: close\r\n{}\r\n", version("e")).into_bytes()
}

/// A server with an object, which answers requests for ranges with this status, these heads and bytes.
fn with_ranges(status: u16, heads: String, body: Vec<u8>) -> Stranger {
    Stranger::start(move |request, stream| {
        if request.starts_with("HEAD") {
            return stream.write_all(&head(LEN));
        }
        let len = body.len();
        write!(stream, "HTTP/1.1 {status} Any\r\nContent-Length: {len}\r\nConnection: close\r\n{heads}\r\n")?;
        stream.write_all(&body)
    })
}

/// Reads the second block.
fn read_second(stranger: &Stranger) -> Result<Vec<u8>, Errno> {
    let mounted = mount(tree(stranger, ""));
    let file = mounted.open("/file", OpenFlags::RDONLY)?;
    let mut bytes = vec![0; LEN - BLOCK];
    file.read_at(BLOCK as u64, &mut bytes).map(|read| bytes[..read].to_vec())
}

#[test]
fn a_range_that_was_not_requested_is_an_error() {
    let (first, second) = (pattern(LEN - BLOCK), pattern_at(BLOCK, LEN - BLOCK));
    let range = |text: &str| format!("{}Content-Range: {text}\r\n", version("e"));
    let right = with_ranges(206, range("bytes 131072-199999/200000"), second.clone());
    assert!(read_second(&right) == Ok(second.clone()));
    let cases = [
        (206, "bytes 0-68927/200000", &first),
        (206, "bytes 131073-199999/200000", &second),
        (206, "bytes 131072-200000/200001", &second),
        (206, "bytes */200000", &second),
        (206, "68928", &second),
        (200, "bytes 131072-199999/200000", &first),
    ];
    for (status, text, body) in cases {
        let found = read_second(&with_ranges(status, range(text), body.clone()));
        assert_eq!(found.map(drop), Err(Errno::EIO), "{status} {text}");
    }
    let without = read_second(&with_ranges(206, version("e"), second));
    assert_eq!(without.map(drop), Err(Errno::EIO));
}

/// A server that ignores `If-Match`.
#[test]
fn a_range_of_another_version_is_not_served() {
    let heads = format!("{}Content-Range: bytes 131072-199999/200000\r\n", version("other"));
    let found = read_second(&with_ranges(206, heads, vec![0; LEN - BLOCK]));
    assert_eq!(found.map(drop), Err(Errno::EAGAIN));
}

#[test]
fn attributes_with_a_range_do_not_cut_an_object() {
    let stranger = Stranger::start(|_, stream| {
        let ranged = String::from_utf8_lossy(&head(LEN)).replace("ETag", "Content-Range: bytes 0-1/2\r\nETag");
        stream.write_all(ranged.as_bytes())
    });
    assert_eq!(mount(tree(&stranger, "")).size("/file"), Ok(LEN as u64));
}

#[test]
fn an_answer_that_is_not_a_listing_does_not_hide_names() {
    let error = "<Error><Code>InternalError</Code></Error>";
    for (status, body) in [(200, error), (200, "<html><body>Sign in</body></html>"), (404, error), (404, "")] {
        let stranger = Stranger::start(move |_, stream| stream.write_all(&answer(status, "", body)));
        let mounted = mount(tree(&stranger, ""));
        assert_eq!(mounted.names("/"), Err(Errno::EIO), "{status} {body}");
    }
}

/// The whole listing would come, but it takes longer than an answer may take.
#[test]
fn an_answer_that_comes_byte_by_byte_is_late() {
    let stranger = Stranger::start(|_, stream| {
        stream.set_read_timeout(Some(Duration::from_millis(100)))?;
        let all = page(&entry("name"), None);
        let (head, body) = all.split_at(all.windows(4).position(|end| end == b"\r\n\r\n").map_or(0, |at| at + 4));
        stream.write_all(head)?;
        for byte in body {
            stream.write_all(&[*byte])?;
            // A pause, unless the client leaves.
            if let Ok(0) = stream.read(&mut [0; 1]) {
                break;
            }
        }
        Ok(())
    });
    assert_eq!(mount(tree(&stranger, "")).names("/"), Err(Errno::EIO));
}

/// Each of the 200,000 answers brings one byte.
#[test]
fn contents_that_come_byte_by_byte_are_late() {
    let stranger = Stranger::start(|request, stream| {
        if request.starts_with("HEAD") {
            return stream.write_all(&head(LEN));
        }
        let request = request.to_ascii_lowercase();
        let range = request.lines().find_map(|line| line.strip_prefix("range: bytes=")).unwrap_or_default();
        let heads = format!("Content-Range: bytes {range}/{LEN}\r\nConnection: close\r\n{}", version("e"));
        let (first, last) = range.split_once('-').unwrap_or_default();
        let [first, last] = [first, last].map(|text| text.parse::<usize>().unwrap_or(0));
        let len = last - first + 1;
        write!(stream, "HTTP/1.1 206 Any\r\nContent-Length: {len}\r\n{heads}\r\nx")?;
        Ok(())
    });
    let options = ObjectOptions { timeout: Duration::from_millis(100), retries: 1, ..ObjectOptions::default() };
    let mounted = mount(tree_with(&stranger, "", options));
    let read = mounted.read("/file").map(drop);
    assert!(matches!(read, Err(Errno::ETIMEDOUT | Errno::EIO)), "{read:?}");
    assert!(stranger.heads().len() < LEN / 10, "{} requests", stranger.heads().len());
}

#[test]
fn two_lengths_under_one_etag_are_two_versions() {
    let lengths = Arc::new(AtomicUsize::new(LEN));
    let length = lengths.clone();
    let stranger = Stranger::start(move |request, stream| {
        if request.contains("list-type") {
            return stream.write_all(&page(&entry("file"), None));
        }
        if request.starts_with("HEAD") {
            return stream.write_all(&head(length.load(Relaxed)));
        }
        let request = request.to_ascii_lowercase();
        let range = request.lines().find_map(|line| line.strip_prefix("range: bytes=")?.split_once('-'));
        let [first, last] = range.map(|(first, last)| [first, last]).unwrap().map(|end| end.parse::<usize>().unwrap());
        let last = last.min(LEN - 1);
        let heads = format!("Content-Range: bytes {first}-{last}/{LEN}\r\n{}", version("e"));
        stream.write_all(&answer(206, &heads, &"x".repeat((last + 1).saturating_sub(first))))
    });
    let options = ObjectOptions { ttl: Duration::ZERO, timeout: TIMEOUT, retries: 0, ..ObjectOptions::default() };
    let mounted = mount(tree_with(&stranger, "", options));
    assert_eq!(mounted.read("/file").map(|bytes| bytes.len()), Ok(LEN));
    for len in [LEN + 1000, 1 << 62] {
        lengths.store(len, Relaxed);
        let file = mounted.open("/file", OpenFlags::RDONLY).unwrap();
        assert_eq!(file.read_at(LEN as u64, &mut [0; 100]), Err(Errno::EIO), "{len}");
    }
    lengths.store(LEN, Relaxed);
    assert_eq!(mounted.read("/file").map(|bytes| bytes.len()), Ok(LEN));
}

/// Listings of thousands of such names would take gigabytes.
#[test]
fn an_absurd_etag_is_not_kept() {
    let long = entry("name").replace("<Size>", &format!("<ETag>{}</ETag><Size>", "e".repeat(15_000)));
    let stranger = Stranger::start(move |request, stream| {
        if request.contains("list-type") {
            return stream.write_all(&page(&long, None));
        }
        if request.starts_with("HEAD") {
            return stream.write_all(&answer(200, &version(&"e".repeat(15_000)), "text"));
        }
        stream.write_all(&answer(206, "Content-Range: bytes 0-3/4\r\n", "text"))
    });
    let mounted = mount(tree(&stranger, ""));
    assert_eq!(mounted.names("/"), Ok(vec!["name".into()]));
    assert_eq!(mounted.read("/name"), Ok(b"text".to_vec()));
    let reads = stranger.heads().into_iter().filter(|head| head.starts_with("GET /bucket/name"));
    assert!(reads.map(|head| head.to_ascii_lowercase()).all(|head| !head.contains("if-match")));
}

/// As the kernel reads a file that several programs read: each page for one of them.
#[test]
fn readers_that_take_turns_get_each_byte_once() {
    const LEN: usize = 48 << 20;
    let server = Server::start();
    std::fs::write(server.object("large"), pattern(LEN)).unwrap();
    let options = ObjectOptions { ttl: LONG, cache_bytes: 128 << 20, ..ObjectOptions::default() };
    let mounted = mount_with(&server, "", options);
    let files = [(); 2].map(|()| mounted.open("/large", OpenFlags::RDONLY).unwrap());
    let before = mounted.calls.of(Counted::Received);
    let mut buf = vec![0; BLOCK];
    for (reader, range) in [(0, 0..8), (1, 8..30), (0, 30..34), (1, 34..44), (0, 44..48)] {
        for at in (range.start << 20..range.end << 20).step_by(BLOCK) {
            assert_eq!(files[reader].read_at(at as u64, &mut buf), Ok(BLOCK));
            assert!(buf[..] == pattern_at(at, BLOCK), "at {at}");
        }
    }
    let received = mounted.calls.of(Counted::Received) - before;
    assert!(received <= LEN as u64 / 100 * 102, "{received}");
}
