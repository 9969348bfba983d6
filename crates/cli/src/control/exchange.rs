//! One exchange with the process of a mount, which may belong to another user: a request, a reply, and one deadline for both.
//!
//! # What it is
//! The other process may let its queue fill, send a byte now and then, or send text that a terminal would obey. So the deadline
//! covers connection, request and reply, and no control character of a reply leaves this module ([`parse`]).

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use vfs::Foreign;

/// How often a client tries to enter a queue that is full.
const STEP: Duration = Duration::from_millis(10);

/// A connection, until its deadline.
pub(super) struct Exchange {
    pub(super) stream: UnixStream,
    until: Instant,
    /// Bytes behind the last line.
    rest: Vec<u8>,
}

impl Exchange {
    /// Connects to the socket at `path`.
    ///
    /// # Errors
    /// `TimedOut`, and the errors of `connect(2)`.
    pub(super) fn begin(path: &Path, until: Instant) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        loop {
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            match connect(&socket, &address) {
                Ok(()) => {
                    let stream = UnixStream::from(socket);
                    stream.set_nonblocking(false)?;
                    return Ok(Self { stream, until, rest: Vec::new() });
                }
                // The queue of the socket is full.
                Err(Errno::AGAIN) => {
                    left(until)?;
                    thread::sleep(STEP);
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Sends a request.
    ///
    /// # Errors
    /// `TimedOut`, and the errors of the socket.
    pub(super) fn request(mut self, request: &[u8]) -> io::Result<Self> {
        self.stream.set_write_timeout(Some(left(self.until)?))?;
        self.stream.write_all(request).map_err(timed_out)?;
        Ok(self)
    }

    /// Returns the next line that the process replies, of at most `most` bytes.
    ///
    /// # Errors
    /// `TimedOut`, `InvalidData` if the line is longer, and the errors of the socket.
    pub(super) fn line(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let (mut line, mut part, mut new) = (core::mem::take(&mut self.rest), [0; 16 << 10], 0);
        loop {
            if let Some(end) = line[new..].iter().position(|byte| *byte == b'\n') {
                self.rest = line.split_off(new + end + 1);
                return Ok(line);
            }
            if line.len() > most {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.stream.set_read_timeout(Some(left(self.until)?))?;
            let read = self.stream.read(&mut part).map_err(timed_out)?;
            if read == 0 {
                return Ok(line);
            }
            new = line.len();
            line.extend_from_slice(&part[..read]);
        }
    }
}

/// Returns the time until the deadline.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Returns the error of a socket with a timeout.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

/// Returns the value of a JSON document of another process. Its strings are written as [`Foreign`] writes them. `None` if it is not
/// JSON, or not a `T`.
pub(super) fn parse<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    let mut document = serde_json::from_slice(line).ok()?;
    clean(&mut document);
    serde_json::from_value(document).ok()
}

/// Escapes the control characters in all strings. The names of fields are only compared: names of figures are strings.
fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = Foreign::of(text).to_string(),
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => fields.values_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A socket whose process does `serve` with each client.
    fn hostile(serve: impl Fn(UnixStream) + Send + 'static) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || listener.incoming().for_each(|client| serve(client.unwrap())));
        (dir, path)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(200)
    }

    #[test]
    fn a_process_that_drips_or_never_replies_is_left_at_the_deadline() {
        let drips = |mut client: UnixStream| while client.write_all(b" ").is_ok() {};
        let (_dir, path) = hostile(drips);
        let error = Exchange::begin(&path, soon())
            .unwrap()
            .request(b"snapshot\n")
            .and_then(|mut exchange| exchange.line(usize::MAX))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let error = Exchange::begin(&path, soon())
            .and_then(|exchange| exchange.request(b"snapshot\n")?.line(1000))
            .unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::TimedOut), "{error}");
    }

    #[test]
    fn a_full_queue_is_left_at_the_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let _nobody_accepts = UnixListener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        let error = loop {
            match Exchange::begin(&path, soon()) {
                Ok(exchange) => waiting.push(exchange),
                Err(error) => break error,
            }
            assert!(waiting.len() < 100_000, "the queue never fills");
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let error =
            waiting.pop().unwrap().request(b"snapshot\n").and_then(|mut exchange| exchange.line(1000)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn no_control_character_of_a_reply_is_left() {
        let line =
            serde_json::json!({ "a": ["\x1b[2J\u{202e}x\u{2028}", { "b": "line\nnext\u{7}" }], "c": 1 }).to_string();
        let cleaned: Value = parse(line.as_bytes()).unwrap();
        let text = [&cleaned["a"][0], &cleaned["a"][1]["b"]].map(|value| value.to_string()).concat();
        assert!(!text.contains(['\x1b', '\n', '\u{7}', '\u{202e}', '\u{2028}']), "{text}");
        assert!(text.contains('x') && text.contains("next"), "{text}");
        assert_eq!(parse::<Value>(b"\x1b[2J"), None);
    }
}
