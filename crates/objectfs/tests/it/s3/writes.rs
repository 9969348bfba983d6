//! Writes over objects: what they send, and what stays when they fail.

use super::server::{Act, Server};
use super::{LONG, MAKE, mount, mount_with, pattern, read_all, soon};
use hyper::Method;
use lightfoot_objectfs::{Counted, ObjectOptions};
use vfs::{Base, Errno, OpenFlags, SetAttr};

#[test]
fn a_change_of_a_large_object_needs_no_other_bytes_of_it() {
    const LEN: usize = 40 << 20;
    let server = Server::start();
    std::fs::write(server.object("large"), pattern(LEN)).unwrap();
    let mounted = mount(&server, LONG);
    let file = mounted.open("/large", OpenFlags::RDWR).unwrap();
    let mut expected = pattern(LEN);
    for (at, text) in [(LEN, b"end"), (LEN / 2, b"mid"), (0, b"new")] {
        let [sent, received] = [Counted::Sent, Counted::Received].map(|kind| mounted.calls.of(kind));
        server.requests();
        file.write_at(at as u64, text).unwrap();
        file.flush().unwrap();
        let requests = server.requests();
        assert!(requests.len() <= 8, "{requests:#?}");
        let moved = mounted.calls.of(Counted::Sent) - sent + mounted.calls.of(Counted::Received) - received;
        assert!(moved < 12 << 20, "{moved} bytes at {at}");
        expected.resize(expected.len().max(at + 3), 0);
        expected[at..at + 3].copy_from_slice(text);
        assert!(std::fs::read(server.object("large")).unwrap() == expected, "{at}");
        assert!(read_all(&file, 1 << 20).unwrap() == expected, "{at}");
    }
    file.set_len(1000).unwrap();
    file.set_len(2000).unwrap();
    expected.truncate(1000);
    expected.resize(2000, 0);
    file.flush().unwrap();
    assert_eq!((read_all(&file, 4096).unwrap(), mounted.read("/large").unwrap()), (expected.clone(), expected.clone()));
    assert_eq!(std::fs::read(server.object("large")).unwrap(), expected);
}

#[test]
fn buffers_have_a_bound_that_an_object_is_checked_against_before_it_is_loaded() {
    let server = Server::start();
    std::fs::write(server.object("large"), pattern(2 << 20)).unwrap();
    let options = ObjectOptions { ttl: LONG, buffer_bytes: Some(1 << 20), ..ObjectOptions::default() };
    let mounted = mount_with(&server, "", options);
    let file = mounted.open("/large", OpenFlags::RDWR).unwrap();
    server.requests();
    assert_eq!(mounted.at.unlink(Base::CWD, b"/large"), Err(Errno::ENOSPC), "its open file needs its contents");
    let reads = server.requests().iter().filter(|request| request.starts_with("GET /bucket/large")).count();
    assert_eq!(reads, 0);
    assert_eq!(file.write_at(0, &vec![1; (1 << 20) + 1]), Err(Errno::ENOSPC));
    assert_eq!(file.write_at(0, &vec![1; 1 << 20]).map(|written| written.0), Ok(1 << 20));
    assert_eq!(mounted.write("/other", b"x"), Err(Errno::ENOSPC));
    file.flush().unwrap();
    assert_eq!(mounted.write("/other", b"x"), Ok(()), "a buffer that the store has takes no space");
    drop(file);
    assert_eq!(mounted.at.unlink(Base::CWD, b"/large"), Ok(()));
}

#[test]
fn a_refused_write_leaves_the_old_file() {
    let server = Server::start();
    std::fs::write(server.object("file"), b"old contents").unwrap();
    let mounted = mount(&server, LONG);
    assert_eq!(mounted.size("/file"), Ok(12));
    server.fail(Method::PUT, "/file", usize::MAX, Act::Status(403));
    assert_eq!(mounted.write("/file", b"new"), Err(Errno::EACCES));
    assert_eq!((mounted.size("/file"), mounted.read("/file")), (Ok(12), Ok(b"old contents".to_vec())));
    let set = SetAttr { size: Some(3), ..SetAttr::default() };
    assert_eq!(mounted.at.set_attr(Base::CWD, b"/file", true, &set), Err(Errno::EACCES));
    assert_eq!((mounted.size("/file"), mounted.read("/file")), (Ok(12), Ok(b"old contents".to_vec())));
    let file = mounted.open("/file", OpenFlags::WRONLY).unwrap();
    file.write_at(20, b"more").unwrap();
    assert_eq!((file.sync(false), mounted.size("/file")), (Err(Errno::EACCES), Ok(24)), "it is open");
    drop(file);
    assert_eq!((mounted.size("/file"), mounted.read("/file")), (Ok(12), Ok(b"old contents".to_vec())));
    server.mend();
    assert_eq!(mounted.write("/file", b"new"), Ok(()));
    assert_eq!(mounted.read("/file"), Ok(b"new".to_vec()));
}

#[test]
fn an_upload_that_fails_is_aborted() {
    let server = Server::start();
    let mounted = mount(&server, LONG);
    let parts = || {
        let names = std::fs::read_dir(server.object("..")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().contains(".upload")).count()
    };
    for (act, method, has) in [
        (Act::Body("<Error><Code>InvalidPart</Code></Error>"), Method::POST, "uploadId="),
        (Act::Body("<Error/>"), Method::POST, "uploadId="),
        (Act::Body("<CopyObjectResult></CopyObjectResult>"), Method::POST, "uploadId="),
        (Act::Body(""), Method::POST, "uploadId="),
        (Act::Status(403), Method::POST, "uploadId="),
        (Act::Status(403), Method::PUT, "partNumber=2"),
    ] {
        server.requests();
        server.fail(method, has, usize::MAX, act);
        assert!(mounted.write("/large", &pattern(20 << 20)).is_err(), "{act:?}");
        soon("the upload is aborted", &|| {
            server.requests().iter().any(|request| request.starts_with("DELETE /bucket/large?uploadId="))
        });
        server.mend();
        soon("no part remains", &|| parts() == 0);
    }
    assert_eq!(mounted.write("/large", b"now"), Ok(()));
}

#[test]
fn a_copy_that_fails_with_the_status_200_removes_nothing() {
    let server = Server::start();
    let mounted = mount(&server, LONG);
    mounted.write("/old", b"text").unwrap();
    server.fail(Method::PUT, "/new", usize::MAX, Act::Body("<Error><Code>InternalError</Code></Error>"));
    assert_eq!(mounted.rename("/old", "/new"), Err(Errno::EIO));
    assert_eq!(mounted.read("/old"), Ok(b"text".to_vec()));
    server.mend();
    server.fail(Method::PUT, "/new", 1, Act::Body("<Error><Code>InternalError</Code></Error>"));
    assert_eq!(mounted.rename("/old", "/new"), Ok(()), "an error that passes");
    assert_eq!(mounted.read("/new"), Ok(b"text".to_vec()));
}

#[test]
fn an_object_whose_reply_was_lost_was_made_by_its_caller() {
    let server = Server::start();
    let mounted = mount(&server, LONG);
    server.fail(Method::PUT, "/lock", 1, Act::Lost);
    assert_eq!(mounted.open("/lock", MAKE | OpenFlags::EXCL).map(drop), Ok(()));
    std::fs::write(server.object("taken"), b"").unwrap();
    server.fail(Method::PUT, "/taken", 1, Act::Cut);
    assert_eq!(mounted.open("/taken", MAKE | OpenFlags::EXCL).map(drop), Err(Errno::EEXIST));
}
