//! The file system over servers that lie, never answer, or never end.

use super::server::{BUCKET, KEYS};
use super::stranger::{Stranger, answer, endless, entry, page, send_forever};
use super::{LONG, Mounted, soon};
use lightfoot_objectfs::{Bucket, Counted, Keys, ObjectFs, ObjectOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use vfs::{Base, Cancel, Errno, OpenFlags, Vfs};

/// Long enough for a loaded machine, and for a test that waits for it.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn tree(stranger: &Stranger, prefix: &str) -> ObjectFs {
    let options = ObjectOptions { ttl: LONG, timeout: TIMEOUT, retries: 0, ..ObjectOptions::default() };
    tree_with(stranger, prefix, options)
}

pub(crate) fn tree_with(stranger: &Stranger, prefix: &str, options: ObjectOptions) -> ObjectFs {
    let mut bucket = Bucket::parse(&format!("s3://{BUCKET}/{prefix}")).expect("a URL");
    bucket.endpoint = Some(stranger.endpoint.clone());
    bucket.keys = Some(Keys { access_key: KEYS.0.into(), secret_key: KEYS.1.into() });
    ObjectFs::in_bucket(&bucket, options).expect("threads")
}

pub(crate) fn mount(fs: ObjectFs) -> Mounted {
    let calls = fs.calls();
    let vfs = Vfs::new(fs);
    Mounted { at: vfs.context(), calls, _vfs: vfs }
}

fn object(len: u64) -> Vec<u8> {
    let heads = "ETag: \"e\"\r\nLast-Modified: Fri, 02 Jan 2026 03:04:05 GMT\r\nConnection: close";
    format!("HTTP/1.1 200 Any\r\nContent-Length: {len}\r\n{heads}\r\n\r\n").into_bytes()
}

#[test]
fn a_redirect_is_not_followed_and_names_the_region() {
    let other = Stranger::start(|_, stream| stream.write_all(&answer(200, "", "secret")));
    for status in [301, 302, 307, 308] {
        let target = other.endpoint.clone();
        let first = Stranger::start(move |_, stream| {
            let heads = format!("Location: {target}/bucket/file\r\nx-amz-bucket-region: eu-west-3\r\n");
            stream.write_all(&answer(status, &heads, ""))
        });
        let fs = tree(&first, "");
        let error = fs.check().unwrap_err().to_string();
        assert!(error.contains("eu-west-3") && error.contains("region"), "{error}");
        let mounted = mount(fs);
        assert_eq!(mounted.read("/file"), Err(Errno::EIO));
        assert_eq!(mounted.write("/file", b"secret"), Err(Errno::EIO));
        assert!(first.heads().len() >= 3);
    }
    assert_eq!(other.heads(), [] as [String; 0], "the other server sees nothing");
}

#[test]
fn a_listing_without_an_end_is_an_error() {
    let numbers = Arc::new(AtomicUsize::new(0));
    let next = numbers.clone();
    let new = Stranger::start(move |_, stream| {
        stream.write_all(&page("", Some(&format!("token {}", next.fetch_add(1, Relaxed)))))
    });
    assert_eq!(mount(tree(&new, "")).names("/"), Err(Errno::EIO));
    assert!(numbers.load(Relaxed) <= 1100, "{numbers:?} empty pages");
    let same = Stranger::start(|_, stream| stream.write_all(&page(&entry("a"), Some("same"))));
    let mounted = mount(tree(&same, ""));
    assert_eq!((mounted.names("/"), same.heads().len()), (Err(Errno::EIO), 2));
}

