//! The kernel's FUSE protocol, version 7.45: its messages, and the device that carries them.
//!
//! # What it is
//! [`wire`] reads requests and writes replies and notices. It trusts no length that a message states, so no bytes make it
//! panic. [`Device`] is an open `/dev/fuse`. [`Ring`] receives requests through io_uring, where the kernel offers that
//! (Linux 6.14).
//!
//! # What it is not
//! A server. It has no tree, no session and no thread.
//!
//! # How it is locked
//! Each message is one system call, and the kernel takes any number at once. A [`Ring`] belongs to
//! one thread.
//!
//! # Where it comes from
//! `include/uapi/linux/fuse.h` and `fs/fuse/dev.c` in Linux; `fuse(4)`.

mod device;
mod ring;
mod waker;
pub mod wire;

pub use device::Device;
pub use ring::{Event, Loan, Ours, Reply, Ring, Wait, payload_bytes};
pub use waker::Waker;
