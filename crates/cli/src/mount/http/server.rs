//! As little of HTTP/1.0 as a scraper needs: GET of `/metrics` or `/`, one reply a connection.
//!
//! # What it is
//! One thread that polls the socket and its connections, so that a slow client delays no other. A connection is closed at its
//! deadline; and the oldest one when a further client connects while there are [`Limits::connections`].
//!
//! # Where it comes from
//! RFC 1945; `poll(2)`.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, SocketFlags, accept_with, send};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The longest request, in bytes.
const MAX_REQUEST: usize = 8 << 10;

/// How long no client is accepted after the host could not accept one, such as with too many open files.
const PAUSE: Duration = Duration::from_secs(2);

/// The limits on clients of the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How long a connection may last, from its first byte to its last.
    pub(super) deadline: Duration,
    /// How many connections there are at a time.
    pub(super) connections: usize,
}

impl Limits {
    pub(super) const DEFAULT: Self = Self { deadline: Duration::from_secs(5), connections: 32 };
}

/// Serves what `page` returns, until that is `None`. The listener does not block.
pub(super) fn run(listener: &OwnedFd, page: impl Fn() -> Option<String>, limits: Limits) {
    let mut connections = VecDeque::new();
    let mut accepts_from = Instant::now();
    loop {
        wait(listener, &connections, accepts_from, limits);
        let now = Instant::now();
        if now >= accepts_from && !accept(listener, &mut connections, limits) {
            accepts_from = now + PAUSE;
        }
        let mut is_mounted = true;
        connections.retain_mut(|connection: &mut Connection| {
            let progress = connection.proceed(&page);
            is_mounted &= !matches!(progress, Progress::NoPage);
            matches!(progress, Progress::Waits) && connection.began.elapsed() < limits.deadline
        });
        if !is_mounted {
            return;
        }
    }
}

/// Waits for a client that connects, sends or receives, or for the next deadline.
fn wait(listener: &OwnedFd, connections: &VecDeque<Connection>, accepts_from: Instant, limits: Limits) {
    let now = Instant::now();
    let pause = accepts_from.checked_duration_since(now).filter(|pause| !pause.is_zero());
    let oldest = connections.front().map(|oldest| limits.deadline.saturating_sub(now - oldest.began));
    let timeout = [pause, oldest].into_iter().flatten().min();
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut fds: Vec<PollFd<'_>> =
        connections.iter().map(|connection| PollFd::new(&connection.stream, connection.awaits())).collect();
    if pause.is_none() {
        fds.push(PollFd::new(listener, PollFlags::IN));
    }
    // An error leads to one more round: reads, writes and `accept` report it.
    let _ = poll(&mut fds, timeout.as_ref());
}

/// Accepts the clients that wait, but no more than there may be. `false` if the host could not accept one.
fn accept(listener: &OwnedFd, connections: &mut VecDeque<Connection>, limits: Limits) -> bool {
    for _ in 0..limits.connections {
        match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(stream) => {
                if connections.len() == limits.connections {
                    connections.pop_front();
                }
                connections.push_back(Connection::new(stream));
            }
            Err(Errno::AGAIN) => return true,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a client of the metrics");
                return false;
            }
        }
    }
    true
}

/// A client and how far it is.
struct Connection {
    stream: OwnedFd,
    began: Instant,
    state: State,
}

enum State {
    /// The request so far.
    Reading(Vec<u8>),
    /// The reply, and how much of it was sent.
    Writing(Vec<u8>, usize),
}

enum Progress {
    /// The client must send or receive something first.
    Waits,
    /// The client has the reply, or has closed the connection.
    Done,
    /// There is nothing to serve any more.
    NoPage,
}

impl Connection {
    fn new(stream: OwnedFd) -> Self {
        Self { stream, began: Instant::now(), state: State::Reading(Vec::new()) }
    }

    fn awaits(&self) -> PollFlags {
        match self.state {
            State::Reading(_) => PollFlags::IN,
            State::Writing(..) => PollFlags::OUT,
        }
    }