#[test]
fn an_answer_without_an_end_is_cut() {
    let sent = Arc::new(AtomicU64::new(0));
    let count = sent.clone();
    let stranger = Stranger::start(move |head, stream| {
        let is_list = head.contains("list-type");
        if head.starts_with("HEAD") {
            return stream.write_all(&object(100_000));
        }
        if is_list {
            stream.write_all(&endless(200))?;
            stream.write_all(b"<ListBucketResult><Name>")?;
        } else {
            stream.write_all(&object(1 << 40))?;
        }
        count.fetch_add(send_forever(stream, &[b'a'; 64 << 10]), Relaxed);
        Ok(())
    });
    let mounted = mount(tree(&stranger, ""));
    let received = |mounted: &Mounted, act: &dyn Fn()| {
        let before = mounted.calls.of(Counted::Received);
        act();
        mounted.calls.of(Counted::Received) - before
    };
    // A part arrives whole before the budget ends the answer.
    let slack = 1 << 20;
    let listed = received(&mounted, &|| assert_eq!(mounted.names("/"), Err(Errno::EIO)));
    assert!((16 << 20..(16 << 20) + slack).contains(&listed), "{listed}");
    let read = received(&mounted, &|| assert_eq!(mounted.read("/file"), Err(Errno::EIO)));
    assert!((100_000..100_000 + slack).contains(&read), "{read}");
}

#[test]
fn an_error_without_an_end_is_cut() {
    let stranger = Stranger::start(|head, stream| {
        if head.starts_with("HEAD") {
            return stream.write_all(&object(4));
        }
        stream.write_all(&endless(400))?;
        send_forever(stream, &[b'a'; 64 << 10]);
        Ok(())
    });
    let mounted = mount(tree(&stranger, ""));
    assert_eq!(mounted.read("/file"), Err(Errno::EIO));
    let received = mounted.calls.of(Counted::Received);
    assert!((64 << 10..2 << 20).contains(&received), "{received}");
}

#[test]
fn a_listed_key_outside_of_the_prefix_is_not_shown() {
    let entries = ["pre/good", "pre", "pr", "", "/", "//", "other/a", "pre/", "pre//a"].map(entry).concat()
        + "<CommonPrefixes><Prefix>p</Prefix></CommonPrefixes>";
    let stranger = Stranger::start(move |head, stream| {
        let is_list = head.starts_with("GET") && head.contains("list-type=2");
        stream.write_all(&if is_list { page(&entries, None) } else { answer(404, "", "") })
    });
    let mounted = mount(tree(&stranger, "pre"));
    assert_eq!(mounted.names("/"), Ok(vec!["good".into()]));
    assert!(mounted.calls.of(Counted::Hidden) >= 6);
    let root = mount(tree(&stranger, ""));
    assert_eq!(root.names("/"), Ok(vec!["pr".into(), "pre".into()]));
}

#[test]
fn an_object_with_absurd_metadata_is_a_file() {
    for metadata in [format!("x-amz-meta-a: {}\r\n", "a".repeat(70_000)), "x-amz-meta-a: 1\r\n".repeat(2)] {
        let stranger = Stranger::start(move |_, stream| {
            let time = "Last-Modified: Fri, 02 Jan 2026 03:04:05 GMT";
            stream.write_all(
                format!("HTTP/1.1 200 Any\r\nContent-Length: 4\r\n{time}\r\n{metadata}Connection: close\r\n\r\n")
                    .as_bytes(),
            )
        });
        assert_eq!(mount(tree(&stranger, "")).size("/file"), Ok(4));
    }
}

/// A server that takes requests and does not answer; with the number of its requests.
fn hanging() -> Stranger {
    Stranger::start(|_, stream| {
        let mut end = [0; 1];
        std::io::Read::read(stream, &mut end).map(drop)
    })
}

#[test]
fn a_caller_of_a_server_that_does_not_answer_can_be_cancelled() {
    let stranger = hanging();
    let mounted = mount(tree(&stranger, ""));
    let cancel = Cancel::new();
    std::thread::scope(|scope| {
        let calls = [
            scope.spawn(|| cancel.scope(|| mounted.size("/a").map(drop))),
            scope.spawn(|| cancel.scope(|| mounted.names("/").map(drop))),
            scope.spawn(|| cancel.scope(|| mounted.at.mknod(Base::CWD, b"/c", 0o644, 0))),
            scope.spawn(|| cancel.scope(|| mounted.rename("/d", "/e"))),
        ];
        soon("all have sent requests", &|| stranger.heads().len() >= calls.len());
        cancel.cancel();
        for call in calls {
            assert_eq!(call.join().expect("no panic"), Err(Errno::EINTR));
        }
    });
}

