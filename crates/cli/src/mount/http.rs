//! Metrics over HTTP, for Prometheus: the address and its socket.
//!
//! # What it is not
//! Protected: every program that can connect can read. So a port alone means the loopback address.

mod server;

use super::error::ServeError;
use crate::control::{ServedMount, remove_dead_socket};
use crate::stats::prometheus;
use server::Limits;
use std::fmt;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Weak;
use std::thread;
use vfs::Foreign;

/// The port of the examples.
const DEFAULT_PORT: u16 = 9180;

/// The last port that only root may bind.
const LAST_PRIVILEGED: u16 = 1023;

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
        found.map(Self::Tcp).ok_or_else(|| "use ADDRESS:PORT, PORT or unix:PATH, such as 127.0.0.1:9180".into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", Foreign::of(path)),
        }
    }
}

/// A socket that listens, but is not served yet.
pub(super) enum HttpListener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket; it is removed when this is dropped.
pub(super) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl HttpListener {
    /// Binds the address.
    ///
    /// # Errors
    /// As for `bind(2)`, with an address that could be used.
    pub(super) fn bind(address: &Address) -> Result<Self, ServeError> {
        let bound = match address {
            Address::Tcp(address) => TcpListener::bind(address).map(Self::Tcp),
            Address::Unix(path) => {
                remove_dead_socket(path);
                UnixListener::bind(path).map(|listener| Self::Unix(listener, SocketFile(path.clone())))
            }
        };
        bound.map_err(|error| {
            let (address, free) = (address.to_string(), free_address(address));
            ServeError::Listen { address, reason: error.into(), free }
        })
    }

    /// Starts a thread that serves the metrics of `mount`, until that is dropped.
    pub(super) fn serve(self, mount: Weak<ServedMount>) -> io::Result<Option<SocketFile>> {
        let page = move || Some(prometheus(&mount.upgrade()?.status()));
        let thread = thread::Builder::new().name("lightfoot-http".into());
        let (listener, socket) = match self {
            Self::Tcp(listener) => {
                tracing::info!(address = %listener.local_addr()?, "serving metrics");
                (OwnedFd::from(listener), None)
            }
            Self::Unix(listener, socket) => (listener.into(), Some(socket)),
        };
        rustix::io::ioctl_fionbio(&listener, true)?;
        thread.spawn(move || server::run(&listener, page, Limits::DEFAULT))?;
        Ok(socket)
    }
}

/// Returns an address that is free now, with a port above the port of `address`.
fn free_address(address: &Address) -> SocketAddr {
    let (ip, port) = match address {
        Address::Tcp(address) => (address.ip(), address.port()),
        Address::Unix(_) => (Ipv4Addr::LOCALHOST.into(), DEFAULT_PORT - 1),
    };
    let ports = (port.max(LAST_PRIVILEGED)..u16::MAX).take(100).map(|port| port + 1);
    let all = [ip, Ipv4Addr::LOCALHOST.into()].into_iter().flat_map(|ip| ports.clone().map(move |port| (ip, port)));
    let free = all.map(SocketAddr::from).find(|&address| TcpListener::bind(address).is_ok());
    // For port 0 the kernel chooses a free one, which the log has.
    free.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_the_loopback_address() {
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
}
