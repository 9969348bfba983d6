//! The messages of the protocol.
//!
//! # What it is
//! A message is a header, the struct of its operation, and names or data. [`abi`] has the structs,
//! [`request`] reads requests, and [`extension`] the parts appended to them. [`body`] collects the
//! body of a reply, [`init`] negotiates, [`notice`] has messages that do not reply to a request.
//!
//! # Where it comes from
//! `include/uapi/linux/fuse.h` in Linux.

pub mod abi;
pub mod body;
pub mod extension;
pub mod init;
pub mod notice;
pub mod request;

pub use abi::ROOT_NODE;
pub use body::Body;
pub use request::{Malformed, Operation, Request};