    /// Reads and writes as much as the client allows.
    fn proceed(&mut self, page: &impl Fn() -> Option<String>) -> Progress {
        loop {
            let turn = match &mut self.state {
                State::Reading(request) => match read_some(&self.stream, request) {
                    Ok(true) => match reply(&String::from_utf8_lossy(request), page) {
                        Some(reply) => {
                            self.state = State::Writing(reply, 0);
                            continue;
                        }
                        None => return Progress::NoPage,
                    },
                    other => other.map(drop),
                },
                State::Writing(reply, sent) if *sent == reply.len() => return Progress::Done,
                State::Writing(reply, sent) => match send(&self.stream, &reply[*sent..], SendFlags::NOSIGNAL) {
                    Ok(0) => return Progress::Done,
                    other => other.map(|bytes| *sent += bytes),
                },
            };
            match turn {
                Err(Errno::AGAIN) => return Progress::Waits,
                Err(error) if error != Errno::INTR => {
                    tracing::debug!(%error, "no reply to a client of the metrics");
                    return Progress::Done;
                }
                _ => {}
            }
        }
    }
}

/// Reads another piece of a request. Returns whether the request is complete up to the empty line, or as long as the server reads
/// at most.
fn read_some(stream: &OwnedFd, request: &mut Vec<u8>) -> rustix::io::Result<bool> {
    let mut piece = [0; 1024];
    let bytes = rustix::io::read(stream, &mut piece)?;
    request.extend_from_slice(&piece[..bytes]);
    Ok(bytes == 0 || request.len() >= MAX_REQUEST || request.windows(4).any(|end| end == b"\r\n\r\n"))
}

/// Returns the reply to a request; `None` if there is not a page any more.
fn reply(request: &str, page: impl Fn() -> Option<String>) -> Option<Vec<u8>> {
    let mut words = request.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/" | "/metrics") => ("200 OK", page()?),
        ("GET" | "HEAD", _) => ("404 Not Found", "Use /metrics.\n".into()),
        _ => ("405 Method Not Allowed", "Use GET.\n".into()),
    };
    let kind = if status.starts_with("200") { "text/plain; version=0.0.4; charset=utf-8" } else { "text/plain" };
    let length = body.len();
    let mut reply =
        format!("HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    if method != "HEAD" {
        reply.push_str(&body);
    }
    Some(reply.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::thread;

    const REQUEST: &[u8] = b"GET /metrics HTTP/1.0\r\n\r\n";

    /// Returns a server of a page of `len` bytes.
    fn start(limits: Limits, len: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || run(&listener.into(), || Some("a".repeat(len)), limits));
        address
    }

    fn client(address: SocketAddr, sends: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        stream.write_all(sends).expect("it reads");
        stream
    }

    /// Returns the text that the server sends until it closes the connection.
    fn rest(mut stream: TcpStream) -> io::Result<String> {
        let mut text = String::new();
        stream.read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn slow_clients_delay_no_other_and_are_closed_when_there_are_too_many() {
        let limits = Limits { deadline: Duration::from_secs(3600), connections: 8 };
        let address = start(limits, 8 << 20);
        let slow: Vec<TcpStream> = (0..40).map(|_| client(address, b"GET /metr")).collect();
        // They send a whole request and receive nothing.
        let deaf: Vec<TcpStream> = (0..40).map(|_| client(address, REQUEST)).collect();
        let reply = rest(client(address, REQUEST)).expect("a reply within the timeout");
        assert!(reply.starts_with("HTTP/1.0 200 OK\r\n") && reply.ends_with("aaaa"), "{} bytes", reply.len());
        for stream in slow {
            // An error is a reset, which also ends it.
            assert_eq!(rest(stream).unwrap_or_default(), "");
        }
        drop(deaf);
    }

    #[test]
    fn a_connection_ends_at_its_deadline() {
        let address = start(Limits { deadline: Duration::from_millis(1), connections: 8 }, 1);
        let timed_out = |error: &io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        assert!(!rest(client(address, b"GET /metr")).is_err_and(|error| timed_out(&error)));
    }

    #[test]
    fn the_reply_depends_on_method_and_path() {
        let cases = [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "a 1\n"),
            ("GET / HTTP/1.0\r\n\r\n", "200 OK", "a 1\n"),
            ("HEAD /metrics HTTP/1.0\r\n\r\n", "200 OK", "\r\n\r\n"),
            ("GET /x HTTP/1.0\r\n\r\n", "404", "Use /metrics.\n"),
            ("POST /metrics HTTP/1.0\r\n\r\n", "405", "Use GET.\n"),
            ("", "405", "Use GET.\n"),
        ];
        for (request, status, end) in cases {
            let text = String::from_utf8(reply(request, || Some("a 1\n".into())).expect("a page")).expect("text");
            assert!(text.starts_with("HTTP/1.0 ") && text.contains(status) && text.ends_with(end), "{text}");
        }
        assert_eq!(reply("GET / HTTP/1.0", || None), None, "the mount is gone");
    }
}
