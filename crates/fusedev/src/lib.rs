//! The kernel's FUSE protocol, version 7.45: its messages, and the device that carries them.
//!
//! # What it is
//! [`wire`] reads requests and writes replies and notices. It trusts no length that a message states, so no bytes make it
//! panic. [`Device`] is an open `/dev/fuse`.
//!
//! # What it is not
//! A server. It knows no tree, no session and no thread.
//!
//! # How it is locked
//! Not at all: each message is one system call, and the kernel takes any number at once.
//!
//! # Where it comes from
//! `include/uapi/linux/fuse.h` and `fs/fuse/dev.c` in Linux; `fuse(4)`.

mod device;
pub mod wire;

pub use device::Device;
