//! The integration tests of this crate, one module for each subject.

mod acls;
mod appends;
mod descriptor_budget;
mod differential;
mod direct;
mod escape;
mod file_identity;
mod files;
mod guarded;
mod handles;
mod mount_points;
mod own_descriptors;
mod ownership;
mod policies;
mod reflinks;
mod rights;
mod storm;
mod suite;
mod support;
mod user_opens;
