//! Notifications to systemd, if it requests them: `sd_notify(3)`.

use std::env;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Notifies systemd that the mount is ready.
pub(super) fn ready(status: &str) {
    send(&format!("READY=1\nMAINPID={}\nSTATUS={status}\n", std::process::id()));
}

/// Notifies systemd that the mount is about to end.
pub(super) fn stopping() {
    send("STOPPING=1\n");
}

fn send(state: &str) {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        name => SocketAddr::from_pathname(std::path::Path::new(std::ffi::OsStr::from_bytes(name))),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify systemd");
    }
}
