//! Metrics over HTTP: the page of Prometheus to whoever asks, at an address that was said.
//!
//! # What it is
//! As little of HTTP/1.0 as a scraper needs: GET of `/metrics` or `/`, one answer a connection, one connection at a time,
//! each for as long as [`PATIENCE`].
//!
//! # What it is not
//! Protected: who can connect can read. So a port alone means the loopback address.

use super::failure::Failure;
use crate::control::Served;
use crate::stats::prometheus;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Weak;
use std::thread;
use std::time::Duration;

/// How long one who asks may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest request that is read.
const LONGEST: usize = 8 << 10;

/// Where metrics are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A port.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = std::path::absolute(path).map_err(|error| error.to_string())?;
            return Ok(Self::Unix(path));
        }
        if let Ok(port) = text.trim_start_matches(':').parse() {
            return Ok(Self::Tcp((Ipv4Addr::LOCALHOST, port).into()));
        }
        let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
        found.map(Self::Tcp).ok_or_else(|| "say ADDRESS:PORT, PORT or unix:PATH, such as 127.0.0.1:9180".into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// An address that is taken, where nobody is answered yet.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, Socket),
}

/// The file of a Unix socket; it is removed when this is dropped.
pub(super) struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Listener {
    /// Takes the address.
    pub(super) fn bind(address: &Address) -> Result<Self, Failure> {
        let bound = match address {
            Address::Tcp(address) => TcpListener::bind(address).map(Self::Tcp),
            Address::Unix(path) => {
                remove_dead(path);
                UnixListener::bind(path).map(|listener| Self::Unix(listener, Socket(path.clone())))
            }
        };
        bound.map_err(|error| Failure::Listen { address: address.to_string(), reason: error.into() })
    }

    /// Answers from now on, on a thread of its own; as long as what is answered is kept.
    pub(super) fn serve(self, served: Weak<Served>) -> io::Result<Option<Socket>> {
        let thread = thread::Builder::new().name("lightfoot-http".into());
        match self {
            Self::Tcp(listener) => {
                tracing::info!(address = %listener.local_addr()?, "metrics are served");
                let accept = move || {
                    let (stream, _) = listener.accept()?;
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    Ok(stream)
                };
                thread.spawn(move || answer_all(accept, &served))?;
                Ok(None)
            }
            Self::Unix(listener, socket) => {
                let accept = move || {
                    let (stream, _) = listener.accept()?;
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    Ok(stream)
                };
                thread.spawn(move || answer_all(accept, &served))?;
                Ok(Some(socket))
            }
        }
    }
}

/// A socket that nobody answers is in the way.
fn remove_dead(path: &Path) {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let is_dead = || UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_socket && is_dead() {
        let _ = fs::remove_file(path);
    }
}

fn answer_all<S: Read + Write>(accept: impl Fn() -> io::Result<S>, served: &Weak<Served>) {
    loop {
        let stream = accept();
        let Some(served) = served.upgrade() else { return };
        let page = || prometheus(&served.status());
        match stream.and_then(|mut stream| answer(&mut stream, page)) {
            // Too many files are open: it must not turn without rest.
            Err(error) if error.raw_os_error().is_some_and(|errno| matches!(errno, 23 | 24)) => thread::sleep(PATIENCE),
            Err(error) => tracing::debug!(%error, "who asked for metrics was not answered"),
            Ok(()) => {}
        }
    }
}

fn answer(stream: &mut (impl Read + Write), page: impl FnOnce() -> String) -> io::Result<()> {
    let request = head(stream)?;
    let mut words = request.split_ascii_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split('?').next().unwrap_or_default();
    let (status, body) = match (method, path) {
        ("GET" | "HEAD", "/" | "/metrics") => ("200 OK", page()),
        ("GET" | "HEAD", _) => ("404 Not Found", "There is /metrics.\n".into()),
        _ => ("405 Method Not Allowed", "Say GET.\n".into()),
    };
    let kind = if status.starts_with("200") { "text/plain; version=0.0.4; charset=utf-8" } else { "text/plain" };
    let length = body.len();
    let reply =
        format!("HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(reply.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The request, up to the empty line.
fn head(stream: &mut impl Read) -> io::Result<String> {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST {
        match stream.read(&mut piece)? {
            0 => break,
            bytes => request.extend_from_slice(&piece[..bytes]),
        }
    }
    Ok(String::from_utf8_lossy(&request).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn an_address_is_a_port_on_the_loopback_unless_it_says_more() {
        let tcp = |text: &str| Address::Tcp(text.parse().expect("an address"));
        let cases = [
            ("9180", tcp("127.0.0.1:9180")),
            (":9180", tcp("127.0.0.1:9180")),
            ("0.0.0.0:1", tcp("0.0.0.0:1")),
            ("[::1]:1", tcp("[::1]:1")),
            ("unix:/run/x", Address::Unix("/run/x".into())),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        assert!("here".parse::<Address>().is_err_and(|error| error.contains("127.0.0.1:9180")));
    }

    #[test]
    fn a_request_is_answered_by_method_and_path() {
        let cases = [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200 OK", "a 1\n"),
            ("GET / HTTP/1.0\r\n\r\n", "200 OK", "a 1\n"),
            ("HEAD /metrics HTTP/1.0\r\n\r\n", "200 OK", "\r\n\r\n"),
            ("GET /x HTTP/1.0\r\n\r\n", "404", "There is /metrics.\n"),
            ("POST /metrics HTTP/1.0\r\n\r\n", "405", "Say GET.\n"),
            ("", "405", "Say GET.\n"),
        ];
        for (request, status, end) in cases {
            let mut stream = Cursor::new(request.as_bytes().to_vec());
            answer(&mut stream, || "a 1\n".into()).expect("memory can be written");
            let text = String::from_utf8(stream.into_inner().split_off(request.len())).expect("text");
            assert!(text.starts_with("HTTP/1.0 ") && text.contains(status) && text.ends_with(end), "{text}");
        }
    }
}