/// The second caller waits for a lock that the first one has.
#[test]
fn a_caller_that_waits_for_another_one_can_be_cancelled() {
    let stranger = Stranger::start(|head, stream| {
        if head.starts_with("HEAD") {
            return stream.write_all(&object(4));
        }
        std::io::Read::read(stream, &mut [0; 1]).map(drop)
    });
    let mounted = mount(tree(&stranger, ""));
    let file = mounted.open("/file", OpenFlags::RDWR).unwrap();
    file.write_at(0, b"a").unwrap();
    let (first, second) = (Cancel::new(), Cancel::new());
    std::thread::scope(|scope| {
        let loads = scope.spawn(|| first.scope(|| mounted.at.unlink(Base::CWD, b"/file")));
        soon("the object is read", &|| stranger.heads().iter().any(|head| head.starts_with("GET /bucket/file")));
        let waits = scope.spawn(|| second.scope(|| file.flush()));
        second.cancel();
        assert_eq!(waits.join().expect("no panic"), Err(Errno::EINTR));
        assert!(!loads.is_finished());
        first.cancel();
        assert_eq!(loads.join().expect("no panic"), Err(Errno::EINTR));
    });
}

#[test]
fn after_the_end_has_begun_no_call_waits_for_all_tries() {
    let stranger = hanging();
    let mut bucket = Bucket::parse(&format!("s3://{BUCKET}")).expect("a URL");
    bucket.endpoint = Some(stranger.endpoint.clone());
    bucket.keys = Some(Keys { access_key: KEYS.0.into(), secret_key: KEYS.1.into() });
    // Without the end, these tries would take an hour.
    let options = ObjectOptions { timeout: Duration::from_secs(1), retries: 3600, ..ObjectOptions::default() };
    let fs = ObjectFs::in_bucket(&bucket, options).expect("threads");
    let ending = fs.ending();
    let mounted = mount(fs);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| mounted.size("/a"));
        soon("the request is repeated", &|| stranger.heads().len() >= 2);
        assert!(!call.is_finished(), "it is repeated");
        ending.begin();
        assert_eq!(call.join().expect("no panic"), Err(Errno::ETIMEDOUT));
        assert_eq!(mounted.size("/b"), Err(Errno::ETIMEDOUT), "a later call, too");
        let before = stranger.heads().len();
        assert_eq!([mounted.size("/c"), mounted.size("/d")], [Err(Errno::ETIMEDOUT); 2], "the time is over");
        assert_eq!(stranger.heads().len(), before, "without a request");
    });
    assert!(mounted.calls.of(Counted::Retry) > 0);
}

/// Two clients write one object: the one that read the older version must not win.
#[test]
fn a_write_over_a_version_that_is_gone_is_refused() {
    let stranger = Stranger::start(|head, stream| {
        let is_range = head.to_ascii_lowercase().contains("\r\nrange: ");
        match head.split(' ').next() {
            Some("HEAD") => stream.write_all(&object(4)),
            Some("GET") if is_range => {
                stream.write_all(&object(4))?;
                stream.write_all(b"text")
            }
            Some("PUT") if head.to_ascii_lowercase().contains("\r\nif-match: \"e\"\r\n") => {
                stream.write_all(&answer(412, "", "<Error><Code>PreconditionFailed</Code></Error>"))
            }
            _ => stream.write_all(&answer(200, "ETag: \"f\"\r\n", "")),
        }
    });
    let mounted = mount(tree(&stranger, ""));
    let file = mounted.open("/file", OpenFlags::RDWR).unwrap();
    file.write_at(4, b"mine").unwrap();
    assert_eq!(file.flush(), Err(Errno::ESTALE));
    drop(file);
    assert_eq!(mounted.read("/file"), Ok(b"text".to_vec()), "what the other client wrote");
    // A file that is emptied first is not based on what was there.
    let file = mounted.open("/file", OpenFlags::WRONLY | OpenFlags::TRUNC).unwrap();
    file.write_at(0, b"mine").unwrap();
    assert_eq!(file.flush(), Ok(()));
}
